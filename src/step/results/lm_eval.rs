//! A result file in lm-eval's form; the vendors' suites and the SWE-bench scorer write the same one.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;

use indexmap::IndexMap;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::loose::{Cell, List, Map};
use super::{file, json};

/// What stands between a metric and its filter in a metric's name: `exact_match,strict-match`.
pub(crate) const SEPARATOR: char = ',';
/// What a metric's name ends in where it is the standard error of that metric.
const STDERR: &str = "_stderr";

/// The most groups of a file; the largest suites have some hundred. What is nested is walked for each of them.
const MAX_GROUPS: usize = 5000;

/// One line of `results`: metric names with their values, and other things about the task.
pub(crate) type Metrics = IndexMap<String, Cell>;

type Tasks<T> = Map<IndexMap<String, T>>;

/// A result file.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ResultFile {
    #[serde(default)]
    results: Tasks<Map<Metrics>>,
    #[serde(default)]
    groups: Tasks<Map<Metrics>>,
    #[serde(default)]
    group_subtasks: Tasks<List<Cell>>,
    #[serde(default, rename = "n-samples")]
    n_samples: Tasks<Map<SampleCount>>,
    #[serde(default)]
    configs: Tasks<Map<TaskConfig>>,
    #[serde(default)]
    config: Map<RunConfig>,
    #[serde(default)]
    higher_is_better: Tasks<Map<IndexMap<String, Cell>>>,
    #[serde(default)]
    integration_error: Failure,
    #[serde(default)]
    model_name: Cell,
    /// The tasks that are categories of another; a file cannot say so.
    #[serde(skip)]
    pub(crate) categories: HashSet<String>,
}

/// How many samples a task has, and how many of them were evaluated.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct SampleCount {
    /// Samples of the split.
    #[serde(default)]
    pub original: Cell,
    /// Samples evaluated.
    #[serde(default)]
    pub effective: Cell,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct TaskConfig {
    #[serde(default)]
    metric_list: List<Map<MetricConfig>>,
    #[serde(default)]
    filter_list: List<Map<FilterConfig>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct MetricConfig {
    #[serde(default)]
    metric: Cell,
    #[serde(default)]
    higher_is_better: Cell,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct FilterConfig {
    #[serde(default)]
    name: Cell,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct RunConfig {
    #[serde(default)]
    limit: Cell,
}

impl ResultFile {
    /// Reads a result file.
    ///
    /// # Errors
    /// A file that cannot be read or is no such JSON, as the end of a sentence about it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let bytes = file::read(path).map_err(|error| format!("cannot be read: {error}"))?;
        let file: Self = json::parse_object(&bytes)?;
        if file.groups().nth(MAX_GROUPS).is_some() {
            return Err(format!("has more than {MAX_GROUPS} groups in `group_subtasks`"));
        }
        Ok(file)
    }

    /// Every task and group with its metrics, each once: files repeat the lines of groups. `None` for a line that is
    /// no mapping.
    pub fn tasks(&self) -> impl Iterator<Item = (&str, Option<&Metrics>)> {
        let results = self.results.0.iter().flatten();
        let groups = self.groups.0.iter().flatten();
        let known = self.results.0.as_ref();
        results
            .chain(groups.filter(move |(name, _)| known.is_none_or(|known| !known.contains_key(*name))))
            .map(|(name, metrics)| (name.as_str(), metrics.0.as_ref()))
    }

    /// How often all samples of a task were run, where that was more than once, with the standard deviation over runs.
    #[must_use]
    pub(crate) fn repeats(&self, task: &str) -> Option<(u64, Option<f64>)> {
        let metrics = self.results.0.as_ref()?.get(task)?.0.as_ref()?;
        let repeats = metrics.get("repeats")?.integer().filter(|repeats| *repeats > 1)?;
        Some((repeats, metrics.get("spread").and_then(Cell::number)))
    }

    /// Why the run itself failed, where its writer says so.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.integration_error.0.as_deref()
    }

    /// The model that was asked.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model_name.text()
    }

    /// The limit on samples that the run was started with.
    #[must_use]
    pub fn limit(&self) -> Option<f64> {
        let limit = self.config.0.as_ref()?.limit.number()?;
        (limit > 0.0).then_some(limit)
    }

    /// Whether a task is a group of others.
    #[must_use]
    pub fn is_group(&self, task: &str) -> bool {
        self.subtasks(task).next().is_some()
    }

    /// The groups and what each holds, as the file lists it.
    pub fn groups(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        let lists = self.group_subtasks.0.iter().flatten();
        lists
            .map(|(name, list)| (name.as_str(), list.items().filter_map(Cell::text).collect::<Vec<_>>()))
            .filter(|(_, tasks)| !tasks.is_empty())
    }

    /// The members of groups that are no names of tasks, each with its group.
    pub fn nameless_members(&self) -> impl Iterator<Item = (&str, &Cell)> {
        let lists = self.group_subtasks.0.iter().flatten();
        let members = lists.flat_map(|(group, list)| list.items().map(|member| (group.as_str(), member)));
        members.filter(|(_, member)| member.text().is_none())
    }

    /// The lines that stand under `results` and under `groups`, both.
    pub fn told_twice(&self) -> impl Iterator<Item = (&str, &Metrics, &Metrics)> {
        self.groups.0.iter().flatten().filter_map(|(name, line)| {
            let other = self.results.0.as_ref()?.get(name)?.0.as_ref()?;
            Some((name.as_str(), other, line.0.as_ref()?))
        })
    }

    /// Whether a task has a line of its own.
    #[must_use]
    pub fn has_line(&self, task: &str) -> bool {
        let has = |tasks: &Tasks<Map<Metrics>>| tasks.0.as_ref().is_some_and(|tasks| tasks.contains_key(task));
        has(&self.results) || has(&self.groups)
    }

    /// What a group holds, as the file lists it; nothing for a task.
    pub fn subtasks(&self, task: &str) -> impl Iterator<Item = &str> {
        let lists = self.group_subtasks.0.as_ref();
        lists
            .and_then(|lists| lists.get(task))
            .into_iter()
            .flat_map(|list| list.items().filter_map(Cell::text))
    }

    /// Whether a group holds itself, at whatever depth.
    #[must_use]
    pub fn holds_itself(&self, group: &str) -> bool {
        let mut seen = HashSet::new();
        let mut pending: Vec<&str> = self.subtasks(group).collect();
        while let Some(name) = pending.pop() {
            if name == group {
                return true;
            }
            if seen.insert(name) {
                pending.extend(self.subtasks(name));
            }
        }
        false
    }

    /// The tasks that a group ends in, each once, however it is nested; a task itself.
    #[must_use]
    pub fn leaves<'a>(&'a self, task: &'a str) -> Vec<&'a str> {
        let mut leaves = Vec::new();
        let mut seen = HashSet::new();
        let mut pending = vec![task];
        while let Some(name) = pending.pop() {
            if !seen.insert(name) {
                continue;
            }
            let before = pending.len();
            pending.extend(self.subtasks(name));
            if pending.len() == before {
                leaves.push(name);
            }
        }
        leaves.reverse();
        leaves
    }

    /// The sample count of one task, as the file has it.
    #[must_use]
    pub fn own_samples(&self, task: &str) -> Option<&SampleCount> {
        self.n_samples.0.as_ref()?.get(task)?.0.as_ref()
    }

    /// The evaluated samples of a task, or of a group: the sum over its tasks, for groups have no count of their own.
    #[must_use]
    pub fn effective(&self, task: &str) -> Option<f64> {
        if let Some(own) = self.own_samples(task) {
            return own.effective.number();
        }
        if !self.is_group(task) {
            return None;
        }
        self.leaves(task)
            .into_iter()
            .map(|leaf| self.own_samples(leaf)?.effective.number())
            .sum()
    }

    fn config(&self, task: &str) -> Option<&TaskConfig> {
        self.configs.0.as_ref()?.get(task)?.0.as_ref()
    }

    /// The metrics that a task declares, or that the tasks of a group declare, each once.
    #[must_use]
    pub fn declared_metrics(&self, task: &str) -> Vec<&str> {
        let leaves = self.leaves(task).into_iter();
        distinct(
            leaves
                .filter_map(|leaf| self.config(leaf))
                .flat_map(|config| config.metric_list.items())
                .filter_map(|declared| declared.0.as_ref()?.metric.text()),
        )
    }

    /// The filters that a task declares, or that the tasks of a group declare, each once.
    #[must_use]
    pub fn declared_filters(&self, task: &str) -> Vec<&str> {
        let leaves = self.leaves(task).into_iter();
        distinct(
            leaves
                .filter_map(|leaf| self.config(leaf))
                .flat_map(|config| config.filter_list.items())
                .filter_map(|declared| declared.0.as_ref()?.name.text()),
        )
    }

    /// Whether more of a metric is better, where the file says so: for the task, in its declaration, or for the
    /// tasks of a group.
    #[must_use]
    pub fn is_more_better(&self, task: &str, metric: &str) -> Option<bool> {
        let said = |task: &str| -> Option<bool> {
            let said = self.higher_is_better.0.as_ref()?.get(task)?.0.as_ref()?;
            said.get(metric)?.flag()
        };
        let declared = |task: &str| -> Option<bool> {
            let metrics = self.config(task)?.metric_list.items();
            metrics
                .filter_map(|declared| declared.0.as_ref())
                .find(|declared| declared.metric.text() == Some(metric))?
                .higher_is_better
                .flag()
        };
        let of = |task: &str| said(task).or_else(|| declared(task));
        of(task).or_else(|| self.leaves(task).into_iter().find_map(of))
    }
}

/// Names in their order, each once.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

/// Whether a metric's name is that of a standard error.
#[must_use]
pub(crate) fn is_stderr(name: &str) -> bool {
    name.split(SEPARATOR)
        .next()
        .is_some_and(|metric| metric.ends_with(STDERR))
}

/// The standard error that a line gives for a metric, as the file has it.
#[must_use]
pub(crate) fn stderr<'m>(metrics: &'m Metrics, name: &str) -> &'m Cell {
    let key = match name.split_once(SEPARATOR) {
        Some((metric, filter)) => format!("{metric}{STDERR}{SEPARATOR}{filter}"),
        None => format!("{name}{STDERR}"),
    };
    metrics.get(&key).unwrap_or(&Cell::Null)
}

/// A score: a finite number from 0 to 1.
#[must_use]
pub(crate) fn score(cell: &Cell) -> Option<f64> {
    cell.number().filter(|value| (0.0..=1.0).contains(value))
}

/// What went wrong outside of the model: a mapping with `type` and `message`, or a text.
#[derive(Debug, Clone, Default, PartialEq)]
struct Failure(Option<String>);

struct FailureVisitor;

impl<'de> Visitor<'de> for FailureVisitor {
    type Value = Failure;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an error")
    }

    fn visit_unit<E>(self) -> Result<Failure, E> {
        Ok(Failure(None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Failure, E> {
        Ok(Failure(Some(text.to_owned())))
    }

    fn visit_bool<E>(self, failed: bool) -> Result<Failure, E> {
        Ok(Failure(failed.then(|| "it says no more".to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Failure, A::Error> {
        let mut texts = Vec::new();
        while let Some(item) = list.next_element::<Cell>()? {
            texts.push(item.text().map_or_else(|| item.to_string(), str::to_owned));
        }
        Ok(Failure((!texts.is_empty()).then(|| texts.join("; "))))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Failure, A::Error> {
        let (mut kind, mut message) = (Cell::Null, Cell::Null);
        while let Some(key) = map.next_key::<String>()? {
            let value: Cell = map.next_value()?;
            match key.as_str() {
                "type" => kind = value,
                "message" => message = value,
                _ => {}
            }
        }
        let texts: Vec<&str> = [&kind, &message].into_iter().filter_map(Cell::text).collect();
        Ok(Failure(Some(if texts.is_empty() {
            "it says no more".to_owned()
        } else {
            texts.join(": ")
        })))
    }
}

impl<'de> Deserialize<'de> for Failure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FailureVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> ResultFile {
        json::parse(text.as_bytes()).expect("a result file")
    }

    #[test]
    fn groups_sum_their_leaves_once_and_cycles_end() {
        let file = file(
            r#"{"results": {"g": {"acc,none": 0.5}, "a": {}, "b": {}},
                "groups": {"g": {"acc,none": 0.5}, "h": {}},
                "group_subtasks": {"g": ["h", "a"], "h": ["a", "b", "g"], "a": []},
                "configs": {"a": {"metric_list": [{"metric": "acc"}, "odd"]}, "b": 3},
                "n-samples": {"a": {"effective": 3}, "b": {"effective": 4}}}"#,
        );
        assert_eq!(file.effective("g"), Some(7.0));
        assert_eq!(file.effective("a"), Some(3.0));
        assert_eq!(file.effective("z"), None);
        assert_eq!(file.declared_metrics("g"), ["acc"]);
        let names: Vec<&str> = file.tasks().map(|(name, _)| name).collect();
        assert_eq!(names, ["g", "a", "b", "h"]);
    }

    #[test]
    fn the_tasks_of_a_group_stand_in_the_order_of_the_file() {
        let file = file(
            r#"{"group_subtasks": {"g": ["b", "h", "c"], "h": ["a"]},
                "configs": {"b": {"metric_list": [{"metric": "f1"}]}, "a": {"metric_list": [{"metric": "acc"}]}}}"#,
        );
        assert_eq!(file.leaves("g"), ["b", "a", "c"]);
        assert_eq!(file.declared_metrics("g"), ["f1", "acc"]);
    }

    #[test]
    fn strange_values_read_as_absent() {
        let file = file(r#"{"results": {"a": 3, "b": {"x": [1]}}, "n-samples": [], "configs": null, "config": "x"}"#);
        let tasks: Vec<_> = file.tasks().collect();
        assert_eq!(tasks[0], ("a", None));
        assert_eq!(tasks[1].1.and_then(|m| m.get("x")), Some(&Cell::Nested));
        assert_eq!(file.effective("a"), None);
        assert_eq!(file.limit(), None);
    }

    #[test]
    fn every_form_of_failure_is_one() {
        let failure = |text: &str| {
            file(&format!(r#"{{"integration_error": {text}}}"#))
                .failure()
                .map(str::to_owned)
        };
        assert_eq!(failure("null"), None);
        assert_eq!(failure("false"), None);
        assert_eq!(failure("true").as_deref(), Some("it says no more"));
        assert_eq!(failure(r#""boom""#).as_deref(), Some("boom"));
        assert_eq!(
            failure(r#"{"type": "T", "message": "m", "more": [{}]}"#).as_deref(),
            Some("T: m")
        );
        assert!(failure("{}").is_some());
        assert_eq!(failure(r#"["a", 3]"#).as_deref(), Some("a; 3"));
    }
}
