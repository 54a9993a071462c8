//! A plan run locally: its jobs run one after another, or a few at a time, on this machine, through the very commands
//! that the steps of a workflow call, and leave what a workflow's artifacts would hold.
//!
//! `OUT/plan.json` holds the chosen envelopes, `OUT/artifacts/` what a download of all artifacts would, `OUT/jobs/<id>/`
//! what a runner would keep. A job is finished when its `done.json` is there, which is written last.

mod checkout;
mod job;

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use globset::Glob;
use indexmap::IndexSet;

pub(crate) use job::{Finished, Verdict};

use super::results::file;
use crate::config::fleet::{Fleet, FleetFiles};
use crate::config::problem::{Problem, Problems, nearest};
use crate::config::types::NodeKind;
use crate::matrix::envelope::Envelope;
use crate::plural;
use crate::process::Cancellation;

/// The file of chosen envelopes.
pub(crate) const PLAN: &str = "plan.json";
/// The folder of artifacts.
pub(crate) const ARTIFACTS: &str = "artifacts";

/// What jobs are run, and how.
#[derive(Debug)]
pub(crate) struct LocalRun {
    /// The folder that everything goes to, absolute.
    pub out: PathBuf,
    /// The binary whose commands are called.
    pub program: PathBuf,
    /// The files of the fleet.
    pub fleet: FleetFiles,
    /// Jobs at a time.
    pub jobs: usize,
}

/// One chosen job and the runner that it gets.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    /// The job.
    pub envelope: Envelope,
    /// The runner's name.
    pub runner: String,
    /// Whether the runner's node is the job's alone while it runs; else the host is shared.
    pub alone: bool,
    /// The launch script of the repository that starts the job, from the repository's root.
    pub script: Option<String>,
}

/// The jobs of a plan that a glob takes, by their configs' keys, their names, their experiments' names, their models'
/// short names or ids.
///
/// # Errors
/// A text that is no glob, nothing that it takes, and jobs of clusters that only a workflow can use.
pub(crate) fn choose(envelopes: Vec<Envelope>, only: Option<&str>, fleet: &Fleet) -> Result<Vec<Chosen>, Problems> {
    let glob = only.map(Glob::new).transpose().map_err(|error| {
        Problem::file("", format!("--only is no pattern: {error}")).hint("write names with `*` and `?`")
    })?;
    let glob = glob.map(|glob| glob.compile_matcher());
    let takes = |envelope: &Envelope| {
        glob.as_ref().is_none_or(|glob| {
            let mut names = NAMES.iter().filter_map(|name| name(envelope));
            names.any(|name| glob.is_match(name)) || glob.is_match(&envelope.id)
        })
    };
    let all = envelopes.len();
    let known = names(&envelopes);
    let mut problems = Problems::default();
    let mut chosen = Vec::new();
    for envelope in envelopes.into_iter().filter(takes) {
        match on_a_runner(envelope, fleet) {
            Ok(job) => chosen.push(job),
            Err(problem) => problems.push(problem),
        }
    }
    problems.into_result()?;
    if chosen.is_empty() {
        let Some(only) = only else {
            return Err(Problem::file("", "the plan has no job").into());
        };
        let message = format!(
            "none of the {} of the plan is named like `{only}`",
            plural::count(all, "job")
        );
        let hint = format!(
            "a job is found by its model prefix, config key, experiment, name or id; {}",
            nearest(only.trim_matches('*'), known.iter().map(String::as_str))
        );
        return Err(Problem::file("", message).hint(hint).into());
    }
    Ok(chosen)
}

/// What a glob may match of a job, but for its id: those that most jobs share first.
const NAMES: [fn(&Envelope) -> Option<&str>; 4] = [
    |envelope| Some(&envelope.row.topology.model_prefix),
    |envelope| envelope.config_key.as_deref(),
    |envelope| Some(&envelope.row.exp_name),
    |envelope| Some(&envelope.name),
];

/// The names of all jobs, kind by kind, each once.
fn names(envelopes: &[Envelope]) -> IndexSet<String> {
    let of_kind = |name: &fn(&Envelope) -> Option<&str>| envelopes.iter().filter_map(*name).map(str::to_owned);
    NAMES.iter().flat_map(of_kind).collect()
}

/// A job on the runner that it gets.
fn on_a_runner(envelope: Envelope, fleet: &Fleet) -> Result<Chosen, Problem> {
    let label = &envelope.runs_on;
    let runner = fleet
        .runners
        .labels
        .get(label)
        .and_then(|names| names.first())
        .unwrap_or(label);
    let refused = |why: String| {
        let message = format!("the job `{}` ({}) cannot run here: {why}", envelope.name, envelope.id);
        Problem::file("", message).hint(
            "leave it out with --only, or give its runner a cluster of `local`, `container` or, on one node, `slurm`",
        )
    };
    let Some((name, cluster)) = fleet.clusters.of(runner) else {
        return Err(refused(format!("no cluster starts jobs on `{label}`")));
    };
    let backend = &cluster.backend;
    if !backend.settings().runs_locally(envelope.row.node_kind()) {
        let nodes = match envelope.row.node_kind() {
            NodeKind::Single => "",
            NodeKind::Multi => " on several nodes",
        };
        return Err(refused(format!(
            "the cluster `{name}` of `{label}` starts jobs{nodes} by `{}`",
            backend.name()
        )));
    }
    Ok(Chosen {
        runner: runner.clone(),
        alone: backend.settings().takes_a_node(),
        script: backend.script_of(runner).filter(|script| Path::new(script).is_file()),
        envelope,
    })
}

impl LocalRun {
    /// Claims the folder for these jobs. A folder of an earlier run goes on where that ended.
    ///
    /// # Errors
    /// Another run that works there, another plan's folder, and one that cannot be written.
    pub(crate) fn claim(&self, chosen: &[Chosen]) -> Result<File, Problem> {
        let name = self.out.display().to_string();
        let failed = |error: std::io::Error| Problem::file(&name, format!("`{name}` cannot be written: {error}"));
        std::fs::create_dir_all(self.out.join(ARTIFACTS)).map_err(failed)?;
        let lock = File::create(self.out.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {
                return Err(Problem::file(&name, format!("another run works in `{name}`"))
                    .hint("wait for it, or name another --out"));
            }
        }
        let envelopes: Vec<&Envelope> = chosen.iter().map(|job| &job.envelope).collect();
        let text = serde_json::to_vec(&envelopes).map_err(|error| failed(error.into()))?;
        let plan = self.out.join(PLAN);
        match std::fs::read(&plan) {
            Ok(earlier) if earlier == text => Ok(lock),
            Ok(_) => {
                let message = format!("`{name}` holds a run of other jobs");
                Err(Problem::file(&name, message).hint("name another --out, or remove this one"))
            }
            Err(_) => file::write_atomic(&plan, &text).map(|()| lock).map_err(failed),
        }
    }

    /// Ends what a killed run left of jobs that are not finished, before anything of them is touched.
    ///
    /// # Errors
    /// What is still there.
    pub(crate) fn take_over(
        &self,
        chosen: &[Chosen],
        cancel: &Cancellation,
        say: &dyn Fn(&str),
    ) -> Result<(), Problems> {
        let mut problems = Problems::default();
        for job in chosen {
            if let Err(problem) = job::Job::new(self, job).take_over(cancel, say) {
                problems.push(problem);
            }
        }
        problems.into_result()
    }

    /// Runs every job that is not finished; `say` hears of each step. The results stand in the order of the jobs, and
    /// those that a cancellation kept from their end are left out.
    pub(crate) fn run(&self, chosen: &[Chosen], cancel: &Cancellation, say: &(dyn Fn(&str) + Sync)) -> Vec<Finished> {
        let next = AtomicUsize::new(0);
        let found: Mutex<HashMap<usize, Finished>> = Mutex::default();
        // Two jobs on one node would measure each other.
        let node = Mutex::new(());
        let work = || {
            while cancel.signal().is_none() {
                let index = next.fetch_add(1, Ordering::SeqCst);
                let Some(job) = chosen.get(index) else { return };
                let _alone = job.alone.then(|| node.lock().unwrap_or_else(PoisonError::into_inner));
                if cancel.signal().is_some() {
                    return;
                }
                let place = format!("[{}/{}]", index + 1, chosen.len());
                let finished = job::Job::new(self, job).run(cancel, &|text| say(&format!("{place} {text}")));
                if let Some(finished) = finished {
                    found
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .insert(index, finished);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(chosen.len()) {
                scope.spawn(work);
            }
        });
        let mut found: Vec<_> = found
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .into_iter()
            .collect();
        found.sort_unstable_by_key(|(index, _)| *index);
        found.into_iter().map(|(_, finished)| finished).collect()
    }

    /// The folder of artifacts.
    #[must_use]
    pub(crate) fn artifacts(&self) -> PathBuf {
        self.out.join(ARTIFACTS)
    }

    /// The file of chosen envelopes.
    #[must_use]
    pub(crate) fn plan(&self) -> PathBuf {
        self.out.join(PLAN)
    }

    /// The log of a job.
    #[must_use]
    pub(crate) fn log(&self, id: &str) -> PathBuf {
        self.job_folder(id).join(job::LOG)
    }

    fn job_folder(&self, id: &str) -> PathBuf {
        // An id is what a plan file says, and need not be one.
        self.out.join("jobs").join(super::launch::leftovers::plain(id))
    }
}

/// The artifact folders of a job.
fn artifacts_of(folder: &Path, id: &str) -> Vec<PathBuf> {
    let end = format!("_{id}");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(&end))
        .map(|entry| entry.path())
        .collect()
}
