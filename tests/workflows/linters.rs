//! What others say of the rendered files: GitHub's own parser, actionlint with shellcheck, and zizmor.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use super::{edit, path_with, project_files, rendered_with, tool};
use crate::support::{project, stderr, stdout, write};

/// Runs GitHub's parser: each file with its jobs and errors.
fn parsed(files: &[PathBuf]) -> Vec<(u64, Vec<String>)> {
    let output = Command::new("node")
        .arg(tool("workflows-node/parse.cjs"))
        .args(files)
        .output()
        .expect("node runs: run `tests/tools`");
    assert!(output.status.success(), "{}", stderr(&output));
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let strings = |value: &Value| {
        value
            .as_array()
            .expect("a list")
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    all.iter()
        .map(|file| (file["jobs"].as_u64().expect("a count"), strings(&file["errors"])))
        .collect()
}

#[test]
fn github_parses_every_file() {
    let files = project_files();
    for (file, (jobs, errors)) in files.iter().zip(parsed(&files)) {
        assert_eq!(errors, Vec::<String>::new(), "{}", file.display());
        assert!(jobs > 0, "{} has no job", file.display());
    }
}

#[test]
fn github_parses_every_variant() {
    let folder = tempfile::tempdir().expect("a folder");
    let hostile = rendered_with(
        |s| {
            edit(
                s,
                "launch-secrets: [HF_TOKEN]",
                "launch-secrets: []\ningest: { repository: a/b, event-type: done, secret: TOKEN }",
            )
        },
        |s| edit(s, "  sweep-enabled:", "  \"it's: #1 }} \\\\ \\\"x\\\"\":"),
    )
    .expect("it renders");
    let files: Vec<PathBuf> = hostile
        .iter()
        .filter(|file| file.path.contains("/workflows/"))
        .map(|file| write(folder.path(), &file.path, &file.text))
        .collect();
    for (file, (jobs, errors)) in files.iter().zip(parsed(&files)) {
        assert_eq!(errors, Vec::<String>::new(), "{}", file.display());
        assert!(jobs > 0, "{} has no job", file.display());
    }
}

#[test]
fn github_refuses_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string(project().join(".github/workflows/run-sweep.yml")).expect("the file");
    let wrong = [
        edit(&text, "needs.decide.outputs.sweep", "decide.outputs.sweep"),
        edit(&text, "    needs: [decide, canary]", "    needs: [decide, canari]"),
        edit(&text, "    timeout-minutes:", "    timeout-minuets:"),
    ];
    let write_one = |(n, text): (usize, &String)| write(folder.path(), &format!("{n}.yml"), text);
    let files: Vec<PathBuf> = wrong.iter().enumerate().map(write_one).collect();
    for (n, (_, errors)) in parsed(&files).iter().enumerate() {
        assert!(!errors.is_empty(), "variant {n} was accepted");
    }
}

fn actionlint(files: &[PathBuf]) -> Output {
    let program = tool("workflows-python/bin/actionlint");
    let folder = program.parent().expect("a folder");
    assert!(
        folder.join("shellcheck").exists(),
        "shellcheck is not there: run `tests/tools`"
    );
    Command::new(&program)
        .current_dir(project())
        .env("PATH", path_with(folder))
        .args(["-no-color", "-shellcheck", "shellcheck"])
        .args(files)
        .output()
        .expect("actionlint runs")
}

#[test]
fn actionlint_is_silent() {
    let output = actionlint(&project_files());
    assert!(
        output.status.success() && stdout(&output).is_empty(),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
}

#[test]
fn actionlint_sees_scripts() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string(project().join(".github/workflows/ci.yml")).expect("the file");
    let file = write(
        folder.path(),
        "ci.yml",
        edit(&text, "run: exec .ci/run", "run: rm -r $HOME/$1"),
    );
    let output = actionlint(&[file]);
    assert!(stdout(&output).contains("SC2086"), "{}", stdout(&output));
}

fn zizmor(target: &std::path::Path) -> Output {
    Command::new(tool("workflows-python/bin/zizmor"))
        .args([
            "--offline",
            "--persona",
            "auditor",
            "--min-severity",
            "medium",
            "--color",
            "never",
            "--quiet",
        ])
        .arg(target)
        .output()
        .expect("zizmor runs")
}

#[test]
fn zizmor_finds_nothing_of_medium_or_above() {
    let output = zizmor(&project().join(".github"));
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn zizmor_reads_what_it_is_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string(project().join(".github/workflows/ci.yml")).expect("the file");
    let text = edit(&text, "run: exec .ci/run", "run: echo ${{ github.head_ref }}");
    let output = zizmor(&write(folder.path(), ".github/workflows/ci.yml", text));
    assert!(
        stdout(&output).contains("template-injection"),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
}

#[test]
fn every_excuse_has_its_reason() {
    let action = project().join(".github/actions/setup-sweepctl/action.yml");
    let mut excuses = 0;
    for file in project_files().into_iter().chain([action]) {
        let text = std::fs::read_to_string(&file).expect("the file");
        assert!(
            !text.contains("actionlint ignore") && !text.contains("shellcheck disable"),
            "{}",
            file.display()
        );
        for line in text.lines().filter(|line| line.contains("zizmor: ignore")) {
            excuses += 1;
            let reason = line.split_once("ignore[").and_then(|(_, rest)| rest.split_once(']'));
            let reason = reason.map_or("", |(_, reason)| reason.trim());
            assert!(reason.split_whitespace().count() >= 5, "{}: {line}", file.display());
        }
    }
    assert_eq!(excuses, 1, "an excuse came or went: look at it");
}
