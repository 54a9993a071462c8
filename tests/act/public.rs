//! A fleet whose scripts are of the kind that public fleets have, through the rendered steps: they serve by path, name
//! the model anew, call the shell library, write to `results/` and `LOGS/`, and leave a Slurm job or a container behind.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::events;
use super::harness::{Act, Repository, Run};
use crate::eval::tools;
use crate::slurm::cluster::cluster;
use crate::support::project;

const ONE_NODE: &str = "lone-box-sglang-fp8, talk-box-sglang-fp8";
const MANY_NODES: &str = "many-box-sglang-fp8, crew-box-sglang-fp8";

fn repository() -> Repository {
    tools::lm_eval();
    Repository::with(&project().join("tests/act/public"))
}

/// The questions are the project's own, since nothing answers for the hub.
fn with_evals<'r>(act: Act<'r>) -> Act<'r> {
    act.with_last_lines()
        .environment("SWEEPCTL_TOOLS", tools::folder().display().to_string())
        .environment("HF_HUB_OFFLINE", "1")
        .environment("EVAL_TASKS", "gsm8k_smoke")
        .environment("EVAL_LIMIT", "8")
}

fn on_slurm<'r>(act: Act<'r>) -> Act<'r> {
    with_evals(act).environment("SLURM_CONF", cluster().conf.display().to_string())
}

/// A dispatch of evals whose jobs measure throughput first: what a caller of the templates may ask for. No plan asks for
/// both in one job, so what is behind the jobs is not looked at.
fn combined<'r>(repository: &'r Repository, keys: &str) -> Act<'r> {
    let command = format!("test-config --config-files configs/public-master.yaml --config-keys {keys} --evals-only");
    let inputs = json!({ "generate-cli-command": command, "ref": "main", "test-name": "Combined", "eval-limit": "8" });
    let event = events::dispatch("e2e-tests.yml", inputs);
    Act::new(repository, "e2e-tests.yml", ("workflow_dispatch", event)).edited(|name, text| {
        if name != "sweep-shard.yml" {
            return text;
        }
        let given = "      ref: ${{ inputs.ref }}\n";
        assert_eq!(text.matches(given).count(), 2, "{text}");
        text.replace(given, &format!("{given}      run-eval: true\n      eval-only: false\n"))
    })
}

/// Asserts that the jobs of some models left throughput and an eval each.
fn assert_combined(run: &Run, models: &[&str]) {
    let jobs: Vec<_> = run.jobs.iter().filter(|job| job.id == "benchmark").collect();
    assert_eq!(jobs.len(), models.len(), "{run}");
    assert!(jobs.iter().all(|job| job.result == "success"), "{run}");
    for model in models {
        let measured = run.files(&format!("bmk_{model}_8k1k"));
        assert!(
            measured.iter().any(|file| file.starts_with("agg_")),
            "{measured:?}{run}"
        );
        let evaluated = run.files(&format!("eval_{model}_8k1k"));
        assert!(
            evaluated.iter().any(|file| file.starts_with("results")),
            "{evaluated:?}{run}"
        );
        assert!(evaluated.contains(&"meta_env.json".to_owned()), "{evaluated:?}{run}");
    }
}

/// What was collected of each model, by the fields that a name gives.
fn rows(run: &Run, file: &str, fields: &[&str]) -> Vec<Value> {
    let collected = run.json(file);
    let rows = collected.as_array().expect("rows").iter();
    let mut rows: Vec<Value> = rows
        .map(|row| fields.iter().map(|name| row[*name].clone()).collect())
        .collect();
    rows.sort_by_key(Value::to_string);
    rows
}

fn benchmarks(run: &Run) -> usize {
    assert!(run.ok, "{run}");
    let jobs: Vec<_> = run.jobs.iter().filter(|job| job.id == "benchmark").collect();
    assert!(jobs.iter().all(|job| job.result == "success"), "{run}");
    jobs.len()
}

/// How often a job's output holds a text.
fn said(run: &Run, text: &str) -> usize {
    run.jobs.iter().filter(|job| job.output.contains(text)).count()
}

#[test]
fn every_kind_of_job_runs_on_slurm() {
    let repository = repository();
    let keys = format!("{ONE_NODE}, {MANY_NODES}");
    let run = on_slurm(repository.push(&[(&keys, "")])).run();
    assert_eq!(benchmarks(&run), 8, "{run}");
    let results = rows(
        &run,
        "results_bmk/agg_bmk.json",
        &["infmax_model_prefix", "conc", "is_multinode"],
    );
    let wanted = [
        json!(["crew", 16, true]),
        json!(["lone", 16, false]),
        json!(["many", 16, true]),
        json!(["many", 32, true]),
        json!(["talk", 4, false]),
    ];
    assert_eq!(results, wanted, "{run}");
    let fields = ["model_prefix", "task", "score", "conc", "ep", "dp_attention"];
    let evals = rows(&run, "eval_results_all/agg_eval_all.json", &fields);
    let (task, one) = ("gsm8k_smoke", json!(1.0));
    let found: Vec<_> = evals
        .iter()
        .map(|row| (row[0].as_str().unwrap_or_default(), &row[1], &row[2], &row[3]))
        .collect();
    let tasks = json!(task);
    let wanted = [
        ("crew", &tasks, &one, &json!(16)),
        ("lone", &tasks, &one, &json!(16)),
        ("many", &tasks, &one, &json!(32)),
        ("talk", &tasks, &one, &json!(4)),
    ];
    assert_eq!(found, wanted, "{evals:?}{run}");
    assert_eq!(
        (&evals[1][4], &evals[1][5]),
        (&json!(8), &json!("true")),
        "as planned, whatever a script says"
    );

    // What the replays recorded, without what is as large as the run is long.
    let raw = run.tree("agentic_talk_tp1_conc4_kvnone");
    for file in [
        "aiperf_artifacts/profile_export.jsonl",
        "benchmark_command.txt",
        "server.log",
    ] {
        assert!(raw.iter().any(|found| found == file), "{file}: {raw:?}");
    }
    assert!(!raw.iter().any(|found| found.ends_with("inputs.json")), "{raw:?}");
    let raw = run.tree("agentic_crew_p1x1_d0x1_conc16");
    assert!(
        raw.iter()
            .any(|found| found.ends_with("conc_16/aiperf_artifacts/profile_export.jsonl")),
        "{raw:?}"
    );
    assert!(
        run.files("server_logs_many_8k1k")
            .contains(&"multinode_server_logs.tar.gz".to_owned())
    );
    assert!(
        run.files("server_logs_talk_tp1_conc4_kvnone")
            .contains(&"server.log".to_owned())
    );

    // Every allocation was left, and given back by its own job.
    assert_eq!(said(&run, "launch: released Slurm job "), 8, "{run}");
    assert!(cluster().alive("box_0").is_empty());
}

#[test]
fn throughput_and_its_eval_in_one_job_run_on_slurm() {
    let repository = repository();
    // A runner of its own: launches of one runner end each other's jobs.
    let act = combined(&repository, "lone-box-sglang-fp8 many-box-sglang-fp8").runner("box_1");
    let run = on_slurm(act).run();
    assert_combined(&run, &["lone", "many"]);
    assert!(cluster().alive("box_1").is_empty());
}

/// What runs containers here, as the variables of the jobs: podman, in a store of its own, or what stands in for it.
struct Runtime {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Runtime {
    fn new() -> Self {
        let mut runtime = Self {
            folder: tempfile::tempdir().expect("a folder"),
            variables: Vec::new(),
        };
        match runtime.podman() {
            Ok(()) => eprintln!("containers are podman's"),
            Err(why) => {
                eprintln!("podman runs no container here, and a stand-in takes its place: {why}");
                runtime.stand_in();
            }
        }
        runtime
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn stand_in(&mut self) {
        let folder = project().join("tests/act/runtime");
        let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&super::harness::path())));
        let path = path.expect("a PATH").to_string_lossy().into_owned();
        std::fs::create_dir(self.at("containers")).expect("a folder");
        self.variables = vec![
            ("PATH", path),
            ("PODMAN_STAND_IN", self.at("containers").display().to_string()),
        ];
    }

    /// A store with an image in which nothing is but empty folders.
    fn podman(&mut self) -> Result<(), String> {
        let write = |name: &str, text: String| std::fs::write(self.at(name), text).expect("a file");
        // What this machine's kernel may lack, and nothing of a test needs: limits of its own, and groups of processes.
        let limits = r#"default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]"#;
        let engine = "cgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n";
        let runtime = if Path::new("/usr/sbin/runc").exists() {
            "runtime = \"runc\"\n"
        } else {
            ""
        };
        write(
            "containers.conf",
            format!("[containers]\n{limits}\n[engine]\n{engine}{runtime}"),
        );
        let [store, run] = ["store", "run"].map(|name| self.at(name).display().to_string());
        write(
            "storage.conf",
            format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{store}\"\nrunroot = \"{run}\"\n"),
        );
        self.variables = [
            ("CONTAINERS_CONF", "containers.conf"),
            ("CONTAINERS_STORAGE_CONF", "storage.conf"),
        ]
        .map(|(name, file)| (name, self.at(file).display().to_string()))
        .into();
        let image = self.at("image");
        for folder in ["usr", "etc", "tmp", "dev", "proc", "sys", "root", "workspace"] {
            std::fs::create_dir_all(image.join(folder)).expect("a folder");
        }
        for link in ["bin", "lib", "lib64", "sbin"] {
            std::os::unix::fs::symlink(format!("usr/{link}"), image.join(link)).expect("a link");
        }
        let packed = self.at("image.tar");
        let tar = Command::new("tar")
            .arg("-cf")
            .arg(&packed)
            .arg("-C")
            .arg(&image)
            .arg(".")
            .status();
        assert!(tar.is_ok_and(|status| status.success()), "tar packs");
        self.call(&["import", &packed.display().to_string(), "localhost/fleet:1"])?;
        let mounts = ["-v", "/usr:/usr:ro", "-v", "/etc:/etc:ro"];
        let run = ["run", "--rm", "--network=host", "--entrypoint=/bin/true"];
        self.call(&[&run[..], &mounts, &["localhost/fleet:1"]].concat())
    }

    fn call(&self, arguments: &[&str]) -> Result<(), String> {
        let mut command = Command::new("podman");
        command
            .args(arguments)
            .envs(self.variables.iter().map(|(name, value)| (*name, value.as_str())));
        let output = command.output().map_err(|error| error.to_string())?;
        let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(said()) }
    }

    fn runs<'r>(&self, act: Act<'r>) -> Act<'r> {
        let act = with_evals(act).runner("pod_0");
        self.variables
            .iter()
            .fold(act, |act, (name, value)| act.environment(name, value.clone()))
    }
}

#[test]
fn every_kind_of_one_node_runs_in_containers() {
    let repository = repository();
    let runtime = Runtime::new();
    let run = runtime.runs(repository.push(&[(ONE_NODE, "")])).run();
    assert_eq!(benchmarks(&run), 4, "{run}");
    let results = rows(&run, "results_bmk/agg_bmk.json", &["infmax_model_prefix", "conc"]);
    assert_eq!(results, [json!(["lone", 16]), json!(["talk", 4])], "{run}");
    let evals = rows(
        &run,
        "eval_results_all/agg_eval_all.json",
        &["model_prefix", "score", "ep"],
    );
    assert_eq!(evals, [json!(["lone", 1.0, 8]), json!(["talk", 1.0, 1])], "{run}");
    assert_eq!(said(&run, "launch: released container bmk-server"), 4, "{run}");

    let run = runtime.runs(combined(&repository, "lone-box-sglang-fp8")).run();
    assert_combined(&run, &["lone"]);
}
