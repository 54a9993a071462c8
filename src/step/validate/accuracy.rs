//! The outputs of an accuracy benchmark of srt-slurm: all that its recipe asks for is there, and every score clears its
//! threshold.

use std::path::{Path, PathBuf};

use super::{Bound, Check, FileCheck, Judge, Limit, Report, Request, Wanted, title};
use crate::config::problem::Problem;
use crate::config::recipe::Benchmark;
use crate::step::results::accuracy::{self, Output, category_task};
use crate::step::results::file;
use crate::step::results::lm_eval::{Metrics, ResultFile};
use crate::step::results::loose::Cell;
use crate::step::results::score;

/// Where a category's bound stands that has none.
const SHOWN: &str = "shown alone";

/// The outputs beside the metadata: of a job whose eval is such a benchmark, and, where no job is known, of a folder that
/// holds no result file; `None` where another eval is judged.
pub(super) fn outputs(request: &Request) -> Option<Vec<Output>> {
    let found = || {
        let folder = request.meta_env.parent().unwrap_or(Path::new(""));
        let here = Path::new(".");
        accuracy::outputs(if folder.as_os_str().is_empty() { here } else { folder })
    };
    match &request.envelope {
        Some(envelope) => envelope.row.benchmark().map(|_| found()),
        None if request.results.is_empty() => Some(found()).filter(|found| !found.is_empty()),
        None => None,
    }
}

/// Those that can be read; of the others their reasons.
pub(super) fn read<'o>(outputs: &'o [Output], problems: &mut Vec<Problem>) -> Vec<(&'o PathBuf, ResultFile)> {
    let mut results = Vec::new();
    for output in outputs {
        match &output.result {
            Ok(result) => results.push((&output.path, result.clone())),
            Err(reason) => {
                let name = file::shown(&output.path);
                let message = format!("{name} {reason}");
                let hint =
                    file::way_out(&output.path, file::MAX_BYTES).unwrap_or("see `benchmark.out`: the run is not whole");
                problems.push(Problem::file(&name, message).hint(hint));
            }
        }
    }
    results
}

/// Judges the outputs of a benchmark.
pub(super) fn check(
    judge: &Judge<'_>,
    results: &[(&PathBuf, ResultFile)],
    recipe: Option<&Wanted>,
    report: &mut Report,
) {
    let envelope = judge.request.envelope.as_ref();
    let suite = envelope
        .and_then(|envelope| envelope.row.benchmark())
        .unwrap_or_default();
    let wanted: Vec<&str> = match recipe {
        Some(recipe) => vec![&recipe.task],
        None => Benchmark::of_suite(suite).map_or(&[][..], Benchmark::tasks).to_vec(),
    };
    let of = |task: &str| {
        let has = move |(_, result): &&(&PathBuf, ResultFile)| result.tasks().any(|(name, _)| name == task);
        results
            .iter()
            .filter(has)
            .map(|(path, _)| file::shown(path))
            .collect::<Vec<_>>()
    };
    if envelope.is_some() && wanted.iter().all(|task| of(task).is_empty()) {
        let message = format!(
            "no output has a score of `{}`, so nothing was checked, and nothing passed",
            wanted.join("` or `")
        );
        let hint = "the benchmark may say that it is complete all the same: see `benchmark.out`";
        report.problems.push(Problem::file("", message).hint(hint));
    }
    for task in &wanted {
        let files = of(task);
        if files.len() > 1 {
            let message = format!("{} outputs have a score of `{task}`: {}", files.len(), files.join(", "));
            let hint = "all but one are of other runs: clean the folder of logs before a job";
            report.problems.push(Problem::file("", message).hint(hint));
        }
    }
    for (path, result) in results {
        report.diagnostic |= judge.request.limit(result) != Limit::None;
        let mut file = FileCheck {
            judge,
            path,
            result,
            report,
        };
        if envelope.is_some() {
            file.of_suite(&wanted);
        }
        if let Some(recipe) = recipe {
            file.whole(recipe);
        }
        for (task, metrics) in result.tasks() {
            file.benchmark_score(task, metrics);
        }
    }
}

impl FileCheck<'_, '_> {
    /// Refuses the scores of another benchmark.
    fn of_suite(&mut self, wanted: &[&str]) {
        let names = self.result.tasks().map(|(task, _)| task);
        let others: Vec<&str> = names
            .filter(|task| !self.result.categories.contains(*task) && !wanted.contains(task))
            .collect();
        for task in others {
            self.problem(
                format!(
                    "it has a score of `{task}`, and the job asked for `{}`",
                    wanted.join("` or `")
                ),
                "the output may be another job's: look at what was staged",
            );
        }
    }

    /// Holds repeats, examples and categories against the recipe.
    fn whole(&mut self, recipe: &Wanted) {
        let task = recipe.task.as_str();
        let Some(metrics) = self
            .result
            .tasks()
            .find(|(name, _)| *name == task)
            .and_then(|(_, metrics)| metrics)
        else {
            return;
        };
        let repeats = metrics.get("repeats").and_then(Cell::integer);
        if let Some(asked) = recipe.repeats.filter(|asked| repeats != Some(*asked)) {
            let there = repeats.map_or_else(|| "does not say how many".to_owned(), |there| format!("has {there}"));
            self.problem(
                format!("the recipe asks for {asked} repeats of `{task}`, and it {there}"),
                "repeats that are missing are not measured: see `benchmark.out`",
            );
        }
        let samples = self.result.effective(task);
        #[allow(clippy::cast_precision_loss, reason = "data sets have some thousand examples")]
        let is_asked = |asked: &u64| samples == Some(*asked as f64);
        if let Some(asked) = recipe.examples.filter(|asked| !is_asked(asked)) {
            let there = samples.map_or_else(|| "does not say how many".to_owned(), |there| format!("has {there}"));
            self.problem(
                format!("the job asks for {asked} examples of `{task}`, and it {there}"),
                "examples that are missing are not measured: see `benchmark.out`",
            );
        }
        let has = |category: &String| self.result.categories.contains(&category_task(task, category));
        let lacking: Vec<&str> = recipe
            .categories
            .iter()
            .filter(|one| !has(one))
            .map(String::as_str)
            .collect();
        if !lacking.is_empty() {
            self.problem(
                format!(
                    "the recipe asks for categories that it has no score of: {}",
                    lacking.join(", ")
                ),
                "a category under a name that the data set does not have evaluates nothing",
            );
        }
    }

    /// A benchmark's score clears its threshold; that of a category does where it has one, and else is shown.
    fn benchmark_score(&mut self, task: &str, metrics: Option<&Metrics>) {
        let is_category = self.result.categories.contains(task);
        let named = self.judge.threshold(task);
        let (None, true, Some(metrics)) = (named, is_category, metrics) else {
            return self.scores(task, metrics);
        };
        let Ok(chosen) = score::choose(self.result, task, metrics, None) else {
            return self.scores(task, Some(metrics));
        };
        let check = Check {
            file: file::shown(self.path),
            conc: None,
            task: task.to_owned(),
            metric: chosen.line.key.to_owned(),
            score: chosen.number(),
            stderr: chosen.line.stderr().number(),
            bound: Bound::Min,
            threshold: None,
            source: SHOWN.to_owned(),
            repeats: None,
            spread: None,
            passed: chosen.number().is_some(),
        };
        if !check.passed {
            let what = format!("{}: `{task}` is no number from 0 to 1", title(self.path));
            self.report.problems.push(Problem::file(&check.file, what));
        }
        self.report.checks.push(check);
    }
}
