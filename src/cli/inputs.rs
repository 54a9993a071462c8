//! Which files a command reads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use crate::config::master::{self, Master};
use crate::config::policy::{self, EvalPolicies, EvalPolicy};
use crate::config::problem::{Problem, Problems};
use crate::config::runners::Runners;
use crate::config::source::Source;

/// The folder of configs, from the repository's root.
pub const CONFIGS: &str = "configs";

/// Where the inputs of the matrix stand.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Inputs")]
pub struct InputArgs {
    /// Master files, in order [default: every configs/*-master.yaml]
    #[arg(long, num_args = 1.., value_name = "FILE")]
    pub config_files: Vec<String>,
    /// The runners file
    #[arg(long, value_name = "FILE", default_value = "configs/runners.yaml")]
    pub runner_config: String,
    /// The policy in force, instead of the policy file's active one
    #[arg(long, value_name = "NAME")]
    pub eval_policy: Option<String>,
    /// The policy file [default: configs/eval-policy.yaml, else the built-in one]
    #[arg(long, value_name = "FILE")]
    pub eval_policy_file: Option<String>,
}

impl InputArgs {
    /// The master files: those named, or every `configs/*-master.yaml` by name.
    ///
    /// # Errors
    /// None is named and none is there.
    pub fn master_files(&self) -> Result<Vec<String>, Problem> {
        if !self.config_files.is_empty() {
            return Ok(self.config_files.clone());
        }
        let mut names: Vec<String> = std::fs::read_dir(CONFIGS)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with("-master.yaml"))
            .map(|name| format!("{CONFIGS}/{name}"))
            .collect();
        names.sort();
        if names.is_empty() {
            let problem = Problem::file(CONFIGS, format!("no `{CONFIGS}/*-master.yaml` here"));
            return Err(problem.hint("run from the repository's root, or name --config-files"));
        }
        Ok(names)
    }

    /// Reads master and runners files from the work tree.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn load(&self) -> Result<(Master, Runners), Problems> {
        let read = |name: &String| Source::read(Path::new(name)).map(Arc::new);
        let mut problems = Problems::default();
        let mut sources = Vec::new();
        for source in self.master_files()?.iter().map(read) {
            match source {
                Ok(source) => sources.push(source),
                Err(problem) => problems.push(problem),
            }
        }
        let runners = read(&self.runner_config)
            .map_err(Problems::from)
            .and_then(|s| Runners::load(&s));
        let master = master::load(&sources);
        both(problems, master, runners)
    }

    /// The policies of the repository, or the built-in ones.
    ///
    /// # Errors
    /// A named file that is missing, and every problem of the file.
    pub fn policies(&self) -> Result<EvalPolicies, Problems> {
        let own = PathBuf::from(CONFIGS).join("eval-policy.yaml");
        let source = match &self.eval_policy_file {
            Some(name) => Source::read(Path::new(name))?,
            None if own.exists() => Source::read(&own)?,
            None => Source {
                name: "<built-in>/eval-policy.yaml".to_owned(),
                text: policy::BUILT_IN.to_owned(),
            },
        };
        EvalPolicies::load(&Arc::new(source))
    }

    /// The policy in force.
    ///
    /// # Errors
    /// As [`Self::policies`], and a name that is none.
    pub fn policy(&self) -> Result<EvalPolicy, Problems> {
        let policies = self.policies()?;
        let (_, policy) = policies.named(self.eval_policy.as_deref())?;
        Ok(policy.clone())
    }
}

/// Both values, or all problems.
fn both<A, B>(mut problems: Problems, a: Result<A, Problems>, b: Result<B, Problems>) -> Result<(A, B), Problems> {
    match (a, b) {
        (Ok(a), Ok(b)) => {
            problems.into_result()?;
            Ok((a, b))
        }
        (a, b) => {
            problems.extend(a.err().unwrap_or_default());
            problems.extend(b.err().unwrap_or_default());
            problems.into_result()?;
            Err(Problems::default())
        }
    }
}
