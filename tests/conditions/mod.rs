//! Which jobs of the rendered workflows run, and that their conditions mean what GitHub takes them to mean.

mod command;
mod engine;
pub mod events;
pub mod faults;
pub mod sequences;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use serde_json::{Value as Json, json};
use sweepctl::config::labels::Labels;
use sweepctl::config::problem::Problem;
use sweepctl::config::source::Source;
use sweepctl::github::decide::{Facts, decide};
use sweepctl::github::event::Event;
use sweepctl::workflow::check::Files;
use sweepctl::workflow::simulate::{Ask, Commands, Faults, Plan, Run, Simulation, simulate};
use tempfile::TempDir;

use crate::support::{lines_of_table, project, run, stderr, write};

/// The project's own workflows and action, as they are checked in.
pub fn rendered() -> Vec<Arc<Source>> {
    let mut files: Vec<PathBuf> = ["workflows", "actions/setup-sweepctl"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(project().join(".github").join(folder)).expect("it is rendered"))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let source = |path: &PathBuf| Arc::new(Source::read(path).expect("a file"));
    files.iter().map(source).collect()
}

/// Plans of the project's own fleet, by the name that the tables give them.
pub struct Plans {
    folder: TempDir,
    plans: BTreeMap<&'static str, Plan>,
}

/// The plans: each with a canary and without, where it has throughput on one node.
pub static PLANS: LazyLock<Plans> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let kinds: [(&str, &[&str]); 6] = [
        ("full", &[]),
        ("full canary", &["--canary"]),
        ("throughput canary", &["--no-evals", "--canary"]),
        ("evals", &["--evals-only"]),
        ("agentic", &["--scenario-type", "agentic-coding"]),
        (
            "one-node canary",
            &["--single-node", "--scenario-type", "fixed-seq-len", "--canary"],
        ),
    ];
    let mut plans = BTreeMap::new();
    for (name, flags) in kinds {
        let place = at(name);
        let emit = ["generate", "full-sweep", "--emit", place.to_str().expect("a path")];
        let output = run(project(), [&emit, flags].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        cut(&place);
        plans.insert(name, Plan::read(place).expect("a plan"));
    }
    let none = r#"{"jobs":0,"throughput-jobs":0,"eval-jobs":0,"buckets":{}}"#;
    write(folder.path(), "empty/index.json", none);
    plans.insert("empty", Plan::read(at("empty")).expect("a plan"));
    Plans { folder, plans }
});

/// Leaves the first two jobs of each bucket, so that a run is quickly simulated.
fn cut(plan: &Path) {
    let read = |path: &Path| -> Json { serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON") };
    let mut index = read(&plan.join("index.json"));
    let mut left = BTreeMap::new();
    for (bucket, entry) in index["buckets"].as_object().expect("buckets") {
        let shards = entry["shards"].as_array().expect("shards").len();
        let shards = (0..shards).map(|number| read(&plan.join(bucket).join(format!("{number}.json"))));
        let envelopes = shards.flat_map(|shard| shard.as_array().cloned().expect("a shard"));
        left.insert(bucket.clone(), envelopes.take(3).collect::<Vec<Json>>());
    }
    // The fleet has nothing for this bucket: it gets a job of another.
    if let Some(many) = left.get("multi_node_8k1k") {
        left.insert("multi_node_other".to_owned(), vec![many[2].clone()]);
    }
    let mut jobs = [0; 2];
    for (bucket, mut envelopes) in left {
        envelopes.truncate(2);
        let only = json!({ "jobs": envelopes.len(), "max-parallel": 4 });
        index["buckets"][&bucket] = json!({ "jobs": envelopes.len(), "shards": [only] });
        jobs[usize::from(bucket.ends_with("evals"))] += envelopes.len();
        write(plan, &format!("{bucket}/0.json"), json!(envelopes).to_string());
    }
    jobs[0] += usize::from(index.get("canary").is_some());
    index["jobs"] = json!(jobs[0] + jobs[1]);
    index["throughput-jobs"] = json!(jobs[0]);
    index["eval-jobs"] = json!(jobs[1]);
    write(plan, "index.json", index.to_string());
}

impl Plans {
    /// A plan by its name.
    pub fn get(&self, name: &str) -> &Plan {
        let known = || self.plans.keys().copied().collect::<Vec<_>>().join(", ");
        self.plans
            .get(name)
            .unwrap_or_else(|| panic!("no plan is called {name:?}: {}", known()))
    }

    /// Where it lies.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The files of sources, which are YAML.
pub fn parsed(sources: &[Arc<Source>]) -> Files<'_> {
    let (files, problems) = Files::parse(sources);
    assert!(problems.0.is_empty(), "{problems}");
    files
}

/// Simulates a workflow in process.
pub fn play(
    files: &Files<'_>,
    workflow: &str,
    labels: &Labels,
    (name, payload): (&str, &Json),
    facts: &Facts,
    plan: impl Fn(bool, bool) -> Plan,
    faults: Faults,
) -> Result<Simulation, String> {
    let decision =
        Event::parse(Some(name), &payload.to_string(), "event.json").and_then(|event| decide(&event, facts, labels));
    let how = decision.as_ref().cloned().unwrap_or_default();
    let mut plan = plan(how.canary, how.asked.evals_only);
    plan.planned.index.asked = how.asked;
    let ask = Ask {
        workflow,
        event: name,
        payload,
        run: Run { id: 1, attempt: 1 },
        commands: Commands {
            decision,
            plan: Ok(plan),
            later: None,
        },
        faults,
    };
    simulate(files, &ask).map_err(|problems| problems.to_string())
}

/// The lines of a table, cut into columns; each with its number.
fn lines(text: &'static str) -> Vec<(usize, Vec<&'static str>)> {
    lines_of_table(text).map(|(line, _, columns)| (line, columns)).collect()
}

/// Messages of problems, for a comparison with a table's words.
pub fn messages(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect::<Vec<_>>()
        .join("; ")
}
