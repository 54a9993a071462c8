//! `sweepctl compare`: what changed between two collections of results.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use super::{Told, annotate, output, published};
use crate::config::problem::{Problem, Problems, printable};
use crate::ledger::publish::RunLedger;
use crate::runner;
use crate::step::compare::{self, Comparison, Metrics, summary};
use crate::step::results::file;

const AFTER_HELP: &str = "\
Two measurements are of one point if they have the same model prefix, hardware, framework, precision, speculative \
decoding, disaggregation, sequence lengths (or are agentic, with the same offloading), topology and concurrency. An \
image, a model's path or a router may differ: their change is what is measured.

Compared are `tput_per_gpu`, and the median and percentiles of `ttft` and of `intvty`, or `tpot` where a row has no \
`intvty`. Of throughput and interactivity more is better, of everything else less. Scores change in standard errors of \
the difference; no flag fails on them, their gate is `sweepctl eval validate`.

Examples:
  sweepctl compare baseline current
      every point, the largest regression first
  sweepctl compare old.json new.json --metric tput_per_gpu --max-regression 5
      fail where throughput lost more than 5 percent";

/// `sweepctl compare`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Compare {
    /// The earlier results: a folder with what `sweepctl collect` wrote at any depth, or one file
    #[arg(value_name = "BASELINE")]
    baseline: PathBuf,
    /// The later results
    #[arg(value_name = "CURRENT")]
    current: PathBuf,
    /// Compare this field of throughput rows, instead of the usual ones; several flags, or a list with commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    metric: Vec<String>,
    /// Fail where a point got worse by more than so many percent in any compared metric
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    max_regression: Option<f64>,
    /// The ledger of the later run: the recipes that are withheld, and so not compared, are named
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Write the JSON to a file too; `sweepctl comment --comparison` reads it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

fn percentage(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("a number of percent, 0 or more".to_owned()),
    }
}

/// What the command prints as JSON.
#[derive(Serialize)]
struct Printed<'c> {
    #[serde(flatten)]
    comparison: &'c Comparison,
    max_regression: Option<f64>,
    regressions: &'c [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    withheld: &'c [String],
}

impl Compare {
    /// Compares.
    ///
    /// # Errors
    /// A folder that cannot be searched, a metric that no result has, and with --max-regression every point that got worse than that, and results now
    /// of which that cannot be said.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let metrics = Metrics(self.metric.clone());
        let comparison = compare::compare(&self.baseline, &self.current, &metrics)?;
        let over = |limit: f64| comparison.points.iter().filter_map(move |point| point.over(limit));
        let over: Vec<String> = self.max_regression.into_iter().flat_map(over).collect();
        let withheld = self.withheld().map_err(Problems::from)?;
        runner::summarize(&summary::markdown(&comparison, &over, &withheld))?;
        let printed = Printed {
            comparison: &comparison,
            max_regression: self.max_regression,
            regressions: &over,
            withheld: &withheld,
        };
        if let Some(file) = &self.output {
            file::write_atomic(file, &serde_json::to_vec(&printed)?)
                .with_context(|| format!("`{}` cannot be written", file.display()))?;
        }
        match output::wants_json(self.json) {
            true => output::json(&printed)?,
            false => print(&comparison)?,
        }
        for name in &withheld {
            anstream::eprintln!("withheld, and not compared: {}", printable(name));
        }
        for sentence in &comparison.empty {
            anstream::eprintln!("nothing to compare: {}", printable(sentence));
        }
        annotate::warn(&comparison.problems);
        if self.max_regression.is_some() {
            comparison.conclusive().map_err(Told)?;
        }
        let worse = |told: String| {
            let hint = "see what the change did there, or raise --max-regression";
            Problem::file("", format!("worse than allowed: {told}")).hint(hint)
        };
        let worse = Problems(over.into_iter().map(worse).collect());
        Ok(worse.into_result().map_err(Told)?)
    }
}

impl Compare {
    /// The recipes that the ledger withholds, each with its reason.
    fn withheld(&self) -> Result<Vec<String>, Problem> {
        let ledger = self.ledger.as_deref().map(published::read).transpose()?;
        let withheld = ledger.iter().flat_map(RunLedger::withheld);
        Ok(withheld
            .map(|recipe| format!("{}: {}", recipe.name, recipe.reason))
            .collect())
    }
}

fn print(comparison: &Comparison) -> anyhow::Result<()> {
    for (header, rows) in [summary::points(comparison), summary::scores(comparison)] {
        if !rows.is_empty() {
            let header: Vec<&str> = header.iter().map(String::as_str).collect();
            output::text(&format!("{}\n", output::table(&header, &rows)))?;
        }
    }
    for (title, only) in [
        ("only before", &comparison.only_baseline),
        ("only now", &comparison.only_current),
    ] {
        for measured in only {
            output::text(&format!("{title}: {}\n", printable(&measured.to_string())))?;
        }
    }
    output::text(&format!("{}\n", summary::counted(comparison)))
}
