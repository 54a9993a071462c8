//! The plan of a run, where a command knows it: what was planned, and where the run's jobs belong.

use std::path::Path;

use crate::config::problem::Problem;
use crate::github::run_jobs::Places;
use crate::matrix::envelope::Envelope;
use crate::plan_files::{self, Index};

/// A plan, or nothing of one.
#[derive(Debug, Default)]
pub(super) struct RunPlan {
    /// What it holds; `None` without a plan.
    pub index: Option<Index>,
    /// Its jobs; none without a plan.
    pub envelopes: Vec<Envelope>,
    /// Where jobs belong.
    pub places: Places,
}

impl RunPlan {
    /// Reads a plan, where one is named.
    ///
    /// # Errors
    /// A plan that cannot be read.
    pub(super) fn read(path: Option<&Path>) -> Result<Self, Problem> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let index = plan_files::index(path)?;
        let envelopes = plan_files::envelopes(path)?;
        let canary = index.canary.as_ref().map(|canary| canary.id.as_str());
        Ok(Self {
            places: Places::of_plan(&envelopes, canary),
            index: Some(index),
            envelopes,
        })
    }
}
