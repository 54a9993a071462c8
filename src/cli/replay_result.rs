//! `sweepctl result process` of agentic jobs: a replay is read, or the aggregate that a script left is taken.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use super::{annotate, output};
use crate::config::problem::{Problem, Problems};
use crate::config::types::{NodeKind, ScenarioType};
use crate::matrix::row::Row;
use crate::step::replay::expected::{self, Expected};
use crate::step::replay::left::Left;
use crate::step::replay::published::RequestMetrics;
use crate::step::replay::{self, places};
use crate::step::results::file;

/// The metrics of the table, and their headings.
const SHOWN: [(&str, &str); 5] = [
    ("tput_per_gpu", "Tokens/s/GPU"),
    ("output_tput_per_gpu", "Output tokens/s/GPU"),
    ("input_tput_per_gpu", "Input tokens/s/GPU"),
    ("median_ttft", "Median TTFT s"),
    ("median_intvty", "Median interactivity"),
];

/// Where an aggregate comes from.
pub(super) enum Source {
    /// A file that a script left.
    Left(PathBuf, Box<Left>),
    /// The folder of a replay at a concurrency.
    Raw(PathBuf, u64),
}

/// Where aggregates go, and how they are shown.
pub(super) struct Target<'a> {
    /// The job's row.
    pub row: &'a Row,
    /// The folder to write to.
    pub out: &'a Path,
    /// The folder for pictures of raw replays; none are drawn without.
    pub plots: Option<&'a Path>,
    /// Print JSON, also on a terminal.
    pub json: bool,
}

/// The replay in a folder that was named: at the row's only concurrency, or that of the folder's name.
///
/// # Errors
/// A folder whose name says none of the row's concurrencies.
pub(super) fn named(folder: &Path, row: &Row) -> Result<Source, Problem> {
    if let [only] = row.conc.points() {
        return Ok(Source::Raw(folder.to_owned(), *only));
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let conc = name.strip_prefix("conc_").and_then(|conc| conc.parse().ok());
    let conc = conc.filter(|conc| row.conc.points().contains(conc)).ok_or_else(|| {
        let points: Vec<String> = row.conc.points().iter().map(u64::to_string).collect();
        let message = format!("the job replays at {}, and `{name}` is none of them", points.join(", "));
        Problem::file("", message).hint("name one folder after another, each called `conc_<N>`")
    })?;
    Ok(Source::Raw(folder.to_owned(), conc))
}

/// Of every concurrency of an agentic job what its script left in the workspace, else the raw replay that lies there.
/// None at all where there is neither.
///
/// # Errors
/// Results that cannot be read, and concurrencies that left nothing while others did.
pub(super) fn of_job(row: &Row, stem: &Path) -> Result<Vec<Source>, Problems> {
    if row.scenario_type() != ScenarioType::AgenticCoding {
        return Ok(Vec::new());
    }
    let workspace = stem.parent().unwrap_or(Path::new(""));
    let (mut found, mut problems, mut missing) = (Vec::new(), Problems::default(), Problems::default());
    for conc in row.conc.points() {
        let end = match row.node_kind() {
            NodeKind::Single => String::new(),
            NodeKind::Multi => format!("_conc{conc}"),
        };
        let mut name = stem.as_os_str().to_owned();
        name.push(format!("{end}.json"));
        let path = PathBuf::from(name);
        let left = match path.symlink_metadata() {
            Ok(_) => Left::read(&path),
            Err(_) => Ok(None),
        };
        match (left, places::of_point(workspace, row, *conc)) {
            (Err(problem), _) => problems.push(problem),
            (Ok(Some(left)), _) => found.push(Source::Left(path, Box::new(left))),
            (Ok(None), Some(folder)) => found.push(Source::Raw(folder, *conc)),
            (Ok(None), None) => {
                let name = file::shown(&path);
                let message = format!("{name}: there is neither the aggregate nor the raw replay at {conc}");
                missing.push(Problem::file(&name, message).hint("see the log of the replay at that concurrency"));
            }
        }
    }
    if !found.is_empty() {
        problems.extend(missing);
    }
    problems.into_result()?;
    Ok(found)
}

/// The aggregates that an agentic job's script left among some files.
///
/// # Errors
/// Files that cannot be read.
pub(super) fn among(files: &[PathBuf], row: &Row) -> Result<Vec<Source>, Problem> {
    if row.scenario_type() != ScenarioType::AgenticCoding {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for path in files.iter().filter(|path| path.symlink_metadata().is_ok()) {
        found.extend(Left::read(path)?.map(|left| Source::Left(path.clone(), Box::new(left))));
    }
    Ok(found)
}

impl Target<'_> {
    /// Writes `agg_<name>.json` of each: a left one under its own name, a raw one under the result's, in jobs of several
    /// concurrencies with `_conc<N>` behind.
    ///
    /// # Errors
    /// Every problem of every replay; the aggregates of the others are written.
    pub(super) fn publish(&self, sources: Vec<Source>, stem: &str) -> anyhow::Result<()> {
        let (mut problems, mut published) = (Problems::default(), Vec::new());
        for source in sources {
            let made = match &source {
                Source::Left(path, left) => self.take(path, left),
                Source::Raw(folder, conc) => self.read(folder, *conc, stem),
            };
            match made {
                Ok(aggregate) => published.push(aggregate),
                Err(error) => problems.extend(error.downcast::<Problems>()?),
            }
        }
        // A list has no room for problems: with --json they are what is printed. A table without a row says nothing.
        let is_whole = problems.0.is_empty();
        if is_whole || (!self.json && (!published.is_empty() || output::wants_json(false))) {
            print(&published, self.json)?;
        }
        problems.into_result()?;
        Ok(())
    }

    fn take(&self, path: &Path, left: &Left) -> anyhow::Result<Value> {
        left.check(self.row)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        write(self.out, &format!("agg_{name}"), left.bytes())?;
        Ok(serde_json::from_slice(left.bytes())?)
    }

    fn read(&self, folder: &Path, conc: u64, stem: &str) -> anyhow::Result<Value> {
        let hub = expected::hub_cache(|name| std::env::var_os(name));
        let replay = replay::process(folder, self.row, conc, &Expected::read(hub.as_deref()))?;
        let aggregate = &replay.aggregate;
        let warnings: Vec<Problem> = aggregate.warnings().map(|warning| Problem::file("", warning)).collect();
        annotate::warn(&warnings);
        let name = Path::new(stem).file_name().unwrap_or_default().to_string_lossy();
        let name = match self.row.conc.points() {
            [_] => name.into_owned(),
            _ => format!("{name}_conc{conc}"),
        };
        let mut text = serde_json::to_vec_pretty(aggregate.json())?;
        text.push(b'\n');
        write(self.out, &format!("agg_{name}.json"), &text)?;
        if let Some(plots) = self.plots {
            let topology = &self.row.topology;
            let title = format!("{} on {}, concurrency {conc}", topology.model_prefix, topology.runner);
            for (end, svg) in replay.plots(&title) {
                write(plots, &format!("{name}_{end}"), svg.as_bytes())?;
            }
        }
        Ok(aggregate.json().clone())
    }
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
