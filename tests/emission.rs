//! Emitted plans: every row once, in shards within GitHub's limits, and what workflows decide with.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde_json::Value;
use sweepctl::matrix::envelope::Envelope;
use sweepctl::matrix::names::{self, ArtifactKind};

use crate::support::fleet::{CHANGELOG, edit, entry, folder, lines, log, repository, text};
use crate::support::{self, run, stderr, stdout, write};

/// Jobs of one matrix.
const MAX_JOBS: usize = 256;
/// Bytes of a job's outputs, as UTF-16.
const MAX_BYTES: usize = 1_048_576;

/// Runs with an output file and gives what stands in it.
fn with_outputs(folder: &Path, args: &[&str]) -> BTreeMap<String, String> {
    let file = folder.join("github-output");
    std::fs::remove_file(&file).ok();
    let output = support::sweepctl(folder)
        .args(args)
        .env("GITHUB_OUTPUT", &file)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = std::fs::read_to_string(&file).expect("outputs");
    let mut outputs = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (name, delimiter) = line.split_once("<<").expect("a heredoc");
        let value: Vec<&str> = lines.by_ref().take_while(|line| *line != delimiter).collect();
        outputs.insert(name.to_owned(), value.join("\n"));
    }
    outputs
}

/// The outputs of one shard.
fn shard(folder: &Path, plan: &str, bucket: &str, number: u64) -> BTreeMap<String, String> {
    let number = number.to_string();
    let args = ["shard", "--plan", plan, "--bucket", bucket, "--index", &number];
    with_outputs(folder, &[&args[..], &["--github-output"]].concat())
}

/// What each shard of a bucket is called with.
fn inputs(outputs: &BTreeMap<String, String>, bucket: &str) -> Vec<Value> {
    serde_json::from_str(&outputs[&format!("{bucket}_inputs")]).expect("a list of inputs")
}

/// Every envelope that the outputs lead to, by bucket, fetched as a workflow does it: from the outputs themselves, or
/// from the plan where they hold none.
fn fetched(folder: &Path, plan: &str, outputs: &BTreeMap<String, String>) -> BTreeMap<String, Vec<Value>> {
    let mut all = BTreeMap::new();
    for (name, shards) in outputs {
        let Some(bucket) = name.strip_suffix("_shards") else {
            continue;
        };
        let numbers: Vec<u64> = serde_json::from_str(shards).expect("a list of numbers");
        let inputs = inputs(outputs, bucket);
        assert_eq!(numbers, (0..inputs.len() as u64).collect::<Vec<_>>());
        let mut jobs = Vec::new();
        for (number, inputs) in numbers.into_iter().zip(&inputs) {
            let inline = inputs["envelopes"].as_str().expect("text");
            let text = shard(folder, plan, bucket, number)
                .remove("envelopes")
                .expect("an output");
            assert!(inline.is_empty() || inline == text, "{bucket} {number}");
            assert!(text.encode_utf16().count() * 2 <= MAX_BYTES, "{bucket} {number}");
            let shard: Vec<Value> = serde_json::from_str(&text).expect("a list");
            assert!(
                (1..=MAX_JOBS).contains(&shard.len()),
                "{bucket} {number}: {}",
                shard.len()
            );
            let parallel = inputs["max-parallel"].as_u64().expect("a limit");
            assert!(
                (1..=shard.len() as u64).contains(&parallel),
                "{bucket} {number}: {parallel}"
            );
            jobs.extend(shard);
        }
        assert_eq!(outputs[&format!("{bucket}_jobs")], jobs.len().to_string(), "{bucket}");
        if !jobs.is_empty() {
            all.insert(bucket.to_owned(), jobs);
        }
    }
    let bytes: usize = outputs.values().map(|value| value.encode_utf16().count() * 2).sum();
    assert!(bytes <= MAX_BYTES, "{bytes} bytes of outputs");
    all
}

/// Whether the envelopes travel in the outputs: all do, or none.
fn is_inline(outputs: &BTreeMap<String, String>) -> bool {
    let buckets = outputs.keys().filter_map(|name| name.strip_suffix("_inputs"));
    let all: HashSet<bool> = buckets
        .flat_map(|bucket| inputs(outputs, bucket))
        .map(|inputs| inputs["envelopes"] != "")
        .collect();
    assert_eq!(all.len(), 1, "all or none");
    all.contains(&true)
}

fn ids(all: &BTreeMap<String, Vec<Value>>) -> Vec<String> {
    let ids = all.values().flatten().map(|job| text(&job["id"]).to_owned());
    ids.collect()
}

fn assert_sound(all: &BTreeMap<String, Vec<Value>>) {
    let ids = ids(all);
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "ids are unique");
    assert!(
        ids.iter()
            .all(|id| id.len() == 12 && id.bytes().all(|b| b.is_ascii_hexdigit()))
    );
    let mut artifacts = HashSet::new();
    for (bucket, job) in all
        .iter()
        .flat_map(|(bucket, jobs)| jobs.iter().map(move |job| (bucket, job)))
    {
        assert_eq!(job["runs-on"], job["row"]["runner"]);
        assert!(job["timeout-minutes"].as_u64().is_some_and(|minutes| minutes > 0));
        assert!(!text(&job["name"]).is_empty());
        assert_eq!(
            bucket.contains("evals"),
            job["row"]["eval-only"] == true,
            "{bucket}: {job}"
        );
        let envelope: Envelope = serde_json::from_value(job.clone()).expect("an envelope");
        for kind in ArtifactKind::of(&envelope.row) {
            let name = names::artifact(kind, &envelope);
            assert!((1..=256).contains(&name.len()), "{name}");
            assert!(
                !name.contains(['"', ':', '<', '>', '|', '*', '?', '\\', '/', '\r', '\n']),
                "{name}"
            );
            assert!(artifacts.insert(name.clone()), "{name} twice");
        }
    }
}

/// All rows of a plan, with its parts' names.
fn rows_of(plan: &Value) -> Vec<Value> {
    let mut rows = Vec::new();
    for nodes in ["single_node", "multi_node"] {
        rows.extend(
            plan[nodes]
                .as_object()
                .expect("a map")
                .values()
                .flat_map(|r| r.as_array().expect("rows"))
                .cloned(),
        );
    }
    for part in ["evals", "agentic_evals", "multinode_evals", "multinode_agentic_evals"] {
        rows.extend(plan[part].as_array().expect("rows").iter().cloned());
    }
    rows
}

fn sorted_text(rows: impl IntoIterator<Item = Value>) -> Vec<String> {
    let mut all: Vec<String> = rows.into_iter().map(|row| row.to_string()).collect();
    all.sort();
    all
}

const PLAN: [&str; 5] = ["plan", "--base-ref", "HEAD~1", "--head-ref", "HEAD"];

#[test]
fn a_plan_arrives_whole() {
    let folder = repository();
    log(folder.path(), &entry("'*'", ""));
    let plan = support::json(folder.path(), PLAN);
    let outputs = with_outputs(
        folder.path(),
        &[&PLAN[..], &["--emit", "plan", "--github-output"]].concat(),
    );
    let all = fetched(folder.path(), "plan", &outputs);
    assert_sound(&all);
    let wrapped = all.values().flatten().map(|job| job["row"].clone());
    assert_eq!(sorted_text(wrapped), sorted_text(rows_of(&plan)));
    let count = |evals: bool| -> usize {
        all.iter()
            .filter(|(name, _)| name.contains("evals") == evals)
            .map(|(_, jobs)| jobs.len())
            .sum()
    };
    assert_eq!(outputs["throughput_jobs"], count(false).to_string());
    assert_eq!(outputs["eval_jobs"], count(true).to_string());
    assert_eq!(outputs["jobs"], ids(&all).len().to_string());
    let metadata = std::fs::read(folder.path().join("plan/changelog_metadata.json")).expect("a file");
    let metadata: Value = serde_json::from_slice(&metadata).expect("JSON");
    assert_eq!(metadata, plan["changelog_metadata"]);
    // A bucket without jobs has an empty list, so that its matrix is skipped.
    assert_eq!(outputs["multi_node_other_shards"], "[]");
    assert_eq!(outputs["multi_node_other_jobs"], "0");
    assert!(!folder.path().join("plan/multi_node_other").exists());
    let names: Vec<&String> = all.keys().collect();
    assert_eq!(names.len(), 11, "{names:?}");
}

#[test]
fn a_generated_list_splits_like_a_plan() {
    let folder = folder();
    let emit = |name: &str, more: &[&str]| {
        let args = [&["generate", "full-sweep", "--emit", name, "--github-output"], more].concat();
        let outputs = with_outputs(folder.path(), &args);
        let all = fetched(folder.path(), name, &outputs);
        assert_sound(&all);
        all
    };
    // 28 rows, of which 10 run an eval, and two vendor points that run another.
    let all = emit("mark", &[]);
    let throughput: Vec<&Value> = all
        .iter()
        .filter(|(name, _)| !name.contains("evals"))
        .flat_map(|(_, jobs)| jobs)
        .collect();
    assert_eq!(throughput.len(), 28);
    for job in &throughput {
        assert_eq!(job["row"]["run-eval"], false);
        assert!(job["row"].get("eval-conc").is_none() && job["row"].get("eval-framework").is_none());
    }
    assert_eq!(
        lines(&all["evals"].iter().map(|job| job["row"].clone()).collect()).len(),
        4
    );
    let of = |bucket: &str| lines(&all[bucket].iter().map(|job| job["row"].clone()).collect());
    assert_eq!(
        of("multinode_evals"),
        ["gamma_8k1k 1x4/1x8 [16,128] run only @128 lm-eval"]
    );
    assert_eq!(of("multinode_agentic_evals").len(), 4);
    assert_eq!(of("agentic_evals").len(), 5);
    for (name, mode, count) in [("only", "--evals-only", 14), ("all", "--all-evals", 23)] {
        let all = emit(name, &[mode]);
        assert!(all.keys().all(|bucket| bucket.contains("evals")), "{mode}");
        assert_eq!(ids(&all).len(), count, "{mode}");
    }
    assert!(!folder.path().join("mark/changelog_metadata.json").exists());
    let all = emit("none", &["--no-evals"]);
    assert!(all.keys().all(|bucket| !bucket.contains("evals")));
    assert_eq!(ids(&all).len(), 28);
}

#[test]
fn ids_stay_when_configs_change_their_order() {
    let emitted = |swap: bool| {
        let folder = folder();
        if swap {
            edit(
                folder.path(),
                "configs/amd-master.yaml",
                "conc-list: [8, 16, 32]",
                "conc-list: [32, 8, 16]",
            );
            let (amd, nvidia) = (
                folder.path().join("configs/amd-master.yaml"),
                folder.path().join("configs/nvidia-master.yaml"),
            );
            std::fs::rename(amd, folder.path().join("configs/zz-master.yaml")).expect("renamed");
            std::fs::rename(nvidia, folder.path().join("configs/aa-master.yaml")).expect("renamed");
        }
        let outputs = with_outputs(
            folder.path(),
            &["generate", "full-sweep", "--emit", "plan", "--github-output"],
        );
        let mut ids = ids(&fetched(folder.path(), "plan", &outputs));
        ids.sort();
        ids
    };
    assert_eq!(emitted(false), emitted(true));
}

#[test]
fn identical_rows_get_ids_of_their_own() {
    let folder = folder();
    edit(
        folder.path(),
        "configs/amd-master.yaml",
        "conc-list: [8, 16, 32]",
        "conc-list: [8, 8, 8, 16, 32]",
    );
    let outputs = with_outputs(
        folder.path(),
        &["generate", "full-sweep", "--emit", "plan", "--github-output"],
    );
    let all = fetched(folder.path(), "plan", &outputs);
    assert_sound(&all);
    assert_eq!(outputs["throughput_jobs"], "30");
    assert!(is_inline(&outputs), "thirty jobs travel in the outputs");
}

#[test]
fn overrides_are_applied_and_recorded_and_leave_the_fingerprint() {
    let folder = repository();
    log(folder.path(), &entry("beta-mi-vllm-fp8, kimi-mi-vllm-fp4", ""));
    let emit = |name: &str, more: &[&str]| {
        let args = [&PLAN[..], &["--emit", name, "--github-output"], more].concat();
        fetched(folder.path(), name, &with_outputs(folder.path(), &args))
    };
    let plain = emit("plain", &[]);
    let changed = emit(
        "changed",
        &[
            "--duration",
            "600",
            "--eval-framework",
            "lm-eval",
            "--eval-limit",
            "20",
            "--agentx-fast",
        ],
    );
    assert_sound(&changed);
    let job = |all: &BTreeMap<String, Vec<Value>>, bucket: &str| all[bucket][0].clone();
    let (before, after) = (job(&plain, "single_node_agentic"), job(&changed, "single_node_agentic"));
    assert_eq!(before["row"]["duration"], 3600);
    assert_eq!(after["row"]["duration"], 600);
    assert_eq!(after["row"]["recipe-fingerprint"], before["row"]["recipe-fingerprint"]);
    assert_ne!(after["id"], before["id"], "another job");
    assert!(before.get("overrides").is_none());
    let recorded = serde_json::json!({
        "duration": 600, "eval-framework": "lm-eval", "eval-limit": "20", "agentx-fast": true,
    });
    assert_eq!(after["overrides"], recorded);
    // Another framework starts from its own default suite.
    let vendor = |all: &BTreeMap<String, Vec<Value>>| {
        let rows = all["agentic_evals"].iter().map(|job| job["row"].clone()).collect();
        lines(&rows)
            .into_iter()
            .filter(|line| line.starts_with("kimik3_tp8_conc4"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        vendor(&plain),
        ["kimik3_tp8_conc4_kvnone tp8 4 run only kimi-vendor:kimi_tool_call_schema_full"]
    );
    assert_eq!(vendor(&changed), ["kimik3_tp8_conc4_kvnone tp8 4 run only lm-eval"]);
}

#[test]
fn a_full_sweep_of_thousands_of_rows_is_cut() {
    let folder = folder();
    let mut master = String::new();
    for config in 0..30 {
        // Long names and astral characters cost twice as UTF-16.
        let points: Vec<String> = (1..=100).map(|point| point.to_string()).collect();
        master.push_str(&format!(
            "big-{config}:\n  image: example/{}\n  model: org/m{config}\n  model-prefix: big{config}\n  precision: \
             fp8\n  framework: vllm\n  runner: mi\n  multinode: false\n  scenarios:\n    fixed-seq-len:\n    - isl: \
             1024\n      osl: 1024\n      search-space:\n      - {{ tp: 8, conc-list: [{}] }}\n",
            "\u{1f600}".repeat(700),
            points.join(", ")
        ));
    }
    write(folder.path(), "configs/big-master.yaml", master);
    let args = ["generate", "full-sweep", "--emit", "plan", "--github-output"];
    let outputs = with_outputs(folder.path(), &args);
    let all = fetched(folder.path(), "plan", &outputs);
    assert_sound(&all);
    assert!(!is_inline(&outputs), "three thousand are loaded shard by shard");
    assert_eq!(all["single_node_1k1k"].len(), 3004);
    let shards: Vec<u64> = serde_json::from_str(&outputs["single_node_1k1k_shards"]).expect("numbers");
    // Each job takes some 4,000 bytes as UTF-16: the bytes cut before the 256th job does.
    assert!(shards.len() > 3004_usize.div_ceil(MAX_JOBS), "{shards:?}");

    let small = std::fs::read_to_string(folder.path().join("configs/big-master.yaml")).expect("a file");
    write(folder.path(), "configs/big-master.yaml", small.replace('\u{1f600}', ""));
    let args = ["generate", "full-sweep", "--emit", "small", "--github-output"];
    let outputs = with_outputs(folder.path(), &args);
    let index: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("small/index.json")).expect("an index"))
            .expect("JSON");
    let shards = index["buckets"]["single_node_1k1k"]["shards"]
        .as_array()
        .expect("shards");
    let counts: Vec<u64> = shards
        .iter()
        .map(|shard| shard["jobs"].as_u64().expect("a count"))
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), 3004);
    // One label's jobs fill shards.
    assert_eq!(counts.iter().filter(|count| **count < 256).count(), 1, "{counts:?}");
    assert_eq!(outputs["single_node_1k1k_shards"], "[0,1,2,3,4,5,6,7,8,9,10,11]");
    let parallel: u64 = shards
        .iter()
        .map(|shard| shard["max-parallel"].as_u64().expect("a limit"))
        .sum();
    // The starter's limit of every label, shared out among all shards of this one; another bucket has some of its jobs.
    assert!((12..=32).contains(&parallel), "{parallel}");
}

/// The jobs of each label in a shard, and how many of the shard run at a time.
type Labels = (BTreeMap<String, u64>, u64);

/// What each shard of a bucket takes, by number.
fn labels(folder: &Path, plan: &str, outputs: &BTreeMap<String, String>, bucket: &str) -> Vec<Labels> {
    let numbers: Vec<u64> = serde_json::from_str(&outputs[&format!("{bucket}_shards")]).expect("numbers");
    let inputs = inputs(outputs, bucket);
    let of_shard = |number: &u64| {
        let outputs = shard(folder, plan, bucket, *number);
        let jobs: Vec<Value> = serde_json::from_str(&outputs["envelopes"]).expect("a list");
        let mut labels = BTreeMap::new();
        for job in jobs {
            *labels.entry(text(&job["runs-on"]).to_owned()).or_default() += 1;
        }
        let parallel = inputs[usize::try_from(*number).expect("a number")]["max-parallel"].as_u64();
        (labels, parallel.expect("a limit"))
    };
    numbers.iter().map(of_shard).collect()
}

/// A fleet of so many labels, each with a config of so many points at 1k1k.
fn many_labels(folder: &Path, labels: usize, points: usize) {
    let (mut master, mut runners) = (String::new(), String::from("labels:\n"));
    let points: Vec<String> = (1..=points).map(|point| point.to_string()).collect();
    for label in 0..labels {
        runners.push_str(&format!("  l{label}: [l{label}_0]\n"));
        master.push_str(&format!(
            "c{label}: {{ image: i, model: m, model-prefix: m{label}, precision: fp8, framework: f, runner: l{label}, \
             multinode: false, scenarios: {{ fixed-seq-len: [{{ isl: 1024, osl: 1024, search-space: [{{ tp: 8, \
             conc-list: [{}] }}] }}] }} }}\n",
            points.join(", ")
        ));
    }
    write(folder, "configs/x-master.yaml", master);
    write(folder, "configs/runners.yaml", runners + "hardware: {}\n");
}

const SETTINGS: &str = include_str!("../configs/workflows.yaml");

/// The project's settings, with other limits.
fn limits(folder: &Path, limits: &str) {
    let (before, rest) = SETTINGS.split_once("max-parallel:\n").expect("the limits");
    let (_, after) = rest.split_once("\n\n").expect("more settings");
    write(
        folder,
        "configs/workflows.yaml",
        format!("{before}max-parallel: {limits}\n\n{after}"),
    );
}

#[test]
fn a_shard_holds_one_label_and_shares_its_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    many_labels(folder.path(), 3, 300);
    limits(folder.path(), "{ default: 9, labels: { l1: 1, l2: 200 } }");
    let args = ["generate", "full-sweep", "--emit", "plan", "--github-output"];
    let outputs = with_outputs(folder.path(), &args);
    let shards = labels(folder.path(), "plan", &outputs, "single_node_1k1k");
    let told: Vec<(String, u64, u64)> = shards
        .into_iter()
        .map(|(labels, parallel)| {
            let [(label, jobs)] = Vec::from_iter(labels).try_into().expect("one label");
            (label, jobs, parallel)
        })
        .collect();
    let wanted = [
        ("l0", 256, 7),
        ("l0", 44, 2),
        ("l1", 256, 1),
        ("l1", 44, 1),
        ("l2", 256, 170),
        ("l2", 44, 30),
    ];
    assert_eq!(
        told,
        wanted.map(|(label, jobs, parallel)| (label.to_owned(), jobs, parallel))
    );
}

#[test]
fn more_labels_than_shards_share_them_within_their_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    many_labels(folder.path(), 100, 3);
    limits(folder.path(), "{ default: 9, labels: { l1: 2, l2: 1 } }");
    let args = [
        "generate",
        "full-sweep",
        "--emit",
        "plan",
        "--github-output",
        "--canary",
    ];
    let outputs = with_outputs(folder.path(), &args);
    let shards = labels(folder.path(), "plan", &outputs, "single_node_1k1k");
    // The canary is one more.
    assert_eq!((shards.len(), outputs["canary_jobs"].as_str()), (63, "1"));
    assert_eq!(
        shards
            .iter()
            .map(|(labels, _)| labels.values().sum::<u64>())
            .sum::<u64>(),
        299
    );
    for (labels, parallel) in &shards {
        let all: u64 = labels.values().sum();
        let limited = [("l1", 2), ("l2", 1)]
            .into_iter()
            .filter(|(label, _)| labels.contains_key(*label));
        assert_eq!(
            *parallel,
            limited.map(|(_, limit)| limit).min().unwrap_or(all),
            "{labels:?}"
        );
    }
}

#[test]
fn a_job_that_fits_no_matrix_is_refused() {
    let folder = folder();
    edit(
        folder.path(),
        "configs/nvidia-master.yaml",
        "[A=1]",
        &format!("[A={}]", "x".repeat(500_000)),
    );
    let output = run(folder.path(), ["generate", "full-sweep", "--emit", "plan"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("a matrix holds 900000"), "{said}");
}

#[test]
fn a_plans_folder_is_new_and_a_shard_exists() {
    let folder = folder();
    let emit = ["generate", "test-config", "--config-keys", "alpha-*", "--emit", "plan"];
    let index = support::json(folder.path(), emit);
    assert_eq!(index["jobs"], 16);
    let output = run(folder.path(), emit);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("the folder `plan` is not empty"),
        "{}",
        stderr(&output)
    );
    for (args, reason) in [
        (&["--bucket", "evals", "--index", "1"][..], "`evals` has no shard 1"),
        (
            &["--bucket", "multinode_evals", "--index", "0"],
            "the plan has no job in `multinode_evals`",
        ),
        (
            &["--plan", "elsewhere", "--bucket", "evals", "--index", "0"],
            "`elsewhere` is not found",
        ),
        (
            &["--plan", "plan/evals/0.json", "--bucket", "evals", "--index", "0"],
            "`plan/evals/0.json` is no folder of a plan, nor its index",
        ),
    ] {
        let output = run(folder.path(), [&["shard"], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
    // A shard that was cut off on its way is no shard.
    write(folder.path(), "plan/evals/0.json", "[{\"id\":");
    let output = run(folder.path(), ["shard", "--bucket", "evals", "--index", "0"]);
    assert!(
        stderr(&output).contains("is not a shard of a plan"),
        "{}",
        stderr(&output)
    );
    // Without GITHUB_OUTPUT it says so, and that it belongs into a step.
    let output = run(
        folder.path(),
        [
            "shard",
            "--bucket",
            "single_node_1k1k",
            "--index",
            "0",
            "--github-output",
        ],
    );
    assert!(
        stderr(&output).contains("GITHUB_OUTPUT is not set"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn outputs_that_cannot_be_written_stop_before_a_plan_is() {
    let folder = repository();
    log(folder.path(), &entry("alpha-mi-vllm-fp8", ""));
    for (file, why) in [
        (
            Some("/nope/x"),
            "GITHUB_OUTPUT names `/nope/x`, which cannot be written",
        ),
        (None, "GITHUB_OUTPUT is not set"),
    ] {
        let mut command = support::sweepctl(folder.path());
        command.args(["plan", "--latest", "--emit", "out", "--github-output"]);
        match file {
            Some(file) => command.env("GITHUB_OUTPUT", file),
            None => command.env_remove("GITHUB_OUTPUT"),
        };
        let output = command.output().expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        assert!(!folder.path().join("out").exists());
    }
}

#[test]
fn entries_that_are_not_committed_are_told() {
    let folder = repository();
    log(folder.path(), &entry("alpha-mi-vllm-fp8", ""));
    let told = |folder: &std::path::Path| stderr(&run(folder, ["plan", "--latest", "--summary"]));
    assert_eq!(told(folder.path()), "");
    let path = folder.path().join(CHANGELOG);
    let text = std::fs::read_to_string(&path).expect("a changelog");
    std::fs::write(&path, text + &entry("alpha-mi-vllm-fp8", "  evals-only: true\n")).expect("written");
    let said = told(folder.path());
    assert!(
        said.contains("entries that are not committed: they are not planned"),
        "{said}"
    );
}
