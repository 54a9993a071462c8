//! `sweepctl reuse`: every rule of the table, what is said, and how much is asked for it.

use std::process::Output;

use serde_json::{Value, json};

use super::server::{GitHub, Reply, artifacts, comment, keeps_the_token, pull, run, runs, sha};
use crate::fixture::envelope;
use crate::support::{assert_none, lines_of_table, misses, stderr, stdout, write};

/// One row of the table.
struct Row {
    line: usize,
    text: &'static str,
    columns: Vec<&'static str>,
}

impl Row {
    /// What is asked.
    fn args(&self) -> Vec<&'static str> {
        let words: Vec<&str> = self.column(0).split_whitespace().collect();
        let plan = words.contains(&"plan").then_some(["--plan", "plan.json"]);
        let new = words.contains(&"new").then_some(["--pr", "12"]);
        plan.into_iter().chain(new).flatten().collect()
    }

    fn column(&self, index: usize) -> &'static str {
        self.columns.get(index).copied().unwrap_or("")
    }

    /// The server that says what the row says.
    fn github(&self) -> GitHub {
        let github = GitHub::new();
        let labels: Vec<&str> = self.column(1).split_whitespace().collect();
        let words = self.column(0).split_whitespace().filter(|word| *word != "plan");
        let mut named = pull(&labels);
        named["merged_at"] = Value::Null;
        named["state"] = json!("open");
        github.on("GET /repos/acme/bench/pulls/12", named);
        let pulls = words.filter(|word| *word != "new").map(|word| {
            let mut pull = pull(&labels);
            match word {
                "open" => {
                    pull["merged_at"] = Value::Null;
                    pull["number"] = json!(14);
                }
                number => pull["number"] = json!(number.parse::<u64>().expect("a number")),
            }
            pull
        });
        let comments = items(self.column(2)).enumerate().map(|(index, text)| {
            let (who, body) = text.split_once(": ").expect("who says what");
            let (association, may) = who
                .strip_suffix(')')
                .and_then(|who| who.split_once('('))
                .unwrap_or((who, "write"));
            let path = format!(
                "GET /repos/acme/bench/collaborators/{}/permission",
                association.to_lowercase()
            );
            match may {
                "gone" => github.on(&path, Reply::message(404, "Not Found")),
                "unseen" => github.on(&path, Reply::message(403, "Resource not accessible by integration")),
                may => github.on(
                    &path,
                    json!({ "permission": may, "role_name": may, "user": { "login": "x" } }),
                ),
            };
            let body = body.replace("\\n", "\n").replace("\\r", "\r");
            comment(index as u64, &association.to_lowercase(), association, &body)
        });
        let mut all = Vec::new();
        for text in items(self.column(3)) {
            let (mut run, names) = of_text(text);
            let plan = run.as_object_mut().and_then(|run| run.remove("plan"));
            let id = run["id"].as_u64().expect("a number");
            let path = format!("GET /repos/acme/bench/actions/runs/{id}");
            github.on(&path, run.clone());
            github.on(&format!("{path}/artifacts"), artifacts(&names));
            let same = plan.as_ref().is_some_and(|plan| plan == "same");
            let same: &[(&str, bool)] = if same { &[("plan-x", false)] } else { &[] };
            let query = format!("{path}/artifacts?name=plan-{}&per_page=100&page=1", digest());
            github.on(&query, artifacts(same));
            for name in ["results_bmk", "eval_results_all"] {
                let named: Vec<(&str, bool)> = names.iter().filter(|(known, _)| *known == name).copied().collect();
                let query = format!("{path}/artifacts?name={name}&per_page=100&page=1");
                github.on(&query, artifacts(&named));
            }
            all.push(run);
        }
        github
            .on(
                &format!("GET /repos/acme/bench/commits/{}/pulls", sha('f')),
                json!(pulls.collect::<Vec<_>>()),
            )
            .on(
                "GET /repos/acme/bench/issues/12/comments",
                json!(comments.collect::<Vec<_>>()),
            )
            .on(
                "GET /repos/acme/bench/pulls/12/commits",
                json!([{ "sha": sha('d') }, { "sha": sha('b') }]),
            )
            .on("GET /repos/acme/bench/actions/workflows/run-sweep.yml/runs", runs(all));
        github
    }
}

fn items(column: &str) -> impl Iterator<Item = &str> {
    column.split(" ; ").map(str::trim).filter(|text| !text.is_empty())
}

/// `number conclusion [field=value]: artifacts`
fn of_text(text: &'static str) -> (Value, Vec<(&'static str, bool)>) {
    let (head, names) = text.split_once(':').expect("artifacts");
    let mut words = head.split_whitespace();
    let id = words.next().and_then(|word| word.parse().ok()).expect("a number");
    let mut run = run(id, words.next().expect("a conclusion"));
    if run["conclusion"] == "-" {
        run["conclusion"] = Value::Null;
    }
    for (field, value) in words.map(|word| word.split_once('=').expect("a field")) {
        match field {
            "commit" => run["head_sha"] = json!(sha(value.chars().next().expect("a digit"))),
            "from" => run["head_repository"] = json!({ "full_name": value }),
            field => run[field] = json!(value),
        }
    }
    let expired = |name: &'static str| match name.strip_suffix('!') {
        Some(name) => (name, true),
        None => (name, false),
    };
    (run, names.split_whitespace().map(expired).collect())
}

fn table() -> Vec<Row> {
    let lines = lines_of_table(include_str!("reuse.txt"));
    lines.map(|(line, text, columns)| Row { line, text, columns }).collect()
}

/// The plan of the commit.
fn plan() -> Value {
    json!([envelope("00000000000a", 8), envelope("00000000000b", 16)])
}

fn digest() -> String {
    let plan: Vec<sweepctl::matrix::envelope::Envelope> = serde_json::from_value(plan()).expect("a plan");
    sweepctl::plan_files::digest(&plan)
}

fn decide(github: &GitHub) -> Output {
    decide_with(github, &[])
}

fn decide_with(github: &GitHub, more: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "plan.json", plan().to_string());
    let mut command = github.command(folder.path());
    let output = command.args(["reuse", "--commit", &sha('f')]).args(more).output();
    let output = output.expect("the binary runs");
    keeps_the_token(&output);
    output
}

#[test]
fn every_rule_is_kept_as_the_table_says() {
    let rows = table();
    assert!(rows.len() >= 120, "{} rows", rows.len());
    let missed = misses(&rows, |row| {
        let github = row.github();
        let output = decide_with(&github, &row.args());
        let said = stderr(&output);
        let Ok(decision) = serde_json::from_slice::<Value>(&output.stdout) else {
            return Some(format!("line {}: {}\n  {said}", row.line, row.text));
        };
        let mut found = decision["outcome"].as_str().expect("an outcome").to_owned();
        if let Some(id) = decision["run-id"].as_u64() {
            found.push_str(&format!(" {id}"));
        }
        let refused = output.status.code() == Some(1) && found == "refuse";
        let told = if refused { said } else { decision["reason"].to_string() };
        let pin = decision["command"].as_str().unwrap_or_default();
        let right = found == row.column(4)
            && (refused || output.status.success())
            && told.contains(row.column(5))
            && pin == row.column(6)
            && (pin.is_empty() || !refused || told.contains(&format!("comment `{pin}` on pull request 12")));
        (!right).then(|| format!("line {}: {}\n  found {found}, pin {pin:?}: {told}", row.line, row.text))
    });
    assert_none("rules", rows.len(), &missed);
}

/// The row whose text starts so.
fn row(text: &'static str) -> Row {
    Row {
        line: 0,
        text,
        columns: text.split('|').map(str::trim).collect(),
    }
}

#[test]
fn a_step_gets_outputs_only_where_it_may_go_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("outputs");
    let ask = |text: &'static str| {
        let _ = std::fs::remove_file(&file);
        let github = row(text).github();
        let mut command = github.command(folder.path());
        command
            .args(["reuse", "--github-output"])
            .env("GITHUB_SHA", sha('f'))
            .env("GITHUB_OUTPUT", &file);
        command.env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md"));
        let output = command.output().expect("the binary runs");
        keeps_the_token(&output);
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let values: Vec<String> = text
            .lines()
            .filter(|line| !line.contains("sweepctl_"))
            .map(str::to_owned)
            .collect();
        (output.status.code(), values)
    };
    let (code, values) =
        ask("12 | full-sweep-enabled | MEMBER: /reuse-sweep-run 101 | 101 failure: results_bmk bmk_agentic_x");
    assert_eq!(code, Some(0));
    assert_eq!(values[..5], ["true", "101", "false", "", r#"["results_bmk"]"#]);
    assert_eq!(
        values[5],
        "Run 101 of bbbbbbbbb in pull request 12 stands in, as `member` asked."
    );
    let (code, values) = ask("12 | full-sweep-enabled | MEMBER: /reuse-sweep-run | 101 success: bmk_agentic_x");
    assert_eq!(
        (code, &values[..5]),
        (
            Some(0),
            &["true", "101", "true", "", r#"["bmk_agentic"]"#].map(str::to_owned)[..]
        )
    );
    let (code, values) = ask("12 | full-sweep-enabled | | 101 success: results_bmk");
    assert_eq!((code, values[0].as_str(), values[1].as_str()), (Some(0), "false", ""));
    let (code, values) = ask("12 | sweep-enabled | MEMBER: /reuse-sweep-run | 101 success: results_bmk");
    assert_eq!((code, values), (Some(1), Vec::new()));
}

#[test]
fn every_run_that_was_passed_over_is_named_with_its_reason() {
    let github = row(
        "12 | full-sweep-enabled | MEMBER: /reuse-sweep-run | 106 - status=in_progress: ; 105 success commit=c: ; \
         104 success: plan ; 103 success: results_bmk! ; 102 failure: results_bmk ; 101 timed_out: results_bmk",
    )
    .github();
    let folder = tempfile::tempdir().expect("a folder");
    let summary = folder.path().join("summary.md");
    let mut command = github.command(folder.path());
    command
        .args(["reuse", "--commit", &sha('f')])
        .env("GITHUB_STEP_SUMMARY", &summary);
    let output = command.output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    let decision: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let told: Vec<(u64, &str)> = decision["candidates"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| {
            (
                one["run-id"].as_u64().expect("a number"),
                one["reason"].as_str().expect("a reason"),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (106, "it has not ended yet"),
            (
                105,
                "its commit ccccccccc is not in pull request 12, and whether it planned what fffffffff does is not known \
                 without --plan"
            ),
            (104, "it left no results: it swept nothing"),
            (103, "its results have expired"),
            (102, "it ended as `failure`, and is not pinned"),
            (101, "it ended as `timed_out`"),
        ]
    );
    let summary = std::fs::read_to_string(summary).expect("a summary");
    for part in [
        "| 104 | bbbbbbbbb | no |",
        "| 102 | bbbbbbbbb | if pinned |",
        "```text\n/reuse-sweep-run 102\n```",
    ] {
        assert!(summary.contains(part), "{part}: {summary}");
    }
}

#[test]
fn little_is_asked() {
    let asked = |text: &'static str| {
        let github = row(text).github();
        decide(&github);
        github.requests().len()
    };
    // The pull request and its comments; then what their writer may do, commits, runs, and artifacts.
    assert_eq!(asked("12 | full-sweep-enabled | | 101 success: results_bmk"), 2);
    assert_eq!(
        asked("12 | full-sweep-enabled | MEMBER: /reuse-sweep-run | 101 success: results_bmk"),
        6
    );
    // A pinned run needs no list, and a run that cannot stand in no artifacts.
    assert_eq!(
        asked("12 | full-sweep-enabled | MEMBER: /reuse-sweep-run 101 | 102 success: ; 101 success: results_bmk"),
        6
    );
    assert_eq!(
        asked("12 | full-sweep-enabled | MEMBER: /reuse-sweep-run | 102 success event=push: ; 101 timed_out: "),
        5
    );
    // A run without results costs one.
    let many: Vec<String> = (0..90).map(|id| format!("{} success: plan", 900 - id)).collect();
    let text = format!(
        "12 | full-sweep-enabled | MEMBER: /reuse-sweep-run | {}",
        many.join(" ; ")
    );
    assert_eq!(asked(text.leak()), 5 + 90);
}

/// A page of the list of runs: a hundred that left nothing, then those that are given.
fn page_of_runs(github: &GitHub, page: u64, more: Vec<Value>) {
    let nothing = (0..100 - more.len() as u64).map(|n| {
        let id = 10_000 - 100 * page - n;
        github.on(
            &format!("GET /repos/acme/bench/actions/runs/{id}/artifacts"),
            artifacts(&[("sweepctl", false)]),
        );
        run(id, "success")
    });
    let all: Vec<Value> = nothing.chain(more).collect();
    let query = format!("?event=pull_request&branch=topic&per_page=100&page={page}");
    let path = format!("GET /repos/acme/bench/actions/workflows/run-sweep.yml/runs{query}");
    github.on(&path, runs(all));
}

#[test]
fn runs_that_did_nothing_are_passed_over_page_by_page() {
    let github = row("12 | full-sweep-enabled | MEMBER: /reuse-sweep-run | 101 success: results_bmk").github();
    page_of_runs(&github, 1, Vec::new());
    page_of_runs(&github, 2, Vec::new());
    page_of_runs(&github, 3, vec![run(101, "success")]);
    let output = decide(&github);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("Run 101"), "{}", stdout(&output));
    // The search ends somewhere, says where, and how to go on.
    for page in 3..=5 {
        page_of_runs(&github, page, Vec::new());
    }
    let output = decide(&github);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("300 runs looked at"), "{said}");
    assert!(
        said.contains(
            "The search stopped there, for 300 runs were looked into: `/reuse-sweep-run RUN` pins an older one"
        ),
        "{said}"
    );
}

#[test]
fn of_a_large_run_each_kind_of_result_is_looked_for_on_its_own() {
    let github = row("12 | full-sweep-enabled | MEMBER: /reuse-sweep-run | 101 success: ").github();
    let path = "GET /repos/acme/bench/actions/runs/101/artifacts?";
    let logs: Vec<(String, bool)> = (0..100).map(|n| (format!("server_logs_{n}"), false)).collect();
    let logs: Vec<(&str, bool)> = logs.iter().map(|(name, expired)| (name.as_str(), *expired)).collect();
    let page = |names: &[(&str, bool)]| {
        let mut page = artifacts(names);
        page["total_count"] = json!(240);
        page
    };
    // Its throughput was never collected: the evals must not hide the single agentic results.
    github
        .on(&format!("{path}per_page=100&page=1"), page(&logs))
        .on(&format!("{path}per_page=100&page=2"), page(&logs))
        .on(
            &format!("{path}per_page=100&page=3"),
            page(&[("bmk_agentic_x_0123456789ab", false)]),
        )
        .on(&format!("{path}name=results_bmk&per_page=100&page=1"), artifacts(&[]))
        .on(
            &format!("{path}name=eval_results_all&per_page=100&page=1"),
            artifacts(&[("eval_results_all", false)]),
        );
    let output = decide(&github);
    let decision: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(decision["artifacts"], json!(["eval_results_all", "bmk_agentic"]));
}

#[test]
fn what_could_not_be_seen_of_a_writer_is_said() {
    let github = row("12 | full-sweep-enabled | MEMBER(unseen): /reuse-sweep-run | 101 success: results_bmk").github();
    let output = decide(&github);
    let decision: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let note = decision["notes"][0].as_str().expect("a note");
    assert!(
        note.contains("whether `member` has `admin` or `write` cannot be seen")
            && note.contains("counts by its author's association, `MEMBER`"),
        "{note}"
    );
    assert!(stderr(&output).contains("cannot be seen"), "{}", stderr(&output));
}

#[test]
fn a_commit_that_is_not_swept_again_has_the_verdict_of_the_run_that_stands_in() {
    for (conclusion, verdict) in [
        ("success", "success"),
        ("failure", "failure"),
        ("cancelled", "cancelled"),
    ] {
        let text = format!(
            "new plan | full-sweep-enabled | MEMBER: /reuse-sweep-run 101 | 101 {conclusion} plan=same: results_bmk"
        );
        let row = row(text.leak());
        let output = decide_with(&row.github(), &row.args());
        let decision: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(decision["verdict"], verdict);
    }
    // A push takes over results, whose verdict is that of the push.
    let github = row("12 | full-sweep-enabled | MEMBER: /reuse-sweep-run 101 | 101 failure: results_bmk").github();
    let decision: Value = serde_json::from_slice(&decide(&github).stdout).expect("JSON");
    assert_eq!(decision["verdict"], Value::Null);
}

#[test]
fn the_latest_comment_is_found_on_its_page() {
    let github = row("12 | full-sweep-enabled | | 102 success: results_bmk ; 101 success: results_bmk").github();
    github.on(
        "GET /repos/acme/bench/collaborators/alice/permission",
        json!({ "permission": "admin", "role_name": "admin" }),
    );
    let path = "GET /repos/acme/bench/issues/12/comments?per_page=100&page=";
    let chatter = |page: u64| -> Vec<Value> {
        (0..100)
            .map(|n| comment(page * 100 + n, "eve", "NONE", "/reuse-sweep-run 101"))
            .collect()
    };
    let mut last = chatter(2);
    last.truncate(40);
    last[5] = comment(205, "alice", "OWNER", "/reuse-sweep-run 102");
    github
        .on(&format!("{path}1"), json!(chatter(0)))
        .on(&format!("{path}2"), json!(chatter(1)))
        .on(&format!("{path}3"), json!(last));
    let output = decide(&github);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("Run 102"), "{}", stdout(&output));
    // More comments than are read: the latest is not known, and nothing is guessed.
    github.on("GET /repos/acme/bench/issues/12/comments", json!(chatter(0)));
    for page in 1..=3 {
        github.on(&format!("{path}{page}"), json!(chatter(page)));
    }
    let output = decide(&github);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("more than the 3000 comments"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_merge_without_authorization_may_be_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let labels = sweepctl::config::labels::BUILT_IN;
    let text = labels
        .replace("unauthorized-merge: sweep", "unauthorized-merge: refuse")
        .replace("/reuse-sweep-run", "/take-over")
        .replace("[OWNER, MEMBER, COLLABORATOR]", "[OWNER, CONTRIBUTOR]");
    assert_ne!(text, labels);
    write(folder.path(), "configs/labels.yaml", text);
    let ask = |text: &'static str| {
        let github = row(text).github();
        let mut command = github.command(folder.path());
        command
            .args(["reuse", "--commit", &sha('f')])
            .output()
            .expect("the binary runs")
    };
    let output =
        ask("12 | full-sweep-enabled | MEMBER: /take-over ; OWNER: /reuse-sweep-run | 101 success: results_bmk");
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("no comment `/take-over` by an `OWNER` or `CONTRIBUTOR`"),
        "{said}"
    );
    assert!(said.contains("comment `/take-over` on pull request 12"), "{said}");
    let output = ask("  | full-sweep-enabled | | ");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("merge through a pull request"),
        "{}",
        stderr(&output)
    );
    assert!(
        ask("12 | full-sweep-enabled | CONTRIBUTOR: /take-over | 101 success: results_bmk")
            .status
            .success()
    );
}

#[test]
fn what_cannot_be_asked_fails_closed() {
    let text = "12 | full-sweep-enabled | MEMBER: /reuse-sweep-run | 101 success: results_bmk";
    for path in [
        &format!("GET /repos/acme/bench/commits/{}/pulls", sha('f')),
        "GET /repos/acme/bench/issues/12/comments",
        "GET /repos/acme/bench/pulls/12/commits",
        "GET /repos/acme/bench/actions/workflows/run-sweep.yml/runs",
        "GET /repos/acme/bench/actions/runs/101/artifacts",
    ] {
        let github = row(text).github();
        github.on(path, Reply::message(403, "Resource not accessible by integration"));
        let output = decide(&github);
        assert_eq!(output.status.code(), Some(1), "{path}");
        assert!(output.stdout.is_empty(), "{path}");
        assert!(
            stderr(&output).contains("Resource not accessible"),
            "{path}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn what_strangers_say_is_no_command() {
    let github = row("12 | full-sweep-enabled | | 101 success: results_bmk").github();
    github.on(
        "GET /repos/acme/bench/collaborators/mal%0A%3A%3Aerror%3A%3Alory/permission",
        json!({ "permission": "write" }),
    );
    let body = "/reuse-sweep-run 1\u{1b}[31m`x`::error::y<b>@team</b>\n::set-output name=reuse::true";
    github.on(
        "GET /repos/acme/bench/issues/12/comments",
        json!([comment(1, "mal\n::error::lory", "MEMBER", body)]),
    );
    let output = decide(&github);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output) + &stdout(&output);
    assert!(said.contains("is not the number of a run"), "{said}");
    assert!(
        !said.contains('\u{1b}') && !said.lines().any(|line| line.starts_with("::")),
        "{said}"
    );
}
