//! Waiting until GPUs have let go of an earlier job's memory.

use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use regex::Regex;

use crate::config::problem::Problem;
use crate::process::Cancellation;

/// The share of memory, in percent, that a GPU without a job may have in use.
const CLEAN: u64 = 10;

/// What `rocm-smi --showmemuse` says of one GPU's memory.
#[allow(clippy::expect_used, reason = "a constant pattern")]
static USED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"GPU Memory Allocated \(VRAM%\): ([0-9]+)").expect("a pattern"));

/// Asks `rocm-smi` until the fullest GPU is at 10 percent or less.
///
/// # Errors
/// The time ran out, or the wait was cancelled.
pub(crate) fn wait_until_clean(
    pause: Duration,
    timeout: Duration,
    cancel: &Cancellation,
    show: &mut dyn FnMut(&str),
) -> Result<(), Problem> {
    let started = Instant::now();
    loop {
        let Some(fullest) = fullest() else {
            show("rocm-smi says nothing of the GPUs' memory: it is taken for free");
            return Ok(());
        };
        if fullest <= CLEAN {
            show(&format!("the GPUs' memory is free: the fullest is at {fullest}%"));
            return Ok(());
        }
        if started.elapsed() + pause > timeout {
            let seconds = started.elapsed().as_secs();
            let message = format!("a GPU's memory is still at {fullest}% after {seconds} s");
            return Err(Problem::file("", message).hint("end what an earlier job left running on the node"));
        }
        show(&format!(
            "waiting for an earlier job's GPU memory: the fullest is at {fullest}%"
        ));
        if !cancel.sleep(pause) {
            return Err(Problem::file("", "the wait for the GPUs' memory was ended"));
        }
    }
}

fn fullest() -> Option<u64> {
    let output = Command::new("rocm-smi")
        .arg("--showmemuse")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    USED.captures_iter(&text)
        .filter_map(|found| found[1].parse().ok())
        .max()
}
