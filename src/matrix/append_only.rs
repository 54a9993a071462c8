//! Append-only entries: curves that gain points, and nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::plan::Resolved;
use super::row::{Conc, Row, Scenario, Topology};
use crate::config::master::search_space::Nodes;
use crate::config::master::{Config, Master};
use crate::config::problem::{Problem, Problems};
use crate::config::runners::Runners;
use crate::config::types::{KvOffloading, ScenarioType, SeqLen, SpecDecoding};
use crate::findings::plan as findings;

/// The inputs at the base.
pub(crate) struct Base {
    /// Its configs.
    pub master: Master,
    /// Its runners.
    pub runners: Runners,
}

/// Checks that nothing outside the selected configs and scenarios differs.
///
/// # Errors
/// Selected configs that the base lacks, other configs that differ, and in selected ones scenarios that are not
/// selected or, where there are such, top-level fields that differ.
pub(crate) fn check_scope(resolved: &[Resolved<'_>], base: &Master, head: &Master) -> Result<(), Problems> {
    let mut selected: HashMap<&str, HashSet<ScenarioType>> = HashMap::new();
    let mut problems = Problems::default();
    for resolved in resolved {
        for config in &resolved.configs {
            if !base.contains_key(&config.key) {
                let problem = resolved.place.found(
                    &findings::APPEND_ONLY,
                    format!("config `{}` does not exist at the base", config.key),
                );
                problems.push(problem.hint("a new config is no append: describe it without `append-only`"));
            }
            selected
                .entry(&config.key)
                .or_default()
                .extend(resolved.entry.scenarios());
        }
    }
    for key in base.keys().chain(head.keys().filter(|key| !base.contains_key(*key))) {
        let (before, after) = (base.get(key), head.get(key));
        match (before, after, selected.get(key.as_str())) {
            (before, after, None) if before != after => problems.push(elsewhere(key, before, after)),
            (Some(before), Some(after), Some(scenarios)) => {
                problems.extend(unselected(before, after, scenarios));
            }
            _ => {}
        }
    }
    problems.into_result()
}

fn elsewhere(key: &str, before: Option<&Config>, after: Option<&Config>) -> Problem {
    let message = match (before, after) {
        (_, None) => format!("config `{key}` was removed, and the append-only entry does not select it"),
        (None, _) => format!("config `{key}` was added, and the append-only entry does not select it"),
        _ => format!("config `{key}` differs, and the append-only entry does not select it"),
    };
    let place = after.or(before).map(|config| &config.place);
    let problem = place.map_or_else(
        || findings::APPEND_ONLY.file("", message.clone()),
        |place| place.found(&findings::APPEND_ONLY, message.clone()),
    );
    problem.hint("put the other change in a change of its own")
}

fn unselected(before: &Config, after: &Config, selected: &HashSet<ScenarioType>) -> Problems {
    let mut problems = Problems::default();
    let mut say = |what: &str| {
        let message = format!(
            "config `{}`: {what} differs, and the append-only entry does not select it",
            after.key
        );
        problems.push(
            after
                .place
                .found(&findings::APPEND_ONLY, message)
                .hint("put the other change in a change of its own"),
        );
    };
    let others: Vec<_> = ScenarioType::CHOICES
        .iter()
        .filter(|(_, scenario)| !selected.contains(scenario))
        .collect();
    for (name, scenario) in &others {
        let same = match scenario {
            ScenarioType::FixedSeqLen => before.fixed == after.fixed,
            ScenarioType::AgenticCoding => before.agentic == after.agentic,
        };
        if !same {
            say(&format!("scenario `{name}`"));
        }
    }
    let has_others = others.iter().any(|(_, scenario)| before.has(*scenario));
    if has_others && top_level(before) != top_level(after) {
        say("a field above its scenarios");
    }
    problems
}

fn top_level(config: &Config) -> Config {
    Config {
        fixed: None,
        agentic: None,
        ..config.clone()
    }
}

/// Why rows are no append.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAppend {
    /// A recipe of the base is not generated any more.
    #[error("`append-only`: the recipe of `{0}` was removed or modified")]
    Recipe(String),
    /// Points of the base are not generated any more.
    #[error("`append-only`: `{exp_name}` lost its points {points:?}")]
    Points {
        /// A row of the recipe.
        exp_name: String,
        /// What is lost.
        points: Vec<u64>,
    },
    /// There is no new point.
    #[error("`append-only`: no point was added")]
    Nothing,
    /// A new point lies on no curve of the base, or on one that was not measured with that one image.
    #[error("`append-only`: `{0}` lies on no curve that the base measured with this one image")]
    Series(String),
}

type Points<'a> = HashMap<&'a Topology, (HashSet<u64>, &'a str)>;

fn points(rows: &[Row]) -> Points<'_> {
    let mut points: Points<'_> = HashMap::new();
    for row in rows {
        let known = points
            .entry(&row.topology)
            .or_insert_with(|| (HashSet::new(), &row.exp_name));
        known.0.extend(row.conc.points());
    }
    points
}

/// The rows of the points that were gained; a multi-node list keeps its new values only.
///
/// # Errors
/// See [`NoAppend`].
pub(crate) fn gained(before: Vec<Row>, after: Vec<Row>) -> Result<Vec<Row>, NoAppend> {
    let (old, new) = (points(&before), points(&after));
    for row in &before {
        let Some((now, _)) = new.get(&*row.topology) else {
            return Err(NoAppend::Recipe(row.exp_name.clone()));
        };
        let (known, exp_name) = &old[&*row.topology];
        let mut lost: Vec<u64> = known.difference(now).copied().collect();
        lost.sort_unstable();
        if !lost.is_empty() {
            return Err(NoAppend::Points {
                exp_name: (*exp_name).to_owned(),
                points: lost,
            });
        }
    }
    let mut images: HashMap<Series<'_>, HashSet<&str>> = HashMap::new();
    for row in &before {
        images.entry(series(row)).or_default().insert(&row.topology.image);
    }
    let mut emitted: HashSet<(Arc<Topology>, u64)> = HashSet::new();
    let mut gained = Vec::new();
    for row in &after {
        let known = old.get(&*row.topology);
        let fresh: Vec<u64> = row
            .conc
            .points()
            .iter()
            .copied()
            .filter(|point| known.is_none_or(|(known, _)| !known.contains(point)))
            .filter(|point| emitted.insert((Arc::clone(&row.topology), *point)))
            .collect();
        let Some(first) = fresh.first() else { continue };
        let one_image = images
            .get(&series(row))
            .is_some_and(|images| images.len() == 1 && images.contains(row.topology.image.as_str()));
        if !one_image {
            return Err(NoAppend::Series(row.exp_name.clone()));
        }
        let conc = match row.conc {
            Conc::Point(_) => Conc::Point(*first),
            Conc::List(_) => Conc::List(fresh),
        };
        gained.push(Row { conc, ..row.clone() });
    }
    if gained.is_empty() {
        return Err(NoAppend::Nothing);
    }
    Ok(gained)
}

/// What people see as one curve.
#[derive(PartialEq, Eq, Hash)]
struct Series<'a> {
    model: &'a str,
    model_prefix: &'a str,
    precision: &'a str,
    framework: &'a str,
    runner: &'a str,
    disagg: bool,
    seq: Option<SeqLen>,
    offloads: bool,
    spec_decoding: Option<SpecDecoding>,
    hardware: (Option<&'a str>, Option<&'a str>),
}

fn series(row: &Row) -> Series<'_> {
    let topology = &*row.topology;
    let (offloads, spec_decoding) = match &topology.scenario {
        Scenario::Fixed(_) => (false, Some(topology.spec_decoding)),
        Scenario::Agentic(offload) => (offload.mode != KvOffloading::None, None),
    };
    let hardware = match &topology.nodes {
        Nodes::Single(_) => (None, None),
        Nodes::Multi(roles) => (roles.prefill.hardware.as_deref(), roles.decode.hardware.as_deref()),
    };
    Series {
        model: &topology.model,
        model_prefix: &topology.model_prefix,
        precision: &topology.precision,
        framework: &topology.framework,
        runner: &topology.runner,
        // An agentic row on one node says nothing of disaggregation.
        disagg: topology.disagg,
        seq: topology.seq(),
        offloads,
        spec_decoding,
        hardware,
    }
}
