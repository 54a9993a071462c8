//! The project's own recipes, and those that are written for rows without one.

use std::path::Path;

use serde_json::{Value, json};
use sweepctl::backends::slurm::gpus_per_node;
use sweepctl::backends::srt::{Srt, SrtBackend};
use sweepctl::config::recipe::Schema;
use sweepctl::config::runners::Runners;
use sweepctl::config::source::Source;
use sweepctl::matrix::envelope::Envelope;
use sweepctl::step::environment::{Environment, Place};
use sweepctl::step::launch::backend::{Backend, Prepared};

use super::launcher::envelope;
use crate::support;

/// The keys of a recipe of schema 2 that the project uses.
const KEYS: [&str; 13] = [
    "benchmark",
    "dynamo",
    "engine",
    "frontend",
    "health_check",
    "model",
    "name",
    "post_eval",
    "resources",
    "roles",
    "sbatch_directives",
    "schema",
    "slurm",
];

/// The recipe of a row on the rack, from the project's own checkout.
fn recipe(row: &Value) -> Result<Value, String> {
    let source = Source::read(&support::project().join("configs/runners.yaml")).expect("a file");
    let runners = Runners::load(&source.into()).expect("the runners");
    let envelope: Envelope = serde_json::from_value(envelope(row.clone())).expect("an envelope");
    let runner = "gb200-cedar_01";
    let place = Place {
        runner_name: runner.to_owned(),
        ..Place::default()
    };
    let job = Prepared {
        envelope: &envelope,
        environment: &Environment::new(&envelope, &place).expect("an environment"),
        runner,
        workspace: support::project(),
        state: Path::new("/state"),
    };
    let backend = SrtBackend {
        settings: Srt {
            recipes_dir: None,
            workspace: None,
            schema: Schema::Two,
        },
        gpus_per_node: gpus_per_node(&runners, &envelope.row.topology.runner, runner),
        mask: sweepctl::secrets::Mask::default(),
    };
    let intent = backend.intend(&job).map_err(|problems| problems.to_string())?;
    Ok(serde_json::from_str(&intent.files[0].1).expect("JSON"))
}

/// The rows of a config of the project.
fn rows(key: &str, evals: &str) -> Vec<Value> {
    let args = ["generate", "test-config", "--config-keys", key, evals, "--json"];
    let rows = support::json(support::project(), args);
    rows.as_array().expect("rows").clone()
}

#[test]
fn the_projects_recipes_deploy_what_their_rows_say() {
    let key = "r1-gb200-dynamo-trt-fp4-disagg";
    let mut rows: Vec<Value> = [rows(key, "--no-evals"), rows(key, "--evals-only")].concat();
    rows.retain(|row| row.get("srt-recipe").is_some());
    let mut names: Vec<&str> = Vec::new();
    for row in &rows {
        let eval = row["eval-only"] == json!(true) && row["eval-srt-recipe"].is_string();
        names.push(
            row[if eval { "eval-srt-recipe" } else { "srt-recipe" }]
                .as_str()
                .expect("a name"),
        );
        let recipe = recipe(row).unwrap_or_else(|problems| panic!("{row}\n{problems}"));
        for (key, _) in recipe.as_object().expect("a mapping") {
            assert!(KEYS.contains(&key.as_str()), "{key}");
        }
        assert_eq!(recipe["benchmark"]["concurrencies"], row["conc"]);
        let mtp = row["spec-decoding"] == json!("mtp");
        for side in ["prefill", "decode"] {
            let (role, row) = (&recipe["roles"][side], &row[side]);
            let gpus = row["num-worker"].as_u64().expect("a number") * row["tp"].as_u64().expect("a number");
            assert_eq!(role["nodes"], json!(gpus / 4), "{side}");
            let args = &role["args"];
            assert_eq!(args["tensor_parallel_size"], row["tp"], "{side}");
            assert_eq!(args["moe_expert_parallel_size"], row["ep"], "{side}");
            assert_eq!(args["enable_attention_dp"], row["dp-attn"], "{side}");
            assert_eq!(args["speculative_config"].is_object(), mtp, "{side}");
            let settings = row["additional-settings"].as_array().cloned().unwrap_or_default();
            for setting in settings.iter().filter_map(Value::as_str) {
                let (name, value) = setting.split_once('=').expect("a setting");
                assert_eq!(role["env"][name], json!(value), "{side}");
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    let folder = support::project().join("recipes/r1-gb200");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("recipes")
        .flatten()
        .map(|file| format!("recipes/r1-gb200/{}", file.file_name().to_string_lossy()))
        .collect();
    files.sort();
    assert_eq!(names, files, "every recipe belongs to a row");
}

/// A multi-node row that names no recipe.
fn plain(framework: &str, changes: Value) -> Value {
    let side = |workers: u64, tp: u64, dp: bool| {
        json!({"num-worker": workers, "tp": tp, "ep": tp, "dp-attn": dp,
        "pp": 1, "dcp-size": 1, "pcp-size": 1})
    };
    let mut row = json!({
        "image": "a:b", "model": "org/Model", "model-prefix": "model", "precision": "fp4", "framework": framework,
        "runner": "gb200", "isl": 1024, "osl": 1024, "spec-decoding": "none", "prefill": side(2, 4, false),
        "decode": side(1, 8, false), "conc": [16], "max-model-len": 2304, "exp-name": "model_1k1k", "disagg": true,
        "run-eval": false, "eval-only": false, "kv-p2p-transfer": "nixl",
    });
    for (name, value) in changes.as_object().expect("fields") {
        row[name] = value.clone();
    }
    row
}

#[test]
fn a_row_without_a_recipe_gets_a_plain_one() {
    let found = recipe(&plain("dynamo-trt", json!({"spec-decoding": "mtp"}))).expect("a recipe");
    let args = |tp: u64, more: Value| {
        let mut args = json!({"backend": "pytorch", "tensor_parallel_size": tp, "pipeline_parallel_size": 1,
            "moe_expert_parallel_size": tp, "enable_attention_dp": false, "max_seq_len": 2304,
            "cache_transceiver_config": {"backend": "NIXL"},
            "speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 1}});
        args.as_object_mut()
            .expect("fields")
            .extend(more.as_object().expect("fields").clone());
        args
    };
    let wanted = json!({
        "schema": 2,
        "name": "gb200-cedar_01",
        "model": {"path": "org/Model", "container": "a:b", "precision": "fp4"},
        "resources": {"gpu_type": "gb200", "gpus_per_node": 4},
        "dynamo": {"install": false},
        "frontend": {"type": "dynamo"},
        "engine": {"type": "trtllm", "served_model_name": "org/Model"},
        "roles": {
            "prefill": {"nodes": 2, "workers": 2, "gpus": 4, "args": args(4, json!({"disable_overlap_scheduler": true}))},
            "decode": {"nodes": 2, "workers": 1, "gpus": 8, "args": args(8, json!({}))},
        },
        "benchmark": {"type": "sa-bench", "isl": 1024, "osl": 1024, "concurrencies": [16], "req_rate": "inf"},
        "sbatch_directives": {"comment": "<a token of this launch>"},
    });
    assert_eq!(support::difference(&found, &wanted), None);

    let found = recipe(&plain("dynamo-vllm", json!({}))).expect("a recipe");
    assert_eq!(found["engine"], json!({"type": "vllm", "connector": "nixl"}));
    assert_eq!(found["roles"]["decode"]["args"]["enable-expert-parallel"], json!(true));

    // Without decode workers the others do both.
    let mut row = plain("dynamo-sglang", json!({"disagg": false}));
    row["decode"]["num-worker"] = json!(0);
    row["prefill"]["dp-attn"] = json!(true);
    let found = recipe(&row).expect("a recipe");
    let roles = found["roles"].as_object().expect("roles");
    assert_eq!(roles.keys().collect::<Vec<_>>(), ["agg"]);
    assert_eq!(roles["agg"]["args"]["data-parallel-size"], json!(4));
}

#[test]
fn what_a_plain_recipe_cannot_do_is_said_at_once() {
    let row = plain("sglang", json!({"spec-decoding": "draft_model", "runner": "elsewhere"}));
    let said = recipe(&row).expect_err("a refusal");
    for reason in [
        "`sglang` is no engine behind Dynamo",
        "speculative decoding (`draft_model`)",
    ] {
        assert!(said.contains(reason), "{reason}: {said}");
    }
    let mut row = plain("dynamo-vllm", json!({}));
    row["decode"]["dp-attn"] = json!(true);
    row["prefill"]["pcp-size"] = json!(2);
    let said = recipe(&row).expect_err("a refusal");
    assert!(
        said.contains("data parallel attention") && said.contains("context parallelism"),
        "{said}"
    );
}
