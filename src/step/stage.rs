//! What may leave a job: allow-lists of file names, and the only ways in which files are moved and copied.
//!
//! The files come from containers and from programs that read model output: a link or a special file is never
//! followed, opened for long or carried along, and no file ever replaces another.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::config::problem::Problem;
use crate::files;
pub use crate::files::{copy_into, escaped as shown, move_into, open_own as open, suffixed, write_into};
use crate::matrix::names::{ArtifactKind, is_illegal};
use crate::step::results::accuracy;

/// The files of an eval.
pub const EVAL: [&str; 10] = [
    "meta_env.json",
    "results*.json",
    "sample*.jsonl",
    "agent_preds.json",
    "predictions.jsonl",
    "swebench_report_*.json",
    "*_report.json",
    "*_results.jsonl",
    "*_artifacts.tar.gz",
    "*.traj*",
];
/// The files of an accuracy benchmark of srt-slurm, in the folder `accuracy` beside an eval's metadata: scores by
/// benchmark, and what NeMo Skills keeps of every answer, also where it did not come to its end.
pub const ACCURACY: [&str; 6] = [
    accuracy::METRICS,
    "mmlu_*.json",
    "gpqa_*.json",
    "longbenchv2_*.json",
    "longbench_v2_*.json",
    "output*.jsonl*",
];
/// The logs of a server and of what schedules it.
pub const SERVER_LOGS: [&str; 6] = [
    "*.log",
    "*.log.gz",
    "*.out",
    "*.err",
    "*server_logs*.tar.gz",
    "*server_logs*.zip",
];
/// What was measured of the GPUs.
pub const GPU_METRICS: [&str; 5] = [
    "gpu_metrics*.csv",
    "gpu_metrics*.json*",
    "*_energy_start.csv",
    "*_energy_end.csv",
    "*_identity.json",
];
/// Throughput results of any job, by the form of their names.
pub const ANY_RESULT: [&str; 2] = ["agg_*.json", "*_disagg-*_spec-*_conc*.json"];
/// What agentic raw results leave out: inputs repeat the corpus, and raw exports are as large as the run is long.
pub const AGENTIC_LEFT_OUT: [&str; 2] = ["inputs.json", "profile_export_raw.jsonl"];
/// What was sampled of one node's GPUs while a benchmark ran, in the workspace or in its `results`.
pub const GPU_SAMPLES: &str = "gpu_metrics.csv";
/// A server's settings, in `results`.
pub const SERVER_CONFIG: &str = "*_config.json";

/// How deep results may lie.
const MAX_DEPTH: usize = 16;

/// The names of a kind's files; `result` is the job's RESULT_FILENAME. Agentic raw results are a whole folder.
#[must_use]
pub fn allowed(kind: ArtifactKind, result: &str) -> Vec<String> {
    let own = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
    match kind {
        ArtifactKind::Eval => own(&EVAL),
        ArtifactKind::ServerLogs => own(&SERVER_LOGS),
        ArtifactKind::GpuMetrics => own(&GPU_METRICS),
        ArtifactKind::Agentic => own(&["*"]),
        ArtifactKind::Bmk | ArtifactKind::BmkAgentic => {
            let result = globset::escape(result);
            ["", "agg_"]
                .iter()
                .flat_map(|start| ["", "_*"].map(|end| format!("{start}{result}{end}.json")))
                .collect()
        }
    }
}

/// Files whose names are allowed, and those of them that are refused.
#[derive(Debug, Default)]
pub struct Found {
    /// Plain files, sorted.
    pub files: Vec<PathBuf>,
    /// Links, special files and names that are not UTF-8, and folders that could not be looked into.
    pub refused: Vec<Problem>,
}

/// The files of a folder whose names a list of globs allows; with `deep` those of its folders too. A folder that does
/// not exist holds none.
#[must_use]
pub fn find<S: AsRef<str>>(folder: &Path, globs: &[S], deep: bool) -> Found {
    let mut found = Found::default();
    let unseen = |path: &Path, error: &std::io::Error| {
        let problem = Problem::file(&shown(path), format!("the folder cannot be looked into: {error}"));
        problem.hint("see who owns it, and how deep it lies")
    };
    let walk = match files::search(folder, if deep { MAX_DEPTH } else { 0 }) {
        Ok(walk) => walk,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return found,
        Err(error) => {
            found.refused.push(unseen(folder, &error));
            return found;
        }
    };
    found
        .refused
        .extend(walk.unseen.iter().map(|(path, error)| unseen(path, error)));
    let allowed = set(globs);
    for folder in walk.folders {
        for name in folder.names.iter().filter(|name| allowed.is_match(name)) {
            let path = folder.path.join(name);
            match path.symlink_metadata() {
                Ok(metadata) => match files::foreign(&metadata, &path) {
                    None => found.files.push(path),
                    Some(why) => {
                        let problem = Problem::file(&shown(&path), format!("the artifact file is {why}"));
                        found.refused.push(problem.hint("write a plain file of that name"));
                    }
                },
                // One that is gone again was no result.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => found.refused.push(unseen(&path, &error)),
            }
        }
    }
    found.files.sort();
    found
}

/// What an accuracy benchmark left in a folder: its log, and scores there and in the folder `accuracy`. A link in that
/// folder's place leads nowhere.
#[must_use]
pub(crate) fn of_benchmark(folder: &Path) -> Found {
    let mut found = find(folder, &[&[accuracy::LOG], &ACCURACY[..]].concat(), false);
    let below = folder.join(accuracy::FOLDER);
    if below.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        let Found { files, refused } = find(&below, &ACCURACY, true);
        found.files.extend(files);
        found.refused.extend(refused);
    }
    found
}

/// Globs as one set. Those of the lists are valid, and a result's name is escaped; one that is not allows nothing.
pub(super) fn set<S: AsRef<str>>(globs: &[S]) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        if let Ok(glob) = GlobBuilder::new(glob.as_ref()).literal_separator(true).build() {
            builder.add(glob);
        }
    }
    builder.build().unwrap_or_default()
}

/// A name as artifacts may hold it: what an upload refuses is replaced by `-`.
#[must_use]
pub fn uploadable(name: &str) -> String {
    name.chars().map(|c| if is_illegal(c) { '-' } else { c }).collect()
}
