//! `sweepctl eval calibrate`: floors from runs that were collected.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use serde::Deserialize;

use super::{annotate, output};
use crate::config::fields::Field;
use crate::config::problem::{Problem, Problems};
use crate::config::source::Source;
use crate::config::thresholds::{self, Calibrated, Thresholds};
use crate::config::thresholds_edit;
use crate::step::collect::eval_row::EvalRow;
use crate::step::collect::evals::{self, Order};
use crate::step::eval::calibrate::{self, Calibration, Run};
use crate::step::results::{file, json};

/// The way out where there is nothing to read.
const FOLDERS: &str = "name folders with collected runs";

/// `eval calibrate`
#[derive(Debug, Args)]
pub(crate) struct Calibrate {
    /// Folders with collected runs (agg_eval_*.json), or with the sets themselves
    #[arg(value_name = "FOLDER", required = true)]
    folders: Vec<PathBuf>,
    /// How often a run as good as these may fail, above 0 and below 0.5
    #[arg(long, value_name = "RATE", default_value_t = 0.01, value_parser = rate)]
    false_alarm: f64,
    /// The thresholds, which may name the metric that is a task's score
    /// [default: configs/thresholds.yaml, else the built-in ones]
    #[arg(long, value_name = "FILE", verbatim_doc_comment)]
    thresholds: Option<PathBuf>,
    /// Write the floors into the thresholds file, and keep its comments
    #[arg(long)]
    write: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate < 0.5 => Ok(rate),
        _ => Err("a number above 0 and below 0.5".to_owned()),
    }
}

/// What a published row says of a run.
#[derive(Deserialize)]
struct Row {
    model_prefix: String,
    task: String,
    score_name: String,
    score: f64,
    n_eff: Option<u64>,
    higher_is_better: Option<bool>,
    #[serde(default)]
    diagnostic: bool,
}

impl Calibrate {
    /// Computes floors, prints them, and writes them where that is asked.
    ///
    /// # Errors
    /// Nothing that could be calibrated, a file that cannot be read, and one that cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let thresholds = Thresholds::here(self.thresholds.as_deref())?;
        let mut runs = Vec::new();
        let mut problems = Vec::new();
        for folder in &self.folders {
            runs.extend(read(folder, &thresholds, &mut problems).map_err(Problems::from)?);
        }
        let (found, more) = calibrate::calibrate(runs, self.false_alarm);
        problems.extend(more);
        if found.is_empty() {
            problems.push(Problem::file("", "there is nothing to calibrate").hint(FOLDERS));
            return Ok(Problems(problems).into_result()?);
        }
        annotate::warn(&problems);
        if self.write {
            self.save(&found)?;
        }
        self.print(&found)
    }

    fn save(&self, found: &[Calibration]) -> anyhow::Result<()> {
        let path = self.thresholds.as_deref().unwrap_or(Path::new(thresholds::FILE));
        let mut source = Arc::new(Source::read(path).map_err(Problems::from)?);
        for one in found {
            let text = thresholds_edit::set(&source, &one.model_prefix, &one.task, &threshold(one))?;
            source = Arc::new(Source::new(source.name.clone(), text));
        }
        file::write_atomic(path, source.text.as_bytes())
            .with_context(|| format!("`{}` cannot be written", path.display()))
    }

    fn print(&self, found: &[Calibration]) -> anyhow::Result<()> {
        if output::wants_json(self.json) {
            return output::json(&found);
        }
        let row = |one: &Calibration| {
            let bound = if one.less_is_better { "max" } else { "min-score" };
            vec![
                one.model_prefix.clone(),
                one.task.clone(),
                one.score_name.clone(),
                one.runs.to_string(),
                one.samples.to_string(),
                one.mean.to_string(),
                one.spread.to_string(),
                format!("{bound}: {}", one.bound),
            ]
        };
        let rows: Vec<Vec<String>> = found.iter().map(row).collect();
        let header = ["Model", "Task", "Score", "Runs", "Samples", "Mean", "Spread", "Bound"];
        output::text(&output::table(&header, &rows))
    }
}

fn threshold(one: &Calibration) -> Calibrated {
    Calibrated {
        min_score: (!one.less_is_better).then_some(one.bound),
        max: one.less_is_better.then_some(one.bound),
        mean: Some(one.mean),
        spread: Some(one.spread),
        samples: Some(one.samples),
        ..Calibrated::default()
    }
}

/// The runs of a folder: of its collections, or where it has none of its sets.
fn read(folder: &Path, thresholds: &Thresholds, problems: &mut Vec<Problem>) -> Result<Vec<Run>, Problem> {
    let name = file::shown(folder);
    let found = file::walk(folder, file::MAX_DEPTH)
        .map_err(|error| Problem::file(&name, format!("{name} cannot be searched: {error}")).hint(FOLDERS))?;
    let collections: Vec<PathBuf> = found
        .iter()
        .flat_map(|folder| folder.named("agg_eval_", ".json").map(|name| folder.path.join(name)))
        .collect();
    if collections.is_empty() {
        let found = evals::collect(folder, None, Order::default(), thresholds)?;
        problems.extend(found.problems);
        // Without a plan these are the attempts that a newer one stands for.
        let mut attempts: HashMap<String, usize> = HashMap::new();
        for job in &found.jobs {
            *attempts.entry(job.id.clone()).or_default() += 1;
        }
        let mut seen = HashSet::new();
        let runs = found.rows.into_iter().map(|row| {
            let job = row.job_id.clone().unwrap_or_default();
            // A batch has a row for each concurrency.
            let is_first = seen.insert((job.clone(), row.task.clone()));
            let attempts = attempts.get(job.as_str()).copied().filter(|_| is_first);
            of_row(row, attempts.unwrap_or_default())
        });
        return Ok(runs.collect());
    }
    let mut runs = Vec::new();
    for path in collections {
        let name = file::shown(&path);
        let bytes = file::read(&path).map_err(|error| format!("cannot be read: {error}"));
        match bytes.and_then(|bytes| json::parse::<Vec<Row>>(&bytes)) {
            Ok(rows) => runs.extend(rows.into_iter().map(of_published)),
            Err(why) => problems.push(Problem::file(&name, format!("{name} {why}")).hint("collect its runs again")),
        }
    }
    Ok(runs)
}

fn of_published(row: Row) -> Run {
    Run {
        prefix: row.model_prefix,
        task: row.task,
        score_name: row.score_name,
        score: row.score,
        samples: row.n_eff,
        less_is_better: row.higher_is_better == Some(false),
        diagnostic: row.diagnostic,
        attempts: 0,
    }
}

fn of_row(row: EvalRow, attempts: usize) -> Run {
    use crate::step::results::loose::Cell;
    Run {
        prefix: row.text(Field::ModelPrefix),
        task: row.task,
        score_name: row.score_name,
        score: row.score,
        samples: row.n_eff.and_then(|count| Cell::Number(count).integer()),
        less_is_better: row.higher_is_better == Some(false),
        diagnostic: row.diagnostic,
        attempts,
    }
}
