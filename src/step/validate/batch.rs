//! Whether the points that were asked for are the points that are there.

use std::collections::BTreeMap;

use super::Request;
use crate::config::problem::Problem;
use crate::step::results::loose::{Cell, List};
use crate::step::results::meta::{MetaEnv, MetaError};
use crate::step::results::{file, name};

/// Checks result files and `meta_env.json` against each other and against what was asked for.
/// The outputs of an accuracy benchmark are no result files: `is_benchmark` says that there need be none.
pub(super) fn check(
    request: &Request,
    meta: Result<&MetaEnv, &MetaError>,
    is_benchmark: bool,
    problems: &mut Vec<Problem>,
) {
    let mut files: Vec<String> = request.results.iter().map(|path| file::shown(path)).collect();
    files.sort_unstable();
    let mut points = Points {
        meta_name: file::shown(&request.meta_env),
        expected: request.expected(),
        files: files
            .into_iter()
            .map(|name| {
                let conc = name::concurrency(&name);
                (name, conc)
            })
            .collect(),
        problems,
    };
    if points.files.is_empty() && !is_benchmark {
        points.problems.push(
            Problem::file("", request.no_result_file())
                .hint("the eval may have failed while it exited 0: see its log, and --results-glob"),
        );
    }
    match meta {
        Err(reason) => points.without_meta(reason),
        Ok(meta) if meta.is_batch() => points.batch(meta),
        Ok(meta) => points.single(meta),
    }
}

struct Points<'p> {
    meta_name: String,
    expected: Option<Vec<u64>>,
    /// Result files, each with the concurrency in its name.
    files: Vec<(String, Option<u64>)>,
    problems: &'p mut Vec<Problem>,
}

impl Points<'_> {
    /// A problem of `meta_env.json`.
    fn meta(&mut self, message: impl std::fmt::Display, hint: &str) {
        let text = format!("{}: {message}", self.meta_name);
        self.problems.push(Problem::file(&self.meta_name, text).hint(hint));
    }

    /// A problem of a result file.
    fn file(&mut self, name: &str, message: impl std::fmt::Display, hint: &str) {
        self.problems
            .push(Problem::file(name, format!("{name}: {message}")).hint(hint));
    }

    fn without_meta(&mut self, reason: &MetaError) {
        let asked = self.expected.is_some() || self.files.iter().any(|(_, conc)| conc.is_some());
        // A single point that was run locally needs no meta_env.json; a broken one is never right.
        if asked || *reason != MetaError::Missing {
            let message = format!(
                "{} {reason}, so nothing says which points were evaluated",
                self.meta_name
            );
            self.problems.push(
                Problem::file(&self.meta_name, message).hint("it is staged with the results: see the stage step's log"),
            );
        }
        if self.files.iter().all(|(_, conc)| conc.is_none()) {
            self.one_file();
        }
    }

    fn single(&mut self, meta: &MetaEnv) {
        match self.expected.clone().as_deref() {
            Some([conc]) if meta.cell("conc").integer() != Some(*conc) => self.meta(
                format!("`conc` is {}, {conc} was asked for", meta.cell("conc")),
                "the results may be another job's",
            ),
            Some([_]) | None => {}
            Some(several) => self.meta(
                format!("{} were asked for, but there is no `eval_concs`", listed(several)),
                "a batched eval writes eval_concs, completed_eval_concs and failed_eval_concs",
            ),
        }
        self.one_file();
        let conc = meta.cell("conc").integer();
        for (name, suffix) in self.files.clone() {
            if let Some(suffix) = suffix.filter(|suffix| Some(*suffix) != conc) {
                self.file(
                    &name,
                    format!("concurrency {suffix} is unexpected, `conc` is {}", meta.cell("conc")),
                    "remove what an earlier run left behind",
                );
            }
        }
    }

    fn one_file(&mut self) {
        if self.files.len() > 1 {
            let names: Vec<&str> = self.files.iter().map(|(name, _)| name.as_str()).collect();
            let message = format!("{} result files for a single point: {}", names.len(), names.join(", "));
            self.problems.push(
                Problem::file("", message).hint("all but one are of earlier runs: clean the workspace before a job"),
            );
        }
    }

    fn batch(&mut self, meta: &MetaEnv) {
        let asked = self.concs("eval_concs", meta.eval_concs.as_ref());
        let completed = self.concs("completed_eval_concs", meta.completed_eval_concs.as_ref());
        let failed = self.concs("failed_eval_concs", meta.failed_eval_concs.as_ref());
        if let Some(failed) = failed.filter(|failed| !failed.is_empty()) {
            self.meta(
                format!("the eval failed at {}", listed(&failed)),
                "see the eval's log at these concurrencies",
            );
        }
        if let (Some(expected), Some(asked)) = (self.expected.clone(), &asked)
            && sorted(&expected) != sorted(asked)
        {
            self.meta(
                format!(
                    "`eval_concs` is {}, {} were asked for",
                    listed(asked),
                    listed(&expected)
                ),
                "the results may be another job's",
            );
        }
        let Some(expected) = self.expected.clone().or(asked) else {
            return;
        };
        if let Some(completed) = completed {
            let (missing, unexpected) = difference(&expected, &completed);
            if !missing.is_empty() {
                self.meta(
                    format!("`completed_eval_concs` lacks {}", listed(&missing)),
                    "the eval did not finish at these concurrencies: see its log",
                );
            }
            if !unexpected.is_empty() {
                self.meta(
                    format!(
                        "`completed_eval_concs` has {}, which nobody asked for",
                        listed(&unexpected)
                    ),
                    "the results may be another job's",
                );
            }
        }
        self.batch_files(&expected);
    }

    fn batch_files(&mut self, expected: &[u64]) {
        let mut by_conc: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (name, conc) in self.files.clone() {
            match conc {
                Some(conc) => by_conc.entry(conc).or_default().push(name),
                None => self.file(
                    &name,
                    "no `_conc<N>` before the extension, in a batch",
                    "a batch stages every result with its concurrency in the name",
                ),
            }
        }
        let found: Vec<u64> = by_conc.keys().copied().collect();
        let (missing, _) = difference(expected, &found);
        if !missing.is_empty() {
            let message = format!("there is no result file for {}", listed(&missing));
            self.problems
                .push(Problem::file("", message).hint("see the eval's log at these concurrencies"));
        }
        for (conc, names) in by_conc {
            if !expected.contains(&conc) {
                self.file(
                    &names[0],
                    format!("concurrency {conc} is unexpected"),
                    "remove what an earlier run left",
                );
            }
            if let [_, more @ ..] = names.as_slice()
                && !more.is_empty()
            {
                let message = format!(
                    "{} result files for concurrency {conc}: {}",
                    names.len(),
                    names.join(", ")
                );
                self.problems
                    .push(Problem::file("", message).hint("a point has one result: run the batch again"));
            }
        }
    }

    /// The concurrencies of one of the batch's lists; `None` where it is no such list.
    fn concs(&mut self, name: &str, list: Option<&List<Cell>>) -> Option<Vec<u64>> {
        let hint = "a batched eval writes it as a list of positive numbers";
        let Some(items) = list.and_then(|list| list.0.as_ref()) else {
            self.meta(format!("`{name}` is no list"), hint);
            return None;
        };
        let mut concs: Vec<u64> = Vec::new();
        for item in items {
            match item.integer().filter(|conc| *conc > 0) {
                Some(conc) if concs.contains(&conc) => self.meta(format!("`{name}` has {conc} twice"), hint),
                Some(conc) => concs.push(conc),
                None => {
                    self.meta(format!("`{name}` has {item}, which is no concurrency"), hint);
                    return None;
                }
            }
        }
        Some(concs)
    }
}

/// What is missing from `found`, and what it has beyond `expected`.
fn difference(expected: &[u64], found: &[u64]) -> (Vec<u64>, Vec<u64>) {
    let only = |a: &[u64], b: &[u64]| sorted(a).into_iter().filter(|conc| !b.contains(conc)).collect();
    (only(expected, found), only(found, expected))
}

fn sorted(concs: &[u64]) -> Vec<u64> {
    let mut concs = concs.to_vec();
    concs.sort_unstable();
    concs
}

fn listed(concs: &[u64]) -> String {
    let concs: Vec<String> = concs.iter().map(u64::to_string).collect();
    match concs.len() {
        1 => format!("concurrency {}", concs[0]),
        _ => format!("concurrencies {}", concs.join(", ")),
    }
}
