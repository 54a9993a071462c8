//! `sweepctl dispatch`: what may be swept, what is sent, and how its run is found.

use std::process::Output;

use serde_json::{Value, json};

use super::server::{GitHub, Reply, keeps_the_token, pull, run, runs, sha, user};
use crate::support::{project, stderr, stdout, terminal, write};

const RUNS: &str = "GET /repos/acme/bench/actions/workflows/e2e-tests.yml/runs";
const DISPATCH: &str = "POST /repos/acme/bench/actions/workflows/e2e-tests.yml/dispatches";

fn review(login: &str, association: &str, state: &str, commit: char) -> Value {
    json!({
        "id": 80, "node_id": "PRR_x", "user": user(login), "body": "", "state": state,
        "author_association": association, "commit_id": sha(commit), "submitted_at": "2026-10-01T07:00:00Z",
    })
}

/// An open pull request of a fork, its newest commit `b`, approved by a member.
fn github() -> GitHub {
    let mut pull = pull(&[]);
    pull["state"] = json!("open");
    pull["merged_at"] = Value::Null;
    pull["head"]["repo"] = json!({ "full_name": "stranger/bench" });
    let github = GitHub::new();
    github
        .on("GET /repos/acme/bench", json!({ "default_branch": "trunk" }))
        .on("GET /repos/acme/bench/pulls/12", pull)
        .on(
            "GET /repos/acme/bench/pulls/12/reviews",
            json!([review("alice", "MEMBER", "APPROVED", 'b')]),
        )
        .on(
            &format!("GET /repos/acme/bench/compare/{}...{}", sha('a'), sha('b')),
            json!({ "status": "diverged", "ahead_by": 2, "merge_base_commit": { "sha": sha('9'), "commit": {} } }),
        )
        .on(RUNS, runs(vec![]))
        .on(DISPATCH, Reply::text(204, ""));
    github
}

fn sent(github: &GitHub) -> Vec<Value> {
    let posts = github
        .asked()
        .into_iter()
        .filter(|asked| asked.what.starts_with("POST"));
    posts.map(|asked| asked.json()).collect()
}

fn dispatch(github: &GitHub, more: &[&str]) -> Output {
    github.run(&[&["dispatch"], more, &["--yes"]].concat())
}

/// A run of e2e-tests.yml.
fn started(id: u64, title: &str) -> Value {
    let mut run = run(id, "success");
    run["path"] = json!(".github/workflows/e2e-tests.yml");
    run["event"] = json!("workflow_dispatch");
    run["display_title"] = json!(title);
    run["status"] = json!("queued");
    run["conclusion"] = Value::Null;
    run
}

#[test]
fn an_approved_commit_is_sent_from_the_default_branch() {
    let github = github();
    let title = "Pull request 12 at bbbbbbbbb";
    let (old, other) = (started(1, title), started(3, "Something else"));
    let tag = |reply: Value| Reply::from(reply).header("etag", "\"one\"");
    github.in_turn(
        RUNS,
        vec![
            tag(runs(vec![old.clone()])),
            Reply::text(304, ""),
            runs(vec![other, started(2, title), old]).into(),
        ],
    );
    let output = dispatch(&github, &["--pr", "12", "--trim-conc", "--eval-limit", "full"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&said["run-id"], &said["sent"]), (&json!(2), &json!(true)));
    assert_eq!(said["url"], "https://github.com/acme/bench/actions/runs/2");
    let wanted = json!({
        "ref": "trunk",
        "inputs": {
            "base-ref": sha('9'), "head-ref": sha('b'), "ref": sha('b'), "test-name": title,
            "eval-limit": "full", "trim-conc": "true",
        },
        "return_run_details": true,
    });
    assert_eq!(sent(&github), [wanted]);
    // An answer that is known is asked for by its tag, and not sent again.
    let asked = github.asked();
    let polls: Vec<_> = asked.iter().filter(|asked| asked.what.starts_with(RUNS)).collect();
    assert_eq!(polls.len(), 3);
    assert!(polls[0].headers.get("if-none-match").is_none());
    assert_eq!(polls[1].headers["if-none-match"], "\"one\"");
    // What is sent is in the form.
    let form = std::fs::read_to_string(project().join(".github/workflows/e2e-tests.yml")).expect("the file");
    for name in [
        "base-ref",
        "head-ref",
        "ref",
        "test-name",
        "eval-limit",
        "trim-conc",
        "all-evals",
        "evals-only",
        "agentx-fast",
        "fail-fast",
        "duration",
        "eval-framework",
        "eval-suite",
        "generate-cli-command",
    ] {
        assert!(form.contains(&format!("      {name}:\n")), "{name}");
    }
}

#[test]
fn a_dispatch_is_sent_once() {
    let github = github();
    for (status, words) in [
        (502, "was answered with 502"),
        (500, "was answered with 500"),
        (429, "was answered with 429"),
        (403, "needs the permission `actions: write`"),
        (422, "does not accept these values"),
    ] {
        github.on(DISPATCH, Reply::message(status, "No.").header("retry-after", 0));
        let before = sent(&github).len();
        let output = dispatch(&github, &["--pr", "12"]);
        assert_eq!(output.status.code(), Some(1), "{status}");
        assert!(stderr(&output).contains(words), "{status}: {}", stderr(&output));
        assert_eq!(sent(&github).len() - before, 1, "{status}");
    }
}

#[test]
fn nothing_is_sent_for_a_commit_that_nobody_read() {
    let approval = |association: &str, commit| review("alice", association, "APPROVED", commit);
    let changes = |login: &str| review(login, "MEMBER", "CHANGES_REQUESTED", 'b');
    let comment = review("alice", "MEMBER", "COMMENTED", 'b');
    let mut dismissed = approval("OWNER", 'b');
    dismissed["state"] = json!("DISMISSED");
    for (reviews, refused) in [
        (vec![approval("OWNER", 'b')], false),
        (vec![approval("COLLABORATOR", 'b'), comment.clone()], false),
        (vec![changes("alice"), approval("MEMBER", 'b')], false),
        (
            vec![changes("alice"), dismissed.clone(), approval("MEMBER", 'b')],
            false,
        ),
        (vec![], true),
        (vec![comment], true),
        (vec![dismissed], true),
        (vec![approval("CONTRIBUTOR", 'b')], true),
        (vec![approval("NONE", 'b')], true),
        (vec![approval("MEMBER", 'c')], true),
    ] {
        let github = github();
        github.on("GET /repos/acme/bench/pulls/12/reviews", json!(reviews));
        let output = github.run(&["dispatch", "--pr", "12", "--dry-run"]);
        assert_eq!(output.status.success(), !refused, "{reviews:?}: {}", stderr(&output));
        if refused {
            let said = stderr(&output);
            assert!(said.contains(&format!("--head {}", sha('b'))), "{said}");
            assert!(output.stdout.is_empty());
        }
    }
    let github = github();
    github.on(
        "GET /repos/acme/bench/pulls/12/reviews",
        json!([approval("MEMBER", 'c')]),
    );
    let said = stderr(&dispatch(&github, &["--pr", "12"]));
    assert!(
        said.contains("ccccccccc was approved, and commits came after it"),
        "{said}"
    );
    assert_eq!(sent(&github), Vec::<Value>::new());
}

#[test]
fn a_named_commit_is_swept_if_it_is_the_newest() {
    let github = github();
    github.on("GET /repos/acme/bench/pulls/12/reviews", json!([]));
    let output = github.run(&["dispatch", "--pr", "12", "--head", &sha('b'), "--dry-run"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&dispatch(&github, &["--pr", "12", "--head", &sha('c')]));
    assert!(said.contains("the newest commit of pull request 12 is bbb"), "{said}");
    for wrong in ["bbbbbbbbb", "main", "--upload-pack=x", ""] {
        assert_eq!(
            dispatch(&github, &["--pr", "12", &format!("--head={wrong}")])
                .status
                .code(),
            Some(2),
            "{wrong}"
        );
    }
    let mut closed = pull(&[]);
    closed["merged_at"] = Value::Null;
    github.on("GET /repos/acme/bench/pulls/12", closed);
    let said = stderr(&dispatch(&github, &["--pr", "12", "--head", &sha('b')]));
    assert!(said.contains("pull request 12 is `closed`"), "{said}");
    assert_eq!(sent(&github), Vec::<Value>::new());
}

#[test]
fn a_generator_command_is_tried_here_first() {
    let github = github();
    let ask = |more: &[&str]| {
        let mut command = github.command(project());
        let output = command.arg("dispatch").args(more).output().expect("the binary runs");
        keeps_the_token(&output);
        output
    };
    let command = "test-config --config-keys 'smoke-*'";
    let output = ask(&["--generate", command, "--ref", "topic", "--evals-only", "--dry-run"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&said["preview"]["jobs"], &said["preview"]["costs"][0]["bucket"]),
        (&json!(1), &json!("evals"))
    );
    assert_eq!(
        said["request"],
        json!({ "ref": "trunk", "inputs": { "ref": "topic", "generate-cli-command": command, "evals-only": "true" } })
    );
    assert_eq!(
        said["command"],
        "gh workflow run e2e-tests.yml --repo acme/bench --ref trunk -f 'ref=topic' \
         -f \"generate-cli-command=test-config --config-keys 'smoke-*'\" -f 'evals-only=true'"
    );
    assert_eq!(said["sent"], false);
    for (wrong, code, words) in [
        (
            &["--generate", "test-config --config-keys no-such"][..],
            1,
            "no config matches the key",
        ),
        (&["--generate", "test-config --config-key x"], 2, "--config-keys"),
        (&["--generate", "full-sweep --emit x"], 2, "may not hold `--emit`"),
        (&["--generate", "full-sweep 'x"], 2, "a quote that is not closed"),
        (
            &["--generate", "full-sweep --no-evals", "--all-evals"],
            2,
            "cannot be used with",
        ),
        (&["--generate", "full-sweep", "--pr", "12"], 2, "cannot be used with"),
        (
            &["--generate", "full-sweep", "--head", &sha('b')],
            2,
            "cannot be used with",
        ),
        (&["--pr", "12", "--ref", "topic"], 2, "cannot be used with"),
        (&[], 2, "--pr"),
    ] {
        let output = ask(&[wrong, &["--yes"]].concat());
        assert_eq!(output.status.code(), Some(code), "{wrong:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{wrong:?}: {}", stderr(&output));
    }
    assert_eq!(sent(&github), Vec::<Value>::new());
    let shown = stdout(&ask(&["--generate", command, "--dry-run"]));
    assert!(!shown.contains("\"url\":\"http"), "{shown}");
}

#[test]
fn a_request_for_changes_blocks_it() {
    let asks = |login: &str, association: &str| review(login, association, "CHANGES_REQUESTED", 'c');
    let approval = || review("alice", "MEMBER", "APPROVED", 'b');
    let mut dismissed = asks("carol", "MEMBER");
    dismissed["state"] = json!("DISMISSED");
    for (reviews, blocked) in [
        (vec![approval(), asks("carol", "MEMBER")], "`carol` asks for changes"),
        // Of an older commit, and before the approval of another: it stands until it is taken back.
        (
            vec![asks("carol", "COLLABORATOR"), approval()],
            "`carol` asks for changes",
        ),
        (
            vec![asks("carol", "MEMBER"), asks("dave", "OWNER"), approval()],
            "`carol` and `dave` ask for changes",
        ),
        (vec![approval(), asks("alice", "MEMBER")], "`alice` asks for changes"),
        // Who may not write blocks nothing.
        (vec![approval(), asks("mallory", "NONE")], ""),
        (vec![asks("carol", "MEMBER"), dismissed, approval()], ""),
        (
            vec![asks("carol", "MEMBER"), review("carol", "MEMBER", "APPROVED", 'b')],
            "",
        ),
        (
            vec![
                asks("carol", "MEMBER"),
                review("carol", "MEMBER", "COMMENTED", 'b'),
                approval(),
            ],
            "`carol` asks for changes",
        ),
    ] {
        let github = github();
        github.on("GET /repos/acme/bench/pulls/12/reviews", json!(reviews));
        // Naming the commit does not help.
        for more in [&[][..], &["--head", &sha('b')]] {
            let output = github.run(&[&["dispatch", "--pr", "12", "--dry-run"], more].concat());
            assert_eq!(
                output.status.success(),
                blocked.is_empty(),
                "{reviews:?}: {}",
                stderr(&output)
            );
            assert!(stderr(&output).contains(blocked), "{reviews:?}: {}", stderr(&output));
        }
    }
}

#[test]
fn nothing_is_sent_unasked() {
    let github = github();
    for more in [&[][..], &["--json"]] {
        let output = github.run(&[&["dispatch", "--pr", "12"], more].concat());
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("send it with --yes"), "{}", stderr(&output));
    }
    assert_eq!(github.requests(), Vec::<String>::new());
    let output = github.run(&["dispatch", "--pr", "12", "--yes", "--dry-run"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn github_says_which_run_it_started() {
    let github = github();
    let details = json!({
        "workflow_run_id": 42, "run_url": "https://api.github.com/repos/acme/bench/actions/runs/42",
        "html_url": "https://github.com/acme/bench/actions/runs/42",
    });
    github.on(DISPATCH, details);
    let output = dispatch(&github, &["--pr", "12"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        (&said["run-id"], &said["url"]),
        (&json!(42), &json!("https://github.com/acme/bench/actions/runs/42"))
    );
    // Nothing is looked for afterwards.
    let runs = github.requests().iter().filter(|what| what.starts_with(RUNS)).count();
    assert_eq!(runs, 1);
    // A server that does not know the question starts nothing: it is asked without it.
    let refused = Reply::message(422, "Invalid request. \"return_run_details\" is not a permitted key.");
    github.in_turn(DISPATCH, vec![refused, Reply::text(204, "")]);
    github.in_turn(RUNS, vec![runs_of(&[]), runs_of(&[7])]);
    let before = sent(&github).len();
    let output = dispatch(&github, &["--pr", "12"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["run-id"], 7);
    let posts = sent(&github);
    assert_eq!(posts.len() - before, 2);
    assert_eq!(
        (
            &posts[before]["return_run_details"],
            &posts[before + 1]["return_run_details"]
        ),
        (&json!(true), &Value::Null)
    );
}

fn runs_of(ids: &[u64]) -> Reply {
    runs(
        ids.iter()
            .map(|id| started(*id, "Pull request 12 at bbbbbbbbb"))
            .collect(),
    )
    .into()
}

#[test]
fn a_form_of_ten_inputs_gets_what_is_asked_as_one() {
    let (github, folder) = (github(), tempfile::tempdir().expect("a folder"));
    let mut labelled = pull(&["full-sweep-enabled", "it's \"odd\""]);
    (labelled["state"], labelled["merged_at"]) = (json!("open"), Value::Null);
    github.on("GET /repos/acme/bench/pulls/12", labelled);
    let settings = std::fs::read_to_string(project().join("configs/workflows.yaml")).expect("a file");
    let inputs = |more: &str| {
        write(folder.path(), "configs/workflows.yaml", format!("{settings}{more}"));
        let mut command = github.command(folder.path());
        command.args([
            "dispatch",
            "--pr",
            "12",
            "--dry-run",
            "--trim-conc",
            "--eval-suite",
            "a suite",
        ]);
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["request"]["inputs"].clone()
    };
    let whole = inputs("");
    assert_eq!(
        (&whole["trim-conc"], &whole["eval-suite"]),
        (&json!("true"), &json!("a suite"))
    );
    assert_eq!(whole["pr-labels-json"], Value::Null);
    let ten = inputs("\ndispatch-inputs: 10\n");
    assert_eq!(ten["asked"], "--trim-conc '--eval-suite=a suite'");
    let labels: Value = serde_json::from_str(ten["pr-labels-json"].as_str().expect("a text")).expect("JSON");
    assert_eq!(labels, json!(["full-sweep-enabled", "it's \"odd\""]));
    assert_eq!(
        (&ten["base-ref"], &ten["head-ref"]),
        (&json!(sha('9')), &json!(sha('b')))
    );
    let names: Vec<&String> = ten.as_object().expect("an object").keys().collect();
    assert!(
        names.len() <= 10 && !names.iter().any(|name| *name == "trim-conc"),
        "{names:?}"
    );
}

#[test]
fn a_line_of_flags_is_what_is_asked_and_nothing_else() {
    let plan = |asked: &str| {
        let args = [
            "dispatch-plan",
            "--generate",
            "test-config --config-keys 'smoke-*'",
            "--asked",
            asked,
        ];
        crate::support::run(project(), args)
    };
    let rows = |output: &Output| {
        serde_json::from_slice::<Value>(&output.stdout)
            .expect("JSON")
            .as_array()
            .map(Vec::len)
    };
    let (plain, trimmed) = (plan(""), plan("--trim-conc"));
    assert!(
        plain.status.success() && trimmed.status.success(),
        "{}",
        stderr(&trimmed)
    );
    assert!(rows(&trimmed) <= rows(&plain));
    for wrong in [
        "--emit=x",
        "--json",
        "--trim-conc 'x",
        "--duration=0",
        "x",
        "--trim-conc; touch y",
        "--help",
    ] {
        let output = plan(wrong);
        assert_ne!(output.status.code(), Some(1), "{wrong}: {}", stderr(&output));
        assert!(!output.status.success() || wrong == "--help", "{wrong}");
    }
}

#[test]
fn a_pull_request_is_previewed_where_its_commits_are() {
    let fleet = crate::support::fleet::repository();
    let at = fleet.path();
    let base = crate::support::git(at, &["rev-parse", "HEAD"]);
    let head = crate::support::fleet::log(at, &crate::support::fleet::entry("'*'", ""));
    let github = github();
    let mut own = pull(&[]);
    (own["state"], own["merged_at"]) = (json!("open"), Value::Null);
    (own["base"]["sha"], own["head"]["sha"]) = (json!(base), json!(head));
    let mut approval = review("alice", "MEMBER", "APPROVED", 'b');
    approval["commit_id"] = json!(head);
    github
        .on("GET /repos/acme/bench/pulls/12", own)
        .on("GET /repos/acme/bench/pulls/12/reviews", json!([approval]))
        .on(
            &format!("GET /repos/acme/bench/compare/{base}...{head}"),
            json!({ "merge_base_commit": { "sha": base } }),
        );
    let mut command = github.command(at);
    let output = command
        .args(["dispatch", "--pr", "12", "--dry-run"])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let planned = crate::support::json(at, ["plan", "--base-ref", &base, "--head-ref", &head, "--summary"]);
    assert_eq!(said["preview"]["costs"], planned);
    assert!(said["preview"]["gpus"].as_u64().is_some_and(|gpus| gpus > 0), "{said}");
    // On a terminal it is shown, and asked about; the end of the input means no.
    let mut command = github.command(at);
    let shown = terminal::shown(command.args(["dispatch", "--pr", "12"]), 100);
    assert!(
        shown.contains("Start it? [y/N]") && shown.contains("Not sent."),
        "{shown}"
    );
    assert_eq!(sent(&github), Vec::<Value>::new());
}

#[test]
fn a_dispatch_is_shown_on_80_and_120_columns() {
    let github = github();
    let mut command = github.command(project());
    command.args([
        "dispatch",
        "--generate",
        "full-sweep --model-prefix smoke",
        "--ref",
        "topic",
    ]);
    terminal::held("screen_dispatch", &command);
    assert_eq!(sent(&github), Vec::<Value>::new());
}
