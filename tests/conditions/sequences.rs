//! The table of sequences: what branches see while a pull request goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sweepctl::config::labels::{BUILT_IN, Labels};
use sweepctl::config::source::Source;
use sweepctl::github::checks::{HeadVerdict, Standing, covered};
use sweepctl::github::decide::{Decision, Facts, decide};
use sweepctl::github::event::Event;
use sweepctl::github::facts::{self, Missing};
use sweepctl::github::needs::JobResult;
use sweepctl::repo::Repo;
use sweepctl::workflow::check::Files;
use sweepctl::workflow::simulate::{self, Ask, Commands, Faults, Simulation};

use super::{PLANS, lines, parsed, rendered};
use crate::decisions::HISTORY;
use crate::decisions::payload::{Payload, has, payload};
use crate::support::{assert_none, misses_until};

/// The name that branches require.
const REQUIRED: &str = "Verdict";
/// The job during which runs are cancelled, or that fails.
const AT: &str = "sweep-evals";

struct Line {
    number: usize,
    columns: Vec<&'static str>,
}

impl Line {
    fn column(&self, index: usize) -> &'static str {
        self.columns.get(index).copied().unwrap_or("")
    }
}

struct Sequence {
    title: &'static str,
    requires_sweep: bool,
    lines: Vec<Line>,
}

fn sequences() -> Vec<Sequence> {
    let mut all: Vec<Sequence> = Vec::new();
    for (number, columns) in lines(include_str!("sequences.txt")) {
        if let Some(title) = columns[0].strip_prefix("sequence ") {
            all.push(Sequence {
                title,
                requires_sweep: columns.get(1) == Some(&"require-sweep"),
                lines: Vec::new(),
            });
            continue;
        }
        assert_eq!(columns.len(), 6, "line {number} has other than six columns");
        let sequence = all.last_mut().expect("a sequence has a title");
        sequence.lines.push(Line { number, columns });
    }
    all
}

/// A check of a commit.
struct Check {
    run: u64,
    name: String,
    passed: bool,
}

/// A run: its number is that of the line that started it, and the workflow's group decides what becomes of it.
#[derive(Clone)]
struct Run {
    number: usize,
    attempt: u64,
    group: String,
    fails: bool,
}

/// Everything that is there while a sequence is played.
struct World<'w> {
    files: &'w Files<'w>,
    labels: Labels,
    sequence: &'w Sequence,
    checks: BTreeMap<String, Vec<Check>>,
    swept: BTreeSet<String>,
    /// The pull request's newest commit.
    head: String,
    running: Vec<Run>,
    waiting: Vec<Run>,
}

/// The head commit of an event; that of the pull request where it has none.
fn commit_of(payload: &Payload, head: &str) -> String {
    let at = |pointer: &str| payload.body.pointer(pointer).and_then(|value| value.as_str());
    let found = at("/pull_request/head/sha").or_else(|| at("/merge_group/head_sha"));
    found.or_else(|| at("/after")).unwrap_or(head).to_owned()
}

impl World<'_> {
    fn payload(&self, number: usize) -> Payload {
        let line = &self.sequence.lines[number - 1];
        payload(line.column(0), line.column(1), line.column(2), &HISTORY)
    }

    fn standing(&self, commit: &str) -> Standing {
        let mut checks = self.checks.get(commit).into_iter().flatten();
        match checks.rfind(|check| check.name == REQUIRED) {
            None => Standing::Missing,
            Some(check) => Standing::Ended(if check.passed { "success" } else { "failure" }.to_owned()),
        }
    }

    /// What `decide` says now of the event of a line.
    fn decision(&self, payload: &Payload, commit: &str) -> Result<Decision, sweepctl::config::problem::Problem> {
        let event = Event::parse(Some(&payload.name), &payload.body.to_string(), "event.json")?;
        let open = || Repo::open(HISTORY.folder.path());
        let facts = facts::gather(&event, open, Missing::Refuse).expect("the commits are there");
        let facts = Facts {
            head_verdict: Some(HeadVerdict {
                head: self.head.clone(),
                standing: self.standing(&self.head),
            }),
            full_sweep: Some(self.swept.contains(commit)),
            ..facts
        };
        decide(&event, &facts, &self.labels)
    }

    fn simulate(&self, run: &Run, faults: Faults) -> (Simulation, String, bool) {
        let payload = self.payload(run.number);
        let commit = commit_of(&payload, &self.head);
        let decision = self.decision(&payload, &commit);
        let how = decision.as_ref().cloned().unwrap_or_default();
        let mut plan = PLANS.get(if how.canary { "full canary" } else { "full" }).clone();
        plan.planned.index.asked = how.asked.clone();
        // Only in a pull request's run does the command look for later verdicts.
        let known = self.checks.get(&commit).into_iter().flatten();
        let verdicts = known.filter(|check| check.name == REQUIRED).map(|check| {
            let ended = if check.passed { "success" } else { "failure" };
            (check.run, Standing::Ended(ended.to_owned()))
        });
        let later = (run.attempt > 1 && payload.name == "pull_request")
            .then(|| covered(run.number as u64, verdicts))
            .flatten();
        let ask = Ask {
            workflow: "run-sweep",
            event: &payload.name,
            payload: &payload.body,
            run: simulate::Run {
                id: run.number as u64,
                attempt: run.attempt,
            },
            commands: Commands {
                decision,
                plan: Ok(plan),
                later,
            },
            faults,
        };
        let played = simulate::simulate(self.files, &ask).expect("it is simulated");
        (played, commit, how.run && how.reusable)
    }

    /// A run ends, by itself or cancelled, and reports.
    fn end(&mut self, run: &Run, cancelled: bool) {
        let mut faults = Faults::default();
        if cancelled {
            faults.cancelled_in = Some(AT.to_owned());
        } else if run.fails {
            faults.results.insert(AT.to_owned(), JobResult::Failure);
        }
        let (played, commit, is_full) = self.simulate(run, faults);
        let verdict = played.job("verdict").expect("it judges");
        let passed = verdict.result == JobResult::Success;
        if passed && is_full {
            self.swept.insert(commit.clone());
        }
        self.checks.entry(commit).or_default().push(Check {
            run: run.number as u64,
            name: verdict.legs[0].name.clone(),
            passed,
        });
        let group = &run.group;
        if let Some(at) = self.waiting.iter().position(|run| run.group == *group) {
            let next = self.waiting.remove(at);
            self.end(&next, false);
        }
    }

    /// What a line says happens; what becomes of its run and others, and the commit that it is about.
    fn happen(&mut self, index: usize) -> (String, String) {
        let line = &self.sequence.lines[index];
        if let Some(number) = line.column(0).strip_prefix("ends ") {
            let number: usize = number.parse().expect("a line");
            let commit = commit_of(&self.payload(number), &self.head);
            let Some(at) = self.running.iter().position(|run| run.number == number) else {
                return ("has ended already".to_owned(), commit);
            };
            let run = self.running.remove(at);
            self.end(&run, false);
            return (String::new(), commit);
        }
        let (number, attempt) = match line.column(0).strip_prefix("again ") {
            Some(number) => (number.parse().expect("a line"), 2),
            None => (index + 1, 1),
        };
        let payload = self.payload(number);
        let commit = commit_of(&payload, &self.head);
        if payload.name == "pull_request" && attempt == 1 {
            self.head.clone_from(&commit);
        }
        let mut run = Run {
            number,
            attempt,
            group: String::new(),
            fails: has(line.column(2), "fails"),
        };
        let (played, ..) = self.simulate(&run, Faults::default());
        if !played.starts {
            return ("off".to_owned(), commit);
        }
        run.group = played.group;
        let mut became = String::new();
        if let Some(at) = self.running.iter().position(|other| other.group == run.group) {
            if !played.cancels {
                self.waiting.push(run);
                return ("waits".to_owned(), commit);
            }
            // What waits in a group gives way to what comes.
            self.waiting.retain(|other| other.group != run.group);
            let other = self.running.remove(at);
            self.end(&other, true);
            became = format!("ends {}", other.number);
        }
        match has(line.column(2), "runs") {
            true => self.running.push(run),
            false => self.end(&run, false),
        }
        (became, commit)
    }

    fn told(&self, commit: &str) -> (String, &'static str) {
        let checks = self.checks.get(commit).into_iter().flatten();
        let one = |check: &Check| format!("{} {}", check.name, if check.passed { "success" } else { "failure" });
        let seen = match self.standing(commit) {
            Standing::Missing => "pending",
            standing if standing.passed() => "green",
            _ => "red",
        };
        (checks.map(one).collect::<Vec<_>>().join(", "), seen)
    }
}

fn play(sequence: &Sequence, files: &Files<'_>, labels: &Labels) -> Vec<String> {
    let mut world = World {
        files,
        labels: Labels {
            require_sweep: sequence.requires_sweep,
            ..labels.clone()
        },
        sequence,
        checks: BTreeMap::new(),
        swept: BTreeSet::new(),
        head: HISTORY.commit("topic").to_owned(),
        running: Vec::new(),
        waiting: Vec::new(),
    };
    let mut said = Vec::new();
    for (index, line) in sequence.lines.iter().enumerate() {
        let (became, commit) = world.happen(index);
        let (checks, seen) = world.told(&commit);
        let wanted = (line.column(3), line.column(4), line.column(5));
        let found = (became.as_str(), checks.as_str(), seen);
        if found != wanted {
            said.push(format!(
                "line {} ({}): {}\n  wanted {wanted:?}\n  found  {found:?}",
                line.number,
                sequence.title,
                line.column(0)
            ));
        }
    }
    said
}

/// What differs between workflows under labels and the table; sought until some words are said.
pub fn missed(sources: &[Arc<Source>], labels: &Labels, until: Option<&str>) -> Vec<String> {
    let (files, sequences) = (parsed(sources), sequences());
    misses_until(&sequences, until, |sequence| {
        let said = play(sequence, &files, labels);
        (!said.is_empty()).then(|| said.join("\n"))
    })
}

#[test]
fn branches_see_what_the_table_of_sequences_says() {
    let labels = Labels::load(&Arc::new(Source::new("labels.yaml", BUILT_IN))).expect("labels");
    let sequences = sequences();
    assert!(sequences.len() >= 30, "{} sequences", sequences.len());
    assert_none("sequences", sequences.len(), &missed(&rendered(), &labels, None));
}
