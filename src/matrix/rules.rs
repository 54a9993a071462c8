//! What the fields of a row must be among each other. The generator keeps these rules; rows that come in from
//! elsewhere are held to them.

use super::row::{Row, Topology};
use crate::config::decode::MAX_INTEGER;
use crate::config::master::search_space::Nodes;
use crate::config::types::{Component, KvOffloading, Parallelism};

/// Every rule that a row breaks, one sentence each.
#[must_use]
pub(crate) fn broken(row: &Row) -> Vec<String> {
    let mut found = Vec::new();
    deployment(&row.topology, &mut found);
    match &row.topology.nodes {
        Nodes::Single(sizes) => server("", sizes, 1, &mut found),
        Nodes::Multi(roles) => {
            for (name, role) in [("prefill.", &roles.prefill), ("decode.", &roles.decode)] {
                server(name, &role.sizes, role.num_worker, &mut found);
            }
            if roles.prefill.hardware.is_some() != roles.decode.hardware.is_some() {
                found.push("`hardware` stands on both sides or on neither, and here it stands on one".to_owned());
            }
        }
    }
    eval(row, &mut found);
    found
}

fn deployment(topology: &Topology, found: &mut Vec<String>) {
    let named = [
        ("image", &topology.image),
        ("model", &topology.model),
        ("model-prefix", &topology.model_prefix),
        ("precision", &topology.precision),
        ("framework", &topology.framework),
        ("runner", &topology.runner),
    ];
    let empty = named.iter().filter(|(_, text)| text.is_empty());
    found.extend(empty.map(|(name, _)| format!("`{name}` is empty")));
    if topology.disagg && topology.roles().is_none() {
        found.push("`disagg` is true on one node: prefill and decode apart need nodes of their own".to_owned());
    }
    if let Some(router) = &topology.router {
        component("router", router, true, found);
    }
    let Some(offload) = topology.offload() else { return };
    match (offload.mode, &offload.backend) {
        (KvOffloading::None, Some(_)) => {
            found.push("`kv-offload-backend` stands without `kv-offloading: dram`".to_owned());
        }
        (KvOffloading::Dram, None) => found.push("`kv-offloading` is dram without a `kv-offload-backend`".to_owned()),
        (_, Some(backend)) => component("kv-offload-backend", backend, false, found),
        (_, None) => {}
    }
}

fn component(name: &str, component: &Component, versioned: bool, found: &mut Vec<String>) {
    if component.name.trim().is_empty() {
        found.push(format!("`{name}.name` is empty"));
    }
    match &component.version {
        None if versioned => found.push(format!("`{name}` lacks its `version`")),
        Some(version) if version.starts_with("image:") => {
            found.push(format!("`{name}.version` is an image reference, and no version"));
        }
        Some(version) if version.trim().is_empty() => found.push(format!("`{name}.version` is empty")),
        _ => {}
    }
}

fn server(side: &str, sizes: &Parallelism, workers: u64, found: &mut Vec<String>) {
    if !sizes.tp.is_multiple_of(sizes.dcp_size) {
        let (tp, dcp_size) = (sizes.tp, sizes.dcp_size);
        found.push(format!(
            "`{side}tp` {tp} is not divisible by `{side}dcp-size` {dcp_size}"
        ));
    }
    let gpus = sizes.checked_gpus().and_then(|gpus| gpus.checked_mul(workers.max(1)));
    if gpus.is_none_or(|gpus| gpus > MAX_INTEGER) {
        found.push(format!(
            "`{side}tp` and the sizes beside it multiply to more than {MAX_INTEGER} GPUs"
        ));
    }
}

fn eval(row: &Row, found: &mut Vec<String>) {
    let eval = &row.eval;
    if eval.eval_only && eval.run_eval == Some(false) {
        found.push("`eval-only` is true where `run-eval` is false: the job would do nothing".to_owned());
    }
    if let Some(conc) = eval.eval_conc.filter(|conc| !row.conc.points().contains(conc)) {
        found.push(format!("`eval-conc` is {conc}, which is no concurrency of the row"));
    }
}
