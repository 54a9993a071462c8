//! Frameworks of `configs/evals/frameworks.yaml`: a Python program that asks the server, and leaves a JSON report.
//!
//! What counts is the report, not the exit code: a program may end well with nothing served. The report is staged as it
//! is, beside its projection into the form of lm-eval's results and whatever else the program left.

mod evidence;
pub(crate) mod given;
mod project;
mod source;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use self::project::{Findings, Names};
use super::framework::{Framework, Point, Runtime};
use super::lm_eval::joined;
use super::{Request, job::Job};
use crate::config::frameworks::{self, EvalFrameworks, Suite, fill};
use crate::config::problem::{Problem, Problems, nearest};
use crate::process::{self, Ending, Outcome, Watch};
use crate::step::stage;
use crate::step::tools::{self, Installer, Venv};

/// A folder with copies of the sources, each under its framework's name, also as `<name>.tar.gz`.
const SOURCES: &str = "SWEEPCTL_EVAL_SOURCES";
/// The scripts of ours that repositories without their own get.
const CLIENTS: [(&str, &str); 2] = [
    (
        "bfcl_client.py",
        include_str!("../../../../configs/evals/bfcl_client.py"),
    ),
    (
        "swebench_client.py",
        include_str!("../../../../configs/evals/swebench_client.py"),
    ),
];

/// The adapter of one suite.
#[derive(Debug)]
pub(crate) struct Client {
    name: String,
    framework: frameworks::Framework,
    suite_name: String,
    suite: Suite,
    deadline: Option<Duration>,
    key: String,
    copy: Option<PathBuf>,
    script: Option<String>,
    limit: Option<u64>,
    warnings: Vec<String>,
    python: PathBuf,
    source: PathBuf,
}

impl Client {
    /// The framework of a name; `None` where the file knows none of it.
    ///
    /// # Errors
    /// A frameworks file with problems, a suite that is not the framework's, or none at all.
    pub(crate) fn find(name: &str, request: &Request, job: &Job) -> Result<Option<Self>, Problems> {
        let (all, folder) = EvalFrameworks::of(&request.roots)?;
        let Some(framework) = all.frameworks.get(name) else {
            return Ok(None);
        };
        let suites = || framework.suites.keys().map(String::as_str);
        let Some(asked) = asked(name, framework, request, job) else {
            let known = suites().collect::<Vec<_>>().join(", ");
            let problem = Problem::file("", format!("`{name}` is given no suite"));
            return Err(problem
                .hint(format!("name one with --task or EVAL_SUITE: {known}"))
                .into());
        };
        let Some(suite) = framework.suites.get(asked) else {
            let problem = Problem::file("", format!("`{name}` has no suite `{asked}`"));
            return Err(problem.hint(nearest(asked, suites())).into());
        };
        let script = framework
            .client
            .as_deref()
            .map(|file| script(file, folder.as_deref()))
            .transpose()?;
        let limit = super::lm_eval::limit(request.limit.as_deref().or_else(|| job.text("EVAL_LIMIT")))?;
        let unheard = limit.filter(|_| !suite.takes_limit);
        let warnings = unheard.map(|_| format!("warning: `{asked}` runs whole: it takes no limit"));
        Ok(Some(Self {
            suite: suite.clone(),
            deadline: request
                .point_timeout
                .or(suite.deadline_seconds.map(Duration::from_secs)),
            key: job.text("OPENAI_API_KEY").unwrap_or("EMPTY").to_owned(),
            copy: request.source.clone().or_else(|| named_copy(job.text(SOURCES)?, name)),
            script,
            limit: limit.filter(|_| suite.takes_limit),
            warnings: warnings.into_iter().collect(),
            name: name.to_owned(),
            suite_name: asked.to_owned(),
            framework: framework.clone(),
            python: PathBuf::new(),
            source: PathBuf::new(),
        }))
    }

    fn install(&mut self, installer: &mut Installer<'_>) -> Result<(), Problem> {
        let tools = tools::folder()?;
        if let Some(archive) = &self.framework.archive {
            self.source = source::bring(&self.name, archive, self.copy.as_deref(), &tools, installer)?;
        }
        let base = tools::python(&self.framework.python, &tools, installer)?;
        let packages: Vec<&str> = self.framework.packages.iter().map(String::as_str).collect();
        if let (tools::Base::Python(python), true, true) =
            (&base, packages.is_empty(), self.framework.packages_alone.is_empty())
        {
            self.python = python.clone();
            return Ok(());
        }
        let pins = [self.framework.packages.as_slice(), &self.framework.packages_alone]
            .concat()
            .join("\n");
        let venv = Venv::on(
            base,
            &tools,
            &format!("{}-{}", self.name, source::short(pins.as_bytes())),
            &packages,
        )?;
        let venv = venv.with_alone(&self.framework.packages_alone);
        venv.ensure(installer)?;
        self.python = venv.python();
        Ok(())
    }

    /// The folder of what the program keeps for itself; it is staged as an archive.
    fn work(out: &Path) -> PathBuf {
        out.join("work")
    }

    /// The command of one point. It runs in the source, or where there is none in its work folder.
    fn command(&self, point: &Point<'_>) -> Result<Command, Problem> {
        let work = Self::work(point.out);
        let failed = |error: std::io::Error| Problem::file("", format!("{} cannot be prepared: {error}", self.name));
        std::fs::create_dir_all(&work).map_err(failed)?;
        let script = work.join("client.py");
        if let Some(text) = &self.script {
            std::fs::write(&script, text).map_err(failed)?;
        }
        let first = work.join("first-cases.jsonl");
        if let Some(file) = &self.framework.case_file {
            self.write_first(&self.source.join(file), &first)?;
        }
        let most = self.framework.most_concurrency.unwrap_or(u64::MAX);
        let value = |name: &str| {
            Some(match name {
                "api-key" => self.key.clone(),
                "base-url" => point.endpoint.base_url(),
                "cases" => self.suite.cases.to_string(),
                "client" => script.display().to_string(),
                "concurrency" => point.concurrency.min(most).to_string(),
                "first-cases" => first.display().to_string(),
                "limit" => self.limit.unwrap_or(0).to_string(),
                "model" => point.model.to_owned(),
                "out" => point.out.display().to_string(),
                "source" => self.source.display().to_string(),
                "work" => work.display().to_string(),
                _ => return None,
            })
        };
        let mut command = Command::new(&self.python);
        for argument in &self.suite.arguments {
            command.arg(fill(argument, value)?);
        }
        // What a framework says of it holds, and what the job's own environment says does not.
        command.env_remove("PYTHONPATH");
        for (name, text) in &self.framework.environment {
            command.env(name, fill(text, value)?);
        }
        let folder = if self.framework.archive.is_some() {
            &self.source
        } else {
            &work
        };
        command
            .current_dir(folder)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONUNBUFFERED", "1");
        for name in ["NO_PROXY", "no_proxy"] {
            command.env(name, joined(Path::new(point.endpoint.host()), name, ","));
        }
        Ok(command)
    }

    /// Writes the first cases of a file, as many as the suite has.
    fn write_first(&self, file: &Path, first: &Path) -> Result<(), Problem> {
        let failed =
            |error: std::io::Error| Problem::file("", format!("the cases of {} cannot be read: {error}", self.name));
        let text = std::fs::read_to_string(file).map_err(failed)?;
        let lines = text
            .lines()
            .take(usize::try_from(self.suite.cases).unwrap_or(usize::MAX));
        let lines: String = lines.map(|line| format!("{line}\n")).collect();
        std::fs::write(first, lines).map_err(failed)
    }

    /// The names of the framework and of its suite.
    #[must_use]
    pub(crate) fn of(&self) -> (&str, &str) {
        (&self.name, &self.suite_name)
    }

    fn read(&self, report: &Path) -> Findings {
        Findings::read(&self.framework.report, &self.suite, self.limit, report)
    }

    /// Stages a report that a program left elsewhere, with what it says as a result; nothing runs.
    ///
    /// # Errors
    /// A report that is no whole measurement, which is staged all the same, and a folder that cannot be written.
    pub(crate) fn report(&self, report: &Path, model: &str, stage_to: &Path) -> Result<PathBuf, Problem> {
        let place = report.display().to_string();
        let failed = |what: String| Problem::file(&place, format!("{}: {what}", self.suite_name));
        let copied = stage::copy_into(report, stage_to, &self.framework.report.file);
        let copied = copied.map_err(|error| failed(format!("the report cannot be staged: {error}")))?;
        let findings = self.read(&copied);
        project::write(stage_to, &self.names(model), &findings)
            .map_err(|error| failed(format!("results cannot be written: {error}")))?;
        match findings.errors.is_empty() {
            true => Ok(copied),
            false => Err(failed(findings.errors.join("; "))),
        }
    }

    fn names<'a>(&'a self, model: &'a str) -> Names<'a> {
        Names {
            framework: &self.name,
            suite: &self.suite_name,
            model,
            filter: self.framework.report.filter.as_deref().unwrap_or("none"),
            limit: self.limit,
        }
    }

    /// What the end of the program says against its report.
    fn ending(&self, outcome: &Outcome) -> Option<String> {
        let counts = match outcome.ending {
            Ending::Code(code) => u64::try_from(code).is_ok_and(|code| self.framework.exit_codes.contains(&code)),
            Ending::Signal(_) => false,
        };
        (outcome.stop.is_some() || !counts).then(|| format!("{} {outcome}", self.name))
    }
}

impl Framework for Client {
    fn prepare(&mut self, runtime: &mut Runtime<'_>) -> Result<(), Problem> {
        for warning in std::mem::take(&mut self.warnings) {
            (runtime.show)(&warning);
        }
        self.install(&mut Installer {
            cancel: runtime.cancel,
            show: &mut *runtime.show,
        })
    }

    fn run_point(&self, point: &Point<'_>, runtime: &mut Runtime<'_>) -> Result<(), Problem> {
        let ran = self.command(point).and_then(|command| {
            let watch = Watch {
                deadline: self.deadline,
                log: Some(Self::work(point.out).join("client.log")),
                ..Watch::default()
            };
            process::run(command, &watch, runtime.cancel, runtime.show)
                .map_err(|error| Problem::file("", format!("{} did not run: {error}", self.name)))
        });
        let findings = match ran {
            Ok(outcome) => {
                let mut findings = self.read(&point.out.join(&self.framework.report.file));
                if let Some(why) = self.ending(&outcome) {
                    findings.errors.insert(0, why);
                }
                findings
            }
            Err(problem) => Findings::failed(problem.message),
        };
        let kept = evidence::pack(&Self::work(point.out), point.out, &self.name);
        let failed = |what: String| {
            let hint = "see its report, and client.log in its artifacts; the server's log says what it answered";
            Problem::file("", format!("{}: {what}", self.suite_name)).hint(hint)
        };
        project::write(point.out, &self.names(point.model), &findings)
            .and(kept)
            .map_err(|error| failed(format!("results cannot be written: {error}")))?;
        match findings.errors.is_empty() {
            true => Ok(()),
            false => Err(failed(findings.errors.join("; "))),
        }
    }

    fn stages(&self) -> &'static [&'static str] {
        &[
            "results*.json",
            "*_report.json",
            "*_results.jsonl",
            "*_artifacts.tar.gz",
            "agent_preds.json",
            "predictions.jsonl",
            "swebench_report_*.json",
            "*.traj*",
        ]
    }

    fn identity(&self) -> Option<(&str, &str)> {
        Some(self.of())
    }

    fn record(&self, folder: &Path, failure: &Problem) -> std::io::Result<()> {
        let findings = Findings::failed(failure.message.clone());
        project::write(folder, &self.names(""), &findings).and_then(|()| {
            if failure.log.is_empty() {
                return Ok(());
            }
            let log = failure.log.join("\n") + "\n";
            evidence::pack_text("setup.log", &log, folder, &self.name)
        })
    }
}

/// The suite that is asked for: by the request, EVAL_SUITE, or the framework's own variable such as
/// SWEBENCH_TASK_NAME; else the only one that there is.
fn asked<'a>(name: &str, framework: &'a frameworks::Framework, request: &'a Request, job: &'a Job) -> Option<&'a str> {
    let variable = format!("{}_TASK_NAME", name.to_ascii_uppercase().replace('-', "_"));
    let only = || {
        let mut names = framework.suites.keys();
        names.next().filter(|_| names.next().is_none()).map(String::as_str)
    };
    let said = request.task.as_deref().or_else(|| job.text("EVAL_SUITE"));
    said.or_else(|| job.text(&variable)).or_else(only)
}

/// The text of a script beside the frameworks file, else of the built-in one.
fn script(file: &str, folder: Option<&Path>) -> Result<String, Problem> {
    let own = folder.map(|folder| folder.join(file)).filter(|file| file.is_file());
    if let Some(own) = own {
        return std::fs::read_to_string(&own).map_err(|error| {
            Problem::file(
                &own.display().to_string(),
                format!("the client cannot be read: {error}"),
            )
        });
    }
    let built_in = CLIENTS.iter().find(|(name, _)| *name == file);
    built_in.map(|(_, text)| (*text).to_owned()).ok_or_else(|| {
        Problem::file("", format!("there is no client `{file}`")).hint(format!("put it beside {}", frameworks::FILE))
    })
}

/// The copy of a framework's source in a folder of sources, where it has one.
fn named_copy(sources: &str, name: &str) -> Option<PathBuf> {
    let folder = Path::new(sources);
    let found = [folder.join(name), folder.join(format!("{name}.tar.gz"))];
    found.into_iter().find(|path| path.exists())
}
