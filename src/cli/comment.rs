//! `sweepctl comment`: the one comment on a pull request that says how its sweep ended.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

use super::client::{self, ClientArgs};
use super::{comment_changes, output};
use crate::config::problem::{Problem, Problems};
use crate::github::comment::{self, MARKER};
use crate::github::text;
use crate::step::markdown;

/// `sweepctl comment`
#[derive(Debug, Args)]
#[command(after_help = client::ABOUT)]
pub(crate) struct CommentArgs {
    /// The pull request
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pr: u64,
    /// What `sweepctl verdict --output` wrote; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    verdict: PathBuf,
    /// What `sweepctl compare --output` wrote: what changed is told, the largest first
    #[arg(long, value_name = "FILE")]
    comparison: Option<PathBuf>,
    /// The commit that was swept
    #[arg(long, value_name = "SHA")]
    commit: String,
    /// The account whose comment is changed
    #[arg(long, value_name = "LOGIN", default_value = "github-actions[bot]")]
    author: String,
    #[command(flatten)]
    client: ClientArgs,
    /// Print the comment, and write nothing
    #[arg(long)]
    dry_run: bool,
}

impl CommentArgs {
    /// Writes or changes it.
    ///
    /// # Errors
    /// A verdict that cannot be read, and requests that fail.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let verdict = self.read().map_err(Problems::from)?;
        let comparison = self
            .comparison
            .as_deref()
            .map(comment_changes::read)
            .transpose()
            .map_err(Problems::from)?;
        let client = self.client.client()?.with_reserve();
        let server = std::env::var("GITHUB_SERVER_URL").unwrap_or_else(|_| "https://github.com".to_owned());
        let run = std::env::var("GITHUB_RUN_ID").unwrap_or_default();
        let url = format!("{server}/{}/actions/runs/{run}", client.repository());
        let changes = comparison.as_ref().map(comment_changes::section).unwrap_or_default();
        let body = body(&verdict, &self.commit, &changes, &url);
        if self.dry_run {
            return output::text(&body);
        }
        Ok(comment::put(&client, self.pr, &self.author, &body).map_err(Problems::from)?)
    }

    fn read(&self) -> Result<Verdict, Problem> {
        let source = text::read(&self.verdict)?;
        serde_json::from_str(&source.text).map_err(|error| {
            Problem::file(&source.name, format!("`{}` is no verdict: {error}", source.name))
                .hint("write it with `sweepctl verdict --output FILE`")
        })
    }
}

/// Problems that are listed.
const SHOWN: usize = 30;
/// The longest text of a problem, in characters. With [`SHOWN`] of them a comment stays under the 65,536 that it may
/// hold.
const LONGEST: usize = 300;

/// The most bytes of a comment with what changed.
const MOST_BYTES: usize = 60_000;

/// A verdict, as `sweepctl verdict` writes it.
#[derive(Debug, Clone, Deserialize)]
struct Verdict {
    /// Whether everything planned ran and succeeded.
    ok: bool,
    /// The verdict in a sentence.
    reason: String,
    /// The canary and every bucket of the plan.
    buckets: Vec<Line>,
    /// What is wrong.
    problems: Vec<String>,
}

/// What became of one bucket; `None` where nobody counted.
#[derive(Debug, Clone, Deserialize)]
struct Line {
    /// The bucket, or `canary`.
    bucket: String,
    /// Jobs that were planned.
    planned: usize,
    /// Jobs that left everything they should.
    done: Option<usize>,
    /// Jobs that left something wrong.
    failed: Option<usize>,
    /// Jobs that left nothing.
    missing: Option<usize>,
}

/// The comment's text. What it says of jobs is a stranger's text: it mentions nobody, links nowhere and holds no markup.
fn body(verdict: &Verdict, commit: &str, changes: &str, url: &str) -> String {
    let ended = if verdict.ok { "succeeded" } else { "failed" };
    let of = commit.get(..9).unwrap_or(commit);
    let mut text = format!(
        "{MARKER}\n### Sweep of {} {ended}\n\n{}\n",
        inert(of),
        inert(&verdict.reason)
    );
    if !verdict.buckets.is_empty() {
        let count = |count: Option<usize>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
        let row = |line: &Line| {
            let counts = [Some(line.planned), line.done, line.failed, line.missing].map(count);
            [vec![inert(&line.bucket)], counts.to_vec()].concat()
        };
        let rows: Vec<Vec<String>> = verdict.buckets.iter().map(row).collect();
        text.push_str(&format!(
            "\n{}",
            markdown::table_of_markup(&["Bucket", "Planned", "Done", "Failed", "Missing"], &rows)
        ));
    }
    if !verdict.problems.is_empty() {
        let rows: Vec<Vec<String>> = verdict
            .problems
            .iter()
            .take(SHOWN)
            .map(|problem| vec![inert(problem)])
            .collect();
        text.push_str(&format!("\n{}", markdown::table_of_markup(&["What is wrong"], &rows)));
        let more = verdict.problems.len().saturating_sub(SHOWN);
        if more > 0 {
            text.push_str(&format!("\nAnd {more} more.\n"));
        }
    }
    // The whole may be 65,536 bytes long; a comparison of long names stands in the summary anyway.
    match text.len() + changes.len() < MOST_BYTES {
        true => text.push_str(changes),
        false => text.push_str("\nWhat changed is in the summary of the run.\n"),
    }
    text.push_str(&format!("\n[Jobs, results and reasons]({url})\n"));
    text
}

/// Text on one line that is only text: an invisible character parts what GitHub makes a mention, a reference or a link
/// of.
pub(super) fn inert(text: &str) -> String {
    const JOINER: char = '\u{2060}';
    let short: String = text.chars().take(LONGEST).collect();
    let mut out = markdown::escape(&short);
    for (part, at) in [("@", 1), ("#", 1), ("://", 1), ("www.", 3), ("GH-", 2), ("gh-", 2)] {
        let (before, after) = part.split_at(at);
        out = out.replace(part, &format!("{before}{JOINER}{after}"));
    }
    out
}
