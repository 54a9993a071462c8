//! What an aggregate says of its job: everything that the row knows.

use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::config::master::search_space::{Nodes, Roles};
use crate::config::types::{KvOffloading, Parallelism, Role};
use crate::matrix::row::{Offload, Row};

/// The fields that say which job an aggregate is of, and its GPUs.
pub(super) fn fields(row: &Row, offload: &Offload, conc: u64) -> (IndexMap<&'static str, Value>, u64) {
    let topology = &*row.topology;
    let backend = offload.backend.as_ref().filter(|_| offload.mode != KvOffloading::None);
    let mut fields = IndexMap::from([
        ("hw", json!(topology.runner)),
        ("conc", json!(conc)),
        ("image", json!(topology.image)),
        ("model", json!(topology.model)),
        ("infmax_model_prefix", json!(topology.model_prefix)),
        ("framework", json!(topology.framework)),
        ("precision", json!(topology.precision)),
        ("spec_decoding", json!(topology.spec_decoding.as_str())),
        ("disagg", json!(topology.disagg)),
        (
            "recipe_fingerprint",
            json!(row.recipe_fingerprint.as_deref().unwrap_or_default()),
        ),
        ("scenario_type", json!(row.scenario_type().as_str())),
        ("is_multinode", json!(matches!(topology.nodes, Nodes::Multi(_)))),
        ("kv_offloading", json!(offload.mode.as_str())),
        ("kv_offload_backend", json!(backend)),
        ("allocated_cpu_dram_gb", json!(offload.total_cpu_dram_gb)),
    ]);
    if let Some(router) = &topology.router {
        fields.insert("router", json!(router));
    }
    if let Some(transfer) = &topology.kv_p2p_transfer {
        fields.insert("kv_p2p_transfer", json!(transfer));
    }
    let gpus = match &topology.nodes {
        Nodes::Single(parallelism) => single(&mut fields, parallelism),
        Nodes::Multi(roles) => multi(&mut fields, roles),
    };
    (fields, gpus)
}

fn single(fields: &mut IndexMap<&'static str, Value>, p: &Parallelism) -> u64 {
    fields.extend([
        ("tp", json!(p.tp)),
        ("pp", json!(p.pp)),
        ("dcp_size", json!(p.dcp_size)),
        ("pcp_size", json!(p.pcp_size)),
        ("ep", json!(p.ep.unwrap_or(1))),
        ("dp_attention", json!(p.dp_attn.unwrap_or(false).to_string())),
    ]);
    p.gpus()
}

fn multi(fields: &mut IndexMap<&'static str, Value>, roles: &Roles) -> u64 {
    let (prefill, decode) = (sized(&roles.prefill), sized(&roles.decode));
    fields.extend([
        ("tp", json!(prefill.tp + decode.tp)),
        ("ep", json!(prefill.ep.max(decode.ep))),
        ("dp_attention", json!((prefill.dp_attn || decode.dp_attn).to_string())),
        ("prefill_num_workers", json!(prefill.num_worker)),
        ("prefill_tp", json!(prefill.tp)),
        ("prefill_pp", json!(prefill.pp)),
        ("prefill_dcp_size", json!(prefill.dcp_size)),
        ("prefill_pcp_size", json!(prefill.pcp_size)),
        ("prefill_ep", json!(prefill.ep)),
        ("prefill_dp_attention", json!(prefill.dp_attn.to_string())),
        ("num_prefill_gpu", json!(prefill.gpus())),
        ("decode_num_workers", json!(decode.num_worker)),
        ("decode_tp", json!(decode.tp)),
        ("decode_pp", json!(decode.pp)),
        ("decode_dcp_size", json!(decode.dcp_size)),
        ("decode_pcp_size", json!(decode.pcp_size)),
        ("decode_ep", json!(decode.ep)),
        ("decode_dp_attention", json!(decode.dp_attn.to_string())),
        ("num_decode_gpu", json!(decode.gpus())),
    ]);
    for (name, role) in [("prefill_hw", &prefill), ("decode_hw", &decode)] {
        if let Some(hardware) = &role.hardware {
            fields.insert(name, json!(hardware));
        }
    }
    prefill.gpus() + decode.gpus()
}

/// A side with its sizes; without workers it has none.
fn sized(role: &Role) -> Role {
    let mut role = role.clone();
    if role.num_worker == 0 {
        (role.tp, role.ep, role.pp, role.dcp_size, role.pcp_size) = (0, 0, 0, 0, 0);
    }
    role
}
