//! The shell library, sourced by real shells, with the binary behind it.

mod evals;
mod folder;
mod functions;
mod gpus;
mod jobs;
mod replays;
mod serving;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::{stderr, stdout};

/// A checkout with the library, programs on PATH, and nothing of this process' environment.
pub struct Checkout {
    folder: tempfile::TempDir,
}

impl Checkout {
    pub fn new() -> Self {
        let checkout = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        for name in ["benchmarks", "bin", "tmp", "home"] {
            std::fs::create_dir(checkout.file(name)).expect("a folder");
        }
        let written = Command::new(env!("CARGO_BIN_EXE_sweepctl"))
            .args(["shell-library", "--output"])
            .arg(checkout.file("benchmarks/benchmark_lib.sh"))
            .status();
        assert!(written.expect("it runs").success());
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_sweepctl"), checkout.file("bin/sweepctl")).expect("a link");
        checkout
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(path, text).expect("a file");
    }

    /// A program on PATH.
    pub fn tool(&self, name: &str, text: &str) {
        self.tool_at(&format!("bin/{name}"), text);
    }

    /// A program somewhere in the checkout.
    pub fn tool_at(&self, name: &str, text: &str) {
        self.write(name, &format!("#!/usr/bin/env bash\n{text}"));
        std::fs::set_permissions(self.file(name), PermissionsExt::from_mode(0o755)).expect("permissions");
    }

    /// A command in the checkout.
    pub fn command(&self, program: &str, variables: &[(&str, &str)]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", format!("{}:{path}", self.file("bin").display()))
            .env("HOME", self.file("home"))
            .env("TMPDIR", self.file("tmp"))
            .env("HF_HUB_CACHE", self.file("hub"))
            .env("SWEEPCTL_TOOLS", crate::eval::tools::folder())
            .env("PYTHONPATH", crate::eval::tools::no_waits())
            .envs(variables.iter().copied())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// What a script leaves that sources the library first. It lies in the folder that scripts lie in.
    pub fn run(&self, variables: &[(&str, &str)], script: &str) -> Ran {
        self.run_as("benchmarks/single_node/fixed_seq_len/script.sh", variables, script)
    }

    /// The same of a script of some name.
    pub fn run_as(&self, name: &str, variables: &[(&str, &str)], script: &str) -> Ran {
        let library = self.file("benchmarks/benchmark_lib.sh");
        self.write(name, &format!("source '{}'\n{script}\n", library.display()));
        let output = self.command("bash", variables).arg(name).output();
        Ran::from(output.expect("bash runs"))
    }
}

/// A finished script.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: stdout(&output),
            stderr: stderr(&output),
        }
    }
}

impl Ran {
    /// Everything that it printed.
    pub fn all(&self) -> String {
        format!("code {:?}\n{}\n{}", self.code, self.stdout, self.stderr)
    }

    #[track_caller]
    pub fn has(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.all());
        for part in parts {
            assert!(self.all().contains(part), "`{part}` is missing: {}", self.all());
        }
    }
}

/// The names in a folder that start with a text.
pub fn names(folder: &Path, start: &str) -> Vec<String> {
    let all = crate::eval::support::names(folder);
    all.into_iter().filter(|name| name.starts_with(start)).collect()
}

#[test]
fn shellcheck_finds_nothing() {
    let checker = crate::eval::tools::folder().join("workflows-python/bin/shellcheck");
    let checkout = Checkout::new();
    let mut command = Command::new(if checker.is_file() {
        checker
    } else {
        PathBuf::from("shellcheck")
    });
    let output = command
        .arg(checkout.file("benchmarks/benchmark_lib.sh"))
        .output()
        .expect("shellcheck is installed");
    assert!(output.status.success(), "{}", stdout(&output));
}

#[test]
fn init_writes_it_and_replaces_it_when_told() {
    let checkout = Checkout::new();
    let init = |more: &[&str]| {
        let mut command = checkout.command("sweepctl", &[]);
        let output = command
            .args(["init", "repo", "--json"])
            .args(more)
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let lines: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        let line = lines
            .as_array()
            .expect("a list")
            .iter()
            .find(|line| line["file"] == "benchmarks/benchmark_lib.sh");
        line.expect("the library")["outcome"]
            .as_str()
            .expect("a word")
            .to_owned()
    };
    assert_eq!(init(&[]), "written");
    assert_eq!(init(&["--replace"]), "kept");
    checkout.write("repo/benchmarks/benchmark_lib.sh", "mine\n");
    assert_eq!(init(&[]), "kept");
    assert_eq!(checkout.read("repo/benchmarks/benchmark_lib.sh"), "mine\n");
    assert_eq!(init(&["--replace"]), "replaced");
    let printed = checkout
        .command("sweepctl", &[])
        .arg("shell-library")
        .output()
        .expect("it runs");
    assert_eq!(checkout.read("repo/benchmarks/benchmark_lib.sh"), stdout(&printed));
}
