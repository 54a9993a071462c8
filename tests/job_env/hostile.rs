//! Values that would like to be more than values.

use std::path::Path;

use serde_json::{Value, json};
use sweepctl::step::environment::{self, Environment, MAX_VARIABLE, Place};

use super::{Variables, envelope, job_env, multi_fixed, output, single_fixed, variables};
use crate::support;

/// Reads a runner's file as the runner does: `NAME<<DELIMITER`, lines, `DELIMITER`.
fn parse(text: &str) -> Variables {
    let mut found = Variables::new();
    let mut lines = text.split('\n');
    while let Some(head) = lines.next().filter(|head| !head.is_empty()) {
        let (name, delimiter) = head.split_once("<<").expect("the heredoc form");
        let value: Vec<&str> = lines.by_ref().take_while(|line| *line != delimiter).collect();
        assert!(
            found.insert(name.to_owned(), value.join("\n")).is_none(),
            "{name} twice"
        );
    }
    found
}

/// What `--github-env` writes.
fn written(folder: &Path, envelope: &Value) -> String {
    let file = folder.join("github_env");
    let _ = std::fs::remove_file(&file);
    let mut command = job_env(folder, envelope, &["--github-env"]);
    let output = output(command.env("GITHUB_ENV", &file));
    assert!(output.status.success(), "{}", support::stderr(&output));
    assert_eq!(support::stdout(&output), "");
    std::fs::read_to_string(file).expect("a file")
}

#[test]
fn later_steps_get_everything_but_the_runners_own() {
    let folder = tempfile::tempdir().expect("a folder");
    for row in [single_fixed(), multi_fixed()] {
        let mut wanted = variables(&mut job_env(folder.path(), &envelope(row.clone()), &[]));
        assert!(wanted.remove("RUNNER_NAME").is_some() && wanted.remove("RUNNER_TYPE").is_some());
        assert_eq!(parse(&written(folder.path(), &envelope(row))), wanted);
    }
}

#[test]
fn no_value_forges_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = written(folder.path(), &envelope(single_fixed()));
    let delimiter = first
        .lines()
        .next()
        .and_then(|line| line.split_once("<<"))
        .expect("a heredoc")
        .1;
    let values = [
        "x\nPATH=/tmp/evil",
        "x\nEOF\nPATH<<EOF\n/tmp/evil\nEOF",
        "x\n\nPATH<<EOF\n/tmp/evil\nEOF\n",
        &format!("x\n{delimiter}\nPATH<<{delimiter}\n/tmp/evil\n{delimiter}"),
        "${{ secrets.GITHUB_TOKEN }}",
        "$(touch evil)`touch evil`; touch evil",
        "::set-output name=a::b\n::add-mask::c",
        "模型 🦀 é\u{202e}",
        "trailing \r",
        " \n",
    ];
    for value in values {
        let mut envelope = envelope(single_fixed());
        envelope["row"]["image"] = json!(value);
        let found = parse(&written(folder.path(), &envelope));
        assert_eq!(found["IMAGE"], value);
        assert!(!found.contains_key("PATH"), "{value:?}");
        let names: Vec<&String> = found.keys().collect();
        let plain = parse(&first);
        assert_eq!(names, plain.keys().collect::<Vec<_>>(), "{value:?}");
    }
    assert!(!folder.path().join("evil").exists());
}

#[test]
fn result_names_stay_names() {
    let folder = tempfile::tempdir().expect("a folder");
    for exp_name in ["x".repeat(5000), "模型".repeat(300), "../../etc/passwd\n".to_owned()] {
        let mut row = single_fixed();
        row["exp-name"] = json!(exp_name);
        let found = variables(&mut job_env(
            folder.path(),
            &envelope(row),
            &["--runner-name", "a/../b_0"],
        ));
        let name = &found["RESULT_FILENAME"];
        assert!(name.len() <= 200, "{name}");
        assert!(!name.contains(['/', '\n']), "{name}");
        assert_eq!(found["EXP_NAME"], exp_name);
    }
}

#[test]
fn every_bad_setting_is_refused_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let bad = [
        "PATH=/tmp/evil",
        "path=/tmp/evil",
        "LD_PRELOAD=/tmp/evil.so",
        "LD_LIBRARY_PATH=/tmp",
        "BASH_ENV=/tmp/evil",
        "ENV=/tmp/evil",
        "PYTHONPATH=/tmp",
        "NODE_OPTIONS=--require=/tmp/evil",
        "GITHUB_TOKEN=x",
        "GITHUB_ENV=/tmp/x",
        "RUNNER_NAME=x",
        "RUNNER_TEMP=/",
        "ACTIONS_RUNTIME_TOKEN=x",
        "BASH_FUNC_ls%%=() { evil; }",
        "TP=1",
        "DECODE_TP=2",
        "PREFILL_HARDWARE=x",
        "CONC_LIST=1",
        "RESULT_FILENAME=../x",
        "MODEL_PATH=/tmp",
        "PYTHONDONTWRITEBYTECODE=0",
        "no equals sign",
        "=value",
        "1A=x",
        "A B=x",
        "A\nPATH=x",
        "Ä=x",
    ];
    let mut row = multi_fixed();
    row["decode"]["additional-settings"] = json!(bad);
    let output = output(&mut job_env(folder.path(), &envelope(row), &[]));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(support::stdout(&output), "");
    let said = support::stderr(&output);
    for setting in bad {
        let shown: String = setting.chars().flat_map(char::escape_debug).collect();
        assert!(
            said.contains(&format!("`{shown}` of decode's")),
            "{setting:?} is not refused:\n{said}"
        );
    }
    assert!(said.contains(&format!("{} problems", bad.len())), "{said}");
    assert!(said.contains("  = help: "), "{said}");
}

#[test]
fn one_name_has_one_value() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut row = multi_fixed();
    row["decode"]["additional-settings"] = json!(["A=another"]);
    let output = output(&mut job_env(folder.path(), &envelope(row), &[]));
    assert_eq!(output.status.code(), Some(1));
    let said = support::stderr(&output);
    assert!(
        said.contains("`A=another` of decode's") && said.contains("another value"),
        "{said}"
    );
}

#[test]
fn a_value_that_no_process_can_be_given_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut row = single_fixed();
    row["image"] = json!("a\u{0}b");
    row["model-prefix"] = json!("x".repeat(MAX_VARIABLE));
    row["precision"] = json!("x".repeat(MAX_VARIABLE - "PRECISION=".len()));
    let output = output(&mut job_env(folder.path(), &envelope(row), &[]));
    assert_eq!(output.status.code(), Some(1));
    let said = support::stderr(&output);
    assert!(said.contains("the value of IMAGE holds a NUL character"), "{said}");
    assert!(said.contains("MODEL_PREFIX takes 131084 bytes"), "{said}");
    assert!(!said.contains("]: PRECISION"), "{said}");
}

#[test]
fn the_longest_value_reaches_a_process() {
    let value = "x".repeat(MAX_VARIABLE - "A=".len());
    let run = |value: &str| {
        std::process::Command::new("true")
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("A", value)
            .status()
    };
    assert!(run(&value).is_ok_and(|status| status.success()));
    assert!(run(&format!("{value}x")).is_err(), "the limit is lower than it need be");
}

/// Reads an env-file as docker does: a line a variable, its value as it stands.
fn docker_reads(text: &str) -> Variables {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn a_container_gets_every_variable_from_the_file_or_by_name() {
    let mut row = multi_fixed();
    row["image"] = json!("one\nPATH=/tmp/evil");
    row["model-prefix"] = json!(" spaced ");
    row["model"] = json!("x".repeat(60_000));
    row["precision"] = json!("\"quoted\"");
    row["framework"] = json!("carriage\r");
    let envelope = serde_json::from_value(envelope(row)).expect("an envelope");
    let environment = Environment::new(&envelope, &Place::default()).expect("an environment");
    let file = docker_reads(&environment::env_file(&environment));
    let by_name: Vec<&str> = environment::by_name(&environment).collect();
    for name in [
        "IMAGE",
        "MODEL_PREFIX",
        "MODEL",
        "MODEL_NAME",
        "PRECISION",
        "FRAMEWORK",
        "ROUTER_METADATA",
    ] {
        assert!(by_name.contains(&name), "{name} in {by_name:?}");
    }
    for name in environment.names() {
        assert!(
            file.contains_key(name) != by_name.contains(&name),
            "{name} is given once"
        );
    }
    for (name, value) in &file {
        assert_eq!(environment.get(name), Some(value.as_str()), "{name}");
    }
    assert_eq!(file["TP"], "", "an empty value is a value");
    assert_eq!(file["A"], "b c=d");
}

#[test]
fn an_envelope_comes_by_standard_input_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = support::sweepctl(folder.path());
    command.args(["job", "env", "--envelope", "-", "--runner-name", "x_0"]);
    let output = support::fed(&mut command, &envelope(single_fixed()).to_string());
    let found: Variables = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["RUNNER_NAME"], "x_0");
}

#[test]
fn what_is_no_envelope_is_named_with_its_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut unknown = envelope(single_fixed());
    unknown["row"]["surprise"] = json!(1);
    for (text, said) in [
        ("{\n  \"id\": ,", "envelope.json:2:9"),
        ("[]", "this is no envelope"),
        (&unknown.to_string(), "unknown field `surprise`"),
    ] {
        let file = support::write(folder.path(), "envelope.json", text);
        let output = support::run(
            folder.path(),
            ["job", "env", "--envelope", file.to_str().expect("a path")],
        );
        assert_eq!(output.status.code(), Some(1));
        assert!(support::stderr(&output).contains(said), "{}", support::stderr(&output));
    }
    let missing = support::run(folder.path(), ["job", "env", "--envelope", "none.json"]);
    assert!(support::stderr(&missing).contains("`none.json` does not exist"));
    let usage = support::run(folder.path(), ["job", "env"]);
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn github_env_needs_a_runner() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = output(&mut job_env(
        folder.path(),
        &envelope(single_fixed()),
        &["--github-env"],
    ));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        support::stderr(&output).contains("GITHUB_ENV is not set"),
        "{}",
        support::stderr(&output)
    );
}
