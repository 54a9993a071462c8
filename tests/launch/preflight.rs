//! Bad nodes: found before anything is started, and named.

use std::time::{Duration, Instant};

use super::support::{Host, run, throughput};

const BUSY: &str = "echo '0, 71234'; for i in 1 2 3 4 5 6 7; do echo \"$i, 12\"; done";
const IDLE: &str = "for i in 0 1 2 3 4 5 6 7; do echo \"$i, 12\"; done";

fn host(gpus: &str) -> Host {
    let host = Host::new(&format!(
        "{{ backend: container, runtime: docker, gpus: {gpus}, mounts: [{{ host: /nowhere, container: /models }}] }}"
    ));
    host.script("touch \"$HOST/started\"");
    host.tool(
        "docker",
        "case $1 in image|manifest) exit \"${IMAGE_CODE:-0}\";; run) touch \"$HOST/started\";; esac",
    );
    host
}

/// Launches, expects the preflight to fail, and gives its message.
fn refused(host: &Host, more: &[&str]) -> String {
    let done = run(&mut host.launch(&throughput(), more));
    assert_eq!(done.code, Some(71), "{}", done.stderr);
    assert!(!host.file("started").exists(), "nothing was started");
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    assert!(
        done.stderr.contains(&format!("node `{}`", name.trim())),
        "{}",
        done.stderr
    );
    done.stderr
}

#[test]
fn gpus_must_be_empty() {
    let host = host("nvidia");
    host.tool("nvidia-smi", BUSY);
    let said = refused(&host, &[]);
    assert!(
        said.contains("GPU 0 holds 71234 MiB") && !said.contains("GPU 1"),
        "{said}"
    );
}

#[test]
fn gpus_must_be_there() {
    let host = host("nvidia");
    host.tool("nvidia-smi", "echo '0, 4'");
    assert!(refused(&host, &[]).contains("nvidia-smi lists 1 GPU, the job takes 8"));
    host.tool("nvidia-smi", "echo 'Unable to determine the device handle'");
    assert!(refused(&host, &[]).contains("`Unable to determine the device handle`"));
    host.tool("nvidia-smi", "echo 'driver mismatch'; exit 9");
    assert!(refused(&host, &[]).contains("exited with code 9: driver mismatch"));
}

#[test]
fn a_node_that_hangs_does_not_eat_the_job() {
    let host = host("nvidia");
    host.tool("nvidia-smi", "trap '' TERM; sleep 100");
    let started = Instant::now();
    let said = refused(&host, &["--preflight-seconds", "1"]);
    assert!(said.contains("does not answer"), "{said}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[test]
fn amds_tool_is_understood_in_both_forms() {
    let gpu = |used: u64| {
        format!(
            r#"{{"gpu": 0, "mem_usage": {{"total_vram": {{"value": 196288, "unit": "MB"}}, "used_vram": {{"value": {used}, "unit": "MB"}}}}}}"#
        )
    };
    let all = |first: u64| {
        std::iter::once(gpu(first))
            .chain((1..8).map(|_| gpu(283)))
            .collect::<Vec<_>>()
            .join(",")
    };
    let host = host("amd");
    for (text, busy) in [
        (format!("[{}]", all(150_000)), true),
        (format!(r#"{{"gpu_data": [{}]}}"#, all(150_000)), true),
        (format!("[{}]", all(283)), false),
    ] {
        host.tool("amd-smi", &format!("echo '{text}'"));
        if busy {
            assert!(refused(&host, &[]).contains("GPU 0 holds 150000 MiB"));
        } else {
            // Past the preflight the job runs, and leaves no result.
            assert_eq!(host.run(&throughput()).code, Some(73));
        }
    }
}

#[test]
fn everything_wrong_with_a_node_is_said_at_once() {
    let host = host("nvidia");
    host.tool("nvidia-smi", BUSY);
    let done = run(host
        .launch(&throughput(), &[])
        .env("IMAGE_CODE", "1")
        .env("MODEL_PATH", "/models/model"));
    assert_eq!(done.code, Some(71), "{}", done.stderr);
    for part in [
        "GPU 0 holds",
        "the image `engine:1` is not here and cannot be reached",
        "the model's folder `/nowhere/model` cannot be read",
        "3 problems",
    ] {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
}

#[test]
fn a_port_that_is_taken_is_said_before_the_server_starts() {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let host = Host::with_server("touch started; sleep 60", "true", &format!(", port: {port}"));
    let said = refused(&host, &[]);
    assert!(said.contains(&format!("port {port} of the server is taken")), "{said}");
}

#[test]
fn programs_of_the_cluster_must_be_there() {
    let host = Host::new("{ backend: local, server-command: [no-such-engine, serve] }");
    let said = refused(&host, &[]);
    assert!(
        said.contains("the program `no-such-engine` of the runner's cluster is not here"),
        "{said}"
    );
    assert!(said.contains("has no client for it"), "{said}");
}

#[test]
fn an_idle_node_passes() {
    let host = host("nvidia");
    host.tool("nvidia-smi", IDLE);
    assert_eq!(
        host.run(&throughput()).code,
        Some(73),
        "it starts, and leaves no result"
    );
    assert!(host.file("started").exists());
}

#[test]
fn a_runner_without_a_cluster_is_refused() {
    let host = host("none");
    let done = run(&mut host.launch(&throughput(), &["--runner-name", "b300-x_0"]));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("no cluster starts jobs on the runner `b300-x_0`"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("`h200-x`"), "{}", done.stderr);
}
