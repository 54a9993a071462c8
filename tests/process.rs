//! The process supervisor with real processes.

use std::process::Command;
use std::time::{Duration, Instant};

use sweepctl::process::{Cancellation, Ending, Outcome, Stop, Watch, run};

fn shell(script: &str, watch: &Watch) -> (Outcome, Vec<String>) {
    let mut command = Command::new("bash");
    command.args(["-c", script]);
    let mut lines = Vec::new();
    let outcome = run(command, watch, &Cancellation::never(), &mut |line| {
        lines.push(line.to_owned())
    });
    (outcome.expect("bash starts"), lines)
}

/// Whether a process ends by itself within moments: it was killed, and the system takes its time.
fn ends(pid: &str) -> bool {
    let end = Instant::now() + Duration::from_secs(3);
    while lives(pid) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Whether a process lives; one that waits to be reaped does not.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

#[test]
fn codes_and_signals_are_told_apart() {
    let (outcome, lines) = shell("echo one; echo two >&2; echo three; exit 7", &Watch::default());
    assert_eq!((outcome.ending, outcome.stop), (Ending::Code(7), None));
    assert_eq!(lines, ["one", "two", "three"]);
    assert_eq!(outcome.to_string(), "exited with code 7");
    let (outcome, _) = shell("kill -KILL $$", &Watch::default());
    assert_eq!(outcome.ending, Ending::Signal(9));
    assert_eq!(outcome.to_string(), "was killed by SIGKILL");
    assert!(shell("true", &Watch::default()).0.is_success());
}

#[test]
fn a_deadline_ends_the_whole_group_however_stubborn() {
    let watch = Watch {
        deadline: Some(Duration::from_millis(300)),
        grace: Duration::from_millis(300),
        ..Watch::default()
    };
    let started = Instant::now();
    let (outcome, lines) = shell("trap '' TERM; sleep 60 & echo $!; while :; do sleep 60; done", &watch);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(outcome.stop, Some(Stop::Deadline));
    assert!(!outcome.is_success());
    assert!(ends(&lines[0]), "the grandchild is gone");
}

#[test]
fn what_a_child_leaves_behind_is_ended_and_not_waited_for() {
    let started = Instant::now();
    let (outcome, lines) = shell("sleep 60 & echo $!; exit 0", &Watch::default());
    assert!(outcome.is_success());
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert!(ends(&lines[0]), "the background process is gone");
}

#[test]
fn output_is_harmless_masked_and_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("child.log");
    let watch = Watch {
        log: Some(log.clone()),
        mask: sweepctl::secrets::Mask::new(&["hub-token-123"]),
        neutralise: true,
        ..Watch::default()
    };
    let (_, lines) = shell(
        "echo '::set-env name=A::b'; echo 'token hub-token-123.'; printf '1%%\\r2%%\\n'",
        &watch,
    );
    assert_eq!(lines, [": :set-env name=A::b", "token ***.", "1%", "2%"]);
    let kept = std::fs::read_to_string(log).expect("a log");
    assert_eq!(kept, "::set-env name=A::b\ntoken ***.\n1%\n2%\n");
}

#[test]
fn a_gigabyte_of_output_loses_nothing() {
    let mut command = Command::new("bash");
    command.args([
        "-c",
        "yes \"$(printf 'x%.0s' {1..199})\" | head -c 1000000000; echo the end",
    ]);
    let (mut count, mut bytes, mut last) = (0_u64, 0_u64, String::new());
    let outcome = run(command, &Watch::default(), &Cancellation::never(), &mut |line| {
        count += 1;
        bytes += line.len() as u64 + 1;
        line.clone_into(&mut last);
    });
    assert!(outcome.expect("bash starts").is_success());
    assert_eq!((count, bytes, last.as_str()), (5_000_001, 1_000_000_008, "the end"));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let command = Command::new("no-such-program");
    let error = run(command, &Watch::default(), &Cancellation::never(), &mut |_| {}).expect_err("no program");
    assert!(
        error.to_string().contains("`no-such-program` cannot be started"),
        "{error}"
    );
}

#[test]
fn a_part_is_cancelled_with_the_whole_and_not_the_other_way_round() {
    let whole = Cancellation::never();
    let (part, timed) = (whole.part(None), whole.part(Some(Duration::from_millis(50))));
    assert!(part.signal().is_none() && timed.signal().is_none());
    assert!(!timed.sleep(Duration::from_secs(5)), "its deadline wakes it");
    assert!(timed.is_late() && part.signal().is_none() && whole.signal().is_none());
    part.cancel();
    assert!(part.signal().is_some() && whole.signal().is_none());
    let other = whole.part(None);
    whole.cancel();
    assert!(other.signal().is_some() && other.part(None).signal().is_some());
}
