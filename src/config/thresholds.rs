//! `configs/thresholds.yaml`: which score passes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use schemars::JsonSchema;

use super::decode::{Decoder, Fields};
use super::problem::{Place, Problem, Problems};
use super::source::Source;
use super::tree::{Node, Value};
use crate::findings::{Finding, config};

/// The copy that serves a repository without thresholds of its own.
pub const BUILT_IN: &str = include_str!("../../configs/thresholds.yaml");

/// Where a repository keeps its own.
pub const FILE: &str = "configs/thresholds.yaml";

/// The thresholds file.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Thresholds {
    /// Thresholds by task.
    #[schemars(default)]
    pub default: IndexMap<String, Threshold>,
    /// Thresholds by model prefix, then task; they replace the default.
    #[schemars(default)]
    pub models: IndexMap<String, IndexMap<String, Threshold>>,
    /// Where each key stands.
    #[schemars(skip)]
    pub places: Vec<KeyPlace>,
}

/// Where a key of the file stands.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyPlace {
    /// The model prefix; `None` under `default`.
    pub prefix: Option<String>,
    /// The task; `None` for the prefix itself.
    pub task: Option<String>,
    /// Its place.
    pub place: Place,
}

/// One threshold: a bare score, or a mapping that also says how it was found.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(untagged, rename_all = "kebab-case")]
pub enum Threshold {
    /// The lowest score that passes, 0 to 1.
    Score(#[schemars(range(min = 0.0, max = 1.0))] f64),
    /// The same, with its metric and its calibration.
    Calibrated(Calibrated),
}

/// A threshold with its metric and its calibration: it has `min-score`, or `max`, or both.
#[derive(Debug, Clone, Default, PartialEq, JsonSchema)]
#[schemars(
    rename_all = "kebab-case",
    deny_unknown_fields,
    extend("anyOf" = [{"required": ["min-score"]}, {"required": ["max"]}])
)]
pub struct Calibrated {
    /// The lowest score that passes, 0 to 1; for metrics of which more is better.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_score: Option<f64>,
    /// The highest score that passes; for metrics of which less is better.
    pub max: Option<f64>,
    /// The metric that is the task's score, such as `f1`, or with its filter `exact_match,flexible-extract`.
    pub metric: Option<String>,
    /// The largest share of questions without an answer, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub max_empty: Option<f64>,
    /// The mean score of the runs that it was calibrated on.
    pub mean: Option<f64>,
    /// The standard deviation of those runs' scores.
    #[schemars(range(min = 0.0))]
    pub spread: Option<f64>,
    /// The samples of each of those runs.
    #[schemars(range(min = 1))]
    pub samples: Option<u64>,
}

impl Threshold {
    /// The lowest score that passes, where it has one.
    #[must_use]
    pub fn min_score(&self) -> Option<f64> {
        match self {
            Self::Score(score) => Some(*score),
            Self::Calibrated(calibrated) => calibrated.min_score,
        }
    }

    /// The highest score that passes, where it has one.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        self.calibrated()?.max
    }

    /// The metric that it names, with or without a filter.
    #[must_use]
    pub fn metric(&self) -> Option<&str> {
        self.calibrated()?.metric.as_deref()
    }

    /// Everything but a bare score.
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
            let mut places = Vec::new();
            let mut keep = |prefix: Option<&str>, task: Option<&str>, key: &Node<'_>| {
                places.push(KeyPlace {
                    prefix: prefix.map(str::to_owned),
                    task: task.map(str::to_owned),
                    place: Place::new(source, key.span),
                });
            };
            let default = f.optional(d, "default", |d, node, name| {
                Some(tasks(d, node, name, None, &mut keep))
            });
            let models = f.optional(d, "models", |d, node, name| {
                let mut models = IndexMap::new();
                for (key, value) in d.entries(node, name) {
                    let prefix = key.text();
                    keep(Some(prefix), None, key);
                    models.insert(prefix.to_owned(), tasks(d, value, prefix, Some(prefix), &mut keep));
                }
                Some(models)
            });
            f.finish(d);
            Some(Self {
                default: default.unwrap_or_default(),
                models: models.unwrap_or_default(),
                places,
            })
        })
    }

    /// Those of a file, else of this folder's `configs/thresholds.yaml`, else the built-in ones.
    ///
    /// # Errors
    /// A file that cannot be read, and every problem of it.
    pub fn here(given: Option<&Path>) -> Result<Self, Problems> {
        let own = Path::new(FILE);
        let source = match given {
            Some(path) => Source::read(path)?,
            None if own.exists() => Source::read(own)?,
            None => Source::new("<built-in>/thresholds.yaml".to_owned(), BUILT_IN.to_owned()),
        };
        Self::load(&Arc::new(source))
    }

    /// The threshold of a task: the model's own, else the default one.
    #[must_use]
    pub fn find(&self, model_prefix: Option<&str>, task: &str) -> Option<&Threshold> {
        model_prefix
            .and_then(|prefix| self.models.get(prefix))
            .and_then(|tasks| tasks.get(task))
            .or_else(|| self.default.get(task))
    }

    /// The tasks that have a threshold for a model.
    #[must_use]
    pub fn tasks(&self, model_prefix: Option<&str>) -> BTreeSet<&str> {
        let own = model_prefix.and_then(|prefix| self.models.get(prefix));
        let tasks = own.into_iter().chain([&self.default]).flat_map(IndexMap::keys);
        tasks.map(String::as_str).collect()
    }

    /// Keys that were meant for a job and do not reach it: a prefix or a task that differs by case or spaces alone, and
    /// a model's full name in place of its prefix. Each names the right key.
    #[must_use]
    pub fn missed_keys(&self, prefix: Option<&str>, model: Option<&str>, tasks: &[&str]) -> Vec<Problem> {
        let mut missed = Vec::new();
        if let Some(prefix) = prefix {
            for key in self.models.keys().filter(|key| *key != prefix) {
                if is_misspelled(key, prefix) || model.is_some_and(|model| is_model(key, model)) {
                    let message = format!("`models.{key}` reaches no job: the key of this model is `{prefix}`");
                    missed.push(self.missed(Some(key), None, message));
                }
            }
        }
        let own = prefix.and_then(|prefix| Some((Some(prefix), self.models.get(prefix)?)));
        for (prefix, map) in own.into_iter().chain([(None, &self.default)]) {
            let within = prefix.map_or_else(|| "default".to_owned(), |prefix| format!("models.{prefix}"));
            for task in tasks.iter().filter(|task| !map.contains_key(**task)) {
                for key in map.keys().filter(|key| is_misspelled(key, task)) {
                    let message = format!("`{within}.{key}` reaches no task: the name of this one is `{task}`");
                    missed.push(self.missed(prefix, Some(key), message));
                }
            }
        }
        missed
    }

    fn missed(&self, prefix: Option<&str>, task: Option<&str>, message: String) -> Problem {
        self.problem(&config::UNUSED_THRESHOLD, prefix, task, message)
            .hint("a threshold that reaches nothing protects nothing: correct the key")
    }

    /// A problem of a key, at its place.
    #[must_use]
    pub fn problem(
        &self,
        finding: &'static Finding,
        prefix: Option<&str>,
        task: Option<&str>,
        message: String,
    ) -> Problem {
        let is_it = |key: &&KeyPlace| key.prefix.as_deref() == prefix && key.task.as_deref() == task;
        match self.places.iter().find(is_it) {
            Some(key) => finding.here(&key.place, message),
            None => finding.file("thresholds.yaml", message),
        }
    }
}

/// Whether two different keys are one but for case and spaces.
#[must_use]
pub fn is_misspelled(key: &str, wanted: &str) -> bool {
    let plain = |text: &str| -> String {
        let kept = text.chars().filter(|c| !c.is_whitespace());
        kept.flat_map(char::to_lowercase).collect()
    };
    key != wanted && plain(key) == plain(wanted)
}

/// Whether a key is a model's full name, or the part of it after its owner.
fn is_model(key: &str, model: &str) -> bool {
    let name = |text: &str| text.rsplit('/').next().unwrap_or_default().to_lowercase();
    !key.is_empty() && name(key) == name(model)
}

fn tasks(
    d: &mut Decoder,
    node: &Node<'_>,
    name: &str,
    prefix: Option<&str>,
    keep: &mut impl FnMut(Option<&str>, Option<&str>, &Node<'_>),
) -> IndexMap<String, Threshold> {
    let mut tasks = IndexMap::new();
    for (key, value) in d.entries(node, name) {
        keep(prefix, Some(key.text()), key);
        if let Some(threshold) = threshold(d, value, key.text()) {
            tasks.insert(key.text().to_owned(), threshold);
        }
    }
    tasks
}

fn threshold(d: &mut Decoder, node: &Node<'_>, task: &str) -> Option<Threshold> {
    if !matches!(node.value, Value::Map(_)) {
        return share(d, node, task).map(Threshold::Score);
    }
    let mut f = d.fields(node, &format!("the threshold of `{task}`"))?;
    if !f.has("min-score") && !f.has("max") {
        let hint = "give `min-score`, or `max` for a metric of which less is better";
        d.report(
            node.span,
            format!("the threshold of `{task}` has neither `min-score` nor `max`"),
            hint,
        );
    }
    let min_score = f.optional(d, "min-score", share);
    let max = f.optional(d, "max", number);
    let metric = f.optional(d, "metric", Decoder::string);
    let max_empty = f.optional(d, "max-empty", share);
    let mean = match max {
        Some(_) => f.optional(d, "mean", number),
        None => f.optional(d, "mean", share),
    };
    let spread = f.optional(d, "spread", spread);
    let samples = f.optional(d, "samples", |d, n, name| d.integer(n, name, 1));
    calibration_is_whole(d, &f);
    f.finish(d);
    Some(Threshold::Calibrated(Calibrated {
        min_score,
        max,
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

fn number(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<f64> {
    d.decimal(node, name)?.to_f64()
}

/// A standard deviation.
fn spread(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<f64> {
    let value = d.decimal(node, name)?;
    if value < Decimal::ZERO {
        let message = format!("`{name}` is {value}, it must not be negative");
        d.report(
            node.span,
            message,
            "write the standard deviation of the scores, such as 0.006",
        );
        return None;
    }
    value.to_f64()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_is_whole_and_its_numbers_are_in_range() {
        let problems = |threshold: &str| {
            let text = format!("default: {{ gsm8k: {threshold} }}\n");
            let source = Arc::new(Source::new("thresholds.yaml".to_owned(), text));
            Thresholds::load(&source).map_or_else(|problems| problems.to_string(), |_| String::new())
        };
        let whole = "a calibration has `mean`, `spread` and `samples`";
        for (threshold, wanted) in [
            ("{ min-score: 0.9, mean: 0.95 }", whole),
            ("{ min-score: 0.9, spread: 0.01, samples: 9 }", whole),
            (
                "{ min-score: 0.9, mean: 0.95, spread: -0.01, samples: 9 }",
                "`spread` is -0.01, it must not be negative",
            ),
            (
                "{ min-score: 0.9, mean: 1.5, spread: 0.01, samples: 9 }",
                "`mean` is 1.5, it must be 0 to 1",
            ),
            ("{ min-score: 0.9, mean: 0.95, spread: 0.01, samples: 0 }", "samples"),
            (
                "{ min-score: 0.9, max-empty: 1.01 }",
                "`max-empty` is 1.01, it must be 0 to 1",
            ),
            ("{ min-score: 0.9, other: 1 }", "other"),
        ] {
            let found = problems(threshold);
            assert!(found.contains(wanted), "{threshold}: {found}");
        }
        let unknown = Source::new("thresholds.yaml".to_owned(), "defaults: {}\n".to_owned());
        let refused = Thresholds::load(&Arc::new(unknown))
            .expect_err("an unknown key")
            .to_string();
        assert!(refused.contains("defaults"), "{refused}");
        for good in [
            "0",
            "1",
            "{ max: 9.8, mean: 9.5, spread: 0, samples: 1 }",
            "{ min-score: 0.9, max-empty: 1 }",
        ] {
            assert_eq!(problems(good), "", "{good}");
        }
    }
}
