//! The ledger of a plan: of every planned job, what became of it. Collectors write it, the verdict reads it.

use serde::{Deserialize, Serialize};

/// What became of a job, or of one attempt at it. The later of two is the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A newer attempt took its place.
    Superseded,
    /// Everything that was planned is there.
    Done,
    /// Something is there, and not all of it is right.
    Failed,
    /// Nothing is there.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}
