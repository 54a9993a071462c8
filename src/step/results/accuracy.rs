//! What the accuracy benchmarks of srt-slurm leave, as result files in lm-eval's form.
//!
//! - AIME: `metrics.json` of NeMo Skills, by data set and mode (`pass@1[avg-of-16]`, `pass@16`, `majority@16`), in percent;
//! - MMLU, GPQA and LongBench-V2: `<bench>_<model>.json` of SGLang's `run_eval` (shares by category, `:std` beside them;
//!   `score`, or `scores` and `mean_score` of several repeats), or srt-slurm's own form (`overall_score`, `scores`);
//! - `benchmark.out`, which alone says all repeats where SGLang is older, and the only trace where no file was found.
//!
//! The names of these files hold a model that scripts may have fixed: they say which benchmark a file is of, and never
//! whose it is.

mod forms;
mod log;

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use self::log::Log;
use super::lm_eval::ResultFile;
use super::{file, json};

/// What the names of result files start with, by the benchmark's name.
const STARTS: [(&str, &str); 4] = [
    ("mmlu_", "mmlu"),
    ("gpqa_", "gpqa"),
    ("longbenchv2_", "longbenchv2"),
    ("longbench_v2_", "longbenchv2"),
];
/// The file of NeMo Skills.
pub(crate) const METRICS: &str = "metrics.json";
/// The log of the benchmark.
pub const LOG: &str = "benchmark.out";
/// The folder of outputs, beside or below the metadata.
pub const FOLDER: &str = "accuracy";

/// One output.
#[derive(Debug)]
pub struct Output {
    /// The file.
    pub path: PathBuf,
    /// What it says, or why it says nothing, as the end of a sentence about it.
    pub result: Result<ResultFile, String>,
}

/// The numbers of one benchmark.
#[derive(Debug, Clone, Default, PartialEq)]
struct Report {
    /// The task: the benchmark, or AIME's data set.
    task: String,
    /// The metric of the score.
    metric: &'static str,
    /// From 0 to 1; the mean where there are repeats.
    score: f64,
    /// Its standard error.
    stderr: Option<f64>,
    /// How often all examples were run.
    repeats: Option<u64>,
    /// The standard deviation over repeats.
    spread: Option<f64>,
    /// Examples of one run.
    samples: Option<u64>,
    /// Scores by category.
    categories: Vec<(String, f64)>,
    /// Further metrics.
    more: Vec<(String, f64)>,
}

/// The outputs in a folder and its `accuracy`.
#[must_use]
pub fn outputs(folder: &Path) -> Vec<Output> {
    let below = folders(&folder.join(FOLDER), file::MAX_DEPTH);
    let own = folders(folder, 0);
    own.first().map(|own| outputs_in(own, &below)).unwrap_or_default()
}

fn folders(path: &Path, depth: usize) -> Vec<file::Folder> {
    file::search(path, depth).map(|found| found.folders).unwrap_or_default()
}

/// The outputs in a folder and its `accuracy`, both listed; `below` may list more folders.
pub(crate) fn outputs_in(folder: &file::Folder, below: &[file::Folder]) -> Vec<Output> {
    let mut found = Vec::new();
    let mut logs = Vec::new();
    let is_of_accuracy = |other: &&file::Folder| {
        let rest = other.path.strip_prefix(&folder.path);
        rest.is_ok_and(|rest| rest.starts_with(FOLDER))
    };
    for folder in std::iter::once(folder).chain(below.iter().filter(is_of_accuracy)) {
        for name in folder.named("", "") {
            let (path, text) = (folder.path.join(name), name.to_string_lossy());
            let start = STARTS.iter().find(|(start, _)| text.starts_with(start));
            match start {
                _ if text == METRICS => found.push((path, None)),
                _ if text == LOG => logs.push(path),
                Some((_, benchmark)) if text.ends_with(".json") => found.push((path, Some(*benchmark))),
                _ => {}
            }
        }
    }
    let logs: Vec<(PathBuf, Result<Log, String>)> = logs
        .into_iter()
        .map(|path| {
            let log = Log::read(&path);
            (path, log)
        })
        .collect();
    judged(found, &logs)
}

/// Whether a folder holds a result file of an accuracy benchmark.
#[must_use]
pub fn is_there(folder: &file::Folder) -> bool {
    folder.has(METRICS)
        || STARTS
            .iter()
            .any(|(start, _)| folder.named(start, ".json").next().is_some())
}

/// Each file held against the log of its benchmark, and logs without a file.
fn judged(found: Vec<(PathBuf, Option<&'static str>)>, logs: &[(PathBuf, Result<Log, String>)]) -> Vec<Output> {
    let of = |benchmark: &str| {
        logs.iter()
            .filter_map(|(_, log)| log.as_ref().ok())
            .find(|log| log.benchmark == Some(benchmark.to_owned()))
    };
    let mut outputs = Vec::new();
    for (path, benchmark) in &found {
        let reports = match benchmark {
            None => object(path).and_then(|found| forms::nemo(&found, of(log::AIME))),
            Some(benchmark) => of(benchmark)
                .map_or(Ok(()), |log| log.is_of(&name_of(path)))
                .and_then(|()| object(path))
                .and_then(|found| forms::sglang(benchmark, &found, of(benchmark)))
                .map(|report| vec![report]),
        };
        let result = reports.and_then(|reports| in_lm_evals_form(&reports));
        outputs.push(Output {
            path: path.clone(),
            result,
        });
    }
    for (path, log) in logs {
        let has_file = |benchmark: &str| found.iter().any(|(_, of)| of.unwrap_or(log::AIME) == benchmark);
        let report = match log {
            Err(reason) => Err(reason.clone()),
            Ok(log) => match &log.benchmark {
                // The log of a benchmark that is no accuracy benchmark, or of one whose file is there.
                None => continue,
                Some(benchmark) if has_file(benchmark) => continue,
                Some(benchmark) => forms::logged(benchmark, log),
            },
        };
        outputs.push(Output {
            path: path.clone(),
            result: report.and_then(|report| in_lm_evals_form(&[report])),
        });
    }
    outputs
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What the score of a category is called.
pub(crate) fn category_task(task: &str, category: &str) -> String {
    format!("{task}_{category}")
}

fn object(path: &Path) -> Result<Map<String, Value>, String> {
    let bytes = file::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    json::parse_object(&bytes)
}

fn in_lm_evals_form(reports: &[Report]) -> Result<ResultFile, String> {
    let (mut results, mut samples, mut configs) = (Map::new(), Map::new(), Map::new());
    for report in reports {
        let mut line = Map::new();
        let mut put = |name: String, value: Option<f64>| {
            if let Some(value) = value {
                line.insert(name, json!(value));
            }
        };
        put(format!("{},none", report.metric), Some(report.score));
        put(format!("{}_stderr,none", report.metric), report.stderr);
        put("spread".to_owned(), report.spread);
        for (name, value) in &report.more {
            put(format!("{name},none"), Some(*value));
        }
        if let Some(repeats) = report.repeats {
            line.insert("repeats".to_owned(), json!(repeats));
        }
        results.insert(report.task.clone(), Value::Object(line));
        configs.insert(
            report.task.clone(),
            json!({ "metric_list": [{ "metric": report.metric }] }),
        );
        if let Some(count) = report.samples {
            samples.insert(report.task.clone(), json!({ "original": count, "effective": count }));
        }
        for (category, score) in &report.categories {
            results.insert(category_task(&report.task, category), json!({ "acc,none": score }));
        }
    }
    let form = json!({ "results": results, "n-samples": samples, "configs": configs });
    let mut file: ResultFile =
        serde_json::from_value(form).map_err(|error| format!("has no form of a result: {error}"))?;
    let categories = reports.iter().flat_map(|report| {
        let of_report = report.categories.iter();
        of_report.map(|(category, _)| category_task(&report.task, category))
    });
    file.categories = categories.collect();
    Ok(file)
}
