//! The table of events: which jobs run for each event, and which events restart a sweep.

use std::collections::BTreeMap;
use std::sync::Arc;

use sweepctl::config::labels::{BUILT_IN, Labels};
use sweepctl::config::source::Source;
use sweepctl::github::decide::Facts;
use sweepctl::github::event::Event;
use sweepctl::github::facts::{self, Missing};
use sweepctl::github::standing;
use sweepctl::repo::Repo;
use sweepctl::workflow::check::Files;
use sweepctl::workflow::simulate::{Faults, Simulation};

use super::{PLANS, lines, parsed, rendered};
use crate::decisions::{HISTORY, Row, table as decisions};
use crate::support::{assert_none, misses, misses_until};

/// The table: which events start the workflow, and the words that each job asks for.
struct Table {
    starts: Vec<&'static str>,
    jobs: BTreeMap<&'static str, Vec<&'static str>>,
}

fn table() -> Table {
    let (mut starts, mut jobs) = (Vec::new(), BTreeMap::new());
    for (line, columns) in lines(include_str!("events.txt")) {
        let words = columns
            .get(1)
            .map(|words| words.split_whitespace().collect())
            .unwrap_or_default();
        match (columns[0], columns[0].strip_prefix("job ")) {
            ("starts", _) => starts = words,
            (_, Some(job)) => drop(jobs.insert(job.trim(), words)),
            _ => panic!("line {line}: neither a job nor what starts it"),
        }
    }
    Table { starts, jobs }
}

impl Table {
    fn starts(&self, row: &Row) -> bool {
        let event = row.column(0);
        self.starts.iter().any(|start| match start.split_once('-') {
            Some((kind, branch)) => event.split_once(' ') == Some((kind, branch)),
            None => event.split(' ').next() == Some(start),
        })
    }
}

fn words(row: &Row) -> Vec<&'static str> {
    let kind = row.column(0).split(' ').next().unwrap_or_default();
    let event = if matches!(kind, "push" | "merge_group") {
        kind
    } else {
        "pull"
    };
    row.column(3).split_whitespace().chain([event]).collect()
}

/// Plays a row of the decisions' table.
fn play(row: &Row, files: &Files<'_>, labels: &Labels) -> Result<Simulation, String> {
    let payload = row.payload();
    let event = Event::parse(Some(&payload.name), &payload.body.to_string(), "event.json");
    let mut facts = match &event {
        Ok(event) => facts::gather(event, || Repo::open(HISTORY.folder.path()), Missing::Refuse)
            .map_err(|problems| problems.to_string())?,
        Err(_) => Facts::default(),
    };
    row.answer(&mut facts);
    let plan = |canary: bool, evals_only: bool| {
        let name = match (evals_only, canary) {
            (true, _) => "evals",
            (false, true) => "full canary",
            (false, false) => "full",
        };
        PLANS.get(name).clone()
    };
    super::play(
        files,
        "run-sweep",
        &row.labels(labels),
        (&payload.name, &payload.body),
        &facts,
        plan,
        Faults::default(),
    )
}

/// Matrices, also those of called workflows, that cancel the rest after a failure where they should not, or do not.
fn wrong_fail_fast(played: &Simulation, wanted: bool) -> Vec<String> {
    let mut found = Vec::new();
    for bucket in played.jobs.iter().filter(|job| job.job.starts_with("sweep-")) {
        let inside = bucket
            .legs
            .iter()
            .flat_map(|leg| &leg.jobs)
            .map(|job| (format!("{}/{}", bucket.job, job.job), job));
        for (path, job) in [(bucket.job.clone(), bucket)].into_iter().chain(inside) {
            if let Some(fail_fast) = job.fail_fast.filter(|fail_fast| *fail_fast != wanted) {
                found.push(format!("fail-fast of {path} is {fail_fast}"));
            }
        }
    }
    found
}

/// What differs between workflows under labels and the table; sought until some words are said.
pub fn missed(sources: &[Arc<Source>], labels: &Labels, until: Option<&str>) -> Vec<String> {
    let (table, files, rows) = (table(), parsed(sources), decisions());
    misses_until(&rows, until, |row| {
        let said = match play(row, &files, labels) {
            Ok(played) => table.differences(row, &played),
            Err(error) => vec![error],
        };
        (!said.is_empty()).then(|| format!("line {}: {}\n  {}", row.line, row.text, said.join("\n  ")))
    })
}

impl Table {
    fn differences(&self, row: &Row, played: &Simulation) -> Vec<String> {
        let words = words(row);
        let mut said = wrong_fail_fast(played, words.contains(&"fail-fast"));
        for job in &played.jobs {
            let Some(asked) = self.jobs.get(job.job.as_str()) else {
                said.push(format!(
                    "the table does not say when {} runs: add a line to events.txt",
                    job.job
                ));
                continue;
            };
            let has = |word: &&str| match word.strip_prefix('!') {
                Some(without) => !words.contains(&without),
                None => words.contains(word),
            };
            if asked.iter().all(has) != job.runs {
                let found = if job.runs { "runs" } else { "does not run" };
                said.push(format!("{} {found} ({})", job.job, job.why));
            }
        }
        if played.starts != self.starts(row) {
            said.push(format!("starts: {} ({})", played.starts, played.why));
        } else if played.starts {
            said.extend(self.wrong_start(row, &words, played));
        }
        said
    }

    /// What is wrong with a run that starts as it should: its jobs, its verdict, its group.
    fn wrong_start(&self, row: &Row, words: &[&str], played: &Simulation) -> Vec<String> {
        let unknown = self.jobs.keys().filter(|job| played.job(job).is_none());
        let mut said: Vec<String> = unknown
            .map(|job| format!("the workflow has no job {job}: take its line out of events.txt"))
            .collect();
        let refused = words.contains(&"refused");
        let verdict = if refused || words.contains(&"blocked") {
            "failure"
        } else {
            "success"
        };
        let found = played.job("verdict").map(|job| (job.result.as_str(), job.why.as_str()));
        if found.map(|(result, _)| result) != Some(verdict) {
            said.push(format!("the verdict is {found:?}, not {verdict}"));
        }
        // What is refused is said where branches see it, but for drafts.
        let decides = words.contains(&"decides") || (refused && !row.column(2).contains("draft"));
        let name = if decides { "Verdict" } else { "No verdict" };
        let found = played
            .job("verdict")
            .map(|job| job.legs.iter().map(|leg| leg.name.as_str()).collect());
        if found != Some(vec![name]) {
            said.push(format!("the verdict is called {found:?}, not {name}"));
        }
        // Two primary labels are said once more on everything that would restart a sweep.
        let restarts = words.contains(&"restarts") || (refused && words.contains(&"pull"));
        let group = if restarts { "sweep-pr-12" } else { "sweep-run-1" };
        if played.group != group || !played.cancels {
            let (found, cancels) = (&played.group, played.cancels);
            said.push(format!("the group is {found} (cancels: {cancels}), not {group}"));
        }
        said
    }
}

fn labels() -> Labels {
    Labels::load(&Arc::new(Source::new("labels.yaml", BUILT_IN))).expect("labels")
}

#[test]
fn jobs_run_as_the_table_of_events_says() {
    let rows = decisions();
    let starting = rows.iter().filter(|row| table().starts(row)).count();
    assert!(starting >= 80, "{starting} events start the workflow");
    assert_none("events", rows.len(), &missed(&rendered(), &labels(), None));
}

/// The group's expression says what `standing::group` says, so `decide` and the workflow cannot come apart.
#[test]
fn the_rendered_group_is_that_of_the_decision() {
    let (table, labels, sources) = (table(), labels(), rendered());
    let files = parsed(&sources);
    let rows: Vec<Row> = decisions().into_iter().filter(|row| table.starts(row)).collect();
    let missed = misses(&rows, |row| {
        let payload = row.payload();
        let event = Event::parse(Some(&payload.name), &payload.body.to_string(), "event.json").ok()?;
        let wanted = standing::group(&event, &labels, 1, 1).name;
        let group = play(row, &files, &labels)
            .map(|played| played.group)
            .unwrap_or_else(|error| error);
        (group != wanted).then(|| format!("line {}: {}\n  {group}, not {wanted}", row.line, row.text))
    });
    assert_none("groups", rows.len(), &missed);
}
