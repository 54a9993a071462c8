//! A result that cannot be read.

use std::path::Path;

use crate::config::problem::Problem;
use crate::step::results::file;

/// The problem of a result under the name that it is shown by; `reason` is the end of a sentence about it.
pub(super) fn problem(name: &str, path: &Path, reason: &str) -> Problem {
    let hint = file::way_out(path, file::MAX_BYTES).unwrap_or("see the log of its eval");
    Problem::file(name, format!("{name} {reason}")).hint(hint)
}
