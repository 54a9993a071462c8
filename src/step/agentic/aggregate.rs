//! The aggregate of a replay, and its pictures: what `result process --replay` makes of the same folder.

use std::path::Path;

use serde_json::Value;

use crate::config::problem::{Problem, Problems};
use crate::files;
use crate::matrix::row::Row;
use crate::step::replay::expected::{self, Expected};
use crate::step::replay::{self, Replay};

/// A replay that was read.
#[derive(Debug)]
pub(crate) struct Made {
    replay: Replay,
    title: String,
}

/// An aggregate that was written.
#[derive(Debug)]
pub struct Written {
    /// What was written.
    pub json: Value,
    /// What is worth a look.
    pub warnings: Vec<String>,
}

/// Reads the replay in a folder, of a row at one concurrency.
///
/// # Errors
/// Everything that keeps the replay from counting.
pub(crate) fn of(folder: &Path, row: &Row, conc: u64) -> Result<Made, Problems> {
    let hub = expected::hub_cache(|name| std::env::var_os(name));
    let replay = replay::process(folder, row, conc, &Expected::read(hub.as_deref()))?;
    let topology = &row.topology;
    Ok(Made {
        title: format!("{} on {}, concurrency {conc}", topology.model_prefix, topology.runner),
        replay,
    })
}

impl Made {
    /// What is published, as JSON.
    #[must_use]
    pub(crate) fn json(&self) -> &Value {
        self.replay.aggregate.json()
    }

    /// What is worth a look.
    #[must_use]
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.replay.aggregate.warnings().map(str::to_owned).collect()
    }

    /// Pictures of its latencies and lengths: ends of names, and SVG.
    #[must_use]
    pub(crate) fn plots(&self) -> Vec<(&'static str, String)> {
        self.replay.plots(&self.title)
    }

    /// Writes the aggregate to a file, and the pictures into the folder of the replay.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn write(&self, out: &Path, folder: &Path) -> Result<Written, Problem> {
        let failed = |path: &Path, error: std::io::Error| {
            Problem::file("", format!("`{}` cannot be written: {error}", path.display()))
        };
        let mut text =
            serde_json::to_vec_pretty(self.json()).map_err(|error| failed(out, std::io::Error::other(error)))?;
        text.push(b'\n');
        files::write_atomic(out, &text).map_err(|error| failed(out, error))?;
        for (end, svg) in self.plots() {
            let path = folder.join(end);
            files::write_atomic(&path, svg.as_bytes()).map_err(|error| failed(&path, error))?;
        }
        Ok(Written {
            json: self.json().clone(),
            warnings: self.warnings(),
        })
    }
}
