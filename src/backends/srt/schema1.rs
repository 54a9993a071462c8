//! Schema 1 of recipes, that of srt-slurm's releases up to v1.0.68: nodes and workers stand in `resources`, engines in
//! `backend`, and there are no `schema`, `engine`, `roles` and `post_eval`. Its program refuses fields that it does not
//! know. Field names are those of `src/srtctl/core/schema.py` and `backends/*.py` there.

use indexmap::IndexMap;

use super::recipe::size;
use super::sides::{Side, sides};
use super::yaml::{Yaml, map};
use crate::config::decode::{Decoder, Fields};
use crate::config::problem::Span;
use crate::matrix::row::Row;

/// The keys of schema 2 that this one lacks.
const OF_SCHEMA_2: [&str; 4] = ["schema", "engine", "roles", "post_eval"];

/// What schema 1 calls the fields of a role in `resources`.
struct Names {
    side: &'static str,
    nodes: &'static str,
    workers: &'static str,
    gpus: &'static str,
}

const NAMES: [Names; 3] = [
    Names {
        side: "prefill",
        nodes: "prefill_nodes",
        workers: "prefill_workers",
        gpus: "gpus_per_prefill",
    },
    Names {
        side: "decode",
        nodes: "decode_nodes",
        workers: "decode_workers",
        gpus: "gpus_per_decode",
    },
    Names {
        side: "agg",
        nodes: "agg_nodes",
        workers: "agg_workers",
        gpus: "gpus_per_agg",
    },
];

/// What schema 1 calls a role in a backend.
pub(super) fn mode(side: &str) -> &str {
    if side == "agg" { "aggregated" } else { side }
}

/// Refuses what only schema 2 has.
pub(super) fn forbid(d: &mut Decoder, f: &mut Fields<'_, '_>) {
    for name in OF_SCHEMA_2 {
        let reason = "the cluster's srtctl reads schema 1 (`schema` of the cluster), which has no such field";
        f.forbidden(d, name, reason);
    }
}

/// The workers in `resources` are the row's, in number and in GPUs.
pub(super) fn workers(d: &mut Decoder, f: &mut Fields<'_, '_>, row: &Row, gpus_per_node: Option<u64>) {
    let sides = sides(&row.topology);
    for names in &NAMES {
        let number = |d: &mut Decoder, f: &mut Fields<'_, '_>, name: &'static str| {
            let found = f.optional(d, name, size);
            found.map(|found| (found, f.at(name)))
        };
        let (nodes, workers, gpus) = (
            number(d, f, names.nodes),
            number(d, f, names.workers),
            number(d, f, names.gpus),
        );
        match sides.iter().find(|side| side.name == names.side) {
            Some(side) => same(d, f.span, side, names, (nodes, workers, gpus), gpus_per_node),
            None => {
                let given = [nodes, workers].into_iter().flatten().find(|(number, _)| *number > 0);
                if let Some((_, span)) = given {
                    let message = format!("the row deploys no {} workers, and the recipe does", names.side);
                    d.report(span, message, "correct the recipe or the config");
                }
            }
        }
    }
}

/// A number and its place.
type Found = Option<(u64, Span)>;

fn same(
    d: &mut Decoder,
    resources: Span,
    side: &Side,
    names: &Names,
    (nodes, workers, gpus): (Found, Found, Found),
    gpus_per_node: Option<u64>,
) {
    let (name, role) = (side.name, &side.role);
    let hint = "correct the recipe or the config";
    let deployed = || crate::plural::count(role.num_worker, &format!("{name} worker"));
    match workers {
        None => {
            let message = format!(
                "the row deploys {}, and `resources` has no `{}`",
                deployed(),
                names.workers
            );
            d.report(resources, message, hint);
            return;
        }
        Some((workers, span)) if workers != role.num_worker => {
            let message = format!("the row deploys {}, the recipe another number", deployed());
            d.report(span, message, hint);
            return;
        }
        Some(_) => {}
    }
    let shared = || {
        let (nodes, span) = nodes?;
        Some((nodes * gpus_per_node? / role.num_worker.max(1), span))
    };
    let wanted = role.gpus_per_worker();
    if let Some((gpus, span)) = gpus.or_else(shared).filter(|(gpus, _)| *gpus != wanted) {
        let wanted = crate::plural::count(wanted, "GPU");
        let message = format!("a {name} worker of the row has {wanted}, the recipe's has {gpus}");
        d.report(span, message, hint);
    }
}

/// `resources` of a row's workers.
pub(super) fn resources(row: &Row, gpu_type: &str, gpus_per_node: u64) -> Yaml {
    let mut fields = IndexMap::from([
        ("gpu_type".to_owned(), gpu_type.into()),
        ("gpus_per_node".to_owned(), gpus_per_node.into()),
    ]);
    for side in sides(&row.topology) {
        for names in NAMES.iter().filter(|names| names.side == side.name) {
            fields.insert(names.nodes.to_owned(), side.nodes(gpus_per_node).into());
            fields.insert(names.workers.to_owned(), side.role.num_worker.into());
            fields.insert(names.gpus.to_owned(), side.role.gpus_per_worker().into());
        }
    }
    Yaml::Map(fields)
}

/// `backend`: an engine's own options, and those of its workers by mode.
pub(super) fn backend(engine: &str, more: Yaml, workers: IndexMap<String, Yaml>) -> Yaml {
    let mut backend = map([("type", engine.into())]);
    if let Yaml::Map(more) = more {
        for (name, value) in more {
            backend.set(&[&name], value);
        }
    }
    backend.set(&[&format!("{engine}_config")], Yaml::Map(workers));
    backend
}
