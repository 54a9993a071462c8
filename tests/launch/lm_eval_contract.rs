//! What srt-slurm's lm-eval is told: the table of docs/accuracy.md, held against what a launch would set.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::{Host, run};
use crate::eval::support::{envelope, multi_node};
use crate::support::project;

/// The variables of the page's table, in its order.
fn documented() -> Vec<String> {
    let page = std::fs::read_to_string(project().join("docs/accuracy.md")).expect("the page");
    let table = page.split("| variables | what they say |").nth(1).expect("the table");
    let rows = table
        .trim_start()
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'));
    let names = rows.flat_map(|row| row.split('|').nth(1).expect("a column").split(", "));
    names.map(|name| name.trim().trim_matches('`').to_owned()).collect()
}

/// What the job of an envelope would be told: its variables, and those that stand before the command.
fn told(host: &Host, envelope: &Value) -> BTreeMap<String, String> {
    let mut command = host.launch(envelope, &["--dry-run", "--json"]);
    let done = run(command.env("MODEL_PATH", "/models/stub"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let planned: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let mut told: BTreeMap<String, String> = serde_json::from_value(planned["environment"].clone()).expect("variables");
    let command: Vec<String> = serde_json::from_value(planned["commands"][0].clone()).expect("a command");
    told.extend(command.iter().filter_map(|word| {
        let (name, value) = word.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    }));
    told
}

fn host() -> Host {
    let host = Host::new("{ backend: srt, served-model-name: 'stub-served' }");
    let runners =
        "labels:\n  h200: [h200-x_0]\nhardware:\n  h200: { available-cpu-dram-mib: 1000000, gpus-per-node: 8 }\n";
    crate::support::write(host.at(), "configs/runners.yaml", runners);
    host
}

/// A job of several nodes, whose values all differ from what their variables are where nobody says them.
fn job() -> Value {
    let mut job = multi_node("0123456789ab", &[16, 64]);
    let row = job["row"].as_object_mut().expect("a row");
    row.remove("eval-all-concs");
    row.insert("eval-conc".to_owned(), json!(64));
    row.insert("framework".to_owned(), json!("dynamo-sglang"));
    row.insert("disagg".to_owned(), json!(true));
    for (side, tp) in [("prefill", 8), ("decode", 16)] {
        row[side]["tp"] = json!(tp);
        row[side]["ep"] = json!(tp);
        row[side]["dp-attn"] = json!(side == "decode");
    }
    job
}

#[test]
fn every_variable_of_the_contract_is_set() {
    let host = host();
    let told = told(&host, &job());
    let name = &told["RESULT_FILENAME"];
    assert!(name.starts_with("stub_8k1k_fp8_dynamo-sglang_prefill-tp8"), "{name}");
    let wanted: BTreeMap<&str, &str> = [
        ("RUN_EVAL", "true"),
        ("EVAL_ONLY", "true"),
        ("IS_MULTINODE", "true"),
        ("FRAMEWORK", "dynamo-sglang"),
        ("PRECISION", "fp8"),
        ("MODEL_PREFIX", "stub"),
        ("RUNNER_TYPE", "h200"),
        ("SPEC_DECODING", "none"),
        ("ISL", "8192"),
        ("OSL", "1024"),
        ("RESULT_FILENAME", name),
        ("MODEL", "org/stub-7b"),
        ("MODEL_PATH", "/models/stub"),
        ("MODEL_NAME", "stub-served"),
        ("MAX_MODEL_LEN", "9472"),
        ("PREFILL_TP", "8"),
        ("PREFILL_EP", "8"),
        ("PREFILL_NUM_WORKERS", "2"),
        ("PREFILL_DP_ATTN", "false"),
        ("DECODE_TP", "16"),
        ("DECODE_EP", "16"),
        ("DECODE_NUM_WORKERS", "3"),
        ("DECODE_DP_ATTN", "true"),
        ("EVAL_CONC", "64"),
        ("EVAL_CONCURRENT_REQUESTS", "64"),
    ]
    .into();
    for (name, value) in &wanted {
        assert_eq!(told.get(*name).map(String::as_str), Some(*value), "{name}");
    }
    // The recipe of a job of several nodes has the context: one more is set for one node alone.
    let documented = documented();
    let others: Vec<&String> = documented
        .iter()
        .filter(|name| !wanted.contains_key(name.as_str()))
        .collect();
    assert_eq!(others, ["EVAL_MAX_MODEL_LEN"]);
    assert_eq!(
        documented.len(),
        wanted.len() + 1,
        "the page lists what is looked for: {documented:?}"
    );
    assert!(!told.contains_key("EVAL_MAX_MODEL_LEN"));
    // InferenceX's names beside srt-slurm's.
    for side in ["PREFILL", "DECODE"] {
        assert_eq!(told[&format!("{side}_DP_ATTENTION")], told[&format!("{side}_DP_ATTN")]);
    }
}

#[test]
fn a_job_of_one_node_is_told_its_context_and_its_requests() {
    let first = told(
        &host(),
        &envelope("0123456789ab", json!({"framework": "dynamo-sglang"})),
    );
    assert_eq!(
        (first["EVAL_CONC"].as_str(), first["EVAL_CONCURRENT_REQUESTS"].as_str()),
        ("", "4")
    );
    assert!(
        first["EVAL_MAX_MODEL_LEN"]
            .parse::<u64>()
            .is_ok_and(|tokens| tokens >= 9472)
    );
    let throughput = envelope(
        "0123456789ab",
        json!({"framework": "dynamo-sglang", "run-eval": false, "eval-only": false}),
    );
    let second = told(&host(), &throughput);
    assert!(!second.contains_key("EVAL_CONCURRENT_REQUESTS") && !second.contains_key("EVAL_MAX_MODEL_LEN"));
}

#[test]
fn an_accuracy_benchmark_is_no_eval_to_srt_slurm() {
    let host = host();
    let mut job = job();
    job["row"]["eval-framework"] = json!("benchmark");
    job["row"]["eval-suite"] = json!("mmlu");
    job["row"]["srt-recipe"] = json!("recipes/mmlu.yaml");
    crate::support::write(
        host.at(),
        "recipes/mmlu.yaml",
        "schema: 2\nname: a\nmodel: {path: a, container: b, precision: c}\nresources: {gpu_type: h200, gpus_per_node: 8}\n\
         engine: sglang\nroles: {prefill: {nodes: 2, workers: 2}, decode: {nodes: 6, workers: 3}}\nbenchmark: {type: mmlu}\n",
    );
    let told = told(&host, &job);
    // With EVAL_ONLY it would leave the benchmark out, and with RUN_EVAL run lm-eval behind it.
    assert_eq!(
        (told["EVAL_ONLY"].as_str(), told["RUN_EVAL"].as_str()),
        ("false", "false")
    );
    let recipe = run(&mut host.launch(&job, &["--dry-run", "--json"])).stdout;
    assert!(recipe.contains("mmlu") && !recipe.contains("post_eval"), "{recipe}");
}
