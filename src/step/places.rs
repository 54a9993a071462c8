//! Where the results of a job lie: one list for the check after a launch, the upload, the gate and clean.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::config::types::NodeKind;

/// The folder of an eval's results, in a workspace or where a Slurm job writes.
pub(crate) const EVAL_FOLDER: &str = "eval_results";
/// The folder of raw replays, in the workspace.
pub(crate) const AGENTIC_FOLDER: &str = "agentic_results";
/// The folder that launch scripts leave raw replays of one node in.
pub(crate) const SCRIPTS_FOLDER: &str = "results";
/// The same of multi-node jobs.
pub(crate) const SCRIPTS_MULTI_NODE: &str = "LOGS/agentic";
/// What the names of folders of AMD's Slurm jobs start with; their numbers follow.
const SLURM_JOB: &str = "slurm_job-";
/// File systems that count whole seconds, or two, make a new file look older than it is.
pub(crate) const CLOCK_SLACK: Duration = Duration::from_secs(2);

/// The variable that later steps read the time of a launch from, in seconds since 1970.
pub(crate) const LAUNCHED: &str = "SWEEPCTL_LAUNCHED";

/// The time that [`LAUNCHED`] holds; `None` where it holds none.
#[must_use]
pub(crate) fn launched(text: &str) -> Option<SystemTime> {
    let seconds: u32 = text.trim().parse().ok()?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.into()))
}

/// The folders that a job's programs write below.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// The workspace.
    pub workspace: PathBuf,
    /// The folder that srt-slurm's containers write to.
    pub logs: PathBuf,
    /// The folder that AMD's Slurm jobs write to.
    pub run_logs: PathBuf,
}

impl Places {
    /// Those of a workspace, with the folders that Slurm's jobs write to on every node.
    #[must_use]
    pub(crate) fn of(workspace: &Path) -> Self {
        Self {
            workspace: workspace.to_owned(),
            logs: PathBuf::from("/logs"),
            run_logs: PathBuf::from("/run_logs"),
        }
    }

    /// The folders that an eval's results may lie in, the workspace first. Of AMD's Slurm jobs it is the newest by
    /// number that is younger than the launch, where that is known.
    #[must_use]
    pub(crate) fn evals(&self, launched: Option<SystemTime>) -> Vec<PathBuf> {
        let own = [
            self.workspace.clone(),
            self.workspace.join(EVAL_FOLDER),
            self.logs.join(EVAL_FOLDER),
        ];
        own.into_iter().chain(self.slurm_job(launched)).collect()
    }

    fn slurm_job(&self, launched: Option<SystemTime>) -> Option<PathBuf> {
        let jobs = std::fs::read_dir(&self.run_logs).ok()?.flatten();
        let numbered = jobs.filter_map(|entry| {
            let number: u64 = entry.file_name().to_str()?.strip_prefix(SLURM_JOB)?.parse().ok()?;
            let folder = entry.path().join(EVAL_FOLDER);
            let metadata = folder.symlink_metadata().ok()?;
            let young = launched.is_none_or(|launched| is_younger(&metadata, launched));
            (metadata.is_dir() && young).then_some((number, folder))
        });
        numbered.max_by_key(|(number, _)| *number).map(|(_, folder)| folder)
    }

    /// The folders that a replay's raw results may lie in.
    #[must_use]
    pub(crate) fn replays(&self, nodes: NodeKind) -> Vec<PathBuf> {
        replay_folders(nodes).map(|folder| self.workspace.join(folder)).to_vec()
    }

    /// The folders of the workspace that hold nothing but results of a job. Those that scripts and launchers write to
    /// have names that a repository may use itself.
    #[must_use]
    pub(crate) fn folders_of_results(&self) -> [PathBuf; 2] {
        [EVAL_FOLDER, AGENTIC_FOLDER].map(|name| self.workspace.join(name))
    }
}

/// The folders that raw results of replays lie in, from the workspace: first our own, then that of scripts on one node
/// or of launchers of several.
#[must_use]
pub(crate) fn replay_folders(nodes: NodeKind) -> [&'static str; 2] {
    match nodes {
        NodeKind::Single => [AGENTIC_FOLDER, SCRIPTS_FOLDER],
        NodeKind::Multi => [AGENTIC_FOLDER, SCRIPTS_MULTI_NODE],
    }
}

/// Whether something was written since a launch.
#[must_use]
pub(crate) fn is_younger(metadata: &std::fs::Metadata, launched: SystemTime) -> bool {
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    modified + CLOCK_SLACK >= launched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_is_a_time_and_what_was_written_two_seconds_before_it_is_of_it() {
        let launch = launched(" 10 ").expect("a time");
        assert_eq!(launch, SystemTime::UNIX_EPOCH + Duration::from_secs(10));
        assert_eq!([launched(""), launched("-1"), launched("1.5")], [None; 3]);
        let file = tempfile::NamedTempFile::new().expect("a file");
        let written = |seconds: u64, nanos: u32| {
            let time = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos);
            file.as_file().set_modified(time).expect("set");
            is_younger(&file.as_file().metadata().expect("there"), launch)
        };
        assert!(written(8, 0) && written(11, 0) && !written(7, 999_000_000));
    }

    #[test]
    fn of_slurms_jobs_the_newest_by_number_counts() {
        let root = tempfile::tempdir().expect("a folder");
        for job in ["slurm_job-99", "slurm_job-100", "slurm_job-x", "other-200"] {
            std::fs::create_dir_all(root.path().join(job).join(EVAL_FOLDER)).expect("folders");
        }
        // A job that left nothing is passed over.
        std::fs::create_dir(root.path().join("slurm_job-101")).expect("a folder");
        let mut places = Places::of(Path::new("/nowhere"));
        places.run_logs = root.path().to_owned();
        let newest = root.path().join("slurm_job-100").join(EVAL_FOLDER);
        assert_eq!(places.evals(None).last(), Some(&newest));
        assert_eq!(places.evals(Some(SystemTime::now())).last(), Some(&newest));
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(places.evals(Some(later)).len(), 3, "older than the launch");
    }
}
