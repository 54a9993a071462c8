//! Whether a job that prints nothing goes on: its logs and what it records grow.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, SystemTime};

use crate::process::Cancellation;
use crate::step::places::AGENTIC_FOLDER;
use crate::step::stage::{self, SERVER_LOGS};

/// The folders of the workspace that jobs record into, all that lies in them.
const FOLDERS: [&str; 4] = [AGENTIC_FOLDER, "results", "LOGS", "benchmark_logs"];
/// The longest pause between two looks.
const LONGEST: Duration = Duration::from_secs(30);
/// The shortest.
const SHORTEST: Duration = Duration::from_millis(50);

/// What shows progress: how many files there are, their bytes, and the time of the newest. The samples of GPU monitors
/// are left out: they grow whatever the job does.
type Look = (usize, u64, Option<SystemTime>);

/// Runs a job; where silence is limited, changes of its files are progress too.
pub(super) fn watched<T>(
    workspace: &Path,
    limit: Option<Duration>,
    cancel: &Cancellation,
    run: impl FnOnce() -> T,
) -> T {
    let Some(limit) = limit else { return run() };
    let pause = (limit / 10).clamp(SHORTEST, LONGEST);
    std::thread::scope(|scope| {
        let (done, is_done) = channel::<()>();
        scope.spawn(move || {
            let mut last = look(workspace);
            while is_done.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let now = look(workspace);
                if now != last {
                    cancel.progress();
                    last = now;
                }
            }
        });
        let result = run();
        drop(done);
        result
    })
}

fn look(workspace: &Path) -> Look {
    let mut files = stage::find(workspace, &SERVER_LOGS, false).files;
    for folder in FOLDERS.map(|name| workspace.join(name)) {
        files.extend(stage::find(&folder, &["*"], true).files);
    }
    let is_sample = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b"gpu_metrics")
    };
    let mut seen: Look = (0, 0, None);
    for metadata in files
        .iter()
        .filter(|file| !is_sample(file))
        .filter_map(|file| file.symlink_metadata().ok())
    {
        seen.0 += 1;
        seen.1 = seen.1.saturating_add(metadata.len());
        seen.2 = seen.2.max(metadata.modified().ok());
    }
    seen
}
