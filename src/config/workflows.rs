//! `configs/workflows.yaml`: what the workflows are rendered with.

pub(crate) mod checkout;
pub(crate) mod extra;
pub(crate) mod gpu;
pub(crate) mod permissions;
pub(crate) mod publish;
mod secrets;

use std::sync::Arc;

use checkout::Checkout;
use extra::{Job, Steps};
use gpu::GpuTimeouts;
use indexmap::IndexMap;
use permissions::{Permissions, permissions, scopes};
use publish::{Ingest, Publish};
use schemars::JsonSchema;
use secrets::{LaunchSecrets, launch_secrets, secret};
use serde::Serialize;

use super::clusters::Template;
use super::decode::Decoder;
use super::environment;
use super::labels::named;
use super::problem::Problems;
use super::runners::Runners;
use super::source::Source;
use super::tree::Node;
use crate::findings::config;

/// The copy that serves a repository without settings of its own: what `sweepctl init` starts with.
pub const BUILT_IN: &str = include_str!("../workflow/starter/workflows.yaml");
/// Minutes that a job on a hosted runner may take at most (GitHub's "Actions limits").
const MAX_TIMEOUT: u64 = 360;
/// Jobs of one matrix, and so the most that can run at a time.
const MAX_PARALLEL: u64 = 256;

/// How often a job may be started at most.
const MAX_ATTEMPTS: u64 = 10;
/// The inputs that the dispatch form has at least: the command, the run's name, the ref, the pair of refs, the labels, and
/// what is asked.
const MIN_DISPATCH_INPUTS: u64 = 7;
/// The inputs that GitHub takes at most ("Events that trigger workflows", `workflow_dispatch`).
const MAX_DISPATCH_INPUTS: u64 = 25;

/// The settings of workflows.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Workflows {
    /// The names of the files that are rendered, without `.yml`.
    #[schemars(length(min = 1))]
    pub workflows: Vec<String>,
    /// Files of `.github/workflows` that are not rendered and may stay.
    #[schemars(default)]
    pub unmanaged: Vec<String>,
    /// The branch whose pushes sweep.
    pub default_branch: String,
    /// The label of the hosted runner of every job that takes no GPU.
    pub hosted_runner: String,
    /// Where a run gets its binary.
    pub sweepctl: Binary,
    /// Actions by `owner/name`.
    pub actions: IndexMap<String, Pin>,
    /// What the token of each job may do.
    #[schemars(transform = scopes)]
    pub permissions: IndexMap<String, Permissions>,
    /// Minutes of jobs.
    pub timeouts: Timeouts,
    /// Jobs of a runner label that run or queue at a time.
    pub max_parallel: MaxParallel,
    /// What the scores of `configs/ci-priority.yaml` are for.
    #[schemars(default)]
    pub priority: PriorityUse,
    /// Secrets that the launch step of a job on a GPU gets, by the name of the variable: a mapping from that to the
    /// secret's name, or a list, where the two are the same.
    #[schemars(default, with = "LaunchSecrets")]
    pub launch_secrets: IndexMap<String, String>,
    /// Variables of every job on a GPU.
    #[schemars(default, with = "super::environment::Variables")]
    pub env: IndexMap<String, Template>,
    /// How a job on a GPU checks out the repository.
    #[schemars(default)]
    pub checkout: Checkout,
    /// What of a sweep is published, compared and announced.
    #[schemars(default)]
    pub publish: Publish,
    /// Where a finished sweep is announced: one repository, or a list of them.
    #[schemars(default, with = "publish::Targets")]
    pub ingest: Vec<Ingest>,
    /// How often `sweepctl triage --rerun` lets a job be started.
    #[schemars(default = "max_attempts", range(min = 1, max = 10))]
    pub max_attempts: u64,
    /// The most inputs of the dispatch form, for servers that take fewer than it has: what is asked of a sweep is then one
    /// input, `asked`.
    #[schemars(default, range(min = 7, max = 25))]
    pub dispatch_inputs: Option<u64>,
    /// Steps of a repository's own, by the place where they run.
    #[schemars(default)]
    pub extra_steps: Steps,
    /// Jobs of a repository's own in `run-sweep`, by id.
    #[schemars(default)]
    pub extra_jobs: IndexMap<String, Job>,
}

/// Where a run gets its binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[serde(rename_all = "kebab-case")]
pub struct Binary {
    /// Built from this repository, or downloaded from a release.
    pub from: BinarySource,
    /// The repository of the release, `owner/name`.
    #[schemars(default)]
    pub repository: String,
    /// The release's tag.
    #[schemars(default)]
    pub version: String,
}

/// Built from the repository, or downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum BinarySource {
    /// Built from the repository.
    Build,
    /// Downloaded from a release, and its attestation verified.
    Release,
}

/// The commit that an action is pinned to.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pin {
    /// The version that the commit is, for people.
    pub version: String,
    /// 40 hex digits.
    #[schemars(regex(pattern = "^[0-9a-f]{40}$"))]
    pub sha: String,
}

/// Minutes of jobs.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Timeouts {
    /// Minutes of a job that takes no GPU and is not named.
    #[schemars(range(min = 1, max = 360))]
    pub default: u64,
    /// Minutes by job.
    #[schemars(default)]
    pub jobs: IndexMap<String, u64>,
    /// Minutes of the jobs on a GPU.
    #[schemars(default)]
    pub gpu: GpuTimeouts,
}

/// What the scores of jobs are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum PriorityUse {
    /// The jobs of a matrix start in the order of their scores.
    #[default]
    Order,
    /// They do, and the labels of `runs-on` tell a scheduler the score.
    Labels,
}

/// Jobs that run or queue at a time, by runner label; all shards of a sweep share them.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MaxParallel {
    /// Jobs of a label that is not named.
    #[schemars(range(min = 1, max = 256))]
    pub default: u64,
    /// Jobs by label.
    #[schemars(default)]
    pub labels: IndexMap<String, u64>,
}

impl MaxParallel {
    /// The jobs that a label takes at a time.
    #[must_use]
    pub fn of(&self, label: &str) -> u64 {
        self.labels.get(label).copied().unwrap_or(self.default)
    }
}

impl Workflows {
    /// Reads the settings.
    ///
    /// # Errors
    /// Every problem of the file.
    pub fn load(source: &Arc<Source>) -> Result<Self, Problems> {
        super::load(source, |d, node| Self::decode(d, node, None))
    }

    /// [`Self::load`], where a label that the runners file does not know is a problem too.
    ///
    /// # Errors
    /// Every problem of the file.
    pub fn load_for(source: &Arc<Source>, runners: &Runners) -> Result<Self, Problems> {
        let names = runners.labels.values().flatten();
        let known: Vec<&str> = runners.labels.keys().chain(names).map(String::as_str).collect();
        super::load(source, |d, node| Self::decode(d, node, Some(&known)))
    }

    /// The settings of a repository that has none of its own.
    ///
    /// # Panics
    /// Never in a release: a test loads the built-in file.
    #[must_use]
    pub fn built_in() -> Self {
        Source::from_bytes("<built-in>/workflows.yaml", BUILT_IN.into())
            .map_err(Problems::from)
            .and_then(|source| Self::load(&Arc::new(source)))
            .expect("the built-in settings are tested")
    }

    /// `labels` are those of the runners file and its runners, where they are known.
    fn decode(d: &mut Decoder, node: &Node<'_>, labels: Option<&[&str]>) -> Option<Self> {
        let mut f = d.fields(node, "the workflow settings")?;
        let workflows = f.required(d, "workflows", |d, n, name| {
            d.list(n, name, 1, |d, item| stem(d, item, name))
        });
        let unmanaged = f.optional(d, "unmanaged", |d, n, name| {
            d.list(n, name, 0, |d, item| unmanaged(d, item, name, workflows.as_deref()))
        });
        let default_branch = f.required(d, "default-branch", Decoder::string);
        let hosted_runner = f.required(d, "hosted-runner", Decoder::string);
        let sweepctl = f.required(d, "sweepctl", binary);
        let actions = f.required(d, "actions", |d, n, name| named(d, n, name, pin));
        let permissions = f.required(d, "permissions", |d, n, name| named(d, n, name, permissions));
        let timeouts = f.required(d, "timeouts", |d, n, name| timeouts(d, n, name, labels));
        let max_parallel = f.required(d, "max-parallel", |d, n, name| max_parallel(d, n, name, labels));
        let priority = f.optional(d, "priority", |d, n, name| {
            d.choice(
                n,
                name,
                &[("order", PriorityUse::Order), ("labels", PriorityUse::Labels)],
            )
        });
        let launch_secrets = f.optional(d, "launch-secrets", launch_secrets);
        let env = f.optional(d, "env", environment::decode);
        let checkout = f.optional(d, "checkout", checkout::checkout);
        let publish = f.optional(d, "publish", publish::mode);
        let ingest = f.optional(d, "ingest", publish::targets);
        let max_attempts = f.optional(d, "max-attempts", |d, n, name| d.integer_up_to(n, name, MAX_ATTEMPTS));
        let dispatch_inputs = f.optional(d, "dispatch-inputs", dispatch_inputs);
        let known = actions.as_ref().map(|a| a.keys().cloned().collect::<Vec<_>>());
        let known = known.unwrap_or_default();
        let extra_steps = f.optional(d, "extra-steps", |d, n, _| extra::steps(d, n, &known));
        let extra_jobs = f.optional(d, "extra-jobs", |d, n, name| {
            named(d, n, name, |d, node, id| extra::job(d, node, id, &known))
        });
        f.finish(d);
        Some(Self {
            workflows: workflows?,
            unmanaged: unmanaged.unwrap_or_default(),
            default_branch: default_branch?,
            hosted_runner: hosted_runner?,
            sweepctl: sweepctl?,
            actions: actions?,
            permissions: permissions?,
            timeouts: timeouts?,
            max_parallel: max_parallel?,
            priority: priority.unwrap_or_default(),
            launch_secrets: launch_secrets.unwrap_or_default(),
            env: env.unwrap_or_default(),
            checkout: checkout.unwrap_or_default(),
            publish: publish.unwrap_or_default(),
            ingest: ingest.unwrap_or_default(),
            max_attempts: max_attempts.unwrap_or_else(self::max_attempts),
            dispatch_inputs,
            extra_steps: extra_steps.unwrap_or_default(),
            extra_jobs: extra_jobs.unwrap_or_default(),
        })
    }
}

/// How often a job is started unless the settings say otherwise: once, and once more.
fn max_attempts() -> u64 {
    2
}

/// The most inputs of the dispatch form: not fewer than it has at least, not more than GitHub takes.
fn dispatch_inputs(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<u64> {
    let most = d.integer_up_to(node, name, MAX_DISPATCH_INPUTS)?;
    if most < MIN_DISPATCH_INPUTS {
        let message = format!("`{name}` is {most}, the form has {MIN_DISPATCH_INPUTS} inputs at least");
        d.refuse(
            &config::MALFORMED,
            node.span,
            message,
            "write 10 for a server that takes 10",
        );
        return None;
    }
    Some(most)
}

/// A file that is not rendered: one that is both would never be checked.
fn unmanaged(d: &mut Decoder, node: &Node<'_>, name: &str, rendered: Option<&[String]>) -> Option<String> {
    let file = d.string(node, name)?;
    let stem = file.strip_suffix(".yml").unwrap_or_default();
    if rendered.is_some_and(|rendered| rendered.iter().any(|known| known == stem)) {
        let message = format!("`{file}` stands in `workflows` too, and is rendered");
        d.report(node.span, message, "take it out of one of the two");
    }
    Some(file)
}

/// A name that cannot leave its folder.
fn stem(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    word(d, node, name, "the name of a workflow")
}

/// Letters, digits, `-` and `_`: what names of files, jobs and events are made of here.
fn word(d: &mut Decoder, node: &Node<'_>, name: &str, what: &str) -> Option<String> {
    let text = d.string(node, name)?;
    if !is_word(&text) {
        let message = format!("`{text}` is not {what}");
        d.refuse(
            &config::MALFORMED,
            node.span,
            message,
            "use letters, digits, `-` and `_`",
        );
        return None;
    }
    Some(text)
}

fn is_word(text: &str) -> bool {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    starts_well
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

fn binary(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Binary> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let choices = [("build", BinarySource::Build), ("release", BinarySource::Release)];
    let from = f.required(d, "from", |d, n, name| d.choice(n, name, &choices));
    let (repository, version) = match from {
        Some(BinarySource::Release) => (
            f.required(d, "repository", repository)?,
            f.required(d, "version", Decoder::string)?,
        ),
        _ => {
            let reason = "only a release has it";
            f.forbidden(d, "repository", reason);
            f.forbidden(d, "version", reason);
            Default::default()
        }
    };
    f.finish(d);
    Some(Binary {
        from: from?,
        repository,
        version,
    })
}

fn repository(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    let parts: Vec<&str> = text.split('/').collect();
    let is_name =
        |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if parts.len() != 2 || !parts.iter().all(is_name) {
        d.refuse(
            &config::MALFORMED,
            node.span,
            format!("`{text}` is no repository"),
            "write `owner/name`",
        );
        return None;
    }
    Some(text)
}

fn pin(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Pin> {
    let mut f = d.fields(node, &format!("the pin of `{name}`"))?;
    let version = f.required(d, "version", |d, n, name| {
        let version = d.string(n, name)?;
        // It becomes a comment, so it stays on its line.
        let is_version = version.split('.').all(is_word);
        if !is_version {
            d.refuse(
                &config::MALFORMED,
                n.span,
                format!("`{version}` is no version"),
                "write one such as v1.2.3",
            );
        }
        is_version.then_some(version)
    });
    let sha = f.required(d, "sha", |d, n, name| {
        let sha = d.string(n, name)?;
        let is_sha = sha.len() == 40 && sha.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !is_sha {
            let message = format!("`{sha}` is no commit");
            d.refuse(
                &config::MALFORMED,
                n.span,
                message,
                "write its 40 hex digits: a tag can be moved",
            );
        }
        is_sha.then_some(sha)
    });
    f.finish(d);
    Some(Pin {
        version: version?,
        sha: sha?,
    })
}

fn minutes(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<u64> {
    d.integer_up_to(node, name, MAX_TIMEOUT)
}

fn timeouts(d: &mut Decoder, node: &Node<'_>, name: &str, labels: Option<&[&str]>) -> Option<Timeouts> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let default = f.required(d, "default", minutes);
    let jobs = f.optional(d, "jobs", |d, n, name| named(d, n, name, minutes));
    let gpu = f.optional(d, "gpu", |d, n, _| gpu::timeouts(d, n, labels));
    f.finish(d);
    Some(Timeouts {
        default: default?,
        jobs: jobs.unwrap_or_default(),
        gpu: gpu.unwrap_or_default(),
    })
}

fn max_parallel(d: &mut Decoder, node: &Node<'_>, name: &str, labels: Option<&[&str]>) -> Option<MaxParallel> {
    let jobs = |d: &mut Decoder, n: &Node<'_>, name: &str| d.integer_up_to(n, name, MAX_PARALLEL);
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let default = f.required(d, "default", jobs);
    let by_label = f.optional(d, "labels", |d, n, name| {
        for (key, _) in d.entries(n, name) {
            gpu::known(d, key, key.text(), labels);
        }
        named(d, n, name, jobs)
    });
    f.finish(d);
    Some(MaxParallel {
        default: default?,
        labels: by_label.unwrap_or_default(),
    })
}
