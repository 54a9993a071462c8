//! Launches through srt-slurm. `srtctl` is in no registry: a stand-in records how it is called, and submits through the
//! real sbatch under the name that the real one would use.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::cluster::cluster;
use super::launcher::{Order, envelope};
use super::{folder, path_with, soon, stand_in};
use crate::support;

/// A recipe for [`row`].
pub(super) const RECIPE: &str = "\
schema: 2
name: anything
model: {path: other, container: other, precision: bf16}
resources: {gpu_type: gb200, gpus_per_node: 4}
engine: sglang
roles:
  prefill: {nodes: 2, workers: 1, gpus: 8, env: {A: \"1\"}, args: {mem-fraction-static: 0.80, enable-x: yes}}
  decode: {nodes: 2, workers: 2, args: {tensor-parallel-size: 4}}
benchmark: {type: sa-bench, isl: 8192, osl: 1024, concurrencies: [1], req_rate: inf}
";

/// Refuses what the real one refuses of a recipe.
pub const FIELDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slurm/srtctl_fields.py");

/// What stands for srtctl: it leaves its arguments and environment, and submits `job.sh` of the checkout.
const SRTCTL: &str = concat!(
    "\
python3 ",
    env!("CARGO_MANIFEST_DIR"),
    "/tests/slurm/srtctl_fields.py \"$3\" || exit 1
printf '%s\\n' \"$@\" > srtctl.args
env -0 > srtctl.env
[ ! -e fail ] || { echo 'recipe.yaml is not to my liking'; exit 2; }
id=$(/usr/bin/sbatch --parsable --job-name=\"$RUNNER_NAME\" --output=\"$PWD/sweep_%j.log\" job.sh)
echo \"Job $id submitted!\"
"
);

pub(super) fn row(recipe: &str) -> Value {
    let side = |workers: u64, tp: u64| {
        json!({"num-worker": workers, "tp": tp, "ep": 1, "dp-attn": false, "pp": 1,
        "dcp-size": 1, "pcp-size": 1})
    };
    json!({
        "image": "lmsysorg/sglang:v0.5", "model": "org/Model", "model-prefix": "model", "precision": "fp8",
        "framework": "dynamo-sglang", "runner": "gb200", "isl": 8192, "osl": 1024, "spec-decoding": "none",
        "prefill": side(1, 8), "decode": side(2, 4), "conc": [16, 64], "max-model-len": 9472,
        "exp-name": "model_8k1k", "disagg": true, "run-eval": false, "eval-only": false, "kv-p2p-transfer": "nixl",
        "srt-recipe": recipe,
    })
}

/// A job of srt-slurm that runs a script.
fn order(folder: &Path, runner: &str, script: &str) -> Order {
    let mut order = Order::new(folder, runner, "");
    order.srt = true;
    order.envelope = envelope(row("recipes/model/8k1k.yaml"));
    support::write(&order.workspace, "recipes/model/8k1k.yaml", RECIPE);
    support::write(&order.workspace, "job.sh", format!("#!/bin/bash\n{script}\n"));
    order
}

fn with_srtctl(folder: &Path) -> impl FnOnce(&mut Command) {
    let bin = stand_in(folder, "srtctl", SRTCTL);
    move |command| {
        command.env("PATH", path_with(&bin)).env("GITHUB_TOKEN", "ghs_x");
    }
}

fn variables(file: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(file).expect("a file");
    let variables = text
        .split_terminator('\0')
        .filter_map(|variable| variable.split_once('='));
    variables
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn refusal(order: &Order) -> String {
    order
        .with(|backend, job| backend.intend(job))
        .expect_err("a refusal")
        .to_string()
}

#[test]
fn a_recipe_is_applied_with_what_the_row_decides() {
    let folder = folder();
    let order = order(folder.path(), "srt_0", "env -0 > job.env; echo measured; exit 5");
    let mut launch = order.start_with(with_srtctl(folder.path()));
    assert_eq!(launch.finish(), "exited with code 5", "{:?}", launch.shown);
    assert!(launch.shown.iter().any(|line| line == "measured"), "{:?}", launch.shown);

    let file = order.state.join("srt/recipe.yaml");
    let args = std::fs::read_to_string(order.workspace.join("srtctl.args")).expect("a file");
    assert_eq!(args, format!("apply\n-f\n{}\n", file.display()));
    let mut written: Value = serde_json::from_str(&std::fs::read_to_string(file).expect("a file")).expect("JSON");
    let token = written["sbatch_directives"]["comment"].take();
    assert!(
        token.as_str().is_some_and(|token| token.starts_with("sweepctl-")),
        "{token}"
    );
    let wanted = json!({
        "schema": 2,
        "name": "srt_0",
        "model": {"path": "org/Model", "container": "lmsysorg/sglang:v0.5", "precision": "fp8"},
        "resources": {"gpu_type": "gb200", "gpus_per_node": 4},
        "engine": "sglang",
        "roles": {
            "prefill": {"nodes": 2, "workers": 1, "gpus": 8, "env": {"A": "1"},
                "args": {"mem-fraction-static": 0.8, "enable-x": true}},
            "decode": {"nodes": 2, "workers": 2, "args": {"tensor-parallel-size": 4}},
        },
        "benchmark": {"type": "sa-bench", "isl": 8192, "osl": 1024, "concurrencies": [16, 64], "req_rate": "inf"},
        "sbatch_directives": {"comment": null},
    });
    assert_eq!(support::difference(&written, &wanted), None);

    for file in ["srtctl.env", "job.env"] {
        let seen = variables(&order.workspace.join(file));
        for (name, value) in order
            .environment()
            .iter()
            .filter(|(name, _)| *name != "INFMAX_WORKSPACE")
        {
            assert_eq!(seen.get(name).map(String::as_str), Some(value), "{name} in {file}");
        }
        assert_eq!(
            seen["INFMAX_WORKSPACE"], "/shared/checkout",
            "the nodes' own path to the checkout"
        );
        assert!(!seen.contains_key("GITHUB_TOKEN"), "{file}");
    }
    assert_eq!(
        std::fs::read_dir(order.state.join("jobs")).expect("a folder").count(),
        0
    );
}

#[test]
fn a_cancelled_step_ends_the_job_and_a_killed_one_leaves_it_to_the_release() {
    let folder = folder();
    let orders = ["srtc_1", "srtc_10"].map(|runner| order(folder.path(), runner, "echo started; sleep 120"));
    let mut launches = orders
        .each_ref()
        .map(|order| order.start_with(with_srtctl(folder.path())));
    launches.iter_mut().for_each(|launch| launch.wait_for("started"));
    let [mut cancelled, killed] = launches;
    let since = Instant::now();
    cancelled.signal(Signal::SIGTERM);
    let end = cancelled.finish();
    assert!(end.starts_with("was ended by SIGTERM"), "{end}: {:?}", cancelled.shown);
    assert!(since.elapsed() < Duration::from_secs(7), "{:?}", since.elapsed());
    assert!(soon(|| cluster().alive("srtc_1").is_empty()));
    killed.kill();
    let id = cluster().wait_for("srtc_10");
    assert_eq!(orders[0].release(), Vec::<String>::new());
    assert!(orders[1].release()[0].contains(&format!("Slurm job {id} ")));
    assert!(soon(|| cluster().alive("srtc_10").is_empty()));
}

#[test]
fn a_srtctl_that_refuses_or_is_not_there_is_said() {
    let folder = folder();
    let order = order(folder.path(), "srtf_0", "true");
    support::write(&order.workspace, "fail", "");
    let mut launch = order.start_with(with_srtctl(folder.path()));
    let end = launch.finish();
    assert!(end.contains("`srtctl apply` exited with code 2"), "{end}");
    assert!(
        launch.shown.iter().any(|line| line.contains("not to my liking")),
        "{:?}",
        launch.shown
    );
    let end = order.start().finish();
    assert!(end.contains("`srtctl` cannot be started"), "{end}");
}

#[test]
fn evals_take_their_own_recipe() {
    let folder = folder();
    let mut order = order(folder.path(), "srte_0", "");
    let other = RECIPE.replace("gb200", "gb300");
    support::write(&order.workspace, "recipes/model/eval.yml", other);
    order.envelope["row"]["eval-srt-recipe"] = json!("recipes/model/eval.yml");
    let gpu = |order: &Order| {
        let intent = order.with(|backend, job| backend.intend(job)).expect("an intent");
        let recipe: Value = serde_json::from_str(&intent.files[0].1).expect("JSON");
        recipe["resources"]["gpu_type"].clone()
    };
    assert_eq!(gpu(&order), "gb200", "throughput has the row's");
    order.envelope["row"]["run-eval"] = json!(true);
    assert_eq!(gpu(&order), "gb200", "so has an eval beside it");
    order.envelope["row"]["eval-only"] = json!(true);
    assert_eq!(gpu(&order), "gb300");
}

#[test]
fn a_recipe_lies_in_the_repository() {
    let folder = folder();
    let mut order = order(folder.path(), "srtp_0", "");
    support::write(folder.path(), "outside/recipe.yaml", RECIPE);
    let recipes = order.workspace.join("recipes");
    std::os::unix::fs::symlink(folder.path().join("outside"), recipes.join("linked")).expect("a link");
    std::os::unix::fs::symlink("8k1k.yaml", recipes.join("model/link.yaml")).expect("a link");
    let absolute = recipes.join("model/8k1k.yaml").display().to_string();
    for (path, reason) in [
        ("../outside/recipe.yaml", "leads out of the checkout"),
        ("recipes/../../outside/recipe.yaml", "leads out of the checkout"),
        ("recipes/linked/recipe.yaml", "is or crosses a link"),
        ("recipes/model/link.yaml", "is or crosses a link"),
        ("recipes/model/none.yaml", "cannot be read"),
        ("job.sh", "it is not a YAML file"),
        (&absolute, "it is not a YAML file of the repository"),
    ] {
        order.envelope = envelope(row(path));
        let said = refusal(&order);
        assert!(said.contains(reason), "{path}: {said}");
    }
}

#[test]
fn a_recipe_of_another_deployment_is_refused_with_every_place() {
    let folder = folder();
    let order = order(folder.path(), "srtd_0", "");
    let refused = |from: &str, to: &str| {
        assert!(RECIPE.contains(from), "{from}");
        support::write(&order.workspace, "recipes/model/8k1k.yaml", RECIPE.replace(from, to));
        refusal(&order)
    };
    let said = refused("isl: 8192", "isl: 1024");
    assert!(
        said.contains("the row's `isl` is 8192") && said.contains("recipes/model/8k1k.yaml:9:29"),
        "{said}"
    );
    let said = refused("workers: 2", "workers: 3");
    assert!(said.contains("the row deploys 2 decode workers"), "{said}");
    let said = refused("nodes: 2, workers: 2", "nodes: 4, workers: 2");
    assert!(
        said.contains("a decode worker of the row has 4 GPUs, the recipe's has 8"),
        "{said}"
    );
    let said = refused("gpus: 8", "gpus: 4");
    assert!(
        said.contains("a prefill worker of the row has 8 GPUs, the recipe's has 4"),
        "{said}"
    );
    let said = refused("gpus_per_node: 4", "gpus_per_node: 8");
    assert!(
        said.contains("the runner's nodes have 4 GPUs each") && said.contains("2 problems"),
        "{said}"
    );
    let said = refused("  decode:", "  agg:");
    assert!(
        said.contains("`roles` lacks `decode`") && said.contains("`agg` cannot stand here"),
        "{said}"
    );
    let said = refused("schema: 2", "schema: 1");
    assert!(
        said.contains("recipes of schema 2") && said.contains("srtctl migrate"),
        "{said}"
    );
    let said = refused("schema: 2\n", "");
    assert!(said.contains("lacks `schema`"), "{said}");
    let said = refused("engine: sglang", "sweep: {a: [1, 2]}");
    assert!(said.contains("a row is one job"), "{said}");
    let said = refused("req_rate: inf", "req_rate: .inf");
    assert!(said.contains("is no number that a recipe can hold"), "{said}");
}
