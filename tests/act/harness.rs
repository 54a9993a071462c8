//! A repository, an event, and a run of act on both.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::api::Api;
use super::calls;
use super::events::{self, NAME};
use super::service::Service;
use crate::eval::support::{names, read_json};
use crate::support::fleet::{CHANGELOG, log};
use crate::support::{commit, git, project, run, stderr, write};

/// Where the stand-ins are.
fn here() -> PathBuf {
    project().join("tests/act")
}

/// The repository under test.
pub struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    /// The small fleet, adopted by `init`, with one entry in its changelog.
    pub fn new() -> Self {
        Self::with(&here().join("fleet"))
    }

    /// A repository whose files stand in a folder.
    pub fn with(files: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        copy(files, root);
        write(root, CHANGELOG, entry("short-box-vllm-fp8", 1, ""));
        git(root, &["init", "-q"]);
        let made = run(root, ["init"]);
        assert!(made.status.success(), "{}", stderr(&made));
        let repository = Self { folder };
        repository.commit("Adopt sweepctl");
        repository
    }

    /// One that stands already.
    pub fn of(folder: tempfile::TempDir) -> Self {
        Self { folder }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn commit(&self, message: &str) -> String {
        commit(self.root(), message)
    }

    /// Adds entries to the changelog, each of config keys and more fields, and gives the commits before and after.
    pub fn log(&self, entries: &[(&str, &str)]) -> (String, String) {
        let before = git(self.root(), &["rev-parse", "HEAD"]);
        let entries: String = entries
            .iter()
            .map(|(keys, more)| format!("\n{}", entry(keys, 2, more)))
            .collect();
        (before, log(self.root(), &entries))
    }

    /// Adds them in a push to the default branch.
    pub fn push(&self, entries: &[(&str, &str)]) -> Act<'_> {
        let (before, after) = self.log(entries);
        Act::new(self, "run-sweep.yml", ("push", events::push(&before, &after)))
    }

    /// Adds them in a pull request with labels.
    pub fn pull_request(&self, labels: &[&str], entries: &[(&str, &str)]) -> Act<'_> {
        git(self.root(), &["switch", "-q", "-c", "topic"]);
        let (base, head) = self.log(entries);
        let event = events::labeled(labels, &base, &head);
        Act::new(self, "run-sweep.yml", ("pull_request", event))
    }
}

/// An entry of the changelog with the link of a pull request.
fn entry(keys: &str, number: u32, more: &str) -> String {
    let link = format!("https://github.com/{NAME}/pull/{number}");
    format!("- config-keys: [{keys}]\n  description: [A change.]\n  pr-link: {link}\n{more}")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for name in names(from) {
        let (from, to) = (from.join(&name), to.join(&name));
        match from.is_dir() {
            true => copy(&from, &to),
            false => drop(std::fs::copy(&from, &to).expect("a copy")),
        }
    }
}

/// What act is asked to run.
pub struct Act<'r> {
    repository: &'r Repository,
    workflow: &'static str,
    event: (&'static str, Value),
    edit: Edit<'r>,
    runner: &'static str,
    environment: Vec<(&'static str, String)>,
}

/// Edits the text of a workflow, by its name.
type Edit<'r> = Box<dyn Fn(&str, String) -> String + 'r>;

impl<'r> Act<'r> {
    pub fn new(repository: &'r Repository, workflow: &'static str, event: (&'static str, Value)) -> Self {
        Self {
            repository,
            workflow,
            event,
            edit: Box::new(|_, text| text),
            runner: "box_0",
            environment: Vec::new(),
        }
    }

    /// Edits the copies of workflows, by their names.
    pub fn edited(mut self, edit: impl Fn(&str, String) -> String + 'r) -> Self {
        self.edit = Box::new(edit);
        self
    }

    /// The name of the runner.
    pub fn runner(mut self, name: &'static str) -> Self {
        self.runner = name;
        self
    }

    /// A variable of all jobs.
    /// Whole output of every step, at 0.2 s each.
    pub fn with_last_lines(self) -> Self {
        self.environment("HOLD_END", "1")
    }

    pub fn environment(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Runs it to its end.
    pub fn run(self) -> Run {
        self.start().wait()
    }

    /// Starts it.
    pub fn start(self) -> Running {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        for name in ["artifacts", "envelopes", "home", "logs", "state"] {
            std::fs::create_dir(at.join(name)).expect("a folder");
        }
        let workflows = copies(&self.repository.root().join(".github/workflows"), at, &self.edit);
        let api = Api::start();
        let service = Service::start(&here().join("actions"), &at.join("artifacts"));
        let event = write(at, "logs/run.event", self.event.1.to_string());
        let arguments = self.arguments(at, &api, &service);
        let log = std::fs::File::create(at.join("logs/run.jsonl")).expect("a file");
        let child = Command::new(act())
            .arg(self.event.0)
            .arg("--workflows")
            .arg(workflows.join(self.workflow))
            .arg("--eventpath")
            .arg(event)
            .args(&arguments)
            .current_dir(self.repository.root())
            .env_clear()
            .env("PATH", path())
            .env("HOME", at.join("home"))
            .env("LANG", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("ACT_ACTIONS", here().join("actions"))
            .env("ACT_ARGUMENTS", json!(arguments).to_string())
            .env("ACT_ARTIFACTS", at.join("artifacts"))
            .env("ACT_ENVELOPES", at.join("envelopes"))
            .env("ACT_LOGS", at.join("logs"))
            .env("ACT_NODE", node())
            .env("ACT_ORIGIN", self.repository.root())
            .env("ACT_PIDS", at.join("pids"))
            .env("ACT_WORKFLOWS", &workflows)
            .env("SWEEPCTL_STATE", at.join("state"))
            .env("SWEEPCTL_UNDER_TEST", env!("CARGO_BIN_EXE_sweepctl"))
            .envs(self.environment)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn()
            .expect("act starts");
        Running {
            child,
            folder,
            api,
            service,
        }
    }

    /// The arguments that every run of act has, those of called workflows too.
    fn arguments(&self, at: &Path, api: &Api, service: &Service) -> Vec<String> {
        let repository = self.repository.root();
        let mut all: Vec<String> = ["--json", "--pull=false", "--no-cache-server", "--no-skip-checkout"]
            .map(str::to_owned)
            .into();
        let mut pair = |name: &str, value: String| all.extend([name.to_owned(), value]);
        // One runner takes one job at a time.
        pair("--concurrent-jobs", "1".to_owned());
        pair("--directory", repository.display().to_string());
        pair("--action-cache-path", at.join("cache").display().to_string());
        for label in ["ubuntu-24.04", "box", "box-pair", "cluster:box", "local"] {
            pair("--platform", format!("{label}=-self-hosted"));
        }
        let reference = match self.event.0 {
            "pull_request" => "refs/pull/2/merge",
            _ => "refs/heads/main",
        };
        // Without the commit and its ref, act looks them up in git a hundred times a job.
        // The runner gives those of the service to actions alone, act to every step.
        let variables = service.variables.iter().cloned();
        for variable in variables.chain([
            format!("RUNNER_NAME={}", self.runner),
            format!("GITHUB_API_URL=http://{}", api.address),
            format!("GITHUB_REPOSITORY={NAME}"),
            format!("GITHUB_REF={reference}"),
            format!("SHA_REF={}", git(repository, &["rev-parse", "HEAD"])),
        ]) {
            pair("--env", variable);
        }
        for secret in ["GITHUB_TOKEN=a-token", "HF_TOKEN="] {
            pair("--secret", secret.to_owned());
        }
        for (action, pin) in pins(repository) {
            let folder = here().join(&action);
            pair("--local-repository", format!("{action}@{pin}={}", folder.display()));
        }
        all
    }
}

/// The tools of a runner: act, its python3 and the stand-ins before all others.
pub fn path() -> std::ffi::OsString {
    let tools = act().parent().expect("a folder").to_owned();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let all = [tools, here().join("bin")]
        .into_iter()
        .chain(std::env::split_paths(&rest));
    std::env::join_paths(all).expect("a PATH")
}

fn act() -> PathBuf {
    let act = crate::eval::tools::folder().join("act/bin/act");
    assert!(act.exists(), "{} is not there: run `tests/tools`", act.display());
    act
}

/// The real node, for actions in JavaScript.
fn node() -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join("node"));
    found
        .into_iter()
        .find(|path| path.exists())
        .expect("node is there: run `tests/tools`")
}

/// The actions that have a stand-in, each with the commit that the settings pin it to.
fn pins(repository: &Path) -> Vec<(String, String)> {
    let settings = std::fs::read_to_string(repository.join("configs/workflows.yaml")).expect("the settings");
    let pin = |line: &str| {
        let (action, rest) = line.trim().split_once(": {")?;
        let (_, sha) = rest.split_once("sha: ")?;
        let known = here().join(action).join("action.yml").exists();
        known.then(|| (action.to_owned(), sha.trim_end_matches([' ', '}']).to_owned()))
    };
    let pins: Vec<_> = settings.lines().filter_map(pin).collect();
    assert_eq!(pins.len(), 3, "{pins:?}");
    pins
}

/// Copies of the workflows in which each call is a step.
fn copies(from: &Path, at: &Path, edit: &dyn Fn(&str, String) -> String) -> PathBuf {
    let read = |name: &str| std::fs::read_to_string(from.join(name)).expect("a workflow");
    for name in names(from) {
        let text = calls::outputs_of_jobs_that_ran(&edit(&name, read(&name)));
        let text = calls::apart(&text, |called| calls::run(called, &read(called)));
        write(at, &format!("workflows/{name}"), text);
    }
    at.join("workflows")
}

/// A run that goes on.
pub struct Running {
    child: Child,
    folder: tempfile::TempDir,
    api: Api,
    service: Service,
}

impl Running {
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn wait(mut self) -> Run {
        let ok = self.child.wait().expect("an end").success();
        drop((self.api, self.service));
        let mut jobs = Vec::new();
        read_logs(&self.folder.path().join("logs"), "", &mut jobs);
        Run {
            ok,
            jobs,
            folder: self.folder,
        }
    }
}

/// A job of a run, or of a workflow that it called.
#[derive(Debug, Default)]
pub struct Job {
    /// The calls that lead to it, as `sweep-evals-0/one-node-<id>`; empty for the run's own jobs.
    pub call: String,
    /// Its id in its workflow.
    pub id: String,
    /// How it ended; empty where it did not.
    pub result: String,
    /// Its steps, each with how it ended, in their order.
    pub steps: Vec<(String, String)>,
    /// What its steps printed, perhaps without the last lines of one: see `Act::with_last_lines`.
    pub output: String,
}

/// A run that has ended.
pub struct Run {
    pub ok: bool,
    pub jobs: Vec<Job>,
    folder: tempfile::TempDir,
}

impl Run {
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How the run's own jobs ended; `-` of those that did not run.
    pub fn ended(&self, ids: &[&str]) -> Vec<String> {
        let result = |id: &&str| self.find("", id).map_or("-".to_owned(), |job| job.result.clone());
        ids.iter().map(result).collect()
    }

    /// A job that ran.
    pub fn job(&self, call: &str, id: &str) -> &Job {
        self.find(call, id)
            .unwrap_or_else(|| panic!("{call} {id} did not run{self}"))
    }

    fn find(&self, call: &str, id: &str) -> Option<&Job> {
        self.jobs.iter().find(|job| job.call == call && job.id == id)
    }

    /// The jobs on a GPU: of each the call's first part and how it ended, sorted.
    pub fn benchmarks(&self) -> Vec<String> {
        let jobs = self.jobs.iter().filter(|job| job.id == "benchmark");
        let mut lines: Vec<String> = jobs
            .map(|job| format!("{} {}", job.call.split('/').next().unwrap_or_default(), job.result))
            .collect();
        lines.sort();
        lines
    }

    /// The run's artifacts, without the ids of jobs, sorted.
    pub fn artifacts(&self) -> Vec<String> {
        let names = names(&self.file("artifacts")).into_iter();
        let mut names: Vec<String> = names.map(|name| without_id(&name).to_owned()).collect();
        names.sort();
        names
    }

    /// The files of the one artifact that has a name before its job's id.
    pub fn files(&self, artifact: &str) -> Vec<String> {
        let all = names(&self.file("artifacts")).into_iter();
        let own: Vec<String> = all.filter(|name| without_id(name) == artifact).collect();
        assert_eq!(own.len(), 1, "{artifact}{self}");
        names(&self.file("artifacts").join(&own[0]))
    }

    /// The same with those in its folders, as paths from the artifact.
    pub fn tree(&self, artifact: &str) -> Vec<String> {
        let all = names(&self.file("artifacts")).into_iter();
        let own: Vec<String> = all.filter(|name| without_id(name) == artifact).collect();
        assert_eq!(own.len(), 1, "{artifact}{self}");
        super::artifacts::tree(&self.file("artifacts").join(&own[0]))
    }

    /// The verdict that the run keeps, in the verdict's own words.
    pub fn verdict(&self) -> String {
        self.json("verdict/verdict.json").to_string()
    }

    /// A file of an artifact, as JSON.
    pub fn json(&self, file: &str) -> Value {
        read_json(&self.file("artifacts").join(file))
    }
}

/// An artifact's name without the id of its job.
fn without_id(name: &str) -> &str {
    match name.rsplit_once('_') {
        Some((rest, id)) if id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => rest,
        _ => name,
    }
}

/// The end of the logs, for a test that fails.
impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for job in &self.jobs {
            writeln!(f, "\n==== {} {}: {}", job.call, job.id, job.result)?;
            for (step, result) in job.steps.iter().filter(|(_, result)| result != "success") {
                writeln!(f, "{result}: {step}")?;
            }
            let lines: Vec<&str> = job.output.lines().collect();
            let from = if job.result == "success" {
                0
            } else {
                lines.len().saturating_sub(30)
            };
            let shown = if job.result == "success" {
                &[][..]
            } else {
                &lines[from..]
            };
            for line in shown {
                writeln!(f, "  | {}", line.chars().take(300).collect::<String>())?;
            }
        }
        Ok(())
    }
}

/// Reads the logs of a run and, in folders, of what it called.
fn read_logs(folder: &Path, call: &str, jobs: &mut Vec<Job>) {
    for name in names(folder) {
        let path = folder.join(&name);
        let (call, stem) = match (call, name.strip_suffix(".jsonl")) {
            ("", Some("run")) => (String::new(), "run"),
            ("", stem) => (stem.unwrap_or(&name).to_owned(), stem.unwrap_or_default()),
            (outer, stem) => (format!("{outer}/{}", stem.unwrap_or(&name)), stem.unwrap_or_default()),
        };
        if path.is_dir() {
            read_logs(&path, &call, jobs);
        } else if !stem.is_empty() {
            let text = std::fs::read_to_string(&path).expect("a log");
            jobs.extend(read_log(&text, &call));
        }
    }
}

/// The jobs of one log. act's own lines, which are no JSON, count as the output of a job without an id.
fn read_log(text: &str, call: &str) -> Vec<Job> {
    let mut jobs: Vec<(String, Job)> = Vec::new();
    // act reads these options before it knows the expressions' values, says so, and goes on.
    let noise =
        |line: &str| line.contains("Failed to parse 'fail-fast'") || line.contains("Failed to parse 'max-parallel'");
    for line in text.lines().filter(|line| !noise(line)) {
        let said: Value = serde_json::from_str(line).unwrap_or_else(|_| json!({ "msg": line, "raw_output": true }));
        let word = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        let key = format!("{}{}", word("job").trim_end(), said["matrix"]);
        let job = match jobs.iter().position(|(known, _)| *known == key) {
            Some(at) => &mut jobs[at].1,
            None => {
                let (call, id) = (call.to_owned(), word("jobID"));
                jobs.push((
                    key,
                    Job {
                        call,
                        id,
                        ..Job::default()
                    },
                ));
                &mut jobs.last_mut().expect("it was just added").1
            }
        };
        if said["raw_output"] == true || said["level"] == "error" || said["command"] == "error" {
            job.output.push_str(word("msg").trim_end());
            job.output.push('\n');
        }
        // A composite action's own steps have longer ids.
        if said["stepResult"].is_string() && said["stepID"].as_array().is_some_and(|id| id.len() == 1) {
            job.steps.push((word("step"), word("stepResult")));
        }
        if said["jobResult"].is_string() {
            job.result = word("jobResult");
        }
    }
    jobs.into_iter().map(|(_, job)| job).collect()
}
