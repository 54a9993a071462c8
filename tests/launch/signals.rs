//! What ends a launch ends all that it started.

use std::time::Duration;

use super::support::{Host, assert_gone, cancel, lives, run, signal, start, throughput, wait_for_lines};

#[test]
fn a_closed_terminal_and_its_like_leave_nothing_behind() {
    for (name, code) in [("-HUP", 129), ("-QUIT", 131), ("-TERM", 143)] {
        let host = Host::with_script("trap '' HUP\necho $$ > \"$HOST/pids\"\nwhile :; do sleep 0.1; done");
        let mut child = start(&host.launch(&throughput(), &[]));
        let pids = wait_for_lines(&host.file("pids"), 1);
        // Nobody reads what it shows any more.
        drop((child.stdout.take(), child.stderr.take()));
        signal(child.id(), name);
        assert_eq!(child.wait().expect("an end").code(), Some(code), "{name}");
        assert_gone(&pids);
    }
}

#[test]
fn what_nohup_set_aside_stays_so() {
    let host = Host::with_script("echo $$ > \"$HOST/pids\"\nwhile :; do sleep 0.1; done");
    let launch = host.launch(&throughput(), &[]);
    let mut command = std::process::Command::new("nohup");
    command
        .arg(launch.get_program())
        .args(launch.get_args())
        .current_dir(host.at());
    for (name, value) in launch.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let child = start(&command);
    let pids = wait_for_lines(&host.file("pids"), 1);
    signal(child.id(), "-HUP");
    std::thread::sleep(Duration::from_millis(500));
    assert!(lives(&pids[0]), "the launch went on");
    let (_, done) = cancel(child);
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    assert_gone(&pids);
}

/// A process that has neither the launch's mark nor its group nor its session, and whose parent is gone.
const SHED: &str =
    "env -i setsid -f bash -c 'echo $$ >> '\"$HOST\"'/pids; trap \"\" TERM HUP; while :; do sleep 0.2; done'";

#[test]
fn a_process_that_shed_its_environment_is_found_by_descent() {
    let host = Host::with_script(&format!(
        "{SHED}\nwhile [ ! -s \"$HOST/pids\" ]; do sleep 0.05; done\nexit 3"
    ));
    let done = run(&mut host.launch(&throughput(), &[]));
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert_gone(&wait_for_lines(&host.file("pids"), 1));
}

#[test]
fn so_is_one_of_a_launch_that_is_cancelled() {
    let host = Host::with_script(&format!("{SHED}\nsleep 60"));
    let child = start(&host.launch(&throughput(), &[]));
    let pids = wait_for_lines(&host.file("pids"), 1);
    let (took, done) = cancel(child);
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    assert!(took < Duration::from_secs(7), "{took:?}");
    assert_gone(&pids);
}
