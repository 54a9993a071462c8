//! `sweepctl upload`, `sweepctl clean`, and the moves beneath them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use sweepctl::step::stage;
use tempfile::TempDir;

use super::support::{envelope, multi_node, names, read_json, sweepctl, write_json};

/// A job with a workspace, the folders of Slurm jobs, and a folder that artifacts are laid in.
struct Job {
    folder: TempDir,
    envelope: PathBuf,
}

const ID: &str = "0123456789ab";

impl Job {
    fn new(envelope: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["work", "logs", "run_logs"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let envelope = write_json(folder.path(), "envelope.json", envelope);
        Self { folder, envelope }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.at(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        std::fs::write(file, text).expect("a file");
    }

    /// A `meta_env.json` of this job, with some keys replaced.
    fn write_meta(&self, folder: &str, replaced: Value) {
        let mut meta = json!({
            "is_multinode": false, "framework": "sglang", "precision": "fp8", "spec_decoding": "none", "tp": 8,
            "pp": 1, "dcp_size": 1, "pcp_size": 1, "conc": 4, "ep": 1, "dp_attention": false, "prefill_tp": 8,
            "prefill_pp": 1, "prefill_dcp_size": 1, "prefill_pcp_size": 1, "prefill_ep": 1,
            "prefill_dp_attention": false, "prefill_num_workers": 1, "decode_tp": 8, "decode_pp": 1,
            "decode_dcp_size": 1, "decode_pcp_size": 1, "decode_ep": 1, "decode_dp_attention": false,
            "decode_num_workers": 1, "model": "org/stub-7b", "infmax_model_prefix": "stub", "hw": "h200",
            "isl": "8192", "osl": "1024", "job_id": ID
        });
        for (name, value) in replaced.as_object().expect("an object") {
            meta[name] = value.clone();
        }
        self.write(&format!("{folder}/meta_env.json"), &meta.to_string());
    }

    fn command(&self, kind: &str) -> Command {
        let mut command = sweepctl();
        command
            .args(["upload", "--kind", kind, "--envelope"])
            .arg(&self.envelope);
        for (flag, name) in [
            ("--workspace", "work"),
            ("--logs", "logs"),
            ("--run-logs", "run_logs"),
            ("--to", "up"),
        ] {
            command.arg(flag).arg(self.at(name));
        }
        command
    }

    fn upload(&self, kind: &str) -> Output {
        self.command(kind).output().expect("the binary runs")
    }

    fn gathered(&self, name: &str) -> Vec<String> {
        names(&self.at("up").join(name))
    }
}

fn eval_job() -> Job {
    Job::new(&envelope(ID, json!({})))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_eval_is_gathered_under_the_artifacts_name() {
    let job = eval_job();
    job.write_meta("work", json!({}));
    job.write("work/results_1.json", "{}");
    job.write("work/samples_x_1.jsonl", "{}\n");
    job.write("work/README.md", "not a result");
    job.write("work/deeper/results_2.json", "{}");
    let outputs = job.at("outputs");
    let mut command = job.command("eval");
    command.env("GITHUB_OUTPUT", &outputs);
    let done = command.output().expect("the binary runs");
    assert!(done.status.success(), "{}", stderr(&done));
    let name = format!("eval_stub_8k1k_{ID}");
    let listed = ["meta_env.json", "results_1.json", "samples_x_1.jsonl"];
    assert_eq!(job.gathered(&name), listed);
    assert_eq!(names(&job.at("work")).len(), 5, "what was gathered stays for the gate");
    let text = std::fs::read_to_string(outputs).expect("outputs");
    for (key, value) in [
        ("name", name.clone()),
        ("path", job.at("up").join(&name).display().to_string()),
        ("if-no-files-found", "error".to_owned()),
    ] {
        assert!(
            text.contains(&format!("{key}<<")) && text.contains(&format!("\n{value}\n")),
            "{key}: {text}"
        );
    }
    // Artifacts are immutable.
    let again = job.upload("eval");
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("gathered before"), "{}", stderr(&again));
}

#[test]
fn links_and_special_files_are_refused_and_the_rest_is_kept() {
    let job = eval_job();
    job.write_meta("work", json!({}));
    job.write("work/results_1.json", "{}");
    symlink("/etc/passwd", job.at("work/samples_1.jsonl")).expect("a link");
    job.write("secret", "outside");
    std::fs::hard_link(job.at("secret"), job.at("work/predictions.jsonl")).expect("a link");
    let pipe = Command::new("mkfifo").arg(job.at("work/results_2.json")).status();
    assert!(pipe.expect("mkfifo runs").success());
    // No name makes a command of a message.
    symlink("/etc/passwd", job.at("work/results_\n::error::forged.json")).expect("a link");
    let done = job.upload("eval");
    assert_eq!(done.status.code(), Some(1));
    let said = stderr(&done);
    assert!(!said.contains("\n::error") && said.contains("forged"), "{said}");
    for part in [
        "samples_1.jsonl",
        "symbolic link",
        "predictions.jsonl",
        "hard link",
        "results_2.json",
        "special file",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(
        job.gathered(&format!("eval_stub_8k1k_{ID}")),
        ["meta_env.json", "results_1.json"]
    );
}

#[test]
fn results_of_another_job_are_refused_whole() {
    for (replaced, part) in [
        (json!({"job_id": "ffffffffffff"}), "`job_id` is \"ffffffffffff\""),
        (json!({"precision": "fp4"}), "`precision` is \"fp4\""),
        (json!({"conc": 5}), "`conc` is 5"),
        (json!({"run_id": "1", "run_attempt": "1"}), "`run_id` is \"1\""),
    ] {
        let job = eval_job();
        job.write_meta("work", replaced);
        job.write("work/results_1.json", "{}");
        let mut command = job.command("eval");
        let done = command
            .env("GITHUB_RUN_ID", "2")
            .env("GITHUB_RUN_ATTEMPT", "1")
            .output()
            .expect("a run");
        assert_eq!(done.status.code(), Some(1));
        assert!(stderr(&done).contains(part), "{part}: {}", stderr(&done));
        assert!(!job.at("up").exists(), "nothing is gathered");
    }
    // Where a run says nothing of itself, or a runner's own name stands for its label, nothing is contradicted.
    let job = eval_job();
    job.write_meta("work", json!({"run_id": "", "hw": "h200-dgx_03"}));
    job.write("work/results_1.json", "{}");
    let mut command = job.command("eval");
    assert!(
        command
            .env("GITHUB_RUN_ID", "2")
            .output()
            .expect("a run")
            .status
            .success()
    );
}

impl Job {
    /// The exit codes of the gate, the upload and the collection, and what they said.
    fn judged(&self) -> ([Option<i32>; 3], String) {
        let mut gate = sweepctl();
        gate.args(["eval", "validate", "--envelope"]).arg(&self.envelope);
        gate.arg("--thresholds").arg(self.at("thresholds.yaml"));
        let mut collect = sweepctl();
        collect
            .args(["collect", "evals", "--strict", "--out"])
            .arg(self.at("out"));
        collect.arg(self.at("up"));
        std::fs::create_dir_all(self.at("out")).expect("a folder");
        let (mut codes, mut said) = ([None; 3], String::new());
        let commands = [gate, self.command("eval"), collect];
        for (code, mut command) in codes.iter_mut().zip(commands) {
            let done = command.current_dir(self.at("work")).output().expect("a run");
            *code = done.status.code();
            said.push_str(&stderr(&done));
        }
        (codes, said)
    }

    /// A result of one task that is good enough.
    fn write_result(&self, name: &str) {
        self.write("thresholds.yaml", "default:\n  plain: 0.9\n");
        let mut result = crate::fixture::result("plain", 0.95);
        result["model_name"] = json!("org/stub-7b");
        self.write(name, &result.to_string());
    }
}

#[test]
fn a_description_is_read_alike_by_gate_upload_and_collection() {
    let same = |tp: Value| json!({"tp": tp, "prefill_tp": 1, "decode_tp": 1});
    for (row, replaced, wanted) in [
        (json!({"framework": "mock"}), json!({"framework": "MOCK"}), 0),
        (json!({"framework": "mock"}), json!({"framework": "unknown"}), 0),
        (
            json!({"framework": "mock"}),
            json!({"framework": "mock", "isl": 8192}),
            0,
        ),
        (json!({"framework": "sglang", "tp": 1}), same(json!("1")), 0),
        // What is another job's is neither judged nor uploaded.
        (json!({"framework": "mock"}), json!({"framework": "mocks"}), 1),
        (
            json!({"framework": "mock"}),
            json!({"framework": "mock", "isl": 8193}),
            1,
        ),
        (json!({"framework": "sglang", "tp": 1}), same(json!("2")), 1),
    ] {
        let job = Job::new(&envelope(ID, row));
        job.write_meta("work", replaced.clone());
        job.write_result("work/results_1.json");
        let (codes, said) = job.judged();
        assert_eq!(codes[..2], [Some(wanted); 2], "{replaced}: {said}");
        if wanted == 0 {
            assert_eq!(codes[2], Some(0), "{replaced}: {said}");
            let rows = read_json(&job.at("out/agg_eval_all.json"));
            assert_eq!(rows.as_array().map(Vec::len), Some(1), "{replaced}");
            assert_eq!((&rows[0]["score"], &rows[0]["isl"]), (&json!(0.95), &json!(8192)));
        }
    }
}

#[test]
fn a_set_in_the_folder_of_evals_is_uploaded_and_judged() {
    let job = eval_job();
    job.write_meta("work/eval_results", json!({}));
    job.write_result("work/eval_results/results_1.json");
    let (codes, said) = job.judged();
    assert_eq!(codes, [Some(0); 3], "{said}");
    assert_eq!(
        job.gathered(&format!("eval_stub_8k1k_{ID}")),
        ["meta_env.json", "results_1.json"]
    );
    assert!(
        job.at("work/eval_results/results_1.json").exists(),
        "what was gathered stays"
    );

    // A score that is too low there is found there.
    let job = eval_job();
    job.write_meta("work/eval_results", json!({}));
    job.write_result("work/eval_results/results_1.json");
    job.write("thresholds.yaml", "default:\n  plain: 0.99\n");
    let (codes, said) = job.judged();
    assert_eq!(codes, [Some(1), Some(0), Some(0)], "{said}");
}

#[test]
fn an_accuracy_benchmarks_log_and_scores_are_gathered_beside_its_metadata() {
    let mut planned = multi_node(ID, &[4]);
    planned["row"].as_object_mut().expect("a row").remove("eval-all-concs");
    for (name, value) in [
        ("eval-conc", json!(4)),
        ("eval-framework", json!("benchmark")),
        ("eval-suite", json!("mmlu")),
    ] {
        planned["row"][name] = value;
    }
    let job = Job::new(&planned);
    let folder = "run_logs/slurm_job-8/eval_results";
    job.write_meta(
        folder,
        json!({"eval_suite": "mmlu", "job_id": null, "framework": "dynamo-trt"}),
    );
    job.write(&format!("{folder}/benchmark.out"), "MMLU evaluation complete\n");
    job.write(&format!("{folder}/accuracy/mmlu_any.json"), "{}");
    let done = job.upload("eval");
    assert!(done.status.success(), "{}", stderr(&done));
    let name = format!("eval_stub_8k1k_{ID}");
    assert_eq!(job.gathered(&name), ["accuracy", "benchmark.out", "meta_env.json"]);
    assert_eq!(job.gathered(&format!("{name}/accuracy")), ["mmlu_any.json"]);
}

#[test]
fn a_folder_that_is_not_there_holds_nothing_and_what_cannot_be_looked_into_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let found = stage::find(&folder.path().join("none"), &["*"], true);
    assert!(found.files.is_empty() && found.refused.is_empty(), "{found:?}");
    let file = write(folder.path(), "file", "");
    let found = stage::find(&file, &["*"], true);
    assert!(found.refused[0].message.contains("cannot be looked into"), "{found:?}");
}

#[test]
fn the_slurm_job_of_this_job_is_told_from_earlier_ones() {
    let job = Job::new(&multi_node(ID, &[16, 32]));
    let side = json!({
        "is_multinode": true, "framework": "dynamo-trt", "tp": 4, "ep": 4, "dp_attention": true, "prefill_tp": 4,
        "prefill_ep": 4, "prefill_dp_attention": true, "prefill_num_workers": 2, "decode_tp": 4, "decode_ep": 4,
        "decode_dp_attention": true, "decode_num_workers": 3, "conc": 16, "eval_concs": [16, 32],
        "completed_eval_concs": [16], "failed_eval_concs": [32]
    });
    let mut old = side.clone();
    old["job_id"] = json!("eeeeeeeeeeee");
    job.write_meta("run_logs/slurm_job-7/eval_results", old);
    job.write("run_logs/slurm_job-7/eval_results/results_old.json", "{}");
    job.write_meta("run_logs/slurm_job-8/eval_results", side);
    job.write("run_logs/slurm_job-8/eval_results/results_new_conc16.json", "{}");
    let done = job.upload("eval");
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(!stderr(&done).contains("slurm_job-7"), "{}", stderr(&done));
    let listed = ["meta_env.json", "results_new_conc16.json"];
    assert_eq!(job.gathered(&format!("eval_stub_8k1k_{ID}")), listed);
}

#[test]
fn nothing_outside_the_workspace_is_gathered() {
    let job = eval_job();
    job.write("elsewhere/results_1.json", "{}");
    symlink(job.at("elsewhere"), job.at("work/inside")).expect("a link");
    for from in ["elsewhere", "work/../elsewhere", "work/inside"] {
        let done = job
            .command("eval")
            .arg("--from")
            .arg(job.at(from))
            .output()
            .expect("a run");
        assert_eq!(done.status.code(), Some(1));
        assert!(
            stderr(&done).contains("outside the workspace"),
            "{from}: {}",
            stderr(&done)
        );
    }
}

#[test]
fn throughput_results_are_those_of_their_own_name() {
    let row = json!({"run-eval": false, "eval-only": false, "exp-name": "stub [a]/8k1k"});
    let job = Job::new(&envelope(ID, row));
    for name in [
        "mine[1].json",
        "agg_mine[1].json",
        "mine[1]_conc4.json",
        "mine1.json",
        "other.json",
        "a:b.log",
    ] {
        job.write(&format!("work/{name}"), "{}");
    }
    let done = job
        .command("bmk")
        .env("RESULT_FILENAME", "mine[1]")
        .output()
        .expect("a run");
    assert!(done.status.success(), "{}", stderr(&done));
    let listed = ["agg_mine[1].json", "mine[1].json", "mine[1]_conc4.json"];
    assert_eq!(job.gathered(&format!("bmk_stub [a]-8k1k_{ID}")), listed);
    // A colon is legal for a file and not for an upload.
    assert!(job.upload("server_logs").status.success());
    assert_eq!(job.gathered(&format!("server_logs_stub [a]-8k1k_{ID}")), ["a-b.log"]);
    // Metrics may be missing; results may not, nor may a job have results of another kind.
    assert!(job.upload("gpu_metrics").status.success());
    let eval = job.upload("eval");
    assert!(stderr(&eval).contains("no results of kind `eval`"), "{}", stderr(&eval));
    let empty = Job::new(&envelope(ID, json!({"run-eval": false, "eval-only": false})));
    let done = empty.upload("bmk");
    assert_eq!(done.status.code(), Some(1));
    assert!(
        stderr(&done).contains("there is nothing to upload as `bmk_stub_8k1k_"),
        "{}",
        stderr(&done)
    );
}

#[test]
fn agentic_raw_results_keep_their_folders_and_leave_bulk_out() {
    let row = json!({
        "run-eval": null, "eval-only": null, "eval-framework": null, "eval-suite": null, "isl": null, "osl": null,
        "max-model-len": null, "disagg": null, "scenario-type": "agentic-coding", "kv-offloading": "none",
        "total-cpu-dram-gb": 0, "duration": 3600
    });
    let mut whole = envelope(ID, row);
    whole["row"]
        .as_object_mut()
        .expect("a row")
        .retain(|_, value| !value.is_null());
    let job = Job::new(&whole);
    for name in [
        "inputs.json",
        "a/profile_export_raw.jsonl",
        "a/profile_export.json",
        "a/b/trace:1.jsonl",
    ] {
        job.write(&format!("work/agentic_results/{name}"), "{}");
    }
    let done = job.upload("agentic");
    assert!(done.status.success(), "{}", stderr(&done));
    let up = job.at("up").join(format!("agentic_stub_8k1k_{ID}"));
    assert_eq!(names(&up), ["a"]);
    assert_eq!(names(&up.join("a")), ["b", "profile_export.json"]);
    assert_eq!(names(&up.join("a/b")), ["trace-1.jsonl"]);
}

#[test]
fn a_workspace_is_cleaned_of_results_and_of_nothing_else() {
    let job = eval_job();
    job.write("outside/results_0.json", "{}");
    let cleaned = [
        "agg_x.json",
        "gpu_metrics.csv",
        "meta_env.json",
        "results_1.json",
        "samples_1.jsonl",
        "server.log",
    ];
    for name in cleaned {
        job.write(&format!("work/{name}"), "{}");
    }
    job.write("work/agentic_results/a/raw.jsonl", "{}");
    job.write("work/stale/results_0.json", "{}");
    symlink(job.at("outside/results_0.json"), job.at("work/results_2.json")).expect("a link");
    let kept = ["Cargo.toml", "plan.json", "src"];
    job.write("work/Cargo.toml", "");
    job.write("work/plan.json", "{}");
    job.write("work/src/results.json", "{}");
    let done = sweepctl()
        .arg("clean")
        .arg("--workspace")
        .arg(job.at("work"))
        .output()
        .expect("a run");
    assert!(done.status.success(), "{}", stderr(&done));
    let removed: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!(removed["removed"].as_array().expect("a list").len(), cleaned.len() + 3);
    assert_eq!(names(&job.at("work")), kept);
    assert_eq!(names(&job.at("work/src")), ["results.json"]);
    assert_eq!(
        names(&job.at("outside")),
        ["results_0.json"],
        "the link went, its file did not"
    );
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    std::fs::create_dir_all(folder).expect("a folder");
    let file = folder.join(name);
    std::fs::write(&file, text).expect("a file");
    file
}

#[test]
fn moves_replace_nothing_and_keep_names_within_the_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    std::fs::create_dir(&to).expect("a folder");
    let staged = |text: &str, name: &str| {
        let file = write(&from, "results.json", text);
        let target = stage::move_into(&file, &to, &stage::suffixed(name, "_conc16")).expect("a move");
        assert!(!file.exists());
        target.file_name().expect("a name").to_string_lossy().into_owned()
    };
    assert_eq!(staged("1", "results_1.2.json"), "results_1.2_conc16.json");
    assert_eq!(staged("2", "results_1.2.json"), "results_1.2_conc16_2.json");
    assert_eq!(staged("3", "results_1.2.json"), "results_1.2_conc16_3.json");
    let texts: Vec<Value> = names(&to).iter().map(|name| read_json(&to.join(name))).collect();
    assert_eq!(texts, [json!(1), json!(2), json!(3)]);

    let long = format!("results_{}.json", "é".repeat(121));
    assert_eq!(long.len(), 255);
    let (first, second) = (staged("4", &long), staged("5", &long));
    assert!(first.len() <= 255 && first.ends_with("_conc16.json"), "{first}");
    assert!(
        second.len() <= 255 && second.ends_with("_2.json") && second != first,
        "{second}"
    );
    assert_eq!(
        stage::suffixed("x_artifacts.tar.gz", "_conc2"),
        "x_artifacts_conc2.tar.gz"
    );

    // Over the border of a file system, and for a link that took a file's place.
    let other = tempfile::tempdir_in("/dev/shm").expect("another file system");
    let target = stage::move_into(&write(&from, "a.json", "6"), other.path(), "a.json").expect("a move");
    assert_eq!(std::fs::read_to_string(target).expect("a file"), "6");
    symlink("/etc/passwd", from.join("b.json")).expect("a link");
    assert!(stage::move_into(&from.join("b.json"), other.path(), "b.json").is_err());
    assert!(stage::move_into(&from.join("b.json"), &to, "b.json").is_err());
    assert_eq!(names(other.path()), ["a.json"]);
    assert!(!to.join("b.json").exists());
}
