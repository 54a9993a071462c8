//! The way of a suite's row, whatever launches it: planned, launched, uploaded, judged, collected.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::support::Desk;
use crate::eval::support::{names, read_json, root};
use crate::launch::backends::DOCKER;
use crate::launch::support::{Done, Host, run};
use crate::support;

/// What launches a job.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// What a failed test calls it.
    pub name: &'static str,
    /// The settings of its cluster, but for `env`, in YAML's flow form.
    pub cluster: &'static str,
    /// Whether its rows are of several nodes.
    pub nodes: bool,
    /// Who starts the server and the eval.
    pub by: By,
}

/// Who starts a server, and evaluates against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The launch, by the row's engine.
    Engine,
    /// A launch script, with the shell library.
    Script,
    /// A job of srt-slurm of this schema.
    Srt(u8),
}

/// The configs of the rows, of one node and of several.
const MASTER: &str = r"
stub-h200-sglang-fp8:
  image: engine:1
  model: org/stub-7b
  model-prefix: stub
  precision: fp8
  framework: sglang
  runner: h200
  multinode: false
  scenarios:
    fixed-seq-len:
    - { isl: 8192, osl: 1024, search-space: [{ tp: 8, conc-list: [16] }] }
stub-h200-sglang-fp8-nodes:
  image: engine:1
  model: org/stub-7b
  model-prefix: stub
  precision: fp8
  framework: dynamo-sglang
  runner: h200
  multinode: true
  disagg: true
  kv-p2p-transfer: nixl
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
      - conc-list: [16]
        prefill: { num-worker: 1, tp: 8, ep: 1, dp-attn: false }
        decode: { num-worker: 1, tp: 8, ep: 1, dp-attn: false }
";

/// A server called as SGLang's is; all else is Python's own. BINARY, PYTHON and MORE are filled.
const ENGINE: &str = r#"
[ "$1 $2" = "-m sglang.launch_server" ] || exec PYTHON "$@"
for argument; do
    case $argument in
    --port=*) port=${argument#*=} ;;
    --model-path=*) model=${argument#*=} ;;
    esac
done
exec BINARY mock-server --port "$port" --model "$model" --max-model-len 65536 MORE
"#;

/// Starts a server of the row's model on $port.
const SERVES: &str = r#"
rm -f port; .sweepctl/bin/sweepctl mock-server --port 0 --port-file port --model "$MODEL" --max-model-len 65536 MORE \
    > server.log 2>&1 &
server=$!
while [ ! -s port ]; do sleep 0.02; done
port=$(cat port)
"#;

/// Evaluates as launch scripts do, and as srt-slurm's own script of schema 1 does: both know of lm-eval alone.
const EVALUATES: &str = r#"
source benchmarks/benchmark_lib.sh
code=0
run_eval --framework lm-eval --port "$port" || code=$?
append_lm_eval_summary || true
"#;

/// What srt-slurm's script of v1.0.68 (benchmarks/scripts/lm-eval/bench.sh) then leaves.
const LEAVES: &str = r#"
mkdir -p "$logs/eval_results"
cp meta_env.json results*.json sample*.jsonl "$logs/eval_results/" 2> /dev/null
"#;

/// Runs a recipe's `post_eval` with the variables that it names and nothing else, in place of a container: the
/// container's places stand for the host's.
const POST_EVAL: &str = r#"
import json, os, subprocess, sys
recipe, workspace, logs, port = sys.argv[1:]
block = json.load(open(recipe))["post_eval"]
places = {"/infmax-workspace": workspace, "/logs": logs, ":8000": ":" + port}
def here(word):
    for place, own in places.items():
        word = word.replace(place, own)
    return word
kept = {name: os.environ[name] for name in block["passthrough_env"] if name in os.environ}
sys.exit(subprocess.call([here(word) for word in block["command"]], env={"PATH": os.environ["PATH"], **kept}))
"#;

/// What stands for srtctl: it submits `job.sh` of the checkout, with the recipe and the log where the real one puts them.
const SRTCTL: &str = r#"
python3 FIELDS "$3" || exit 1
id=$(/usr/bin/sbatch --parsable --hold --job-name="$RUNNER_NAME" --output="$PWD/outputs/%j/logs/sweep_%j.log" job.sh)
mkdir -p "outputs/$id/logs"
cp "$3" "outputs/$id/config.yaml"
/usr/bin/scontrol release "$id"
echo "Job $id submitted!"
"#;

/// A host whose jobs are launched one way, with a suite's clients.
pub struct Road {
    pub host: Host,
    /// More variables of the launch's own environment.
    pub environment: Vec<(&'static str, String)>,
    is_of_slurm: bool,
    /// A runner of its own: each launch ends the Slurm jobs that its runner left.
    runner: String,
}

impl Road {
    /// The host, with the frameworks of a desk; `of_cluster` are more variables that the cluster sets for its jobs, and
    /// `more` options of the server.
    pub fn new(way: Way, desk: &Desk, of_cluster: &[(&str, &str)], more: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let runner = format!("h200-x_suite{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut env = json!({});
        for (name, value) in of_cluster {
            env[*name] = json!(value);
        }
        let host = Host::new(&format!("{{ {}, env: {env} }}", way.cluster));
        let text = format!(
            "labels:\n  h200: [{runner}]\nhardware:\n  h200: {{ available-cpu-dram-mib: 1000000, gpus-per-node: 8 }}\n"
        );
        support::write(host.at(), "configs/runners.yaml", text);
        support::write(host.at(), "configs/nvidia-master.yaml", MASTER);
        let frameworks = std::fs::read(desk.at("configs/evals/frameworks.yaml")).expect("the frameworks");
        support::write(host.at(), "configs/evals/frameworks.yaml", frameworks);
        let python = Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output();
        let python = String::from_utf8(python.expect("python3 runs").stdout).expect("UTF-8");
        let filled = |text: &str| {
            text.replace("BINARY", env!("CARGO_BIN_EXE_sweepctl"))
                .replace("PYTHON", python.trim())
                .replace("MORE", more)
                .replace("FIELDS", crate::slurm::srt::FIELDS)
        };
        host.tool("docker", DOCKER);
        let library = ["shell-library", "--output", "benchmarks/benchmark_lib.sh"];
        match way.by {
            By::Engine => host.tool("python3", &filled(ENGINE)),
            By::Script => {
                host.script(&filled(&format!("{SERVES}{EVALUATES}kill $server; exit $code\n")));
                assert!(host.sweepctl(&library).status().expect("it runs").success());
            }
            By::Srt(schema) => {
                host.tool("srtctl", &filled(SRTCTL));
                support::write(host.at(), "post_eval.py", POST_EVAL);
                let eval = match schema {
                    1 => format!("{EVALUATES}{LEAVES}"),
                    _ => "code=0; python3 post_eval.py \"$logs/../config.yaml\" \"$PWD\" \"$logs\" \"$port\" || code=$?\n"
                        .to_owned(),
                };
                let job = format!(
                    "#!/bin/bash\nlogs=$PWD/outputs/$SLURM_JOB_ID/logs\n{SERVES}{eval}kill $server; exit $code\n"
                );
                support::write(host.at(), "job.sh", filled(&job));
                if schema == 1 {
                    assert!(host.sweepctl(&library).status().expect("it runs").success());
                }
            }
        }
        let shown = |name: &str| desk.at(name).display().to_string();
        let environment = vec![
            ("SWEEPCTL_EVAL_SOURCES", shown("sources")),
            ("SWEEPCTL_TOOLS", shown("tools")),
        ];
        Self {
            host,
            environment,
            is_of_slurm: way.is_of_slurm(),
            runner,
        }
    }

    /// The only job that is planned of a config with a suite.
    pub fn planned(&self, way: Way, framework: &str, suite: &str, more: &[&str]) -> Value {
        let key = if way.nodes {
            "stub-h200-sglang-fp8-nodes"
        } else {
            "stub-h200-sglang-fp8"
        };
        let asked = [
            "generate",
            "test-config",
            "--config-keys",
            key,
            "--evals-only",
            "--eval-framework",
            framework,
            "--eval-suite",
            suite,
            "--emit",
            "plan",
        ];
        let done = run(self.host.sweepctl(&asked).args(more));
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let plan = self.host.file("plan");
        let buckets = names(&plan);
        let mut jobs: Vec<Value> = Vec::new();
        for bucket in buckets.iter().filter(|name| plan.join(name).is_dir()) {
            let shard = read_json(&plan.join(bucket).join("0.json"));
            jobs.extend(shard.as_array().expect("jobs").iter().cloned());
        }
        assert_eq!(jobs.len(), 1, "{buckets:?}");
        let row = &jobs[0]["row"];
        assert_eq!(
            (&row["eval-framework"], &row["eval-suite"]),
            (&json!(framework), &json!(suite))
        );
        jobs.remove(0)
    }

    /// A step of the job, as its workflow calls it.
    pub fn step(&self, args: &[&str]) -> Done {
        run(self.host.sweepctl(args).env("RUNNER_NAME", &self.runner))
    }

    /// Launches the job.
    pub fn launch(&self, envelope: &Value) -> Done {
        let mut command = self.host.launch(envelope, &[]);
        command.env("RUNNER_NAME", &self.runner);
        if self.is_of_slurm {
            command.env("SLURM_CONF", &crate::slurm::cluster::cluster().conf);
        }
        command.envs(self.environment.iter().map(|(name, value)| (*name, value)));
        run(&mut command)
    }

    /// The names of the files that an upload hands on.
    pub fn uploaded(&self) -> Vec<String> {
        let done = self.step(&["upload", "--kind", "eval", "--envelope", "envelope.json", "--to", "up"]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let artifacts = names(&self.host.file("up"));
        assert_eq!(artifacts.len(), 1, "{artifacts:?}");
        names(&self.host.file(&format!("up/{}", artifacts[0])))
    }

    /// Whether the gate lets the job pass, and what it says.
    pub fn gate(&self) -> (bool, String) {
        let thresholds = root().join("configs/thresholds.yaml");
        let thresholds = thresholds.to_str().expect("UTF-8");
        let done = self.step(&[
            "eval",
            "validate",
            "--thresholds",
            thresholds,
            "--envelope",
            "envelope.json",
        ]);
        (done.code == Some(0), done.stdout + &done.stderr)
    }

    /// The rows of the table of what was uploaded, and what was said beside them.
    pub fn collected(&self) -> (Vec<Value>, String) {
        let done = self.step(&["collect", "evals", "up", "--out", "table"]);
        let table = self.host.file("table/agg_eval_all.json");
        let rows = match table.is_file() {
            true => read_json(&table).as_array().expect("rows").clone(),
            false => Vec::new(),
        };
        (rows, done.stdout + &done.stderr)
    }

    /// The logs of the job.
    pub fn logs(&self) -> String {
        let is_log = |name: &String| name.ends_with(".log");
        let all = names(self.host.at());
        let logs = all.iter().filter(|name| is_log(name));
        logs.map(|name| {
            format!(
                "== {name}\n{}\n",
                String::from_utf8_lossy(&std::fs::read(self.host.file(name)).expect("a log"))
            )
        })
        .collect()
    }

    /// Every text that lies in the checkout and in the state folder, as far as it is one.
    pub fn everything(&self) -> String {
        let mut folders = vec![self.host.at().to_owned()];
        let mut all = String::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                let kind = entry.file_type().expect("a type");
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() && entry.metadata().expect("metadata").len() < 8 << 20 {
                    all.push_str(&String::from_utf8_lossy(&std::fs::read(entry.path()).expect("a file")));
                }
            }
        }
        all
    }
}
