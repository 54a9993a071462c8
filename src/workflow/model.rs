//! What templates are given: labels, buckets, settings and limits, each a typed value.

use indexmap::{IndexMap, IndexSet};
use serde::Serialize;

use crate::config::asked::{self, Field, output_name};
use crate::config::labels::Labels;
use crate::config::workflows::checkout::Checkout;
use crate::config::workflows::extra::{Job, Steps};
use crate::config::workflows::permissions::{Access, Permissions};
use crate::config::workflows::publish::{Ingest, Publish};
use crate::config::workflows::{Binary, PriorityUse, Workflows};
use crate::github::needs;
use crate::matrix::bucket::Bucket;
use crate::matrix::names::ArtifactKind;

/// The versions that a build of the binary installs, from PyPI.
const CARGO_ZIGBUILD: &str = "0.24.1";
const ZIGLANG: &str = "0.15.2";

/// What the binary is compiled from: its code, and the files that it brings along. The pages of the documentation are
/// left out, since no step of a workflow reads them, and a change of theirs alone builds nothing.
pub const SOURCES: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "build.rs",
    "src/**",
    "workflows-templates/**",
    "configs/engines.yaml",
    "configs/eval-policy.yaml",
    "configs/labels.yaml",
    "configs/thresholds.yaml",
    "configs/evals/**",
];

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
    /// The files that a build of the binary is made of, as globs.
    pub sources: &'static [&'static str],
    /// The labels that restart a sweep, as a JSON list.
    pub sweep_labels: String,
    /// The labels that ask for a sweep.
    pub primary_labels: Vec<String>,
    /// Every bucket, in the order of a plan.
    pub buckets: Vec<BucketJob>,
    /// The ids of the jobs of all buckets.
    pub sweep_jobs: Vec<&'static str>,
    /// What may be asked of a sweep: inputs of a dispatch, which become flags of `plan`.
    pub asked: Vec<AskedFlag>,
    /// What of it a label may ask, with the canary: outputs of `decide`, which become flags of `plan`.
    pub decided: Vec<AskedFlag>,
    /// What a job may upload.
    pub artifact_kinds: Vec<Kind>,
    /// The secrets of the launch step, each once.
    pub launch_secrets: IndexSet<String>,
    /// Whether a scheduler reads a job's score from the labels of `runs-on`.
    pub priority_labels: bool,
    /// Whether the form of a dispatch has few inputs: what is asked of a sweep is then one of them.
    pub few_inputs: bool,
    /// The variables of the launch step that hold them.
    pub secret_variables: IndexMap<String, String>,
    /// The secrets that the workflows of a job on a GPU are given: those of the launch step, and the checkout's token.
    pub job_secrets: IndexSet<String>,
    /// How a job on a GPU checks out the repository.
    pub checkout_settings: Checkout,
    /// What of a sweep is published.
    pub publish: Publish,
    /// Where a finished sweep is announced; empty where it is not.
    pub ingest: Vec<Ingest>,
    /// A repository's own steps; both places are always there.
    pub extra_steps: Steps,
    /// A repository's own jobs.
    pub extra_jobs: IndexMap<String, Job>,
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
    let job = match bucket {
        Bucket::SingleNode1k1k => "sweep-single-node-1k1k",
        Bucket::SingleNode8k1k => "sweep-single-node-8k1k",
        Bucket::SingleNodeOther => "sweep-single-node-other",
        Bucket::SingleNodeAgentic => "sweep-single-node-agentic",
        Bucket::MultiNode1k1k => "sweep-multi-node-1k1k",
        Bucket::MultiNode8k1k => "sweep-multi-node-8k1k",
        Bucket::MultiNodeOther => "sweep-multi-node-other",
        Bucket::MultiNodeAgentic => "sweep-multi-node-agentic",
        Bucket::Evals => "sweep-evals",
        Bucket::AgenticEvals => "sweep-agentic-evals",
        Bucket::MultinodeEvals => "sweep-multi-node-evals",
        Bucket::MultinodeAgenticEvals => "sweep-multi-node-agentic-evals",
    };
    BucketJob {
        name: bucket.name(),
        job,
        title: needs::title_of(bucket),
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

/// Tools that a build installs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Tools {
    /// The version of cargo-zigbuild.
    pub cargo_zigbuild: &'static str,
    /// The version of ziglang.
    pub ziglang: &'static str,
}

/// Something that may be asked of a sweep, on its way from an input or an output to a flag of `plan`.
#[derive(Debug, Clone, Serialize)]
pub struct AskedFlag {
    /// The name of the input.
    pub name: String,
    /// What it is, for people.
    pub about: String,
    /// Whether it is a switch; else it has a value.
    pub is_switch: bool,
    /// The output of `decide`.
    pub output: String,
    /// The variable that carries it into a step's script.
    pub variable: String,
    /// The flag.
    pub flag: String,
}

/// Everything that may be asked, and the canary, which is asked for by labels only and stands last.
fn asked_flags() -> (Vec<AskedFlag>, AskedFlag) {
    let flag = |field: Field| AskedFlag {
        output: output_name(&field.name),
        variable: output_name(&field.name).to_uppercase(),
        flag: format!("--{}", field.name),
        name: field.name,
        about: field.about,
        is_switch: field.is_switch,
    };
    let canary = Field {
        name: "canary".to_owned(),
        about: "One job first; the rest only if it succeeds".to_owned(),
        is_switch: true,
    };
    (asked::fields().into_iter().map(flag).collect(), flag(canary))
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
        let (asked, canary) = asked_flags();
        let decided = asked
            .iter()
            .filter(|flag| flag.is_switch)
            .cloned()
            .chain([canary])
            .collect();
        let buckets: Vec<BucketJob> = Bucket::ALL.iter().map(|bucket| job_of(*bucket)).collect();
        Self {
            workflows: settings.workflows.clone(),
            default_branch: settings.default_branch.clone(),
            hosted_runner: settings.hosted_runner.clone(),
            sweepctl: settings.sweepctl.clone(),
            // Caches make builds bearable; without their pins there is nothing to build with.
            builds: ["actions/cache", "Swatinem/rust-cache"]
                .iter()
                .all(|action| settings.actions.contains_key(*action)),
            sources: SOURCES,
            sweep_labels: serde_json::json!(sweep_labels).to_string(),
            primary_labels: labels.primary.keys().cloned().collect(),
            sweep_jobs: buckets.iter().map(|bucket| bucket.job).collect(),
            buckets,
            decided,
            asked,
            artifact_kinds: ArtifactKind::ALL.iter().map(|k| kind(*k)).collect(),
            launch_secrets: settings.launch_secrets.values().cloned().collect(),
            priority_labels: settings.priority == PriorityUse::Labels,
            few_inputs: settings.dispatch_inputs.is_some(),
            secret_variables: settings.launch_secrets.clone(),
            job_secrets: job_secrets(settings),
            checkout_settings: settings.checkout.clone(),
            publish: settings.publish,
            ingest: settings.ingest.clone(),
            extra_steps: settings.extra_steps.clone(),
            extra_jobs: settings.extra_jobs.clone(),
            tools: Tools {
                cargo_zigbuild: CARGO_ZIGBUILD,
                ziglang: ZIGLANG,
            },
        }
    }
}

fn job_secrets(settings: &Workflows) -> IndexSet<String> {
    let token = settings.checkout.token_secret.iter();
    settings.launch_secrets.values().chain(token).cloned().collect()
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
