//! A job whose replay the real client runs, offline: a tokenizer as the hub's cache holds it, and traces of its form.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use sweepctl::step::tools::Venv;
use tempfile::TempDir;

use crate::eval::support::sweepctl;
use crate::eval::tools;
use crate::fixture::{envelope, read_json, without_lengths};
use crate::mock_server::client::Server;

/// The served model, and its tokenizer's.
pub const MODEL: &str = "org/tiny";
/// The job's id.
pub const ID: &str = "0123456789ab";
/// The commit that the hub's cache names.
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// How long replays measure, in seconds.
const SECONDS: &str = "6";

/// The client, as `sweepctl agentic run` uses it, so that no test waits for its installation.
pub fn client() -> &'static Venv {
    static VENV: OnceLock<Venv> = OnceLock::new();
    let name = format!("agentx-harness-{}", sweepctl::step::agentic::client::VERSION);
    VENV.get_or_init(|| tools::venv(&name, &[sweepctl::step::agentic::client::REQUIREMENT]))
}

/// A finished command.
pub struct Done {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// The job's folder.
pub struct Desk(TempDir);

impl Desk {
    pub fn new() -> Self {
        let desk = Self(tempfile::tempdir().expect("a folder"));
        lay_tokenizer(&desk.file("hub"));
        lay_traces(&desk.file("traces"));
        desk.write("envelope.json", &job().to_string());
        desk
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        write(&self.file(name), text);
    }

    pub fn json(&self, name: &str) -> Value {
        read_json(&self.file(name))
    }

    /// A command in the folder, with the job's variables.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = sweepctl();
        command.args(args).current_dir(self.0.path());
        for (name, value) in [("RESULT_FILENAME", "r"), ("NO_COLOR", "1"), ("HF_HUB_OFFLINE", "1")] {
            command.env(name, value);
        }
        command
            .env("SWEEPCTL_TOOLS", tools::folder())
            .env("HOME", self.file("home"))
            .env("HF_HOME", self.file("home"))
            .env("HF_HUB_CACHE", self.file("hub"));
        command
    }

    /// A replay of the job against a server, by the real client.
    pub fn replay(&self, server: &Server, more: &[&str]) -> Command {
        client();
        let endpoint = format!("http://{}", server.address);
        let mut command = self.command(&["agentic", "run", "--envelope", "envelope.json", "--endpoint", &endpoint]);
        command.args(["--traces", "traces", "--duration", SECONDS]).args(more);
        command.env("AIPERF_WARMUP_REQUESTS_PER_LANE", "1");
        command
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Done {
    let output = command.output().expect("the binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done {
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

/// A server of the model.
pub fn serve(faults: &[&str]) -> Server {
    let standard = ["--model", MODEL, "--max-model-len", "100000", "--latency-ms", "20"];
    Server::start(&[&standard[..], faults].concat())
}

/// An agentic job at concurrency 2.
pub fn job() -> Value {
    let mut envelope = envelope(ID, 2);
    let row = envelope["row"].as_object_mut().expect("a row");
    without_lengths(row);
    let own = json!({"scenario-type": "agentic-coding", "kv-offloading": "none", "total-cpu-dram-gb": 0,
                     "duration": 3600, "framework": "sglang", "model": MODEL});
    row.extend(own.as_object().expect("fields").clone());
    envelope
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
    std::fs::write(path, text).expect("a file");
}

/// A tokenizer with a token for each byte, in the form of the tokenizers library: bytes that print stand for themselves,
/// the others for the characters from 256 on.
pub fn lay_tokenizer(hub: &Path) {
    let prints = |byte: u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let others = (0..256).filter(|byte| !prints(*byte)).zip(256..);
    let letters = (0..256)
        .filter(|byte| prints(*byte))
        .chain(others.map(|(_, letter)| letter));
    let mut vocabulary = serde_json::Map::new();
    for (id, letter) in letters.enumerate() {
        vocabulary.insert(char::from_u32(letter).expect("a character").to_string(), json!(id));
    }
    vocabulary.insert("<eos>".to_owned(), json!(256));
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null, "post_processor": null,
        "added_tokens": [{"id": 256, "content": "<eos>", "single_word": false, "lstrip": false, "rstrip": false,
                          "normalized": false, "special": true}],
        "pre_tokenizer": bytes, "decoder": bytes,
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                  "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
                  "vocab": vocabulary, "merges": []},
    });
    let folder = hub.join("models--org--tiny");
    let snapshot = folder.join("snapshots").join(COMMIT);
    write(&folder.join("refs/main"), COMMIT);
    write(&snapshot.join("tokenizer.json"), &tokenizer.to_string());
    let config = json!({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<eos>"});
    write(&snapshot.join("tokenizer_config.json"), &config.to_string());
}

/// Three conversations of twelve requests, a second apart, each with one more block of 16 tokens than the one before.
pub fn lay_traces(folder: &Path) {
    for trace in 0..3 {
        let request = |turn: u64| {
            let blocks = turn + 2;
            let ids: Vec<u64> = (0..blocks).map(|block| trace * 1000 + block).collect();
            json!({"t": turn, "type": "s", "model": "m", "in": blocks * 16, "out": 8, "hash_ids": ids,
                   "stop": "end_turn", "api_time": 0.2, "think_time": 0.5, "ttft": 0.1})
        };
        let requests: Vec<Value> = (0..12).map(request).collect();
        let trace = json!({"id": format!("trace-{trace}"), "models": ["m"], "block_size": 16, "hash_id_scope": "local",
                           "requests": requests});
        let name = trace["id"].as_str().expect("a name").to_owned();
        write(&folder.join(format!("{name}.json")), &trace.to_string());
    }
}
