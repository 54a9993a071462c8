//! `sweepctl priority`: the scores by which queued jobs are ordered.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::output;
use crate::config::priority::Priorities;
use crate::config::problem::{Problem, Problems};
use crate::config::source::{MAX_BYTES, Source};
use crate::matrix::priority::{self, Candidate, Occasion};

/// Score rows: which of the queued jobs go first
///
/// Reads rows as a JSON list from standard input and prints a list in the same order: `priority`, the score with three
/// decimal places, and `skip-queue-pr` where a label puts a pull request before all others. The score is the policy's
/// base plus every adjustment that fits, added in exact decimals and rounded once, half away from zero.
#[derive(Debug, Args)]
pub(crate) struct PriorityArgs {
    /// The policy
    #[arg(long, value_name = "FILE", default_value = "configs/ci-priority.yaml")]
    policy: PathBuf,
    /// The event that the jobs were started by, such as `push`; empty for none
    #[arg(long, value_name = "NAME", default_value = "")]
    event_name: String,
    /// The labels of the pull request, as a JSON list of names
    #[arg(long, value_name = "JSON", default_value = "[]")]
    labels_json: String,
    /// The pull request's number
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pr: Option<u64>,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl PriorityArgs {
    /// Scores.
    ///
    /// # Errors
    /// Every problem of the policy; labels or rows that cannot be read.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let source = Arc::new(Source::read(&self.policy).map_err(Problems::from)?);
        let policy = Priorities::load(&source)?;
        let labels: Vec<String> = parsed("--labels-json", self.labels_json.as_bytes(), r#"["full-sweep"]"#)?;
        let rows: Vec<Candidate> = parsed("standard input", &stdin()?, "what `sweepctl generate` prints")?;
        let occasion = Occasion {
            event: &self.event_name,
            labels: &labels,
            pull_request: self.pr,
        };
        let scored: Option<Vec<_>> = rows.iter().map(|row| priority::score(&policy, occasion, row)).collect();
        let scored = scored.ok_or_else(|| Problems::from(too_long(&source.name)))?;
        if output::wants_json(self.json) {
            return output::json(&scored);
        }
        let cells = |(row, scored): (&Candidate, &priority::Priority)| {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let skips = scored.skip_queue_pr.map_or(String::new(), |pr| format!("#{pr}"));
            vec![
                text(&row.model_prefix),
                text(&row.framework),
                text(&row.precision),
                scored.score.clone(),
                skips,
            ]
        };
        let table: Vec<Vec<String>> = rows.iter().zip(&scored).map(cells).collect();
        let header = ["Model", "Framework", "Precision", "Priority", "Before all others"];
        output::text(&output::table(&header, &table))
    }
}

/// The problem of a policy whose terms add up to more than a decimal holds.
pub(super) fn too_long(policy: &str) -> Problem {
    let message = "the score of a row has more digits than a decimal holds";
    Problem::file(policy, message).hint("use smaller numbers")
}

fn stdin() -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Problems::from(Source::too_large("standard input")).into());
    }
    Ok(bytes)
}

fn parsed<T: serde::de::DeserializeOwned>(what: &str, bytes: &[u8], example: &str) -> Result<T, Problems> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("{what} holds no JSON list of the right kind: {error}");
        Problem::file("", message).hint(format!("give {example}")).into()
    })
}
