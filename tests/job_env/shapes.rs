//! Every variable of one row of each shape.

use std::collections::HashSet;

use serde_json::{Value, json};
use sweepctl::config::fleet::Fleet;
use sweepctl::matrix::envelope::Envelope;
use sweepctl::step::environment::{self, Environment, Place};

use super::{Variables, envelope, job_env, multi_agentic, multi_fixed, single_agentic, single_fixed, variables};
use crate::corpus::corpus;
use crate::support;

/// What launch scripts read on every node.
const EVERY: &[&str] = &[
    "EXP_NAME",
    "RECIPE_FINGERPRINT",
    "MODEL",
    "MODEL_PREFIX",
    "ISL",
    "OSL",
    "MAX_MODEL_LEN",
    "IMAGE",
    "FRAMEWORK",
    "PRECISION",
    "TP",
    "PP_SIZE",
    "DCP_SIZE",
    "PCP_SIZE",
    "EP_SIZE",
    "DP_ATTENTION",
    "CONC",
    "SPEC_DECODING",
    "DISAGG",
    "RUN_EVAL",
    "EVAL_ONLY",
    "EVAL_FRAMEWORK",
    "EVAL_SUITE",
    "EVAL_CONC",
    "EVAL_LIMIT",
    "SCENARIO_TYPE",
    "SCENARIO_SUBDIR",
    "IS_AGENTIC",
    "KV_OFFLOADING",
    "KV_OFFLOAD_BACKEND",
    "KV_OFFLOAD_BACKEND_METADATA",
    "ROUTER_METADATA",
    "KV_P2P_TRANSFER",
    "TOTAL_CPU_DRAM_GB",
    "DURATION",
    "AIPERF_EXPERIMENTAL_FAST",
    "GPU_COUNT",
    "RUNNER_NAME",
    "RUNNER_TYPE",
    "RESULT_FILENAME",
    "IS_MULTINODE",
    "INFMAX_WORKSPACE",
    "PYTHONDONTWRITEBYTECODE",
    "RANDOM_RANGE_RATIO",
    "SWEEPCTL_ENVELOPE",
];

/// What they read besides in multi-node jobs.
const MANY_NODES: &[&str] = &[
    "CONC_LIST",
    "PREFILL_NUM_WORKERS",
    "PREFILL_TP",
    "PREFILL_PP_SIZE",
    "PREFILL_DCP_SIZE",
    "PREFILL_PCP_SIZE",
    "PREFILL_EP",
    "PREFILL_DP_ATTN",
    "PREFILL_DP_ATTENTION",
    "PREFILL_HARDWARE",
    "DECODE_NUM_WORKERS",
    "DECODE_TP",
    "DECODE_PP_SIZE",
    "DECODE_DCP_SIZE",
    "DECODE_PCP_SIZE",
    "DECODE_EP",
    "DECODE_DP_ATTN",
    "DECODE_DP_ATTENTION",
    "DECODE_HARDWARE",
];

/// Lines of `NAME=VALUE`.
fn wanted(text: &str) -> Variables {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.split_once('=').expect("NAME=VALUE"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[track_caller]
fn assert_same(found: &Variables, wanted: &Variables) {
    let found = json!(found);
    if let Some(difference) = support::difference(&found, &json!(wanted)) {
        panic!("{difference}");
    }
}

#[test]
fn one_node_with_fixed_sequences() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = job_env(
        folder.path(),
        &envelope(single_fixed()),
        &["--runner-name", "b200-birch_01"],
    );
    let found = variables(command.env("GITHUB_WORKSPACE", "/work/space"));
    let wanted = wanted(
        "EXP_NAME=model8b_8k1k
        RECIPE_FINGERPRINT=00112233445566778899aabbccddeeff
        MODEL=org/Model-8B
        MODEL_PREFIX=model8b
        ISL=8192
        OSL=1024
        MAX_MODEL_LEN=9472
        EVAL_MAX_MODEL_LEN=9472
        IMAGE=vllm/vllm-openai:v0.25.1
        FRAMEWORK=vllm
        PRECISION=fp8
        TP=4
        PP_SIZE=2
        DCP_SIZE=2
        PCP_SIZE=1
        EP_SIZE=4
        DP_ATTENTION=true
        GPU_COUNT=8
        CONC=64
        SPEC_DECODING=mtp
        DISAGG=false
        IS_MULTINODE=false
        RUN_EVAL=true
        EVAL_ONLY=true
        EVAL_FRAMEWORK=lm-eval
        EVAL_SUITE=
        EVAL_CONC=
        EVAL_LIMIT=
        SCENARIO_TYPE=fixed-seq-len
        SCENARIO_SUBDIR=fixed_seq_len/
        IS_AGENTIC=0
        KV_OFFLOADING=none
        KV_OFFLOAD_BACKEND=
        KV_OFFLOAD_BACKEND_METADATA=
        ROUTER_METADATA=
        KV_P2P_TRANSFER=
        TOTAL_CPU_DRAM_GB=0
        DURATION=
        AIPERF_EXPERIMENTAL_FAST=0
        RUNNER_NAME=b200-birch_01
        RUNNER_TYPE=b200
        RESULT_FILENAME=model8b_8k1k_fp8_vllm_tp4-pp2-dcp2-pcp1-ep4-dpatrue_disagg-false_spec-mtp_conc64_b200-birch_01_recipe-0011223344556677
        INFMAX_WORKSPACE=/work/space
        SWEEPCTL_ENVELOPE=/work/space/.sweepctl/envelope.json
        PYTHONDONTWRITEBYTECODE=1
        RANDOM_RANGE_RATIO=0.8
        RESULT_DIR=/workspace/results",
    );
    assert_same(&found, &wanted);
}

#[test]
fn many_nodes_with_fixed_sequences() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = job_env(folder.path(), &envelope(multi_fixed()), &[]);
    let found = variables(
        command
            .env("RUNNER_NAME", "gb200-cedar_00")
            .env("MODEL_PATH", "/raid/r1"),
    );
    let here = folder.path().canonicalize().expect("a path");
    let wanted = wanted(&format!(
        "EXP_NAME=modelr1_1k1k
        RECIPE_FINGERPRINT=
        MODEL=org/Model-R1
        MODEL_PATH=/raid/r1
        MODEL_PREFIX=modelr1
        ISL=1024
        OSL=1024
        MAX_MODEL_LEN=2304
        IMAGE=lmsysorg/sglang:v0.5
        FRAMEWORK=dynamo-sglang
        PRECISION=fp4
        TP=
        PP_SIZE=
        DCP_SIZE=
        PCP_SIZE=
        EP_SIZE=
        DP_ATTENTION=
        GPU_COUNT=
        CONC=
        CONC_LIST=256 1024
        SPEC_DECODING=none
        DISAGG=true
        IS_MULTINODE=true
        RUN_EVAL=true
        EVAL_ONLY=true
        EVAL_FRAMEWORK=
        EVAL_SUITE=
        EVAL_CONC=256 1024
        EVAL_LIMIT=
        SCENARIO_TYPE=fixed-seq-len
        SCENARIO_SUBDIR=fixed_seq_len/
        IS_AGENTIC=0
        KV_OFFLOADING=none
        KV_OFFLOAD_BACKEND=
        KV_OFFLOAD_BACKEND_METADATA=
        ROUTER_METADATA={{\"name\":\"sgl-router\",\"version\":\"0.3.2\"}}
        KV_P2P_TRANSFER=nixl
        TOTAL_CPU_DRAM_GB=0
        DURATION=
        AIPERF_EXPERIMENTAL_FAST=0
        RUNNER_NAME=gb200-cedar_00
        RUNNER_TYPE=gb200
        RESULT_FILENAME=modelr1_1k1k_fp4_dynamo-sglang_prefill-tp4-pp1-dcp1-pcp2-ep4-dptrue-nw2_decode-tp16-pp2-dcp4-pcp1-ep8-dpfalse-nw1_disagg-true_spec-none_conc256x1024_gb200-cedar_00
        INFMAX_WORKSPACE={0}
        SWEEPCTL_ENVELOPE={0}/.sweepctl/envelope.json
        PYTHONDONTWRITEBYTECODE=1
        RANDOM_RANGE_RATIO=0.8
        PREFILL_NUM_WORKERS=2
        PREFILL_TP=4
        PREFILL_PP_SIZE=1
        PREFILL_DCP_SIZE=1
        PREFILL_PCP_SIZE=2
        PREFILL_EP=4
        PREFILL_DP_ATTN=true
        PREFILL_DP_ATTENTION=true
        PREFILL_HARDWARE=gb200
        DECODE_NUM_WORKERS=1
        DECODE_TP=16
        DECODE_PP_SIZE=2
        DECODE_DCP_SIZE=4
        DECODE_PCP_SIZE=1
        DECODE_EP=8
        DECODE_DP_ATTN=false
        DECODE_DP_ATTENTION=false
        DECODE_HARDWARE=gb300
        CONFIG_FILE=recipes/x.yaml
        A=b c=d
        DECODE_NODES=4",
        here.display()
    ));
    assert_same(&found, &wanted);
}

#[test]
fn one_node_of_agents() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut envelope = envelope(single_agentic());
    envelope["overrides"] = json!({"duration": 600, "eval-limit": "10", "agentx-fast": true});
    let mut command = job_env(folder.path(), &envelope, &["--runner-name", "b200-birch_00"]);
    let found = variables(command.env("GITHUB_WORKSPACE", "/w").env("RUNNER_NAME", "another_00"));
    let wanted = wanted(
        "EXP_NAME=minimaxm3_tp8_conc16_kvdram-lmcache_spec-draft_model
        RECIPE_FINGERPRINT=
        MODEL=/models/m3
        MODEL_PATH=/models/m3
        MODEL_PREFIX=minimaxm3
        ISL=0
        OSL=0
        MAX_MODEL_LEN=0
        IMAGE=vllm/vllm-openai:v0.25.1
        FRAMEWORK=vllm
        PRECISION=fp8
        TP=8
        PP_SIZE=1
        DCP_SIZE=1
        PCP_SIZE=1
        EP_SIZE=1
        DP_ATTENTION=false
        GPU_COUNT=8
        CONC=16
        SPEC_DECODING=draft_model
        DISAGG=false
        IS_MULTINODE=false
        RUN_EVAL=true
        EVAL_ONLY=false
        EVAL_FRAMEWORK=minimax-vendor
        EVAL_SUITE=minimax_m3_full
        EVAL_CONC=
        EVAL_LIMIT=10
        SCENARIO_TYPE=agentic-coding
        SCENARIO_SUBDIR=agentic/
        IS_AGENTIC=1
        KV_OFFLOADING=dram
        KV_OFFLOAD_BACKEND=lmcache
        KV_OFFLOAD_BACKEND_METADATA={\"name\":\"lmcache\",\"version\":\"0.3\"}
        ROUTER_METADATA=
        KV_P2P_TRANSFER=
        TOTAL_CPU_DRAM_GB=1499
        DURATION=600
        AIPERF_EXPERIMENTAL_FAST=1
        RUNNER_NAME=b200-birch_00
        RUNNER_TYPE=cluster:b200-birch
        RESULT_FILENAME=minimaxm3_tp8_conc16_kvdram-lmcache_spec-draft_model_fp8_vllm_tp8-pp1-dcp1-pcp1-ep1-dpafalse_disagg-false_spec-draft_model_conc16_b200-birch_00
        INFMAX_WORKSPACE=/w
        SWEEPCTL_ENVELOPE=/w/.sweepctl/envelope.json
        PYTHONDONTWRITEBYTECODE=1
        RANDOM_RANGE_RATIO=0.8
        RESULT_DIR=/workspace/results",
    );
    assert_same(&found, &wanted);
}

#[test]
fn many_nodes_of_agents() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = job_env(folder.path(), &envelope(multi_agentic()), &[]);
    let found = variables(command.env("GITHUB_WORKSPACE", "/w").env("RUNNER_NAME", ""));
    let wanted = wanted(
        "EXP_NAME=kimik3_p1x4_d0x4_conc32
        RECIPE_FINGERPRINT=
        MODEL=org/Model-K3
        MODEL_PREFIX=kimik3
        ISL=0
        OSL=0
        MAX_MODEL_LEN=0
        IMAGE=vllm/vllm-openai:v0.25.1
        FRAMEWORK=dynamo-vllm
        PRECISION=int4
        TP=
        PP_SIZE=
        DCP_SIZE=
        PCP_SIZE=
        EP_SIZE=
        DP_ATTENTION=
        GPU_COUNT=
        CONC=32
        CONC_LIST=32
        SPEC_DECODING=none
        DISAGG=false
        IS_MULTINODE=true
        RUN_EVAL=true
        EVAL_ONLY=false
        EVAL_FRAMEWORK=lm-eval
        EVAL_SUITE=
        EVAL_CONC=32
        EVAL_LIMIT=
        SCENARIO_TYPE=agentic-coding
        SCENARIO_SUBDIR=agentic/
        IS_AGENTIC=1
        KV_OFFLOADING=none
        KV_OFFLOAD_BACKEND=
        KV_OFFLOAD_BACKEND_METADATA=
        ROUTER_METADATA=
        KV_P2P_TRANSFER=
        TOTAL_CPU_DRAM_GB=0
        DURATION=3600
        AIPERF_EXPERIMENTAL_FAST=0
        RUNNER_NAME=b200
        RUNNER_TYPE=cluster:gb200-cedar
        RESULT_FILENAME=kimik3_p1x4_d0x4_conc32_int4_dynamo-vllm_prefill-tp4-pp1-dcp1-pcp1-ep1-dpfalse-nw1_decode-tp4-pp1-dcp1-pcp1-ep1-dpfalse-nw0_disagg-false_spec-none_conc32_b200
        INFMAX_WORKSPACE=/w
        SWEEPCTL_ENVELOPE=/w/.sweepctl/envelope.json
        PYTHONDONTWRITEBYTECODE=1
        RANDOM_RANGE_RATIO=0.8
        PREFILL_NUM_WORKERS=1
        PREFILL_TP=4
        PREFILL_PP_SIZE=1
        PREFILL_DCP_SIZE=1
        PREFILL_PCP_SIZE=1
        PREFILL_EP=1
        PREFILL_DP_ATTN=false
        PREFILL_DP_ATTENTION=false
        PREFILL_HARDWARE=
        DECODE_NUM_WORKERS=0
        DECODE_TP=4
        DECODE_PP_SIZE=1
        DECODE_DCP_SIZE=1
        DECODE_PCP_SIZE=1
        DECODE_EP=1
        DECODE_DP_ATTN=false
        DECODE_DP_ATTENTION=false
        DECODE_HARDWARE=",
    );
    assert_same(&found, &wanted);
}

#[test]
fn every_shape_has_every_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for (row, many) in [
        (single_fixed(), false),
        (single_agentic(), false),
        (multi_fixed(), true),
        (multi_agentic(), true),
    ] {
        let found = variables(&mut job_env(folder.path(), &envelope(row.clone()), &[]));
        for name in EVERY {
            assert!(found.contains_key(*name), "{name} is missing for {row}");
        }
        for name in MANY_NODES {
            assert_eq!(found.contains_key(*name), many, "{name} for {row}");
        }
    }
}

#[test]
fn an_eval_has_a_context_of_its_own_on_one_node_with_fixed_sequences_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut throughput = single_fixed();
    throughput["eval-only"] = json!(false);
    let mut agents = single_agentic();
    agents["eval-only"] = json!(true);
    for row in [throughput, agents, multi_fixed()] {
        let found = variables(&mut job_env(folder.path(), &envelope(row.clone()), &[]));
        assert!(!found.contains_key("EVAL_MAX_MODEL_LEN"), "{row}");
    }
}

#[test]
fn one_concurrency_of_a_list_is_the_evals() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut row = multi_fixed();
    row["eval-all-concs"] = json!(false);
    row["eval-conc"] = json!(256);
    let found = variables(&mut job_env(folder.path(), &envelope(row), &[]));
    assert_eq!(
        (found["EVAL_CONC"].as_str(), found["CONC_LIST"].as_str()),
        ("256", "256 1024")
    );
}

#[test]
fn every_row_of_real_plans_has_an_environment() {
    let Some(corpus) = corpus() else { return };
    let text = std::fs::read_to_string(corpus.join("plans.jsonl")).expect("a file of the corpus");
    let cases: Vec<&str> = text.lines().collect();
    let rows = std::sync::atomic::AtomicUsize::new(0);
    let misses = support::misses(&cases, |line| {
        let case: Value = serde_json::from_str(line).expect("a case a line");
        let mut found = Vec::new();
        rows_of(&case["plan"], &mut found);
        rows.fetch_add(found.len(), std::sync::atomic::Ordering::Relaxed);
        found.into_iter().find_map(|row| {
            let envelope: Envelope = serde_json::from_value(envelope(row.clone())).expect("an envelope");
            let many = row["prefill"].is_object();
            let complete = Environment::new(&envelope, &Place::default()).and_then(|mut environment| {
                let (none, fleet) = (indexmap::IndexMap::new(), Fleet::default());
                environment::add(&mut environment, &none, &fleet, &envelope, "b200-birch_00").map(|()| environment)
            });
            match complete {
                Err(problems) => Some(format!("{row}\n{problems}")),
                Ok(environment) => {
                    let names: HashSet<&str> = environment.names().collect();
                    let wanted = EVERY.iter().chain(MANY_NODES.iter().filter(|_| many));
                    let lacking: Vec<_> = wanted.filter(|name| !names.contains(**name)).collect();
                    (!lacking.is_empty()).then(|| format!("{row}\nlacks {lacking:?}"))
                }
            }
        })
    });
    assert!(rows.into_inner() > 1000, "the corpus has few rows");
    support::assert_none("environments", cases.len(), &misses);
}

/// The rows of a plan, whatever bucket they stand in.
fn rows_of<'v>(value: &'v Value, rows: &mut Vec<&'v Value>) {
    match value {
        Value::Object(fields) if fields.contains_key("exp-name") => rows.push(value),
        Value::Object(fields) => fields.values().for_each(|value| rows_of(value, rows)),
        Value::Array(items) => items.iter().for_each(|value| rows_of(value, rows)),
        _ => {}
    }
}
