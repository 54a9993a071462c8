//! Ending a background service with everything that it started: workers that outlive their parent keep GPUs busy.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Process;

/// How often the service is looked at.
const TICK: Duration = Duration::from_millis(100);

/// Asks a process to end, waits, and kills what is left of it and of its descendants. Those are noted before: once their
/// parent is gone, nobody knows whose they were. Numbers that are no living process of others are left alone.
pub(crate) fn stop(pid: i32, label: &str, grace: Duration, show: &mut dyn FnMut(&str)) {
    let Some(root) = Process::find(pid).filter(|root| root.pid > 1) else {
        return;
    };
    let mut tree = vec![root];
    let all = Process::all();
    let mut at = 0;
    while at < tree.len() {
        let parent = tree[at].pid;
        let own = i32::try_from(std::process::id()).unwrap_or_default();
        tree.extend(
            all.iter()
                .filter(|process| process.parent == parent && process.pid != own),
        );
        at += 1;
    }
    show(&format!("stopping {label} (PID={pid})"));
    send(&root, Signal::SIGTERM);
    let end = Instant::now() + grace;
    while root.lives() && Instant::now() < end {
        std::thread::sleep(TICK);
    }
    for process in tree.iter().filter(|process| process.lives()) {
        show(&format!("killing what is left of {label}: PID={}", process.pid));
        send(process, Signal::SIGKILL);
    }
    show(&format!("stopped {label}"));
}

fn send(process: &Process, signal: Signal) {
    // One that has ended is no error.
    let _ = kill(Pid::from_raw(process.pid), signal);
}
