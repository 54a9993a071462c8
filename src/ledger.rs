//! The ledger of a plan: of every planned job, what became of it, and so which recipes are published. Collectors write
//! it; the gates, the comparison, the announcement and the verdict read it.

pub(crate) mod publish;

use serde::{Deserialize, Serialize};

/// What became of a job, or of one attempt at it. The later of two is the worse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A newer attempt took its place.
    Superseded,
    /// Everything that was planned is there.
    Done,
    /// Something is there, and not all of it is right.
    Failed,
    /// Nothing is there.
    #[default]
    Missing,
}

impl State {
    /// The text form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Superseded => "superseded",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Missing => "missing",
        }
    }
}

/// One job, or one superseded attempt at it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// Its name in the plan; empty where it is in none.
    #[serde(default)]
    pub name: String,
    /// What became of it.
    pub state: State,
    /// Why, where it is not done.
    #[serde(default)]
    pub reason: String,
    /// The fingerprint of the recipe that it belongs to; empty where the plan was not asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recipe: String,
    /// Its scores, where it evaluated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<Score>,
    /// Whether a limit on samples was set: such a score measures no model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub diagnostic: bool,
}

/// The score of one task, and what it was held against.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The task.
    pub task: String,
    /// The concurrency.
    pub conc: u64,
    /// The score.
    pub score: f64,
    /// Its metric.
    pub score_name: String,
    /// Its floor, or its ceiling where less is better; `None` where nothing judges it.
    pub floor: Option<f64>,
    /// Whether it clears that.
    pub passed: bool,
}
