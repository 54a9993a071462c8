//! `sweepctl result process` of agentic jobs: a replay is read, or the aggregate that a script left is taken.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use super::{annotate, output};
use crate::config::problem::{Problem, Problems};
use crate::config::types::ScenarioType;
use crate::matrix::row::Row;
use crate::step::replay;
use crate::step::replay::expected::{self, Expected};
use crate::step::replay::left::Left;
use crate::step::replay::published::RequestMetrics;
use crate::step::results::file;

/// The metrics of the table, and their headings.
const SHOWN: [(&str, &str); 5] = [
    ("tput_per_gpu", "Tokens/s/GPU"),
    ("output_tput_per_gpu", "Output tokens/s/GPU"),
    ("input_tput_per_gpu", "Input tokens/s/GPU"),
    ("median_ttft", "Median TTFT s"),
    ("median_intvty", "Median interactivity"),
];

/// Reads the replay in a folder and writes `agg_<stem>.json`, in jobs of several concurrencies
/// `agg_<stem>_conc<N>.json`.
///
/// # Errors
/// Everything that keeps the replay from counting; nothing is written then.
pub(super) fn read(folder: &Path, row: &Row, stem: &str, out: &Path, json: bool) -> anyhow::Result<()> {
    let conc = concurrency(folder, row).map_err(Problems::from)?;
    let hub = expected::hub_cache(|name| std::env::var_os(name));
    let aggregate = replay::process(folder, row, conc, &Expected::read(hub.as_deref()))?;
    let warnings: Vec<Problem> = aggregate.warnings().map(|warning| Problem::file("", warning)).collect();
    annotate::warn(&warnings);
    let name = Path::new(stem).file_name().unwrap_or_default().to_string_lossy();
    let name = match row.conc.points() {
        [_] => format!("agg_{name}.json"),
        _ => format!("agg_{name}_conc{conc}.json"),
    };
    let mut text = serde_json::to_vec_pretty(aggregate.json())?;
    text.push(b'\n');
    write(out, &name, &text)?;
    print(&[aggregate.json().clone()], json)
}

/// The concurrency of the replay in a folder: the row's only one, or that of the folder's name.
fn concurrency(folder: &Path, row: &Row) -> Result<u64, Problem> {
    if let [only] = row.conc.points() {
        return Ok(*only);
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let named = name.strip_prefix("conc_").and_then(|conc| conc.parse().ok());
    named.filter(|conc| row.conc.points().contains(conc)).ok_or_else(|| {
        let points: Vec<String> = row.conc.points().iter().map(u64::to_string).collect();
        let message = format!("the job replays at {}, and `{name}` is none of them", points.join(", "));
        Problem::file("", message).hint("name one folder after another, each called `conc_<N>`")
    })
}

/// Takes the aggregates that an agentic job's script left among some files; `None` where it left none.
///
/// # Errors
/// Every problem of every file; the others are written.
pub(super) fn take_left(files: &[PathBuf], row: &Row, out: &Path, json: bool) -> anyhow::Result<Option<()>> {
    if row.scenario_type() != ScenarioType::AgenticCoding {
        return Ok(None);
    }
    let mut found = Vec::new();
    for path in files.iter().filter(|path| path.symlink_metadata().is_ok()) {
        found.extend(Left::read(path).map_err(Problems::from)?.map(|left| (path, left)));
    }
    if found.is_empty() {
        return Ok(None);
    }
    let (mut problems, mut taken) = (Problems::default(), Vec::new());
    for (path, left) in found {
        if let Err(more) = left.check(row) {
            problems.extend(more);
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        write(out, &format!("agg_{name}"), left.bytes())?;
        taken.push(serde_json::from_slice(left.bytes())?);
    }
    print(&taken, json)?;
    problems.into_result()?;
    Ok(Some(()))
}

fn write(out: &Path, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let target = out.join(name);
    file::write_atomic(&target, bytes).with_context(|| format!("`{}` cannot be written", target.display()))
}

fn print(aggregates: &[Value], json: bool) -> anyhow::Result<()> {
    if output::wants_json(json) {
        return output::json(&aggregates);
    }
    let cells = |aggregate: &Value| {
        let text = |name: &str| aggregate[name].as_str().unwrap_or("-").to_owned();
        let metrics: RequestMetrics = serde_json::from_value(aggregate["request_metrics"].clone()).unwrap_or_default();
        let metrics = metrics.flat();
        let mut cells = vec![text("infmax_model_prefix"), text("hw"), aggregate["conc"].to_string()];
        let number = |(name, _): (&str, &str)| metrics.get(name).map_or("-".to_owned(), |value| format!("{value:.3}"));
        cells.extend(SHOWN.map(number));
        cells
    };
    let mut header = vec!["Model", "Hardware", "Conc"];
    header.extend(SHOWN.map(|(_, heading)| heading));
    let rows: Vec<Vec<String>> = aggregates.iter().map(cells).collect();
    output::text(&output::table(&header, &rows))
}
