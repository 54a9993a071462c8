//! How many questions have no answer. Silence is no wrong answer: it points at the server or the chat template.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use rayon::prelude::*;
use regex::Regex;

use super::{Judge, MAX_EMPTY, Report, Silence, unreadable};
use crate::config::problem::Problem;
use crate::step::results::lm_eval::ResultFile;
use crate::step::results::samples::{self, Answers};
use crate::step::results::{file, name};

/// `samples_<task>_<time>.jsonl`; in a batch with `_conc<N>` before its extension.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^samples_(.+?)(?:_[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}(?:\.[0-9]+)?)?(?:_conc[0-9]+(?:_[0-9]+)?)?\.jsonl$")
        .expect("a constant pattern")
});

/// The result files that sample files are held against.
struct Results<'r> {
    /// By the concurrency in their names.
    by_conc: HashMap<Option<u64>, Vec<&'r ResultFile>>,
    /// The tasks that have a line in any of them.
    tasks: HashSet<&'r str>,
}

impl<'r> Results<'r> {
    fn of(results: &'r [(&PathBuf, ResultFile)]) -> Self {
        let mut by_conc: HashMap<Option<u64>, Vec<&ResultFile>> = HashMap::new();
        for (path, result) in results {
            by_conc
                .entry(name::concurrency(&file::shown(path)))
                .or_default()
                .push(result);
        }
        let tasks = results.iter().flat_map(|(_, result)| result.tasks());
        Self {
            by_conc,
            tasks: tasks.map(|(task, _)| task).collect(),
        }
    }

    /// The result file that samples belong to: the one of their concurrency, or the only one.
    fn of_samples(&self, samples: &str) -> Option<&'r ResultFile> {
        match self.by_conc.get(&name::concurrency(samples))?.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The task of a sample file, by its name, where a result has one of that name.
    fn task(&self, samples: &str) -> Option<String> {
        let name = Path::new(samples).file_name()?.to_string_lossy();
        let task = NAME.captures(&name)?[1].to_owned();
        self.tasks.contains(task.as_str()).then_some(task)
    }
}

/// Checks every sample file that lies beside the results.
pub(super) fn check(judge: &Judge<'_>, results: &[(&PathBuf, ResultFile)], report: &mut Report) {
    let results = Results::of(results);
    let files = sample_files(judge, &mut report.problems);
    let counted: Vec<_> = files.par_iter().map(|path| samples::count(path)).collect();
    for (path, counted) in files.iter().zip(counted) {
        match counted {
            Ok(answers) => one(judge, &results, &file::shown(path), answers, report),
            Err(reason) => report.problems.push(unreadable(path, u64::MAX, &reason)),
        }
    }
}

fn one(judge: &Judge<'_>, results: &Results<'_>, shown: &str, answers: Answers, report: &mut Report) {
    let result = results.of_samples(shown);
    let task = results.task(shown);
    let set = task
        .as_deref()
        .and_then(|task| judge.threshold(task)?.calibrated()?.max_empty);
    let silence = Silence {
        file: shown.to_owned(),
        task: task.clone(),
        answers: answers.total,
        empty: answers.empty,
        max_empty: set.unwrap_or(MAX_EMPTY),
    };
    let evaluated = task.and_then(|task| result?.own_samples(&task)?.effective.integer());
    if let Some(evaluated) = evaluated.filter(|evaluated| *evaluated != answers.total) {
        let message = format!(
            "{shown}: it holds {} questions, and `effective` says that {evaluated} were evaluated",
            answers.total
        );
        let hint = "samples are missing, or are those of another run: look at what was staged";
        report.problems.push(Problem::file(shown, message).hint(hint));
    }
    if answers.share() > silence.max_empty {
        let message = format!(
            "{shown}: {} of {} questions have an empty answer in `resps` ({:.1}%), at most {:.1}% may",
            answers.empty,
            answers.total,
            answers.share() * 100.0,
            silence.max_empty * 100.0
        );
        report.problems.push(Problem::file(shown, message).hint(
            "the model stayed silent, which is not a wrong answer: see the chat template, the reasoning parser and \
             the output budget",
        ));
    }
    report.silence.push(silence);
}

/// The sample files in the folders of the results, or of `meta_env.json` where there are none.
fn sample_files(judge: &Judge<'_>, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let folder = |path: &PathBuf| path.parent().unwrap_or(Path::new("")).to_owned();
    let request = judge.request;
    let mut folders: BTreeSet<PathBuf> = request.results.iter().map(folder).collect();
    if folders.is_empty() {
        folders.insert(folder(&request.meta_env));
    }
    let mut found = Vec::new();
    for folder in folders {
        let place = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &folder
        };
        match file::walk(place, 0) {
            Ok(listed) => {
                let names = listed.iter().flat_map(|folder| folder.named("sample", ".jsonl"));
                found.extend(names.map(|name| folder.join(name)));
            }
            Err(error) => {
                let name = file::shown(place);
                problems.push(Problem::file(&name, format!("{name} cannot be listed: {error}")));
            }
        }
    }
    found
}
