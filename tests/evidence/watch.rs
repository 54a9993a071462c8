//! `sweepctl agentic watch`: runs that are healthy, and runs that are not, by their logs and a live endpoint.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::write;
use crate::support::{self, terminal};

const WARMUP: &str = "2026-11-30 21:00:00.100 - PhaseRunner - NOTICE - Phase warmup (warmup) started | target: 40 requests\n\
                      2026-11-30 21:01:00.100 - PhaseRunner - INFO - Phase warmup progress | returned=20/40 | sent=24 | \
                      in_flight=4 | errors=0 | elapsed=60.0s\n";
const PROFILING: &str = "2026-11-30 21:02:00.100 - PhaseRunner - NOTICE - Phase warmup (warmup) complete | completed=40, \
                         cancelled=0, errors=0 | elapsed=120.00s\n\
                         2026-11-30 21:02:00.200 - PhaseRunner - NOTICE - Phase profiling (profiling) started | \
                         phase_index=0 | target: 3600.0s duration\n";
const TOTALS: &str = "2026-11-30 21:12:00.200 - records_manager - INFO - [realtime 10m00s profiling]\n   rps=2.0 (avg 2.0)  \
                      tput_in=900/s  tput_out=400/s  done=1,200 ok=1,190 err=10\n";

fn vllm(running: u64, waiting: u64, kv: f64, output: f64) -> String {
    format!(
        "INFO 11-30 21:05:00 [loggers.py:127] Engine 000: Avg prompt throughput: 300.0 tokens/s, Avg generation \
         throughput: {output:.1} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: \
         {kv:.1}%, Prefix cache hit rate: 90.0%\n"
    )
}

struct Logs(TempDir);

impl Logs {
    fn new(files: &[(&str, &str)]) -> Self {
        let logs = Self(tempfile::tempdir().expect("a folder"));
        for (name, text) in files {
            write(logs.path().join(name), text);
        }
        logs
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = support::sweepctl(self.path());
        command.args(["agentic", "watch", "--interval", "0.05"]).args(args);
        command
    }

    /// The exit code, the report, and what was said.
    fn look(&self, args: &[&str]) -> (i32, Value, String) {
        let output = self.command(args).output().expect("it runs");
        let said = support::stderr(&output);
        let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        (output.status.code().expect("a code"), report, said)
    }

    #[track_caller]
    fn disqualified(&self, args: &[&str], what: &str) -> Value {
        let (code, report, said) = self.look(args);
        assert_eq!(code, 1, "{report:#}");
        assert!(said.contains(what), "{what} in {said}");
        assert!(said.contains("gh run cancel"), "{said}");
        report
    }
}

#[test]
fn a_healthy_run_has_its_phase_and_its_time() {
    let client = format!("{WARMUP}{PROFILING}{TOTALS}");
    let worker = vllm(8, 0, 40.0, 400.0) + &vllm(8, 0, 41.0, 410.0);
    let logs = Logs::new(&[("benchmark.out", &client), ("n1_decode_w0.out", &worker)]);
    let (code, report, said) = logs.look(&["benchmark.out", "n1_decode_w0.out"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(report["phase"]["name"], "profiling");
    assert_eq!(report["phase"]["elapsed"], 600.0);
    assert_eq!(report["phase"]["remaining"], 3000.0);
    assert_eq!((&report["completed"], &report["errors"]), (&1200.into(), &10.into()));
    assert_eq!(report["verdicts"], serde_json::json!([]));
    let backend = &report["backends"][0];
    assert_eq!((&backend["role"], &backend["samples"]), (&"decode".into(), &2.into()));
    assert_eq!(backend["last"]["kv"], 0.41);
}

#[test]
fn what_is_slow_is_no_reason_to_stop() {
    let logs = Logs::new(&[
        ("n1_prefill_w0.out", "INFO Loading weights: 10 %\n"),
        ("benchmark.out", ""),
    ]);
    let (code, report, _) = logs.look(&["n1_prefill_w0.out", "benchmark.out"]);
    assert_eq!((code, &report["verdicts"][0]["weight"]), (0, &"slow".into()));
    let logs = Logs::new(&[("benchmark.out", WARMUP)]);
    let (code, report, _) = logs.look(&["benchmark.out"]);
    assert_eq!((code, &report["verdicts"][0]["weight"]), (0, &"slow".into()));
    assert_eq!(report["phase"]["remaining"], 60.0, "20 of 40 in 60 s");
}

#[test]
fn a_run_that_is_stuck_says_so_by_its_counts_or_by_its_silence() {
    let beat = |elapsed: u64| {
        format!("Phase warmup progress | returned=0/2 | sent=0 | in_flight=0 | errors=0 | elapsed={elapsed}.1s\n")
    };
    let logs = Logs::new(&[("benchmark.out", &(beat(30) + &beat(360) + &beat(690)))]);
    let report = logs.disqualified(&["benchmark.out"], "stuck: 0 requests sent and 0 back for 660 s");
    assert_eq!(report["verdicts"][0]["at"]["line"], 3);
    // The same counts for less than that are none.
    let (code, _, _) = logs.look(&["benchmark.out", "--stuck-after", "700"]);
    assert_eq!(code, 0);
    let logs = Logs::new(&[("benchmark.out", PROFILING)]);
    let old = std::time::SystemTime::now() - Duration::from_secs(900);
    let file = std::fs::File::options()
        .append(true)
        .open(logs.path().join("benchmark.out"))
        .expect("open");
    file.set_modified(old).expect("set");
    logs.disqualified(&["benchmark.out"], "no log was written to for 90");
}

#[test]
fn faults_are_named_with_their_line() {
    let oom = "INFO fine\nTraceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate\n";
    let logs = Logs::new(&[("benchmark.out", PROFILING), ("n1_decode_w0.out", oom)]);
    let report = logs.disqualified(&["benchmark.out", "n1_decode_w0.out"], "out of memory (line 3)");
    assert_eq!(report["verdicts"][0]["at"]["file"], "n1_decode_w0.out");
    let died = "RuntimeError: NCCL error: unhandled system error\n";
    let logs = Logs::new(&[("benchmark.out", PROFILING), ("n1_decode_w0.out", died)]);
    logs.disqualified(&["benchmark.out", "n1_decode_w0.out"], "a collective failed");
}

#[test]
fn a_full_cache_with_a_growing_queue_is_saturated() {
    let saturated = vllm(64, 3, 99.5, 400.0) + &vllm(64, 9, 99.9, 400.0) + &vllm(64, 30, 100.0, 390.0);
    let logs = Logs::new(&[("benchmark.out", PROFILING), ("server.log", &saturated)]);
    logs.disqualified(&["benchmark.out", "server.log"], "its queue grew from 3 to 30");
    // A full cache alone is what a cache is for.
    let full = vllm(64, 3, 99.5, 400.0) + &vllm(64, 3, 99.9, 400.0) + &vllm(64, 2, 100.0, 390.0);
    let logs = Logs::new(&[("benchmark.out", PROFILING), ("server.log", &full)]);
    assert_eq!(logs.look(&["benchmark.out", "server.log"]).0, 0);
}

#[test]
fn more_requests_for_the_same_tokens_are_a_plateau() {
    let series = |grows: bool| -> String {
        let output = |n: u64| if grows { 100.0 * (n + 1) as f64 } else { 400.0 };
        (0..12).map(|n| vllm(8 + 4 * n, n, 60.0, output(n))).collect()
    };
    let logs = Logs::new(&[("benchmark.out", PROFILING), ("server.log", &series(false))]);
    logs.disqualified(&["benchmark.out", "server.log"], "has plateaued");
    let logs = Logs::new(&[("benchmark.out", PROFILING), ("server.log", &series(true))]);
    assert_eq!(logs.look(&["benchmark.out", "server.log"]).0, 0);
}

#[test]
fn half_a_registration_disqualifies_once_the_replay_runs() {
    let waiting = "Model is not ready, waiting for 1 prefills and 0 decodes. Have 1 prefills and 1 decodes.\n";
    let logs = Logs::new(&[("sweep_1.log", waiting), ("benchmark.out", "")]);
    let (code, report, _) = logs.look(&["sweep_1.log", "benchmark.out"]);
    assert_eq!(
        (code, &report["verdicts"][0]["weight"]),
        (0, &"slow".into()),
        "it is still loading"
    );
    let logs = Logs::new(&[("sweep_1.log", waiting), ("benchmark.out", PROFILING)]);
    logs.disqualified(&["sweep_1.log", "benchmark.out"], "1 workers never registered");
    let ready = format!("{waiting}Model is ready. Have 2 prefills and 1 decodes.\n");
    let logs = Logs::new(&[("sweep_1.log", &ready), ("benchmark.out", PROFILING)]);
    assert_eq!(logs.look(&["sweep_1.log", "benchmark.out"]).0, 0);
}

#[test]
fn counts_of_the_client_disqualify() {
    let errors = TOTALS.replace("ok=1,190 err=10", "ok=1,000 err=200");
    let logs = Logs::new(&[("benchmark.out", &format!("{PROFILING}{errors}"))]);
    logs.disqualified(&["benchmark.out"], "200 of 1200 requests failed");
    // A tenth is allowed.
    let errors = TOTALS.replace("ok=1,190 err=10", "ok=1,080 err=120");
    let logs = Logs::new(&[("benchmark.out", &format!("{PROFILING}{errors}"))]);
    assert_eq!(logs.look(&["benchmark.out"]).0, 0);
    let none = "Phase profiling (profiling) complete | completed=0, cancelled=3, errors=0 | elapsed=3600.00s\n";
    let logs = Logs::new(&[("benchmark.out", &format!("{PROFILING}{none}"))]);
    logs.disqualified(&["benchmark.out"], "no request completed");
}

#[test]
fn an_end_is_githubs_slurms_or_the_benchmarks() {
    for (line, by, code) in [
        (
            "Phase profiling (profiling) complete | completed=40, cancelled=0, errors=0 | elapsed=3600.00s\n",
            "benchmark",
            0,
        ),
        (
            "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-30T21:10:00 DUE TO TIME LIMIT ***\n",
            "slurm",
            1,
        ),
        (
            "2026-11-30T21:10:00.0000000Z ##[error]The operation was canceled.\n",
            "github",
            1,
        ),
    ] {
        let logs = Logs::new(&[("benchmark.out", &format!("{PROFILING}{line}"))]);
        let (found, report, said) = logs.look(&["benchmark.out"]);
        assert_eq!((found, &report["ended"]["by"]), (code, &by.into()), "{said}");
    }
}

/// A Prometheus endpoint on loopback; each answer has more work done and a longer queue.
fn endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().flatten().enumerate() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 4096]);
            let body = format!(
                "vllm:num_requests_running{{engine=\"0\"}} 8\nvllm:num_requests_waiting{{engine=\"0\"}} {n}\n\
                 vllm:kv_cache_usage_perc{{engine=\"0\"}} 0.995\nvllm:generation_tokens_total{{engine=\"0\"}} {}\n",
                100 * n
            );
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    format!("http://{address}/metrics")
}

#[test]
fn a_live_endpoint_is_sampled_and_recorded() {
    let logs = Logs::new(&[("benchmark.out", PROFILING)]);
    let decode = format!("decode={}", endpoint());
    let args = [
        "benchmark.out",
        "--metrics",
        decode.as_str(),
        "--samples",
        "2",
        "--record",
        "watch.json",
    ];
    let (code, report, said) = logs.look(&args);
    assert_eq!(code, 0, "two samples are no saturation: {said}");
    assert_eq!(
        (&report["backends"][0]["role"], &report["backends"][0]["samples"]),
        (&"decode".into(), &2.into())
    );
    assert_eq!(report["backends"][0]["first"]["waiting"], 0.0);
    assert_eq!(report["backends"][0]["last"]["waiting"], 1.0);
    let kept: Value =
        serde_json::from_slice(&std::fs::read(logs.path().join("watch.json")).expect("kept")).expect("JSON");
    assert_eq!(kept, report);
    let decode = format!("decode={}", endpoint());
    logs.disqualified(
        &["benchmark.out", "--metrics", &decode, "--samples", "4"],
        "decode is saturated",
    );
}

#[test]
fn an_endpoint_that_does_not_answer_disqualifies_once_the_replay_runs() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let dead = format!("http://{}/metrics", listener.local_addr().expect("an address"));
    drop(listener);
    let logs = Logs::new(&[("benchmark.out", PROFILING)]);
    logs.disqualified(
        &["benchmark.out", "--metrics", &dead],
        "does not answer while the replay runs",
    );
    let logs = Logs::new(&[("benchmark.out", "")]);
    assert_eq!(
        logs.look(&["benchmark.out", "--metrics", &dead]).0,
        0,
        "it may still start"
    );
}

#[test]
fn logs_that_grow_and_rotate_are_read_on() {
    let logs = Logs::new(&[("benchmark.out", WARMUP)]);
    let mut command = logs.command(&["benchmark.out", "--samples", "80"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    std::thread::sleep(Duration::from_millis(500));
    std::fs::rename(logs.path().join("benchmark.out"), logs.path().join("benchmark.out.1")).expect("rotated");
    write(logs.path().join("benchmark.out"), PROFILING);
    std::thread::sleep(Duration::from_millis(500));
    let mut file = std::fs::File::options()
        .append(true)
        .open(logs.path().join("benchmark.out"))
        .expect("open");
    file.write_all(TOTALS.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("it ends");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(
        (&report["phase"]["name"], &report["completed"]),
        (&"profiling".into(), &1200.into()),
        "{report:#}"
    );
}

#[test]
fn logs_that_cannot_be_read_are_refused() {
    let logs = Logs::new(&[]);
    std::os::unix::fs::symlink("/etc/hostname", logs.path().join("link.log")).expect("a link");
    let output = logs.command(&["link.log"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        support::stderr(&output).contains("link.log cannot be read"),
        "{}",
        support::stderr(&output)
    );
    let output = logs
        .command(&["a.log", "--metrics", "prefill=ftp://x"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn on_a_terminal_it_is_a_page() {
    let oom = vllm(8, 1, 40.0, 400.0) + &vllm(9, 2, 55.0, 380.0) + "torch.OutOfMemoryError: CUDA out of memory\n";
    let client = format!("{PROFILING}{TOTALS}");
    let logs = Logs::new(&[("benchmark.out", &client), ("n1_decode_w0.out", &oom)]);
    let args = ["benchmark.out", "n1_decode_w0.out", "--run", "4242"];
    // Findings are not wrapped: their lines may be longer than the terminal is wide.
    let text = terminal::shown(&logs.command(&args), 120);
    insta::with_settings!({
        snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!("agentic_watch_disqualified", text);
    });
    let worker = vllm(8, 0, 40.0, 400.0) + &vllm(8, 0, 41.0, 410.0);
    let logs = Logs::new(&[("benchmark.out", &client), ("n1_decode_w0.out", &worker)]);
    terminal::held(
        "agentic_watch_healthy",
        &logs.command(&["benchmark.out", "n1_decode_w0.out"]),
    );
}

#[test]
fn logs_that_are_not_there_are_named_and_nothing_is_waited_for_where_none_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let watch = |logs: &[&str]| {
        let args = [&["agentic", "watch", "--interval", "0.01"], logs].concat();
        support::run(folder.path(), args)
    };
    let nothing = watch(&["a.log", "b.log"]);
    assert_eq!(nothing.status.code(), Some(1));
    let said = support::stderr(&nothing);
    assert!(
        said.contains("the log `a.log` is not found") && said.contains("`b.log`"),
        "{said}"
    );
    write(folder.path().join("a.log"), WARMUP);
    let one = watch(&["a.log", "b.log"]);
    assert_eq!(one.status.code(), Some(0));
    let said = support::stderr(&one);
    assert!(
        said.contains("the log `b.log` is not found") && !said.contains("`a.log`"),
        "{said}"
    );
}
