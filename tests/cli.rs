//! The command line itself: help, versions, exit codes, what is printed where.

use crate::support::{project, run, stderr, stdout, sweepctl, write};

#[test]
fn version_names_the_revision() {
    let output = run(project(), ["--version"]);
    let text = stdout(&output);
    assert!(
        text.starts_with(concat!("sweepctl ", env!("CARGO_PKG_VERSION"))),
        "{text}"
    );
    assert!(
        text.trim().ends_with(')'),
        "a build of a checkout names its revision: {text}"
    );
}

#[test]
fn exit_codes_are_0_1_and_2() {
    assert_eq!(run(project(), ["--help"]).status.code(), Some(0));
    assert_eq!(
        run(project(), ["plan", "--base-ref", "no-such-ref", "--head-ref", "HEAD"])
            .status
            .code(),
        Some(1)
    );
    for usage in [
        &["no-such-command"][..],
        &["plan"],
        &["plan", "--latest", "--base-ref", "main", "--head-ref", "HEAD"],
        &["generate", "full-sweep", "--step-size", "1"],
        &["generate", "full-sweep", "--min-conc", "8", "--max-conc", "4"],
        &["generate", "test-config"],
        &["shard", "--bucket", "none", "--index", "0"],
    ] {
        let output = run(project(), usage);
        assert_eq!(output.status.code(), Some(2), "{usage:?}");
        assert_eq!(stdout(&output), "", "{usage:?}");
        assert!(stderr(&output).starts_with("error: "), "{usage:?}: {}", stderr(&output));
    }
}

#[test]
fn a_quoted_argument_is_no_command_and_no_escape_sequence() {
    let hostile = "test-config --conc \"1\n::warning::pwn\u{1b}[31m\"";
    for args in [
        &["dispatch-plan", &format!("--generate={hostile}")][..],
        &["\n::add-mask::x"],
        &["stats", "--repo", "a\n::error::x\u{1b}]0;own\u{7}"],
    ] {
        let output = run(project(), args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(!said.lines().any(|line| line.trim_start().starts_with("::")), "{said}");
        assert!(!said.contains('\u{1b}'), "{said}");
    }
}

#[test]
fn usage_is_that_of_the_command_that_was_called() {
    let empty = tempfile::tempdir().expect("a folder");
    let at = |args: &[&str]| {
        let output = run(empty.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        stderr(&output)
    };
    let said = at(&["generate", "full-sweep", "--min-conc", "100", "--max-conc", "1"]);
    assert!(said.contains("Usage: sweepctl generate full-sweep [OPTIONS]"), "{said}");
    let said = at(&["plan", "--latest", "--agentx-fast", "--summary"]);
    assert!(said.contains("Usage: sweepctl plan [OPTIONS]"), "{said}");
    for (command, usage) in [
        (&["launch"][..], "<--envelope <FILE>|--release>"),
        (&["run", "--out", "x"], "<--plan <FILE|DIR>|--latest>"),
        (
            &["eval", "run", "--stage-to", "x"],
            "<--endpoint <URL>|--report <FILE>>",
        ),
    ] {
        let said = at(command);
        assert!(said.contains(usage), "{said}");
    }
}

#[test]
fn what_cannot_be_read_or_written_is_named_with_the_way_out() {
    let empty = tempfile::tempdir().expect("a folder");
    write(empty.path(), "plain", "");
    let at = |args: &[&str]| {
        let mut command = sweepctl(empty.path());
        let output = command
            .args(args)
            .env_remove("GITHUB_RUN_ID")
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        stderr(&output)
    };
    let manual = at(&["man", "--out", "plain/x"]);
    assert!(manual.contains("`plain/x`") && manual.contains("--out"), "{manual}");
    let verdict = at(&["verdict", "--needs", "nosuch", "--plan", "x"]);
    assert!(verdict.contains("`-` for standard input"), "{verdict}");
    let calibrate = at(&["eval", "calibrate", "nosuch"]);
    assert!(calibrate.contains("name folders with collected runs"), "{calibrate}");
    let ingest = at(&["ingest", "--to", "a/b", "--event-type", "x", "--dry-run"]);
    assert!(
        ingest.contains("GITHUB_RUN_ID") && ingest.contains("--repo"),
        "{ingest}"
    );
    let init = at(&["init", "--hardware", "none", "--runtime", "docker", "--engine", "vllm"]);
    assert_eq!(init.matches("h200").count(), 1, "{init}");
    let mut replay = sweepctl(empty.path());
    replay.args(["agentic", "run", "--endpoint", "http://localhost:1"]);
    let replay = stderr(&replay.env_remove("MODEL").env_remove("CONC").output().expect("it runs"));
    assert!(
        replay.contains("give --model") && replay.contains("give --concurrency"),
        "{replay}"
    );
}

#[test]
fn a_calibration_says_which_sets_are_no_runs_of_their_own() {
    let runs = tempfile::tempdir().expect("a folder");
    for run in 1..=3 {
        let meta = format!(
            "{{\"infmax_model_prefix\": \"m1\", \"conc\": 4, \"job_id\": \"0123456789ab\", \"run_id\": \"{run}\"}}"
        );
        let result = "{\"results\": {\"gsm8k\": {\"exact_match,strict-match\": 0.9}}, \
                      \"n-samples\": {\"gsm8k\": {\"original\": 9, \"effective\": 9}}}";
        write(runs.path(), &format!("p/{run}/meta_env.json"), meta);
        write(runs.path(), &format!("p/{run}/results.json"), result);
    }
    let output = run(runs.path(), ["eval", "calibrate", "p"]);
    let said = stderr(&output);
    assert!(
        said.contains(
            "1 whole run, and 0 with a limit on samples, are too few; not counted: 2 other sets of the same job"
        ),
        "{said}"
    );
    assert!(said.contains("name each as a folder of its own"), "{said}");
    let each = run(runs.path(), ["eval", "calibrate", "p/1", "p/2", "p/3", "--json"]);
    assert!(each.status.success(), "{}", stderr(&each));
}

#[test]
fn standard_output_is_one_document_where_a_command_prints_its_own_and_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let document = |args: &[&str]| {
        let output = run(folder.path(), args);
        let text = stdout(&output);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args:?}: {e}\n{text}"));
        (output.status.code(), value)
    };
    write(
        folder.path(),
        "needs.json",
        r#"{"decide": {"result": "failure", "outputs": {}}}"#,
    );
    let (code, verdict) = document(&["verdict", "--needs", "needs.json", "--plan", "plan", "--json"]);
    assert_eq!((code, &verdict["ok"]), (Some(1), &false.into()), "{verdict}");
    write(folder.path(), "old/agg_bmk.json", "[]");
    write(folder.path(), "new/agg_bmk.json", "[]");
    let (code, compared) = document(&["compare", "old", "new", "--max-regression", "5", "--json"]);
    assert_eq!((code, compared["points"].is_array()), (Some(1), true), "{compared}");
    let (code, found) = document(&["compare", "none.json", "new", "--ledger", "nosuch", "--json"]);
    assert_eq!((code, found["findings"].is_array()), (Some(1), true), "{found}");
}

#[test]
fn help_says_what_needs_a_plan_that_is_written_and_fits_the_terminal() {
    let help = |args: &[&str]| stdout(&run(project(), [args, &["--help"]].concat()));
    assert!(help(&["plan"]).contains("Short agentic replays; needs --emit"));
    assert!(!help(&["dispatch"]).contains("needs --emit"));
    let explain = help(&["explain"]);
    for ignored in ["--emit", "--canary", "--github-output", "--fail-fast", "--trim-conc"] {
        assert!(!explain.contains(ignored), "{ignored}");
    }
    for (command, flag) in [
        (&["dispatch"][..], "--dry-run"),
        (&["plan"], "--json"),
        (&["generate", "full-sweep"], "--json"),
    ] {
        let text = help(command);
        let sweeping = text.split("How to sweep:").nth(1).expect("a heading");
        let section: String = sweeping.lines().skip(1).take_while(|line| !line.is_empty()).collect();
        assert!(!section.contains(flag), "{command:?}: {section}");
    }
    let mut command = sweepctl(project());
    command.args(["eval", "run", "--help"]).env("COLUMNS", "80");
    let text = stdout(&command.output().expect("it runs"));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn usage_is_checked_before_any_file_is_read() {
    let empty = tempfile::tempdir().expect("a folder");
    let usage = run(
        empty.path(),
        [
            "generate",
            "full-sweep",
            "--config-files",
            "none.yaml",
            "--step-size",
            "0",
        ],
    );
    assert_eq!(usage.status.code(), Some(2));
    let missing = run(empty.path(), ["generate", "full-sweep", "--config-files", "none.yaml"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        stderr(&missing).contains("`none.yaml` does not exist"),
        "{}",
        stderr(&missing)
    );
}

#[test]
fn a_filter_that_keeps_nothing_is_told() {
    let ran = run(
        project(),
        [
            "generate",
            "full-sweep",
            "--framework",
            "vlm",
            "vllm",
            "--model-prefix",
            "gptos",
            "--json",
        ],
    );
    let rows: serde_json::Value = serde_json::from_str(&stdout(&ran)).expect("rows");
    assert!(rows.as_array().is_some_and(|rows| !rows.is_empty()), "{rows}");
    let said = stderr(&ran);
    assert!(said.contains("--framework `vlm` keeps no config"), "{said}");
    assert!(said.contains("did you mean `vllm`?"), "{said}");
    assert_eq!(said.matches("keeps no config").count(), 1, "{said}");
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(project(), ["completions", shell]);
        assert!(output.status.success(), "{shell}");
        assert!(stdout(&output).contains("generate"), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let out = tempfile::tempdir().expect("a folder");
    let output = run(project(), ["man", "--out", out.path().to_str().expect("a path")]);
    assert!(output.status.success(), "{}", stderr(&output));
    for page in ["sweepctl.1", "sweepctl-plan.1", "sweepctl-generate-full-sweep.1"] {
        let text = std::fs::read_to_string(out.path().join(page)).expect(page);
        assert!(text.contains(".SH NAME"), "{page}");
    }
}
