//! What lm-eval is started with, by a Python that stands in for it: nothing answers for the hub here.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::server::{Mode, Server};
use super::support::sweepctl;

/// Says that lm-eval is there, and shows how it is started.
const PYTHON: &str = r#"#!/bin/bash
[ "$1" != -c ] || { echo 0.4.13; exit; }
printf '%s\n' "$@" > "$SEEN/arguments"
env > "$SEEN/environment"
exit 3
"#;

/// The arguments and the variables that lm-eval gets, and what the eval said.
fn started(folder: &Path, task: &str, variables: &[(&str, &str)]) -> (Vec<String>, HashSet<String>, String) {
    let server = Server::start(Mode::Right, &["m"]);
    std::fs::create_dir_all(folder.join("bin")).expect("a folder");
    let python = folder.join("bin/python3");
    std::fs::write(&python, PYTHON).expect("a file");
    std::fs::set_permissions(python, PermissionsExt::from_mode(0o755)).expect("permissions");
    let staged = tempfile::tempdir().expect("a folder");
    let path = format!(
        "{}:{}",
        folder.join("bin").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let output = sweepctl()
        .args([
            "eval",
            "run",
            "--system-python",
            "--endpoint",
            &server.url(),
            "--task",
            task,
            "--stage-to",
        ])
        .arg(staged.path())
        .current_dir(folder)
        .env("PATH", path)
        .env("SEEN", folder)
        .env("HF_HOME", folder.join("home"))
        .envs(variables.iter().copied())
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = |name: &str| -> Vec<String> {
        let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    (lines("arguments"), lines("environment").into_iter().collect(), said)
}

#[test]
fn the_hub_is_asked_where_the_data_set_is_not_cached() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::write(at.join("task.yaml"), "task: t\ndataset_path: org/TheSet\n").expect("a file");
    std::fs::write(at.join("local.yaml"), "task: l\ndataset_path: json\n").expect("a file");
    let offline = [("HF_HUB_OFFLINE", "1")];
    let is_offline = |task: &str| started(at, task, &offline).1.contains("HF_HUB_OFFLINE=1");
    let (_, variables, said) = started(at, "task.yaml", &offline);
    assert!(
        !variables.is_empty() && !variables.iter().any(|line| line.starts_with("HF_HUB_OFFLINE")),
        "{said}"
    );
    assert!(
        said.contains("the data set `org/TheSet` is not cached here: HF_HUB_OFFLINE is lifted"),
        "{said}"
    );
    assert!(is_offline("local.yaml"), "its questions stand beside it");
    std::fs::create_dir_all(at.join("home/datasets/org___the_set/default/0.0.0/abc")).expect("folders");
    assert!(is_offline("task.yaml"), "it is cached");
}

#[test]
fn more_tasks_are_included_from_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::create_dir(at.join("more")).expect("a folder");
    std::fs::write(at.join("task.yaml"), "group: g\ntask: [t]\n").expect("a file");
    let (arguments, _, said) = started(at, "task.yaml", &[("EVAL_INCLUDE_PATH", "more")]);
    let more = at.canonicalize().expect("a folder").join("more").display().to_string();
    assert!(
        arguments.windows(2).any(|pair| pair == ["--include_path", &more]),
        "{arguments:?}: {said}"
    );
    assert!(!started(at, "task.yaml", &[]).0.contains(&"--include_path".to_owned()));
    let (_, _, said) = started(at, "task.yaml", &[("EVAL_INCLUDE_PATH", "task.yaml")]);
    assert!(
        said.contains("EVAL_INCLUDE_PATH is `task.yaml`, which is no folder"),
        "{said}"
    );
}
