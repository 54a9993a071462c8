//! Files that cannot be read, samples, and what is said of many problems.

use serde_json::{Value, json};

use super::work::Work;
use crate::fixture::{gate, result, run};

#[test]
fn unreadable_files_are_named_and_do_not_hide_others() {
    let work = Work::batch();
    work.text("results_conc16.json", "");
    work.text("results_conc32.json", b"{\"results\": {\"\xff\": 1}}");
    work.fails(
        &[],
        &[
            "results_conc16.json is empty",
            "results_conc32.json is not UTF-8 at byte 14",
        ],
    );
    work.text("results_conc16.json", "{\"results\": {\"plain\": ");
    work.text("results_conc32.json", "[]");
    work.fails(
        &[],
        &[
            "results_conc16.json is cut off in line 1",
            "results_conc32.json is no JSON object",
        ],
    );
    work.file("results_conc16.json", &json!({}));
    work.remove("results_conc32.json");
    std::os::unix::fs::symlink("/etc/passwd", work.path().join("results_conc32.json")).expect("linked");
    let stderr = work.fails(
        &[],
        &[
            "`results` holds no task",
            "results_conc32.json cannot be read: it is a link",
        ],
    );
    assert!(!stderr.contains("root:"), "{stderr}");
}

#[test]
fn a_pipe_or_a_folder_is_no_result_and_does_not_block() {
    let work = Work::new();
    let path = work.path().join("results.json");
    std::fs::remove_file(&path).expect("removed");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    work.fails(&[], &["results.json cannot be read: it is no regular file"]);
    std::fs::remove_file(&path).expect("removed");
    std::fs::create_dir(&path).expect("a folder");
    work.fails(&[], &["there is no result file"]);
}

#[test]
fn an_unreadable_thresholds_file_is_an_error() {
    let work = Work::new();
    work.text("thresholds.yaml", "default: [");
    work.fails(&[], &["thresholds.yaml"]);
    work.remove("thresholds.yaml");
    work.fails(&[], &["`thresholds.yaml` does not exist"]);
}

#[test]
fn silence_is_said_apart_from_wrong_answers() {
    let work = Work::new();
    let lines = |empty: usize, all: usize| {
        let line = |at: usize| {
            format!(
                "{{\"resps\": [[\"{}\"]], \"exact_match\": NaN}}\n",
                if at < empty { "" } else { "x" }
            )
        };
        (0..all).map(line).collect::<String>()
    };
    work.text("samples_plain_2026-11-01T00-00-00.jsonl", lines(5, 100));
    let report = work.passes(&[]);
    assert_eq!(report["silence"][0]["empty"], 5);
    work.text("samples_plain_2026-11-01T00-00-00.jsonl", lines(6, 100));
    work.fails(
        &[],
        &["6 of 100 questions have an empty answer in `resps` (6.0%), at most 5.0% may"],
    );
    // A folder that is not there is no folder without samples.
    let gone = ["--results-glob", "none*.json", "--meta-env", "gone/meta_env.json"];
    work.fails(&gone, &["there is no result file", "gone cannot be listed"]);
    // Beside the metadata where there is no result.
    work.remove("results.json");
    work.fails(
        &[],
        &["there is no result file", "6 of 100 questions have an empty answer"],
    );
    let mut tuned = result("tuned", 0.1);
    tuned["results"]["tuned"]["f1,none"] = json!(0.9);
    work.file("results.json", &tuned);
    work.remove("samples_plain_2026-11-01T00-00-00.jsonl");
    work.text("samples_tuned_2026-11-01T00-00-00.jsonl", lines(50, 100));
    work.passes(&[]);
    work.text(
        "samples_tuned_2026-11-01T00-00-00.jsonl",
        format!("{}{{\"resps\": [[\"", lines(0, 2)),
    );
    work.fails(&[], &["samples_tuned_2026-11-01T00-00-00.jsonl is cut off in line 3"]);
}

#[test]
fn on_actions_problems_are_annotated_within_the_limit_and_summarized() {
    let work = Work::new();
    let mut many = result("plain", 0.1);
    for at in 0..30 {
        let task = format!("t{at}|`x`\n::set-env name=A::b");
        many["results"][&task] = json!({"exact_match,strict-match": 0.1});
        many["n-samples"][&task] = json!({"original": 5, "effective": 5});
    }
    work.file("results.json", &many);
    let summary = work.path().join("summary.md");
    let mut command = gate(work.path());
    command
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", &summary);
    let (code, stdout, stderr) = run(&mut command);
    assert_eq!(code, 1);
    let report: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(31));
    let annotations: Vec<&str> = stderr
        .lines()
        .filter(|line| line.trim_start().starts_with("::"))
        .collect();
    let (errors, notices): (Vec<&str>, Vec<&str>) = annotations.iter().partition(|line| line.starts_with("::error"));
    assert_eq!(errors.len(), 9, "{annotations:?}");
    assert_eq!(notices, ["::notice::22 more: see the log and the step summary"]);
    let summary = std::fs::read_to_string(summary).expect("a summary");
    assert!(summary.starts_with("### Eval scores: 31 problems\n"), "{summary}");
    assert!(summary.contains(r"t3\|\`x\` ::set-env"), "{summary}");
}

#[test]
fn thousands_of_tasks_are_judged_at_once() {
    let work = Work::new();
    let mut many = result("plain", 0.95);
    for at in 0..5000 {
        let task = format!("task_{at}");
        many["results"][&task] = json!({"exact_match,none": 0.9});
        many["n-samples"][&task] = json!({"original": 5, "effective": 5});
    }
    work.file("results.json", &many);
    assert_eq!(work.passes(&[])["checks"].as_array().map(Vec::len), Some(5001));
}

#[test]
fn standard_output_is_one_document_also_where_it_refuses() {
    let work = Work::new();
    work.file("results.json", &result("plain", 0.1));
    let (code, stdout, stderr) = run(gate(work.path()).arg("--json"));
    assert_eq!(code, 1, "{stderr}");
    let report: Value = serde_json::from_str(&stdout).expect("one document");
    assert_eq!(report["problems"].as_array().map(Vec::len), Some(1), "{report}");
    // Without a report of its own the findings are the document.
    let (code, stdout, _) = run(gate(work.path()).args(["--json", "--expected-concs", "x"]));
    let found: Value = serde_json::from_str(&stdout).expect("one document");
    assert_eq!(
        (code, found["findings"].as_array().map(Vec::len)),
        (1, Some(1)),
        "{found}"
    );
}

#[test]
fn the_pattern_that_finds_nothing_is_named() {
    let work = Work::new();
    let args = ["--results-glob", "a/nope_*.json", "--meta-env", "meta_env.json"];
    std::fs::create_dir(work.path().join("a")).expect("a folder");
    work.fails(
        &args,
        &["there is no result file (`a/nope_*.json`), so there is nothing that passed"],
    );
    work.remove("results.json");
    work.fails(
        &[],
        &["there is no result file (`results*.json`), so there is nothing that passed"],
    );
}

#[test]
fn the_way_out_is_that_of_what_is_wrong_with_a_result() {
    let work = Work::new();
    let path = work.path().join("results.json");
    let stopped = "the eval was stopped or its disk is full";
    let told = |wanted: [&str; 2]| {
        let said = work.fails(&[], &wanted[..1]);
        assert!(said.contains(wanted[1]), "no `{}` in\n{said}", wanted[1]);
        assert_eq!(said.contains(stopped), wanted[1] == stopped, "{said}");
    };
    work.text("results.json", "{");
    told(["results.json is cut off", stopped]);
    work.rename("results.json", "elsewhere.json");
    std::os::unix::fs::symlink("elsewhere.json", &path).expect("linked");
    told([
        "it is a link, and links are refused",
        "help: put the file itself in its place",
    ]);
    std::fs::remove_file(&path).expect("removed");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    told(["it is no regular file", "help: put a regular file in its place"]);
    std::fs::remove_file(&path).expect("removed");
    // A sparse file takes no room.
    let file = std::fs::File::create(&path).expect("created");
    file.set_len((256 << 20) + 1).expect("grown");
    told(["it is larger than 256 MiB", "help: no eval writes so much"]);
    work.file("results.json", &result("plain", 0.95));
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(&path, mode(0o000)).expect("its mode");
    // Its mode keeps nothing from root.
    if std::fs::File::open(&path).is_err() {
        told(["cannot be read: Permission denied", "help: let this user read it"]);
    }
}

#[test]
fn a_number_that_no_double_holds_is_named_with_its_place() {
    let work = Work::new();
    work.text(
        "results.json",
        "{\"results\": {\"plain\": {\"a\": NaN,\n \"exact_match,none\": 1e999}}}",
    );
    work.fails(
        &[],
        &["results.json holds a number that no double holds, such as 1e999, which ends in line 2, column 26"],
    );
}

#[test]
fn metadata_are_a_small_file() {
    let work = Work::new();
    let padded = |size: usize| {
        let mut meta = crate::fixture::meta(64);
        meta["note"] = json!("");
        let room = size - meta.to_string().len();
        meta["note"] = json!("x".repeat(room));
        meta.to_string()
    };
    work.text("meta_env.json", padded(1 << 20));
    work.passes(&[]);
    work.text("meta_env.json", padded((1 << 20) + 1));
    work.fails(&[], &["meta_env.json cannot be read: it is larger than 1 MiB"]);
}
