//! A repository whose suites are run by stand-ins.

use std::path::{Path, PathBuf};
use std::process::Output;

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::eval::support::{names, read_json, root, sweepctl};
use crate::mock_server::client::Server;
use serde_json::{Value, json};

/// A framework with stand-ins for its verifier.
#[derive(Debug, Clone, Copy)]
pub struct Vendor {
    pub framework: &'static str,
    pub smoke: &'static str,
    pub full: &'static str,
    pub checks: u64,
    pub script: &'static str,
    pub report: &'static str,
    /// Whether its program fails where a check does.
    pub exit_tells: bool,
}

pub const VENDORS: [Vendor; 2] = [
    Vendor {
        framework: "kimi-vendor",
        smoke: "kimi_tool_call_schema",
        full: "kimi_tool_call_schema_full",
        checks: 408,
        script: "pytest.py",
        report: "kimi_vendor_report.json",
        exit_tells: true,
    },
    Vendor {
        framework: "minimax-vendor",
        smoke: "minimax_m3_smoke",
        full: "minimax_m3_full",
        checks: 102,
        script: "verify.py",
        report: "minimax_vendor_report.json",
        exit_tells: false,
    },
];

/// A repository with a frameworks file, and the folder of an eval's results.
pub struct Desk {
    folder: TempDir,
}

impl Desk {
    /// The frameworks as they ship, with the sources and the needs of the stand-ins.
    pub fn new() -> Self {
        let desk = Self::with("");
        let mut text = std::fs::read_to_string(root().join("configs/evals/frameworks.yaml")).expect("the file");
        for vendor in VENDORS {
            let source = desk.at("sources").join(vendor.framework);
            std::fs::create_dir_all(&source).expect("a folder");
            let script = root().join("tests/suites").join(vendor.framework).join(vendor.script);
            std::fs::copy(script, source.join(vendor.script)).expect("a stand-in");
            std::fs::write(source.join("sample.jsonl"), sample()).expect("cases");
            text = stood_in(&text, vendor, &source);
        }
        std::fs::write(desk.at("configs/evals/frameworks.yaml"), text).expect("the file");
        desk
    }

    /// A repository with this frameworks file.
    pub fn with(frameworks: &str) -> Self {
        let desk = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        std::fs::create_dir_all(desk.at("configs/evals")).expect("a folder");
        std::fs::create_dir_all(desk.at("home")).expect("a folder");
        std::fs::write(desk.at("configs/evals/frameworks.yaml"), frameworks).expect("the file");
        desk
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub fn staged(&self) -> PathBuf {
        self.at("staged")
    }

    /// Runs a suite against a server, with some variables and more arguments.
    pub fn eval(&self, server: &Server, names: (&str, &str), env: &[(&str, &str)], more: &[&str]) -> Output {
        let mut command = sweepctl();
        command
            .current_dir(self.folder.path())
            .args(["eval", "run", "--endpoint", &format!("http://{}", server.address)])
            .args([
                "--framework",
                names.0,
                "--task",
                names.1,
                "--concurrency",
                "2",
                "--stage-to",
                "staged",
            ])
            .args(more)
            .env("SWEEPCTL_TOOLS", self.at("tools"))
            .env("SWEEPCTL_EVAL_SOURCES", self.at("sources"))
            .env("MODEL_PREFIX", "stub")
            .envs(env.iter().copied());
        command.output().expect("the binary runs")
    }

    /// Whether the gate passes, and what it says.
    pub fn gate(&self) -> (bool, String) {
        let mut command = sweepctl();
        let done = command
            .current_dir(self.staged())
            .args(["eval", "validate", "--thresholds"])
            .arg(root().join("configs/thresholds.yaml"))
            .output()
            .expect("the binary runs");
        (done.status.success(), text(&done))
    }

    /// The only result file.
    pub fn result(&self) -> Value {
        let all = names(&self.staged());
        let found: Vec<_> = all.iter().filter(|name| name.starts_with("results_")).collect();
        assert_eq!(found.len(), 1, "{all:?}");
        read_json(&self.staged().join(found[0]))
    }

    /// The text of a file in the archive of artifacts.
    pub fn artifact(&self, framework: &str, name: &str) -> String {
        let file = self
            .staged()
            .join(format!("{}_artifacts.tar.gz", framework.replace('-', "_")));
        let file = std::fs::File::open(file).expect("an archive");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
        for entry in archive.entries().expect("entries") {
            let mut entry = entry.expect("an entry");
            if entry.path().expect("a path") == Path::new(name) {
                let mut text = String::new();
                std::io::Read::read_to_string(&mut entry, &mut text).expect("text");
                return text;
            }
        }
        panic!("no {name} in the archive of {framework}")
    }
}

/// Everything that a command said.
pub fn text(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

/// Cases in the form of MiniMax's.
fn sample() -> String {
    let schema = json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}});
    let tool = json!({"type": "function", "function": {"name": "weather", "parameters": schema}});
    let line = |n: u64| json!({"messages": [{"role": "user", "content": format!("Case {n}")}], "tools": [tool]});
    (0..102).map(|n| format!("{}\n", line(n))).collect()
}

/// The digest as frameworks.yaml has it.
pub fn digest(folder: &Path, files: &[&str]) -> String {
    let hex = |bytes: &[u8]| -> String { Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect() };
    let mut files = files.to_vec();
    files.sort_unstable();
    let line = |name: &&str| format!("{}  {name}\n", hex(&std::fs::read(folder.join(name)).expect("a file")));
    hex(files.iter().map(line).collect::<String>().as_bytes())
}

/// The frameworks file with one vendor's source and needs replaced; its suites stay as they are.
fn stood_in(text: &str, vendor: Vendor, source: &Path) -> String {
    let start = text.find(&format!("  {}:\n", vendor.framework)).expect("the framework");
    let end = text[start..].find("    environment:").expect("its variables") + start;
    let (script, sum) = (vendor.script, digest(source, &[vendor.script, "sample.jsonl"]));
    let head = format!(
        "  {}:\n    description: a stand-in\n    python: \"3.8\"\n    archive:\n      url: http://127.0.0.1:9/none\n      \
         ref: none\n      paths: [{script}, sample.jsonl]\n      sha256: {sum}\n",
        vendor.framework
    );
    format!("{}{head}{}", &text[..start], &text[end..])
}
