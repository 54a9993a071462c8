//! The action that starts `sweepctl fetch` with the runner's access, run by node and by act.

use std::path::Path;
use std::process::{Command, Output};

use super::service::{Service, token};
use super::{arrived, small};
use crate::support::{commit, git, project, stderr, stdout, write};
use crate::workflows::tool;

/// A PATH that starts with the folder of the binary.
fn path() -> std::ffi::OsString {
    let binary = Path::new(env!("CARGO_BIN_EXE_sweepctl")).parent().expect("a folder");
    let rest = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([binary.to_owned()].into_iter().chain(std::env::split_paths(&rest))).expect("a PATH")
}

/// Runs the action as the runner does: its input is a variable.
fn action(service: &Service, folder: &Path, path: &std::ffi::OsStr, arguments: &str) -> Output {
    let node = Command::new("sh")
        .args(["-c", "command -v node"])
        .output()
        .expect("a shell");
    Command::new(stdout(&node).trim())
        .arg(project().join(".github/actions/fetch-artifacts/main.js"))
        .current_dir(folder)
        .env("PATH", path)
        .env("INPUT_ARGUMENTS", arguments)
        .env("ACTIONS_RESULTS_URL", service.url())
        .env("ACTIONS_RUNTIME_TOKEN", token())
        .env("GITHUB_ACTIONS", "true")
        .env_remove("GITHUB_STEP_SUMMARY")
        .output()
        .expect("node runs")
}

#[test]
fn its_lines_are_arguments_and_its_exit_code_is_that_of_fetch() {
    let service = Service::new(vec![small(1, "plan"), small(2, "a b; touch $(echo x)")]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let output = action(
        &service,
        at,
        &path(),
        "plan\n\n  a b; touch $(echo x)  \r\n--out\nthe folder\n",
    );
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    assert!(
        stdout(&output).starts_with("2 artifacts: 2 fetched"),
        "{}",
        stdout(&output)
    );
    let wanted = ["a b; touch $(echo x)/agg_r.json", "plan/agg_r.json"];
    assert_eq!(arrived(&at.join("the folder")), wanted);
    assert_eq!(std::fs::read_dir(at).expect("a folder").count(), 1, "no shell read it");
    assert_eq!(
        action(&service, at, &path(), "missing\n--out\no").status.code(),
        Some(1)
    );
    assert_eq!(action(&service, at, &path(), "--out\no").status.code(), Some(2));
    let empty = tempfile::tempdir().expect("a folder");
    let nothing = action(&service, at, empty.path().as_os_str(), "plan\n--out\no");
    assert_eq!(nothing.status.code(), Some(1));
    assert!(
        stderr(&nothing).contains("sweepctl cannot be started (ENOENT)"),
        "{}",
        stderr(&nothing)
    );
}

#[test]
fn act_runs_it_in_a_workflow() {
    let service = Service::new(vec![small(1, "plan")]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for name in ["action.yml", "main.js"] {
        let path = format!(".github/actions/fetch-artifacts/{name}");
        let text = std::fs::read(project().join(&path)).expect("it is rendered");
        write(at, &path, text);
    }
    let workflow = "\
on: push
jobs:
  fetch:
    runs-on: ubuntu-latest
    steps:
      - run: git clone --quiet \"file://$ORIGIN\" .
      - uses: ./.github/actions/fetch-artifacts
        with:
          arguments: |
            plan
            --optional
            not there
            --out
            fetched
      - run: cat fetched/plan/agg_r.json fetched/fetch.json > \"$SEEN\"
";
    write(at, ".github/workflows/w.yml", workflow);
    git(at, &["init", "-q"]);
    commit(at, "A workflow");
    let home = tempfile::tempdir().expect("a folder");
    let seen = home.path().join("seen");
    let output = Command::new(tool("act/bin/act"))
        .args([
            "push",
            "--platform",
            "ubuntu-latest=-self-hosted",
            "--pull=false",
            "--no-skip-checkout",
        ])
        .args(["--env", &format!("ACTIONS_RESULTS_URL={}", service.url())])
        .args(["--env", &format!("ACTIONS_RUNTIME_TOKEN={}", token())])
        .args(["--env", &format!("ORIGIN={}", at.display())])
        .args(["--env", &format!("SEEN={}", seen.display())])
        .current_dir(at)
        .env("PATH", path())
        .env("HOME", home.path())
        .output()
        .expect("act runs");
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let seen = std::fs::read_to_string(&seen).expect("the second step ran");
    assert!(seen.starts_with("{\"id\": 1}{"), "{seen}");
    assert!(
        seen.contains("\"fetched\": 1") && seen.contains("\"missing\": 1"),
        "{seen}"
    );
}
