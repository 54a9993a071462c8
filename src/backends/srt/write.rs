//! A recipe for a row that names none: the plainest deployment of its workers behind Dynamo.

use indexmap::IndexMap;

use super::schema1;
use super::sides::{Side, sides};
use super::yaml::{Yaml, map};
use crate::config::problem::{Problem, Problems};
use crate::config::recipe::Schema;
use crate::config::types::{SeqLen, SpecDecoding};
use crate::matrix::row::{Row, Topology};

/// An engine, as recipes name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    Trtllm,
    Sglang,
    Vllm,
}

impl Engine {
    fn of(framework: &str) -> Option<Self> {
        match framework {
            "dynamo-trt" => Some(Self::Trtllm),
            "dynamo-sglang" => Some(Self::Sglang),
            "dynamo-vllm" => Some(Self::Vllm),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Trtllm => "trtllm",
            Self::Sglang => "sglang",
            Self::Vllm => "vllm",
        }
    }
}

/// The recipe, but for what every recipe takes from its row.
///
/// # Errors
/// All that a row needs a recipe of its own for.
pub(super) fn recipe(row: &Row, gpus_per_node: Option<u64>, schema: Schema) -> Result<Yaml, Problems> {
    let topology = &row.topology;
    let sides = sides(topology);
    let engine = Engine::of(&topology.framework);
    let seq = row.seq();
    let reasons = reasons(topology, &sides, engine, seq, gpus_per_node);
    let (Some(engine), Some(seq), Some(gpus), true) = (engine, seq, gpus_per_node, reasons.is_empty()) else {
        let message = format!("the row names no `srt-recipe`, and needs one: {}", reasons.join("; "));
        return Err(Problem::file("", message)
            .hint("write a recipe, and name it as `srt-recipe` in the search-space entry; see docs/launch.md")
            .into());
    };
    let common = [
        // The images of Dynamo's runtimes hold it already.
        ("dynamo", map([("install", false.into())])),
        ("frontend", map([("type", "dynamo".into())])),
        (
            "benchmark",
            map([
                ("type", "sa-bench".into()),
                ("isl", seq.isl.into()),
                ("osl", seq.osl.into()),
                ("concurrencies", Yaml::Null),
                ("req_rate", "inf".into()),
            ]),
        ),
    ];
    let mut recipe = match schema {
        Schema::One => {
            let workers = sides.iter().map(|side| {
                let args = engine_args(topology, side, engine, seq);
                (schema1::mode(side.name).to_owned(), Yaml::Map(args))
            });
            map([
                ("name", Yaml::Null),
                ("model", Yaml::Null),
                ("resources", schema1::resources(row, gpu_type(topology), gpus)),
                (
                    "backend",
                    schema1::backend(
                        engine.name(),
                        engine_options(engine, topology, schema),
                        workers.collect(),
                    ),
                ),
            ])
        }
        Schema::Two => {
            let roles = sides
                .iter()
                .map(|side| (side.name.to_owned(), role(topology, side, engine, seq, gpus)));
            map([
                ("schema", 2.into()),
                ("name", Yaml::Null),
                ("model", Yaml::Null),
                (
                    "resources",
                    map([("gpu_type", gpu_type(topology).into()), ("gpus_per_node", gpus.into())]),
                ),
                ("engine", engine_options(engine, topology, schema)),
                ("roles", Yaml::Map(roles.collect())),
            ])
        }
    };
    for (name, value) in common {
        recipe.set(&[name], value);
    }
    Ok(recipe)
}

/// What the plain deployment cannot do.
fn reasons(
    topology: &Topology,
    sides: &[Side],
    engine: Option<Engine>,
    seq: Option<SeqLen>,
    gpus_per_node: Option<u64>,
) -> Vec<String> {
    let mut reasons = Vec::new();
    if engine.is_none() {
        reasons.push(format!("`{}` is no engine behind Dynamo", topology.framework));
    }
    if seq.is_none() {
        reasons.push("its replay's client and the engine's context are set up by the recipe".to_owned());
    }
    if gpus_per_node.is_none() {
        reasons.push(format!(
            "`{}` has no hardware facts in configs/runners.yaml",
            topology.runner
        ));
    }
    let mtp_on_trtllm = topology.spec_decoding == SpecDecoding::Mtp && engine == Some(Engine::Trtllm);
    if topology.spec_decoding != SpecDecoding::None && !mtp_on_trtllm {
        reasons.push(format!(
            "speculative decoding (`{}`) is set up by the engine",
            topology.spec_decoding.as_str()
        ));
    }
    if sides.iter().any(|side| side.role.dp_attn) && engine == Some(Engine::Vllm) {
        reasons.push("data parallel attention is set up by the engine".to_owned());
    }
    if sides
        .iter()
        .any(|side| side.role.pcp_size > 1 || side.role.dcp_size > 1)
    {
        reasons.push("context parallelism is set up by the engine".to_owned());
    }
    reasons
}

/// The GPU's name: that of the workers, else the beginning of the label.
fn gpu_type(topology: &Topology) -> &str {
    let label = topology.runner.strip_prefix("cluster:").unwrap_or(&topology.runner);
    label.split(['-', '_']).next().unwrap_or(label)
}

fn engine_options(engine: Engine, topology: &Topology, schema: Schema) -> Yaml {
    let kind = ("type", engine.name().into());
    match engine {
        // Schema 1 serves under the last part of the model's path.
        Engine::Trtllm if schema == Schema::One => map([kind]),
        Engine::Trtllm => map([kind, ("served_model_name", topology.model.as_str().into())]),
        Engine::Vllm => map([kind, ("connector", transfer(topology).into())]),
        Engine::Sglang => map([kind]),
    }
}

/// What moves the KV cache.
fn transfer(topology: &Topology) -> &str {
    topology.kv_p2p_transfer.as_deref().unwrap_or("nixl")
}

fn role(topology: &Topology, side: &Side, engine: Engine, seq: SeqLen, gpus_per_node: u64) -> Yaml {
    let args = engine_args(topology, side, engine, seq);
    map([
        ("nodes", side.nodes(gpus_per_node).into()),
        ("workers", side.role.num_worker.into()),
        ("gpus", side.role.gpus_per_worker().into()),
        ("args", Yaml::Map(args)),
    ])
}

fn engine_args(topology: &Topology, side: &Side, engine: Engine, seq: SeqLen) -> Args {
    match engine {
        Engine::Trtllm => trtllm(topology, side, seq),
        Engine::Sglang => sglang(topology, side, seq),
        Engine::Vllm => vllm(topology, side, seq),
    }
}

/// Options of an engine.
type Args = IndexMap<String, Yaml>;

fn args<const N: usize>(fields: [(&str, Yaml); N]) -> Args {
    fields
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn trtllm(topology: &Topology, side: &Side, seq: SeqLen) -> Args {
    let role = &side.role;
    let mut found = args([
        ("backend", "pytorch".into()),
        ("tensor_parallel_size", role.tp.into()),
        ("pipeline_parallel_size", role.pp.into()),
        ("moe_expert_parallel_size", role.ep.into()),
        ("enable_attention_dp", role.dp_attn.into()),
        ("max_seq_len", seq.max_model_len().into()),
    ]);
    if side.name != "agg" {
        let backend = transfer(topology).to_ascii_uppercase();
        found.extend(args([(
            "cache_transceiver_config",
            map([("backend", backend.as_str().into())]),
        )]));
    }
    if side.name == "prefill" {
        // TensorRT-LLM serves context requests without the overlapping scheduler only.
        found.extend(args([("disable_overlap_scheduler", true.into())]));
    }
    if topology.spec_decoding == SpecDecoding::Mtp {
        let mtp = map([("decoding_type", "MTP".into()), ("num_nextn_predict_layers", 1.into())]);
        found.extend(args([("speculative_config", mtp)]));
    }
    found
}

fn sglang(topology: &Topology, side: &Side, seq: SeqLen) -> Args {
    let role = &side.role;
    let mut found = args([
        ("served-model-name", topology.model.as_str().into()),
        ("context-length", seq.max_model_len().into()),
        ("tensor-parallel-size", role.tp.into()),
        ("pipeline-parallel-size", role.pp.into()),
        ("expert-parallel-size", role.ep.into()),
    ]);
    if role.dp_attn {
        found.extend(args([
            ("enable-dp-attention", true.into()),
            ("data-parallel-size", role.tp.into()),
        ]));
    }
    if side.name != "agg" {
        found.extend(args([("disaggregation-transfer-backend", transfer(topology).into())]));
    }
    found
}

fn vllm(topology: &Topology, side: &Side, seq: SeqLen) -> Args {
    let role = &side.role;
    let mut found = args([
        ("served-model-name", topology.model.as_str().into()),
        ("max-model-len", seq.max_model_len().into()),
        ("tensor-parallel-size", role.tp.into()),
        ("pipeline-parallel-size", role.pp.into()),
    ]);
    if role.ep > 1 {
        found.extend(args([("enable-expert-parallel", true.into())]));
    }
    found
}
