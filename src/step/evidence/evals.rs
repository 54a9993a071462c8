//! Whether the evals are whole, and pass.

use std::path::PathBuf;

use super::line::{Line, Look};
use super::material::{Material, inside};
use crate::config::problem::Problem;
use crate::files::Folder;
use crate::matrix::envelope::Envelope;
use crate::matrix::names::ArtifactKind;
use crate::step::replay::left::Left;
use crate::step::results::accuracy;
use crate::step::results::lm_eval::ResultFile;
use crate::step::results::loose::{Cell, List};
use crate::step::results::meta::{self, MetaEnv};
use crate::step::results::name;
use crate::step::validate::{self, Asked, is_limit};

const NO_EVAL: &str = "the plan has no eval";

/// What an eval left: its result files, or the outputs of an accuracy benchmark.
fn read(folder: &Folder, job: &Envelope) -> Vec<(PathBuf, Result<ResultFile, String>)> {
    if job.row.benchmark().is_none() {
        let results = results(folder).into_iter();
        return results.map(|path| (path.clone(), ResultFile::read(&path))).collect();
    }
    let outputs = accuracy::outputs(&folder.path).into_iter();
    outputs.map(|output| (output.path, output.result)).collect()
}

fn results(folder: &Folder) -> Vec<PathBuf> {
    let named = folder.named("results", ".json");
    named.map(|name| folder.path.join(name)).collect()
}

/// No limit on samples: neither the plan nor a result says one, and every sample was evaluated.
pub(super) fn full_split(material: &Material) -> Result<Line, Problem> {
    let mut look = Look::new(
        material,
        "full-split",
        "every eval ran on the whole split, without a limit on samples",
    );
    for job in material.evals() {
        look.applies();
        let limit = job.overrides.asked.eval_limit.as_deref().unwrap_or("");
        if is_limit(limit) {
            look.fail(
                &material.plan_path,
                format!("{} was planned with the limit {limit}", job.name),
            );
        }
        let files = material
            .artifact(ArtifactKind::Eval, job)
            .map(|folder| read(folder, job));
        let Some(files) = files.filter(|files| !files.is_empty()) else {
            look.fail(
                &material.expected(ArtifactKind::Eval, job),
                format!("{} left no result", job.name),
            );
            continue;
        };
        for (path, result) in files {
            match result {
                Err(reason) => look.fail(&path, format!("the result {reason}")),
                // How many examples a benchmark has is its recipe's, which the gate asks.
                Ok(_) if job.row.benchmark().is_some() => look.saw(&path),
                Ok(result) => match partial(&result) {
                    None => look.saw(&path),
                    Some(message) => look.fail(&path, message),
                },
            }
        }
    }
    Ok(look.line(NO_EVAL))
}

/// What an eval left; that it left nothing is said.
fn left<'m>(look: &mut Look<'_>, material: &'m Material, job: &Envelope) -> Option<&'m Folder> {
    look.applies();
    let folder = material.artifact(ArtifactKind::Eval, job);
    if folder.is_none() {
        look.fail(
            &material.expected(ArtifactKind::Eval, job),
            format!("{} left no result", job.name),
        );
    }
    folder
}

/// Why a result is not of the whole split.
fn partial(result: &ResultFile) -> Option<String> {
    if let Some(limit) = result.limit() {
        return Some(format!("the eval ran with the limit {limit}"));
    }
    let tasks = result.tasks().filter(|(task, _)| !result.is_group(task));
    let mut short = tasks.filter_map(|(task, _)| {
        let Some(samples) = result.own_samples(task) else {
            return Some(format!("`{task}` does not say how many samples it evaluated"));
        };
        match (samples.effective.number(), samples.original.number()) {
            (Some(effective), Some(original)) if effective >= original && original > 0.0 => None,
            _ => Some(format!(
                "`{task}` evaluated {} of {} samples",
                samples.effective, samples.original
            )),
        }
    });
    short.next()
}

/// Every planned concurrency of every eval completed, and has a result under its own suffix.
pub(super) fn batch_points(material: &Material) -> Line {
    let mut look = Look::new(
        material,
        "batch-points",
        "every planned concurrency of every eval completed and has a result of its own",
    );
    for job in material.evals() {
        let Some(folder) = left(&mut look, material, job) else {
            continue;
        };
        let path = inside(&folder.path, meta::NAME);
        match MetaEnv::read(&path) {
            Err(reason) => look.fail(
                &path,
                format!("it {reason}, and nothing says which concurrencies completed"),
            ),
            Ok(meta) => points(&mut look, job, folder, &meta),
        }
    }
    look.line(NO_EVAL)
}

fn points(look: &mut Look<'_>, job: &Envelope, folder: &Folder, meta: &MetaEnv) {
    let path = folder.path.join(meta::NAME);
    let files: Vec<PathBuf> = match job.row.benchmark() {
        None => results(folder),
        Some(_) => read(folder, job).into_iter().map(|(path, _)| path).collect(),
    };
    let planned = job.row.eval_concs();
    if !meta.is_batch() {
        let conc = meta.cell("conc").integer();
        for wanted in planned.iter().filter(|wanted| Some(**wanted) != conc) {
            look.fail(
                &path,
                format!("concurrency {wanted} was planned, and nothing says that it completed"),
            );
        }
        match files.first() {
            Some(file) => look.saw(file),
            None => look.fail(&folder.path.join("results.json"), "there is no result file"),
        }
        return;
    }
    let has = |list: &Option<List<Cell>>, conc: u64| {
        let mut items = list.iter().flat_map(List::items);
        items.any(|cell| cell.integer() == Some(conc))
    };
    for conc in planned {
        let suffixed = files.iter().find(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name::concurrency(&name) == Some(conc)
        });
        if has(&meta.failed_eval_concs, conc) {
            look.fail(&path, format!("concurrency {conc} failed"));
        } else if !has(&meta.completed_eval_concs, conc) {
            look.fail(&path, format!("concurrency {conc} is not among those that completed"));
        }
        match suffixed {
            Some(file) => look.saw(file),
            None => look.fail(
                &folder.path.join(format!("results_conc{conc}.json")),
                format!("concurrency {conc} has no result of its own"),
            ),
        }
    }
}

/// Every score passes its threshold, and every replay its own gate.
pub(super) fn gate(material: &Material) -> Line {
    let mut look = Look::new(
        material,
        "gate",
        "every score passes the threshold of its task and model; of every replay at most a tenth of the requests failed",
    );
    for job in material.evals() {
        let Some(folder) = left(&mut look, material, job) else {
            continue;
        };
        let report = validate::validate(&request(material, job, folder));
        for problem in &report.problems {
            let file = match problem.file.is_empty() {
                true => folder.path.clone(),
                false => PathBuf::from(&problem.file),
            };
            look.fail(&file, problem.message.clone());
        }
        report
            .checks
            .iter()
            .filter(|check| check.passed)
            .for_each(|check| look.saw(check.file.as_ref()));
    }
    for job in material.replays() {
        look.applies();
        let aggregates = material.aggregates(job);
        if aggregates.is_empty() {
            let place = material.expected(ArtifactKind::BmkAgentic, job);
            look.fail(&place, format!("{} left no aggregate", job.name));
        }
        for (path, _, _) in aggregates {
            match Left::read(&path) {
                Err(problem) => look.fail(&path, problem.message),
                Ok(None) => look.fail(&path, "the aggregate has no `request_accounting`"),
                Ok(Some(left)) => match left.check(&job.row) {
                    Ok(()) => look.saw(&path),
                    Err(problems) => problems.0.into_iter().for_each(|one| look.fail(&path, one.message)),
                },
            }
        }
    }
    look.line("the plan has neither an eval nor a replay")
}

fn request(material: &Material, job: &Envelope, folder: &Folder) -> validate::Request {
    validate::Request {
        thresholds: material.thresholds.clone(),
        min_score: validate::MIN_SCORE,
        model_prefix: None,
        fallback_prefix: None,
        metric_prefix: None,
        expected_concs: None,
        limited: false,
        envelope: Some(job.clone()),
        asked: Asked::of(job, None, &[PathBuf::from(".")]),
        run: (material.run().id.map(|run| run.to_string()), None),
        meta_env: folder.path.join(meta::NAME),
        results: results(folder),
        pattern: "results*.json".to_owned(),
    }
}
