//! What a killed launch leaves running: every process that it started carries a mark in its environment, which the
//! runner's state folder remembers from before the first of them.
//!
//! A mark, and not a process id: ids are reused, and a process that left its group keeps the mark. What a launch ends
//! itself is found by descent too, since a process may shed its environment.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use sha2::{Digest, Sha256};

use crate::config::problem::Problem;
use crate::matrix::fingerprint::hex;

/// The variable that carries the mark.
pub(crate) const VARIABLE: &str = "SWEEPCTL_LAUNCH_MARK";
/// The file of the state folder that remembers it.
const FILE: &str = "mark";
const STATE_HINT: &str = "set SWEEPCTL_STATE to a folder that outlives the job's steps";
/// How long processes may take to end once they are asked to.
const GRACE: Duration = Duration::from_millis(1500);
/// How long the system may take to end killed ones.
const KILL_TIME: Duration = Duration::from_secs(2);
/// How often they are looked at.
const TICK: Duration = Duration::from_millis(20);

/// A runner's name where only letters, digits, `-`, `_` and `.` may stand; different names stay different.
#[must_use]
pub(crate) fn plain(runner: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !runner.is_empty() && runner.len() <= 100 && !runner.starts_with('.') && runner.chars().all(legal) {
        return runner.to_owned();
    }
    let shown: String = runner.chars().filter(|c| legal(*c)).take(60).collect();
    let hash = &hex(&Sha256::digest(runner.as_bytes()))[..12];
    format!("x-{shown}.{hash}")
}

/// The state folder of a runner: SWEEPCTL_STATE, else `sweepctl` where the user's programs keep their state, and in
/// it the runner's own.
///
/// # Errors
/// No home.
pub(crate) fn state_folder(runner: &str) -> Result<PathBuf, Problem> {
    let variable = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let own = || variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")));
    let parent = variable("SWEEPCTL_STATE").or_else(|| Some(own()?.join("sweepctl")));
    let parent =
        parent.ok_or_else(|| Problem::file("", "there is no state folder: HOME is not set").hint(STATE_HINT))?;
    let folder = parent.join(plain(runner));
    Ok(std::path::absolute(&folder).unwrap_or(folder))
}

/// Makes a state folder where it is missing, for its user alone.
///
/// # Errors
/// It cannot be made.
pub(crate) fn make_state_folder(folder: &Path) -> Result<(), Problem> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| {
        let name = folder.display().to_string();
        Problem::file(&name, format!("the state folder `{name}` cannot be made: {error}")).hint(STATE_HINT)
    })
}

/// Remembers a new mark.
///
/// # Errors
/// A state folder that cannot be written.
pub(crate) fn mark(state: &Path) -> io::Result<()> {
    let word = || RandomState::new().build_hasher().finish();
    std::fs::write(state.join(FILE), format!("{:016x}{:016x}", word(), word()))
}

/// The mark of the launch that runs, or ran last.
#[must_use]
pub(crate) fn current(state: &Path) -> Option<String> {
    let text = std::fs::read_to_string(state.join(FILE)).ok()?;
    (text.len() == 32).then_some(text)
}

/// Makes this process the parent of what its descendants leave behind: one that sheds its environment and its session
/// is still found. Where the system has no such thing, marks alone find what is left.
pub(crate) fn adopt() {
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// Ends every marked process. Says what it ended.
///
/// # Errors
/// A process that does not end.
pub(crate) fn release(state: &Path) -> Result<Vec<String>, Problem> {
    release_within(state, GRACE)
}

/// [`release`], with another time to end in than processes usually get.
///
/// # Errors
/// As [`release`].
pub(crate) fn release_within(state: &Path, grace: Duration) -> Result<Vec<String>, Problem> {
    match current(state) {
        Some(mark) => end(&|| marked(&mark), grace),
        None => Ok(Vec::new()),
    }
}

/// [`release`], and what descends from this process, which must have no child of its own any more.
///
/// # Errors
/// As [`release`].
pub(crate) fn release_own(state: &Path) -> Result<Vec<String>, Problem> {
    let mark = current(state);
    let find = || {
        let mut found = mark.as_deref().map(marked).unwrap_or_default();
        found.extend(descendants());
        found.sort_unstable();
        found.dedup();
        found
    };
    end(&find, GRACE)
}

/// Ends what is found until nothing is.
fn end(find: &dyn Fn() -> Vec<(i32, String)>, grace: Duration) -> Result<Vec<String>, Problem> {
    let found = find();
    let said = found
        .iter()
        .map(|(pid, name)| format!("process {pid} ({name})"))
        .collect();
    let mut left = found;
    for (signal, time) in [(Signal::SIGTERM, grace), (Signal::SIGKILL, KILL_TIME)] {
        let end = Instant::now() + time;
        send(&left, signal);
        while !left.is_empty() && Instant::now() < end {
            std::thread::sleep(TICK);
            left = find();
            if signal == Signal::SIGKILL {
                // One that was just being forked has not seen the first.
                send(&left, signal);
            }
        }
    }
    if left.is_empty() {
        return Ok(said);
    }
    let names: Vec<String> = left.iter().map(|(pid, name)| format!("{pid} ({name})")).collect();
    let message = format!("processes of an earlier launch do not end: {}", names.join(", "));
    Err(Problem::file("", message).hint("they hang in the kernel, as on a broken GPU: restart the node"))
}

fn send(processes: &[(i32, String)], signal: Signal) {
    for (pid, _) in processes {
        // One that has ended is no error.
        let _ = kill(Pid::from_raw(*pid), signal);
    }
}

/// The living processes that carry a mark, with their names.
fn marked(mark: &str) -> Vec<(i32, String)> {
    let needle = format!("{VARIABLE}={mark}");
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let carries = |folder: &Path| {
        let environ = std::fs::read(folder.join("environ")).unwrap_or_default();
        environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == needle.as_bytes())
    };
    let mut found: Vec<(i32, String)> = processes()
        .filter(|(pid, folder)| *pid != own && carries(folder))
        .map(|(pid, folder)| (pid, name_of(&folder)))
        .collect();
    found.sort_unstable();
    found
}

/// Every process of this machine, with its folder.
fn processes() -> impl Iterator<Item = (i32, PathBuf)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

/// A process' short name, as messages show it.
fn name_of(folder: &Path) -> String {
    let name = std::fs::read_to_string(folder.join("comm")).unwrap_or_default();
    name.trim().escape_debug().to_string()
}

/// The living processes that descend from this one, with their names. Those that ended and wait for their parent, as
/// [adopted](adopt) ones wait for this process, are let go.
fn descendants() -> Vec<(i32, String)> {
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let all: Vec<(i32, PathBuf, char, i32)> = processes()
        .filter_map(|(pid, folder)| {
            let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
            // The name before it may hold anything.
            let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
            let (state, parent) = (fields.next()?.chars().next()?, fields.next()?.parse().ok()?);
            Some((pid, folder, state, parent))
        })
        .collect();
    let mut family = vec![own];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        family.extend(all.iter().filter(|(.., of)| *of == parent).map(|(pid, ..)| *pid));
        at += 1;
    }
    let is_over = |state: char| matches!(state, 'Z' | 'X');
    for (pid, _, state, parent) in &all {
        if *parent == own && is_over(*state) {
            let _ = waitpid(Pid::from_raw(*pid), Some(WaitPidFlag::WNOHANG));
        }
    }
    all.into_iter()
        .filter(|(pid, _, state, _)| *pid != own && !is_over(*state) && family.contains(pid))
        .map(|(pid, folder, ..)| (pid, name_of(&folder)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runners_stay_apart() {
        assert_eq!(plain("h200-alder_00"), "h200-alder_00");
        let odd = ["a/b", "a:b", "ab", "..", "", "a b"].map(plain);
        for (at, name) in odd.iter().enumerate() {
            assert!(
                !name.is_empty() && !name.starts_with('.') && !name.contains(['/', ':', ' ']),
                "{name}"
            );
            assert!(!odd[..at].contains(name), "{name}");
        }
    }
}
