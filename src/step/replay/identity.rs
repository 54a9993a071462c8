//! What an aggregate says of its job: what every published row says, and the GPUs.

use serde_json::{Map, Value, json};

use crate::config::fields::Role;
use crate::config::master::search_space::{Nodes, Roles};
use crate::config::types::KvOffloading;
use crate::matrix::row::{Offload, Row};
use crate::step::throughput::{published, topology};

/// The fields that say which job an aggregate is of, and its GPUs.
pub(super) fn fields(row: &Row, offload: &Offload, conc: u64) -> (Map<String, Value>, u64) {
    let nodes = &row.topology.nodes;
    let mut fields = published(row);
    fields.insert("conc".to_owned(), conc.into());
    fields.insert("model".to_owned(), row.topology.model.clone().into());
    fields.insert("is_multinode".to_owned(), matches!(nodes, Nodes::Multi(_)).into());
    if offload.mode == KvOffloading::None || offload.backend.is_none() {
        fields.insert("kv_offload_backend".to_owned(), Value::Null);
    }
    if let Nodes::Multi(roles) = nodes {
        fields.extend(of_both(roles));
    }
    fields.extend(topology(nodes).into_iter().map(|(name, size)| (name, json!(size))));
    (fields, row.topology.gpus())
}

/// What an aggregate says of both sides together: the sum of their tensor parallelism, the larger expert parallelism,
/// and whether either has data-parallel attention. A side without workers has no sizes.
fn of_both(roles: &Roles) -> Map<String, Value> {
    let has_workers = |role: &&Role| role.num_worker > 0;
    let sides = || [&roles.prefill, &roles.decode].into_iter();
    let tp: u64 = sides().filter(has_workers).map(|role| role.tp).sum();
    let ep = sides().filter(has_workers).map(|role| role.ep).max().unwrap_or(0);
    let dp_attention = sides().any(|role| role.dp_attn);
    Map::from_iter([
        ("tp".to_owned(), tp.into()),
        ("ep".to_owned(), ep.into()),
        ("dp_attention".to_owned(), dp_attention.to_string().into()),
    ])
}
