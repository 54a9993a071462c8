//! How many answers are empty. Silence is no wrong answer: it points at the server or the chat template.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Judge, MAX_EMPTY, Report, Silence};
use crate::config::problem::Problem;
use crate::step::results::{file, samples};

/// What the name of a sample file starts with, before its task.
const PREFIX: &str = "samples_";

/// Checks every sample file that lies beside the results.
pub(super) fn check(judge: &Judge<'_>, tasks: &BTreeSet<String>, report: &mut Report) {
    for path in sample_files(judge, &mut report.problems) {
        let shown = file::shown(&path);
        let answers = match samples::count(&path) {
            Ok(answers) => answers,
            Err(reason) => {
                let hint = "the eval was stopped or its disk is full: see its log, and run it again";
                report
                    .problems
                    .push(Problem::file(&shown, format!("{shown} {reason}")).hint(hint));
                continue;
            }
        };
        let task = task_of(&path, tasks);
        let set = task.and_then(|task| judge.threshold(task)?.calibrated()?.max_empty);
        let silence = Silence {
            file: shown.clone(),
            task: task.map(str::to_owned),
            answers: answers.total,
            empty: answers.empty,
            max_empty: set.unwrap_or(MAX_EMPTY),
        };
        if answers.share() > silence.max_empty {
            let message = format!(
                "{shown}: {} of {} answers are empty ({:.1}%), at most {:.1}% may be",
                answers.empty,
                answers.total,
                answers.share() * 100.0,
                silence.max_empty * 100.0
            );
            report.problems.push(Problem::file(&shown, message).hint(
                "the model stayed silent, which is not a wrong answer: see the chat template, the reasoning parser \
                 and the output budget",
            ));
        }
        report.silence.push(silence);
    }
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

/// The task of a sample file, by its name: the longest that fits, for names of tasks start like those of others.
fn task_of<'t>(path: &Path, tasks: &'t BTreeSet<String>) -> Option<&'t str> {
    let name = path.file_name()?.to_string_lossy();
    let rest = name.strip_prefix(PREFIX)?;
    let fits = |task: &&String| {
        rest.strip_prefix(task.as_str())
            .is_some_and(|rest| rest.starts_with(['_', '.']))
    };
    tasks
        .iter()
        .filter(fits)
        .max_by_key(|task| task.len())
        .map(String::as_str)
}
