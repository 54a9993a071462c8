//! `sweepctl dispatch`: what may be swept, what is sent, and how its run is found.

use std::process::Output;

use serde_json::{Value, json};

use super::server::{GitHub, Reply, keeps_the_token, pull, run, runs, sha, user};
use crate::support::{project, stderr, stdout};

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
    github.run(&[&["dispatch"], more].concat())
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
        (vec![approval("MEMBER", 'b'), changes("carol")], false),
        (vec![], true),
        (vec![comment], true),
        (vec![dismissed], true),
        (vec![approval("CONTRIBUTOR", 'b')], true),
        (vec![approval("NONE", 'b')], true),
        (vec![approval("MEMBER", 'c')], true),
        (vec![approval("MEMBER", 'b'), changes("alice")], true),
    ] {
        let github = github();
        github.on("GET /repos/acme/bench/pulls/12/reviews", json!(reviews));
        let output = dispatch(&github, &["--pr", "12", "--dry-run"]);
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
    let output = dispatch(&github, &["--pr", "12", "--head", &sha('b'), "--dry-run"]);
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
    assert!(stderr(&output).contains("gives 1 job on"), "{}", stderr(&output));
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
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
        let output = ask(wrong);
        assert_eq!(output.status.code(), Some(code), "{wrong:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{wrong:?}: {}", stderr(&output));
    }
    assert_eq!(sent(&github), Vec::<Value>::new());
    let shown = stdout(&ask(&["--generate", command, "--dry-run"]));
    assert!(!shown.contains("\"url\":\"http"), "{shown}");
}
