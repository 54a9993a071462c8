//! lm-eval: EleutherAI's lm-evaluation-harness, pinned, against a chat completions endpoint.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::context::{self, Engine};
use super::data_set;
use super::framework::{self, Framework, Point, Runtime};
use super::results;
use super::task::Task;
use super::{Request, job::Job};
use crate::config::policy::EvalContext;
use crate::config::problem::{Problem, Problems};
use crate::process::{self, Outcome, Stop, Watch};
use crate::step::tools::{self, Installer, Venv};

/// The pinned version. Another one changes prompts and scores: raise it together with the thresholds.
pub const VERSION: &str = "0.4.13";
/// What it is installed as.
pub const REQUIREMENT: &str = "lm-eval[api]==0.4.13";
/// Our part of it, which Python imports by its name at its start.
const SITECUSTOMIZE: &str = include_str!("sitecustomize.py");
/// Seconds that one request may take.
const REQUEST_TIMEOUT: u64 = 1800;
/// Seconds between two lines of a progress bar.
const PROGRESS_PAUSE: &str = "10";
/// The adapter.
#[derive(Debug)]
pub struct LmEval {
    task: Task,
    limit: Option<u64>,
    context: u64,
    output_budget: u64,
    /// Temperature and the share of likely tokens.
    sampling: (f64, f64),
    system_python: bool,
    drop_torchvision: bool,
    deadline: Option<Duration>,
    warnings: Vec<Problem>,
    python: PathBuf,
    /// A folder with more tasks, that the task's group may name.
    include: Option<PathBuf>,
    /// The data set that HF_HUB_OFFLINE would keep from the eval.
    to_fetch: Option<String>,
}

impl LmEval {
    /// What a request and its job ask for.
    ///
    /// # Errors
    /// An unknown task, a limit or lengths that are no numbers: all of them.
    pub fn new(request: &Request, job: &Job) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let task = Task::of_job(request.task.as_deref(), job, &request.roots).map_err(|found| problems.extend(found));
        let limit = limit(request.limit.as_deref().or_else(|| job.text("EVAL_LIMIT")));
        let limit = limit.map_err(|problem| problems.push(problem));
        // The server is up: a policy that lengthens contexts has done so through EVAL_MAX_MODEL_LEN.
        let context = context::of(job, EvalContext::MaxModelLen).map_err(|found| problems.extend(found));
        let include = job.text("EVAL_INCLUDE_PATH").map(|path| included(path, &request.roots));
        let include = include.transpose().map_err(|problem| problems.push(problem));
        let (Ok(task), Ok(limit), Ok(context), Ok(include)) = (task, limit, context, include) else {
            return Err(problems);
        };
        Ok(Self {
            to_fetch: data_set::kept_away(&task.file, job),
            include,
            task,
            limit,
            context: context.context,
            output_budget: context.output_budget,
            sampling: (request.temperature.unwrap_or(0.0), request.top_p.unwrap_or(1.0)),
            system_python: request.system_python,
            drop_torchvision: context.engine == Some(Engine::Atom),
            deadline: request.point_timeout,
            warnings: context.warnings,
            python: PathBuf::from("python3"),
        })
    }

    fn install(&mut self, installer: &mut Installer<'_>) -> Result<(), Problem> {
        if !self.system_python {
            let venv = Venv::new(&tools::folder()?, &format!("lm-eval-{VERSION}"), &[REQUIREMENT])?;
            venv.ensure(installer)?;
            self.python = venv.python();
            return Ok(());
        }
        if self.drop_torchvision {
            // The images' torchvision imports transformers in a circle, and no eval looks at pictures.
            tools::uninstall_from_system("torchvision", installer)?;
        }
        let script = "import importlib.metadata as m; print(m.version('lm-eval'))";
        let there = Command::new(&self.python).args(["-c", script]).output();
        if there.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == VERSION) {
            return Ok(());
        }
        tools::install_into_system(&[REQUIREMENT], installer)
    }

    /// The arguments of one point. The harness reads model arguments as `name=value` pairs between commas.
    fn arguments(&self, point: &Point<'_>) -> Vec<String> {
        let Self {
            context,
            output_budget,
            sampling: (temperature, top_p),
            ..
        } = self;
        let model_args = format!(
            "model={},base_url={},api_key=EMPTY,eos_string=</s>,max_retries=5,num_concurrent={},\
             timeout={REQUEST_TIMEOUT},tokenized_requests=False,max_length={context}",
            point.model,
            point.endpoint.chat_url(),
            point.concurrency,
        );
        let file = self.task.file.file_name().unwrap_or_default().to_string_lossy();
        let mut arguments: Vec<String> = [
            "-m",
            "lm_eval",
            "--model",
            "local-chat-completions",
            "--apply_chat_template",
            "--tasks",
            &file,
            "--output_path",
            &point.out.display().to_string(),
            "--log_samples",
            "--model_args",
            &model_args,
            "--gen_kwargs",
            &format!("max_tokens={output_budget},temperature={temperature},top_p={top_p}"),
        ]
        .map(str::to_owned)
        .to_vec();
        if let Some(limit) = self.limit {
            arguments.extend(["--limit".to_owned(), limit.to_string()]);
        }
        if let Some(include) = &self.include {
            arguments.extend(["--include_path".to_owned(), include.display().to_string()]);
        }
        arguments
    }

    /// The command of one point. It runs in the task's folder, so that the data files which a task names are found
    /// from wherever the eval is started; `patches` holds our sitecustomize.
    fn command(&self, point: &Point<'_>, patches: &Path, mark: &Path) -> Command {
        let mut command = Command::new(&self.python);
        command
            .args(self.arguments(point))
            .current_dir(self.task.file.parent().unwrap_or(Path::new("/")))
            .env("PYTHONPATH", joined(patches, "PYTHONPATH", ":"))
            .env("PYTHONSAFEPATH", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONUNBUFFERED", "1")
            .env("SWEEPCTL_LM_EVAL_VERSION", VERSION)
            .env("SWEEPCTL_LM_EVAL_MARK", mark)
            .env("SWEEPCTL_LM_EVAL_ANSWERS", point.out.join(framework::ANSWERS))
            .env("SWEEPCTL_LM_EVAL_BUNDLED", self.task.is_group.to_string())
            .env("TQDM_MININTERVAL", PROGRESS_PAUSE);
        for name in ["NO_PROXY", "no_proxy"] {
            command.env(name, joined(Path::new(point.endpoint.host()), name, ","));
        }
        if self.to_fetch.is_some() {
            command.env_remove("HF_HUB_OFFLINE");
        }
        command
    }
}

impl Framework for LmEval {
    fn prepare(&mut self, runtime: &mut Runtime<'_>) -> Result<(), Problem> {
        for warning in std::mem::take(&mut self.warnings) {
            (runtime.show)(&format!("warning: {}", warning.message));
        }
        if let Some(name) = &self.to_fetch {
            let line = format!("the data set `{name}` is not cached here: HF_HUB_OFFLINE is lifted for the eval alone");
            (runtime.show)(&line);
        }
        self.install(&mut Installer {
            cancel: runtime.cancel,
            show: &mut *runtime.show,
        })
    }

    fn run_point(&self, point: &Point<'_>, runtime: &mut Runtime<'_>) -> Result<(), Problem> {
        model_is_speakable(point.model)?;
        let failed = |what: String| Problem::file("", format!("lm-eval at concurrency {} {what}", point.concurrency));
        let patches = tempfile::tempdir().map_err(|error| failed(format!("has no temporary folder: {error}")))?;
        let mark = patches.path().join("adapted");
        std::fs::write(patches.path().join("sitecustomize.py"), SITECUSTOMIZE)
            .map_err(|error| failed(format!("cannot be adapted: {error}")))?;
        let watch = Watch {
            deadline: self.deadline,
            ..Watch::default()
        };
        let command = self.command(point, patches.path(), &mark);
        let outcome = process::run(command, &watch, runtime.cancel, runtime.show)
            .map_err(|error| failed(format!("did not run: {error}")))?;
        if !outcome.is_success() {
            return Err(failed(outcome.to_string()).hint(way_out(&outcome)));
        }
        if !mark.exists() {
            let hint = "another sitecustomize stands before ours: look at PYTHONPATH and PYTHONHOME";
            return Err(failed("ran without the fallbacks that serving needs".to_owned()).hint(hint));
        }
        results::check(point.out, &self.task.name).map_err(|why| {
            failed(format!("exited with code 0, and {why}"))
                .hint("its output above says why; a full disk is one reason")
        })
    }

    fn stages(&self) -> &'static [&'static str] {
        &["results*.json", "sample*.jsonl"]
    }
}

fn way_out(outcome: &Outcome) -> &'static str {
    match outcome.stop {
        Some(Stop::Deadline) => "the server hangs, or the deadline is too short for the whole split",
        Some(Stop::Cancelled(_)) => "run the job again",
        None => "its output above says why; the server's log says what it answered",
    }
}

/// `first`, then what a variable already holds.
pub(super) fn joined(first: &Path, variable: &str, separator: &str) -> std::ffi::OsString {
    let mut text = first.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os(variable).filter(|rest| !rest.is_empty()) {
        text.push(separator);
        text.push(rest);
    }
    text
}

/// The folder of more tasks, which lies here or in one of `roots`.
fn included(path: &str, roots: &[PathBuf]) -> Result<PathBuf, Problem> {
    let mut places = std::iter::once(PathBuf::from(path)).chain(roots.iter().map(|root| root.join(path)));
    let found = places.find_map(|place| std::fs::canonicalize(place).ok().filter(|place| place.is_dir()));
    found.ok_or_else(|| {
        Problem::file("", format!("EVAL_INCLUDE_PATH is `{path}`, which is no folder"))
            .hint("name a folder of task files, or unset it: a task's own folder needs none")
    })
}

/// A limit's number; the whole split where it is empty, `full` or `0`.
///
/// # Errors
/// Anything else.
pub fn limit(text: Option<&str>) -> Result<Option<u64>, Problem> {
    match text.unwrap_or("").trim() {
        "" | "full" | "0" => Ok(None),
        other => other.parse().map(Some).map_err(|_| {
            Problem::file("", format!("the limit `{other}` is no number of samples"))
                .hint("give a number; `full`, `0` or nothing is the whole split")
        }),
    }
}

/// The harness splits its model arguments itself: a name must not hold what it splits at.
fn model_is_speakable(model: &str) -> Result<(), Problem> {
    let bad = |c: char| c.is_control() || c.is_whitespace() || ",='\"()[]{}".contains(c);
    if model.is_empty() || model.contains(bad) {
        let message = format!("lm-eval cannot be told of a model named `{model}`");
        return Err(Problem::file("", message).hint("serve it under a name of letters, digits and ./_-:"));
    }
    Ok(())
}
