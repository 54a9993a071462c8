//! What the functions of the shell library do outside the shell: see docs/shell-library.md.
//!
//! Each module is one concern of a launch script: a server that gets ready, GPUs that are watched, throughput that is
//! measured, an eval's files, processes that have to go.

pub(crate) mod bench;
pub(crate) mod eval_files;
pub(crate) mod gpus;
pub(crate) mod monitor;
pub(crate) mod ready;
pub(crate) mod tree;

/// A process, which its number and the time of its start tell from later ones of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    /// Its number.
    pub pid: i32,
    /// Its parent's number.
    pub parent: i32,
    started: u64,
}

impl Process {
    /// The living process of a number; one that waits to be reaped is none.
    #[must_use]
    pub(crate) fn find(pid: i32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses and may hold anything: fields are counted from its end.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let parent = fields.next()?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        Some(Self { pid, parent, started })
    }

    /// Whether it still lives.
    #[must_use]
    pub(crate) fn lives(&self) -> bool {
        Self::find(self.pid).is_some_and(|now| now.started == self.started)
    }

    /// Every living process.
    #[must_use]
    pub(crate) fn all() -> Vec<Self> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| Self::find(entry.file_name().to_str()?.parse().ok()?))
            .collect()
    }
}
