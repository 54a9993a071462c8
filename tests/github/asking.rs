//! The client: repeats, budget, tags, pages, and answers that are none. `sweepctl baseline` asks.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::server::{GitHub, REPOSITORY, Reply, TOKEN, artifacts, run, runs};
use crate::support::{git, stderr, stdout, sweepctl};

const RUNS: &str = "GET /repos/acme/bench/actions/workflows/run-sweep.yml/runs";

fn of_run(id: u64) -> String {
    format!("GET /repos/acme/bench/actions/runs/{id}/artifacts")
}

/// A server that knows its default branch, and two runs of which the older has results.
fn github() -> GitHub {
    let github = GitHub::new();
    github
        .on(
            "GET /repos/acme/bench",
            json!({ "id": 1, "full_name": REPOSITORY, "default_branch": "trunk" }),
        )
        .on(RUNS, runs(vec![run(8, "success"), run(7, "success")]))
        .on(&of_run(8), artifacts(&[("results_bmk", true)]))
        .on(&of_run(7), artifacts(&[("results_bmk", false)]));
    github
}

fn found(github: &GitHub) -> Value {
    let output = github.run(&["baseline"]);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// What is said of a request that is refused.
fn refused(github: &GitHub) -> String {
    let output = github.run(&["baseline"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(output.stdout.is_empty());
    stderr(&output)
}

#[test]
fn the_newest_run_with_results_is_the_baseline() {
    let github = github();
    let baseline = found(&github);
    assert_eq!(baseline["run-id"], 7);
    assert_eq!(baseline["url"], "https://github.com/acme/bench/actions/runs/7");
    assert_eq!(
        github.requests(),
        [
            "GET /repos/acme/bench",
            "GET /repos/acme/bench/actions/workflows/run-sweep.yml/runs?event=push&branch=trunk&status=success&per_page=100&page=1",
            "GET /repos/acme/bench/actions/runs/8/artifacts?name=results_bmk&per_page=100&page=1",
            "GET /repos/acme/bench/actions/runs/7/artifacts?name=results_bmk&per_page=100&page=1",
        ]
    );
    for asked in github.asked() {
        assert_eq!(asked.headers["authorization"], format!("Bearer {TOKEN}"));
        assert_eq!(asked.headers["x-github-api-version"], "2022-11-28");
    }
}

#[test]
fn no_baseline_is_an_empty_output() {
    let github = github();
    github.on(&of_run(7), artifacts(&[]));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outputs");
    let baseline = |branch: &str| {
        let mut command = github.command(folder.path());
        command
            .args(["baseline", "--github-output", "--branch", branch])
            .env("GITHUB_OUTPUT", &file);
        let output = command.output().expect("the binary runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let outputs = std::fs::read_to_string(&file).expect("outputs");
        std::fs::remove_file(&file).expect("outputs");
        (outputs, stdout(&output))
    };
    let (outputs, said) = baseline("release/1 #2");
    assert!(outputs.starts_with("run_id<<sweepctl_"), "{outputs}");
    assert_eq!(outputs.lines().nth(1), Some(""));
    assert!(said.contains("None of the 2 newest sweeps"), "{said}");
    assert!(
        github.requests()[0].contains("&branch=release%2F1%20%232&"),
        "{:?}",
        github.requests()
    );
    github.on(RUNS, runs(vec![]));
    assert!(baseline("trunk").1.contains("No sweep of the branch succeeded yet."));
}

#[test]
fn a_read_is_repeated_and_its_failure_told() {
    let github = github();
    let flaky = vec![
        Reply::text(502, "<html>Bad Gateway</html>"),
        Reply::message(503, "busy"),
        json!({ "default_branch": "trunk" }).into(),
    ];
    github.in_turn("GET /repos/acme/bench", flaky);
    assert_eq!(found(&github)["run-id"], 7);
    assert_eq!(
        github
            .requests()
            .iter()
            .filter(|what| *what == "GET /repos/acme/bench")
            .count(),
        3
    );
    github.on("GET /repos/acme/bench", Reply::text(502, "<html>\n::error::x\n"));
    let said = refused(&github);
    assert!(
        said.contains("GET /repos/acme/bench was answered with 502: <html>"),
        "{said}"
    );
    assert!(said.contains("githubstatus"), "{said}");
}

#[test]
fn a_refusal_names_the_permission_and_is_not_repeated() {
    let github = github();
    for (status, words) in [
        (401, &["Bad credentials", "GH_TOKEN"][..]),
        (
            403,
            &[
                "Resource not accessible by integration",
                "needs the permission `actions: read`",
            ],
        ),
        (
            404,
            &["Not Found", "check the name", "needs the permission `actions: read`"],
        ),
    ] {
        let github_says = words[0];
        github.on(RUNS, Reply::message(status, github_says));
        let before = github.requests().len();
        let said = refused(&github);
        assert!(words.iter().all(|word| said.contains(word)), "{status}: {said}");
        assert_eq!(github.requests().len() - before, 2, "{status}");
    }
    // What GitHub repeats of a token is not repeated here.
    github.on(RUNS, Reply::message(403, &format!("no good: {TOKEN}\n::warning::x")));
    let said = refused(&github);
    assert!(said.contains("no good: *** ::warning::x"), "{said}");
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970")
        .as_secs()
}

fn left(reply: impl Into<Reply>, remaining: u64, reset: u64) -> Reply {
    let reply = reply.into().header("x-ratelimit-limit", 1000);
    reply
        .header("x-ratelimit-remaining", remaining)
        .header("x-ratelimit-reset", reset)
}

#[test]
fn the_last_tenth_of_the_budget_is_not_read_away() {
    let github = github();
    let repository = json!({ "default_branch": "trunk" });
    github.on("GET /repos/acme/bench", left(repository.clone(), 99, now() + 1800));
    let said = refused(&github);
    assert!(
        said.contains("was not sent: 99 requests are left for the next 30 min"),
        "{said}"
    );
    assert!(said.contains("a tenth of the hour's requests is kept"), "{said}");
    assert_eq!(github.requests().len(), 1);
    // At the reserve's border, and with an hour that is over, there is no need to wait.
    for reply in [
        left(repository.clone(), 100, now() + 1800),
        left(repository, 3, now() - 5),
    ] {
        github.on("GET /repos/acme/bench", reply);
        assert_eq!(found(&github)["run-id"], 7);
    }
}

#[test]
fn a_short_wait_is_waited_for_and_a_long_one_is_told() {
    let github = github();
    let limited = Reply::message(403, "You have exceeded a secondary rate limit");
    github.in_turn(
        "GET /repos/acme/bench",
        vec![
            limited.clone().header("retry-after", 1),
            json!({ "default_branch": "trunk" }).into(),
        ],
    );
    assert_eq!(found(&github)["run-id"], 7);
    github.on("GET /repos/acme/bench", limited.header("retry-after", 3600));
    let said = refused(&github);
    assert!(said.contains("secondary rate limit"), "{said}");
    let used_up = Reply::message(403, "API rate limit exceeded for installation");
    github.on("GET /repos/acme/bench", left(used_up, 0, now() + 1200));
    let said = refused(&github);
    assert!(said.contains("0 requests are left for the next 20 min"), "{said}");
}

#[test]
fn answers_that_are_none_give_one_error_each() {
    let github = github();
    let what = "GET /repos/acme/bench";
    let not_expected = "was answered with something else than expected";
    for (reply, words) in [
        (Reply::text(200, ""), not_expected),
        (Reply::text(200, "<html>Welcome</html>"), not_expected),
        (Reply::text(200, "{\"default_branch\": 7}"), not_expected),
        (Reply::text(200, "{\"default_branch\": null}"), not_expected),
        (Reply::text(200, "[".repeat(100_000)), not_expected),
        (Reply::text(200, "null"), not_expected),
        (Reply::text(200, vec![0xff; 10]), not_expected),
        (Reply::text(200, vec![b' '; (32 << 20) + 1]), "it is larger than 32 MiB"),
        (Reply::text(304, ""), "was answered with 304"),
        (Reply::text(204, ""), not_expected),
        (Reply::text(418, "\u{1b}[2J"), "was answered with 418"),
    ] {
        github.on(what, reply);
        let said = refused(&github);
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(said.matches("error[").count(), 1, "{said}");
        assert!(!said.contains('\u{1b}'), "{said}");
    }
    // A list that is none, and a run without what every run has.
    github.on(what, json!({ "default_branch": "trunk" }));
    for body in [
        json!([]),
        json!({ "workflow_runs": {} }),
        json!({ "workflow_runs": [{ "id": "8" }] }),
    ] {
        github.on(RUNS, body);
        assert!(refused(&github).contains(not_expected));
    }
}

#[test]
fn nobody_who_listens_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let ask = |url: &str| {
        let mut command = sweepctl(folder.path());
        command
            .env("GITHUB_API_URL", url)
            .env("GITHUB_REPOSITORY", REPOSITORY)
            .env("GH_TOKEN", TOKEN);
        let output = command.arg("baseline").output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(1));
        stderr(&output)
    };
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    let said = ask(&format!("http://{closed}"));
    assert!(said.contains("got no answer") && said.contains("refused"), "{said}");
    let said = ask("http://api.github.com");
    assert!(said.contains("no https address"), "{said}");
}

#[test]
fn the_repository_is_named_or_found() {
    let github = github();
    let folder = tempfile::tempdir().expect("a folder");
    let ask = |repository: Option<&str>, more: &[&str]| {
        let mut command = github.command(folder.path());
        match repository {
            Some(name) => command.env("GITHUB_REPOSITORY", name),
            None => command.env_remove("GITHUB_REPOSITORY"),
        };
        command.arg("baseline").args(more).output().expect("the binary runs")
    };
    assert!(
        stderr(&ask(None, &[])).contains("not known which repository"),
        "no clone"
    );
    assert!(ask(None, &["--repo", "acme/bench"]).status.success());
    assert!(ask(Some("other/place"), &["--repo", "acme/bench"]).status.success());
    assert!(stderr(&ask(Some("no repository"), &[])).contains("GITHUB_REPOSITORY"));
    assert_eq!(ask(None, &["--repo", "../x"]).status.code(), Some(2));
    git(folder.path(), &["init", "-q"]);
    git(
        folder.path(),
        &["remote", "add", "origin", "git@github.com:acme/bench.git"],
    );
    assert!(ask(None, &[]).status.success());
}
