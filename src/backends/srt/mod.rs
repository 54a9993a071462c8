//! The `srt` backend: a row is a job of srt-slurm, NVIDIA's launcher of multi-node servers.
//!
//! `srtctl apply` submits the job and returns; from its id on, the job is followed and ended as every Slurm job is.

mod accuracy;
mod carry;
mod recipe;
mod results;
mod schema1;
mod settings;
mod sides;
mod write;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use regex::Regex;

use super::slurm::{self, Job, Record};
use crate::config::problem::{Problem, Problems};
use crate::config::yaml;
use crate::process::{Cancellation, Outcome, Stop, Watch};
use crate::secrets::{self, Mask};
use crate::step::launch::LAUNCH_LOG;
use crate::step::launch::backend::{Backend, Intent, Launches, Prepared, Show, Wanted};
use crate::step::launch::failure::{Failure, Kind};
use crate::step::launch::preflight::Node;
use crate::step::results::file;
pub use settings::Srt;

/// The folder of this backend in the state folder.
const FOLDER: &str = "srt";
/// How long srtctl may take to submit a job.
const DEADLINE: Duration = Duration::from_secs(900);
/// How long a cancelled srtctl may take to end: its job has to be ended too, in what is left of 7 s.
const GRACE: Duration = Duration::from_millis(800);
/// Within which the jobs of a cancelled srtctl are gone.
const PARTING: Duration = Duration::from_secs(5);
/// How long a queue that cannot be read is asked again.
const PATIENCE: Duration = Duration::from_secs(300);
/// The pause between two questions.
const PAUSE: Duration = Duration::from_secs(5);

/// Jobs of a runner that hands them to srt-slurm.
#[derive(Debug, Clone)]
pub struct SrtBackend {
    /// The cluster's settings.
    pub settings: Srt,
    /// GPUs of one node, where known: see [`slurm::gpus_per_node`].
    pub gpus_per_node: Option<u64>,
    /// What no line of a log may show.
    pub mask: Mask,
}

impl SrtBackend {
    /// Where the recipe is written to.
    fn file(job: &Prepared<'_>) -> PathBuf {
        job.state.join(FOLDER).join("recipe.yaml")
    }

    fn recipe(&self, job: &Prepared<'_>, token: &str) -> Result<String, Problems> {
        let mut problems = Problems::default();
        if let Err(problem) = slurm::job_name(job.runner) {
            problems.push(problem);
        }
        let request = recipe::Request {
            row: &job.envelope.row,
            environment: job.environment,
            runner: job.runner,
            workspace: job.workspace,
            folder: self.settings.recipes_dir.as_deref(),
            gpus_per_node: self.gpus_per_node,
            schema: self.settings.schema,
        };
        let text = recipe::text(&request, token).unwrap_or_else(|refused| {
            problems.extend(refused);
            String::new()
        });
        if let Err(refused) = slurm::check(job.environment) {
            problems.extend(refused);
        }
        problems.into_result()?;
        Ok(text)
    }

    /// srtctl, with the job's variables: its job inherits them.
    fn command(&self, job: &Prepared<'_>) -> Command {
        let mut command = Command::new("srtctl");
        secrets::withhold_from_job(&mut command);
        command
            .args(["apply", "-f"])
            .arg(Self::file(job))
            .current_dir(job.workspace);
        command.envs(job.environment.iter());
        command.envs(accuracy::variables(&job.envelope.row));
        if let Some(workspace) = &self.settings.workspace {
            command.env("INFMAX_WORKSPACE", workspace);
        }
        command
    }

    /// Submits the job; its ids are in the record as soon as srtctl has printed them.
    fn apply(
        &self,
        job: &Prepared<'_>,
        record: &Record,
        cancel: &Cancellation,
        show: &mut dyn FnMut(&str),
    ) -> Result<Outcome, Problem> {
        let watch = Watch {
            deadline: Some(DEADLINE),
            log: Some(job.workspace.join(LAUNCH_LOG)),
            mask: self.mask.clone(),
            grace: GRACE,
            ..Watch::default()
        };
        let mut written = Ok(());
        let outcome = crate::process::run(self.command(job), &watch, cancel, &mut |line| {
            for id in ids(line) {
                written = std::mem::replace(&mut written, Ok(())).and(record.add(id));
            }
            show(line);
        });
        written?;
        outcome.map_err(|error| {
            Problem::file("", error.to_string())
                .hint("install srt-slurm on the runner, so that `srtctl` is on its PATH")
        })
    }
}

impl Launches for Srt {
    fn backend(&self, wanted: Wanted<'_>) -> Result<Box<dyn Backend>, Problem> {
        Ok(Box::new(SrtBackend {
            settings: self.clone(),
            gpus_per_node: slurm::gpus_per_node(&wanted.fleet.runners, wanted.label, wanted.runner),
            mask: Mask::of_environment(),
        }))
    }
}

impl Backend for SrtBackend {
    fn intend(&self, job: &Prepared<'_>) -> Result<Intent, Problems> {
        let text = self.recipe(job, "<a token of this launch>")?;
        let file = Self::file(job);
        let told = accuracy::variables(&job.envelope.row).into_iter();
        let told: Vec<String> = told.map(|(name, value)| format!("{name}={value}")).collect();
        let mut command: Vec<String> = Vec::new();
        if !told.is_empty() {
            command.push("env".to_owned());
            command.extend(told);
        }
        command.extend(["srtctl", "apply", "-f"].map(str::to_owned));
        command.push(file.display().to_string());
        Ok(Intent {
            backend: "srt",
            commands: vec![command],
            files: vec![(file, text)],
        })
    }

    fn preflight(&self, node: &mut Node<'_>) {
        slurm::controller(node);
    }

    fn run(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut Show<'_>) -> Result<Outcome, Problems> {
        let (started, since) = (Instant::now(), SystemTime::now());
        self.intend(job)?;
        slurm::folder(job.state, FOLDER)?;
        let record = Record::create(job.state)?;
        let text = self.recipe(job, &record.token())?;
        let path = Self::file(job);
        file::write_atomic(&path, text.as_bytes()).map_err(|error| {
            let name = path.display().to_string();
            Problem::file(&name, format!("`{name}` cannot be written: {error}"))
        })?;
        let applied = self.apply(job, &record, cancel, show);
        let own = own_jobs(&record, job.runner, cancel, show);
        let ids = match (applied, own) {
            (Ok(applied), Ok(ids)) if applied.is_success() && !ids.is_empty() => ids,
            (applied, ids) => {
                slurm::end(&ids.clone().unwrap_or_default(), PARTING, &mut || {})?;
                return match applied? {
                    cancelled if matches!(cancelled.stop, Some(Stop::Cancelled(_))) => Ok(cancelled),
                    failed if !failed.is_success() => Err(refused(&failed).into()),
                    _ => Err(ids.err().unwrap_or_else(nothing_submitted).into()),
                };
            }
        };
        let mut outcome = slurm::never_ran(cancel, started);
        for id in &ids {
            let followed = Job {
                id,
                log: OnceCell::new(),
                own_log: false,
                copy: &job.workspace.join(format!("slurm-{id}.log")),
                mask: &self.mask,
                started,
            };
            let end = || drop(slurm::end(&ids, slurm::CANCEL, &mut || {}));
            let ended = slurm::follow(&followed, cancel, show).inspect_err(|_| end());
            // Also of a job that failed, or was lost: its logs say why.
            if let Some(log) = followed.log.get() {
                results::Outputs::of(log, job, &self.mask).bring(since, cancel, show);
            }
            outcome = ended?;
            if !outcome.is_success() {
                end();
                break;
            }
        }
        record.forget()?;
        Ok(outcome)
    }

    /// The code of an eval-only job is that of its eval: whatever its files hold, a failed one is no pass.
    fn attempt(&self, job: &Prepared<'_>, cancel: &Cancellation, show: &mut Show<'_>) -> Result<(), Failure> {
        let kind = match job.envelope.row.eval.eval_only {
            true => Kind::Eval,
            false => Kind::Benchmark,
        };
        let infrastructure = |problems| Failure::new(Kind::Infrastructure, problems);
        let outcome = self.run(job, cancel, show).map_err(infrastructure)?;
        Failure::check(&outcome, kind, "the job").map_err(|failure| failure.with_code(outcome.code()))
    }

    fn release(&self, runner: &str, state: &Path) -> Result<Vec<String>, Problem> {
        slurm::release(runner, state)
    }
}

/// The job ids in a line of srtctl's: `Job 12 submitted!`, `"slurm_job_id": "12"`, `Submitted batch job 12`.
fn ids(line: &str) -> impl Iterator<Item = &str> {
    static ID: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r#"(?i)(?:submitted batch job (\d+)|\bjob (\d+) submitted|job[_ ]id"?\s*[:=]\s*"?(\d+))"#;
        Regex::new(pattern).expect("a constant pattern")
    });
    ID.captures_iter(line)
        .filter_map(|found| found.iter().skip(1).flatten().next().map(|id| id.as_str()))
}

/// The jobs that srtctl has submitted: those whose ids it printed, and those that carry the token. What it prints is
/// believed where the queue has the id under the runner's name.
///
/// # Errors
/// A job of another name; a queue that cannot be read for long.
fn own_jobs(
    record: &Record,
    runner: &str,
    cancel: &Cancellation,
    show: &mut dyn FnMut(&str),
) -> Result<Vec<String>, Problem> {
    let printed = record.ids();
    let started = Instant::now();
    let queue = loop {
        match slurm::queue() {
            Ok(queue) => break queue,
            Err(failure) => {
                show(&format!("the queue cannot be read, and is asked again: {failure}"));
                if started.elapsed() >= PATIENCE || !cancel.sleep(PAUSE) {
                    return Err(Problem::file("", failure.to_string()).hint("see whether `squeue --me` answers"));
                }
            }
        }
    };
    let owned: Vec<_> = queue.iter().filter(|job| record.owns(&printed, job)).collect();
    if let Some(other) = owned.iter().find(|job| job.name != runner) {
        let message = format!(
            "srtctl names Slurm job {}, which is called `{}`, not `{runner}`",
            other.id, other.name
        );
        return Err(Problem::file("", message).hint("use a version of srt-slurm that names its jobs by RUNNER_NAME"));
    }
    for job in &owned {
        record.add(&job.id)?;
    }
    Ok(owned.into_iter().map(|job| job.id.clone()).collect())
}

fn refused(outcome: &Outcome) -> Problem {
    Problem::file("", format!("`srtctl apply` {outcome}, and the job did not start"))
        .hint("its output says why; `srtctl dry-run -f <recipe>` repeats it without a job")
}

fn nothing_submitted() -> Problem {
    Problem::file("", "`srtctl apply` ended well, and no Slurm job came of it")
        .hint("see its output: it may have stopped at a question")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_what_srtctl_prints() {
        let found = |line| ids(line).collect::<Vec<_>>();
        assert_eq!(found("\u{2705} Job 4711 submitted!"), ["4711"]);
        assert_eq!(
            found(r#"{"status": "submitted", "slurm_job_id": "12", "job_name": "r_0"}"#),
            ["12"]
        );
        assert_eq!(found("Submitted batch job 9"), ["9"]);
        assert_eq!(found("squeue --job 9, gpus 4"), Vec::<&str>::new());
    }
}
