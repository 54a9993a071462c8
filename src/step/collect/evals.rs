//! `agg_eval_<name>.json`: one row per task of every set.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::asked::Tasks;
use super::attempts::{self, Attempt, Flaw, Newest};
use super::eval_row::{self, EvalRow};
use super::ledger::{Found, Ledger};
use super::{folders, job_in_path, source, unread};
use crate::config::fields::{Field, Side};
use crate::config::problem::Problem;
use crate::config::recipe::Benchmark;
use crate::config::thresholds::Thresholds;
use crate::ledger::{Job, Score};
use crate::matrix::envelope::Envelope;
use crate::matrix::row::Row;
use crate::step::results::accuracy;
use crate::step::results::file::Folder;
use crate::step::results::lm_eval::ResultFile;
use crate::step::results::loose::{Cell, List};
use crate::step::results::meta::{self, MetaEnv, Owner};
use crate::step::results::name;
use crate::step::validate::{self, Bound, Request, is_limit, of_published};

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
    /// The folders in it.
    below: &'f [Folder],
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
    /// Why the gate of its job refuses it, its scores and samples aside.
    refused: Vec<String>,
    /// Whether it has a file that could hold a score.
    has_result: bool,
    /// Whether it is of another job than it is counted for.
    is_foreign: bool,
}

/// The planned jobs, by id.
type Planned<'p> = HashMap<&'p str, &'p Envelope>;

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
    let (folders, unseen) = folders(root)?;
    let planned: Planned<'_> = plan.into_iter().flatten().map(|e| (e.id.as_str(), e)).collect();
    let tasks = Tasks::of(plan.unwrap_or_default());
    let mut evals = Evals::default();
    let (sets, broken) = read_sets(root, &folders, &planned, &mut evals);
    evals.sets = sets.len() + evals.problems.len();
    evals.problems.extend(unseen);
    let gathered = sets.into_par_iter().map(|set| {
        let job = set.job.as_deref().and_then(|job| planned.get(job).copied());
        // Before the newest attempt is chosen: what is of another job hides nothing of this one.
        match job.and_then(|job| foreign(&set, job)) {
            Some(problem) => Gathered::foreign(set, problem),
            None => {
                let request = job.map(|job| tasks.request(job, thresholds));
                gather(root, set, job, request.as_ref(), thresholds)
            }
        }
    });
    let gathered: Vec<Gathered<'_>> = gathered.collect();
    // Said also of those that another attempt stands in for.
    let of_foreign = gathered.iter().filter(|gathered| gathered.is_foreign);
    evals
        .problems
        .extend(of_foreign.flat_map(|gathered| gathered.problems.clone()));
    let Newest {
        kept,
        superseded,
        passed_over,
        problems,
    } = attempts::newest(gathered);
    evals.jobs = superseded;
    evals.problems.extend(problems);
    // The newest attempt is the one that was meant to count: why it does not is said, unless it left nothing at all.
    let unusable = passed_over
        .into_iter()
        .filter(|gathered| gathered.has_result && !gathered.is_foreign);
    evals.problems.extend(unusable.flat_map(|gathered| gathered.problems));
    if let Some(plan) = plan {
        compare(plan, broken, &kept, thresholds, &mut evals);
    }
    for gathered in kept.into_iter().filter(|gathered| !gathered.is_foreign) {
        evals.rows.extend(gathered.rows);
        evals.problems.extend(gathered.problems);
    }
    evals.problems.extend(super::keys::missed(&evals.rows, thresholds));
    evals.rows.par_sort_by_cached_key(|row| key(row, order));
    Ok(evals)
}

/// The sets that can be read; the others become problems, and are told by job where their folders name one.
fn read_sets<'f>(
    root: &Path,
    folders: &'f [Folder],
    planned: &Planned<'_>,
    evals: &mut Evals,
) -> (Vec<Set<'f>>, HashMap<String, Found>) {
    let read = (0..folders.len())
        .into_par_iter()
        .map(|at| read_set(root, folders, at, planned));
    let read: Vec<_> = read.collect();
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

/// The set of one of the folders, which are sorted by their paths; `None` where it holds none.
fn read_set<'f>(
    root: &Path,
    folders: &'f [Folder],
    at: usize,
    planned: &Planned<'_>,
) -> Result<Option<Set<'f>>, Problem> {
    let folder = &folders[at];
    let is_of_set = || {
        let mut around = folders[..at].iter();
        around.any(|set| set.has(meta::NAME) && folder.path.starts_with(&set.path))
    };
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
    let of_folder = job_in_path(root, &folder.path);
    let written = meta.job().map(str::to_owned);
    let below = folders[at + 1..].iter();
    let below = below.take_while(|below| below.path.starts_with(&folder.path)).count();
    Ok(Some(Set {
        folder,
        below: &folders[at + 1..][..below],
        // The artifact of a planned job holds that job's results, or contradicts it.
        job: match &of_folder {
            Some(job) if planned.contains_key(job.as_str()) => of_folder,
            _ => written.or(of_folder),
        },
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

    fn flaw(&self) -> Option<Flaw> {
        match (self.is_foreign, self.rows.is_empty()) {
            (true, _) => Some(Flaw::Foreign),
            (false, true) => Some(Flaw::Empty),
            (false, false) => None,
        }
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

impl<'f> Gathered<'f> {
    /// What a set of another job gives: nothing.
    fn foreign(set: Set<'f>, problem: Problem) -> Self {
        Self {
            set,
            rows: Vec::new(),
            problems: vec![problem],
            written: 0,
            refused: Vec::new(),
            has_result: true,
            is_foreign: true,
        }
    }
}

/// The rows of a set; `job` is the planned one that it is of, and `request` what its gate asks.
fn gather<'f>(
    root: &Path,
    set: Set<'f>,
    job: Option<&Envelope>,
    request: Option<&Request>,
    thresholds: &Thresholds,
) -> Gathered<'f> {
    let was_limited = job.is_some_and(|job| is_limit(job.overrides.asked.eval_limit.as_deref().unwrap_or("")));
    let outputs = accuracy::outputs_in(set.folder, set.below);
    let (files, problems) = match set.meta.is_batch() {
        // An accuracy benchmark leaves outputs of its own, and no result file.
        _ if !outputs.is_empty() && set.folder.named("results", ".json").next().is_none() => Files::default(),
        true => batch_files(&set),
        false => single_file(&set),
    };
    let conc = set.meta.cell("conc").integer().unwrap_or(0);
    let (mut rows, mut found, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let has_result = !(files.is_empty() && outputs.is_empty());
    let problem = |message: String| {
        Problem::file(&set.source, format!("{}: {message}", set.source)).hint("see the log of its eval")
    };
    found.extend(problems.into_iter().map(problem));
    let paths = files.iter().map(|(_, path)| path);
    let paths = paths.chain(outputs.iter().map(|output| &output.path));
    let written = paths.map(|path| name::written(path)).max().unwrap_or(0);
    let results = files.into_iter().map(|(conc, path)| {
        let result = ResultFile::read(&path);
        if let (Some(request), Ok(result)) = (request, &result) {
            refused.extend(validate::lacking(request, &source(root, &path), result));
        }
        (conc, path, result)
    });
    let outputs = outputs.into_iter().map(|output| (conc, output.path, output.result));
    for (conc, path, result) in results.chain(outputs) {
        let name = source(root, &path);
        let failed = |reason: String| Problem::file(&name, reason).hint("see the log of its eval");
        match result {
            Err(reason) => found.push(unread(&name, &path, &reason)),
            Ok(result) => {
                let (of_file, problems) = eval_row::rows(&set.meta, job, conc, &result, &name, thresholds);
                let is_limited = was_limited || result.limit().is_some();
                rows.extend(of_file.into_iter().map(|mut row| {
                    row.diagnostic = is_limited;
                    row.job_id.clone_from(&set.job);
                    row
                }));
                found.extend(problems.into_iter().map(|reason| failed(format!("{name}: {reason}"))));
            }
        }
    }
    if let Some(lacks) = job
        .and_then(|job| lacks_benchmark(job, &rows))
        .filter(|_| found.is_empty())
    {
        found.push(problem(lacks));
    }
    Gathered {
        set,
        rows,
        problems: found,
        written,
        refused,
        has_result,
        is_foreign: false,
    }
}

/// Why the rows of a job whose eval is an accuracy benchmark are not those of that benchmark.
fn lacks_benchmark(job: &Envelope, rows: &[EvalRow]) -> Option<String> {
    let suite = Benchmark::of_suite(job.row.benchmark()?)?;
    let is_there = rows.iter().any(|row| suite.tasks().contains(&row.task.as_str()));
    (!is_there).then(|| {
        format!(
            "the job asked for the benchmark `{}`, and there is no score of it",
            suite.name()
        )
    })
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

fn compare(
    plan: &[Envelope],
    mut found: HashMap<String, Found>,
    gathered: &[Gathered<'_>],
    thresholds: &Thresholds,
    evals: &mut Evals,
) {
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
        let refused = gathered.refused.clone();
        let source = set.source.clone();
        let is_diagnostic = gathered.rows.iter().any(|row| row.diagnostic);
        found.insert(
            job.clone(),
            Found {
                source,
                concs,
                problems,
                refused,
                remark: is_diagnostic.then(|| DIAGNOSTIC.to_owned()),
                scores: gathered.rows.iter().map(|row| held(row, thresholds)).collect(),
                diagnostic: is_diagnostic,
            },
        );
    }
    evals.jobs = ledger.jobs(&found, std::mem::take(&mut evals.jobs));
}

/// A row's score, held against what the gate holds it against.
fn held(row: &EvalRow, thresholds: &Thresholds) -> Score {
    let bound = Bound::of(row.higher_is_better == Some(false));
    let threshold = thresholds.find(Some(&row.text(Field::ModelPrefix)), &row.task);
    // The gate judges a category where a threshold names it, and else shows it.
    let is_shown = row.is_category && threshold.is_none();
    let floor = of_published(threshold, bound, row.n_eff.filter(|_| row.diagnostic)).filter(|_| !is_shown);
    Score {
        task: row.task.clone(),
        conc: row.conc,
        score: row.score,
        score_name: row.score_name.clone(),
        floor,
        passed: match (floor, row.worst) {
            (None, Some(_)) => is_shown,
            (floor, worst) => floor
                .zip(worst)
                .is_some_and(|(floor, worst)| bound.admits(worst, floor)),
        },
    }
}

/// What the ledger says of a job with a limit on samples.
const DIAGNOSTIC: &str = "diagnostic: a limit on samples was set";

/// What rows are sorted by.
fn key(row: &EvalRow, order: Order) -> impl Ord + use<> {
    let first = match order {
        Order::Model => [Field::ModelPrefix, Field::Runner],
        Order::Hw => [Field::Runner, Field::ModelPrefix],
    };
    let what = [Field::Framework, Field::Precision, Field::SpecDecoding];
    let number = |text: String| text.parse::<u64>().unwrap_or(0);
    let lengths = [Field::Isl, Field::Osl].map(|field| number(row.text(field)));
    let numbers = |side| {
        row.sizes(side)
            .filter(|(size, _)| !size.is_flag())
            .map(move |(_, text)| number(text))
    };
    let topology: Vec<u64> = match row.is_multinode {
        false => numbers(None).collect(),
        true => Side::ALL
            .into_iter()
            .flat_map(|side| numbers(Some(side)).chain([row.workers(side)]))
            .collect(),
    };
    (
        (first.map(|field| row.text(field)), what.map(|field| row.text(field))),
        (lengths, row.is_multinode),
        topology,
        row.conc,
        row.task.clone(),
        row.source.clone(),
    )
}
