//! `sweepctl findings`: what can be found, by id.

use clap::Args;

use super::output;
use crate::findings::{self, Finding};

/// `sweepctl findings`
#[derive(Debug, Args)]
pub(crate) struct Findings {
    /// Print docs/findings.md
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl Findings {
    /// Prints.
    ///
    /// # Errors
    /// As [`output::write`].
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if self.markdown {
            return output::text(&findings::page());
        }
        let all: Vec<&Finding> = findings::all().collect();
        if output::wants_json(self.json) {
            return output::json(&all);
        }
        let row = |f: &&Finding| vec![f.id.to_owned(), f.severity.name().to_owned(), f.title.to_owned()];
        let rows: Vec<Vec<String>> = all.iter().map(row).collect();
        output::text(&output::table(&["id", "severity", "what"], &rows))
    }
}
