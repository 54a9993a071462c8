//! `configs/ci-priority.yaml`: which queued jobs go first.

use std::sync::Arc;

use indexmap::IndexMap;
use rust_decimal::Decimal;
use schemars::JsonSchema;

use super::decode::Decoder;
use super::problem::Problems;
use super::source::Source;
use super::tree::Node;
use crate::findings::config;

/// The priorities file. A job's score is the base plus every adjustment that fits it; higher scores go first.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Priorities {
    /// The form of the file; 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u64,
    /// The score of a job that nothing fits.
    #[schemars(with = "f64")]
    pub base_score: Decimal,
    /// What is added.
    pub adjustments: Adjustments,
    /// Pull request labels that change the score.
    #[schemars(default)]
    pub labels: PriorityLabels,
}

/// What is added to a job's score.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Adjustments {
    /// By the event's name.
    #[schemars(default, with = "IndexMap<String, f64>")]
    pub event: IndexMap<String, Decimal>,
    /// For multi-node jobs.
    #[schemars(default, with = "f64")]
    pub multi_node: Decimal,
    /// For agentic jobs.
    #[schemars(default, with = "f64")]
    pub agentic: Decimal,
    /// For jobs that run nothing but an eval.
    #[schemars(default, with = "f64")]
    pub eval_only: Decimal,
    /// By precision.
    #[schemars(default, with = "IndexMap<String, f64>")]
    pub precision: IndexMap<String, Decimal>,
    /// By speculative decoding.
    #[schemars(default, with = "IndexMap<String, f64>")]
    pub spec_decoding: IndexMap<String, Decimal>,
    /// By the whole framework, or its start up to a dash; of several the first in the file.
    #[schemars(default, with = "IndexMap<String, f64>")]
    pub framework_prefix: IndexMap<String, Decimal>,
    /// By model prefix.
    #[schemars(default, with = "IndexMap<String, f64>")]
    pub model_prefix: IndexMap<String, Decimal>,
}

/// Pull request labels that change the score.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PriorityLabels {
    /// The label that puts a job before all others.
    pub skip_queue: Option<SkipQueue>,
    /// Labels that say that a checklist is done.
    pub checklist_complete: Option<ChecklistComplete>,
    /// Labels that replace the score.
    pub patchwork: Option<Patchwork>,
}

/// The label that puts a job before all others.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct SkipQueue {
    /// Its name.
    pub name: String,
}

/// Labels that say that a checklist is done.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ChecklistComplete {
    /// Their names.
    #[schemars(length(min = 1))]
    pub names: Vec<String>,
    /// What they add.
    #[schemars(with = "f64")]
    pub adjustment: Decimal,
}

/// Labels that replace the score.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Patchwork {
    /// Their names.
    #[schemars(length(min = 1))]
    pub names: Vec<String>,
    /// The score.
    #[schemars(with = "f64")]
    pub score: Decimal,
    /// Labels that waive it.
    #[schemars(default)]
    pub waived_by: Vec<String>,
}

impl Priorities {
    /// Reads a priorities file.
    ///
    /// # Errors
    /// Every problem of the file.
    pub(crate) fn load(source: &Arc<Source>) -> Result<Self, Problems> {
        super::load(source, |d, node| {
            let mut f = d.fields(node, "the priorities file")?;
            let version = f.required(d, "version", |d, node, name| {
                let version = d.integer(node, name, 1)?;
                if version != 1 {
                    d.refuse(
                        &config::VERSION,
                        node.span,
                        format!("version {version} is not known"),
                        "write `version: 1`",
                    );
                }
                Some(version)
            });
            let base_score = f.required(d, "base-score", Decoder::decimal);
            let adjustments = f.required(d, "adjustments", adjustments);
            let labels = f.optional(d, "labels", labels).unwrap_or_default();
            f.finish(d);
            Some(Self {
                version: version?,
                base_score: base_score?,
                adjustments: adjustments?,
                labels,
            })
        })
    }
}

fn scores(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<IndexMap<String, Decimal>> {
    let mut scores = IndexMap::new();
    for (key, value) in d.entries(node, name) {
        if let Some(score) = d.decimal(value, key.text()) {
            scores.insert(key.text().to_owned(), score);
        }
    }
    Some(scores)
}

fn adjustments(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Adjustments> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let adjustments = Adjustments {
        event: f.optional(d, "event", scores).unwrap_or_default(),
        multi_node: f.optional(d, "multi-node", Decoder::decimal).unwrap_or_default(),
        agentic: f.optional(d, "agentic", Decoder::decimal).unwrap_or_default(),
        eval_only: f.optional(d, "eval-only", Decoder::decimal).unwrap_or_default(),
        precision: f.optional(d, "precision", scores).unwrap_or_default(),
        spec_decoding: f.optional(d, "spec-decoding", scores).unwrap_or_default(),
        framework_prefix: f.optional(d, "framework-prefix", scores).unwrap_or_default(),
        model_prefix: f.optional(d, "model-prefix", scores).unwrap_or_default(),
    };
    f.finish(d);
    Some(adjustments)
}

fn labels(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<PriorityLabels> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let skip_queue = f.optional(d, "skip-queue", |d, node, name| {
        let mut f = d.fields(node, &format!("`{name}`"))?;
        let name = f.required(d, "name", Decoder::string);
        f.finish(d);
        Some(SkipQueue { name: name? })
    });
    let checklist_complete = f.optional(d, "checklist-complete", |d, node, name| {
        let mut f = d.fields(node, &format!("`{name}`"))?;
        let names = f.required(d, "names", |d, n, name| d.strings(n, name, 1));
        let adjustment = f.required(d, "adjustment", Decoder::decimal);
        f.finish(d);
        Some(ChecklistComplete {
            names: names?,
            adjustment: adjustment?,
        })
    });
    let patchwork = f.optional(d, "patchwork", |d, node, name| {
        let mut f = d.fields(node, &format!("`{name}`"))?;
        let names = f.required(d, "names", |d, n, name| d.strings(n, name, 1));
        let score = f.required(d, "score", Decoder::decimal);
        let waived_by = f.optional(d, "waived-by", |d, n, name| d.strings(n, name, 0));
        f.finish(d);
        Some(Patchwork {
            names: names?,
            score: score?,
            waived_by: waived_by.unwrap_or_default(),
        })
    });
    f.finish(d);
    Some(PriorityLabels {
        skip_queue,
        checklist_complete,
        patchwork,
    })
}
