//! The tables of faults: which jobs run when something goes wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use sweepctl::config::labels::{BUILT_IN, Labels};
use sweepctl::config::source::Source;
use sweepctl::github::decide::Facts;
use sweepctl::github::needs::{JobResult, job_of};
use sweepctl::matrix::bucket::Bucket;
use sweepctl::workflow::check::Files;
use sweepctl::workflow::simulate::{Faults, Simulation};

use super::{PLANS, lines, parsed, rendered};
use crate::support::{assert_none, misses_until};

/// The workflows that have a table, and its text.
const TABLES: [(&str, &str); 2] = [
    ("run-sweep", include_str!("faults.txt")),
    ("e2e-tests", include_str!("faults-e2e.txt")),
];

/// One case of a table.
struct Case {
    workflow: &'static str,
    name: &'static str,
    event: &'static str,
    plan: &'static str,
    faults: &'static str,
    verdict: &'static str,
}

/// A table.
struct Table {
    workflow: &'static str,
    cases: Vec<Case>,
    /// The cases in which each job starts.
    jobs: BTreeMap<&'static str, BTreeSet<&'static str>>,
}

fn table((workflow, text): (&'static str, &'static str)) -> Table {
    let (mut cases, mut groups, mut jobs) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for (line, columns) in lines(text) {
        let (kind, name) = columns[0]
            .split_once(' ')
            .unwrap_or_else(|| panic!("line {line}: what is it of?"));
        let name = name.trim();
        let names: BTreeSet<&str> = cases.iter().map(|case: &Case| case.name).collect();
        let among = |word: &str| -> BTreeSet<&'static str> {
            let of_group = groups.get(word).cloned();
            let one = || names.get(word).map(|name| BTreeSet::from([*name]));
            of_group
                .or_else(one)
                .unwrap_or_else(|| panic!("line {line}: no case or group is called {word}"))
        };
        match (kind, columns.as_slice()) {
            ("case", [_, event, plan, faults, verdict]) => cases.push(Case {
                workflow,
                name,
                event,
                plan,
                faults,
                verdict,
            }),
            ("group", [_, words]) => {
                let members = words.split_whitespace().flat_map(among).collect();
                groups.insert(name, members);
            }
            ("job", [_, words]) => {
                let mut runs = BTreeSet::new();
                for word in words.split_whitespace() {
                    match (word, word.strip_prefix('-')) {
                        ("*", _) => runs = names.clone(),
                        (_, Some(less)) => runs = runs.difference(&among(less)).copied().collect(),
                        (more, None) => runs.extend(among(more)),
                    }
                }
                jobs.insert(name, runs);
            }
            _ => panic!("line {line}: neither a case with five columns nor a group or job with two"),
        }
    }
    Table { workflow, cases, jobs }
}

impl Case {
    fn payload(&self) -> (&'static str, Json) {
        if self.event == "dispatch" {
            return (
                "workflow_dispatch",
                json!({ "inputs": { "base-ref": "main", "head-ref": "topic" }, "ref": "refs/heads/main" }),
            );
        }
        let home = json!({ "full_name": "acme/bench", "default_branch": "main" });
        if self.event == "push" {
            let hash = |digit: &str| digit.repeat(40);
            return (
                "push",
                json!({ "ref": "refs/heads/main", "before": hash("a"), "after": hash("b"), "repository": home }),
            );
        }
        let label = match self.event {
            "canary" | "fork" => "full-sweep-enabled",
            "plain" => "non-canary-full-sweep-enabled",
            other => panic!("{}: no event is called {other}", self.name),
        };
        let head = if self.event == "fork" {
            json!({ "full_name": "somebody/bench" })
        } else {
            home.clone()
        };
        let payload = json!({
            "action": "labeled", "label": { "name": label }, "repository": home,
            "pull_request": {
                "number": 12, "state": "open", "draft": false, "labels": [{ "name": label }],
                "base": { "sha": "a".repeat(40), "ref": "main", "repo": home },
                "head": { "sha": "b".repeat(40), "ref": "topic", "repo": head },
            },
        });
        ("pull_request", payload)
    }

    fn faults(&self) -> Faults {
        let mut faults = Faults::default();
        for word in self.faults.split_whitespace() {
            if let Some(job) = word.strip_prefix('!') {
                faults.cancelled_in = Some(job.to_owned());
                continue;
            }
            let (jobs, result) = word.split_once('=').expect("JOB=RESULT");
            if let Some((job, output)) = jobs.split_once('.') {
                let output = (job.to_owned(), output.to_owned());
                faults.outputs.insert(output, result.to_owned());
                continue;
            }
            let result: JobResult = serde_json::from_value(json!(result)).expect("a result");
            let buckets = |evals: bool| {
                let all = Bucket::ALL.iter().filter(move |bucket| bucket.is_eval() == evals);
                all.map(|bucket| job_of(*bucket)).collect()
            };
            let jobs = match jobs {
                "THROUGHPUT" => buckets(false),
                "EVALS" => buckets(true),
                one => vec![one.to_owned()],
            };
            faults.results.extend(jobs.into_iter().map(|job| (job, result)));
        }
        faults
    }

    fn play(&self, files: &Files<'_>, labels: &Labels) -> Result<Simulation, String> {
        let (name, payload) = self.payload();
        let plan = |_, _| PLANS.get(self.plan).clone();
        let facts = Facts {
            base: "a".repeat(40),
            head: "b".repeat(40),
            ..Facts::default()
        };
        super::play(
            files,
            self.workflow,
            labels,
            (name, &payload),
            &facts,
            plan,
            self.faults(),
        )
    }
}

/// What differs between workflows and their tables; sought until some words are said.
pub fn missed(sources: &[Arc<Source>], until: Option<&str>) -> Vec<String> {
    let files = parsed(sources);
    let labels = Labels::load(&Arc::new(Source::new("labels.yaml", BUILT_IN))).expect("labels");
    let differences = |table: Table| {
        misses_until(&table.cases, until, |case| {
            let said = match case.play(&files, &labels) {
                Ok(played) => table.differences(case, &played),
                Err(error) => vec![error],
            };
            (!said.is_empty()).then(|| format!("{} of {}:\n  {}", case.name, table.workflow, said.join("\n  ")))
        })
    };
    TABLES.map(table).into_iter().flat_map(differences).collect()
}

impl Table {
    fn differences(&self, case: &Case, played: &Simulation) -> Vec<String> {
        let mut said = Vec::new();
        for job in &played.jobs {
            let Some(runs) = self.jobs.get(job.job.as_str()) else {
                said.push(format!(
                    "the table does not say when {} runs: add a line in tests/conditions",
                    job.job
                ));
                continue;
            };
            if runs.contains(case.name) != job.runs {
                let found = if job.runs { "runs" } else { "does not run" };
                said.push(format!("{} {found} ({})", job.job, job.why));
            }
        }
        for job in self.jobs.keys().filter(|job| played.job(job).is_none()) {
            said.push(format!("the workflow has no job {job}: take its line out"));
        }
        let verdict = played.job("verdict").map(|job| (job.result.as_str(), job.why.as_str()));
        if verdict.map(|(result, _)| result) != Some(case.verdict) {
            said.push(format!("the verdict is {verdict:?}, not {}", case.verdict));
        }
        said
    }
}

#[test]
fn jobs_run_as_the_tables_of_faults_say() {
    let cases: usize = TABLES.map(table).iter().map(|table| table.cases.len()).sum();
    assert!(cases >= 65, "{cases} cases");
    assert_none("faults", cases, &missed(&rendered(), None));
}
