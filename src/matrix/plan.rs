//! The plan: from changelog entries to rows in buckets.

use std::collections::{HashMap, HashSet};

use globset::Glob;
use indexmap::IndexMap;
use serde::Serialize;

use super::append_only::{self, Base};
use super::evals::{self, EvalMode};
use super::expand::Expansion;
use super::fingerprint::recipe_fingerprint;
use super::row::{Row, Topology};
use super::trim;
use super::wire::{self, Form};
use crate::config::asked::Asked;
use crate::config::changelog::Entry;
use crate::config::master::{Config, Master};
use crate::config::policy::EvalPolicy;
use crate::config::problem::{Place, Problems, nearest};
use crate::config::runners::Runners;
use crate::config::types::{NodeKind, ScenarioType};
use crate::findings::plan as findings;

/// What a plan is made from.
pub(crate) struct Inputs<'a> {
    /// The added entries, in changelog order, with their places.
    pub entries: &'a [(Entry, Place)],
    /// The configs at the head.
    pub master: &'a Master,
    /// The runners at the head.
    pub runners: &'a Runners,
    /// The policy in force.
    pub policy: &'a EvalPolicy,
    /// Reads the configs at the base, for append-only entries.
    pub base: &'a dyn Fn() -> Result<Base, Problems>,
}

/// The refs and entries that a plan came from.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ChangelogMetadata {
    /// The base, as given.
    pub base_ref: String,
    /// The head, as given.
    pub head_ref: String,
    /// The entries, in changelog order.
    pub entries: Vec<Entry>,
}

/// Rows in buckets.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Throughput on one node, by lengths or `agentic`.
    pub single_node: IndexMap<String, Vec<Row>>,
    /// Multi-node throughput, by lengths or `agentic`.
    pub multi_node: IndexMap<String, Vec<Row>>,
    /// Fixed-sequence evals on one node.
    pub evals: Vec<Row>,
    /// Agentic evals on one node.
    pub agentic_evals: Vec<Row>,
    /// Multi-node fixed-sequence evals.
    pub multinode_evals: Vec<Row>,
    /// Multi-node agentic evals.
    pub multinode_agentic_evals: Vec<Row>,
    /// Where it came from.
    pub changelog_metadata: ChangelogMetadata,
}

impl Plan {
    /// Every row.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let throughput = self.single_node.values().chain(self.multi_node.values()).flatten();
        let single = self.evals.iter().chain(&self.agentic_evals);
        let multi = self.multinode_evals.iter().chain(&self.multinode_agentic_evals);
        throughput.chain(single).chain(multi).cloned().collect()
    }

    /// Sorts rows into buckets.
    pub fn add_throughput(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            let lengths = row.seq().map_or_else(|| "agentic".to_owned(), |seq| seq.to_string());
            let buckets = match row.node_kind() {
                NodeKind::Single => &mut self.single_node,
                NodeKind::Multi => &mut self.multi_node,
            };
            buckets.entry(lengths).or_default().push(row);
        }
    }

    /// Sorts eval rows into buckets.
    pub fn add_evals(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            let bucket = match (row.node_kind(), row.scenario_type()) {
                (NodeKind::Single, ScenarioType::FixedSeqLen) => &mut self.evals,
                (NodeKind::Single, ScenarioType::AgenticCoding) => &mut self.agentic_evals,
                (NodeKind::Multi, ScenarioType::FixedSeqLen) => &mut self.multinode_evals,
                (NodeKind::Multi, ScenarioType::AgenticCoding) => &mut self.multinode_agentic_evals,
            };
            bucket.push(row);
        }
    }
}

/// The JSON form: rows with the defaults that a plan's rows carry.
impl Serialize for Plan {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        type JsonRow = serde_json::Map<String, serde_json::Value>;
        let rows =
            |rows: &Vec<Row>| -> Vec<JsonRow> { rows.iter().map(|row| wire::to_json(row, Form::Planned)).collect() };
        let map = |buckets: &IndexMap<String, Vec<Row>>| -> IndexMap<String, Vec<JsonRow>> {
            buckets
                .iter()
                .map(|(name, bucket)| (name.clone(), rows(bucket)))
                .collect()
        };
        let mut out = serializer.serialize_struct("Plan", 7)?;
        out.serialize_field("single_node", &map(&self.single_node))?;
        out.serialize_field("multi_node", &map(&self.multi_node))?;
        out.serialize_field("evals", &rows(&self.evals))?;
        out.serialize_field("agentic_evals", &rows(&self.agentic_evals))?;
        out.serialize_field("multinode_evals", &rows(&self.multinode_evals))?;
        out.serialize_field("multinode_agentic_evals", &rows(&self.multinode_agentic_evals))?;
        out.serialize_field("changelog_metadata", &self.changelog_metadata)?;
        out.end()
    }
}

/// Plans the entries.
///
/// # Errors
/// Entries that cannot stand together, keys that match nothing, rows that cannot be generated, and what append-only
/// entries may not change.
pub(crate) fn plan(inputs: &Inputs<'_>, asked: &Asked) -> Result<Plan, Problems> {
    stand_together(inputs.entries, asked)?;
    let mut resolved = resolve(inputs.entries, inputs.master)?;
    let base = match inputs.entries.iter().any(|(entry, _)| entry.append_only) {
        true => Some((inputs.base)()?),
        false => None,
    };
    if let Some(base) = &base {
        append_only::check_scope(&resolved, &base.master, inputs.master)?;
    }
    // Their wider coverage wins over an entry that asks for the selected evals of the same configs.
    resolved.sort_by_key(|resolved| !resolved.entry.all_evals);
    let mut throughput = Vec::new();
    let mut evals = Vec::new();
    let (mut measured, mut evaluated) = (Coverage::default(), Coverage::default());
    let mut problems = Problems::default();
    for resolved in &resolved {
        let entry = resolved.entry;
        if !(asked.evals_only || entry.evals_only || entry.all_evals) {
            for (scenarios, configs) in measured.claim(&resolved.configs, &entry.scenarios()) {
                match throughput_run(inputs, resolved, base.as_ref(), &scenarios, &configs) {
                    Ok(rows) => throughput.extend(rows),
                    Err(more) => problems.extend(more),
                }
            }
        }
        if entry.append_only || entry.no_evals {
            continue;
        }
        let mode = match asked.all_evals || entry.all_evals {
            true => EvalMode::AllEvals,
            false => EvalMode::EvalsOnly,
        };
        for (scenarios, configs) in evaluated.claim(&resolved.configs, &entry.scenarios()) {
            match generate(&configs, inputs.runners, &scenarios) {
                Ok(rows) => evals.extend(
                    evals::apply(rows, inputs.policy, mode, false)
                        .into_iter()
                        .filter(|row| has_prefill_ep(row, entry.eval_min_prefill_ep)),
                ),
                Err(more) => problems.extend(more),
            }
        }
    }
    problems.into_result()?;
    fingerprint(&mut throughput);
    if asked.trim_conc {
        throughput = trim::plan(throughput, inputs.policy.plan_trim);
    }
    let mut plan = Plan::default();
    plan.add_throughput(throughput);
    plan.add_evals(evals);
    plan.changelog_metadata.entries = inputs.entries.iter().map(|(entry, _)| entry.clone()).collect();
    Ok(plan)
}

/// An entry with the configs that it names.
pub(crate) struct Resolved<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Where it stands.
    pub place: &'a Place,
    /// Its configs, in the order of its keys; a pattern's matches in file order.
    pub configs: Vec<&'a Config>,
}

fn stand_together(entries: &[(Entry, Place)], asked: &Asked) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let appends = entries.iter().any(|(entry, _)| entry.append_only);
    let modified = asked.all_evals || asked.evals_only;
    for (entry, place) in entries {
        if appends && !entry.append_only {
            let problem = place.found(
                &findings::APPEND_ONLY,
                "this entry shares a plan with an `append-only` one",
            );
            problems.push(problem.hint("put the append-only entry in a change of its own"));
        }
        if entry.append_only && modified {
            let problem = place.found(
                &findings::MODIFIERS,
                "an `append-only` entry cannot be planned with all-evals or evals-only",
            );
            problems.push(problem.hint("remove the modifier"));
        }
        if entry.no_evals && modified {
            let problem = place.found(
                &findings::MODIFIERS,
                "a `no-evals` entry cannot be planned with all-evals or evals-only",
            );
            problems.push(problem.hint("remove the modifier, or `no-evals`"));
        }
    }
    problems.into_result()
}

fn resolve<'a>(entries: &'a [(Entry, Place)], master: &'a Master) -> Result<Vec<Resolved<'a>>, Problems> {
    let mut problems = Problems::default();
    let mut all = Vec::with_capacity(entries.len());
    for (entry, place) in entries {
        problems.extend(unknown_configs(entry, place, master));
        let configs = entry.config_keys.iter().flat_map(|key| matching(master, key)).collect();
        all.push(Resolved { entry, place, configs });
    }
    problems.into_result()?;
    Ok(all)
}

/// The keys and patterns of an entry that no config matches.
pub(crate) fn unknown_configs(entry: &Entry, place: &Place, master: &Master) -> Problems {
    let mut problems = Problems::default();
    for (index, key) in entry.config_keys.iter().enumerate() {
        if !matching(master, key).is_empty() {
            continue;
        }
        let known = master.keys().map(String::as_str);
        let what = if key.contains('*') { "pattern" } else { "key" };
        let at = entry.key_places.get(index).unwrap_or(place);
        let problem = at.found(
            &findings::UNKNOWN_CONFIG,
            format!("no config matches the {what} `{key}`"),
        );
        problems.push(problem.hint(nearest(&key.replace('*', ""), known)));
    }
    problems
}

/// The configs of a key, or of a pattern in which only `*` is special and which matches whole keys.
fn matching<'a>(master: &'a Master, key: &str) -> Vec<&'a Config> {
    if !key.contains('*') {
        return master.get(key).into_iter().collect();
    }
    let pattern = key.split('*').map(globset::escape).collect::<Vec<_>>().join("*");
    let Ok(glob) = Glob::new(&pattern) else {
        return Vec::new();
    };
    let matcher = glob.compile_matcher();
    master.values().filter(|config| matcher.is_match(&config.key)).collect()
}

/// Which (config, scenario) pairs earlier entries took.
#[derive(Default)]
struct Coverage<'a>(HashMap<&'a str, HashSet<ScenarioType>>);

impl<'a> Coverage<'a> {
    /// Claims what is left, as runs of the generator: configs that lack the same scenarios go together.
    fn claim(
        &mut self,
        configs: &[&'a Config],
        scenarios: &[ScenarioType],
    ) -> IndexMap<Vec<ScenarioType>, Vec<&'a Config>> {
        let mut runs: IndexMap<Vec<ScenarioType>, Vec<&Config>> = IndexMap::new();
        for config in configs {
            let covered = self.0.entry(&config.key).or_default();
            let left: Vec<ScenarioType> = ScenarioType::CHOICES
                .iter()
                .map(|(_, scenario)| *scenario)
                .filter(|scenario| scenarios.contains(scenario) && covered.insert(*scenario))
                .collect();
            if !left.is_empty() {
                runs.entry(left).or_default().push(config);
            }
        }
        runs
    }
}

fn generate(configs: &[&Config], runners: &Runners, scenarios: &[ScenarioType]) -> Result<Vec<Row>, Problems> {
    let expansion = Expansion {
        scenarios: scenarios.to_vec(),
        ..Expansion::default()
    };
    expansion.rows(configs.iter().copied(), runners)
}

fn throughput_run(
    inputs: &Inputs<'_>,
    resolved: &Resolved<'_>,
    base: Option<&Base>,
    scenarios: &[ScenarioType],
    configs: &[&Config],
) -> Result<Vec<Row>, Problems> {
    let measure = |configs: &[&Config], runners: &Runners| -> Result<Vec<Row>, Problems> {
        let rows = generate(configs, runners, scenarios)?;
        Ok(evals::apply(rows, inputs.policy, EvalMode::NoEvals, false))
    };
    let rows = measure(configs, inputs.runners)?;
    let Some(base) = base else { return Ok(rows) };
    let before: Vec<&Config> = configs
        .iter()
        .filter_map(|config| base.master.get(&config.key))
        .collect();
    let before = measure(&before, &base.runners)?;
    append_only::gained(before, rows).map_err(|message| {
        let problem = resolved.place.found(&findings::APPEND_ONLY, message.to_string());
        problem
            .hint("an append-only entry only adds points to curves that exist; describe other changes without it")
            .into()
    })
}

fn has_prefill_ep(row: &Row, least: Option<u64>) -> bool {
    use crate::config::master::search_space::Nodes;
    match (&row.topology.nodes, least) {
        (Nodes::Multi(roles), Some(least)) => roles.prefill.ep >= least,
        _ => true,
    }
}

/// Gives throughput rows their fingerprints; rows of one topology share one.
fn fingerprint(rows: &mut [Row]) {
    let mut known: HashMap<*const Topology, String> = HashMap::new();
    for row in rows {
        let key = std::sync::Arc::as_ptr(&row.topology);
        let fingerprint = known.entry(key).or_insert_with(|| recipe_fingerprint(row)).clone();
        row.recipe_fingerprint = Some(fingerprint);
    }
}
