//! The results of an earlier run, before they are taken over: whether they are whole, each once, the same as the single
//! results that they were made of, and those that the run planned.
//!
//! They are held against that run's own plan, and against that of the commit for which they stand in: what that commit
//! measures must be there, and nothing else. Which evals it would plan is not asked: policies may change between a pull
//! request's sweep and its merge.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::evals::{self, Order};
use super::throughput;
use crate::config::problem::{Problem, Problems};
use crate::config::thresholds::Thresholds;
use crate::matrix::envelope::Envelope;
use crate::step::results::file;
use crate::step::results::loose::{Cell, Map};

/// The folder and the file of a run's throughput results.
pub(crate) const RESULTS: (&str, &str) = ("results_bmk", "agg_bmk.json");
/// The folder and the file of its eval results.
pub(crate) const EVALS: (&str, &str) = ("eval_results_all", "agg_eval_all.json");
/// The folder of the single results that both were made of.
pub(crate) const RAW: &str = "results";

/// What was found.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Checked {
    /// Throughput rows.
    pub results: usize,
    /// Eval rows.
    pub evals: usize,
    /// Planned jobs without a row: their names and concurrencies.
    pub missing: Vec<String>,
    /// What is wrong.
    #[serde(serialize_with = "messages")]
    pub problems: Problems,
}

fn messages<S: Serializer>(problems: &Problems, serializer: S) -> Result<S::Ok, S::Error> {
    problems.messages().serialize(serializer)
}

/// Checks the artifacts that were downloaded to a folder. `against` is the plan of the commit, where that is known;
/// `partial` says that the run did not end well: then what is missing is counted only.
///
/// # Errors
/// A folder that cannot be searched.
pub(crate) fn check(
    dir: &Path,
    plan: &[Envelope],
    against: Option<&[Envelope]>,
    partial: bool,
) -> Result<Checked, Problem> {
    let mut checked = Checked::default();
    let measured = results(dir, plan, partial, &mut checked)?;
    let evaluated = evals(dir, plan, partial, &mut checked)?;
    if let Some(against) = against {
        hold_against(against, &measured, &evaluated, partial, &mut checked);
    }
    if checked.results + checked.evals == 0 && checked.problems.0.is_empty() {
        let place = file::shown(dir);
        let message = format!("{place} holds neither {} nor {}", RESULTS.0, EVALS.0);
        checked
            .problems
            .push(Problem::file(&place, message).hint("see what was downloaded"));
    }
    let more = checked.problems.0.len().saturating_sub(Problems::MAX);
    if more > 0 {
        checked.problems.0.truncate(Problems::MAX);
        checked.problems.push(Problem::file(
            "",
            format!("and {} like these", crate::plural::count(more, "more problem")),
        ));
    }
    Ok(checked)
}

/// What was measured, and the row that says so.
type Measured = Vec<((String, u64), String)>;
/// What was evaluated, and the row that says so.
type Evaluated = Vec<(EvalJob, String)>;

/// Holds what was measured and evaluated against the plan of the commit. Of evals only what they are of counts.
fn hold_against(plan: &[Envelope], measured: &Measured, evaluated: &Evaluated, partial: bool, checked: &mut Checked) {
    let found: HashSet<(&str, u64)> = measured
        .iter()
        .map(|((recipe, conc), _)| (recipe.as_str(), *conc))
        .collect();
    let mut planned: HashSet<(&str, u64)> = HashSet::new();
    let throughput = plan.iter().filter(|envelope| !envelope.row.eval.eval_only);
    for envelope in throughput {
        let recipe = envelope.row.recipe_fingerprint.as_deref().unwrap_or_default();
        for conc in envelope.row.conc.points() {
            planned.insert((recipe, *conc));
            if !found.contains(&(recipe, *conc)) {
                let missing = format!("{} (throughput at concurrency {conc})", envelope.name);
                if !partial {
                    let message = format!("{missing} is planned by the commit, and the run did not measure it");
                    let hint = "pin a run of the same plan, or delete the comment to sweep anew";
                    checked.problems.push(Problem::file("", message).hint(hint));
                }
                if !checked.missing.contains(&missing) {
                    checked.missing.push(missing);
                }
            }
        }
    }
    let unplanned = |source: &str| problem(source, "the commit does not plan it".to_owned());
    for ((recipe, conc), source) in measured {
        if !planned.contains(&(recipe.as_str(), *conc)) {
            checked.problems.push(unplanned(source));
        }
    }
    let of_plan: HashSet<EvalJob> = plan.iter().map(|envelope| eval_job(envelope, 0)).collect();
    for (job, source) in evaluated {
        let mut job = job.clone();
        job.1[2] = 0;
        if !of_plan.contains(&job) {
            checked.problems.push(unplanned(source));
        }
    }
}

fn results(dir: &Path, plan: &[Envelope], partial: bool, checked: &mut Checked) -> Result<Measured, Problem> {
    let mut planned: Planned<'_, (&str, u64)> = Planned::default();
    for envelope in plan.iter().filter(|envelope| !envelope.row.eval.eval_only) {
        let fingerprint = envelope.row.recipe_fingerprint.as_deref().unwrap_or_default();
        let points = envelope.row.conc.points();
        points
            .iter()
            .for_each(|conc| planned.add((fingerprint, *conc), envelope, *conc));
    }
    let path = dir.join(RESULTS.0).join(RESULTS.1);
    let rows = match there(&path) {
        false => Vec::new(),
        true => {
            let (rows, problems) = throughput::published(&path)?;
            checked.problems.extend(Problems(problems));
            rows
        }
    };
    for row in &rows {
        let lacking = row.lacking();
        match lacking.is_empty() {
            true => checked.problems.0.extend(planned.take(row.measured(), row.source())),
            false => checked
                .problems
                .push(problem(row.source(), format!("it does not say {}", listed(&lacking)))),
        }
    }
    checked.results = rows.len();
    let measured = rows.iter().filter(|row| row.lacking().is_empty());
    let measured = measured.map(|row| {
        let (recipe, conc) = row.measured();
        ((recipe.to_owned(), conc), row.source().to_owned())
    });
    let measured = measured.collect();
    planned.finish("throughput", partial, checked);
    let raw = throughput::collect(&dir.join(RAW), Some(plan), &path)?;
    checked.problems.extend(Problems(raw.problems));
    compare(
        &path,
        &values(&rows),
        &values(&raw.aggregates),
        |row| row["recipe_fingerprint"].to_string(),
        partial,
        &mut checked.problems,
    );
    Ok(measured)
}

/// What a published eval row says of its job.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EvalRow {
    model_prefix: Cell,
    hw: Cell,
    framework: Cell,
    precision: Cell,
    isl: Cell,
    osl: Cell,
    conc: Cell,
    task: Cell,
    score: Cell,
}

impl EvalRow {
    fn lacking(&self) -> Vec<&'static str> {
        let texts = [
            ("model_prefix", &self.model_prefix),
            ("hw", &self.hw),
            ("framework", &self.framework),
            ("precision", &self.precision),
            ("task", &self.task),
        ];
        let missing = texts.into_iter().filter(|(_, cell)| cell.text().is_none());
        let mut missing: Vec<&str> = missing.map(|(name, _)| name).collect();
        let is_score = |score: f64| (0.0..=1.0).contains(&score);
        missing.extend(self.conc.integer().is_none().then_some("conc"));
        missing.extend((!self.score.number().is_some_and(is_score)).then_some("score"));
        missing
    }

    /// What tells jobs apart, as far as rows say it; 0 stands for no length.
    fn job(&self) -> EvalJob {
        let text = |cell: &Cell| cell.text().unwrap_or_default().to_lowercase();
        let number = |cell: &Cell| cell.integer().unwrap_or(0);
        let what = [&self.model_prefix, &self.hw, &self.framework, &self.precision].map(text);
        (what, [&self.isl, &self.osl, &self.conc].map(number))
    }
}

type EvalJob = ([String; 4], [u64; 3]);

fn evals(dir: &Path, plan: &[Envelope], partial: bool, checked: &mut Checked) -> Result<Evaluated, Problem> {
    let mut evaluated = Evaluated::new();
    let mut planned: Planned<'_, EvalJob> = Planned::default();
    for envelope in plan {
        for conc in envelope.row.eval_concs() {
            planned.add(eval_job(envelope, conc), envelope, conc);
        }
    }
    let path = dir.join(EVALS.0).join(EVALS.1);
    let rows: Vec<Value> = match there(&path) {
        false => Vec::new(),
        true => eval_rows(&path)?,
    };
    // A job has a row for each of its tasks: of one task it has one.
    let mut by_task: BTreeMap<String, Planned<'_, EvalJob>> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let source = format!("{}[{index}]", file::shown(&path));
        let Ok(Map(Some(row))) = serde_json::from_value::<Map<EvalRow>>(row.clone()) else {
            checked.problems.push(problem(&source, "it is no object".to_owned()));
            continue;
        };
        let lacking = row.lacking();
        if lacking.is_empty() {
            let task = row.task.text().unwrap_or_default().to_owned();
            let of_task = by_task.entry(task).or_insert_with(|| planned.clone());
            checked.problems.0.extend(of_task.take(row.job(), &source));
            planned.see(&row.job());
            evaluated.push((row.job(), source));
        } else {
            checked
                .problems
                .push(problem(&source, format!("it does not say {}", listed(&lacking))));
        }
    }
    checked.evals = rows.len();
    planned.finish("eval", partial, checked);
    let thresholds = Thresholds::here(None).unwrap_or_else(|problems| {
        checked.problems.extend(problems);
        Thresholds::default()
    });
    let raw = evals::collect(&dir.join(RAW), Some(plan), Order::default(), &thresholds)?;
    checked.problems.extend(Problems(raw.problems));
    let (found, made) = (without_source(rows), without_source(values(&raw.rows)));
    compare(&path, &found, &made, identity, partial, &mut checked.problems);
    Ok(evaluated)
}

/// Rows without their place: where a file lay differs from one download to the next.
pub(crate) fn without_source(values: Vec<Value>) -> Vec<Value> {
    let strip = |mut value: Value| {
        value.as_object_mut().map(|fields| fields.remove("source"));
        value
    };
    values.into_iter().map(strip).collect()
}

fn eval_job(envelope: &Envelope, conc: u64) -> EvalJob {
    let t = &*envelope.row.topology;
    let what = [&t.model_prefix, &t.runner, &t.framework, &t.precision].map(|text| text.to_lowercase());
    let (isl, osl) = envelope.row.seq().map_or((0, 0), |seq| (seq.isl, seq.osl));
    (what, [isl, osl, conc])
}

pub(crate) fn eval_rows(path: &Path) -> Result<Vec<Value>, Problem> {
    let name = file::shown(path);
    let failed = |reason: String| Problem::file(&name, reason).hint("see what the run's collector kept");
    let bytes = file::read(path).map_err(|error| failed(format!("{name} cannot be read: {error}")))?;
    serde_json::from_slice(&bytes).map_err(|error| failed(format!("{name} is no list of results: {error}")))
}

/// How many results were planned of each thing that rows tell apart, and how many are there.
#[derive(Debug, Clone, Default)]
struct Planned<'p, K> {
    of: HashMap<K, Count<'p>>,
    order: Vec<K>,
}

#[derive(Debug, Clone)]
struct Count<'p> {
    planned: usize,
    found: usize,
    name: &'p str,
    conc: u64,
}

impl<'p, K: std::hash::Hash + Eq + Clone> Planned<'p, K> {
    fn add(&mut self, key: K, envelope: &'p Envelope, conc: u64) {
        let count = self.of.entry(key.clone()).or_insert_with(|| {
            self.order.push(key);
            Count {
                planned: 0,
                found: 0,
                name: &envelope.name,
                conc,
            }
        });
        count.planned += 1;
    }

    /// Counts a row; a problem where it was not planned, or is there more often than planned.
    fn take(&mut self, key: K, source: &str) -> Option<Problem> {
        match self.of.get_mut(&key) {
            None => Some(problem(source, "the run did not plan it".to_owned())),
            Some(count) => {
                count.found += 1;
                let message = format!(
                    "it is there {} times, planned were {}: {}",
                    count.found, count.planned, count.name
                );
                (count.found > count.planned).then(|| problem(source, message))
            }
        }
    }

    /// Remembers that there is a row.
    fn see(&mut self, key: &K) {
        if let Some(count) = self.of.get_mut(key) {
            count.found = count.planned;
        }
    }

    /// Says what is missing.
    fn finish(self, what: &str, partial: bool, checked: &mut Checked) {
        let open = self
            .order
            .iter()
            .map(|key| &self.of[key])
            .filter(|count| count.found < count.planned);
        for count in open {
            let missing = format!("{} ({what} at concurrency {})", count.name, count.conc);
            if !partial {
                let problem = Problem::file("", format!("{missing} was planned, and has no row"));
                checked
                    .problems
                    .push(problem.hint("pin a run that is whole, or sweep anew"));
            }
            checked.missing.push(missing);
        }
    }
}

/// Holds what was published against what the single results give. A run that did not end well may have withheld whole
/// units, which `unit` tells apart.
pub(crate) fn compare(
    path: &Path,
    published: &[Value],
    made: &[Value],
    unit: impl Fn(&Value) -> String,
    partial: bool,
    problems: &mut Problems,
) {
    // A run that was cancelled may have left nothing.
    if partial && made.is_empty() {
        return;
    }
    let units: HashSet<String> = published.iter().map(&unit).collect();
    let is_withheld = |value: &Value| partial && !units.contains(&unit(value));
    let mut left: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, value) in published.iter().enumerate() {
        left.entry(sorted(value)).or_default().push(index);
    }
    let name = file::shown(path);
    for value in made {
        if left.get_mut(&sorted(value)).and_then(Vec::pop).is_none() && !is_withheld(value) {
            problems.push(problem(
                &name,
                format!("it lacks a single result as it is: {}", identity(value)),
            ));
        }
    }
    let mut without: Vec<usize> = left.into_values().flatten().collect();
    without.sort_unstable();
    for index in without {
        let identity = identity(&published[index]);
        problems.push(problem(
            &format!("{name}[{index}]"),
            format!("no single result says the same: {identity}"),
        ));
    }
}

/// A value's text with sorted keys.
fn sorted(value: &Value) -> String {
    let mut text = String::new();
    crate::matrix::fingerprint::canonical(value, &mut text);
    text
}

/// A row for people.
pub(crate) fn identity(row: &Value) -> String {
    let names = [
        "infmax_model_prefix",
        "model_prefix",
        "hw",
        "framework",
        "precision",
        "conc",
        "task",
    ];
    let parts = names.iter().filter_map(|name| match row.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join(" ")
}

pub(crate) fn values<T: Serialize>(rows: &[T]) -> Vec<Value> {
    rows.iter().filter_map(|row| serde_json::to_value(row).ok()).collect()
}

fn there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn listed(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn problem(source: &str, reason: String) -> Problem {
    Problem::file(source, format!("{source}: {reason}")).hint("these results cannot be taken over as they are")
}
