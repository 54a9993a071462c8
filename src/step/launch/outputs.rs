//! What a job must leave in its workspace, and what it left instead.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::failure::{Failure, Kind};
use crate::config::problem::{Problem, Problems};
use crate::config::recipe::Benchmark as Accuracy;
use crate::matrix::envelope::Envelope;
use crate::matrix::row::Scenario;
use crate::step::eval::{framework, results};
use crate::step::places;
use crate::step::replay;
use crate::step::replay::left::Left;
use crate::step::results::accuracy;
use crate::step::results::file::shown;
use crate::step::results::meta;
use crate::step::stage;
use crate::step::throughput::Benchmark;

/// How many files a message names.
const SHOWN: usize = 12;

/// What is looked for, and where.
#[derive(Debug, Clone)]
pub(crate) struct Expected<'a> {
    /// The job.
    pub envelope: &'a Envelope,
    /// Its RESULT_FILENAME.
    pub result: &'a str,
    /// The folder that results are left in.
    pub workspace: &'a Path,
    /// The folders that an eval's results may lie in.
    pub eval_folders: Vec<PathBuf>,
    /// The eval tasks that were asked for.
    pub tasks: Vec<String>,
    /// When the job was started.
    pub started: SystemTime,
}

/// Checks what a job left: a throughput result that is whole or, of an eval-only job, eval results and no throughput.
///
/// # Errors
/// Everything that is missing or wrong, with what was found instead.
pub(crate) fn check(expected: &Expected<'_>) -> Result<(), Failure> {
    if expected.envelope.row.eval.eval_only {
        return expected.eval().map_err(|problems| Failure::new(Kind::Eval, problems));
    }
    expected
        .throughput()
        .map_err(|problems| Failure::new(Kind::Benchmark, problems))
}

impl Expected<'_> {
    fn throughput(&self) -> Result<(), Problems> {
        let row = &self.envelope.row;
        let agentic = matches!(row.topology.scenario, Scenario::Agentic(_));
        let mut problems = Problems::default();
        for path in self.results(&mut problems) {
            let left = if agentic { Left::read(&path) } else { Ok(None) };
            let judged = match left {
                Ok(Some(left)) => left.check(row),
                Ok(None) => Benchmark::read(&path, None)
                    .map_err(Problems::from)
                    .and_then(|benchmark| benchmark.check(row)),
                Err(problem) => Err(problem.into()),
            };
            if let Err(found) = judged {
                problems.extend(found);
            }
        }
        problems.into_result()
    }

    /// The result files that are there. Those that are missing are problems.
    fn results(&self, problems: &mut Problems) -> Vec<PathBuf> {
        use crate::config::master::search_space::Nodes;
        let row = &self.envelope.row;
        let one = |end: &str| self.workspace.join(format!("{}{end}.json", self.result));
        let wanted = match (&row.topology.nodes, &row.topology.scenario) {
            (Nodes::Single(_), Scenario::Fixed(_)) => vec![(one(""), None)],
            (Nodes::Single(_), Scenario::Agentic(_)) => vec![(one(""), row.conc.points().first())],
            (Nodes::Multi(_), Scenario::Agentic(_)) => {
                let points = row.conc.points().iter();
                points.map(|conc| (one(&format!("_conc{conc}")), Some(conc))).collect()
            }
            (Nodes::Multi(_), Scenario::Fixed(_)) => {
                let glob = format!("{}_*.json", globset::escape(self.result));
                let found = stage::find(self.workspace, &[glob], false).files;
                let fresh: Vec<PathBuf> = found.into_iter().filter(|file| is_fresh(file, self.started)).collect();
                if fresh.is_empty() {
                    let name = format!("{}_*.json", self.result);
                    problems.push(self.missing(&name, "*.json", "the benchmark saved nothing: see its log"));
                }
                return fresh;
            }
        };
        let (mut there, mut missing) = (Vec::new(), Vec::new());
        for (file, replayed_at) in wanted {
            match (is_fresh(&file, self.started), replayed_at) {
                (true, _) => there.push(file),
                (false, Some(conc)) if self.has_replay(*conc, problems) => {}
                (false, _) => missing.push(file),
            }
        }
        for file in missing {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            problems.push(self.missing(&name, "*.json", "the benchmark saved nothing: see its log"));
        }
        there
    }

    /// Whether a replay left its raw results instead, of which `result process` makes the aggregate. One that does not
    /// count is a problem.
    fn has_replay(&self, conc: u64, problems: &mut Problems) -> bool {
        let Some(folder) = replay::places::of_point(self.workspace, &self.envelope.row, conc) else {
            return false;
        };
        if let Err(found) = replay::check(&folder, |file| is_fresh(file, self.started)) {
            problems.extend(found);
        }
        true
    }

    fn eval(&self) -> Result<(), Problems> {
        let mut problems = Problems::default();
        let result = globset::escape(self.result);
        let globs = [format!("{result}.json"), format!("{result}_*.json")];
        for file in stage::find(self.workspace, &globs, false).files {
            let message = format!("an eval-only job left the throughput result `{}`", shown(&file));
            problems.push(
                Problem::file(&shown(&file), message)
                    .hint("a script measures throughput only where EVAL_ONLY is false"),
            );
        }
        if let Some(suite) = self.envelope.row.benchmark() {
            self.benchmark(suite, &mut problems);
            return problems.into_result();
        }
        let folders: Vec<&Path> = (self.eval_folders.iter().map(PathBuf::as_path))
            .filter(|folder| self.has_fresh_results(folder))
            .collect();
        if folders.is_empty() {
            problems.push(self.missing("results*.json", "*.json", "the eval left nothing: see its log"));
        }
        let check = match &self.envelope.row.eval.evaluator {
            Some(evaluator) if evaluator.framework != framework::DEFAULT => results::check_suite,
            _ => results::check,
        };
        for task in self.tasks.iter().filter(|_| !folders.is_empty()) {
            let reasons: Vec<String> = folders.iter().filter_map(|folder| check(folder, task).err()).collect();
            if reasons.len() == folders.len() {
                let message = format!("the eval of `{task}` is not whole: it {}", reasons.join("; it "));
                problems.push(self.with_found(message, "results*.json").hint("see the eval's log"));
            }
        }
        problems.into_result()
    }

    /// An accuracy benchmark must leave its score beside this job's metadata; every output that says none is a problem.
    fn benchmark(&self, suite: &str, problems: &mut Problems) {
        let described = |folder: &&PathBuf| is_fresh(&folder.join(meta::NAME), self.started);
        let outputs = self.eval_folders.iter().filter(described);
        let outputs = outputs.flat_map(|folder| accuracy::outputs(folder));
        let fresh: Vec<_> = outputs.filter(|output| is_fresh(&output.path, self.started)).collect();
        let tasks = Accuracy::of_suite(suite).map_or(&[][..], Accuracy::tasks);
        let mut has_score = false;
        for output in &fresh {
            match &output.result {
                Ok(result) => has_score |= result.tasks().any(|(task, _)| tasks.contains(&task)),
                Err(reason) => {
                    let name = stage::shown(&output.path);
                    let problem =
                        Problem::file(&name, format!("the eval of `{suite}` is not whole: `{name}` {reason}"));
                    problems.push(problem.hint("see the benchmark's log, benchmark.out"));
                }
            }
        }
        if !has_score && fresh.iter().all(|output| output.result.is_ok()) {
            let others = fresh.iter().filter_map(|output| output.result.as_ref().ok());
            let found: Vec<&str> = others.flat_map(|result| result.tasks().map(|(task, _)| task)).collect();
            let found = match found.is_empty() {
                true => "no score at all".to_owned(),
                false => found.join(", "),
            };
            let message = format!("the eval of `{suite}` left no score; found instead: {found}");
            problems.push(Problem::file("", message).hint("see the benchmark's log, benchmark.out"));
        }
    }

    fn has_fresh_results(&self, folder: &Path) -> bool {
        let found = stage::find(folder, &["results*.json"], false);
        found.files.iter().any(|file| is_fresh(file, self.started))
    }

    fn missing(&self, name: &str, like: &str, hint: &str) -> Problem {
        let stale = self.workspace.join(name).exists();
        let what = if stale { "is older than the job" } else { "is missing" };
        self.with_found(format!("`{name}` {what} in {}", self.workspace.display()), like)
            .hint(hint)
    }

    /// A message with what was found.
    fn with_found(&self, message: String, like: &str) -> Problem {
        let mut names: Vec<String> = stage::find(self.workspace, &[like], false)
            .files
            .iter()
            .map(|file| format!("`{}`", stage::shown(Path::new(file.file_name().unwrap_or_default()))))
            .collect();
        let more = names.len().saturating_sub(SHOWN);
        names.truncate(SHOWN);
        let mut found = names.join(", ");
        if more > 0 {
            found.push_str(&format!(" and {more} more"));
        }
        if found.is_empty() {
            found = format!("no `{like}` at all");
        }
        Problem::file("", format!("{message}; found instead: {found}"))
    }
}

/// Whether a plain file was written since a job's start.
#[must_use]
pub(crate) fn is_fresh(file: &Path, started: SystemTime) -> bool {
    let Ok(metadata) = file.symlink_metadata() else {
        return false;
    };
    metadata.is_file() && places::is_younger(&metadata, started)
}
