//! `sweepctl decide` beyond the table: files, clones, and everything that may be wrong with an event.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::payload::{ZERO, payload};
use super::{HISTORY, decider, read_outputs};
use crate::support::{commit, git, project, stderr, stdout, write};

const EXAMPLE: &str = "tests/fixtures/events/labeled.json";

/// Runs `decide` in a folder on an event, and gives its exit code, its JSON and what it said.
fn decide(folder: &Path, event: &str, more: &[&str]) -> (Option<i32>, Value, String) {
    let output = decider(folder)
        .args(["decide", "--event", event])
        .args(more)
        .output()
        .expect("the binary runs");
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code(), json, stderr(&output))
}

/// A payload of the table's words as a file.
fn event(out: &Path, words: [&str; 3]) -> String {
    let built = payload(words[0], words[1], words[2], &HISTORY);
    write(out, "event.json", built.body.to_string())
        .to_str()
        .expect("a path")
        .to_owned()
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn an_event_alone_is_decided_and_what_is_assumed_is_said() {
    let example = project().join(EXAMPLE);
    let (code, decision, said) = decide(folder().path(), example.to_str().expect("a path"), &[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(decision["run"], true);
    assert_eq!(decision["evals-only"], true);
    assert_eq!(decision["base-ref"], "2".repeat(40));
    assert!(said.starts_with("note: this is no git repository"), "{said}");
    assert!(said.contains("no skip marker is assumed"), "{said}");

    // In a repository that lacks the commits it is the same.
    let (code, decision, said) = decide(HISTORY.folder.path(), example.to_str().expect("a path"), &[]);
    assert_eq!((code, &decision["run"]), (Some(0), &json!(true)), "{said}");
    assert!(
        said.contains(&format!("no commit is known as `{}`", "1".repeat(40))),
        "{said}"
    );
}

#[test]
fn a_head_that_is_here_is_read_even_where_its_base_is_not() {
    let out = folder();
    let mut built = payload("synchronize", "full-sweep-enabled", "marked", &HISTORY);
    built.body["pull_request"]["base"]["sha"] = json!("a".repeat(40));
    let path = write(out.path(), "event.json", built.body.to_string());
    let (code, decision, said) = decide(HISTORY.folder.path(), path.to_str().expect("a path"), &[]);
    assert_eq!((code, &decision["run"]), (Some(0), &json!(false)), "{said}");
    assert!(decision["reason"].to_string().contains("[skip-sweep]"), "{decision}");
    assert!(
        said.contains("stands for the merge base") && !said.contains("marker"),
        "{said}"
    );
    assert_eq!(decision["base-ref"], "a".repeat(40));
}

#[test]
fn a_payload_may_hold_any_text_and_come_through_standard_input() {
    let out = folder();
    let mut built = payload("synchronize", "sweep-enabled", "", &HISTORY);
    built.body["pull_request"]["body"] = json!("\u{7f}\u{9b}2J \u{1F600}");
    let path = write(out.path(), "event.json", built.body.to_string());
    let output = decider(HISTORY.folder.path())
        .args(["decide", "--event", "-"])
        .stdin(std::fs::File::open(path).expect("the payload"))
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("{\"run\":true"), "{}", stdout(&output));
}

#[test]
fn a_step_does_not_guess() {
    let out = folder();
    let outputs = out.path().join("outputs");
    let output = decider(out.path())
        .args(["decide", "--github-output"])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_EVENT_NAME", "pull_request")
        .env("GITHUB_EVENT_PATH", project().join(EXAMPLE))
        .env("GITHUB_OUTPUT", &outputs)
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert!(!outputs.exists());
}

#[test]
fn a_shallow_clone_is_told_how_to_become_whole() {
    let out = folder();
    let whole = format!("file://{}", HISTORY.folder.path().display());
    let cases = [
        // The base's commit is missing.
        (&["topic"][..], ["synchronize", "sweep-enabled", ""]),
        // Both are there, and what they come from is not.
        (&["topic", "tip"], ["synchronize", "sweep-enabled", ""]),
        // The parent of a new branch's commit is missing: that is not the same as having none.
        (&["tip"], ["push main", "", "before=zero after=tip"]),
        (&["tip"], ["push main", "", "before=fork after=tip"]),
    ];
    for (index, (fetched, words)) in cases.into_iter().enumerate() {
        let clone = out.path().join(index.to_string());
        let clone = clone.to_str().expect("a path");
        git(out.path(), &["init", "-q", clone]);
        let mut args = vec!["-C", clone, "fetch", "-q", "--depth=1", &whole];
        args.extend(fetched.iter().map(|name| HISTORY.commit(name)));
        git(out.path(), &args);
        let output = decider(Path::new(clone))
            .args(["decide", "--event", &event(out.path(), words)])
            .env("GITHUB_ACTIONS", "true")
            .output()
            .expect("the binary runs");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", stdout(&output));
        assert!(
            said.contains("shallow") && said.contains("fetch-depth: 0"),
            "{words:?}: {said}"
        );
    }
}

#[test]
fn a_forced_push_names_the_fetch_that_brings_what_it_threw_away() {
    let out = folder();
    let gone = "a".repeat(40);
    let mut built = payload("push main", "", "before=tip after=replaced forced", &HISTORY);
    built.body["before"] = json!(gone);
    let path = write(out.path(), "event.json", built.body.to_string());
    let output = decider(HISTORY.folder.path())
        .args(["decide", "--event", path.to_str().expect("a path")])
        .env("GITHUB_ACTIONS", "true")
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains(&format!("git fetch origin {gone}")),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_event_and_its_name_come_from_the_environment_or_the_command_line() {
    let out = folder();
    let push = event(out.path(), ["push main", "", "before=fork after=tip"]);
    let at = HISTORY.folder.path();
    let output = decider(at)
        .arg("decide")
        .env("GITHUB_EVENT_PATH", &push)
        .env("GITHUB_EVENT_NAME", "push")
        .output()
        .expect("the binary runs");
    assert!(
        stdout(&output).contains("\"reuse-candidate\":true"),
        "{}",
        stderr(&output)
    );
    // The payload of a push does not become another event.
    let (code, _, said) = decide(at, &push, &["--event-name", "pull_request"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("this is no `pull_request` event") && said.contains("GITHUB_EVENT_PATH"),
        "{said}"
    );
    // What a push to another branch would do.
    let (_, decision, _) = decide(at, &push, &["--ref", "refs/heads/topic"]);
    assert_eq!(decision["run"], false);
    let (code, _, said) = decide(at, &write(out.path(), "x.json", "{}").display().to_string(), &[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("--event-name"), "{said}");
    let output = decider(at).arg("decide").output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--event"), "{}", stderr(&output));
}

#[test]
fn labels_are_the_repositorys_own_where_it_has_some() {
    let out = folder();
    let at = out.path();
    git(at, &["init", "-q"]);
    commit(at, "Begin");
    let own = "primary:\n  nightly: { trim-conc: true }\nmodifiers: {}\nskip-marker: '[no]'\nreuse:\n  command: /x\n  \
               author-associations: [OWNER]\n  unauthorized-merge: sweep\n";
    write(at, "configs/labels.yaml", own);
    let path = event(at, ["labeled nightly", "nightly", ""]);
    let (_, decision, said) = decide(at, &path, &[]);
    assert_eq!(
        (&decision["run"], &decision["trim-conc"]),
        (&json!(true), &json!(true)),
        "{said}"
    );
    let other = write(at, "other.yaml", own.replace("nightly", "weekly"));
    let (_, decision, _) = decide(at, &path, &["--labels", other.to_str().expect("a path")]);
    assert_eq!(decision["run"], false);
    // What is wrong with the event and with the labels is said at once.
    write(at, "broken.yaml", own.replace("trim-conc", "trimm-conc"));
    let broken = write(at, "broken.json", "{\"pull_request\": {}}");
    let (code, _, said) = decide(at, broken.to_str().expect("a path"), &["--labels", "broken.yaml"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("trimm-conc") && said.contains("this is no `pull_request` event"),
        "{said}"
    );
}

#[test]
fn the_marker_of_the_labels_file_counts() {
    let out = folder();
    let own = sweepctl::config::labels::BUILT_IN.replace("[skip-sweep]", "Measure");
    let labels = write(out.path(), "labels.yaml", own);
    let path = event(out.path(), ["synchronize", "sweep-enabled", ""]);
    let (_, decision, _) = decide(
        HISTORY.folder.path(),
        &path,
        &["--labels", labels.to_str().expect("a path")],
    );
    assert_eq!(decision["run"], false);
    assert_eq!(decision["checks"], true);
}

#[test]
fn hostile_events_are_refused_or_shown_harmless() {
    let out = folder();
    let at = HISTORY.folder.path();
    let good = payload("labeled x", "sweep-enabled", "", &HISTORY).body;
    type Spoil = fn(&mut Value);
    let refused: [(&str, Spoil, &str); 9] = [
        (
            "an option for a hash",
            |e| e["pull_request"]["head"]["sha"] = json!("--upload-pack=x"),
            "full hash",
        ),
        (
            "revision syntax for a hash",
            |e| e["pull_request"]["base"]["sha"] = json!("HEAD~1"),
            "full hash",
        ),
        (
            "a short hash",
            |e| e["pull_request"]["base"]["sha"] = json!("abc1234"),
            "full hash",
        ),
        (
            "a draft that is text",
            |e| e["pull_request"]["draft"] = json!("false"),
            "boolean",
        ),
        (
            "no draft at all",
            |e| drop(e["pull_request"].as_object_mut().expect("one").remove("draft")),
            "`draft`",
        ),
        (
            "labels that are text",
            |e| e["pull_request"]["labels"] = json!("sweep-enabled"),
            "sequence",
        ),
        (
            "no label in a labeled event",
            |e| drop(e.as_object_mut().expect("one").remove("label")),
            "names no label",
        ),
        (
            "an unknown state",
            |e| e["pull_request"]["state"] = json!("ajar"),
            "`ajar`",
        ),
        (
            "no word on the fork",
            |e| drop(e["pull_request"]["head"].as_object_mut().expect("one").remove("repo")),
            "`repo`",
        ),
    ];
    for (what, spoil, word) in refused {
        let mut bad = good.clone();
        spoil(&mut bad);
        let path = write(out.path(), "bad.json", bad.to_string());
        let (code, _, said) = decide(at, path.to_str().expect("a path"), &[]);
        assert_eq!(code, Some(1), "{what}");
        assert!(said.contains(word) && said.contains("bad.json"), "{what}: {said}");
    }
    for text in ["", "[]", "{", "null", "\u{0}"] {
        let path = write(out.path(), "bad.json", text);
        assert_eq!(decide(at, path.to_str().expect("a path"), &[]).0, Some(1), "{text:?}");
    }
    // A label may be called anything. In a summary it stays code, in the outputs one value, in the log one line.
    let mut odd = good;
    let name = "`</code><b>x\n::add-mask::run\nrun=true\u{1b}[2J";
    odd["label"]["name"] = json!(name);
    let path = write(out.path(), "odd.json", odd.to_string());
    let (outputs, summary) = (out.path().join("outputs"), out.path().join("summary"));
    let output = decider(at)
        .args(["decide", "--github-output"])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_EVENT_NAME", "pull_request")
        .env("GITHUB_EVENT_PATH", path)
        .env("GITHUB_OUTPUT", &outputs)
        .env("GITHUB_STEP_SUMMARY", &summary)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let outputs = read_outputs(&outputs);
    assert_eq!(outputs[0], ("run".to_owned(), "false".to_owned()));
    assert_eq!(outputs.iter().filter(|(name, _)| name == "run").count(), 1);
    let summary = std::fs::read_to_string(summary).expect("a summary");
    assert_eq!(
        summary,
        "No sweep. The label `'</code><b>x ::add-mask::run run=true\\u{1b}[2J` does not concern sweeps.\n"
    );
    assert!(
        !stdout(&output).lines().any(|line| line.starts_with("::")),
        "{}",
        stdout(&output)
    );
}

#[test]
fn inputs_may_be_values_of_their_kind() {
    let out = folder();
    let inputs = json!({ "base-ref": "a", "head-ref": "b", "trim-conc": true, "evals-only": false, "duration": 90 });
    let body = json!({ "inputs": inputs, "ref": "refs/heads/main" });
    let path = write(out.path(), "event.json", body.to_string());
    let (code, decision, said) = decide(out.path(), path.to_str().expect("a path"), &[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (&decision["trim-conc"], &decision["duration"]),
        (&json!(true), &json!(90))
    );
    for (name, value) in [
        ("trim-conc", json!(["true"])),
        ("duration", json!(0)),
        ("base-ref", json!("a\nb")),
    ] {
        let mut bad = body.clone();
        bad["inputs"][name] = value;
        let path = write(out.path(), "bad.json", bad.to_string());
        assert_eq!(
            decide(out.path(), path.to_str().expect("a path"), &[]).0,
            Some(1),
            "{name}"
        );
    }
}

#[test]
fn a_zero_before_plans_a_first_commit_against_nothing() {
    let out = folder();
    let at = out.path();
    git(at, &["init", "-q"]);
    for file in ["configs/amd-master.yaml", "configs/runners.yaml"] {
        let text = std::fs::read(project().join(file)).expect("the project's own fleet");
        write(at, file, text);
    }
    let entry =
        "- config-keys: ['gptoss120b-mi325x-vllm-fp4']\n  description: ['First']\n  pr-link: https://example.com/1\n";
    write(at, "perf-changelog.yaml", entry);
    let first = commit(at, "Begin");
    let body = json!({ "ref": "refs/heads/main", "before": ZERO, "after": first });
    let path = write(at, "event.json", body.to_string());
    let (_, decision, said) = decide(at, path.to_str().expect("a path"), &[]);
    assert_eq!(
        (&decision["run"], &decision["base-ref"]),
        (&json!(true), &json!("")),
        "{said}"
    );
    let head = decision["head-ref"].as_str().expect("text");
    let plan = crate::support::json(at, ["plan", "--base-ref", "", "--head-ref", head]);
    assert_eq!(plan["changelog_metadata"]["entries"].as_array().map(Vec::len), Some(1));
    assert_eq!(plan["changelog_metadata"]["base_ref"], "");
}
