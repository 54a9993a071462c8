//! One side of a comparison: every row of its collections that says what it measured.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use super::point::{Fields, Point, get, optional, required};
use super::row::Row;
use super::{Measured, Metrics};
use crate::config::problem::Problem;
use crate::step::collect::folders;
use crate::step::results::loose::{Cell, List, Map, Named};
use crate::step::results::{file, json, score};

/// How the names of collections start and end: `agg_bmk.json`, `agg_eval_all.json`.
const COLLECTION: (&str, &str) = ("agg_", ".json");
/// The metric that every throughput result has.
const THROUGHPUT: &str = "tput_per_gpu";
/// The latencies whose median and percentiles are compared.
const LATENCIES: [&str; 3] = ["ttft", "intvty", "tpot"];

/// A throughput result.
pub(super) struct Timed {
    pub metrics: IndexMap<String, f64>,
    recipe: String,
}

impl Timed {
    /// Whether two results are known to be of one recipe.
    pub(super) fn is_same_recipe(&self, other: &Self) -> bool {
        !self.recipe.is_empty() && self.recipe == other.recipe
    }
}

/// A score.
pub(super) struct Graded {
    pub name: String,
    pub score: f64,
    pub se: Option<f64>,
    pub less_is_better: bool,
}

/// What one side holds.
#[derive(Default)]
pub(super) struct Side {
    pub throughput: Vec<(Measured, Timed)>,
    pub scores: Vec<(Measured, Graded)>,
    pub problems: Vec<Problem>,
    /// The fields of its throughput results that are numbers.
    pub numbers: BTreeSet<String>,
}

impl Side {
    /// Whether it holds no result, readable or not.
    pub(super) fn is_empty(&self) -> bool {
        self.throughput.is_empty() && self.scores.is_empty() && self.problems.is_empty()
    }
}

/// Reads every collection below a folder, or one file.
///
/// # Errors
/// A folder that cannot be searched.
pub(super) fn side(root: &Path, metrics: &Metrics) -> Result<Side, Problem> {
    let mut side = Side::default();
    if root.is_file() {
        side.read(root, metrics, true);
        return Ok(side);
    }
    let (start, end) = COLLECTION;
    let (folders, unseen) = folders(root)?;
    side.problems.extend(unseen);
    let paths: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| folder.named(start, end).map(|name| folder.path.join(name)))
        .collect();
    for path in paths {
        side.read(&path, metrics, false);
    }
    Ok(side)
}

impl Side {
    /// Reads a file. One that was found, and not named, and holds a single result is no collection: it is passed over.
    fn read(&mut self, path: &Path, metrics: &Metrics, named: bool) {
        let place = file::shown(path);
        let rows = file::read(path)
            .map_err(|error| format!("cannot be read: {error}"))
            .and_then(|bytes| match (named, bytes.trim_ascii_start().first()) {
                (false, Some(b'{')) => Ok(Some(Vec::new())),
                _ => json::parse::<List<Map<Row>>>(&bytes).map(|rows| rows.0),
            })
            .and_then(|rows| rows.ok_or_else(|| "is no list of rows".to_owned()));
        let rows = match rows {
            Ok(rows) => rows,
            Err(reason) => {
                let problem = Problem::file(&place, format!("{place} {reason}"));
                self.problems.push(problem.hint("see what `sweepctl collect` wrote"));
                return;
            }
        };
        for (index, row) in rows.into_iter().enumerate() {
            let added = match &row.0 {
                None => Err("it is no JSON object".to_owned()),
                Some(row) => self.add(&row.0, metrics),
            };
            if let Err(reason) = added {
                let message = format!("{place}, row {}: {reason}", index + 1);
                let problem = Problem::file(&place, message);
                self.problems.push(problem.hint("the row is not compared"));
            }
        }
    }

    /// Adds a row: a score if it names a task, else a throughput result.
    fn add(&mut self, fields: &Fields, metrics: &Metrics) -> Result<(), String> {
        let point = Point::read(fields)?;
        let task = optional(fields, "task")?;
        let measured = Measured { point, task };
        match measured.task {
            Some(_) => self.scores.push((measured, graded(fields)?)),
            None => {
                let is_number = |(_, named): &(&String, &Named)| named.0.number().is_some();
                let numbers = fields.iter().filter(is_number).map(|(name, _)| name.clone());
                self.numbers.extend(numbers);
                self.throughput.push((measured, timed(fields, metrics)?));
            }
        }
        Ok(())
    }
}

fn graded(fields: &Fields) -> Result<Graded, String> {
    let score = get(fields, "score");
    let less_is_better = get(fields, "higher_is_better").flag() == Some(false);
    let wanted = match less_is_better {
        true => "a finite number",
        false => "a number from 0 to 1",
    };
    Ok(Graded {
        name: required(fields, "score_name")?,
        score: score::number(score, less_is_better).ok_or_else(|| format!("`score` is {score}, not {wanted}"))?,
        se: get(fields, "score_se").number().filter(|se| *se >= 0.0),
        less_is_better,
    })
}

fn timed(fields: &Fields, metrics: &Metrics) -> Result<Timed, String> {
    let mut found = IndexMap::new();
    for (name, cell) in fields.iter().filter(|(name, _)| metrics.has(name)) {
        let cell = &cell.0;
        if *cell != Cell::Null {
            let value = cell.number().filter(|value| *value > 0.0);
            let value = value.ok_or_else(|| format!("`{name}` is {cell}, it must be a finite number above 0"))?;
            found.insert(name.clone(), value);
        }
    }
    if metrics.0.is_empty() {
        if !found.contains_key(THROUGHPUT) {
            return Err(format!("it has no `{THROUGHPUT}`"));
        }
        // Interactivity is the inverse of the time per token: once is enough.
        let inverse = |name: &str| name.replace("tpot", "intvty");
        let told: Vec<String> = found
            .keys()
            .filter(|name| inverse(name) != **name && found.contains_key(&inverse(name)))
            .cloned()
            .collect();
        for name in told {
            found.shift_remove(&name);
        }
    }
    Ok(Timed {
        metrics: found,
        recipe: optional(fields, "recipe_fingerprint")?.unwrap_or_default(),
    })
}

impl Metrics {
    fn has(&self, name: &str) -> bool {
        if !self.0.is_empty() {
            return self.0.iter().any(|metric| metric == name);
        }
        let Some((statistic, latency)) = name.split_once('_') else {
            return false;
        };
        let is_percentile = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let compared = statistic == "median" || statistic.strip_prefix('p').is_some_and(is_percentile);
        name == THROUGHPUT || (compared && LATENCIES.contains(&latency))
    }
}
