//! Which files a command reads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use indexmap::IndexMap;

use crate::config::clusters::Template;
use crate::config::fleet::{Fleet, FleetFiles};
use crate::config::labels::{self, Labels};
use crate::config::master::{self, Master};
use crate::config::policy::{self, EvalPolicies, EvalPolicy};
use crate::config::problem::{Problem, Problems};
use crate::config::runners::Runners;
use crate::config::source::Source;
use crate::config::workflows::Workflows;
use crate::config::workflows::publish::Publish;
use crate::repo::{self, Repo, Revision};
use crate::secrets;

/// The folder of configs, from the repository's root.
pub(crate) const CONFIGS: &str = "configs";
/// The end of a master file's name.
const MASTER_END: &str = "-master.yaml";
/// The repository's own policy file.
const POLICY: &str = "configs/eval-policy.yaml";
/// The repository's own labels file.
const LABELS: &str = "configs/labels.yaml";
/// The repository's own clusters file.
pub(crate) const CLUSTERS: &str = crate::config::clusters::FILE;
/// The repository's own engines file.
pub(crate) const ENGINES: &str = "configs/engines.yaml";
/// The repository's own workflow settings.
const WORKFLOWS: &str = "configs/workflows.yaml";

/// Which eval policy is in force.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Inputs")]
pub(crate) struct PolicyArgs {
    /// The policy in force, instead of the policy file's active one
    #[arg(long, value_name = "NAME")]
    pub eval_policy: Option<String>,
    /// The policy file [default: configs/eval-policy.yaml, else the built-in one]
    #[arg(long, value_name = "FILE")]
    pub eval_policy_file: Option<String>,
}

impl PolicyArgs {
    /// The policy file's text: the one named, the repository's own, or the built-in one.
    fn source(&self) -> Result<Arc<Source>, Problem> {
        let own = || Path::new(POLICY).exists().then_some(POLICY);
        match self.eval_policy_file.as_deref().or_else(own) {
            Some(name) => Source::read(Path::new(name)).map(Arc::new),
            None => Ok(policy::built_in_source()),
        }
    }

    /// The policy in force, without any other input.
    ///
    /// # Errors
    /// Every problem of the policy file, and a name that is none.
    pub(crate) fn load(&self) -> Result<EvalPolicy, Problems> {
        let policies = EvalPolicies::load(&self.source()?)?;
        Ok(self.chosen(&policies)?.clone())
    }

    /// The policy in force.
    ///
    /// # Errors
    /// A name that is none.
    pub(crate) fn chosen<'p>(&self, policies: &'p EvalPolicies) -> Result<&'p EvalPolicy, Problem> {
        policies.named(self.eval_policy.as_deref()).map(|(_, policy)| policy)
    }
}

/// What labels mean.
#[derive(Debug, Clone, Args)]
pub(crate) struct LabelsArgs {
    /// The labels file [default: configs/labels.yaml, else the built-in one]
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
}

impl LabelsArgs {
    /// Reads the labels file: the one named, the repository's own, or the built-in one.
    ///
    /// # Errors
    /// Every problem of the file.
    pub(crate) fn load(&self) -> Result<Labels, Problems> {
        let own = || Path::new(LABELS).exists().then(|| PathBuf::from(LABELS));
        let source = match self.labels.clone().or_else(own) {
            Some(path) => Source::read(&path)?,
            None => Source::new("<built-in>/labels.yaml", labels::BUILT_IN),
        };
        Labels::load(&Arc::new(source))
    }
}

/// Declares secret what `launch-secrets` of the repository's own workflow settings names. What shows or keeps the
/// output of a job does this first.
///
/// # Errors
/// Settings that cannot be read: it is not known what would have to be hidden.
pub(crate) fn declare_launch_secrets() -> Result<(), Problems> {
    let path = Path::new(WORKFLOWS);
    if path.exists() {
        let settings = Workflows::load(&Arc::new(Source::read(path)?))?;
        secrets::declare(settings.launch_secrets.into_keys().collect());
    }
    Ok(())
}

/// The variables that the repository's own workflow settings give every job.
///
/// # Errors
/// Settings that cannot be read.
pub(crate) fn jobs_env() -> Result<IndexMap<String, Template>, Problems> {
    let path = Path::new(WORKFLOWS);
    if !path.exists() {
        return Ok(IndexMap::new());
    }
    Ok(Workflows::load(&Arc::new(Source::read(path)?))?.env)
}

/// What the repository's own workflow settings publish of a sweep, else the default.
///
/// # Errors
/// Settings that cannot be read.
pub(crate) fn publish() -> Result<Publish, Problems> {
    let path = Path::new(WORKFLOWS);
    if !path.exists() {
        return Ok(Publish::default());
    }
    Ok(Workflows::load(&Arc::new(Source::read(path)?))?.publish)
}

/// The fleet: its runners, and what starts jobs on them.
#[derive(Debug, Clone, Args)]
pub(crate) struct FleetArgs {
    /// The runners file
    #[arg(long, value_name = "FILE", default_value = "configs/runners.yaml")]
    pub runner_config: PathBuf,
    /// The clusters file
    #[arg(long, value_name = "FILE", default_value = "configs/clusters.yaml")]
    pub cluster_config: PathBuf,
    /// The engines file [default: configs/engines.yaml, else the built-in one]
    #[arg(long, value_name = "FILE")]
    pub engine_config: Option<PathBuf>,
}

impl FleetArgs {
    /// Where the files are.
    #[must_use]
    pub(crate) fn files(&self) -> FleetFiles {
        let own = || Path::new(ENGINES).exists().then(|| PathBuf::from(ENGINES));
        FleetFiles {
            runners: self.runner_config.clone(),
            clusters: self.cluster_config.clone(),
            engines: self.engine_config.clone().or_else(own),
        }
    }

    /// Reads the files, if there are any: what is asked of a job alone has no fleet in its folder.
    ///
    /// # Errors
    /// Every problem of every file.
    pub(crate) fn load_if_there(&self) -> Result<Fleet, Problems> {
        if !self.runner_config.exists() && !self.cluster_config.exists() {
            return Ok(Fleet::default());
        }
        self.load()
    }

    /// Reads the files.
    ///
    /// # Errors
    /// Every problem of every file.
    pub(crate) fn load(&self) -> Result<Fleet, Problems> {
        Fleet::read(&self.files())
    }
}

/// Where the inputs of the matrix stand.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Inputs")]
pub(crate) struct InputArgs {
    /// Master files, in order [default: every configs/*-master.yaml]
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub config_files: Vec<String>,
    /// The runners file
    #[arg(long, value_name = "FILE", default_value = "configs/runners.yaml")]
    pub runner_config: String,
    #[command(flatten)]
    pub policy: PolicyArgs,
}

impl InputArgs {
    /// The master files: those named, or every `configs/*-master.yaml` by name.
    ///
    /// # Errors
    /// None is named and none is there.
    pub(crate) fn master_files(&self) -> Result<Vec<String>, Problem> {
        if !self.config_files.is_empty() {
            return Ok(self.config_files.clone());
        }
        let mut names: Vec<String> = std::fs::read_dir(CONFIGS)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(MASTER_END))
            .map(|name| format!("{CONFIGS}/{name}"))
            .collect();
        names.sort();
        if names.is_empty() {
            let problem = Problem::file(CONFIGS, format!("no `{CONFIGS}/*{MASTER_END}` here"));
            return Err(problem.hint("run from the repository's root, or name --config-files"));
        }
        Ok(names)
    }

    /// Reads the files of the work tree.
    ///
    /// # Errors
    /// Every file that is missing or cannot be read.
    pub(crate) fn files(&self) -> Result<Files, Problems> {
        let read = |name: &str| Source::read(Path::new(name)).map(Arc::new);
        self.gather(&self.master_files()?, self.policy.source(), read)
    }

    /// Reads the files at a revision.
    ///
    /// # Errors
    /// Every file that is missing or cannot be read.
    pub(crate) fn files_at(&self, repo: &Repo, revision: &Revision) -> Result<Files, Problems> {
        let names = match self.config_files.as_slice() {
            [] => repo.files_ending(revision, CONFIGS, MASTER_END)?,
            named => named.to_vec(),
        };
        if names.is_empty() {
            let problem = Problem::file(CONFIGS, format!("no `{CONFIGS}/*{MASTER_END}` at {}", revision.name));
            return Err(problem.hint("name --config-files").into());
        }
        let policies = match &self.policy.eval_policy_file {
            Some(name) => repo.required_file(revision, name),
            None => repo
                .file(revision, POLICY)
                .map(|own| own.unwrap_or_else(policy::built_in_source)),
        };
        self.gather(&names, policies, |name| repo.required_file(revision, name))
    }

    fn gather(
        &self,
        master_files: &[String],
        policies: Result<Arc<Source>, Problem>,
        read: impl Fn(&str) -> Result<Arc<Source>, Problem>,
    ) -> Result<Files, Problems> {
        let master = master_files.iter().map(|name| read(name));
        let mut master = repo::all(master.chain([read(&self.runner_config), policies]))?;
        let policies = master.pop().expect("policies were read last");
        let runners = master.pop().expect("the runners were read before them");
        Ok(Files {
            master,
            runners,
            policies,
        })
    }
}

/// The texts of configs, read and not yet decoded.
#[derive(Debug)]
pub(crate) struct Files {
    master: Vec<Arc<Source>>,
    runners: Arc<Source>,
    policies: Arc<Source>,
}

/// The decoded configs.
#[derive(Debug)]
pub(crate) struct Configs {
    /// The configs.
    pub master: Master,
    /// The runners.
    pub runners: Runners,
    /// The policies.
    pub policies: EvalPolicies,
}

impl Files {
    /// Decodes everything.
    ///
    /// # Errors
    /// Every problem of every file.
    pub(crate) fn load(&self) -> Result<Configs, Problems> {
        let configs = both(master::load(&self.master), Runners::load(&self.runners));
        let ((master, runners), policies) = both(configs, EvalPolicies::load(&self.policies))?;
        Ok(Configs {
            master,
            runners,
            policies,
        })
    }
}

/// Both values, or the problems of both.
///
/// # Errors
/// The problems of both.
pub(crate) fn both<A, B>(a: Result<A, Problems>, b: Result<B, Problems>) -> Result<(A, B), Problems> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (a, b) => {
            let mut problems = a.err().unwrap_or_default();
            problems.extend(b.err().unwrap_or_default());
            Err(problems)
        }
    }
}
