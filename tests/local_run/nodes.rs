//! Jobs on nodes of their own: containers and, through a real Slurm, see tests/slurm. One job at a time has the node.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::throughput;
use crate::eval::support::{names, read_json, root};
use crate::eval::tools;
use crate::launch::backends::DOCKER;
use crate::launch::engines::{short, with_engine};
use crate::launch::support::{Done, Host, NOBODY, RUNNER, run};
use crate::support::{commit, git};

/// The image of an engine whose server is the mock server, called as vLLM's is.
const VLLM: &str = r#"
[ "$1" = serve ] || exit 9
for argument; do
    case $argument in
    --port=*) port=${argument#*=} ;;
    --max-model-len=*) length=${argument#*=} ;;
    esac
done
# Words of a chat's template count as tokens.
exec BINARY mock-server --port "$port" --model "$2" --max-model-len "$((length + 1024))" --tokens-per-second 100000 \
    --answers ANSWERS
"#;

/// A box with Docker and a GPU that is idle.
struct Box {
    folder: tempfile::TempDir,
}

impl Box {
    fn new() -> Self {
        let new = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        std::fs::create_dir(new.at().join("bin")).expect("a folder");
        std::fs::create_dir(new.at().join("repository")).expect("a folder");
        let answers = root().join("configs/evals/data/gsm8k_smoke.jsonl");
        let vllm = VLLM.replace("BINARY", env!("CARGO_BIN_EXE_sweepctl"));
        new.tool("vllm", &vllm.replace("ANSWERS", &answers.display().to_string()));
        new.tool("docker", DOCKER);
        new.tool("nvidia-smi", "echo '0, 4'");
        new
    }

    fn at(&self) -> &Path {
        self.folder.path()
    }

    fn tool(&self, name: &str, text: &str) {
        let path = self.at().join("bin").join(name);
        std::fs::write(&path, format!("#!/usr/bin/env bash\n{text}")).expect("a file");
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("permissions");
    }

    fn sweepctl(&self, arguments: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(env!("CARGO_BIN_EXE_sweepctl"));
        command
            .args(arguments)
            .current_dir(self.at().join("repository"))
            .env_clear()
            .env("PATH", format!("{}:{path}", self.at().join("bin").display()))
            .env("HOME", self.at())
            .env("HOST", self.at())
            .env("SWEEPCTL_STATE", self.at().join("state"))
            .env("SWEEPCTL_TOOLS", tools::folder())
            .env("HF_ENDPOINT", NOBODY)
            .env("HF_HUB_OFFLINE", "0")
            .env("NO_COLOR", "1");
        command
    }
}

#[test]
fn one_box_with_docker_runs_its_first_sweep_without_an_edit() {
    tools::lm_eval();
    let host = Box::new();
    let repository = host.at().join("repository");
    git(&repository, &["init", "-q"]);
    commit(&repository, "Start");
    let init = ["init", "--hardware", "h100", "--runtime", "docker", "--engine", "vllm"];
    let done: Done = run(&mut host.sweepctl(&init));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    commit(&repository, "Adopt sweepctl");

    // Nobody answers for the hub here: the eval's questions are those that `init` wrote.
    let mut command = host.sweepctl(&["run", "--latest", "--out", "out"]);
    let done: Done = run(command.env("EVAL_TASKS", "gsm8k_smoke"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let said: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let verdicts: Vec<&Value> = said["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| &job["verdict"])
        .collect();
    assert_eq!(verdicts, ["done", "done", "done"], "{said}");
    let results = read_json(&repository.join("out/agg_bmk.json"));
    let points: Vec<_> = results
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (row["conc"].as_u64(), row["isl"].as_u64(), row["image"].as_str()))
        .collect();
    let image = Some("vllm/vllm-openai:v0.25.1");
    assert_eq!(points, [(Some(4), Some(8192), image), (Some(16), Some(8192), image)]);
    let evals = read_json(&repository.join("out/agg_eval_all.json"));
    assert_eq!(
        (&evals[0]["task"], &evals[0]["score"], &evals[0]["conc"]),
        (&json!("gsm8k_smoke"), &json!(1.0), &json!(16)),
        "{evals}"
    );

    let calls = std::fs::read_to_string(host.at().join("docker.calls")).expect("calls");
    let started: Vec<&str> = calls.lines().filter(|call| call.starts_with("run ")).collect();
    assert_eq!(started.len(), 3, "a container a job: {calls}");
    for call in started {
        for part in [
            " --gpus=all ",
            " --network=host ",
            " --volume=/var/cache/huggingface:/root/.cache/huggingface ",
            " --entrypoint=vllm vllm/vllm-openai:v0.25.1 serve Qwen/Qwen3-8B ",
            " --tensor-parallel-size=1 ",
        ] {
            assert!(call.contains(part), "{part}: {call}");
        }
    }
}

/// Says when it starts and ends, and leaves what a throughput job must.
const SCRIPT: &str = r#"
source benchmarks/lib.sh
echo start >> "$HOST/order"; sleep 0.3; echo end >> "$HOST/order"
leave "$RESULT_FILENAME.json"
"#;
const LIBRARY: &str = r#"
leave() {
    echo "{\"model_id\": \"$MODEL\", \"max_concurrency\": $CONC, \"num_prompts\": 20, \"completed\": 20,
        \"total_input_tokens\": $((20 * ISL)), \"total_output_tokens\": $((20 * OSL)), \"output_throughput\": 100.0,
        \"total_token_throughput\": 900.0, \"mean_ttft_ms\": 20.0, \"mean_tpot_ms\": 10.0}" > "$1"
}
"#;

#[test]
fn a_launch_script_of_the_repository_wins_and_has_the_node_to_itself() {
    let host = Host::new("{ backend: container, runtime: docker, network: host }");
    host.tool("docker", DOCKER);
    host.script(SCRIPT);
    std::fs::create_dir(host.file("benchmarks")).expect("a folder");
    std::fs::write(host.file("benchmarks/lib.sh"), LIBRARY).expect("a file");
    git(host.at(), &["init", "-q"]);
    git(host.at(), &["add", "runners", "benchmarks"]);
    let plan = [throughput("0000000000a1", 2), throughput("0000000000a2", 4)];
    let done = run(super::command(&host, &plan, &["--jobs", "2"]).env("HF_HUB_OFFLINE", "0"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(host.read("order"), "start\nend\nstart\nend\n");
    let calls = host.read("docker.calls");
    let workspace = "out/jobs/0000000000a1/workspace";
    let script = format!("{workspace}/runners/launch_h200-x.sh");
    assert!(calls.contains(&script), "{calls}");
    let results = read_json(&host.file("out/agg_bmk.json"));
    assert_eq!(results.as_array().map(Vec::len), Some(2), "{results}");
    // The node's state is its runner's: a launch of a workflow waits for this one.
    assert_eq!(names(&host.file("state")), [RUNNER]);
    assert!(!host.file("out/jobs/0000000000a1/state").exists());
}

#[test]
fn a_node_that_a_workflow_uses_is_left_alone() {
    let host = with_engine("{ backend: container, runtime: docker, network: host }");
    // The job of a workflow, which holds the node until it is told to end.
    let text = host
        .read("bin/python3")
        .replace("exec ", "until [ -e \"$HOST/go\" ]; do sleep 0.05; done; exec ");
    host.tool("python3", text.trim_start_matches("#!/usr/bin/env bash\n"));
    let mut job = crate::launch::support::Live::start(&mut host.launch(&short(), &[]));
    job.wait_for("starting the server");
    let done = run(&mut super::command(&host, &[throughput("0000000000b1", 2)], &[]));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("another launch of this runner still runs"),
        "{}",
        done.stderr
    );
    std::fs::write(host.file("go"), "").expect("a file");
    let done = job.finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
}
