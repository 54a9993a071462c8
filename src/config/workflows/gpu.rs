//! How long jobs on a GPU may take: rules by label, nodes, scenario and eval, the first that fits.

use schemars::JsonSchema;

use crate::config::decode::Decoder;
use crate::config::problem::nearest;
use crate::config::tree::Node;
use crate::config::types::{NodeKind, ScenarioType};

/// Minutes that a job on a self-hosted runner may take at most (GitHub's "Actions limits": five days).
const MAX_MINUTES: u64 = 7200;
/// GitHub's own default.
pub(crate) const DEFAULT_MINUTES: u64 = 360;

/// Minutes of the jobs on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GpuTimeouts {
    /// Minutes of a job that no rule fits; 360 unless given.
    #[schemars(default = "default_minutes", range(min = 1, max = 7200))]
    pub default: u64,
    /// Rules, of which the first that fits a job counts.
    #[schemars(default)]
    pub rules: Vec<GpuRule>,
}

impl Default for GpuTimeouts {
    fn default() -> Self {
        Self {
            default: DEFAULT_MINUTES,
            rules: Vec::new(),
        }
    }
}

fn default_minutes() -> u64 {
    DEFAULT_MINUTES
}

/// Minutes of the jobs that fit every condition which is given.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GpuRule {
    /// Runner labels, or runners; any unless given.
    #[schemars(default, length(min = 1), inner(length(min = 1)))]
    pub labels: Vec<String>,
    /// One node or several; both unless given.
    #[schemars(default)]
    pub nodes: Option<NodeKind>,
    /// The kind of workload; both unless given.
    #[schemars(default)]
    pub scenario: Option<ScenarioType>,
    /// Whether the job runs an eval; both unless given.
    #[schemars(default)]
    pub eval: Option<bool>,
    /// The minutes.
    #[schemars(range(min = 1, max = 7200))]
    pub minutes: u64,
}

/// What rules ask of a job.
#[derive(Debug, Clone, Copy)]
pub struct GpuJob<'a> {
    /// Its runner label.
    pub label: &'a str,
    /// One node or several.
    pub nodes: NodeKind,
    /// The kind of workload.
    pub scenario: ScenarioType,
    /// Whether it runs an eval.
    pub eval: bool,
}

impl GpuTimeouts {
    /// The minutes of a job.
    #[must_use]
    pub fn minutes(&self, job: GpuJob<'_>) -> u64 {
        let rule = self.rules.iter().find(|rule| rule.fits(job));
        rule.map_or(self.default, |rule| rule.minutes)
    }
}

impl GpuRule {
    fn fits(&self, job: GpuJob<'_>) -> bool {
        (self.labels.is_empty() || self.labels.iter().any(|label| label == job.label))
            && self.nodes.is_none_or(|nodes| nodes == job.nodes)
            && self.scenario.is_none_or(|scenario| scenario == job.scenario)
            && self.eval.is_none_or(|eval| eval == job.eval)
    }

    /// Whether it fits every job that another one fits.
    fn covers(&self, other: &Self) -> bool {
        fn wider<T: PartialEq>(own: Option<T>, other: Option<T>) -> bool {
            own.is_none() || own == other
        }
        let labels = self.labels.is_empty()
            || (!other.labels.is_empty() && other.labels.iter().all(|label| self.labels.contains(label)));
        labels && wider(self.nodes, other.nodes) && wider(self.scenario, other.scenario) && wider(self.eval, other.eval)
    }
}

/// Reads the rules. `labels` are those of the runners file and its runners, where they are known.
pub(super) fn timeouts(d: &mut Decoder, node: &Node<'_>, labels: Option<&[&str]>) -> Option<GpuTimeouts> {
    let minutes = |d: &mut Decoder, n: &Node<'_>, name: &str| d.integer_up_to(n, name, MAX_MINUTES);
    let mut f = d.fields(node, "`gpu` of `timeouts`")?;
    let default = f.optional(d, "default", minutes);
    let mut rules: Vec<GpuRule> = Vec::new();
    if let Some(list) = f.get("rules") {
        d.list(list, "rules", 0, |d, item| {
            let rule = rule(d, item, labels)?;
            if rules.iter().any(|earlier| earlier.covers(&rule)) {
                let message = "this rule is never reached: an earlier one fits all its jobs";
                d.report(item.span, message, "put it before that one, or remove it");
            }
            rules.push(rule);
            Some(())
        });
    }
    f.finish(d);
    Some(GpuTimeouts {
        default: default.unwrap_or(DEFAULT_MINUTES),
        rules,
    })
}

fn rule(d: &mut Decoder, node: &Node<'_>, known: Option<&[&str]>) -> Option<GpuRule> {
    let mut f = d.fields(node, "a rule of `gpu`")?;
    let labels = f.optional(d, "labels", |d, n, name| {
        d.list(n, name, 1, |d, item| {
            let label = d.string(item, name)?;
            self::known(d, item, &label, known);
            Some(label)
        })
    });
    let nodes = f.optional(d, "nodes", |d, n, name| d.choice(n, name, &NodeKind::CHOICES));
    let scenario = f.optional(d, "scenario", |d, n, name| d.choice(n, name, &ScenarioType::CHOICES));
    let eval = f.optional(d, "eval", Decoder::boolean);
    let minutes = f.required(d, "minutes", |d, n, name| d.integer_up_to(n, name, MAX_MINUTES));
    f.finish(d);
    Some(GpuRule {
        labels: labels.unwrap_or_default(),
        nodes,
        scenario,
        eval,
        minutes: minutes?,
    })
}

/// Reports a label that the runners file does not know, where that is known.
pub(super) fn known(d: &mut Decoder, node: &Node<'_>, label: &str, known: Option<&[&str]>) {
    if let Some(known) = known.filter(|known| !known.contains(&label)) {
        let message = format!("`{label}` is no label and no runner of the runners file");
        d.report(node.span, message, nearest(label, known.iter().copied()));
    }
}
