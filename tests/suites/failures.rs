//! What goes wrong with a suite, for each framework: it fails, says why, and hands on what is there.

use std::process::Output;

use serde_json::json;

use super::support::{Desk, text};
use super::swebench;
use crate::eval::support::{names, read_json};
use crate::mock_server::client::Server;

/// A client in place of ours: it writes the text of REPORT where the arguments want it.
const CLIENT: &str = r#"
import os, sys, time
args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
path = args.get("--report") or args["--out"] + "/swebench_report.json"
print("the client ran", flush=True)
if os.environ["REPORT"] == "hang":
    time.sleep(60)
if os.environ["REPORT"]:
    open(path, "w").write(os.environ["REPORT"])
"#;

/// Every framework with a suite of it.
const SUITES: [(&str, &str); 4] = [
    ("kimi-vendor", "kimi_tool_call_schema"),
    ("minimax-vendor", "minimax_m3_smoke"),
    ("bfcl", "bfcl_smoke"),
    ("swebench", "swebench_lite"),
];

/// The frameworks as they ship, with stand-ins for sources, and other packages.
fn desk(packages: &str) -> Desk {
    let desk = Desk::new();
    let file = desk.at("configs/evals/frameworks.yaml");
    let shipped = std::fs::read_to_string(&file).expect("the file");
    let is_of_packages = |line: &&str| {
        line.trim_start().starts_with("packages") || (line.starts_with("      - ") && line.contains("=="))
    };
    let lines: Vec<&str> = shipped.lines().filter(|line| !is_of_packages(line)).collect();
    let own = lines
        .join("\n")
        .replace("    environment:", &format!("{packages}    environment:"));
    std::fs::write(file, own + "\n").expect("the file");
    for client in ["bfcl_client.py", "swebench_client.py"] {
        std::fs::write(desk.at("configs/evals").join(client), CLIENT).expect("a client");
    }
    desk
}

/// A run that is no measurement: the eval says why, so does the gate, and both of what was run.
fn fails(desk: &Desk, (framework, suite): (&str, &str), done: &Output, why: &str) {
    let said = text(done);
    assert_eq!(done.status.code(), Some(1), "{suite}: {said}");
    assert!(said.contains(why), "{suite}, {why}: {said}");
    let result = desk.result();
    let error = &result["integration_error"];
    assert_eq!(error["type"], framework, "{result}");
    assert!(
        error["message"].as_str().is_some_and(|message| message.contains(why)),
        "{suite}: {error}"
    );
    let meta = read_json(&desk.staged().join("meta_env.json"));
    assert_eq!(
        (&meta["eval_framework"], &meta["eval_suite"]),
        (&json!(framework), &json!(suite))
    );
    let (passed, judged) = desk.gate();
    assert!(!passed && judged.contains(why), "{suite}, {why}: {judged}");
}

#[test]
fn a_package_that_cannot_be_installed_is_a_setup_failure() {
    let server = Server::start(&[]);
    let offline = [("PIP_NO_INDEX", "1"), ("UV_OFFLINE", "1")];
    std::thread::scope(|scope| {
        for suite in SUITES {
            let (server, offline) = (&server, &offline);
            scope.spawn(move || {
                let desk = desk("    packages: [sweepctl-no-such-package==0.0.1]\n");
                let done = desk.eval(server, suite, offline, &[]);
                fails(&desk, suite, &done, "an installation exited with code");
                assert!(text(&done).contains("check that the package index can be reached from here"));
                // What the installer said is handed on.
                let log = desk.artifact(suite.0, "setup.log");
                assert!(log.contains("sweepctl-no-such-package"), "{log}");
            });
        }
    });
    assert_eq!(server.metric("requests_total"), 0, "nothing of them ran");
}

#[test]
fn a_report_that_is_none_is_told_with_its_evidence() {
    let desk = desk("");
    let server = Server::start(&[]);
    let bfcl = |total: u64| json!({"total": total, "correct": 3}).to_string();
    let swebench = |total: u64| json!({"submitted_instances": total, "resolved_instances": 3}).to_string();
    let bfcl_cases = [
        (bfcl(3), "checks are missing: 3 of 4"),
        (bfcl(5), "checks are unexpected: 5 of 4"),
        (
            json!({"total": 4, "correct": 3, "inference_errors": 1}).to_string(),
            "1 of 4 requests were not served",
        ),
        (json!({"total": "4"}).to_string(), "`/total` is \"4\", no count"),
    ];
    let swebench_cases = [
        (swebench(299), "checks are missing: 299 of 300"),
        (swebench(301), "checks are unexpected: 301 of 300"),
        (
            json!({"submitted_instances": 300, "resolved_instances": 3, "unscored_instances": 2}).to_string(),
            "2 of 300 requests were not served",
        ),
        (
            json!({"submitted_instances": 300, "resolved_instances": 301}).to_string(),
            "which cannot be",
        ),
    ];
    let any = [
        (r#"{"total": 4, "sub"#.to_owned(), "is cut off in line 1"),
        ("[]".to_owned(), "is no JSON object"),
        (String::new(), "was not written"),
        ("hang".to_owned(), "was ended at its deadline"),
    ];
    for (suite, cases) in [(SUITES[2], bfcl_cases), (SUITES[3], swebench_cases)] {
        for (report, why) in cases.iter().chain(&any) {
            let _ = std::fs::remove_dir_all(desk.staged());
            let more: &[&str] = if report == "hang" {
                &["--timeout-seconds", "1"]
            } else {
                &[]
            };
            let done = desk.eval(&server, suite, &[("REPORT", report)], more);
            fails(&desk, suite, &done, why);
            assert_eq!(desk.artifact(suite.0, "client.log"), "the client ran\n", "{why}");
            let staged = names(&desk.staged());
            let has_report = staged.contains(&format!("{}_report.json", suite.0));
            assert_eq!(has_report, report.starts_with(['{', '[']), "{why}: {staged:?}");
        }
    }
}

#[test]
fn a_low_score_of_a_whole_run_is_under_the_floor() {
    let desk = desk("");
    let server = Server::start(&[]);
    for (suite, report, why) in [
        (SUITES[2], json!({"total": 4, "correct": 1}), "is 0.2500, under 0.5"),
        (
            SUITES[3],
            json!({"submitted_instances": 300, "resolved_instances": 149}),
            "under 0.5",
        ),
    ] {
        let _ = std::fs::remove_dir_all(desk.staged());
        let done = desk.eval(&server, suite, &[("REPORT", &report.to_string())], &[]);
        assert!(done.status.success(), "{}", text(&done));
        let (passed, said) = desk.gate();
        assert!(!passed && said.contains(why), "{said}");
        desk.artifact(suite.0, "client.log");
    }
}

/// The real loader of data sets, and no data set.
#[test]
fn an_absent_data_set_is_said_in_a_line() {
    for mode in ["single-shot", "agentic"] {
        let desk = swebench::desk();
        std::fs::remove_dir_all(desk.at("data")).expect("a folder");
        let server = Server::start(&[]);
        let done = swebench::run(&desk, &server, &[("SWEBENCH_GEN_MODE", mode)]);
        fails(&desk, swebench::SUITE, &done, "exited with code 1");
        let log = desk.artifact("swebench", "client.log");
        let why = format!(
            "the data set `{}` has no split `test` here: ",
            desk.at("data").display()
        );
        assert!(log.contains(&why) && log.contains("name that in HF_HOME"), "{log}");
        assert!(!log.contains("Traceback"), "{log}");
    }
}

/// Repairs are of one version: another is refused before anything of it runs.
#[test]
fn another_version_of_a_repaired_package_is_refused() {
    let script = "import sys; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1])
import swebench_client; swebench_client.pinned(('pip', '0.0.1'))";
    let folder = crate::eval::support::root().join("configs/evals");
    let done = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(folder)
        .output();
    let done = done.expect("python3 runs");
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    assert!(
        text(&done).contains("what is repaired of it here was read in 0.0.1"),
        "{}",
        text(&done)
    );
}
