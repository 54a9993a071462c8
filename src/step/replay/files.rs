//! Where a replay's files lie.

use std::path::{Path, PathBuf};

use crate::config::problem::Problem;
use crate::step::results::file::{self, shown};

/// The folder that the client writes to, in the replay's.
pub(crate) const ARTIFACTS: &str = "aiperf_artifacts";
/// One record a request.
pub(crate) const RECORDS: &str = "profile_export.jsonl";
/// The client's own summary.
pub(crate) const SUMMARY: &str = "profile_export_aiperf.json";
/// What was measured of the server.
pub(crate) const SERVER_METRICS: &str = "server_metrics_export.json";

/// A replay's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Files {
    /// The records.
    pub records: PathBuf,
    /// The summary.
    pub summary: PathBuf,
    /// The server's metrics; they may be missing.
    pub server_metrics: PathBuf,
    /// The logs of servers, sorted.
    pub logs: Vec<PathBuf>,
}

/// Finds the files of a replay.
///
/// # Errors
/// A folder that cannot be listed, no records, or no summary.
pub(crate) fn find(replay: &Path) -> Result<Files, Problem> {
    let artifacts = replay.join(ARTIFACTS);
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    if !is_folder(&artifacts) {
        let message = format!("{} holds no folder `{ARTIFACTS}`", shown(replay));
        return Err(Problem::file(&shown(replay), message).hint("name the folder that the replay's client wrote to"));
    }
    let folders = file::walk(&artifacts, 1).map_err(|error| cannot_be_listed(&artifacts, &error))?;
    // The folder itself comes first, then its folders by name.
    let first = |name: &str, hint: &str| {
        let found = folders.iter().find(|folder| folder.has(name));
        found.map(|folder| folder.path.clone()).ok_or_else(|| {
            let message = format!("{} holds no `{name}`", shown(&artifacts));
            Problem::file(&shown(&artifacts), message).hint(hint)
        })
    };
    let records = first(RECORDS, "the client recorded no request: see its log")?;
    let summary = first(
        SUMMARY,
        "the client writes its summary last, so it did not finish: see its log",
    )?;
    Ok(Files {
        server_metrics: records.join(SERVER_METRICS),
        records: records.join(RECORDS),
        summary: summary.join(SUMMARY),
        logs: logs(replay)?,
    })
}

fn logs(replay: &Path) -> Result<Vec<PathBuf>, Problem> {
    let listed = file::walk(replay, 0).map_err(|error| cannot_be_listed(replay, &error))?;
    let is_log = |folder: &&file::Folder| folder.path == replay;
    let folder = listed.iter().find(is_log);
    let named = folder.into_iter().flat_map(|folder| {
        let server = folder.named("server.log", "").filter(|name| *name == "server.log");
        server.chain(folder.named("watchtower-", ".out"))
    });
    Ok(named.map(|name| replay.join(name)).collect())
}

fn cannot_be_listed(folder: &Path, error: &std::io::Error) -> Problem {
    let name = shown(folder);
    Problem::file(&name, format!("{name} cannot be listed: {error}")).hint("make the folder readable")
}
