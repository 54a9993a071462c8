//! A fleet: the runners, and what starts jobs on them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::clusters::Clusters;
use super::engines::Engines;
use super::problem::Problems;
use super::runners::Runners;
use super::source::Source;

/// What the files of a fleet say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fleet {
    /// Which runners a label stands for.
    pub runners: Runners,
    /// What starts jobs on them.
    pub clusters: Clusters,
    /// What serves rows without a launch script.
    pub engines: Engines,
    /// Where all of it was read.
    pub files: FleetFiles,
}

/// Where the files of a fleet are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetFiles {
    /// The runners file.
    pub runners: PathBuf,
    /// The clusters file.
    pub clusters: PathBuf,
    /// The engines file; the built-in one unless given.
    pub engines: Option<PathBuf>,
}

impl Fleet {
    /// Reads the files of a fleet, and holds them against each other.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn read(files: &FleetFiles) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let source = |path: &Path| Source::read(path).map(Arc::new).map_err(Problems::from);
        let runners = source(&files.runners).and_then(|source| Runners::load(&source));
        let runners = runners.map_err(|more| problems.extend(more)).ok();
        let clusters = source(&files.clusters).and_then(|source| Clusters::load(&source, runners.as_ref()));
        let clusters = clusters.map_err(|more| problems.extend(more)).ok();
        let engines = match &files.engines {
            Some(path) => source(path).and_then(|source| Engines::load(&source)),
            None => Engines::built_in(),
        };
        let engines = engines.map_err(|more| problems.extend(more)).ok();
        match (runners, clusters, engines) {
            (Some(runners), Some(clusters), Some(engines)) => Ok(Self {
                runners,
                clusters,
                engines,
                files: files.clone(),
            }),
            _ => Err(problems),
        }
    }
}
