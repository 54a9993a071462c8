//! The forms of results, each held against itself and the log.

use serde_json::{Map, Value};

use super::Report;
use super::log::Log;
use crate::config::recipe::asked::AIME_PROBLEMS;
use crate::config::recipe::parameters::AIME_SETS;

/// What three printed decimals can be off, twice.
const ROUNDING: f64 = 0.0011;
/// Metrics of SGLang's clients that are no shares of right answers.
const NO_SHARES: [&str; 6] = ["chars", "latency", "output_throughput", "mean_score", "score", "scores"];

/// The results of NeMo Skills, by data set.
///
/// # Errors
/// What is missing or contradicts itself, as the end of a sentence about the file.
pub(super) fn nemo(found: &Map<String, Value>, log: Option<&Log>) -> Result<Vec<Report>, String> {
    let is_mode = |name: &String| name.starts_with("pass@") || name.starts_with("majority@");
    if found.keys().any(is_mode) {
        return Err("does not say its data set".to_owned());
    }
    let reports: Result<Vec<Report>, String> = found
        .iter()
        .map(|(task, modes)| match modes {
            Value::Object(modes) => data_set(task, modes),
            _ => Err(format!("has no modes for `{task}`")),
        })
        .collect();
    match reports {
        Ok(reports) if reports.is_empty() => Err("holds no data set".to_owned()),
        Ok(reports) => log.map_or(Ok(()), |log| asked_for(&reports, log)).map(|()| reports),
        refused => refused,
    }
}

/// Whether the results are those that the script was told to make.
fn asked_for(reports: &[Report], log: &Log) -> Result<(), String> {
    for report in reports {
        let task = &report.task;
        if log.data_set.as_ref().is_some_and(|asked| asked != task) {
            let asked = log.data_set.as_deref().unwrap_or_default();
            return Err(format!(
                "is of another run: it holds `{task}`, and its log asks for `{asked}`"
            ));
        }
        if let (Some(asked), Some(told)) = (log.asked_repeats, report.repeats)
            && asked != told
        {
            return Err(format!("has {told} repeats of `{task}`, and {asked} were asked for"));
        }
    }
    Ok(())
}

/// The name of a mode, its number, and the repeats that an average is over.
fn mode(name: &str) -> Option<(&'static str, u64, Option<u64>)> {
    let (kind, rest) = match name.strip_prefix("pass@") {
        Some(rest) => ("pass", rest),
        None => ("majority", name.strip_prefix("majority@")?),
    };
    let (number, average) = match rest.split_once("[avg-of-") {
        Some((number, average)) => (number, Some(average.strip_suffix(']')?.parse().ok()?)),
        None => (rest, None),
    };
    Some((kind, number.parse().ok()?, average))
}

fn data_set(task: &str, modes: &Map<String, Value>) -> Result<Report, String> {
    let mut report = Report {
        task: task.to_owned(),
        metric: "pass@1",
        ..Report::default()
    };
    let (mut pass, mut average, mut most) = (None, None, 1);
    for (name, found) in modes {
        let Some((kind, number, of)) = mode(name) else { continue };
        let percent = found.get("symbolic_correct").unwrap_or(found);
        let share = percent.as_f64().filter(|percent| (0.0..=100.0).contains(percent));
        let Some(share) = share.map(|percent| percent / 100.0) else {
            return Err(format!("has no percentage for `{task}` under `{name}`"));
        };
        most = most.max(number).max(of.unwrap_or(1));
        if kind == "pass" && number == 1 {
            match of {
                Some(_) => average = Some((share, found)),
                None => pass = Some((share, found)),
            }
            continue;
        }
        if of.is_none() && number > 1 {
            report.more.push((format!("{kind}@{number}"), share));
        }
    }
    let Some((score, found)) = average.or(pass) else {
        return Err(format!("has no pass@1 for `{task}`"));
    };
    report.score = score;
    report.repeats = Some(most);
    report.samples = entries(task, modes)?;
    (report.spread, report.stderr) = statistics(found, score);
    if most > 1 {
        let lacking = [format!("pass@{most}"), format!("majority@{most}")]
            .into_iter()
            .find(|name| !report.more.iter().any(|(there, _)| there == name));
        if let Some(name) = lacking {
            return Err(format!("has {most} repeats of `{task}`, and no {name}"));
        }
    }
    let pass_n = report.more.iter().find(|(name, _)| *name == format!("pass@{most}"));
    if let Some((name, value)) = pass_n {
        let above = report.more.iter().find(|(_, other)| *other > value + ROUNDING);
        if score > value + ROUNDING || above.is_some() {
            return Err(format!(
                "says that {name} of `{task}` is {value}, and that less finds more"
            ));
        }
    }
    Ok(report)
}

/// How many problems each mode is over: all of the data set, and in every mode the same.
fn entries(task: &str, modes: &Map<String, Value>) -> Result<Option<u64>, String> {
    let mut counts = Vec::new();
    for mode in modes.values() {
        match mode.get("num_entries").map(Value::as_u64) {
            None => {}
            Some(Some(count)) if count > 0 => counts.push(count),
            Some(_) => return Err(format!("evaluated nothing of `{task}`")),
        }
    }
    let Some(first) = counts.first().copied() else {
        return Ok(None);
    };
    if let Some(other) = counts.iter().find(|count| **count != first) {
        return Err(format!(
            "is over {first} problems of `{task}` in one mode, and over {other} in another"
        ));
    }
    match AIME_SETS.contains(&task) && first != AIME_PROBLEMS {
        true => Err(format!(
            "is over {first} problems of `{task}`, which has {AIME_PROBLEMS}"
        )),
        false => Ok(Some(first)),
    }
}

/// Spread and standard error over repeats: shares, or percent where their average is.
fn statistics(found: &Value, score: f64) -> (Option<f64>, Option<f64>) {
    let Some(statistics) = found.get("symbolic_correct_statistics") else {
        return (None, None);
    };
    let number = |name: &str| {
        statistics
            .get(name)
            .and_then(Value::as_f64)
            .filter(|number| *number >= 0.0)
    };
    let is_percent = number("avg").is_some_and(|average| (average - score).abs() > (average / 100.0 - score).abs());
    let scaled = |name| number(name).map(|value| if is_percent { value / 100.0 } else { value });
    (scaled("std_dev_across_runs"), scaled("std_err_across_runs"))
}

/// A result of SGLang's client, or of srt-slurm's own form, with the log where there is one.
///
/// # Errors
/// What is missing or contradicts itself or the log, as the end of a sentence about the file.
pub(super) fn sglang(benchmark: &str, found: &Map<String, Value>, log: Option<&Log>) -> Result<Report, String> {
    let (scores, mean): (Vec<f64>, Option<f64>) = match (found.get("scores"), found.get("mean_score")) {
        (Some(Value::Array(scores)), mean) => (scores.iter().map(value).collect(), Some(mean.map_or(f64::NAN, value))),
        _ => (Vec::new(), None),
    };
    let last = found.get("overall_score").or_else(|| found.get("score")).map(value);
    let mut categories = Vec::new();
    let by_category = match found.get("scores") {
        Some(Value::Object(scores)) => scores,
        _ => found,
    };
    for (name, share) in by_category {
        let is_other = NO_SHARES.contains(&name.as_str()) || name.contains(':') || name.starts_with("difficulty_");
        let is_srt = ["model", "overall_score", "total_examples", "total_latency_s"].contains(&name.as_str());
        if !is_other && !is_srt && share.is_number() | share.is_string() {
            categories.push((name.clone(), in_range(value(share), name)?));
        }
    }
    let samples = match found.get("total_examples").map(|count| count.as_u64()) {
        None => log.and_then(|log| log.examples),
        Some(Some(count)) if count > 0 => Some(count),
        Some(_) => return Err("evaluated nothing".to_owned()),
    };
    if let Some(log) = log {
        same_run(found, samples, log)?;
    }
    let std = found.get("score:std").map(value);
    let own = Runs { last, scores, mean };
    let runs = match log {
        Some(log) => own.with(log)?,
        None => own,
    };
    report(benchmark, runs, categories, samples, std)
}

/// Whether a result is of the model and over the examples that its log names.
fn same_run(found: &Map<String, Value>, samples: Option<u64>, log: &Log) -> Result<(), String> {
    let model = found.get("model").and_then(Value::as_str);
    if let (Some(said), Some(asked)) = (model, &log.model)
        && said != asked
    {
        return Err("is of another run: it names another model than its log".to_owned());
    }
    match samples.zip(log.examples) {
        Some((told, asked)) if told != asked => Err(format!("is over {told} examples, and {asked} were asked for")),
        _ => Ok(()),
    }
}

/// What a log alone says.
///
/// # Errors
/// A log without numbers, also where it says that the benchmark is complete.
pub(super) fn logged(benchmark: &str, log: &Log) -> Result<Report, String> {
    let of_metrics = |name: &str| log.metrics.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
    let mut categories = Vec::new();
    for (name, share) in &log.metrics {
        if !NO_SHARES.contains(&name.as_str()) && !name.contains(':') && !name.starts_with("difficulty_") {
            categories.push((name.clone(), in_range(*share, name)?));
        }
    }
    let runs = Runs {
        last: log.score.or_else(|| of_metrics("score")),
        scores: Vec::new(),
        mean: None,
    };
    if runs.last.is_none() && log.mean.is_none() {
        return Err(match log.is_complete {
            true => "says that the evaluation is complete, and has no number".to_owned(),
            false => "ends without a number".to_owned(),
        });
    }
    report(
        benchmark,
        runs.with(log)?,
        categories,
        log.examples,
        of_metrics("score:std"),
    )
}

/// The runs of a benchmark.
struct Runs {
    /// The score of the last.
    last: Option<f64>,
    /// The score of each, where several are told.
    scores: Vec<f64>,
    /// Their mean.
    mean: Option<f64>,
}

impl Runs {
    /// What the log adds, where it does not contradict.
    fn with(mut self, log: &Log) -> Result<Self, String> {
        if let (Some(told), true) = (log.repeats, !self.scores.is_empty()) {
            same_count(self.scores.len(), told)?;
        }
        if self.scores.is_empty() && log.repeats.is_some() {
            self.scores.clone_from(&log.scores);
            self.mean = log.mean;
        }
        if let Some(told) = log.repeats.or(log.asked_repeats.filter(|asked| *asked > 1)) {
            same_count(self.scores.len(), told)?;
        }
        if let (Some(asked), Some(told)) = (log.asked_repeats, log.repeats)
            && asked != told
        {
            return Err(format!("has {told} repeats, and {asked} were asked for"));
        }
        if let (Some(own), Some(printed)) = (self.last, log.score)
            && (own - printed).abs() > ROUNDING
        {
            return Err(format!("has the score {own}, and its log {printed}"));
        }
        Ok(self)
    }
}

fn same_count(there: usize, told: u64) -> Result<(), String> {
    match u64::try_from(there) {
        Ok(there) if there == told => Ok(()),
        _ => Err(format!("has {there} scores of {told} repeats")),
    }
}

fn report(
    benchmark: &str,
    runs: Runs,
    categories: Vec<(String, f64)>,
    samples: Option<u64>,
    std: Option<f64>,
) -> Result<Report, String> {
    let last = runs.last.map(|last| in_range(last, "score")).transpose()?;
    let mut report = Report {
        task: benchmark.to_owned(),
        metric: "acc",
        samples,
        ..Report::default()
    };
    if let (Some(last), false) = (last, categories.is_empty()) {
        let shares = || categories.iter().map(|(_, share)| *share);
        let (least, most) = (shares().fold(1.0, f64::min), shares().fold(0.0, f64::max));
        if last < least - ROUNDING || last > most + ROUNDING {
            return Err(format!(
                "has the score {last}, and its categories are from {least} to {most}"
            ));
        }
    }
    report.categories = categories;
    if runs.scores.is_empty() {
        report.score = last.ok_or("has no score")?;
        report.repeats = Some(1);
        report.stderr = std.zip(samples).map(|(std, samples)| std / count(samples).sqrt());
        return Ok(report);
    }
    for score in &runs.scores {
        in_range(*score, "a repeat")?;
    }
    let repeats = u64::try_from(runs.scores.len()).unwrap_or(u64::MAX);
    let own = runs.scores.iter().sum::<f64>() / count(repeats);
    let mean = in_range(runs.mean.unwrap_or(f64::NAN), "the mean")?;
    if (mean - own).abs() > ROUNDING {
        return Err(format!("has the mean {mean}, and its {repeats} scores have {own:.4}"));
    }
    if let Some(last) = last
        && !runs.scores.iter().any(|score| (score - last).abs() <= ROUNDING)
    {
        return Err(format!(
            "has the score {last}, which is that of none of its {repeats} repeats"
        ));
    }
    report.score = mean;
    report.repeats = Some(repeats);
    if repeats > 1 {
        let squares: f64 = runs.scores.iter().map(|score| (score - own).powi(2)).sum();
        let spread = (squares / count(repeats - 1)).sqrt();
        report.spread = Some(spread);
        report.stderr = Some(spread / count(repeats).sqrt());
    }
    Ok(report)
}

#[allow(clippy::cast_precision_loss, reason = "repeats and examples are far below 2^53")]
fn count(number: u64) -> f64 {
    number as f64
}

/// A number, also one that is written as a text; what is none is NaN.
fn value(found: &Value) -> f64 {
    match found {
        Value::String(text) => text.parse().unwrap_or(f64::NAN),
        found => found.as_f64().unwrap_or(f64::NAN),
    }
}

fn in_range(share: f64, name: &str) -> Result<f64, String> {
    match (0.0..=1.0).contains(&share) {
        true => Ok(share),
        false => Err(format!("has {share} for `{name}`, not a number from 0 to 1")),
    }
}
