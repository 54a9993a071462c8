//! Entries of a search space that can be read, and that hardly do what was meant.

use super::master::search_space::{ConcSpec, Nodes, SearchEntry};
use super::master::{Config, Master};
use super::problem::Problem;
use super::runners::{Hardware, Runners};
use crate::findings::{Finding, config as findings};
use crate::plural;

/// Servers that no node can hold, and concurrencies that are measured twice.
#[must_use]
pub(crate) fn doubtful(master: &Master, runners: &Runners) -> Vec<Problem> {
    let mut found = Vec::new();
    for config in master.values() {
        let hardware = hardware(runners, &config.runner);
        for entry in entries(config) {
            let problem = |finding: &'static Finding, message: String| {
                finding.here(&entry.place, format!("config `{}`: {message}", config.key))
            };
            if let (Nodes::Single(sizes), Some(hardware)) = (&entry.nodes, hardware)
                && sizes.gpus() > hardware.gpus_per_node
            {
                let message = format!(
                    "{} on one node, and those of `{}` have {}",
                    plural::count(sizes.gpus(), "GPU"),
                    config.runner,
                    hardware.gpus_per_node
                );
                let hint = "correct the sizes, or `gpus-per-node` in configs/runners.yaml";
                found.push(problem(&findings::BEYOND_NODE, message).hint(hint));
            }
            if let Some(conc) = twice(&entry.conc) {
                let message = format!("`conc-list` has {conc} twice");
                found.push(problem(&findings::MEASURED_TWICE, message).hint("name it once"));
            }
        }
    }
    found
}

fn entries(config: &Config) -> impl Iterator<Item = &SearchEntry> {
    let fixed = config.fixed.iter().flatten().flat_map(|fixed| &fixed.space);
    let agentic = config.agentic.iter().flatten().flat_map(|agentic| &agentic.space);
    fixed.chain(agentic)
}

/// What the nodes of a runner have, which is a label or one of its runners.
fn hardware<'r>(runners: &'r Runners, runner: &str) -> Option<&'r Hardware> {
    let of_label = || {
        let mut labels = runners.labels.iter();
        let (label, _) = labels.find(|(_, names)| names.iter().any(|name| name == runner))?;
        runners.hardware.get(label)
    };
    runners.hardware.get(runner).or_else(of_label)
}

/// The first concurrency of a list that stands there before.
fn twice(conc: &ConcSpec) -> Option<u64> {
    let ConcSpec::List(list) = conc else { return None };
    let mut sorted = list.clone();
    sorted.sort_unstable();
    let pair = sorted.windows(2).find(|pair| pair[0] == pair[1])?;
    Some(pair[0])
}
