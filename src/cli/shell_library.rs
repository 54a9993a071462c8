//! `sweepctl shell-library`: the functions that launch scripts call.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::output;
use crate::files;

/// The library: one file, which scripts source, of a part for each thing that they do.
pub(crate) const TEXT: &str = concat!(
    include_str!("../shell_library/job.sh"),
    include_str!("../shell_library/helpers.sh"),
    include_str!("../shell_library/gpus.sh"),
    include_str!("../shell_library/serving.sh"),
    include_str!("../shell_library/evals.sh"),
    include_str!("../shell_library/replays.sh"),
);

/// `sweepctl shell-library`
#[derive(Debug, Args)]
#[command(after_help = "\
Launch scripts source it as benchmarks/benchmark_lib.sh; `sweepctl init` writes it there. See docs/shell-library.md.

Example:
  sweepctl shell-library --output benchmarks/benchmark_lib.sh")]
pub(crate) struct ShellLibrary {
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ShellLibrary {
    /// Prints or writes it.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let Some(path) = &self.output else {
            return output::text(TEXT);
        };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        files::write_atomic(path, TEXT.as_bytes()).with_context(|| format!("{} cannot be written", path.display()))
    }
}
