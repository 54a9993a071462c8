//! One job of a local run: launch, result, uploads, gate.

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Chosen, LocalRun, artifacts_of, checkout};
use crate::config::problem::Problem;
use crate::matrix::names::{self, ArtifactKind};
use crate::process::{self, Cancellation, Ending, Outcome, Watch};
use crate::step::launch::failure::Kind;
use crate::step::launch::leftovers;
use crate::step::results::file;

/// What a job's steps said.
pub(super) const LOG: &str = "job.log";
/// The marker of a finished job.
const DONE: &str = "done.json";
/// The exit code of a command that refused, as the gate does.
const REFUSED: i32 = 1;
/// How long a cancelled launch may take: it releases what it started by itself.
const GRACE: Duration = Duration::from_secs(7);
/// How much of a reason is kept, in characters.
const REASON: usize = 600;
/// Lines of a step's output that its reason is looked for in.
const TAIL: usize = 80;
/// What a workflow sets and a local job must not see: it would write into another job's files, or pass for one.
const OF_A_RUN: [&str; 11] = [
    "GITHUB_ACTIONS",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_WORKSPACE",
    "GITHUB_RUN_ID",
    "GITHUB_RUN_ATTEMPT",
    "RUNNER_NAME",
    "RUNNER_TEMP",
    "RESULT_FILENAME",
    "MODEL_PREFIX",
];

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// Measured, and its scores clear their thresholds.
    Done,
    /// Measured, and its scores do not.
    GateFailed,
    /// Not measured.
    Failed,
}

impl Verdict {
    /// The text form.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::GateFailed => "gate failed",
            Self::Failed => "failed",
        }
    }
}

/// A job's end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finished {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What became of it.
    pub verdict: Verdict,
    /// Why, where it is not done.
    pub reason: String,
    /// How long it took, in seconds.
    pub seconds: f64,
}

/// A job with its folders.
pub(super) struct Job<'a> {
    local: &'a LocalRun,
    chosen: &'a Chosen,
    folder: PathBuf,
    workspace: PathBuf,
    envelope: PathBuf,
    result: String,
}

/// A step that did not do what it should.
struct StepFailed {
    outcome: Option<Outcome>,
    reason: String,
}

impl<'a> Job<'a> {
    pub(super) fn new(local: &'a LocalRun, chosen: &'a Chosen) -> Self {
        let folder = local.job_folder(&chosen.envelope.id);
        Self {
            local,
            chosen,
            workspace: folder.join("workspace"),
            envelope: folder.join("envelope.json"),
            result: names::result(&chosen.envelope.row, &chosen.runner),
            folder,
        }
    }

    /// Runs the job, unless it is finished. `None` where a cancellation kept it from its end.
    pub(super) fn run(&self, cancel: &Cancellation, say: &dyn Fn(&str)) -> Option<Finished> {
        let name = &self.chosen.envelope.name;
        if let Some(finished) = self.finished() {
            say(&format!("{name}: {} before", finished.verdict.as_str()));
            return Some(finished);
        }
        let started = Instant::now();
        let (verdict, reason) = match self.prepare() {
            Ok(()) => self.steps(cancel, &|step| say(&format!("{name}: {step}"))),
            Err(error) => (Verdict::Failed, format!("its folder cannot be written: {error}")),
        };
        if cancel.signal().is_some() {
            return None;
        }
        let mut finished = Finished {
            id: self.chosen.envelope.id.clone(),
            name: name.clone(),
            verdict,
            reason,
            seconds: started.elapsed().as_secs_f64(),
        };
        // A job that was not measured is tried anew by the next run.
        if verdict != Verdict::Failed
            && let Err(error) = self.mark(&finished)
        {
            finished.verdict = Verdict::Failed;
            finished.reason = format!("its end cannot be written: {error}");
        }
        say(&format!(
            "{name}: {} in {:.0} s",
            finished.verdict.as_str(),
            finished.seconds
        ));
        Some(finished)
    }

    /// Ends what an earlier run left of the job: its step, which then releases what it can, and what that step started.
    pub(super) fn take_over(&self, cancel: &Cancellation, say: &dyn Fn(&str)) -> Result<(), Problem> {
        if self.finished().is_some() {
            return Ok(());
        }
        let name = &self.chosen.envelope.name;
        for ended in leftovers::release_within(&self.marks(), GRACE)? {
            say(&format!("{name}: ended {ended} of an earlier run"));
        }
        // On a node of its own the job's launch clears what an earlier one left, once no other launch runs there.
        if self.state().is_some_and(|state| state.exists())
            && let Err(failed) = self.step(self.release(), cancel)
        {
            let message = format!("what an earlier run left of `{name}` is still there: {}", failed.reason);
            return Err(Problem::file("", message).hint("end it by hand, and call the same command again"));
        }
        leftovers::make_state_folder(&self.marks())?;
        leftovers::mark(&self.marks()).map_err(|error| {
            let folder = self.marks().display().to_string();
            Problem::file(&folder, format!("`{folder}` cannot be written: {error}"))
        })
    }

    /// The folder that remembers the mark of the job's steps: a run that was killed leaves one running.
    fn marks(&self) -> PathBuf {
        self.folder.join("steps")
    }

    /// The state folder of the job's launch, on a host that jobs share: each has a state of its own there, and none takes
    /// another's processes for leftovers. A node of its own has the state of its runner, so that a launch of a workflow
    /// and this one never run there at the same time.
    fn state(&self) -> Option<PathBuf> {
        (!self.chosen.alone).then(|| self.folder.join("state"))
    }

    fn finished(&self) -> Option<Finished> {
        let text = file::read(&self.folder.join(DONE)).ok()?;
        let finished: Finished = serde_json::from_slice(&text).ok()?;
        (finished.id == self.chosen.envelope.id).then_some(finished)
    }

    fn mark(&self, finished: &Finished) -> std::io::Result<()> {
        file::write_atomic(&self.folder.join(DONE), &serde_json::to_vec_pretty(finished)?)
    }

    /// Makes the job's folders anew; of an earlier, interrupted attempt nothing stays.
    fn prepare(&self) -> std::io::Result<()> {
        for old in artifacts_of(&self.local.artifacts(), &self.chosen.envelope.id) {
            std::fs::remove_dir_all(old)?;
        }
        if self.workspace.exists() {
            std::fs::remove_dir_all(&self.workspace)?;
        }
        std::fs::create_dir_all(&self.workspace)?;
        if self.chosen.script.is_some() {
            checkout::lay(Path::new("."), &self.workspace)?;
        }
        let _ = std::fs::remove_file(self.log());
        std::fs::write(&self.envelope, serde_json::to_vec(&self.chosen.envelope)?)
    }

    fn log(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// The steps, in a workflow's order: whatever the launch does, what is there is gathered.
    fn steps(&self, cancel: &Cancellation, say: &dyn Fn(&str)) -> (Verdict, String) {
        let row = &self.chosen.envelope.row;
        say("launching");
        let mut failed = self.step(self.launch(), cancel).err().map(|failed| {
            let kind = match failed.outcome.map(|outcome| outcome.ending) {
                Some(Ending::Code(code)) => Kind::of_code(code),
                _ => None,
            };
            let kind = kind.map_or_else(String::new, |kind| format!("{}: ", kind.as_str()));
            format!("{kind}{}", failed.reason)
        });
        if failed.is_none() && !row.eval.eval_only {
            say("processing the result");
            failed = self.step(self.process(), cancel).err().map(|failed| failed.reason);
        }
        for kind in ArtifactKind::of(row) {
            let uploaded = self.step(self.upload(kind), cancel);
            // Without a measurement some kinds have nothing to gather, which is said already.
            if let (Err(problem), None) = (uploaded, &failed) {
                failed = Some(format!("upload: {}", problem.reason));
            }
        }
        self.drop_empty_artifacts();
        if let Some(reason) = failed {
            return (Verdict::Failed, reason);
        }
        if row.eval.eval_only {
            say("judging");
            if let Err(failed) = self.step(self.validate(), cancel) {
                let judged = failed
                    .outcome
                    .is_some_and(|outcome| outcome.ending == Ending::Code(REFUSED));
                let verdict = if judged { Verdict::GateFailed } else { Verdict::Failed };
                return (verdict, failed.reason);
            }
        }
        (Verdict::Done, String::new())
    }

    /// An artifact without files is none: uploads leave it out.
    fn drop_empty_artifacts(&self) {
        for folder in artifacts_of(&self.local.artifacts(), &self.chosen.envelope.id) {
            // Only an empty folder can be removed so.
            let _ = std::fs::remove_dir(folder);
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.local.program);
        command
            .args(arguments)
            .arg("--envelope")
            .arg(&self.envelope)
            .env("NO_COLOR", "1");
        for name in OF_A_RUN {
            command.env_remove(name);
        }
        if let Some(state) = self.state() {
            command.env("SWEEPCTL_STATE", state);
        }
        if let Some(mark) = leftovers::current(&self.marks()) {
            command.env(leftovers::VARIABLE, mark);
        }
        command.env("RESULT_FILENAME", &self.result);
        command
    }

    fn launch(&self) -> Command {
        let mut command = self.command(&["launch", "--runner-name", &self.chosen.runner]);
        command.arg("--workspace").arg(&self.workspace);
        self.fleet(&mut command);
        command
    }

    fn release(&self) -> Command {
        let mut command = self.command(&["launch", "--release", "--runner-name", &self.chosen.runner]);
        self.fleet(&mut command);
        command
    }

    /// Names the files of the fleet.
    fn fleet(&self, command: &mut Command) {
        command.arg("--runner-config").arg(&self.local.fleet.runners);
        command.arg("--cluster-config").arg(&self.local.fleet.clusters);
        if let Some(engines) = &self.local.fleet.engines {
            command.arg("--engine-config").arg(engines);
        }
    }

    fn process(&self) -> Command {
        let mut command = self.command(&["result", "process"]);
        command
            .arg("--result-filename")
            .arg(self.workspace.join(&self.result))
            .arg("--out")
            .arg(&self.workspace);
        command
    }

    fn upload(&self, kind: ArtifactKind) -> Command {
        let name = clap::ValueEnum::to_possible_value(&kind).map_or(String::new(), |value| value.get_name().to_owned());
        let mut command = self.command(&["upload", "--kind", &name]);
        let nowhere = self.folder.join("none");
        command.arg("--workspace").arg(&self.workspace);
        command.arg("--to").arg(self.local.artifacts());
        // Those of a Slurm host are not those of this run.
        command.arg("--logs").arg(&nowhere).arg("--run-logs").arg(&nowhere);
        command
    }

    fn validate(&self) -> Command {
        let mut command = self.command(&["eval", "validate"]);
        command.arg("--meta-env").arg(self.workspace.join("meta_env.json"));
        command.arg("--results-glob").arg(self.workspace.join("results*.json"));
        command.arg("--cluster-config").arg(&self.local.fleet.clusters);
        command.env("RUNNER_NAME", &self.chosen.runner);
        command
    }

    /// Runs one step; its output goes to the job's log.
    fn step(&self, command: Command, cancel: &Cancellation) -> Result<(), StepFailed> {
        let mut last: VecDeque<String> = VecDeque::new();
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(self.log());
        let watch = Watch {
            grace: GRACE,
            ..Watch::default()
        };
        let outcome = process::run(command, &watch, cancel, &mut |line| {
            if let Ok(log) = &mut log {
                let _ = writeln!(log, "{line}");
            }
            if last.len() == TAIL {
                last.pop_front();
            }
            last.push_back(line.to_owned());
        });
        match outcome {
            Ok(outcome) if outcome.is_success() => Ok(()),
            Ok(outcome) => Err(StepFailed {
                outcome: Some(outcome),
                reason: reason(&last, &outcome, &self.log()),
            }),
            Err(error) => Err(StepFailed {
                outcome: None,
                reason: error.to_string(),
            }),
        }
    }
}

/// What a failed step said was wrong: its errors, each in a line.
fn reason(lines: &VecDeque<String>, outcome: &Outcome, log: &Path) -> String {
    // `error[id]: what is wrong`
    let message = |line: &'_ String| -> Option<String> {
        let (_, message) = line.strip_prefix("error")?.split_once(": ")?;
        Some(message.to_owned())
    };
    let errors: Vec<String> = lines.iter().filter_map(message).collect();
    if errors.is_empty() {
        return format!("it {outcome}; see {}", log.display());
    }
    errors.join("; ").chars().take(REASON).collect()
}
