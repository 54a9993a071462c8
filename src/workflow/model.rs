//! What templates are given: labels, buckets, settings and limits, each a typed value.

use indexmap::IndexMap;
use serde::Serialize;

use crate::config::labels::Labels;
use crate::config::workflows::checkout::Checkout;
use crate::config::workflows::extra::{Job, Steps};
use crate::config::workflows::{Access, Binary, Ingest, Permissions, Workflows};
use crate::matrix::bucket::Bucket;
use crate::matrix::names::ArtifactKind;
use crate::matrix::shard::{MAX_BUNDLES, MAX_SHARD_JOBS};

/// The versions that a build of the binary installs, from PyPI.
const CARGO_ZIGBUILD: &str = "0.24.1";
const ZIGLANG: &str = "0.15.2";

/// Everything that a template may name.
#[derive(Debug, Clone, Serialize)]
pub struct Model {
    /// The workflows that are rendered.
    pub workflows: Vec<String>,
    /// The branch whose pushes sweep.
    pub default_branch: String,
    /// The label of the hosted runner.
    pub hosted_runner: String,
    /// Where a run gets its binary.
    pub sweepctl: Binary,
    /// Whether the composite action can build the binary.
    pub builds: bool,
    /// The labels that restart a sweep, as a JSON list.
    pub sweep_labels: String,
    /// Every bucket, in the order of a plan.
    pub buckets: Vec<BucketJob>,
    /// The ids of the jobs of all buckets.
    pub sweep_jobs: Vec<&'static str>,
    /// The outputs of `decide`.
    pub decision: &'static [&'static str],
    /// What of a decision becomes a flag of `plan`.
    pub decided_flags: &'static [DecidedFlag],
    /// The inputs of a dispatch.
    pub e2e_inputs: &'static [DispatchInput],
    /// What a job may upload.
    pub artifact_kinds: Vec<Kind>,
    /// The secrets of the launch step.
    pub launch_secrets: Vec<String>,
    /// The secrets that the workflows of a job on a GPU are given: those of the launch step, and the checkout's token.
    pub job_secrets: Vec<String>,
    /// How a job on a GPU checks out the repository.
    pub checkout_settings: Checkout,
    /// Where a finished sweep is announced.
    pub ingest: Option<Ingest>,
    /// A repository's own steps; both places are always there.
    pub extra_steps: Steps,
    /// A repository's own jobs.
    pub extra_jobs: IndexMap<String, Job>,
    /// Numbers that are GitHub's, or follow from them.
    pub limits: Limits,
    /// Tools that a build installs.
    pub tools: Tools,
}

/// One bucket and the job that runs it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct BucketJob {
    /// The bucket's name.
    pub name: &'static str,
    /// The job's id.
    pub job: &'static str,
    /// The job's name, for people.
    pub title: &'static str,
}

/// The job of a bucket in `run-sweep` and `e2e-tests`: its id and its name.
#[must_use]
pub fn job_of(bucket: Bucket) -> BucketJob {
    let (job, title) = match bucket {
        Bucket::SingleNode1k1k => ("sweep-single-node-1k1k", "One node, 1k1k"),
        Bucket::SingleNode8k1k => ("sweep-single-node-8k1k", "One node, 8k1k"),
        Bucket::SingleNodeOther => ("sweep-single-node-other", "One node, other lengths"),
        Bucket::SingleNodeAgentic => ("sweep-single-node-agentic", "One node, agentic"),
        Bucket::MultiNode1k1k => ("sweep-multi-node-1k1k", "Multi-node, 1k1k"),
        Bucket::MultiNode8k1k => ("sweep-multi-node-8k1k", "Multi-node, 8k1k"),
        Bucket::MultiNodeOther => ("sweep-multi-node-other", "Multi-node, other lengths"),
        Bucket::MultiNodeAgentic => ("sweep-multi-node-agentic", "Multi-node, agentic"),
        Bucket::Evals => ("sweep-evals", "Evals"),
        Bucket::AgenticEvals => ("sweep-agentic-evals", "Agentic evals"),
        Bucket::MultinodeEvals => ("sweep-multi-node-evals", "Multi-node evals"),
        Bucket::MultinodeAgenticEvals => ("sweep-multi-node-agentic-evals", "Multi-node agentic evals"),
    };
    BucketJob {
        name: bucket.name(),
        job,
        title,
    }
}

/// A kind of artifact.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Kind {
    /// Its name, as `sweepctl upload --kind` takes it.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
}

/// Numbers that are GitHub's, or follow from them.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Limits {
    /// Jobs of one shard.
    pub shard_jobs: usize,
    /// Shards of throughput, and shards of evals, of one plan.
    pub bundles: usize,
}

/// Tools that a build installs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Tools {
    /// The version of cargo-zigbuild.
    pub cargo_zigbuild: &'static str,
    /// The version of ziglang.
    pub ziglang: &'static str,
}

/// An output of a decision that becomes a flag of `plan`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DecidedFlag {
    output: &'static str,
    variable: &'static str,
    flag: &'static str,
}

const DECIDED_FLAGS: &[DecidedFlag] = &[
    decided("trim", "TRIM", "--trim-conc"),
    decided("all_evals", "ALL_EVALS", "--all-evals"),
    decided("evals_only", "EVALS_ONLY", "--evals-only"),
    decided("canary", "CANARY", "--canary"),
    decided("agentx_fast", "AGENTX_FAST", "--agentx-fast"),
];

const fn decided(output: &'static str, variable: &'static str, flag: &'static str) -> DecidedFlag {
    DecidedFlag { output, variable, flag }
}

/// The outputs of `sweepctl decide` that jobs read.
const DECISION: &[&str] = &[
    "run",
    "reason",
    "base_ref",
    "head_ref",
    "trim",
    "canary",
    "fail_fast",
    "all_evals",
    "evals_only",
    "agentx_fast",
    "reusable",
    "reuse_candidate",
    "checks",
];

/// An input of a dispatch; one with a flag is passed on, through a variable of its own.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DispatchInput {
    name: &'static str,
    r#type: &'static str,
    description: &'static str,
    variable: &'static str,
    flag: &'static str,
}

const E2E_INPUTS: &[DispatchInput] = &[
    text(
        "generate-cli-command",
        "What to generate, such as: test-config --config-keys 'gpt-oss-*'",
    ),
    text("test-name", "The run's name"),
    text("ref", "The branch, tag or commit to test"),
    text("base-ref", "Instead of a command: where the changelog is compared from"),
    text("head-ref", "Instead of a command: where the changelog is compared to"),
    option(
        "duration",
        "Seconds of each agentic replay",
        "DURATION",
        "--override-duration",
    ),
    option(
        "eval-framework",
        "What evaluates, instead of the rows' own",
        "EVAL_FRAMEWORK",
        "--override-eval-framework",
    ),
    option(
        "eval-suite",
        "The evaluator's suite, instead of the rows' own",
        "EVAL_SUITE",
        "--override-eval-suite",
    ),
    option(
        "eval-limit",
        "Samples of each eval; full is the whole split",
        "EVAL_LIMIT",
        "--override-eval-limit",
    ),
    switch("agentx-fast", "Short agentic replays", "AGENTX_FAST", "--agentx-fast"),
    switch(
        "trim",
        "Only the lowest concurrency of each topology",
        "TRIM",
        "--trim-conc",
    ),
    switch("all-evals", "Every eligible eval", "ALL_EVALS", "--all-evals"),
    switch("evals-only", "No throughput", "EVALS_ONLY", "--evals-only"),
    DispatchInput {
        r#type: "boolean",
        ..text("fail-fast", "The first failure of a matrix cancels its other jobs")
    },
];

const fn text(name: &'static str, description: &'static str) -> DispatchInput {
    option(name, description, "", "")
}

const fn option(
    name: &'static str,
    description: &'static str,
    variable: &'static str,
    flag: &'static str,
) -> DispatchInput {
    DispatchInput {
        name,
        r#type: "string",
        description,
        variable,
        flag,
    }
}

const fn switch(
    name: &'static str,
    description: &'static str,
    variable: &'static str,
    flag: &'static str,
) -> DispatchInput {
    DispatchInput {
        r#type: "boolean",
        ..option(name, description, variable, flag)
    }
}

fn kind(kind: ArtifactKind) -> Kind {
    let title = match kind {
        ArtifactKind::Bmk => "the throughput result",
        ArtifactKind::BmkAgentic => "the agentic throughput result",
        ArtifactKind::Agentic => "raw agentic results",
        ArtifactKind::Eval => "eval results",
        ArtifactKind::ServerLogs => "server logs",
        ArtifactKind::GpuMetrics => "GPU metrics",
    };
    Kind {
        name: kind.name(),
        title,
    }
}

impl Model {
    /// The model of a repository's labels and settings.
    #[must_use]
    pub fn new(labels: &Labels, settings: &Workflows) -> Self {
        let sweep_labels: Vec<&String> = labels.primary.keys().chain(labels.modifiers.keys()).collect();
        let buckets: Vec<BucketJob> = Bucket::ALL.iter().map(|bucket| job_of(*bucket)).collect();
        Self {
            workflows: settings.workflows.clone(),
            default_branch: settings.default_branch.clone(),
            hosted_runner: settings.hosted_runner.clone(),
            sweepctl: settings.sweepctl.clone(),
            // A cache makes builds bearable; without its pin there is nothing to build with.
            builds: settings.actions.contains_key("Swatinem/rust-cache"),
            sweep_labels: serde_json::json!(sweep_labels).to_string(),
            sweep_jobs: buckets.iter().map(|bucket| bucket.job).collect(),
            buckets,
            decision: DECISION,
            decided_flags: DECIDED_FLAGS,
            e2e_inputs: E2E_INPUTS,
            artifact_kinds: ArtifactKind::ALL.iter().map(|k| kind(*k)).collect(),
            launch_secrets: settings.launch_secrets.clone(),
            job_secrets: job_secrets(settings),
            checkout_settings: settings.checkout.clone(),
            ingest: settings.ingest.clone(),
            extra_steps: settings.extra_steps.clone(),
            extra_jobs: settings.extra_jobs.clone(),
            limits: Limits {
                shard_jobs: MAX_SHARD_JOBS,
                bundles: MAX_BUNDLES,
            },
            tools: Tools {
                cargo_zigbuild: CARGO_ZIGBUILD,
                ziglang: ZIGLANG,
            },
        }
    }
}

fn job_secrets(settings: &Workflows) -> Vec<String> {
    let mut secrets = settings.launch_secrets.clone();
    let token = settings.checkout.token_secret.iter();
    secrets.extend(token.filter(|name| !settings.launch_secrets.contains(name)).cloned());
    secrets
}

/// The permissions of several jobs together: of each scope the furthest access.
#[must_use]
pub fn union<'p>(all: impl IntoIterator<Item = &'p Permissions>) -> Permissions {
    let mut union = Permissions::new();
    for (scope, access) in all.into_iter().flatten() {
        let known = union.entry(scope.clone()).or_insert(Access::None);
        *known = (*access).max(*known);
    }
    union.retain(|_, access| *access != Access::None);
    union
}
