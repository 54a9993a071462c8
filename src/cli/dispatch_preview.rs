//! What a dispatch would start, seen before it is sent: the jobs and GPUs of each bucket.

use std::path::Path;

use serde::Serialize;

use super::plan::PlanArgs;
use super::rows::{self, Cost};
use crate::config::asked::Asked;
use crate::github::dispatch::Comparison;
use crate::matrix::bucket::{self, Buckets};
use crate::repo::Repo;

/// What would be started.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Preview {
    /// Jobs.
    pub jobs: usize,
    /// GPUs of all jobs, as if they ran at once.
    pub gpus: u64,
    /// Jobs and GPUs by runner label and bucket.
    pub costs: Vec<Cost>,
}

impl Preview {
    /// Of buckets.
    #[must_use]
    pub(super) fn of(buckets: &Buckets) -> Self {
        let costs = rows::costs(buckets);
        Self {
            jobs: costs.iter().map(|cost| cost.jobs).sum(),
            gpus: costs.iter().map(|cost| cost.gpus).sum(),
            costs,
        }
    }

    /// As a table.
    #[must_use]
    pub(super) fn table(&self) -> String {
        rows::cost_table(&self.costs)
    }
}

/// What a pull request's sweep would start, by the configs and the changelog of its own commits; `None` where this clone
/// has them not.
///
/// # Errors
/// A plan that is refused: its run would be, too.
pub(super) fn of_pull(compared: &Comparison, asked: &Asked) -> anyhow::Result<Option<Preview>> {
    let (base, head) = (compared.base.as_str(), compared.head.as_str());
    let Ok(repo) = Repo::open(Path::new(".")) else {
        return Ok(None);
    };
    if repo.revision(base).is_err() || repo.revision(head).is_err() {
        return Ok(None);
    }
    let refs = [
        format!("--base-ref={base}"),
        format!("--head-ref={head}"),
        "--configs-from=head".to_owned(),
    ];
    let plan = PlanArgs::read(refs.into_iter().chain(asked.flags()))?.plan()?;
    let buckets = bucket::of_plan(&plan, asked)?;
    Ok(Some(Preview::of(&buckets)))
}
