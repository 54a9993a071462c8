//! Where the raw replays of a job lie in its workspace.

use std::path::{Path, PathBuf};

use super::files::ARTIFACTS;
use crate::matrix::row::Row;
use crate::step::places;

/// The folder of a job's replay at one concurrency: `conc_<N>` in one of the folders that raw results lie in or, of a
/// job that replays at one concurrency only, that folder itself. No link is followed.
#[must_use]
pub(crate) fn of_point(workspace: &Path, row: &Row, conc: u64) -> Option<PathBuf> {
    let only = matches!(row.conc.points(), [_]);
    let found = places::replay_folders(row.node_kind()).into_iter().flat_map(|place| {
        let own = format!("{place}/conc_{conc}");
        std::iter::once(own).chain(only.then(|| place.to_owned()))
    });
    found
        .filter(|place| is_folder(workspace, &format!("{place}/{ARTIFACTS}")))
        .map(|place| workspace.join(place))
        .next()
}

/// Whether a path below a workspace is a folder, and nothing on the way to it a link.
fn is_folder(workspace: &Path, path: &str) -> bool {
    let mut at = workspace.to_owned();
    path.split('/').all(|part| {
        at.push(part);
        at.symlink_metadata().is_ok_and(|found| found.is_dir())
    })
}
