//! `configs/eval-policy.yaml`: which rows are evaluated.
//!
//! A policy is two lists of rules: `selection` for a normal sweep, and `all-evals` for one that evaluates everything
//! eligible. A rule says which rows it looks at, how it groups them, and which of a group it takes. The first rule
//! that takes a row marks it in place; a later one that takes it for another evaluator adds a row of its own.

use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;

use super::decode::{Decoder, Fields};
pub use super::fields::Field;
use super::problem::{Problem, Problems, nearest};
use super::recipe::Benchmark;
use super::recipe::parameters::FRAMEWORK;
use super::source::Source;
use super::tree::Node;
use super::types::{NodeKind, ScenarioType, SeqLen};
use crate::findings::config;

/// The copy that serves a repository without a policy of its own.
pub const BUILT_IN: &str = include_str!("../../configs/eval-policy.yaml");

/// The policy file.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EvalPolicies {
    /// The policy in force.
    pub active: String,
    /// Policies by name.
    pub policies: IndexMap<String, EvalPolicy>,
}

/// One policy.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EvalPolicy {
    /// What it is, for people.
    pub description: String,
    /// The evals of a normal sweep.
    pub selection: RuleSet,
    /// The evals of a sweep that evaluates everything eligible.
    pub all_evals: RuleSet,
    /// What trimming a plan does to multi-node throughput rows.
    pub plan_trim: PlanTrim,
    /// How much context an eval gets.
    pub eval_context: EvalContext,
}

impl EvalPolicy {
    /// The evaluators that its rules name, each once, with the first rule that does.
    pub fn evaluators(&self) -> impl Iterator<Item = (&str, &Evaluator)> {
        let rules = self.selection.rules.iter().chain(&self.all_evals.rules);
        let mut seen: Vec<&Evaluator> = Vec::new();
        rules.filter_map(move |rule| {
            let evaluator = rule.evaluator.as_ref()?;
            let new = !seen.contains(&evaluator);
            seen.push(evaluator);
            new.then_some((rule.name.as_str(), evaluator))
        })
    }

    /// The names that scores of its rules' suites can have.
    pub fn scores(&self) -> impl Iterator<Item = String> {
        let rules = self.selection.rules.iter().chain(&self.all_evals.rules);
        let evaluators = rules.filter_map(|rule| rule.evaluator.as_ref());
        evaluators.flat_map(|evaluator| match Benchmark::of_suite(&evaluator.suite) {
            Some(benchmark) if evaluator.is_benchmark() => benchmark.scores(),
            _ => vec![evaluator.suite.clone()],
        })
    }
}

/// What trimming a plan does to multi-node throughput rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum PlanTrim {
    /// Each row keeps the lowest point of its list.
    Minimum,
    /// Each topology keeps one row, with its lowest point.
    Topology,
}

/// How the context of an eval-only server is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum EvalContext {
    /// The row's own length, capped at the model's native maximum.
    MaxModelLen,
    /// Five times the benchmark's length, capped at the model's native maximum.
    FiveTimes,
}

/// Rules in order.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RuleSet {
    /// Where the rows go that a second evaluator adds.
    #[schemars(default)]
    pub extra_rows: ExtraRows,
    /// The rules; none selects nothing.
    pub rules: Vec<Rule>,
}

/// Where the rows go that a second evaluator adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum ExtraRows {
    /// After all rows, in the order of the rows copied.
    #[default]
    Last,
    /// Each directly after the row copied.
    Adjacent,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rule {
    /// Its name, for `explain`.
    pub name: String,
    /// The scenario of the rows it looks at.
    pub scenario: ScenarioType,
    /// The node kind of the rows it looks at; both, where none is named.
    pub nodes: Option<NodeKind>,
    /// The sequence lengths, such as `8k1k`; any, where none is named.
    #[schemars(with = "Option<Vec<String>>")]
    pub sequence_lengths: Option<Vec<SeqLen>>,
    /// Fields with the values that a row must have.
    #[schemars(with = "Option<IndexMap<Field, Vec<String>>>")]
    pub r#match: Vec<(Field, Vec<String>)>,
    /// When it applies.
    #[schemars(default)]
    pub when: When,
    /// Concurrencies below it are set aside before rows are grouped.
    #[schemars(range(min = 1))]
    pub floor: Option<u64>,
    /// What makes a group; one group holds all, where nothing is named.
    pub group_by: Option<GroupBy>,
    /// Which concurrencies of a group are taken.
    #[schemars(length(min = 1))]
    pub pick: Vec<Pick>,
    /// How many rows at a picked concurrency are taken.
    #[schemars(default)]
    pub take: Take,
    /// The rows that stand in for a group without any at the floor.
    pub fallback: Option<Fallback>,
    /// The concurrency of a multi-node row's eval; single-node rows are evaluated at their own.
    pub eval_conc: Option<EvalConc>,
    /// Whether multi-node rows of one topology become one row with all their concurrencies.
    #[schemars(default)]
    pub merge: bool,
    /// What evaluates, where it is said in the row.
    pub evaluator: Option<Evaluator>,
}

/// When a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum When {
    /// In every run that selects evals.
    #[default]
    Always,
    /// Only where evals are the point: `--evals-only`, `--all-evals`, and the eval pass of a plan.
    EvalsOnly,
}

/// What makes a group.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum GroupBy {
    /// Every field but the concurrency, the experiment's name and the eval fields.
    Topology(TopologyWord),
    /// These fields.
    Fields(Vec<Field>),
}

/// The word for grouping by topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum TopologyWord {
    /// Group by topology.
    Topology,
}

/// Which concurrencies of a group are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Pick {
    /// The highest.
    Highest,
    /// Element n/2, counted from 0, of the sorted distinct values.
    UpperMedian,
    /// All.
    Every,
}

impl Pick {
    /// Every value with its text form.
    pub const CHOICES: [(&'static str, Self); 3] = [
        ("highest", Self::Highest),
        ("upper-median", Self::UpperMedian),
        ("every", Self::Every),
    ];
}

/// How many rows at a picked concurrency are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Take {
    /// Every row at it.
    #[default]
    Level,
    /// The first row at it.
    FirstRow,
}

/// The first row at the highest concurrency of each of these groups that has no row at the floor.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Fallback {
    /// What makes a group.
    pub group_by: Vec<Field>,
}

/// The concurrency of a multi-node row's eval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum EvalConc {
    /// The highest of the row's eligible ones.
    Highest,
    /// The upper median of the row's eligible ones.
    UpperMedian,
    /// All of them, one after another.
    All,
}

/// What evaluates.
#[derive(Debug, Clone, PartialEq, Eq, Hash, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Evaluator {
    /// The framework, such as `lm-eval`.
    pub framework: String,
    /// Its suite; empty for the framework's default.
    #[schemars(default)]
    pub suite: String,
}

impl Evaluator {
    /// Whether it is an accuracy benchmark of the row's recipe, which srt-slurm runs in the place of throughput: such an
    /// eval has a job of its own.
    #[must_use]
    pub fn is_benchmark(&self) -> bool {
        self.framework == FRAMEWORK
    }
}

impl JsonSchema for Field {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Field".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: Vec<String> = Self::of_groups().map(Self::name).collect();
        schemars::json_schema!({
            "description": "A field of a row by which rows are grouped and matched.",
            "type": "string",
            "enum": names,
        })
    }
}

impl EvalPolicies {
    /// Reads a policy file.
    ///
    /// # Errors
    /// Every problem of the file.
    pub fn load(source: &Arc<Source>) -> Result<Self, Problems> {
        super::load(source, |d, node| {
            let mut f = d.fields(node, "the policy file")?;
            let active = f.required(d, "active", Decoder::string);
            let policies = f.required(d, "policies", |d, node, name| {
                let mut policies = IndexMap::new();
                for (key, value) in d.entries(node, name) {
                    if let Some(policy) = policy(d, value, key.text()) {
                        policies.insert(key.text().to_owned(), policy);
                    }
                }
                Some(policies)
            });
            if let (Some(active), Some(policies)) = (&active, &policies)
                && !policies.contains_key(active)
            {
                let hint = nearest(active, policies.keys().map(String::as_str));
                d.refuse(
                    &config::UNKNOWN_NAME,
                    f.at("active"),
                    format!("no policy is named `{active}`"),
                    hint,
                );
            }
            f.finish(d);
            Some(Self {
                active: active?,
                policies: policies?,
            })
        })
    }

    /// The built-in policies.
    ///
    /// # Errors
    /// None in a build whose tests passed.
    pub fn built_in() -> Result<Self, Problems> {
        Self::load(&built_in_source())
    }

    /// The policy of a name, or the active one.
    ///
    /// # Errors
    /// A name that is none, with the nearest.
    pub fn named(&self, name: Option<&str>) -> Result<(&str, &EvalPolicy), Problem> {
        let name = name.unwrap_or(&self.active);
        self.policies
            .get_key_value(name)
            .map(|(name, policy)| (name.as_str(), policy))
            .ok_or_else(|| {
                config::UNKNOWN_NAME
                    .file("", format!("no eval policy is named `{name}`"))
                    .hint(nearest(name, self.policies.keys().map(String::as_str)))
            })
    }
}

/// The text of the built-in policies.
#[must_use]
pub fn built_in_source() -> Arc<Source> {
    Arc::new(Source::new("<built-in>/eval-policy.yaml", BUILT_IN))
}

fn policy(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<EvalPolicy> {
    let mut f = d.fields(node, &format!("policy `{name}`"))?;
    let description = f.required(d, "description", Decoder::string);
    let selection = f.required(d, "selection", rule_set);
    let all_evals = f.required(d, "all-evals", rule_set);
    let plan_trim = f.required(d, "plan-trim", |d, n, name| {
        d.choice(
            n,
            name,
            &[("minimum", PlanTrim::Minimum), ("topology", PlanTrim::Topology)],
        )
    });
    let eval_context = f.required(d, "eval-context", |d, n, name| {
        let choices = [
            ("max-model-len", EvalContext::MaxModelLen),
            ("five-times", EvalContext::FiveTimes),
        ];
        d.choice(n, name, &choices)
    });
    f.finish(d);
    Some(EvalPolicy {
        description: description?,
        selection: selection?,
        all_evals: all_evals?,
        plan_trim: plan_trim?,
        eval_context: eval_context?,
    })
}

fn rule_set(d: &mut Decoder, node: &Node<'_>, name: &'static str) -> Option<RuleSet> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let extra_rows = f.optional(d, "extra-rows", |d, n, name| {
        d.choice(n, name, &[("last", ExtraRows::Last), ("adjacent", ExtraRows::Adjacent)])
    });
    let rules = f.required(d, "rules", |d, node, name| d.list(node, name, 0, rule));
    f.finish(d);
    Some(RuleSet {
        extra_rows: extra_rows.unwrap_or_default(),
        rules: rules?,
    })
}

fn rule(d: &mut Decoder, node: &Node<'_>) -> Option<Rule> {
    let mut f = d.fields(node, "a rule")?;
    let name = f.required(d, "name", Decoder::string);
    let scenario = f.required(d, "scenario", |d, n, name| d.choice(n, name, &ScenarioType::CHOICES));
    let nodes = f.optional(d, "nodes", |d, n, name| d.choice(n, name, &NodeKind::CHOICES));
    let sequence_lengths = f.optional(d, "sequence-lengths", |d, node, name| {
        d.list(node, name, 1, |d, n| d.choice(n, name, &SeqLen::NAMED))
    });
    let matching = f.optional(d, "match", matching).unwrap_or_default();
    let when = f.optional(d, "when", |d, n, name| {
        d.choice(n, name, &[("always", When::Always), ("evals-only", When::EvalsOnly)])
    });
    let floor = f.optional(d, "floor", |d, n, name| d.integer(n, name, 1));
    let group_by = f.optional(d, "group-by", group_by);
    let pick = f.required(d, "pick", |d, node, name| {
        d.list(node, name, 1, |d, n| d.choice(n, name, &Pick::CHOICES))
    });
    let take = f.optional(d, "take", |d, n, name| {
        d.choice(n, name, &[("level", Take::Level), ("first-row", Take::FirstRow)])
    });
    let fallback = f.optional(d, "fallback", |d, node, name| {
        let mut f = d.fields(node, &format!("`{name}`"))?;
        let group_by = f.required(d, "group-by", |d, node, name| d.list(node, name, 1, |d, n| field(d, n)));
        f.finish(d);
        Some(Fallback { group_by: group_by? })
    });
    let eval_conc = f.optional(d, "eval-conc", |d, n, name| {
        let choices = [
            ("highest", EvalConc::Highest),
            ("upper-median", EvalConc::UpperMedian),
            ("all", EvalConc::All),
        ];
        d.choice(n, name, &choices)
    });
    let merge = f.optional(d, "merge", Decoder::boolean).unwrap_or(false);
    let evaluator = f.optional(d, "evaluator", evaluator);
    if f.has("fallback") && !f.has("floor") {
        d.refuse(
            &config::INCOMPLETE,
            f.at("fallback"),
            "`fallback` needs a `floor`",
            "without one every group has a row",
        );
    }
    if evaluator.as_ref().is_some_and(Evaluator::is_benchmark) {
        benchmark_fits(d, &f, nodes, eval_conc);
    }
    f.finish(d);
    Some(Rule {
        name: name?,
        scenario: scenario?,
        nodes,
        sequence_lengths,
        r#match: matching,
        when: when.unwrap_or_default(),
        floor,
        group_by,
        pick: pick?,
        take: take.unwrap_or_default(),
        fallback,
        eval_conc,
        merge,
        evaluator,
    })
}

/// Refuses what a rule cannot ask of an accuracy benchmark.
fn benchmark_fits(d: &mut Decoder, f: &Fields<'_, '_>, nodes: Option<NodeKind>, eval_conc: Option<EvalConc>) {
    if nodes == Some(NodeKind::Single) {
        let message = "srt-slurm runs the evaluator `benchmark`, for multi-node rows";
        let hint = "write `nodes: multi`, or evaluate with `lm-eval`";
        d.refuse(&config::CONFLICT, f.at("nodes"), message, hint);
    }
    if eval_conc == Some(EvalConc::All) {
        let message = "the evaluator `benchmark` runs once, at the requests that its recipe's `num_threads` says";
        let hint = "write `highest`, which is what its results are listed under";
        d.refuse(&config::CONFLICT, f.at("eval-conc"), message, hint);
    }
}

fn matching(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Vec<(Field, Vec<String>)>> {
    let mut all = Vec::new();
    for (key, value) in d.entries(node, name) {
        let (field, values) = (field(d, key), d.strings(value, key.text(), 1));
        all.push((field?, values?));
    }
    Some(all)
}

fn field(d: &mut Decoder, node: &Node<'_>) -> Option<Field> {
    let choices: Vec<(String, Field)> = Field::of_groups().map(|field| (field.name(), field)).collect();
    let choices: Vec<(&str, Field)> = choices.iter().map(|(name, field)| (name.as_str(), *field)).collect();
    d.choice(node, "a row's fields", &choices)
}

fn group_by(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<GroupBy> {
    if node.text() == "topology" {
        return Some(GroupBy::Topology(TopologyWord::Topology));
    }
    d.list(node, name, 1, |d, n| field(d, n)).map(GroupBy::Fields)
}

fn evaluator(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Evaluator> {
    let mut f: Fields<'_, '_> = d.fields(node, &format!("`{name}`"))?;
    let framework = f.required(d, "framework", Decoder::string);
    let suite = f.optional(d, "suite", Decoder::string_or_empty).unwrap_or_default();
    f.finish(d);
    Some(Evaluator {
        framework: framework?,
        suite,
    })
}
