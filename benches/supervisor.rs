//! Lines a second through the supervisor, against a plain pipe: `cargo bench --bench supervisor`.
//!
//! The aim: an engine that prints as fast as it can is not slowed down by being watched.

use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use divan::Bencher;
use divan::counter::ItemsCount;
use sweepctl::process::{self, Cancellation, Watch};

/// Lines of each run.
const LINES: usize = 1_000_000;

fn main() {
    divan::main();
}

/// A child that prints lines like those of a server's log.
fn child() -> Command {
    let mut command = Command::new("bash");
    let script =
        format!("yes 'INFO 11-29 20:55:07 metrics.py:417] Avg prompt throughput: 8192.0 tokens/s' | head -n {LINES}");
    command.args(["-c", &script]);
    command
}

/// The child's lines read from a pipe, without anything else.
#[divan::bench(sample_count = 5)]
fn plain_pipe(bencher: Bencher) {
    bencher.counter(ItemsCount::new(LINES)).bench(|| {
        let mut child = child().stdout(Stdio::piped()).spawn().expect("bash starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let count = lines.map_while(Result::ok).map(black_box).count();
        child.wait().expect("an end");
        assert_eq!(count, LINES);
    });
}

/// The same through the supervisor.
fn supervised(bencher: Bencher, watch: &Watch) {
    bencher.counter(ItemsCount::new(LINES)).bench(|| {
        let mut count = 0;
        let outcome = process::run(child(), watch, &Cancellation::never(), &mut |line| {
            black_box(line);
            count += 1;
        });
        assert!(outcome.expect("bash starts").is_success());
        assert_eq!(count, LINES);
    });
}

#[divan::bench(sample_count = 5)]
fn watched(bencher: Bencher) {
    supervised(bencher, &Watch::default());
}

/// With everything that a launch on GitHub Actions does: a log, secrets, no workflow commands.
#[divan::bench(sample_count = 5)]
fn kept_masked_and_neutralised(bencher: Bencher) {
    let folder = tempfile::tempdir().expect("a folder");
    let watch = Watch {
        log: Some(folder.path().join("launch.log")),
        mask: sweepctl::secrets::Mask::new(&["hf_aSecretToken", "another-secret"]),
        neutralise: true,
        ..Watch::default()
    };
    supervised(bencher, &watch);
}
