//! A runner's host in a folder: a checkout with a cluster, stand-ins on PATH, and a state folder of its own.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::eval::support::{envelope, sweepctl, write_json};

/// What the cache of the hub holds of the envelopes' model.
pub const MODEL: &str = "hub/models--org--stub-7b/snapshots/main";

/// The runner that jobs get.
pub const RUNNER: &str = "h200-x_0";

/// A finished command.
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The host.
pub struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    /// One whose cluster has a backend with settings, in YAML's flow form.
    pub fn new(cluster: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        for name in ["configs", "runners", "bin", "state", MODEL] {
            std::fs::create_dir_all(at.join(name)).expect("a folder");
        }
        let text = format!("labels:\n  h200: [{RUNNER}, h200-x_01]\n");
        std::fs::write(at.join("configs/runners.yaml"), text).expect("a file");
        let text = format!("clusters:\n  h200-x: {cluster}\n");
        std::fs::write(at.join("configs/clusters.yaml"), text).expect("a file");
        Self { folder }
    }

    /// One with the fleet's launch script.
    pub fn with_script(script: &str) -> Self {
        let host = Self::new("{ backend: script }");
        host.script(script);
        host
    }

    /// One whose cluster starts a server by a bash script, which finds the port in $0, and measures with another.
    pub fn with_server(server: &str, client: &str, more: &str) -> Self {
        let list = |script: &str| json!(["bash", "-c", script, "{port}"]);
        let (server, client) = (list(server), list(client));
        Self::new(&format!(
            "{{ backend: local, server-command: {server}, throughput-command: {client}{more} }}"
        ))
    }

    pub fn at(&self) -> &Path {
        self.folder.path()
    }

    pub fn script(&self, text: &str) {
        std::fs::write(self.at().join("runners/launch_h200-x.sh"), text).expect("a file");
    }

    /// A program on PATH.
    pub fn tool(&self, name: &str, text: &str) {
        let path = self.at().join("bin").join(name);
        std::fs::write(&path, format!("#!/usr/bin/env bash\n{text}")).expect("a file");
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("permissions");
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.at().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.file(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The command, with this host's tools, state and checkout.
    pub fn sweepctl(&self, args: &[&str]) -> Command {
        let mut command = sweepctl();
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .args(args)
            .current_dir(self.at())
            .env("PATH", format!("{}:{path}", self.file("bin").display()))
            .env("SWEEPCTL_STATE", self.file("state"))
            .env("SWEEPCTL", env!("CARGO_BIN_EXE_sweepctl"))
            .env("HOST", self.at())
            .env("HF_HUB_CACHE", self.file("hub"))
            .env("HF_ENDPOINT", NOBODY)
            .env("RUNNER_NAME", RUNNER)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// A launch of an envelope.
    pub fn launch(&self, envelope: &Value, more: &[&str]) -> Command {
        write_json(self.at(), "envelope.json", envelope);
        let mut command = self.sweepctl(&["launch", "--envelope", "envelope.json"]);
        command.args(more);
        command
    }

    /// Launches an envelope, and waits for the end.
    pub fn run(&self, envelope: &Value) -> Done {
        run(&mut self.launch(envelope, &[]))
    }

    pub fn release(&self, more: &[&str]) -> Done {
        run(self.sweepctl(&["launch", "--release"]).args(more))
    }
}

/// A place where nobody listens.
pub const NOBODY: &str = "http://127.0.0.1:9";

/// A command whose standard error is read while it runs.
pub struct Live {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Live {
    pub fn start(command: &mut Command) -> Self {
        let mut child = start(command);
        let (sender, lines) = channel();
        let errors = BufReader::new(child.stderr.take().expect("a pipe"));
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let seen = Vec::new();
        Self { child, lines, seen }
    }

    /// Waits until a line holds a text.
    pub fn wait_for(&mut self, text: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while !self.seen.iter().any(|line| line.contains(text)) {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(error) => panic!("`{text}` does not come ({error}): {}", self.seen.join("\n")),
            }
        }
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Done {
        let mut stdout = String::new();
        let mut pipe = self.child.stdout.take().expect("a pipe");
        pipe.read_to_string(&mut stdout).expect("text");
        self.seen.extend(self.lines.iter());
        let code = self.child.wait().expect("an end").code();
        Done {
            code,
            stdout,
            stderr: self.seen.join("\n"),
        }
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Done {
    command.output().expect("the binary runs").into()
}

/// Starts a command whose output nobody waits for. Signals that whoever started the tests ignores, such as a shell those
/// of its background jobs, act as ever.
pub fn start(command: &Command) -> Child {
    let mut started = Command::new("env");
    started
        .arg("--default-signal=HUP,INT,QUIT,TERM")
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        started.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => started.env(name, value),
            None => started.env_remove(name),
        };
    }
    started
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts")
}

/// The envelope of a throughput job.
pub fn throughput() -> Value {
    envelope("0123456789ab", json!({"run-eval": false, "eval-only": false}))
}

/// Sends a signal to a process.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

/// Waits until a file holds a number of lines, and gives them.
pub fn wait_for_lines(file: &Path, count: usize) -> Vec<String> {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        if text.lines().count() >= count && text.ends_with('\n') {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(Instant::now() < end, "{} holds `{text}`", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process lives; one that waits to be reaped does not.
pub fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !state.is_empty() && !state.starts_with('Z')
}

/// Asserts that processes are gone within moments.
pub fn assert_gone(pids: &[String]) {
    let end = Instant::now() + Duration::from_secs(2);
    for pid in pids {
        while lives(pid) {
            assert!(Instant::now() < end, "process {pid} still lives");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The runner's way to cancel a step: SIGINT, SIGTERM 7.5 s later, a kill 2.5 s after that, all to the step's process
/// alone. Gives the time that it took to end, and its end.
pub fn cancel(child: Child) -> (Duration, Done) {
    let started = Instant::now();
    let pid = child.id();
    signal(pid, "-INT");
    let ended = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&ended);
    let killer = std::thread::spawn(move || {
        for (after, name) in [(7500, "-TERM"), (10_000, "-KILL")] {
            while started.elapsed() < Duration::from_millis(after) {
                if seen.load(std::sync::atomic::Ordering::SeqCst) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            let _ = Command::new("kill").args([name, &pid.to_string()]).status();
        }
    });
    let output = child.wait_with_output().expect("an end");
    let took = started.elapsed();
    ended.store(true, std::sync::atomic::Ordering::SeqCst);
    killer.join().expect("no panic");
    (took, output.into())
}

/// What a benchmark saves, with some fields replaced.
pub fn benchmark(replaced: Value) -> Value {
    let mut saved = json!({
        "model_id": "org/stub-7b", "max_concurrency": 4, "num_prompts": 40, "completed": 40,
        "total_output_tokens": 4000, "output_throughput": 100.0, "total_token_throughput": 900.0,
    });
    for (name, value) in replaced.as_object().expect("an object") {
        saved[name] = value.clone();
    }
    saved
}
