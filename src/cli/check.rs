//! `sweepctl check`: everything wrong with a repository's inputs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde::Serialize;

use super::format::{self, Format, FormatArgs};
use super::inputs::CONFIGS;
use super::{annotate, output};
use crate::config::changelog::Changelog;
use crate::config::clusters::Clusters;
use crate::config::engines::Engines;
use crate::config::entries;
use crate::config::fleet::{Fleet, FleetFiles};
use crate::config::floors::{self, Known, Review};
use crate::config::kind::Kind;
use crate::config::master::{Master, NamedRunner};
use crate::config::policy::{self, EvalPolicies};
use crate::config::problem::{Place, Problem, Problems, nearest};
use crate::config::source::Source;
use crate::config::thresholds::{self, Thresholds};
use crate::config::workflows::Workflows;
use crate::config::{master, recipe, runners::Runners};
use crate::findings::config::{NO_SUCH_RUNNER, NO_THRESHOLD};
use crate::findings::files as findings;
use crate::matrix::evals::{self, EvalMode};
use crate::matrix::expand::Expansion;
use crate::matrix::plan::unknown_configs;
use crate::matrix::row::Row;
use crate::plural;
use crate::repo::CHANGELOG;
use crate::step::eval::framework;
use crate::step::eval::task::{self, Task};
use crate::step::launch::runnable;
use crate::step::validate::MIN_SCORE;

/// `sweepctl check`
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Files and folders; a folder's configs and changelog are looked for [default: this folder]
    #[arg(value_name = "PATH", default_value = ".", hide_default_value = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

/// What one file holds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Checked {
    file: String,
    kind: &'static str,
    count: usize,
    #[serde(skip)]
    counts: &'static str,
}

impl Check {
    /// Checks and prints.
    ///
    /// # Errors
    /// Every problem of every file.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut problems = Problems::default();
        let mut sources: Vec<(Kind, Arc<Source>)> = Vec::new();
        for (kind, path) in self.files(&mut problems) {
            match Source::read(&path) {
                Ok(source) => sources.push((kind, Arc::new(source))),
                Err(problem) => problems.push(problem),
            }
        }
        let mut checked = Vec::new();
        for (kind, source) in &sources {
            match kind.check(source) {
                Ok(count) => checked.push(Checked {
                    file: source.name.clone(),
                    kind: kind.name(),
                    count,
                    counts: kind.counts(),
                }),
                Err(more) => problems.extend(more),
            }
        }
        let shared = Shared::of(&sources);
        let unknown = unknown_runners(&sources, &shared);
        if problems.0.is_empty() {
            problems.extend(together(&sources, &shared).err().unwrap_or_default());
        }
        problems.extend(unknown);
        let mut review = reviewed(&sources, &shared);
        review.warnings.extend(without_threshold(&sources));
        problems.extend(Problems(review.errors));
        let newest = newest_entries(&sources, &shared).0;
        let doubtful = match (&shared.master, &shared.runners) {
            (Ok(master), Some(Ok(runners))) => entries::doubtful(master, runners),
            _ => Vec::new(),
        };
        let warnings = review.warnings.into_iter().chain(doubtful).chain(newest);
        let warnings: Vec<Problem> = warnings.map(Problem::warning).collect();
        if !problems.0.is_empty() {
            problems.extend(Problems(warnings));
            return Ok(problems.into_result()?);
        }
        annotate::warn(&warnings);
        match self.format.chosen() {
            Format::Json => return output::json(&checked),
            Format::Sarif => return format::sarif("check", &warnings),
            Format::Text => {}
        }
        let rows: Vec<Vec<String>> = checked
            .iter()
            .map(|c| vec![c.file.clone(), c.kind.to_owned(), plural::count(c.count, c.counts)])
            .collect();
        output::text(&output::table(&["file", "kind", "holds"], &rows))
    }

    fn files(&self, problems: &mut Problems) -> Vec<(Kind, PathBuf)> {
        let mut files = Vec::new();
        for path in &self.paths {
            if path.is_dir() {
                let found = in_folder(path);
                if found.is_empty() {
                    let place = path.display().to_string();
                    let problem =
                        findings::NOTHING_TO_CHECK.file(&place, format!("`{place}` holds no configs and no changelog"));
                    problems.push(problem.hint(format!("run from the repository's root, where `{CONFIGS}/` is")));
                }
                files.extend(found);
                continue;
            }
            if path.symlink_metadata().is_err() {
                let place = path.display().to_string();
                problems.push(findings::MISSING.file(&place, format!("`{place}` does not exist")));
                continue;
            }
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match Kind::of(name) {
                Some(kind) => files.push((kind, path.clone())),
                None => {
                    let place = path.display().to_string();
                    let problem =
                        findings::UNKNOWN_KIND.file(&place, format!("`{place}` has no name that says what it is"));
                    let names = "*-master.yaml, runners.yaml, clusters.yaml, engines.yaml, perf-changelog.yaml, \
                                 eval-policy.yaml, labels.yaml, thresholds.yaml, ci-priority.yaml, frameworks.yaml, \
                                 workflows.yaml";
                    problems.push(match is_recipe(path) {
                        true => problem.hint(format!("it is a recipe: `sweepctl recipe check {place}`")),
                        false => problem.hint(format!("known names: {names}")),
                    });
                }
            }
        }
        files
    }
}

/// Whether a file is a recipe of srt-slurm, which has a check of its own.
fn is_recipe(path: &Path) -> bool {
    let is = |source: Source| recipe::check::check(&Arc::new(source)).is_ok();
    path.components().any(|part| part.as_os_str() == "recipes") || Source::read(path).is_ok_and(is)
}

/// The files of a repository: in its `configs` and its folder of evals, in the folder itself, and its changelog.
fn in_folder(folder: &Path) -> Vec<(Kind, PathBuf)> {
    let mut files: Vec<(Kind, PathBuf)> = [
        folder.join(CONFIGS),
        folder.join(CONFIGS).join("evals"),
        folder.to_path_buf(),
    ]
    .iter()
    .filter_map(|folder| std::fs::read_dir(folder).ok())
    .flatten()
    .filter_map(|entry| {
        let entry = entry.ok()?;
        let kind = Kind::of(entry.file_name().to_str()?)?;
        let path = entry.path();
        Some((kind, path.strip_prefix(".").map(Path::to_path_buf).unwrap_or(path)))
    })
    .collect();
    files.sort_by(|(_, a), (_, b)| a.cmp(b));
    // The changelog last: what it says leans on all others.
    files.sort_by_key(|(_, path)| path.ends_with(CHANGELOG));
    files
}

/// The files of a kind.
fn of_kind(sources: &[(Kind, Arc<Source>)], wanted: Kind) -> impl Iterator<Item = &Arc<Source>> {
    let of_kind = sources.iter().filter(move |(kind, _)| *kind == wanted);
    of_kind.map(|(_, source)| source)
}

/// What several checks look at, read once.
struct Shared {
    master: Result<Master, Problems>,
    /// `None` where there is no such file.
    runners: Option<Result<Runners, Problems>>,
}

impl Shared {
    fn of(sources: &[(Kind, Arc<Source>)]) -> Self {
        let master: Vec<Arc<Source>> = of_kind(sources, Kind::Master).cloned().collect();
        Self {
            master: master::load(&master),
            runners: of_kind(sources, Kind::Runners).next().map(Runners::load),
        }
    }
}

/// What no file shows alone: keys in two master files, and rows that cannot be generated.
fn together(sources: &[(Kind, Arc<Source>)], shared: &Shared) -> Result<(), Problems> {
    let of = |wanted: Kind| of_kind(sources, wanted);
    for source in of(Kind::EvalPolicy) {
        evaluators_run(source)?;
    }
    let master = shared.master.as_ref().map_err(Clone::clone)?;
    let Some(runners) = &shared.runners else {
        return Ok(());
    };
    let runners = runners.as_ref().map_err(Clone::clone)?;
    for settings in of(Kind::Workflows) {
        Workflows::load_for(settings, runners)?;
    }
    let rows = Expansion::default().rows(master.values(), runners)?;
    let names: HashSet<String> = runner_names(runners).into_iter().map(str::to_owned).collect();
    let mut problems = Problems::default();
    let Some(source) = of(Kind::Clusters).next() else {
        return Ok(());
    };
    let engines = match of(Kind::Engines).next() {
        Some(source) => Engines::load(source)?,
        None => Engines::built_in()?,
    };
    let fleet = Fleet {
        clusters: Clusters::load(source, Some(runners))?,
        runners: runners.clone(),
        engines,
        files: FleetFiles {
            clusters: PathBuf::from(&source.name),
            ..FleetFiles::default()
        },
    };
    // Scripts stand beside the folder of configs.
    let configs = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    let root = configs.parent().unwrap_or(configs);
    let mut rows = rows;
    for source in of(Kind::EvalPolicy) {
        rows.extend(benchmark_rows(&rows, &EvalPolicies::load(source)?));
    }
    let known: Vec<Row> = rows
        .into_iter()
        .filter(|row| names.contains(&row.topology.runner))
        .collect();
    problems.extend(cluster_tasks(&fleet, root));
    let runnable = runnable::check(
        &known,
        Some(&fleet),
        &|path| {
            let path = root.join(path);
            path.is_file().then(|| Source::read(&path).map(Arc::new)).transpose()
        },
        &[root.to_path_buf()],
    );
    problems.extend(runnable.err().unwrap_or_default());
    problems.into_result()
}

/// Eval tasks of clusters that nobody has.
fn cluster_tasks(fleet: &Fleet, root: &Path) -> Problems {
    let mut problems = Problems::default();
    for (name, cluster) in &fleet.clusters.clusters {
        let found = cluster
            .backend
            .eval_task()
            .map(|task| Task::find(task, &[root.to_path_buf()]));
        for mut problem in found.and_then(Result::err).unwrap_or_default().0 {
            problem.message = format!("the cluster `{name}`: {}", problem.message);
            if problem.file.is_empty() {
                problem.file = fleet.files.clusters.display().to_string();
            }
            problems.push(problem);
        }
    }
    problems
}

/// Keys and patterns of the newest entry that no config matches. Entries before it may name what is gone.
fn newest_entry(changelog: &Arc<Source>, master: &Master) -> Result<(), Problems> {
    let entries = Changelog::parse(changelog)?;
    let newest = entries.items().pop().map(|item| entries.decode(&[item])).transpose()?;
    let mut problems = Problems::default();
    for (entry, span) in newest.unwrap_or_default() {
        problems.extend(unknown_configs(&entry, &Place::new(changelog, span), master));
    }
    problems.into_result()
}

/// What a config may name as its runner: the labels, and the runners of each.
fn runner_names(runners: &Runners) -> Vec<&str> {
    let names = runners.labels.keys().chain(runners.labels.values().flatten());
    names.map(String::as_str).collect()
}

/// The rows that run an accuracy benchmark wherever the active policy can select them.
fn benchmark_rows(rows: &[Row], policies: &EvalPolicies) -> Vec<Row> {
    let Some(policy) = policies.policies.get(&policies.active) else {
        return Vec::new();
    };
    let modes = [EvalMode::EvalsOnly, EvalMode::AllEvals];
    let selected = modes.map(|mode| evals::apply(rows.to_vec(), policy, mode, false));
    let selected = selected.into_iter().flatten();
    selected.filter(|row| row.benchmark().is_some()).collect()
}

/// Configs whose runner is neither a label nor a runner of one.
fn unknown_runners(sources: &[(Kind, Arc<Source>)], shared: &Shared) -> Problems {
    let Some(Ok(runners)) = &shared.runners else {
        return Problems::default();
    };
    let known = runner_names(runners);
    let names: HashSet<&str> = known.iter().copied().collect();
    let named = of_kind(sources, Kind::Master).flat_map(master::runners_of);
    let unknown: Vec<NamedRunner> = named.filter(|named| !names.contains(named.runner.as_str())).collect();
    let mut problems = Problems::default();
    // Looking for the nearest name takes time: of many no more are said than of one file.
    for named in unknown.iter().take(Problems::MAX) {
        let message = format!("`{}` of `{}` is no label and no runner", named.runner, named.key);
        let hint = nearest(&named.runner, known.iter().copied());
        problems.push(NO_SUCH_RUNNER.here(&named.place, message).hint(hint));
    }
    if unknown.len() > Problems::MAX {
        let more = unknown.len() - Problems::MAX;
        let message = format!("{more} more configs have no label and no runner");
        problems.push(
            findings::TOO_MANY
                .file("", message)
                .hint("correct those that are shown, and check again"),
        );
    }
    problems
}

/// Whether something runs every evaluator that the active policy can select. Task and frameworks files are looked for
/// in the repository of the policy file.
fn evaluators_run(source: &Arc<Source>) -> Result<(), Problems> {
    let policies = EvalPolicies::load(source)?;
    let Some(policy) = policies.policies.get(&policies.active) else {
        return Ok(());
    };
    let root = Path::new(&source.name).parent().and_then(Path::parent);
    let root = root
        .filter(|root| !root.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut problems = Problems::default();
    for (rule, evaluator) in policy.evaluators() {
        for mut problem in framework::suite(evaluator, &[root.to_path_buf()])
            .err()
            .unwrap_or_default()
            .0
        {
            if problem.file.is_empty() {
                problem.file.clone_from(&source.name);
            }
            problem.message = format!("rule `{rule}` of policy `{}`: {}", policies.active, problem.message);
            problems.push(problem);
        }
    }
    problems.into_result()
}

/// What [`newest_entry`] finds; of files that cannot be read nothing is said a second time.
fn newest_entries(sources: &[(Kind, Arc<Source>)], shared: &Shared) -> Problems {
    let of = |wanted: Kind| of_kind(sources, wanted);
    let Some(master) = shared
        .master
        .as_ref()
        .ok()
        .filter(|_| of(Kind::Master).next().is_some())
    else {
        return Problems::default();
    };
    let found = of(Kind::Changelog).filter_map(|changelog| newest_entry(changelog, master).err());
    Problems(found.flat_map(|problems| problems.0).collect())
}

/// Whether the thresholds can work; of files that cannot be read nothing is said a second time.
fn reviewed(sources: &[(Kind, Arc<Source>)], shared: &Shared) -> Review {
    let of = |wanted: Kind| of_kind(sources, wanted);
    let mut review = Review::default();
    for source in of(Kind::Thresholds) {
        let Ok(thresholds) = Thresholds::load(source) else {
            continue;
        };
        let mut known = Known::default();
        for config in shared.master.iter().flat_map(indexmap::IndexMap::values) {
            known.prefixes.push(config.model_prefix.clone());
        }
        known.tasks = known_tasks(source, of(Kind::EvalPolicy), of(Kind::Clusters));
        let found = floors::review(&thresholds, &known);
        review.errors.extend(found.errors);
        review.warnings.extend(found.warnings);
    }
    review
}

/// The clusters' own tasks that no threshold judges: the gate then takes its own floor.
fn without_threshold(sources: &[(Kind, Arc<Source>)]) -> Vec<Problem> {
    let of = |wanted: Kind| of_kind(sources, wanted);
    let own = of(Kind::Thresholds).next().cloned();
    let built_in = || Arc::new(Source::new("<built-in>/thresholds.yaml", thresholds::BUILT_IN));
    let Ok(thresholds) = Thresholds::load(&own.unwrap_or_else(built_in)) else {
        return Vec::new();
    };
    let judged = |task: &str| {
        let models = thresholds.models.values();
        thresholds.default.contains_key(task) || models.into_iter().any(|tasks| tasks.contains_key(task))
    };
    let mut found = Vec::new();
    for source in of(Kind::Clusters) {
        let clusters = Clusters::load(source, None)
            .map(|file| file.clusters)
            .unwrap_or_default();
        for (name, cluster) in &clusters {
            let task = cluster
                .backend
                .eval_task()
                .and_then(|task| Path::new(task).file_stem()?.to_str());
            if let Some(task) = task.filter(|task| !judged(task)) {
                let message = format!(
                    "the eval task `{task}` of the cluster `{name}` has no threshold: it passes at --min-score, {MIN_SCORE}"
                );
                let problem = NO_THRESHOLD.file(&source.name, message);
                found.push(problem.hint(format!("add `{task}:` under `default` of configs/thresholds.yaml")));
            }
        }
    }
    found
}

/// The tasks that somebody evaluates: those of the task files beside the thresholds, the suites of the policies, the
/// clusters' own, and those that the tool brings floors for.
fn known_tasks<'s>(
    thresholds: &Arc<Source>,
    policies: impl Iterator<Item = &'s Arc<Source>>,
    clusters: impl Iterator<Item = &'s Arc<Source>>,
) -> Vec<String> {
    let beside = Path::new(&thresholds.name).parent().unwrap_or(Path::new(""));
    let mut known = Known {
        tasks: task::names(&beside.join("evals")),
        ..Known::default()
    };
    let built_in = Source::new("<built-in>/thresholds.yaml".to_owned(), thresholds::BUILT_IN.to_owned());
    if let Ok(built_in) = Thresholds::load(&Arc::new(built_in)) {
        known.tasks_of(&built_in);
    }
    let brought = EvalPolicies::load(&policy::built_in_source()).ok();
    for policies in policies
        .filter_map(|source| EvalPolicies::load(source).ok())
        .chain(brought)
    {
        known
            .tasks
            .extend(policies.policies.values().flat_map(policy::EvalPolicy::scores));
    }
    for clusters in clusters.filter_map(|source| Clusters::load(source, None).ok()) {
        let own = clusters.clusters.values();
        let own = own.filter_map(|cluster| cluster.backend.eval_task().map(str::to_owned));
        known.tasks.extend(own);
    }
    known.tasks.retain(|task| !task.is_empty());
    known.tasks
}
