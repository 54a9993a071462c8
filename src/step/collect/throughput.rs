//! `agg_<name>.json`: every throughput aggregate of a sweep, as it was written.

mod usable;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::attempts::{self, Attempt, Flaw};
use super::ledger::{Found, Ledger};
use super::{folders, job_in_path, source};
use crate::config::problem::Problem;
use crate::ledger::Job;
use crate::matrix::envelope::Envelope;
use crate::matrix::row::Row;
use crate::step::replay::left::Left;
use crate::step::replay::published::RequestMetrics;
use crate::step::results::file;
use crate::step::results::loose::{Cell, Map};

/// What the file names of aggregates start with.
const PREFIX: &str = "agg_";
/// What those of eval aggregates start with.
const EVAL_PREFIX: &str = "agg_eval_";

/// What the names of artifacts with results of replays start with.
const AGENTIC_ARTIFACT: &str = "bmk_agentic_";

/// What was gathered.
#[derive(Debug, Default)]
pub struct Throughput {
    /// Every aggregate, sorted.
    pub aggregates: Vec<Aggregate>,
    /// What is wrong, and with which file.
    pub problems: Vec<Problem>,
    /// Every planned job, and every superseded attempt.
    pub jobs: Vec<Job>,
    /// Files of no planned job; empty without a plan.
    pub unplanned: Vec<String>,
}

/// One aggregate: the text of its file, and what of it is read here.
#[derive(Debug)]
pub struct Aggregate {
    /// The file's JSON object, unchanged.
    json: Box<RawValue>,
    source: String,
    /// The job whose artifact it lies in.
    job: Option<String>,
    fields: Fields,
    /// The scalars of its top level.
    values: usable::Values,
    /// Why it cannot be published.
    unfit: Option<(Flaw, Problem)>,
}

impl Serialize for Aggregate {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    infmax_model_prefix: Cell,
    hw: Cell,
    framework: Cell,
    precision: Cell,
    spec_decoding: Cell,
    isl: Cell,
    osl: Cell,
    scenario_type: Cell,
    is_multinode: Cell,
    tp: Cell,
    ep: Cell,
    prefill_tp: Cell,
    prefill_num_workers: Cell,
    decode_tp: Cell,
    decode_num_workers: Cell,
    conc: Cell,
    recipe_fingerprint: Cell,
    tput_per_gpu: Cell,
    output_tput_per_gpu: Cell,
    median_ttft: Cell,
    /// Of replays: their metrics are nested.
    request_metrics: RequestMetrics,
    job_id: Cell,
    run_id: Cell,
    run_attempt: Cell,
}

impl Fields {
    /// Takes a replay's nested metrics for those that stand at the top of other results.
    fn flatten(&mut self) {
        let mut nested = std::mem::take(&mut self.request_metrics).flat();
        for (field, name) in [
            (&mut self.tput_per_gpu, "tput_per_gpu"),
            (&mut self.output_tput_per_gpu, "output_tput_per_gpu"),
            (&mut self.median_ttft, "median_ttft"),
        ] {
            if let (Cell::Null, Some(value)) = (&field, nested.shift_remove(name)) {
                *field = Cell::Number(value);
            }
        }
    }
}

/// Gathers every aggregate under a folder, but for `output`, which an earlier run may have left there.
///
/// # Errors
/// A folder that cannot be searched. A file that cannot be read is none.
pub fn collect(root: &Path, plan: Option<&[Envelope]>, output: &Path) -> Result<Throughput, Problem> {
    let (folders, unseen) = folders(root)?;
    let output = output.canonicalize().ok();
    let files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| {
            let named = folder.named(PREFIX, ".json");
            let named = named.filter(|name| !name.as_encoded_bytes().starts_with(EVAL_PREFIX.as_bytes()));
            let paths = named.map(|name| folder.path.join(name));
            paths.chain(as_left(folder)).collect::<Vec<_>>()
        })
        .filter(|path| output.is_none() || path.canonicalize().ok() != output)
        .collect();
    let read: Vec<Result<Aggregate, Problem>> = files.par_iter().map(|path| read(root, path)).collect();
    let planned = plan.map(Planned::new);
    let mut results = Throughput {
        problems: unseen,
        ..Throughput::default()
    };
    let mut aggregates = Vec::new();
    let mut broken: HashMap<String, Found> = HashMap::new();
    for (aggregate, path) in read.into_iter().zip(&files) {
        match aggregate {
            Ok(aggregate) => aggregates.push(aggregate),
            Err(problem) => {
                let by_recipe = || planned.as_ref()?.job_of_broken(path);
                if let Some(job) = job_in_path(root, path).or_else(by_recipe) {
                    fail(&mut broken, &job, &problem);
                }
                results.problems.push(problem);
            }
        }
    }
    if let Some(planned) = &planned {
        aggregates
            .iter_mut()
            .for_each(|aggregate| aggregate.hold_against(planned));
    }
    let unfit = aggregates.iter().filter_map(|aggregate| aggregate.unfit.as_ref());
    results.problems.extend(unfit.map(|(_, problem)| problem.clone()));
    let newest = attempts::newest(aggregates);
    for aggregate in newest.kept {
        match (&aggregate.unfit, &aggregate.job) {
            (None, _) => results.aggregates.push(aggregate),
            (Some((_, problem)), Some(job)) => fail(&mut broken, job, problem),
            (Some(_), None) => {}
        }
    }
    results.jobs = newest.superseded;
    results.problems.extend(newest.problems);
    if let Some(plan) = plan {
        compare(plan, broken, &mut results);
    }
    results.aggregates.par_sort_by_cached_key(Aggregate::key);
    Ok(results)
}

/// Aggregates of replays that a script wrote under the job's result name, in an artifact of that kind or an artifact that
/// was unpacked flat; those that were processed lie there again, and count once.
fn as_left(folder: &file::Folder) -> Vec<PathBuf> {
    let name = folder.path.file_name().unwrap_or_default().to_string_lossy();
    let artifact = name.starts_with(AGENTIC_ARTIFACT);
    let results = folder.named("", ".json").filter_map(|name| name.to_str());
    let unprocessed = results.filter(|name| !name.starts_with(PREFIX) && !folder.has(&format!("{PREFIX}{name}")));
    let of_result = unprocessed.filter(|name| artifact || name.contains("_disagg-"));
    let paths = of_result.map(|name| folder.path.join(name));
    // What cannot be read is told where it must be an aggregate; elsewhere it may be the client's own result.
    paths
        .filter(|path| Left::read(path).map_or(artifact, |left| left.is_some()))
        .collect()
}

fn read(root: &Path, path: &Path) -> Result<Aggregate, Problem> {
    let source = source(root, path);
    let failed = |reason: String| Problem::file(&source, reason).hint("see the result step of its job");
    let bytes = file::read(path).map_err(|error| failed(format!("{source} cannot be read: {error}")))?;
    // Strictly JSON, for it is published as it is: a bare NaN would break every reader.
    let json: Box<RawValue> =
        serde_json::from_slice(&bytes).map_err(|error| failed(format!("{source} is no JSON: {error}")))?;
    let mut aggregate = parse(json, &source)?;
    aggregate.job = aggregate.job.or_else(|| job_in_path(root, path));
    Ok(aggregate)
}

/// The rows of a file that [`collect`] gathered, and those that are none.
///
/// # Errors
/// A file that cannot be read or is no list.
pub fn published(path: &Path) -> Result<(Vec<Aggregate>, Vec<Problem>), Problem> {
    let name = file::shown(path);
    let failed = |reason: String| Problem::file(&name, reason).hint("see what the run's collector kept");
    let bytes = file::read(path).map_err(|error| failed(format!("{name} cannot be read: {error}")))?;
    let rows: Vec<Box<RawValue>> =
        serde_json::from_slice(&bytes).map_err(|error| failed(format!("{name} is no list of results: {error}")))?;
    let (mut aggregates, mut problems) = (Vec::new(), Vec::new());
    for (index, json) in rows.into_iter().enumerate() {
        match parse(json, &format!("{name}[{index}]")) {
            Ok(aggregate) => aggregates.push(aggregate),
            Err(problem) => problems.push(problem),
        }
    }
    Ok((aggregates, problems))
}

fn parse(json: Box<RawValue>, source: &str) -> Result<Aggregate, Problem> {
    let failed = |reason: String| Problem::file(source, reason).hint("see the result step of its job");
    let fields: Map<Fields> = serde_json::from_str(json.get())
        .map_err(|error| failed(format!("{source} is no throughput result: {error}")))?;
    let mut fields = fields.0.ok_or_else(|| failed(format!("{source} is no JSON object")))?;
    let values: usable::Values = serde_json::from_str(json.get())
        .map_err(|error| failed(format!("{source} is no throughput result: {error}")))?;
    let wrong = usable::figures(&values, &fields.request_metrics);
    fields.flatten();
    if fields.conc.integer().is_none_or(|conc| conc == 0) {
        return Err(failed(format!(
            "{source} has no concurrency: `conc` is {}",
            fields.conc
        )));
    }
    let unfit = (!wrong.is_empty()).then(|| (Flaw::Empty, failed(format!("{source}: {}", wrong.join("; ")))));
    Ok(Aggregate {
        json,
        source: source.to_owned(),
        job: fields.job_id.text().map(str::to_owned),
        fields,
        values,
        unfit,
    })
}

/// Adds what is wrong with a result to what was found of its job.
fn fail(broken: &mut HashMap<String, Found>, job: &str, problem: &Problem) {
    match broken.get_mut(job) {
        Some(found) => found.problems.push(problem.message.clone()),
        None => {
            broken.insert(job.to_owned(), Found::broken(problem));
        }
    }
}

/// The throughput jobs of a plan.
struct Planned<'p> {
    rows: HashMap<&'p str, &'p Row>,
    /// By the recipe's fingerprint and the concurrency.
    points: HashMap<(&'p str, u64), &'p str>,
}

impl<'p> Planned<'p> {
    fn new(plan: &'p [Envelope]) -> Self {
        let jobs = plan.iter().filter(|envelope| !envelope.row.eval.eval_only);
        let mut planned = Self {
            rows: HashMap::new(),
            points: HashMap::new(),
        };
        for envelope in jobs {
            planned.rows.insert(&envelope.id, &envelope.row);
            for conc in envelope.row.conc.points() {
                if let Some(fingerprint) = &envelope.row.recipe_fingerprint {
                    planned.points.insert((fingerprint, *conc), &envelope.id);
                }
            }
        }
        planned
    }

    fn job(&self, fingerprint: &str, conc: u64) -> Option<&'p str> {
        self.points.get(&(fingerprint, conc)).copied()
    }

    /// The job of a file that cannot be read as a result, by what of the recipe and the concurrency still stands in it.
    /// Without the concurrency it is only known where one job alone is of the recipe.
    fn job_of_broken(&self, path: &Path) -> Option<String> {
        let bytes = file::read(path).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let after = |name: &str| {
            let (_, rest) = text.split_once(&format!("\"{name}\""))?;
            Some(rest.trim_start().strip_prefix(':')?.trim_start())
        };
        let (fingerprint, _) = after("recipe_fingerprint")?.strip_prefix('"')?.split_once('"')?;
        let digits = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
        let by_point = after("conc")
            .and_then(digits)
            .and_then(|conc| self.job(fingerprint, conc));
        let mut of_recipe = self.points.iter().filter(|((recipe, _), _)| *recipe == fingerprint);
        let job = by_point.or_else(|| {
            let (_, first) = of_recipe.next()?;
            of_recipe.all(|(_, job)| job == first).then_some(*first)
        });
        job.map(str::to_owned)
    }
}

fn compare(plan: &[Envelope], mut found: HashMap<String, Found>, results: &mut Throughput) {
    let ledger = Ledger::new(plan, |row| match row.eval.eval_only {
        true => Vec::new(),
        false => row.conc.points().to_vec(),
    });
    for aggregate in &results.aggregates {
        match aggregate.job.as_ref().filter(|job| ledger.has(job)) {
            None => results.unplanned.push(aggregate.source.clone()),
            Some(job) => {
                let found = found.entry(job.clone()).or_default();
                found.source.clone_from(&aggregate.source);
                found.concs.push(aggregate.conc());
            }
        }
    }
    results.jobs = ledger.jobs(&found, std::mem::take(&mut results.jobs));
}

impl Attempt for Aggregate {
    /// A job's concurrency. Without a job, the recipe's; without a recipe, all of the file.
    fn point(&self) -> Option<String> {
        let conc = self.conc();
        Some(match (&self.job, self.fields.recipe_fingerprint.text()) {
            (Some(job), _) => format!("job {job} {conc}"),
            (None, Some(recipe)) => format!("recipe {recipe} {conc}"),
            (None, None) => self.json.get().to_owned(),
        })
    }

    fn number(&self) -> (u64, u64) {
        let number = |cell: &Cell| cell.integer().unwrap_or(0);
        (number(&self.fields.run_id), number(&self.fields.run_attempt))
    }

    fn flaw(&self) -> Option<Flaw> {
        self.unfit.as_ref().map(|(flaw, _)| *flaw)
    }

    fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }

    fn source(&self) -> &str {
        &self.source
    }
}

impl Aggregate {
    /// Finds its job where it lies in no artifact's folder (a single artifact is unpacked flat), and whether it is of that
    /// job's row.
    fn hold_against(&mut self, planned: &Planned<'_>) {
        if self.job.is_none() {
            let (recipe, conc) = self.measured();
            self.job = planned.job(recipe, conc).map(str::to_owned);
        }
        let row = self.job.as_deref().and_then(|job| planned.rows.get(job));
        let contradictions = row.map_or_else(Vec::new, |row| usable::contradictions(&self.values, row));
        if self.unfit.is_none() && !contradictions.is_empty() {
            let message = format!("{} is of another job: {}", self.source, contradictions.join("; "));
            let problem = Problem::file(&self.source, message).hint("see the result step of its job");
            self.unfit = Some((Flaw::Foreign, problem));
        }
    }

    /// The recipe that was measured, and at which concurrency.
    #[must_use]
    pub fn measured(&self) -> (&str, u64) {
        (self.fields.recipe_fingerprint.text().unwrap_or_default(), self.conc())
    }

    /// Where it lies, for people.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The id of its job, where that is known.
    #[must_use]
    pub fn job(&self) -> Option<&str> {
        self.job.as_deref()
    }

    /// The fields that say what was measured and that are missing.
    #[must_use]
    pub fn lacking(&self) -> Vec<&'static str> {
        let f = &self.fields;
        let texts = [
            ("infmax_model_prefix", &f.infmax_model_prefix),
            ("hw", &f.hw),
            ("framework", &f.framework),
            ("precision", &f.precision),
            ("recipe_fingerprint", &f.recipe_fingerprint),
        ];
        let missing = texts.into_iter().filter(|(_, cell)| cell.text().is_none());
        missing.map(|(name, _)| name).collect()
    }

    fn conc(&self) -> u64 {
        self.fields.conc.integer().unwrap_or(0)
    }

    fn key(&self) -> impl Ord + use<> {
        let f = &self.fields;
        let text = |cell: &Cell| cell.text().unwrap_or_default().to_owned();
        let number = |cell: &Cell| cell.integer().unwrap_or(0);
        let what = [
            &f.infmax_model_prefix,
            &f.hw,
            &f.framework,
            &f.precision,
            &f.spec_decoding,
        ]
        .map(text);
        let multinode = f.is_multinode.flag().unwrap_or(false);
        let split = [
            &f.tp,
            &f.ep,
            &f.prefill_tp,
            &f.prefill_num_workers,
            &f.decode_tp,
            &f.decode_num_workers,
        ]
        .map(number);
        (
            what,
            number(&f.isl),
            number(&f.osl),
            multinode,
            split,
            self.conc(),
            self.source.clone(),
        )
    }

    /// The row of a table.
    pub(super) fn cells(&self) -> Vec<String> {
        let f = &self.fields;
        let text = |cell: &Cell| cell.text().unwrap_or("-").to_owned();
        let whole = |cell: &Cell| cell.integer().map_or_else(|| "-".to_owned(), |n| n.to_string());
        let number = |cell: &Cell| cell.number().map_or_else(|| "-".to_owned(), |n| format!("{n:.3}"));
        let lengths = match f.scenario_type.text() {
            Some(scenario) => scenario.to_owned(),
            None => format!("{}/{}", whole(&f.isl), whole(&f.osl)),
        };
        let split = match f.is_multinode.flag() {
            Some(true) => format!(
                "prefill {}x tp{}, decode {}x tp{}",
                whole(&f.prefill_num_workers),
                whole(&f.prefill_tp),
                whole(&f.decode_num_workers),
                whole(&f.decode_tp)
            ),
            _ => format!("tp{} ep{}", whole(&f.tp), whole(&f.ep)),
        };
        vec![
            text(&f.infmax_model_prefix),
            text(&f.hw),
            text(&f.framework),
            text(&f.precision),
            text(&f.spec_decoding),
            lengths,
            split,
            self.conc().to_string(),
            number(&f.tput_per_gpu),
            number(&f.output_tput_per_gpu),
            number(&f.median_ttft),
        ]
    }
}
