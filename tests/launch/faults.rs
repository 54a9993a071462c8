//! What goes wrong on real hosts: cancelled steps, stubborn children, floods of output, full disks, killed launches.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::support::{
    Host, RUNNER, assert_gone, benchmark, cancel, lives, run, signal, start, throughput, wait_for_lines,
};

use crate::eval::support::write_json;

/// A child that ignores both signals, with a grandchild that does too, one that left the group, and one of a shell's
/// own background jobs.
const STUBBORN: &str = r#"
trap '' INT TERM
(trap '' INT TERM; echo $BASHPID >> "$HOST/pids"; while :; do sleep 1; done) &
setsid bash -c 'trap "" INT TERM; echo $$ >> "$HOST/pids"; while :; do sleep 1; done' &
echo $$ >> "$HOST/pids"
while :; do sleep 1; done
"#;

#[test]
fn a_cancelled_step_releases_everything_in_time_however_stubborn() {
    let host = Host::with_script(STUBBORN);
    let child = start(&host.launch(&throughput(), &[]));
    let pids = wait_for_lines(&host.file("pids"), 3);
    let (took, done) = cancel(child);
    assert!(took < Duration::from_secs(7), "{took:?}");
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    assert_gone(&pids);
}

#[test]
fn a_cancelled_local_job_stops_its_server_and_its_client_in_time() {
    let host = Host::with_server(
        r#"trap '' INT TERM; echo $$ >> pids; "$SWEEPCTL" mock-server --port "$0" & echo $! >> pids; while :; do sleep 1; done"#,
        r"trap '' INT TERM; echo $$ >> pids; while :; do sleep 1; done",
        "",
    );
    let child = start(&host.launch(&throughput(), &[]));
    let pids = wait_for_lines(&host.file("pids"), 3);
    let (took, done) = cancel(child);
    assert!(took < Duration::from_secs(7), "{took:?}");
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    assert_gone(&pids);
}

#[test]
fn a_polite_child_is_not_waited_for() {
    let host = Host::with_script(
        "trap 'echo saved > \"$HOST/saved\"; exit 0' INT\necho $$ > \"$HOST/pids\"\nwhile :; do sleep 0.1; done",
    );
    let child = start(&host.launch(&throughput(), &[]));
    wait_for_lines(&host.file("pids"), 1);
    let (took, done) = cancel(child);
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    assert_eq!(host.read("saved"), "saved\n");
}

#[test]
fn release_ends_what_a_killed_launch_left_and_nothing_of_another_runner() {
    let host = Host::with_script(STUBBORN);
    let mut first = start(&host.launch(&throughput(), &[]));
    let own = wait_for_lines(&host.file("pids"), 3);
    std::fs::remove_file(host.file("pids")).expect("a file");
    // The other's name starts with the first's.
    let mut other = start(&host.launch(&throughput(), &["--runner-name", "h200-x_01"]));
    let others = wait_for_lines(&host.file("pids"), 3);
    for launch in [&mut first, &mut other] {
        signal(launch.id(), "-KILL");
        launch.wait().expect("an end");
    }
    assert!(
        own.iter().chain(&others).all(|pid| lives(pid)),
        "a kill alone leaves them"
    );
    let done = host.release(&["--envelope", "envelope.json"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_gone(&own);
    for pid in &own {
        assert!(
            done.stdout.contains(&format!("process {pid} ")),
            "{pid} in {}",
            done.stdout
        );
    }
    assert!(others.iter().all(|pid| lives(pid)), "they are another runner's");
    // The next launch of a runner clears what it finds, too.
    host.script("cp saved.json \"$RESULT_FILENAME.json\"");
    std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
    let done = run(&mut host.launch(&throughput(), &["--runner-name", "h200-x_01"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_gone(&others);
    assert!(done.stderr.contains("of an earlier job"), "{}", done.stderr);
    let done = host.release(&["--runner-name", RUNNER]);
    assert!(
        done.stdout.is_empty() || done.stdout.contains("\"released\":[]"),
        "{}",
        done.stdout
    );
}

#[test]
fn two_launches_of_one_runner_do_not_take_each_other_for_leftovers() {
    let host = Host::with_script("echo $$ > \"$HOST/pids\"; sleep 60");
    let child = start(&host.launch(&throughput(), &[]));
    let pids = wait_for_lines(&host.file("pids"), 1);
    let done = host.run(&throughput());
    assert_eq!(done.code, Some(70), "{}", done.stderr);
    assert!(
        done.stderr.contains("another launch of this runner still runs"),
        "{}",
        done.stderr
    );
    assert!(lives(&pids[0]));
    cancel(child);
}

#[test]
fn a_job_is_ended_at_its_deadline() {
    let host = Host::with_script("echo $$ > \"$HOST/pids\"; sleep 60");
    let started = Instant::now();
    let done = run(&mut host.launch(&throughput(), &["--deadline-minutes", "0.02"]));
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(done.stderr.contains("ended at its deadline"), "{}", done.stderr);
    assert_gone(&wait_for_lines(&host.file("pids"), 1));
}

#[test]
fn a_job_that_hangs_is_ended_and_one_that_writes_is_not() {
    let host = Host::new("{ backend: script, idle-minutes: 5 }");
    let started = Instant::now();
    // The samples of a GPU monitor are no progress.
    host.script("echo $$ > \"$HOST/pids\"; for i in {1..300}; do sleep 0.2; echo $i >> gpu_metrics.csv; done");
    let done = run(&mut host.launch(&throughput(), &["--idle-minutes", "0.025"]));
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    assert!(
        done.stderr.contains("printed nothing and none of its files"),
        "{}",
        done.stderr
    );
    assert_gone(&wait_for_lines(&host.file("pids"), 1));
    // Neither output nor a log for longer than the limit, but each alone in turn.
    host.script(
        r#"for i in {1..8}; do sleep 0.3; echo "$i"; done
mkdir -p results; for i in {1..8}; do sleep 0.3; echo "$i" >> results/run.json; done
for i in {1..8}; do sleep 0.3; echo "$i" >> server.log; done
cp saved.json "$RESULT_FILENAME.json""#,
    );
    write_json(host.at(), "saved.json", &benchmark(json!({})));
    let done = run(&mut host.launch(&throughput(), &["--idle-minutes", "0.025"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    // The cluster's own limit is far.
    host.script("sleep 2; cp saved.json \"$RESULT_FILENAME.json\"");
    assert_eq!(host.run(&throughput()).code, Some(0));
    let refused = Host::new("{ backend: script, idle-minutes: 7201 }").run(&throughput());
    assert!(refused.stderr.contains("idle-minutes"), "{}", refused.stderr);
}

#[test]
fn a_client_that_hangs_is_ended_with_its_server() {
    let host = Host::with_server(
        "echo $$ >> \"$HOST/pids\"; exec \"$SWEEPCTL\" mock-server --port \"$0\"",
        "echo $$ >> \"$HOST/pids\"; exec sleep 300",
        "",
    );
    let started = Instant::now();
    let done = run(&mut host.launch(&throughput(), &["--idle-minutes", "0.05"]));
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(
        done.stderr.contains("printed nothing and none of its files"),
        "{}",
        done.stderr
    );
    assert_gone(&wait_for_lines(&host.file("pids"), 2));
}

#[test]
fn a_flood_of_output_and_an_endless_line_take_little_memory() {
    let host = Host::with_script(
        r#"
yes "$(printf 'x%.0s' {1..999})" | head -c 100000000
head -c 50000000 /dev/zero | tr '\0' y
echo
echo the end
grep VmHWM "/proc/$PPID/status" > "$HOST/peak"
cp saved.json "$RESULT_FILENAME.json"
"#,
    );
    std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
    let status = host
        .launch(&throughput(), &[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    assert!(status.expect("an end").success());
    let peak = host.read("peak");
    let kib: u64 = peak
        .split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .expect("a number");
    assert!(kib < 128 << 10, "{peak}");
    let log = std::fs::metadata(host.file("launch.log")).expect("a log");
    assert!(
        (100_000_000..101_000_000).contains(&log.len()),
        "the endless line is cut: {}",
        log.len()
    );
    let end = Command::new("tail")
        .args(["-n", "2"])
        .arg(host.file("launch.log"))
        .output();
    let end = String::from_utf8_lossy(&end.expect("tail runs").stdout).into_owned();
    assert!(end.ends_with("\nthe end\n"), "{}", &end[end.len().saturating_sub(80)..]);
    assert!(end.contains(" bytes more]"), "{}", &end[end.len().saturating_sub(80)..]);
}

#[test]
fn no_output_is_a_command_of_the_runner() {
    let host = Host::with_script(
        r#"
echo '::set-output name=a::b'
echo '  ::add-mask::e'
echo '::stop-commands::x' >&2
printf 'progress\r::error::forged\n'
echo 'text ##[add-path]/evil'
printf '\033[31mred\033[0m \xff\xfe broken\n'
echo "token $HF_TOKEN"
cp saved.json "$RESULT_FILENAME.json"
"#,
    );
    std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
    let mut command = host.launch(&throughput(), &[]);
    let done = run(command
        .env("GITHUB_ACTIONS", "true")
        .env("HF_TOKEN", "hf_aVerySecretToken"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    for line in done.stderr.lines().chain(done.stdout.lines()) {
        assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "{line}");
    }
    for part in [
        ": :set-output name=a::b",
        "text # #[add-path]/evil",
        "red",
        "\u{fffd}\u{fffd} broken",
        "token ***",
    ] {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
    assert!(!host.read("launch.log").contains("hf_aVery"), "no secret in a log");
}

#[test]
fn the_runners_files_and_tokens_are_kept_from_the_child() {
    let host = Host::with_script("env > \"$HOST/child.env\"; exit 1");
    let mut command = host.launch(&throughput(), &[]);
    for name in ["GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"] {
        command.env(name, host.file("runner-file"));
    }
    run(command
        .env("GITHUB_TOKEN", "ghs_secret")
        .env("ACTIONS_RUNTIME_TOKEN", "secret-1"));
    let seen = host.read("child.env");
    for name in [
        "GITHUB_ENV",
        "GITHUB_OUTPUT",
        "GITHUB_PATH",
        "GITHUB_STEP_SUMMARY",
        "GITHUB_TOKEN",
        "ACTIONS_RUNTIME",
    ] {
        assert!(!seen.contains(name), "{name} in {seen}");
    }
}

#[test]
fn a_full_disk_is_a_failure_of_the_infrastructure() {
    let script = "seq 1 100000; cp saved.json \"$RESULT_FILENAME.json\"";
    let server = r#"seq 1 100000; exec "$SWEEPCTL" mock-server --port "$0""#;
    let client = r#"cp saved.json "$INFMAX_WORKSPACE/$RESULT_FILENAME.json""#;
    for (host, log) in [
        (Host::with_script(script), "launch.log"),
        (Host::with_server(server, client, ""), "server.log"),
    ] {
        std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
        let launch = host.launch(&throughput(), &[]);
        // No file may get larger than 64 KiB.
        let mut limited = Command::new("bash");
        limited
            .args(["-c", "ulimit -f 64; exec \"$@\"", "bash"])
            .arg(launch.get_program());
        limited.args(launch.get_args()).current_dir(host.at());
        for (name, value) in launch.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        let done = run(&mut limited);
        assert_eq!(
            done.code,
            Some(70),
            "{}",
            done.stderr.chars().rev().take(500).collect::<String>()
        );
        assert!(done.stderr.contains(&format!("{log}` cannot be written")), "{log}");
    }
}
