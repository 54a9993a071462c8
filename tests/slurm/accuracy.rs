//! Evals of srt-slurm on a real Slurm, from the launch to the collection. `srt_job.py` stands for srt-slurm's job, and
//! `srtctl_fields.py` for what its `srtctl` refuses; both say what they were taken from.

use serde_json::{Value, json};

use super::cluster::cluster;
use super::launcher::envelope;
use super::srt::row;
use super::support;
use crate::eval::support::{names, read_json, write_json};
use crate::launch::support::{Done, Host, benchmark, run};

/// `srtctl apply` as far as it is seen from outside: it keeps the recipe as it was submitted, and returns.
const SRTCTL: &str = concat!(
    "python3 ",
    env!("CARGO_MANIFEST_DIR"),
    r#"/tests/slurm/srtctl_fields.py "$3" || exit 1
id=$(/usr/bin/sbatch --parsable --hold --job-name="$RUNNER_NAME" --output="$PWD/outputs/%j/logs/sweep_%j.log" job.sh)
mkdir -p "outputs/$id/logs"
cp "$3" "outputs/$id/config.yaml"
/usr/bin/scontrol release "$id"
echo "Job $id submitted!"
"#
);

const JOB: &str = concat!(
    "#!/bin/bash\nfolder=outputs/$SLURM_JOB_ID\n[ ! -e before.sh ] || . ./before.sh\npython3 ",
    env!("CARGO_MANIFEST_DIR"),
    "/tests/slurm/srt_job.py $folder/config.yaml \"$PWD/$folder/logs\"\ncode=$?\n[ ! -e after.sh ] || . ./after.sh\nexit $code\n"
);

/// A recipe of schema 1 for [`row`], whose benchmark is still to be written.
const RECIPE: &str = "\
name: anything
model: {path: other, container: other, precision: bf16}
resources: {gpu_type: gb200, gpus_per_node: 4, prefill_nodes: 2, prefill_workers: 1, decode_nodes: 2, decode_workers: 2}
backend:
  type: sglang
  sglang_config: {prefill: {context-length: 131072}, decode: {context-length: 131072}}
benchmark:
  type: sa-bench
";

/// How many questions the stand-in data set has.
const QUESTIONS: usize = 20;

/// A host whose jobs srt-slurm starts, with a data set of its own.
fn host() -> Host {
    let host = Host::new("{ backend: srt, schema: 1 }");
    host.tool("srtctl", SRTCTL);
    support::write(host.at(), "job.sh", JOB);
    support::write(host.at(), "recipes/8k1k.yaml", RECIPE);
    support::write(host.at(), "recipes/gpqa.yaml", RECIPE);
    let questions = (0..QUESTIONS).map(|at| {
        let answer = ["A", "B", "C", "D"][at % 4];
        json!({"question": format!("Which of four letters is number {at} of this list?"), "answer": answer}).to_string()
    });
    support::write(host.at(), "data.jsonl", questions.collect::<Vec<_>>().join("\n") + "\n");
    let sets = [
        ("num_examples", "20"),
        ("repeat", "4"),
        ("num_threads", "8"),
        ("max_tokens", "1024"),
    ];
    let mut command = host.sweepctl(&["recipe", "accuracy", "gpqa", "recipes/gpqa.yaml"]);
    for (name, value) in sets {
        command.args(["--set", &format!("{name}={value}")]);
    }
    let done = run(&mut command);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    host
}

/// A job whose eval is the accuracy benchmark of its recipe.
fn gpqa() -> Value {
    let mut row = row("recipes/8k1k.yaml");
    for (name, value) in [
        ("eval-srt-recipe", json!("recipes/gpqa.yaml")),
        ("run-eval", json!(true)),
        ("eval-only", json!(true)),
        ("eval-conc", json!(64)),
        ("eval-framework", json!("benchmark")),
        ("eval-suite", json!("gpqa")),
    ] {
        row[name] = value;
    }
    envelope(row)
}

/// A job that runs lm-eval, alone or behind throughput.
fn lm_eval(alone: bool) -> Value {
    let mut row = row("recipes/8k1k.yaml");
    for (name, value) in [
        ("run-eval", json!(true)),
        ("eval-only", json!(alone)),
        ("eval-conc", json!(64)),
        ("eval-framework", json!("lm-eval")),
        ("eval-suite", json!("")),
    ] {
        row[name] = value;
    }
    envelope(row)
}

fn launch(host: &Host, runner: &str, envelope: &Value) -> Done {
    let mut command = host.launch(envelope, &["--runner-name", runner]);
    run(command.env("SLURM_CONF", &cluster().conf))
}

/// Uploads the eval, and gives the names that the artifact holds, at any depth.
fn uploaded(host: &Host) -> Vec<String> {
    let done = run(&mut host.sweepctl(&["upload", "--kind", "eval", "--envelope", "envelope.json", "--to", "up"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let said: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let folder = said["path"].as_str().expect("a path");
    let files = said["files"].as_array().expect("files").iter();
    let mut files: Vec<String> = files
        .map(|file| {
            file.as_str()
                .expect("a file")
                .rsplit_once("up/")
                .expect("below it")
                .1
                .to_owned()
        })
        .map(|file| file.split_once('/').expect("the artifact's folder").1.to_owned())
        .collect();
    files.sort();
    assert!(std::path::Path::new(folder).is_dir(), "{folder}");
    files
}

/// What a collection of the uploaded eval prints.
fn collected(host: &Host) -> Value {
    write_json(host.at(), "plan.json", &json!([read_json(&host.file("envelope.json"))]));
    let done = run(&mut host.sweepctl(&["collect", "evals", "up", "--plan", "plan.json", "--json"]));
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr))
}

const RESULT: &str = "accuracy/gpqa_Model.json";

#[test]
fn an_accuracy_benchmark_goes_from_the_launch_to_the_table() {
    let host = host();
    let done = launch(&host, "h200-x_gpqa", &gpqa());
    assert_eq!(done.code, Some(0), "{}\n{}", done.stderr, host.read("launch.log"));
    assert_eq!(
        names(&host.file("eval_results")),
        ["accuracy", "benchmark.out", "meta_env.json"]
    );
    // The row says whose it is: no script of srt-slurm's writes that down.
    let meta = read_json(&host.file("eval_results/meta_env.json"));
    assert_eq!((&meta["job_id"], &meta["conc"]), (&json!("0123456789ab"), &json!(64)));
    assert_eq!(
        (&meta["prefill_tp"], &meta["decode_num_workers"]),
        (&json!(8), &json!(2))
    );
    assert_eq!(
        (&meta["eval_suite"], &meta["infmax_model_prefix"]),
        (&json!("gpqa"), &json!("model"))
    );
    assert_eq!(uploaded(&host), [RESULT, "benchmark.out", "meta_env.json"]);

    let printed = collected(&host);
    assert_eq!(printed["jobs"][0]["state"], "done", "{printed}");
    let rows = printed["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{printed}");
    // What the client printed of each repeat, read anew.
    let log = host.read("eval_results/benchmark.out");
    let line = log.lines().find_map(|line| line.strip_prefix("Repeat: 4, mean: "));
    let mean: f64 = line.expect("a mean").parse().expect("a number");
    let score = rows[0]["score"].as_f64().expect("a score");
    assert!(
        (score - mean).abs() < 1e-9 && score > 0.3 && score < 1.0,
        "{score} {mean}"
    );
    assert_eq!((&rows[0]["task"], &rows[0]["repeats"]), (&json!("gpqa"), &json!(4)));
    assert_eq!(
        (&rows[0]["n_eff"], &rows[0]["spread"]),
        (&json!(QUESTIONS), &json!(0.0))
    );
    assert_eq!((&rows[0]["model"], &rows[0]["conc"]), (&json!("org/Model"), &json!(64)));

    // The gate, by the metadata of the set that the launch laid.
    let gate = |floor: &str| {
        support::write(
            host.at(),
            "floors.yaml",
            format!("default: {{gpqa: {floor}}}\nmodels: {{}}\n"),
        );
        let args = [
            "eval",
            "validate",
            "--envelope",
            "envelope.json",
            "--thresholds",
            "floors.yaml",
        ];
        run(&mut host.sweepctl(&args))
    };
    let done = gate("0.3");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("gpqa"), "{}", done.stdout);
    let done = gate("0.99");
    assert_eq!(done.code, Some(1), "{}", done.stdout);

    // The next launch of the runner does not find it.
    let done = run(&mut host.sweepctl(&["clean"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(!host.file("eval_results").exists());
}

#[test]
fn what_a_failed_or_partial_benchmark_left_is_kept_and_no_score() {
    for (fault, runner, code, says, left) in [
        (
            "dies",
            "h200-x_dies",
            74,
            "exited with code 1",
            &["benchmark.out", "meta_env.json"][..],
        ),
        ("no-file", "h200-x_nofile", 0, "", &["benchmark.out", "meta_env.json"]),
        (
            "nan",
            "h200-x_nan",
            74,
            "is not whole",
            &[RESULT, "benchmark.out", "meta_env.json"],
        ),
    ] {
        let host = host();
        support::write(host.at(), "fault", fault);
        let done = launch(&host, runner, &gpqa());
        assert_eq!(done.code, Some(code), "{fault}: {}", done.stderr);
        assert!(done.stderr.contains(says), "{fault}: {}", done.stderr);
        assert_eq!(uploaded(&host), left, "{fault}");
        let printed = collected(&host);
        let state = if code == 0 { "done" } else { "failed" };
        assert_eq!(printed["jobs"][0]["state"], state, "{fault}: {printed}");
        assert_eq!(printed["rows"] == json!([]), code != 0, "{fault}: {printed}");
    }
}

#[test]
fn an_accuracy_benchmark_that_never_ran_is_a_failed_eval_of_its_job() {
    let host = host();
    // What another job left on the node is none of this one's, whatever it is called.
    support::write(
        host.at(),
        "before.sh",
        r#"mkdir -p "$folder/logs/accuracy"; echo '{"score": 0.9}' > "$folder/logs/accuracy/gpqa_Model.json"
touch -d '1 hour ago' "$folder/logs/accuracy/gpqa_Model.json"; exit 0"#,
    );
    let done = launch(&host, "h200-x_old", &gpqa());
    assert_eq!(done.code, Some(74), "{}", done.stderr);
    assert!(
        done.stderr
            .contains("the eval of `gpqa` left no score; found instead: no score at all")
    );
    assert_eq!(uploaded(&host), ["meta_env.json"]);
    let printed = collected(&host);
    assert_eq!(printed["jobs"][0]["state"], "failed", "{printed}");
}

#[test]
fn nothing_is_followed_out_of_the_folders_of_a_benchmark() {
    let host = host();
    support::write(host.at(), "outside/gpqa_secret.json", r#"{"score": 0.9}"#);
    support::write(
        host.at(),
        "after.sh",
        r#"logs=$folder/logs; ln -s "$PWD/outside/gpqa_secret.json" "$logs/accuracy/gpqa_link.json"
ln -s "$PWD/outside" "$logs/accuracy/linked"
long=$(printf 'x%.0s' $(seq 200)); mkdir -p "$logs/accuracy/$long"; echo '{"score": 2}' > "$logs/accuracy/$long/notes.json"
mkfifo "$logs/accuracy/mmlu_endless.json"
echo answer > "$logs/accuracy/$long/output-rs42.jsonl-async""#,
    );
    let done = launch(&host, "h200-x_links", &gpqa());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let long = "x".repeat(200);
    assert_eq!(
        uploaded(&host),
        [
            RESULT,
            &format!("accuracy/{long}/output-rs42.jsonl-async"),
            "benchmark.out",
            "meta_env.json"
        ]
    );
    for why in ["is a symbolic link", "is a special file"] {
        assert!(done.stderr.contains(why), "{why} in {}", done.stderr);
    }
    // A link in the place of the set's folder leads the copies nowhere.
    support::write(
        host.at(),
        "after.sh",
        "rm -rf eval_results; ln -s \"$PWD/outside\" eval_results",
    );
    let done = launch(&host, "h200-x_links", &gpqa());
    assert_eq!(done.code, Some(74), "{}", done.stderr);
    assert_eq!(names(&host.file("outside")), ["gpqa_secret.json"]);
}

#[test]
fn a_recipe_that_cannot_hold_the_benchmark_is_refused_before_anything_starts() {
    let host = host();
    let mut job = gpqa();
    job["row"]["eval-only"] = json!(false);
    let done = launch(&host, "h200-x_both", &job);
    assert_eq!(done.code, Some(71), "{}", done.stderr);
    assert!(done.stderr.contains("a recipe has one benchmark"), "{}", done.stderr);
    let mut job = gpqa();
    for name in ["srt-recipe", "eval-srt-recipe"] {
        job["row"].as_object_mut().expect("a row").remove(name);
    }
    let done = launch(&host, "h200-x_none", &job);
    assert_eq!(done.code, Some(71), "{}", done.stderr);
    assert!(done.stderr.contains("names no recipe that runs it"), "{}", done.stderr);
    // What srtctl refuses of a recipe ends the launch as its refusal, and no job comes of it.
    let recipe = host
        .read("recipes/gpqa.yaml")
        .replace("max_tokens: 1024", "max_tokens: many");
    support::write(host.at(), "recipes/gpqa.yaml", recipe);
    let done = launch(&host, "h200-x_kind", &gpqa());
    assert_ne!(done.code, Some(0));
    let said = format!("{}{}", done.stderr, host.read("launch.log"));
    assert!(said.contains("benchmark.max_tokens: Not a valid integer"), "{said}");
    assert!(!host.file("outputs").exists());
}

/// A library as srt-slurm's lm-eval sources it: its eval leaves whole files, and ends with a code.
fn library(code: u8) -> String {
    format!(
        r#"run_eval() {{
    echo '{{"results": {{"gsm8k": {{"exact_match,strict-match": 0.97}}}}}}' > results_1.json
    echo '{{}}' > samples_gsm8k_1.jsonl
    env -0 > eval.env
    return {code}
}}
append_lm_eval_summary() {{
    env -0 > append.env
    echo '{{"is_multinode": true, "framework": "dynamo-sglang", "conc": 64}}' > meta_env.json
}}
"#
    )
}

fn variable(host: &Host, file: &str, name: &str) -> Option<String> {
    let text = host.read(file);
    let found = text.split('\0').filter_map(|line| line.split_once('='));
    found
        .filter(|(own, _)| *own == name)
        .map(|(_, value)| value.to_owned())
        .next()
}

const MEASURES: &str = r#"mkdir -p "$1/sa-bench_isl_8192_osl_1024"
for conc in $CONC_LIST; do
    cp saved.json "$1/sa-bench_isl_8192_osl_1024/results_concurrency_${conc}_gpus_16_ctx_8_gen_8.json"
done
"#;

#[test]
fn a_failed_eval_is_fatal_alone_and_not_behind_throughput() {
    for (alone, eval, code) in [(true, 0, 0), (true, 3, 74), (false, 3, 0), (false, 0, 0)] {
        let host = host();
        support::write(host.at(), "benchmarks/benchmark_lib.sh", library(eval));
        support::write(host.at(), "measures.sh", MEASURES);
        std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
        let done = launch(&host, "h200-x_fatal", &lm_eval(alone));
        let case = format!("alone {alone}, the eval ends with {eval}");
        assert_eq!(done.code, Some(code), "{case}: {}", done.stderr);
        // Its files are kept in any case: they say what went wrong.
        let meta = read_json(&host.file("meta_env.json"));
        assert_eq!(meta["job_id"], "0123456789ab", "{case}");
        let left = names(host.at())
            .into_iter()
            .filter(|name| name.starts_with("results") || name.starts_with("meta"));
        // The checkout is what the job mounts: its eval leaves each file twice, and each counts once.
        assert_eq!(left.collect::<Vec<_>>(), ["meta_env.json", "results_1.json"], "{case}");
        let throughput = names(host.at()).iter().any(|name| name.ends_with("_conc64.json"));
        assert_eq!(throughput, !alone, "{case}");
        // What the library is told, beyond what the job's own variables already say.
        let told = |name: &str| variable(&host, "eval.env", name);
        assert_eq!(told("EVAL_CONCURRENT_REQUESTS").as_deref(), Some("64"), "{case}");
        assert_eq!(told("MODEL_NAME").as_deref(), Some("Model"), "{case}");
        for side in ["PREFILL", "DECODE"] {
            let bridged = variable(&host, "append.env", &format!("{side}_DP_ATTENTION"));
            assert_eq!(bridged, told(&format!("{side}_DP_ATTN")), "{case}");
            assert_eq!(bridged.as_deref(), Some("false"), "{case}");
        }
    }
}
