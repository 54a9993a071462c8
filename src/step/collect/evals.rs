//! `agg_eval_<name>.json`: one row per task of every set.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::attempts::{self, Attempt, Newest};
use super::eval_row::{self, EvalRow};
use super::ledger::{Found, Ledger};
use super::{folders, job_in_path, source};
use crate::config::problem::Problem;
use crate::config::thresholds::Thresholds;
use crate::ledger::Job;
use crate::matrix::envelope::Envelope;
use crate::matrix::row::Row;
use crate::step::results::accuracy;
use crate::step::results::file::Folder;
use crate::step::results::lm_eval::ResultFile;
use crate::step::results::loose::{Cell, List};
use crate::step::results::meta::{self, MetaEnv, Owner};
use crate::step::results::name;
use crate::step::validate::is_limit;

/// What rows are sorted by first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Order {
    /// The model's short name, then the hardware
    #[default]
    #[value(alias = "model_prefix")]
    Model,
    /// The hardware, then the model's short name
    Hw,
}

/// What was gathered.
#[derive(Debug, Clone, Default)]
pub struct Evals {
    /// Every row, sorted.
    pub rows: Vec<EvalRow>,
    /// How many sets there are, with those that gave no row.
    pub sets: usize,
    /// What is wrong, and with which set.
    pub problems: Vec<Problem>,
    /// Every planned job, and every superseded attempt.
    pub jobs: Vec<Job>,
    /// Sets of no planned job; empty without a plan.
    pub unplanned: Vec<String>,
}

/// A folder with a `meta_env.json` that can be read.
struct Set<'f> {
    folder: &'f Folder,
    /// Where, for people and published rows.
    source: String,
    job: Option<String>,
    meta: MetaEnv,
}

/// What one set gave.
struct Gathered<'f> {
    set: Set<'f>,
    rows: Vec<EvalRow>,
    problems: Vec<Problem>,
    /// When its newest result was written.
    written: i128,
}

/// Gathers every set under a folder, or the folder's own.
///
/// # Errors
/// A folder that cannot be searched. A set that cannot be read is none.
pub fn collect(
    root: &Path,
    plan: Option<&[Envelope]>,
    order: Order,
    thresholds: &Thresholds,
) -> Result<Evals, Problem> {
    let folders = folders(root)?;
    let mut evals = Evals::default();
    let (sets, broken) = read_sets(root, &folders, &mut evals);
    evals.sets = sets.len() + evals.problems.len();
    let gathered: Vec<Gathered<'_>> = sets.into_par_iter().map(|set| gather(root, set, thresholds)).collect();
    let Newest {
        kept: mut gathered,
        superseded,
        problems,
    } = attempts::newest(gathered);
    evals.jobs = superseded;
    evals.problems.extend(problems);
    // A set of another job than its folder says gives nothing.
    let planned: HashMap<&str, &Envelope> = plan.into_iter().flatten().map(|e| (e.id.as_str(), e)).collect();
    for gathered in &mut gathered {
        let job = gathered.set.job.as_deref().and_then(|job| planned.get(job));
        if let Some(problem) = job.and_then(|job| foreign(&gathered.set, job)) {
            gathered.rows.clear();
            gathered.problems = vec![problem];
        }
    }
    if let Some(plan) = plan {
        mark_limited(plan, &mut gathered);
        compare(plan, broken, &gathered, &mut evals);
    }
    for gathered in gathered {
        evals.rows.extend(gathered.rows);
        evals.problems.extend(gathered.problems);
    }
    evals.rows.par_sort_by(|a, b| key(a, order).cmp(&key(b, order)));
    Ok(evals)
}

/// The sets that can be read; the others become problems, and are told by job where their folders name one.
fn read_sets<'f>(root: &Path, folders: &'f [Folder], evals: &mut Evals) -> (Vec<Set<'f>>, HashMap<String, Found>) {
    let read: Vec<_> = folders
        .par_iter()
        .map(|folder| {
            let is_of_set = |set: &Folder| set.has(meta::NAME) && folder.path.starts_with(&set.path);
            read_set(root, folder, || folders.iter().any(is_of_set))
        })
        .collect();
    let (mut sets, mut broken) = (Vec::new(), HashMap::new());
    for (set, folder) in read.into_iter().zip(folders) {
        match set {
            Ok(set) => sets.extend(set),
            Err(problem) => {
                if let Some(job) = job_in_path(root, &folder.path) {
                    broken.insert(job, Found::broken(&problem));
                }
                evals.problems.push(problem);
            }
        }
    }
    (sets, broken)
}

fn read_set<'f>(root: &Path, folder: &'f Folder, is_of_set: impl Fn() -> bool) -> Result<Option<Set<'f>>, Problem> {
    let name = source(root, &folder.path);
    if !folder.has(meta::NAME) {
        let has_result = folder.named("results", ".json").next().is_some();
        return match has_result || (accuracy::is_there(folder) && !is_of_set()) {
            false => Ok(None),
            true => Err(
                Problem::file(&name, format!("{name}: there are results, but no {}", meta::NAME))
                    .hint("nothing says which job they are of: see what its stage step kept"),
            ),
        };
    }
    let meta = MetaEnv::read(&folder.path.join(meta::NAME)).map_err(|reason| {
        Problem::file(&name, format!("{name}/{} {reason}", meta::NAME)).hint("see what the job's stage step kept")
    })?;
    Ok(Some(Set {
        folder,
        job: meta
            .job()
            .map(str::to_owned)
            .or_else(|| job_in_path(root, &folder.path)),
        source: name,
        meta,
    }))
}

impl Attempt for Gathered<'_> {
    fn point(&self) -> Option<String> {
        self.set.job.clone()
    }

    fn number(&self) -> (u64, u64) {
        self.set.meta.attempt()
    }

    fn written(&self) -> i128 {
        self.written
    }

    fn has_result(&self) -> bool {
        !self.rows.is_empty()
    }

    fn job(&self) -> Option<&str> {
        self.set.job.as_deref()
    }

    fn source(&self) -> &str {
        &self.set.source
    }
}

/// Why a set is not of the job whose artifact it lies in.
fn foreign(set: &Set<'_>, job: &Envelope) -> Option<Problem> {
    match set.meta.owner(job, ("", ""), None) {
        Owner::Other(why) => {
            let message = format!(
                "{}: these are not the results of the job `{}`: {}",
                set.source,
                job.name,
                meta::sentences(&why)
            );
            Some(Problem::file(&set.source, message).hint("see what the job's stage step kept"))
        }
        Owner::Job | Owner::JobMisdescribed(_) => None,
    }
}

/// The rows of a set.
fn gather<'f>(root: &Path, set: Set<'f>, thresholds: &Thresholds) -> Gathered<'f> {
    let outputs = accuracy::outputs(&set.folder.path);
    let (files, problems) = match set.meta.is_batch() {
        // An accuracy benchmark leaves outputs of its own, and no result file.
        _ if !outputs.is_empty() && set.folder.named("results", ".json").next().is_none() => Files::default(),
        true => batch_files(&set),
        false => single_file(&set),
    };
    let conc = set.meta.cell("conc").integer().unwrap_or(0);
    let mut rows = Vec::new();
    let mut found = Vec::new();
    let problem = |message: String| {
        Problem::file(&set.source, format!("{}: {message}", set.source)).hint("see the log of its eval")
    };
    found.extend(problems.into_iter().map(problem));
    let paths = files.iter().map(|(_, path)| path);
    let paths = paths.chain(outputs.iter().map(|output| &output.path));
    let written = paths.map(|path| name::written(path)).max().unwrap_or(0);
    let results = files.into_iter().map(|(conc, path)| {
        let result = ResultFile::read(&path);
        (conc, path, result)
    });
    let outputs = outputs.into_iter().map(|output| (conc, output.path, output.result));
    for (conc, path, result) in results.chain(outputs) {
        let name = source(root, &path);
        let failed = |reason: String| Problem::file(&name, reason).hint("see the log of its eval");
        match result {
            Err(reason) => found.push(failed(format!("{name} {reason}"))),
            Ok(result) => {
                let (of_file, problems) = eval_row::rows(&set.meta, conc, &result, &name, thresholds);
                let is_limited = result.limit().is_some();
                rows.extend(of_file.into_iter().map(|row| EvalRow {
                    diagnostic: is_limited,
                    ..row
                }));
                found.extend(problems.into_iter().map(|reason| failed(format!("{name}: {reason}"))));
            }
        }
    }
    Gathered {
        set,
        rows,
        problems: found,
        written,
    }
}

/// Marks the rows of jobs that were planned with a limit on samples.
fn mark_limited(plan: &[Envelope], gathered: &mut [Gathered<'_>]) {
    let is_limited = |envelope: &&Envelope| is_limit(envelope.overrides.asked.eval_limit.as_deref().unwrap_or(""));
    let limited: HashSet<&str> = plan
        .iter()
        .filter(is_limited)
        .map(|envelope| envelope.id.as_str())
        .collect();
    let of_plan = |gathered: &&mut Gathered<'_>| gathered.set.job.as_deref().is_some_and(|job| limited.contains(job));
    for row in gathered
        .iter_mut()
        .filter(of_plan)
        .flat_map(|gathered| &mut gathered.rows)
    {
        row.diagnostic = true;
    }
}

type Files = (Vec<(u64, PathBuf)>, Vec<String>);

/// The result files of a set, with the concurrency in their names.
fn result_files<'s>(set: &'s Set<'_>) -> impl Iterator<Item = (Option<u64>, PathBuf)> + 's {
    set.folder.named("results", ".json").map(|file| {
        let conc = name::concurrency(&file.to_string_lossy());
        (conc, set.folder.path.join(file))
    })
}

/// The later of two is the result; names tell apart what was written at once.
fn latest(files: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    files.max_by_key(|path| (name::written(path), path.clone()))
}

fn single_file(set: &Set<'_>) -> Files {
    match latest(result_files(set).map(|(_, path)| path)) {
        Some(path) => (vec![(set.meta.cell("conc").integer().unwrap_or(0), path)], Vec::new()),
        None => (Vec::new(), vec!["there is no result file".to_owned()]),
    }
}

/// The latest file of each concurrency that completed.
fn batch_files(set: &Set<'_>) -> Files {
    let concs = |list: &Option<List<Cell>>| -> Option<Vec<u64>> {
        Some(list.as_ref()?.0.as_ref()?.iter().filter_map(Cell::integer).collect())
    };
    let Some(asked) = concs(&set.meta.eval_concs) else {
        return (Vec::new(), vec!["`eval_concs` is no list".to_owned()]);
    };
    let completed = concs(&set.meta.completed_eval_concs).unwrap_or_else(|| asked.clone());
    let mut by_conc: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
    for (conc, path) in result_files(set) {
        if let Some(conc) = conc.filter(|conc| completed.contains(conc)) {
            by_conc.entry(conc).or_default().push(path);
        }
    }
    let lacking = completed.iter().filter(|conc| !by_conc.contains_key(conc));
    let problems = lacking
        .map(|conc| format!("concurrency {conc} completed, but has no result file"))
        .collect();
    let files = by_conc
        .into_iter()
        .filter_map(|(conc, paths)| Some((conc, latest(paths.into_iter())?)));
    (files.collect(), problems)
}

fn compare(plan: &[Envelope], mut found: HashMap<String, Found>, gathered: &[Gathered<'_>], evals: &mut Evals) {
    let ledger = Ledger::new(plan, Row::eval_concs);
    for gathered in gathered {
        let set = &gathered.set;
        let Some(job) = set.job.as_ref().filter(|job| ledger.has(job)) else {
            evals.unplanned.push(set.source.clone());
            continue;
        };
        let concs = gathered.rows.iter().map(|row| row.conc).collect();
        let problems = gathered
            .problems
            .iter()
            .map(|problem| problem.message.clone())
            .collect();
        let source = set.source.clone();
        let is_diagnostic = gathered.rows.iter().any(|row| row.diagnostic);
        found.insert(
            job.clone(),
            Found {
                source,
                concs,
                problems,
                remark: is_diagnostic.then(|| DIAGNOSTIC.to_owned()),
            },
        );
    }
    evals.jobs = ledger.jobs(&found, std::mem::take(&mut evals.jobs));
}

/// What the ledger says of a job with a limit on samples.
const DIAGNOSTIC: &str = "diagnostic: a limit on samples was set";

/// What rows are sorted by.
fn key(row: &EvalRow, order: Order) -> impl Ord {
    let (first, second) = match order {
        Order::Model => (row.model_prefix.clone(), row.hw.clone()),
        Order::Hw => (row.hw.clone(), row.model_prefix.clone()),
    };
    let topology = match row.is_multinode {
        false => [row.tp, row.ep, 0, 0, 0, 0],
        true => [
            row.prefill_tp,
            row.prefill_ep,
            row.prefill_num_workers,
            row.decode_tp,
            row.decode_ep,
            row.decode_num_workers,
        ],
    };
    let what = [row.framework.clone(), row.precision.clone(), row.spec_decoding.clone()];
    let lengths = (row.isl, row.osl, row.is_multinode);
    (
        (first, second, what, lengths),
        topology,
        row.conc,
        row.task.clone(),
        row.source.clone(),
    )
}
