//! Whether the rows that a command gives can run: no GPU is asked for a job that cannot.

use std::path::Path;
use std::sync::Arc;

use super::inputs::{CLUSTERS, ENGINES};
use crate::config::clusters::Clusters;
use crate::config::engines::Engines;
use crate::config::fleet::{Fleet, FleetFiles};
use crate::config::problem::{Problem, Problems};
use crate::config::runners::Runners;
use crate::config::source::Source;
use crate::matrix::row::Row;
use crate::step::launch::runnable;

/// A file of the tree that the rows come from, where it has it.
pub(super) type Read<'a> = dyn Fn(&str) -> Result<Option<Arc<Source>>, Problem> + 'a;

/// Refuses rows that fail for certain.
///
/// # Errors
/// As [`runnable::check`], and files that cannot be read.
pub(super) fn check(rows: &[Row], runners: &Runners, read: &Read<'_>) -> Result<(), Problems> {
    let fleet = fleet(runners, read)?;
    let files = |path: &Path| path.to_str().map_or(Ok(None), read);
    runnable::check(rows, fleet.as_ref(), &files, &[".".into()])
}

/// The fleet; a repository without clusters starts its jobs in a way of its own, of which nothing is known.
fn fleet(runners: &Runners, read: &Read<'_>) -> Result<Option<Fleet>, Problems> {
    let Some(clusters) = read(CLUSTERS)? else {
        return Ok(None);
    };
    let engines = match read(ENGINES)? {
        Some(source) => Engines::load(&source)?,
        None => Engines::built_in()?,
    };
    Ok(Some(Fleet {
        clusters: Clusters::load(&clusters, Some(runners))?,
        runners: runners.clone(),
        engines,
        files: FleetFiles {
            clusters: CLUSTERS.into(),
            ..FleetFiles::default()
        },
    }))
}

/// A file of the work tree.
///
/// # Errors
/// A file that is there and cannot be read.
pub(super) fn work_tree(name: &str) -> Result<Option<Arc<Source>>, Problem> {
    let path = Path::new(name);
    path.exists().then(|| Source::read(path).map(Arc::new)).transpose()
}
