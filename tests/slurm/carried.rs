//! Recipes of both schemas, and what of a job they carry: the context of an eval, the eval, a replay's settings.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sweepctl::backends::srt::{Srt, SrtBackend};
use sweepctl::config::recipe::Schema;
use sweepctl::matrix::envelope::Envelope;
use sweepctl::step::environment::{Environment, Place};
use sweepctl::step::launch::backend::{Backend, Prepared};

use super::launcher::envelope;
use super::srt::{FIELDS, row};
use crate::support;

/// A recipe of schema 1 for [`row`].
const ONE: &str = "\
name: anything
model: {path: other, container: other, precision: bf16}
resources: {gpu_type: gb200, gpus_per_node: 4, prefill_nodes: 2, prefill_workers: 1, decode_nodes: 2, decode_workers: 2}
backend: {type: sglang, sglang_config: {prefill: {mem-fraction-static: 0.8}, decode: {tensor-parallel-size: 4}}}
benchmark: {type: sa-bench, isl: 8192, osl: 1024, concurrencies: [1]}
";

/// The recipe of a job in a checkout; the stand-in for srtctl takes it.
fn written(workspace: &Path, envelope: &Value, schema: Schema, eval_context: Option<u64>) -> Result<Value, String> {
    let envelope: Envelope = serde_json::from_value(envelope.clone()).expect("an envelope");
    let place = Place {
        runner_name: "srt_0".to_owned(),
        eval_max_model_len: eval_context,
        ..Place::default()
    };
    let job = Prepared {
        envelope: &envelope,
        environment: &Environment::new(&envelope, &place).expect("an environment"),
        runner: "srt_0",
        workspace,
        state: Path::new("/state"),
    };
    let backend = SrtBackend {
        settings: Srt {
            recipes_dir: None,
            workspace: None,
            schema,
        },
        gpus_per_node: Some(4),
        mask: sweepctl::secrets::Mask::default(),
    };
    let intent = backend.intend(&job).map_err(|problems| problems.to_string())?;
    let file = workspace.join("written.json");
    std::fs::write(&file, &intent.files[0].1).expect("a file");
    let output = Command::new("python3")
        .arg(FIELDS)
        .arg(&file)
        .output()
        .expect("python3 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_str(&intent.files[0].1).expect("JSON"))
}

fn checkout() -> tempfile::TempDir {
    let folder = super::folder();
    support::write(folder.path(), "recipes/one.yaml", ONE);
    support::write(folder.path(), "recipes/two.yaml", super::srt::RECIPE);
    folder
}

/// A row of one node with four GPUs that names no recipe.
fn one_node(framework: &str, evals: bool) -> Value {
    json!({
        "image": "a:b", "model": "org/Model", "model-prefix": "model", "precision": "fp8", "framework": framework,
        "runner": "gb200", "isl": 8192, "osl": 1024, "tp": 4, "pp": 1, "dcp-size": 1, "pcp-size": 1, "ep": 1,
        "dp-attn": false, "spec-decoding": "none", "conc": 16, "max-model-len": 9472, "exp-name": "model_8k1k",
        "disagg": false, "run-eval": evals, "eval-only": evals,
    })
}

fn replay(recipe: &str, conc: &[u64]) -> Value {
    let mut row = row(recipe);
    for name in ["isl", "osl", "max-model-len", "run-eval", "eval-only"] {
        row.as_object_mut().expect("a row").remove(name);
    }
    let more = json!({"scenario-type": "agentic-coding", "kv-offloading": "none", "total-cpu-dram-gb": 0,
        "duration": 900, "conc": conc});
    row.as_object_mut()
        .expect("a row")
        .extend(more.as_object().expect("fields").clone());
    row
}

#[test]
fn a_recipe_of_schema_1_is_applied_with_what_the_row_decides() {
    let folder = checkout();
    let mut found = written(folder.path(), &envelope(row("recipes/one.yaml")), Schema::One, None).expect("a recipe");
    found["sbatch_directives"]["comment"].take();
    let wanted = json!({
        "name": "srt_0",
        "model": {"path": "org/Model", "container": "lmsysorg/sglang:v0.5", "precision": "fp8"},
        "resources": {"gpu_type": "gb200", "gpus_per_node": 4, "prefill_nodes": 2, "prefill_workers": 1,
            "decode_nodes": 2, "decode_workers": 2},
        "backend": {"type": "sglang", "sglang_config": {"prefill": {"mem-fraction-static": 0.8},
            "decode": {"tensor-parallel-size": 4}}},
        "benchmark": {"type": "sa-bench", "isl": 8192, "osl": 1024, "concurrencies": [16, 64]},
        "sbatch_directives": {"comment": null},
    });
    assert_eq!(support::difference(&found, &wanted), None);
}

#[test]
fn a_recipe_of_another_schema_or_deployment_is_refused() {
    let folder = checkout();
    let refusal = |text: &str, schema| {
        support::write(folder.path(), "recipes/x.yaml", text);
        written(folder.path(), &envelope(row("recipes/x.yaml")), schema, None).expect_err("a refusal")
    };
    for (text, schema, part) in [
        (ONE.to_owned(), Schema::Two, "lacks `schema`"),
        (super::srt::RECIPE.to_owned(), Schema::One, "`roles` cannot stand here"),
        (
            ONE.replace("decode_workers: 2", "decode_workers: 3"),
            Schema::One,
            "deploys 2 decode workers",
        ),
        (
            ONE.replace(", decode_workers: 2", ""),
            Schema::One,
            "no `decode_workers`",
        ),
        (
            ONE.replace("prefill_nodes: 2", "prefill_nodes: 1"),
            Schema::One,
            "has 8 GPUs, the recipe's has 4",
        ),
        (
            ONE.replace("prefill_nodes: 2", "gpus_per_prefill: 4, prefill_nodes: 2"),
            Schema::One,
            "has 8 GPUs",
        ),
        (
            ONE.replace("decode_nodes", "agg_workers: 1, decode_nodes"),
            Schema::One,
            "no agg workers",
        ),
        (ONE.replace("isl: 8192", "isl: 1024"), Schema::One, "`isl` is 8192"),
        (
            ONE.replace("type: sa-bench", "sweep: {}, type: sa-bench"),
            Schema::One,
            "several jobs",
        ),
    ] {
        let refused = refusal(&text, schema);
        assert!(refused.contains(part), "{part}: {refused}");
    }
}

#[test]
fn plain_recipes_of_schema_1_deploy_the_same() {
    let folder = checkout();
    for (framework, config) in [
        ("dynamo-trt", "trtllm"),
        ("dynamo-sglang", "sglang"),
        ("dynamo-vllm", "vllm"),
    ] {
        let mut row = row("");
        row.as_object_mut().expect("a row").remove("srt-recipe");
        row["framework"] = json!(framework);
        let (one, two) = [Schema::One, Schema::Two]
            .map(|schema| written(folder.path(), &envelope(row.clone()), schema, None).expect("a recipe"))
            .into();
        assert_eq!(one.get("schema"), None);
        assert_eq!(one["backend"]["type"], config);
        for side in ["prefill", "decode"] {
            let role = &two["roles"][side];
            assert_eq!(
                one["backend"][format!("{config}_config")][side],
                role["args"],
                "{framework}"
            );
            assert_eq!(one["resources"][format!("{side}_nodes")], role["nodes"]);
            assert_eq!(one["resources"][format!("{side}_workers")], role["workers"]);
            assert_eq!(one["resources"][format!("gpus_per_{side}")], role["gpus"]);
        }
    }
}

#[test]
fn an_eval_on_one_node_gets_its_context() {
    let folder = checkout();
    support::write(folder.path(), "benchmarks/benchmark_lib.sh", "");
    for (framework, config, flags) in [
        ("dynamo-trt", "trtllm_config", &["max_seq_len", "max_num_tokens"][..]),
        ("dynamo-sglang", "sglang_config", &["context-length"]),
        ("dynamo-vllm", "vllm_config", &["max-model-len"]),
    ] {
        let job = envelope(one_node(framework, true));
        let one = written(folder.path(), &job, Schema::One, Some(20480)).expect("a recipe");
        let two = written(folder.path(), &job, Schema::Two, Some(20480)).expect("a recipe");
        for flag in flags {
            assert_eq!(one["backend"][config]["aggregated"][flag], json!(20480), "{framework}");
            assert_eq!(two["roles"]["agg"]["args"][flag], json!(20480), "{framework}");
        }
        let throughput = envelope(one_node(framework, false));
        let two = written(folder.path(), &throughput, Schema::Two, None).expect("a recipe");
        assert_ne!(two["roles"]["agg"]["args"][flags[0]], json!(20480), "{framework}");
    }
    // A recipe's own spelling does not stay beside it.
    support::write(
        folder.path(),
        "recipes/agg.yaml",
        "name: a\nmodel: {path: a, container: b, precision: c}\nresources: {gpu_type: gb200, gpus_per_node: 4, \
         agg_nodes: 1, agg_workers: 1}\nbackend: {type: vllm, vllm_config: {aggregated: {max_model_len: 9}}}\n\
         benchmark: {type: sa-bench}\n",
    );
    let mut row = one_node("dynamo-vllm", true);
    row["srt-recipe"] = json!("recipes/agg.yaml");
    let one = written(folder.path(), &envelope(row), Schema::One, Some(20480)).expect("a recipe");
    assert_eq!(
        one["backend"]["vllm_config"]["aggregated"],
        json!({"max-model-len": 20480})
    );
}

#[test]
fn an_eval_travels_with_its_framework_suite_limit_and_task() {
    let folder = checkout();
    let mut job = envelope(row("recipes/two.yaml"));
    assert_eq!(
        written(folder.path(), &job, Schema::Two, None)
            .expect("a recipe")
            .get("post_eval"),
        None
    );
    for (name, value) in [
        ("run-eval", json!(true)),
        ("eval-only", json!(true)),
        ("eval-framework", json!("kimi-vv")),
    ] {
        job["row"][name] = value;
    }
    let found = written(folder.path(), &job, Schema::Two, None).expect("a recipe");
    // The words of a command: srt-slurm starts no shell of its own.
    let command = found["post_eval"]["command"].as_array().expect("words");
    assert_eq!(command[..2], [json!("bash"), json!("-c")]);
    let command = command[2].as_str().expect("a command");
    assert!(
        command.contains(".sweepctl/envelope.json") && command.contains("/logs/eval_results"),
        "{command}"
    );
    let passed: Vec<&str> = found["post_eval"]["passthrough_env"]
        .as_array()
        .expect("names")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for name in [
        "EVAL_FRAMEWORK",
        "EVAL_SUITE",
        "EVAL_LIMIT",
        "EVAL_TASKS",
        "EVAL_CONC",
        "EVAL_ONLY",
    ] {
        assert!(passed.contains(&name), "{name}: {passed:?}");
    }
    assert!(!passed.contains(&"INFMAX_WORKSPACE") && !passed.iter().any(|name| name.contains('=')));
    // A recipe's own command stays, and gets the variables too.
    let own = format!(
        "{}post_eval: {{command: mine, passthrough_env: [OWN]}}\n",
        super::srt::RECIPE
    );
    support::write(folder.path(), "recipes/two.yaml", own);
    let found = written(folder.path(), &job, Schema::Two, None).expect("a recipe");
    assert_eq!(found["post_eval"]["command"], "mine");
    assert_eq!(found["post_eval"]["passthrough_env"][0], "OWN");

    // Schema 1 goes through the shell library, and without it the job is refused before anything starts.
    job["row"]["srt-recipe"] = json!("recipes/one.yaml");
    let refused = written(folder.path(), &job, Schema::One, None).expect_err("a refusal");
    assert!(refused.contains("benchmarks/benchmark_lib.sh"), "{refused}");
    support::write(folder.path(), "benchmarks/benchmark_lib.sh", "");
    let found = written(folder.path(), &job, Schema::One, None).expect("a recipe");
    assert_eq!(found.get("post_eval"), None);
}

#[test]
fn a_replays_settings_win_over_its_recipes() {
    let folder = checkout();
    let custom = |text: &str| {
        text.replace(
            "type: sa-bench, isl: 8192, osl: 1024",
            "type: custom, command: replay, env: {DURATION: '9', PORT: '1'}",
        )
    };
    support::write(folder.path(), "recipes/one.yaml", custom(ONE));
    support::write(folder.path(), "recipes/two.yaml", custom(super::srt::RECIPE));
    for (recipe, schema) in [("recipes/one.yaml", Schema::One), ("recipes/two.yaml", Schema::Two)] {
        let mut job = envelope(replay(recipe, &[16]));
        job["overrides"] = json!({"agentx-fast": true});
        let found = written(folder.path(), &job, schema, None).expect("a recipe");
        let env = &found["benchmark"]["env"];
        for (name, value) in [
            ("DURATION", "900"),
            ("AIPERF_EXPERIMENTAL_FAST", "1"),
            ("CONC_LIST", "16"),
            ("PORT", "1"),
            ("RESULT_DIR", "/logs/agentic"),
            ("INFMAX_CONTAINER_WORKSPACE", "/infmax-workspace"),
        ] {
            assert_eq!(env[name], value, "{name}");
        }
        let refused =
            written(folder.path(), &envelope(replay(recipe, &[16, 32])), schema, None).expect_err("a refusal");
        assert!(refused.contains("exactly one concurrency"), "{refused}");
    }
}

#[test]
fn a_limit_on_samples_reaches_the_benchmark_of_a_recipe() {
    let folder = checkout();
    let examples = |suite: &str, benchmark: &str, limit: &str| {
        let benchmark = format!("{benchmark}, concurrencies: [1]");
        let own = |text: &str| text.replace("type: sa-bench, isl: 8192, osl: 1024, concurrencies: [1]", &benchmark);
        let mut found = Vec::new();
        for (schema, text) in [(Schema::One, own(ONE)), (Schema::Two, own(super::srt::RECIPE))] {
            assert!(text.contains(&benchmark), "{text}");
            support::write(folder.path(), "recipes/own.yaml", text);
            let mut job = envelope(row("recipes/own.yaml"));
            for (name, value) in [
                ("eval-framework", "benchmark"),
                ("eval-suite", suite),
                ("eval-srt-recipe", "recipes/own.yaml"),
            ] {
                job["row"][name] = json!(value);
            }
            (job["row"]["run-eval"], job["row"]["eval-only"]) = (json!(true), json!(true));
            job["row"]["eval-conc"] = json!(64);
            if !limit.is_empty() {
                job["overrides"] = json!({"eval-limit": limit});
            }
            found.push(
                written(folder.path(), &job, schema, None).map(|recipe| recipe["benchmark"]["num_examples"].clone()),
            );
        }
        assert_eq!(found[0], found[1]);
        found.remove(0)
    };
    assert_eq!(examples("mmlu", "type: mmlu, num_examples: 100", ""), Ok(json!(100)));
    assert_eq!(
        examples("mmlu", "type: mmlu, num_examples: 100", "full"),
        Ok(json!(100))
    );
    assert_eq!(examples("mmlu", "type: mmlu, num_examples: 100", "8"), Ok(json!(8)));
    // Never more than the recipe asks for, or than srt-slurm takes where it says nothing.
    assert_eq!(
        examples("mmlu", "type: mmlu, num_examples: 100", "1000"),
        Ok(json!(100))
    );
    assert_eq!(examples("gpqa", "type: gpqa", "1000"), Ok(json!(198)));
    assert_eq!(examples("longbenchv2", "type: longbenchv2", ""), Ok(json!(null)));
    assert_eq!(examples("longbenchv2", "type: longbenchv2", "1000"), Ok(json!(1000)));
    let aime = "type: custom, command: bash /configs/aime/run.sh";
    let refused = examples("aime", aime, "8").expect_err("a refusal");
    assert!(
        refused.contains("EVAL_LIMIT is 8, and `aime` runs all of its problems"),
        "{refused}"
    );
}
