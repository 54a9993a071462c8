//! SWE-bench Lite on one made-up instance: the real mini-swe-agent, offline, and a stand-in for the harness, which needs
//! a Docker daemon.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::support::{Desk, text};
use crate::eval::support::{names, read_json, root, sweepctl};
use crate::eval::tools;
use crate::mock_server::client::Server;

pub const SUITE: (&str, &str) = ("swebench", "swebench_lite");
const ISSUE: &str = "The function add of calc.py subtracts.";
/// What the packages are that run here; the others only score.
const RUN_HERE: [&str; 3] = ["mini-swe-agent", "litellm", "datasets"];

/// A desk with a repository, a data set of one instance about it, and the framework as it ships but for the data set and
/// the harness.
pub fn desk() -> Desk {
    let desk = Desk::with("");
    let shipped = std::fs::read_to_string(root().join("configs/evals/frameworks.yaml")).expect("the file");
    let start = shipped.find("  swebench:\n").expect("the framework");
    let data = desk.at("data");
    let library = root().join("tests/suites/swebench");
    let is_left_out =
        |line: &&str| line.contains("==") && !RUN_HERE.iter().any(|name| line.contains(&format!("- {name}==")));
    let lines: Vec<&str> = shipped[start..].lines().filter(|line| !is_left_out(line)).collect();
    let own = lines
        .join("\n")
        .replace("princeton-nlp/SWE-bench_Lite", &data.display().to_string())
        .replace(
            "environment: {",
            &format!("environment: {{ PYTHONPATH: \"{}\",", library.display()),
        );
    std::fs::write(
        desk.at("configs/evals/frameworks.yaml"),
        format!("frameworks:\n{own}\n"),
    )
    .expect("the file");
    std::fs::create_dir_all(&data).expect("a folder");
    repository(&desk.at("testbed"));
    let row = json!({"instance_id": "sums__calc-1", "repo": "sums/calc", "base_commit": "x", "problem_statement": ISSUE,
        "patch": "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"});
    std::fs::write(data.join("test.jsonl"), format!("{row}\n")).expect("written");
    desk
}

fn repository(folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    std::fs::write(folder.join("calc.py"), "def add(a, b):\n    return a - b\n").expect("written");
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    for args in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "Add"]] {
        let done = Command::new("git")
            .current_dir(folder)
            .args(identity)
            .args(args)
            .status();
        assert!(done.expect("git runs").success(), "{args:?}");
    }
}

/// The file of answers of a model that runs this command in answer to the issue.
pub fn answers(desk: &Desk, command: &str) -> PathBuf {
    let call = json!({"question": ISSUE, "tool_calls": [{"name": "bash", "arguments": {"command": command}}]});
    let file = desk.at("answers.jsonl");
    std::fs::write(&file, format!("{call}\n")).expect("written");
    file
}

/// A server whose model runs this command in answer to the issue.
pub fn server(desk: &Desk, command: &str, more: &[&str]) -> Server {
    let file = answers(desk, command);
    Server::start(&[&["--answers", file.to_str().expect("UTF-8")], more].concat())
}

/// A command that changes the source and submits.
pub fn fix(operator: &str) -> String {
    format!("sed -i 's/a - b/a {operator} b/' calc.py && echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff")
}

pub fn run(desk: &Desk, server: &Server, env: &[(&str, &str)]) -> Output {
    let (shared, testbed, cache) = (tools::folder(), desk.at("testbed"), desk.at("hub"));
    let shown = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let (shared, testbed, cache) = (shown(&shared), shown(&testbed), shown(&cache));
    let own = [
        ("SWEEPCTL_TOOLS", shared.as_str()),
        ("SWEBENCH_AGENT_ENVIRONMENT", "local"),
        ("SWEBENCH_AGENT_CWD", testbed.as_str()),
        ("MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT", "1"),
        ("HF_HOME", cache.as_str()),
    ];
    desk.eval(server, SUITE, &[&own[..], env].concat(), &["--limit", "1"])
}

/// A run that is no measurement: it fails, its evidence is there, and the gate says why.
fn fails(desk: &Desk, done: &Output, why: &str) {
    assert_eq!(done.status.code(), Some(1), "{}", text(done));
    assert!(text(done).contains(why), "{why}: {}", text(done));
    let error = desk.result()["integration_error"]["message"].to_string();
    assert!(error.contains(why), "{why}: {error}");
    let (passed, said) = desk.gate();
    assert!(!passed && said.contains(why), "{why}: {said}");
}

fn report(desk: &Desk) -> Value {
    read_json(&desk.staged().join("swebench_report.json"))
}

#[test]
fn a_right_patch_is_resolved() {
    let desk = desk();
    let done = run(&desk, &server(&desk, &fix("+"), &[]), &[]);
    assert!(done.status.success(), "{}", text(&done));
    let result = desk.result();
    assert_eq!(
        result["results"]["swebench_lite"]["exact_match,resolved"], 1.0,
        "{result}"
    );
    assert_eq!(
        result["n-samples"]["swebench_lite"],
        json!({"original": 300, "effective": 1})
    );
    assert_eq!(result["config"]["limit"], 1, "a slice is diagnostic");
    let staged = names(&desk.staged());
    for name in [
        "agent_preds.json",
        "predictions.jsonl",
        "sums__calc-1.traj.json",
        "swebench_report_sweepctl-",
    ] {
        assert!(
            staged.iter().any(|staged| staged.starts_with(name)),
            "{name}: {staged:?}"
        );
    }
    let log = desk.artifact("swebench", "client.log");
    assert!(
        log.contains("\"namespace\": \"swebench\", \"modal\": \"false\""),
        "{log}"
    );
    let (passed, said) = desk.gate();
    assert!(passed && said.contains("swebench_lite"), "{said}");
}

#[test]
fn a_wrong_patch_is_under_the_floor() {
    let desk = desk();
    let knobs = [
        ("SWEBENCH_NAMESPACE", ""),
        ("SWEBENCH_EVAL_TIMEOUT", "77"),
        ("SWEBENCH_MAX_WORKERS", "3"),
    ];
    let done = run(&desk, &server(&desk, &fix("*"), &[]), &knobs);
    assert!(done.status.success(), "{}", text(&done));
    let log = desk.artifact("swebench", "client.log");
    for said in ["\"namespace\": \"none\"", "\"timeout\": 77", "\"max_workers\": 3"] {
        assert!(log.contains(said), "{said}: {log}");
    }
    let (passed, said) = desk.gate();
    assert!(!passed && said.contains("is 0.0000, under 0.5"), "{said}");
}

#[test]
fn what_was_changed_when_the_steps_ran_out_is_handed_in() {
    let desk = desk();
    let never = server(&desk, "sed -i 's/a - b/a + b/' calc.py", &[]);
    let done = run(&desk, &never, &[("SWEBENCH_AGENT_STEP_LIMIT", "2")]);
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(report(&desk)["exit_statuses"]["sums__calc-1"], "LimitsExceeded");
    assert_eq!(desk.result()["results"]["swebench_lite"]["exact_match,resolved"], 1.0);
}

#[test]
fn instances_that_were_not_served_are_no_scores() {
    let desk = desk();
    // The first request is that of the wait.
    let done = run(&desk, &server(&desk, &fix("+"), &["--fail-from", "2"]), &[]);
    fails(&desk, &done, "1 of 1 requests were not served");
    assert_eq!(report(&desk)["errors"]["sums__calc-1"], "InternalServerError");
}

#[test]
fn one_request_an_instance_is_scored_too_and_may_stay_unscored() {
    let desk = desk();
    let diff = "```diff\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n```";
    let file = desk.at("answers.jsonl");
    std::fs::write(&file, json!({"question": ISSUE, "text": diff}).to_string()).expect("written");
    let at_once = ("SWEBENCH_GEN_MODE", "single-shot");
    let server = Server::start(&["--answers", file.to_str().expect("UTF-8")]);
    let done = run(&desk, &server, &[at_once, ("SWEBENCH_SKIP_SCORE", "true")]);
    assert!(done.status.success(), "{}", text(&done));
    let scores = &desk.result()["results"]["swebench_lite"];
    assert!(scores.get("exact_match,resolved").is_none(), "{scores}");
    let predictions = std::fs::read_to_string(desk.staged().join("predictions.jsonl")).expect("text");
    assert!(predictions.contains("+    return a + b"), "{predictions}");
    assert!(!desk.gate().0, "nothing was scored");
    assert!(!desk.staged().join("agent_preds.json").exists());
}

#[test]
fn what_goes_wrong_is_told_with_its_evidence() {
    let hang = [("STAND_IN", "hang"), ("SWEBENCH_SCORE_TIMEOUT", "2")];
    // Variables, what the eval says, and what stands in the client's log.
    type Case<'c> = (&'c [(&'c str, &'c str)], &'c str, &'c str);
    let cases: [Case<'_>; 7] = [
        (
            &[("STAND_IN", "crash")],
            "exited with code 1",
            "the harness exited with code 1",
        ),
        (&[("STAND_IN", "malformed")], "exited with code 1", "JSONDecodeError"),
        (
            &[("STAND_IN", "missing")],
            "exited with code 1",
            "is of other instances",
        ),
        (&[("STAND_IN", "unscored")], "1 of 1 requests were not served", ""),
        (&hang, "exited with code 1", "scoring was ended after 2 seconds"),
        (
            &[("SWEBENCH_DATASET", "princeton-nlp/SWE-bench_Verified")],
            "exited with code 1",
            "patches and scores must be of the same one",
        ),
        (
            &[("SWEBENCH_USE_MODAL", "true"), ("HOME", "/nonexistent")],
            "exited with code 1",
            "Modal is not set up",
        ),
    ];
    for (env, why, log) in cases {
        let desk = desk();
        // One request: the agent itself is tested above.
        let env = [env, &[("SWEBENCH_GEN_MODE", "single-shot")]].concat();
        let done = run(&desk, &patch_server(&desk), &env);
        fails(&desk, &done, why);
        let said = desk.artifact("swebench", "client.log");
        assert!(said.contains(log), "{log}: {said}");
    }
}

fn patch_server(desk: &Desk) -> Server {
    let answer = json!({"question": ISSUE, "text": "diff --git a/calc.py b/calc.py\n-a\n+b"});
    let file = desk.at("answers.jsonl");
    std::fs::write(&file, answer.to_string()).expect("written");
    Server::start(&["--answers", file.to_str().expect("UTF-8")])
}

#[test]
fn a_report_of_the_harness_is_read_offline() {
    let desk = desk();
    let counts = |submitted: u64, resolved: u64| {
        json!({"total_instances": 300, "submitted_instances": submitted, "resolved_instances": resolved}).to_string()
    };
    for (text_of_it, why, score) in [
        (counts(300, 162), "", Some(0.54)),
        (counts(299, 162), "checks are missing: 299 of 300", Some(162.0 / 299.0)),
        ("{\"submitted".to_owned(), "is cut off", None),
    ] {
        std::fs::write(desk.at("harness.json"), text_of_it).expect("written");
        let mut command = sweepctl();
        command
            .current_dir(desk.at(""))
            .args(["eval", "run", "--framework", "swebench", "--report", "harness.json"]);
        let done = command
            .args(["--concurrency", "1", "--stage-to", "staged"])
            .output()
            .expect("the binary runs");
        assert_eq!(done.status.success(), why.is_empty(), "{}", text(&done));
        assert!(text(&done).contains(why), "{}", text(&done));
        let found = &desk.result()["results"]["swebench_lite"]["exact_match,resolved"];
        assert_eq!(found.as_f64(), score);
        assert_eq!(desk.gate().0, why.is_empty(), "{}", desk.gate().1);
        assert_eq!(
            read_json(&desk.staged().join("meta_env.json"))["eval_suite"],
            "swebench_lite"
        );
    }
}

/// The repair of the scorer on Modal, on a source with the lines of 4.1.0 that it looks for.
#[test]
fn the_scorer_is_repaired_once_or_refused() {
    let script = r#"
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import swebench_client as client
source = """
import asyncio

def run_instance_modal(cpu):
    try:
        create(
            cpu=4,
        )
    except Exception as e:
        return TestOutput(
            errored=True,
        )


def run_instances_modal(
    x):
    pass
"""
once = client.repaired(source, client.repairs(2.0))
compile(once, "once", "exec")
assert "cpu=2.0" in once and "runner.sandbox.terminate()" in once and "import contextlib" in once
assert client.repaired(once, client.repairs(2.0)) == once
try:
    client.repaired(source.replace("cpu=4", "cpu=8"), client.repairs(2.0))
except SystemExit as error:
    print(error)
"#;
    let done = Command::new("python3")
        .args(["-c", script])
        .arg(root().join("configs/evals"))
        .output();
    let said = text(&done.expect("python3 runs"));
    assert!(
        said.contains("holds 0 of") && said.contains("cannot be repaired") && !said.contains("Traceback"),
        "{said}"
    );
}

/// Modal's tokens reach a file of mode 600, without stray quotes, and nothing that is started.
#[test]
fn modals_tokens_are_kept() {
    let script = r#"
import os, stat, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import swebench_client as client
with client.modal_credentials(True):
    path = os.environ["MODAL_CONFIG_PATH"]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    text = open(path).read()
    assert 'token_id = "ak-1"' in text and 'token_secret = "as-2"' in text, text
    assert not [name for name in os.environ if name.startswith("MODAL_TOKEN")]
assert not os.path.exists(path)
try:
    with client.modal_credentials(True):
        pass
except SystemExit as error:
    print(error)
"#;
    let mut command = Command::new("python3");
    command
        .args(["-c", script])
        .arg(root().join("configs/evals"))
        .env("HOME", "/nonexistent");
    command
        .env("MODAL_TOKEN_ID", " \"ak-1\"\n")
        .env("MODAL_TOKEN_SECRET", "'as-2'")
        .env_remove("MODAL_CONFIG_PATH");
    let said = text(&command.output().expect("python3 runs"));
    assert!(
        said.starts_with("Modal is not set up") && !said.contains("as-2"),
        "{said}"
    );
}
