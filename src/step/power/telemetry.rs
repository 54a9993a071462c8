//! The samples of a monitor of GPUs, as CSV with a line a GPU and time.

use std::cmp::Ordering;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::LazyLock;

use indexmap::IndexMap;
use regex::Regex;

use super::time::Clock;
use super::window::Window;
use crate::step::results::file;

/// What a column of power is not called.
const NO_DRAW: [&str; 4] = ["limit", "cap", "max", "min"];
/// What the column that names a GPU is called.
const IDENTITIES: [&str; 6] = ["index", "gpu", "gpu_id", "gpu_index", "card", "device"];
/// Samples count up to so many seconds before the window and after it.
const MARGIN: f64 = 3.0;

/// The first number in a cell of power.
#[allow(clippy::expect_used, reason = "a constant pattern")]
static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"-?[0-9]+(?:\.[0-9]+)?").expect("a pattern"));

/// One time, in seconds since 1970, and the power then, in watts.
pub(super) type Sample = (f64, f64);

/// The order of GPUs by their names: whole numbers by value, then texts.
pub(super) fn by_gpu(a: &str, b: &str) -> Ordering {
    let key = |name: &str| {
        let number: Option<u128> = name.parse().ok();
        (number.is_none(), number)
    };
    key(a).cmp(&key(b)).then_with(|| a.cmp(b))
}

/// The lines of a file, with what could be read of each.
#[derive(Debug)]
pub(super) struct Rows(Vec<Row>);

#[derive(Debug)]
struct Row {
    time: Option<f64>,
    power: Option<f64>,
    gpu: String,
}

/// What of a file is used.
#[derive(Debug, Default)]
pub(super) struct Usable {
    /// By GPU, sorted, in the file's order.
    pub samples: IndexMap<String, Vec<Sample>>,
    /// What is wrong with lines.
    pub reasons: Vec<&'static str>,
}

/// Reads a file.
///
/// # Errors
/// The reasons for which no line of it can be.
pub(super) fn read(path: &Path) -> Result<Rows, Vec<&'static str>> {
    let bytes = file::read(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => vec!["telemetry_file_missing"],
        _ => vec!["telemetry_file_unreadable"],
    })?;
    if bytes.is_empty() {
        return Err(vec!["telemetry_file_empty"]);
    }
    let lines = table(&bytes).ok_or_else(|| vec!["telemetry_file_unreadable"])?;
    let header = lines.first().map(Vec::as_slice).unwrap_or_default();
    let columns = [
        ("timestamp_column_missing", column(header, |name| name.contains("time"))),
        ("power_column_missing", column(header, is_power)),
        (
            "gpu_identity_column_missing",
            column(header, |name| IDENTITIES.contains(&name)),
        ),
    ];
    let [(_, Some(time)), (_, Some(power)), (_, Some(gpu))] = columns else {
        let missing = columns.iter().filter(|(_, column)| column.is_none());
        return Err(missing.map(|(reason, _)| *reason).collect());
    };
    let clock = Clock::local();
    let cell = |line: &[String], column: usize| line.get(column).cloned().unwrap_or_default();
    let rows = lines[1..].iter().map(|line| Row {
        time: clock.read(&cell(line, time)),
        power: watts(&cell(line, power)),
        gpu: cell(line, gpu),
    });
    Ok(Rows(rows.collect()))
}

/// The trimmed cells of every line that is not empty; `None` where the file is no text.
pub(super) fn table(bytes: &[u8]) -> Option<Vec<Vec<String>>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(bytes);
    let lines: Result<Vec<_>, _> = reader.records().collect();
    let cells = |line: csv::StringRecord| -> Vec<String> { line.iter().map(str::to_owned).collect() };
    Some(lines.ok()?.into_iter().map(cells).collect())
}

/// The first column whose name, in small letters, fits.
pub(super) fn column(header: &[String], fits: impl Fn(&str) -> bool) -> Option<usize> {
    header.iter().position(|name| fits(&name.to_lowercase()))
}

fn is_power(name: &str) -> bool {
    name.contains("power") && !NO_DRAW.iter().any(|word| name.contains(word))
}

/// The power in a cell such as `412.34 W`; `[N/A]` holds none.
fn watts(cell: &str) -> Option<f64> {
    let power: f64 = NUMBER.find(cell)?.as_str().parse().ok()?;
    (power.is_finite() && power >= 0.0).then_some(power)
}

impl Rows {
    /// The samples in and around a window.
    #[must_use]
    pub(super) fn within(&self, window: &Window) -> Usable {
        let mut samples: IndexMap<String, Vec<Sample>> = IndexMap::new();
        let mut reasons = Vec::new();
        let (first, last) = (window.start_time_unix - MARGIN, window.end_time_unix + MARGIN);
        for row in &self.0 {
            let reason = match (row.time, row.power) {
                // Wherever it stands: nobody knows when it was taken.
                (None, _) => "invalid_timestamp_sample",
                (Some(time), _) if time < first || time > last => continue,
                (Some(_), None) => "invalid_power_sample",
                (Some(_), Some(_)) if row.gpu.is_empty() => "gpu_identity_missing",
                (Some(time), Some(power)) => {
                    samples.entry(row.gpu.clone()).or_default().push((time, power));
                    continue;
                }
            };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        samples.sort_by(|a, _, b, _| by_gpu(a, b));
        Usable { samples, reasons }
    }

    /// Every readable sample, by GPU.
    #[must_use]
    pub(super) fn all(&self) -> IndexMap<&str, Vec<Sample>> {
        let mut samples: IndexMap<&str, Vec<Sample>> = IndexMap::new();
        for row in &self.0 {
            if let (Some(time), Some(power), false) = (row.time, row.power, row.gpu.is_empty()) {
                samples.entry(&row.gpu).or_default().push((time, power));
            }
        }
        samples
    }
}
