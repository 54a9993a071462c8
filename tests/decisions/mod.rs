//! `sweepctl decide`, `gate` and `verdict`: the real binary on real payloads and real repositories.

pub mod answers;
mod asking;
mod gate;
mod history;
mod locally;
pub mod payload;
mod verdict;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, LazyLock};

use serde_json::Value;
use sweepctl::config::labels::{BUILT_IN, Labels};
use sweepctl::config::source::Source;
use sweepctl::github::decide;
use sweepctl::github::event::Event;
use sweepctl::github::facts::{self, Missing};
use sweepctl::github::standing;
use sweepctl::repo::Repo;

use crate::support::{assert_none, lines_of_table, misses, stderr, stdout, sweepctl, write};
use history::History;
use payload::{Payload, has, payload};

pub static HISTORY: LazyLock<History> = LazyLock::new(History::new);

/// One row of the table.
pub struct Row {
    pub line: usize,
    pub text: &'static str,
    columns: Vec<&'static str>,
}

impl Row {
    pub fn column(&self, index: usize) -> &'static str {
        self.columns.get(index).copied().unwrap_or("")
    }

    pub fn payload(&self) -> Payload {
        payload(self.column(0), self.column(1), self.column(2), &HISTORY)
    }

    /// The words of the decision, sorted, and what is compared.
    fn wanted(&self) -> String {
        told(
            self.column(3).split_whitespace().map(str::to_owned).collect(),
            self.column(4),
        )
    }

    fn miss(&self, found: &str) -> String {
        format!(
            "line {}: {}\n  wanted {}\n  found  {found}",
            self.line,
            self.text,
            self.wanted()
        )
    }
}

fn told(mut words: Vec<String>, compared: &str) -> String {
    words.sort();
    format!("{} | {compared}", words.join(" "))
}

pub fn table() -> Vec<Row> {
    let lines = lines_of_table(include_str!("table.txt"));
    lines.map(|(line, text, columns)| Row { line, text, columns }).collect()
}

/// What a decision as JSON says, in the words of the table.
fn words(decision: &Value) -> String {
    let fields = decision.as_object().expect("a decision is an object");
    let words = fields.iter().filter_map(|(name, value)| match value {
        Value::Bool(true) => Some(name.clone()),
        Value::Number(number) => Some(format!("{name}={number}")),
        Value::String(text) if name.starts_with("eval-") => Some(format!("{name}={text}")),
        _ => None,
    });
    let text = |name: &str| HISTORY.name(decision[name].as_str().expect("a ref is text"));
    let compared = match (text("base-ref"), text("head-ref")) {
        ("", "") => "-".to_owned(),
        (base, head) => format!("{base}..{head}"),
    };
    told(words.collect(), &compared)
}

/// The binary with nothing of an event in its environment.
fn decider(folder: &Path) -> Command {
    let mut command = sweepctl(folder);
    for name in ["GITHUB_EVENT_PATH", "GITHUB_EVENT_NAME", "GITHUB_REF"] {
        command.env_remove(name);
    }
    command
}

fn decide_as_a_step(row: &Row, out: &Path) -> (Output, PathBuf) {
    let payload = row.payload();
    let event = write(out, &format!("{}.json", row.line), payload.body.to_string());
    let outputs = out.join(format!("{}.out", row.line));
    let github = row.github();
    let mut command = match &github {
        Some(github) => github.command(HISTORY.folder.path()),
        None => decider(HISTORY.folder.path()),
    };
    if has(row.column(2), "require-sweep") {
        let text = BUILT_IN.replace("require-sweep: false", "require-sweep: true");
        let labels = write(out, &format!("{}.yaml", row.line), text);
        command.arg("decide").arg("--labels").arg(labels);
    } else {
        command.arg("decide");
    }
    let output = command
        .arg("--github-output")
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_EVENT_PATH", event)
        .env("GITHUB_EVENT_NAME", payload.name)
        .env("GITHUB_OUTPUT", &outputs)
        .env("GITHUB_STEP_SUMMARY", out.join(format!("{}.md", row.line)))
        .output()
        .expect("the binary runs");
    (output, outputs)
}

/// Names and values of a file in the heredoc form.
fn read_outputs(path: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path).expect("outputs");
    let mut lines = text.lines();
    let mut outputs = Vec::new();
    while let Some((name, end)) = lines.next().and_then(|line| line.split_once("<<")) {
        let value: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
        outputs.push((name.to_owned(), value.join("\n")));
    }
    outputs
}

#[test]
fn every_event_is_decided_as_the_table_says() {
    let rows = table();
    assert!(rows.len() >= 80, "{} events", rows.len());
    let out = tempfile::tempdir().expect("a folder");
    let missed = misses(&rows, |row| {
        let (output, outputs) = decide_as_a_step(row, out.path());
        if !output.status.success() {
            let refused = output.status.code() == Some(1) && row.column(3) == "refused";
            let said = stderr(&output);
            let because = said.contains(row.column(5)) && stdout(&output).is_empty() && !outputs.exists();
            return (!refused || !because).then(|| row.miss(&said));
        }
        let decision: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let found = words(&decision);
        let reason = decision["reason"].as_str().expect("a reason");
        if found != row.wanted() || !reason.contains(row.column(5)) || !reason.ends_with('.') {
            return Some(row.miss(&format!("{found} because {reason}")));
        }
        same_as_outputs(&decision, &read_outputs(&outputs)).map(|difference| row.miss(&difference))
    });
    assert_none("decisions", rows.len(), &missed);
}

/// The outputs say the same as the JSON, every field of it, under names with `_`.
fn same_as_outputs(decision: &Value, outputs: &[(String, String)]) -> Option<String> {
    let fields = decision.as_object().expect("a decision is an object");
    let told: Vec<(String, String)> = fields
        .iter()
        .map(|(name, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            (name.replace('-', "_"), text)
        })
        .collect();
    (told != outputs).then(|| format!("outputs {outputs:?}"))
}

/// The decision of a row under other labels, in the table's words.
fn decide_with(row: &Row, labels: &Labels) -> String {
    let payload = row.payload();
    let open = || Repo::open(HISTORY.folder.path());
    let event = Event::parse(Some(&payload.name), &payload.body.to_string(), "event.json");
    let decision = event.map_err(Into::into).and_then(|event| {
        let mut facts = facts::gather(&event, open, Missing::Refuse)?;
        row.answer(&mut facts);
        Ok::<_, sweepctl::config::problem::Problems>(decide::decide(&event, &facts, &row.labels(labels))?)
    });
    match decision {
        Ok(decision) => words(&serde_json::to_value(decision).expect("JSON")),
        Err(_) => told(vec!["refused".to_owned()], "-"),
    }
}

/// The rows that labels decide otherwise than the table says.
pub fn missed(labels: &Labels) -> Vec<String> {
    let differs = |row: &Row| {
        let found = decide_with(row, labels);
        (found != row.wanted()).then(|| row.miss(&found))
    };
    table().iter().filter_map(differs).collect()
}

fn labels(text: &str) -> Labels {
    let source = Source::new("labels.yaml".to_owned(), text.to_owned());
    Labels::load(&Arc::new(source)).expect("labels")
}

/// The labels file with the names of two labels exchanged.
fn swapped(one: &str, other: &str) -> String {
    let swap = |line: &str| {
        let named = line.strip_prefix("  ").and_then(|rest| rest.split_once(':'));
        match named {
            Some((name, rest)) if name == one => format!("  {other}:{rest}"),
            Some((name, rest)) if name == other => format!("  {one}:{rest}"),
            _ => line.to_owned(),
        }
    };
    BUILT_IN.lines().map(swap).collect::<Vec<_>>().join("\n")
}

#[test]
fn exchanging_any_two_labels_breaks_the_table() {
    let rows = table();
    let built_in = labels(BUILT_IN);
    let names: Vec<&str> = standing::sweep_labels(&built_in).collect();
    let breaks = |labels: &Labels| rows.iter().any(|row| decide_with(row, labels) != row.wanted());
    assert!(!breaks(&built_in));
    let mut pairs = Vec::new();
    for (index, one) in names.iter().enumerate() {
        pairs.extend(names[index + 1..].iter().map(|other| (*one, *other)));
    }
    let missed = misses(&pairs, |(one, other)| {
        let text = swapped(one, other);
        assert_ne!(text, BUILT_IN, "{one}, {other}");
        (!breaks(&labels(&text))).then(|| format!("{one} and {other} can be exchanged and nothing differs"))
    });
    assert_none("pairs", pairs.len(), &missed);
}

#[test]
fn only_what_restarts_a_sweep_shares_its_concurrency_group() {
    let labels = labels(BUILT_IN);
    for row in table() {
        let payload = row.payload();
        let Ok(event) = Event::parse(Some(&payload.name), &payload.body.to_string(), "event.json") else {
            continue;
        };
        let group = standing::group(&event, &labels, 77, 1);
        let wanted = match row.column(3).split_whitespace().any(|word| word == "restarts") {
            true => "sweep-pr-12",
            // Two primary labels are said once more on everything that would restart a sweep.
            false if row.column(3) == "refused" && payload.name == "pull_request" => "sweep-pr-12",
            false => "sweep-run-77",
        };
        assert_eq!((group.name.as_str(), group.cancels), (wanted, true), "{}", row.text);
        // Started again, the run stays where it is and waits.
        let group = standing::group(&event, &labels, 77, 2);
        assert_eq!((group.name.as_str(), group.cancels), (wanted, false), "{}", row.text);
    }
}

#[test]
fn the_summary_says_the_decision_in_a_sentence() {
    let out = tempfile::tempdir().expect("a folder");
    let rows = table();
    let summary = |event: &str, labels: &str| {
        let row = rows
            .iter()
            .find(|row| row.column(0) == event && row.column(1) == labels)
            .unwrap_or_else(|| panic!("no row {event} with {labels}"));
        decide_as_a_step(row, out.path());
        std::fs::read_to_string(out.path().join(format!("{}.md", row.line))).expect("a summary")
    };
    assert_eq!(
        summary("labeled evals-only", "full-sweep-fail-fast evals-only"),
        "Sweep. The label `full-sweep-fail-fast` asks for a sweep, with `evals-only`. How: a canary first, no \
         throughput, the first failure of a matrix cancels its other jobs.\n"
    );
    assert_eq!(
        summary("labeled documentation", "documentation"),
        "No sweep. The label `documentation` does not concern sweeps.\n"
    );
}

#[test]
fn the_page_says_what_the_labels_file_and_the_outputs_are() {
    let page = std::fs::read_to_string(crate::support::project().join("docs/labels.md")).expect("the page");
    let labels = labels(BUILT_IN);
    let yes = |value: bool| if value { "yes" } else { "no" };
    let mut lines: Vec<String> = Vec::new();
    for (name, how) in &labels.primary {
        let points = if how.asked.trim_conc {
            "the lowest concurrency of each topology"
        } else {
            "all"
        };
        let first = if how.asked.fail_fast {
            "cancels the matrix"
        } else {
            "the rest goes on"
        };
        let (canary, reusable) = (yes(how.canary), yes(how.is_full()));
        lines.push(format!("| `{name}` | {points} | {canary} | {first} | {reusable} |"));
    }
    for line in &lines {
        assert!(page.contains(line.as_str()), "the page lacks {line}");
    }
    for (name, modifier) in &labels.modifiers {
        let line = page.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let line = line.unwrap_or_else(|| panic!("the page lacks {name}"));
        assert!(line.ends_with(&format!("| {} |", yes(modifier.reusable))), "{line}");
    }
    for (name, _) in decide::Decision::default().outputs() {
        assert!(page.contains(&format!("`{name}`")), "the page lacks the output {name}");
    }
    for bucket in sweepctl::matrix::bucket::Bucket::ALL {
        let job = sweepctl::github::needs::job_of(*bucket);
        assert!(
            gate::THROUGHPUT.contains(&job.as_str()) || gate::EVALS.contains(&job.as_str()),
            "{job}"
        );
    }
}
