//! What of a sweep is published, as several commands ask it: the plan, what collectors found, and how jobs ended.

use std::path::{Path, PathBuf};

use clap::Args;

use super::inputs;
use crate::config::problem::{Problem, Problems};
use crate::config::workflows::publish::Publish;
use crate::github::ended;
use crate::github::ledger::Ledgers;
use crate::github::needs::Needs;
use crate::github::verdict::Planned;
use crate::ledger::publish::{self, RunLedger};
use crate::matrix::envelope::Envelope;
use crate::plan_files;

/// By which rule is published, and how jobs ended.
#[derive(Debug, Args)]
pub(super) struct PublishArgs {
    /// What is published [default: `publish` of configs/workflows.yaml, else recipe]
    #[arg(long, value_name = "WHAT")]
    publish: Option<Publish>,
    /// What `sweepctl stats` wrote of the run: how each single job ended. Without it a bucket that failed, and in which
    /// no failure shows, has no job that is done
    #[arg(long, value_name = "FILE")]
    jobs: Option<PathBuf>,
}

/// A plan, and the id of its canary.
pub(super) struct Plan {
    /// Its jobs.
    pub envelopes: Vec<Envelope>,
    /// The job that runs before all others.
    pub canary: Option<String>,
}

impl Plan {
    /// The same of a plan that was read.
    #[must_use]
    pub(super) fn of(plan: &Planned) -> Self {
        Self {
            envelopes: plan.envelopes.clone(),
            canary: plan.index.canary.as_ref().map(|envelope| envelope.id.clone()),
        }
    }

    /// Reads it: its folder, its index, or a list of envelopes.
    ///
    /// # Errors
    /// Files that are no plan.
    pub(super) fn read(path: &Path) -> Result<Self, Problem> {
        let canary = plan_files::index(path)?.canary;
        Ok(Self {
            envelopes: plan_files::envelopes(path)?,
            canary: canary.map(|envelope| envelope.id),
        })
    }
}

impl PublishArgs {
    /// The ledger of the run: what became of each planned job, and what is published.
    ///
    /// # Errors
    /// The file of jobs, or settings, that cannot be read.
    pub(super) fn ledger(&self, plan: &Plan, ledgers: &Ledgers, needs: Option<&Needs>) -> Result<RunLedger, Problems> {
        let told = self.jobs.as_deref().map(ended::read).transpose()?.unwrap_or_default();
        let ended = ended::of(&plan.envelopes, plan.canary.as_deref(), needs, &told);
        let publish = match self.publish.or(ledgers.publish()) {
            Some(publish) => publish,
            None => inputs::publish()?,
        };
        Ok(publish::decide(&plan.envelopes, |id| ledgers.of(id), &ended, publish))
    }
}

/// What of a run is published, where a command may be asked without knowing.
#[derive(Debug, Args)]
pub(super) struct ResultsArgs {
    /// What the collectors found of each job: the run's ledger.json, or the folder of the collectors' ledgers
    #[arg(long, value_name = "FILE|DIR", requires = "plan")]
    results: Option<PathBuf>,
    #[command(flatten)]
    publish: PublishArgs,
}

impl ResultsArgs {
    /// The ledger of the run; `None` where no results are named. The plan is read only then.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub(super) fn ledger(
        &self,
        plan: impl FnOnce() -> Result<Plan, Problem>,
        needs: &Needs,
    ) -> Result<Option<RunLedger>, Problems> {
        let Some(results) = &self.results else { return Ok(None) };
        let (plan, ledgers) = inputs::both(plan().map_err(Problems::from), Ledgers::read(results))?;
        self.publish.ledger(&plan, &ledgers, Some(needs)).map(Some)
    }
}

/// Reads the ledger of a run, as `sweepctl collect sweep` wrote it.
///
/// # Errors
/// A file that cannot be read, or is none.
pub(super) fn read(path: &Path) -> Result<RunLedger, Problem> {
    let source = crate::github::text::read(path)?;
    serde_json::from_str(&source.text).map_err(|error| {
        Problem::file(
            &source.name,
            format!("`{}` is no ledger of a run: {error}", source.name),
        )
        .hint("write it with `sweepctl collect sweep`")
    })
}
