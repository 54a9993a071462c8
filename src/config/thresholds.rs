//! `configs/thresholds.yaml`: which score passes.

use std::sync::Arc;

use indexmap::IndexMap;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use schemars::JsonSchema;

use super::decode::{Decoder, Fields};
use super::problem::Problems;
use super::source::Source;
use super::tree::{Node, Value};
use crate::findings::config;

/// The copy that serves a repository without thresholds of its own.
pub const BUILT_IN: &str = include_str!("../../configs/thresholds.yaml");

/// The thresholds file.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Thresholds {
    /// Floors by task.
    #[schemars(default)]
    pub default: IndexMap<String, Threshold>,
    /// Floors by model prefix, then task; they replace the default.
    #[schemars(default)]
    pub models: IndexMap<String, IndexMap<String, Threshold>>,
}

/// One floor: a bare score, or a mapping that also says how it was found.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(untagged, rename_all = "kebab-case")]
pub enum Threshold {
    /// The lowest score that passes, 0 to 1.
    Score(#[schemars(range(min = 0.0, max = 1.0))] f64),
    /// The same, with its calibration.
    Calibrated(Calibrated),
}

/// A floor with its calibration.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Calibrated {
    /// The lowest score that passes, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_score: f64,
    /// The start of the checked metrics' names, such as `exact_match`.
    pub metric: Option<String>,
    /// The largest share of empty answers, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_empty: Option<f64>,
    /// The mean score of the runs that it was calibrated on.
    pub mean: Option<f64>,
    /// The standard deviation of those runs' scores.
    pub spread: Option<f64>,
    /// The number of those runs' samples.
    pub samples: Option<u64>,
}

impl Threshold {
    /// The lowest score that passes.
    #[must_use]
    pub fn min_score(&self) -> f64 {
        match self {
            Self::Score(score) => *score,
            Self::Calibrated(calibrated) => calibrated.min_score,
        }
    }

    /// The calibration, where there is one.
    #[must_use]
    pub fn calibrated(&self) -> Option<&Calibrated> {
        match self {
            Self::Score(_) => None,
            Self::Calibrated(calibrated) => Some(calibrated),
        }
    }
}

impl Thresholds {
    /// Reads a thresholds file.
    ///
    /// # Errors
    /// Every problem of the file.
    pub fn load(source: &Arc<Source>) -> Result<Self, Problems> {
        super::load(source, |d, node| {
            let mut f = d.fields(node, "the thresholds file")?;
            let default = f.optional(d, "default", tasks).unwrap_or_default();
            let models = f.optional(d, "models", |d, node, name| {
                let mut models = IndexMap::new();
                for (key, value) in d.entries(node, name) {
                    if let Some(tasks) = tasks(d, value, key.text()) {
                        models.insert(key.text().to_owned(), tasks);
                    }
                }
                Some(models)
            });
            f.finish(d);
            Some(Self {
                default,
                models: models.unwrap_or_default(),
            })
        })
    }

    /// The threshold of a task: the model's own, else the default one.
    #[must_use]
    pub fn find(&self, model_prefix: Option<&str>, task: &str) -> Option<&Threshold> {
        model_prefix
            .and_then(|prefix| self.models.get(prefix))
            .and_then(|tasks| tasks.get(task))
            .or_else(|| self.default.get(task))
    }
}

fn tasks(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<IndexMap<String, Threshold>> {
    let mut tasks = IndexMap::new();
    for (key, value) in d.entries(node, name) {
        if let Some(threshold) = threshold(d, value, key.text()) {
            tasks.insert(key.text().to_owned(), threshold);
        }
    }
    Some(tasks)
}

fn threshold(d: &mut Decoder, node: &Node<'_>, task: &str) -> Option<Threshold> {
    if !matches!(node.value, Value::Map(_)) {
        return share(d, node, task).map(Threshold::Score);
    }
    let mut f = d.fields(node, &format!("the threshold of `{task}`"))?;
    let min_score = f.required(d, "min-score", share);
    let metric = f.optional(d, "metric", Decoder::string);
    let max_empty = f.optional(d, "max-empty", share);
    let mean = f.optional(d, "mean", share);
    let spread = f.optional(d, "spread", share);
    let samples = f.optional(d, "samples", |d, n, name| d.integer(n, name, 1));
    calibration_is_whole(d, &f);
    f.finish(d);
    Some(Threshold::Calibrated(Calibrated {
        min_score: min_score?,
        metric,
        max_empty,
        mean,
        spread,
        samples,
    }))
}

/// A mean without its spread and sample count says nothing of how far a score may fall.
fn calibration_is_whole(d: &mut Decoder, f: &Fields<'_, '_>) {
    let parts = ["mean", "spread", "samples"];
    let there: Vec<_> = parts.iter().filter(|part| f.has(part)).collect();
    if !there.is_empty() && there.len() < parts.len() {
        d.refuse(
            &config::INCOMPLETE,
            f.at(there[0]),
            "a calibration has `mean`, `spread` and `samples`",
            "give all three, or none",
        );
    }
}

fn share(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<f64> {
    let value = d.decimal(node, name)?;
    if value < Decimal::ZERO || value > Decimal::ONE {
        d.refuse(
            &config::OUT_OF_RANGE,
            node.span,
            format!("`{name}` is {value}, it must be 0 to 1"),
            "write a share such as 0.9",
        );
        return None;
    }
    value.to_f64()
}
