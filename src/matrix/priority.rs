//! The score of a row: which of the queued jobs goes first.

use std::cmp::Reverse;

use rust_decimal::{Decimal, RoundingStrategy};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::bucket::Buckets;
use super::fingerprint::hex;
use super::row::Row;
use crate::config::priority::{Adjustments, Priorities};
use crate::config::types::{NodeKind, ScenarioType};

/// The decimal places of a score.
const PLACES: u32 = 3;

/// What of a row decides its score; its other fields do not matter.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[allow(missing_docs, reason = "named as in rows")]
pub(crate) struct Candidate {
    pub framework: Option<String>,
    pub precision: Option<String>,
    pub model_prefix: Option<String>,
    pub spec_decoding: Option<String>,
    pub scenario_type: Option<String>,
    pub eval_only: Option<bool>,
    /// Rows of several nodes have it.
    pub prefill: Option<serde::de::IgnoredAny>,
}

impl From<&Row> for Candidate {
    fn from(row: &Row) -> Self {
        let topology = &row.topology;
        Self {
            framework: Some(topology.framework.clone()),
            precision: Some(topology.precision.clone()),
            model_prefix: Some(topology.model_prefix.clone()),
            spec_decoding: Some(topology.spec_decoding.as_str().to_owned()),
            scenario_type: Some(row.scenario_type().as_str().to_owned()),
            eval_only: Some(row.eval.eval_only),
            prefill: (row.node_kind() == NodeKind::Multi).then_some(serde::de::IgnoredAny),
        }
    }
}

/// Why rows are queued.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occasion<'a> {
    /// The event's name, such as `push`; empty for none.
    pub event: &'a str,
    /// The labels of the pull request.
    pub labels: &'a [String],
    /// Its number.
    pub pull_request: Option<u64>,
}

/// A row's place in the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Priority {
    /// The score with three decimal places; higher goes first.
    #[serde(rename = "priority")]
    pub score: String,
    /// The pull request whose jobs go before all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_queue_pr: Option<u64>,
}

/// What a scheduler is told of a job by the labels of its `runs-on`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Queued {
    /// The score with three decimal places; higher goes first.
    pub score: String,
    /// 32 hex digits that tell the job from all others, of other runs too. Each attempt of a job has the same.
    pub token: String,
    /// The pull request whose jobs go before all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_queue_pr: Option<u64>,
}

impl Queued {
    /// What jobs are ordered by, the first first.
    fn order(&self) -> impl Ord + use<> {
        let score: Option<Decimal> = self.score.parse().ok();
        Reverse((self.skip_queue_pr.is_some(), score))
    }
}

/// Tells every job its place in the queue; `run` is what tells its tokens from those of other runs. False where a score
/// has more digits than a decimal holds.
#[must_use]
pub(crate) fn queue(buckets: &mut Buckets, policy: &Priorities, occasion: Occasion<'_>, run: &str) -> bool {
    buckets.values_mut().flatten().all(|envelope| {
        let scored = score(policy, occasion, &Candidate::from(&envelope.row));
        let digest = Sha256::digest(format!("{run}:{}", envelope.id));
        envelope.priority = scored.map(|scored| Queued {
            score: scored.score,
            token: hex(&digest[..16]),
            skip_queue_pr: scored.skip_queue_pr,
        });
        envelope.priority.is_some()
    })
}

/// Puts the jobs of each bucket into the order of their scores; those of one score, or without one, stay as they stand.
pub(crate) fn order(buckets: &mut Buckets) {
    for envelopes in buckets.values_mut() {
        envelopes.sort_by_cached_key(|envelope| envelope.priority.as_ref().map(Queued::order));
    }
}

/// Scores a row. `None` where the terms add up to more than a decimal holds.
#[must_use]
pub(crate) fn score(policy: &Priorities, occasion: Occasion<'_>, row: &Candidate) -> Option<Priority> {
    let labelled = |names: &[String]| names.iter().any(|name| occasion.labels.contains(name));
    let labels = &policy.labels;
    let held_back = labels
        .patchwork
        .as_ref()
        .filter(|p| labelled(&p.names) && !labelled(&p.waived_by));
    let score = match held_back {
        Some(patchwork) => patchwork.score,
        None => {
            let checked = labels.checklist_complete.as_ref().filter(|c| labelled(&c.names));
            let terms = terms(&policy.adjustments, occasion.event, row);
            let mut terms = terms.into_iter().chain(checked.map(|c| c.adjustment));
            terms.try_fold(policy.base_score, Decimal::checked_add)?
        }
    };
    let score = score.round_dp_with_strategy(PLACES, RoundingStrategy::MidpointAwayFromZero);
    let skips = labels
        .skip_queue
        .as_ref()
        .is_some_and(|skip| occasion.labels.contains(&skip.name));
    Some(Priority {
        score: format!("{score:.3}"),
        skip_queue_pr: occasion.pull_request.filter(|_| skips),
    })
}

/// What is added for a row, every term that fits.
fn terms(add: &Adjustments, event: &str, row: &Candidate) -> Vec<Decimal> {
    let agentic = row.scenario_type.as_deref() == Some(ScenarioType::AgenticCoding.as_str());
    let flags = [
        (row.prefill.is_some(), add.multi_node),
        (agentic, add.agentic),
        (row.eval_only == Some(true), add.eval_only),
    ];
    let named = [
        (&add.precision, &row.precision),
        (&add.spec_decoding, &row.spec_decoding),
        (&add.model_prefix, &row.model_prefix),
    ];
    let framework = row.framework.as_deref().unwrap_or_default();
    let mut prefixes = add.framework_prefix.iter();
    let framework = prefixes
        .find(|(prefix, _)| is_part(framework, prefix))
        .map(|(_, term)| *term);
    flags
        .into_iter()
        .filter_map(|(fits, term)| fits.then_some(term))
        .chain(
            named
                .into_iter()
                .filter_map(|(terms, name)| terms.get(name.as_ref()?).copied()),
        )
        .chain(add.event.get(event).copied())
        .chain(framework)
        .collect()
}

/// Whether a framework is the one that a prefix names, or goes on behind a dash.
fn is_part(framework: &str, prefix: &str) -> bool {
    framework
        .strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}
