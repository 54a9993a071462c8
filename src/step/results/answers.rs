//! What became of a model's answers while an eval ran: silence, thought alone and cuts are no wrong answers.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::loose::Cell;

/// Counts of one eval, kept in `meta_env.json`; of a batch over all its points.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Loose")]
pub struct Answers {
    /// Answers that came back.
    pub asked: u64,
    /// Those without content and without reasoning.
    pub empty: u64,
    /// Those whose content was empty, and that came only as reasoning.
    pub reasoning_only: u64,
    /// Those that the output budget cut off.
    pub cut: u64,
}

/// The counts as somebody wrote them: what is none reads as 0, for they fail nothing by themselves.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Loose {
    asked: Cell,
    empty: Cell,
    reasoning_only: Cell,
    cut: Cell,
}

impl From<Loose> for Answers {
    fn from(loose: Loose) -> Self {
        let count = |cell: Cell| cell.integer().unwrap_or(0);
        Self {
            asked: count(loose.asked),
            empty: count(loose.empty),
            reasoning_only: count(loose.reasoning_only),
            cut: count(loose.cut),
        }
    }
}

impl Answers {
    /// The sum with the counts of another point.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            asked: self.asked.saturating_add(other.asked),
            empty: self.empty.saturating_add(other.empty),
            reasoning_only: self.reasoning_only.saturating_add(other.reasoning_only),
            cut: self.cut.saturating_add(other.cut),
        }
    }

    /// The counts that are not 0, in few words; `None` where every answer was whole.
    #[must_use]
    pub fn trouble(self) -> Option<String> {
        let counts = [
            (self.empty, "empty"),
            (self.reasoning_only, "reasoning only"),
            (self.cut, "cut"),
        ];
        let said: Vec<String> = counts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

impl fmt::Display for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            asked,
            empty,
            reasoning_only,
            cut,
        } = self;
        write!(
            f,
            "of {asked} answers {empty} were empty, {reasoning_only} came only as reasoning, {cut} were cut by the \
             output budget"
        )
    }
}
