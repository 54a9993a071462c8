//! One entry of a search space: a topology and the concurrencies it is measured at.

use schemars::JsonSchema;

use super::{Router, component, router};
use crate::config::decode::{Decoder, Fields, MAX_INTEGER};
use crate::config::fields::{Parallelism, Passed, PassedField, Role, Size};
use crate::config::problem::Place;
use crate::config::tree::Node;
use crate::config::types::{Component, KvOffloading, ScenarioType, SpecDecoding};
use crate::findings::config;

/// How many points one entry may list.
pub(crate) const MAX_POINTS: usize = 1024;

/// A search-space entry as it is written.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SearchSpaceEntry {
    /// The concurrencies, one by one; or give `conc-start` and `conc-end`.
    #[schemars(length(min = 1, max = 1024), inner(range(min = 1)))]
    pub conc_list: Option<Vec<u64>>,
    /// The first concurrency of a range that doubles at each step.
    #[schemars(range(min = 1))]
    pub conc_start: Option<u64>,
    /// The last concurrency of the range; always measured.
    #[schemars(range(min = 1))]
    pub conc_end: Option<u64>,
    /// Speculative decoding.
    pub spec_decoding: Option<SpecDecoding>,
    /// The router in front of the workers.
    pub router: Option<Router>,
    /// How the KV cache moves between workers; multi-node only.
    pub kv_p2p_transfer: Option<String>,
    /// An srt-slurm recipe that the launch uses.
    pub srt_recipe: Option<String>,
    /// The recipe that replaces it in eval-only jobs.
    pub eval_srt_recipe: Option<String>,
    /// Tensor parallel size; one node only.
    #[schemars(range(min = 1))]
    pub tp: Option<u64>,
    /// Pipeline parallel size.
    #[schemars(range(min = 1))]
    pub pp: Option<u64>,
    /// Decode context parallel size; divides `tp`.
    #[schemars(range(min = 1))]
    pub dcp_size: Option<u64>,
    /// Prefill context parallel size.
    #[schemars(range(min = 1))]
    pub pcp_size: Option<u64>,
    /// Expert parallel size.
    #[schemars(range(min = 1))]
    pub ep: Option<u64>,
    /// Data parallel attention.
    pub dp_attn: Option<bool>,
    /// The prefill side; multi-node only.
    pub prefill: Option<RoleEntry>,
    /// The decode side; multi-node only.
    pub decode: Option<RoleEntry>,
    /// Where the KV cache is offloaded to; agentic only.
    pub kv_offloading: Option<KvOffloading>,
    /// What offloads it; required exactly when something is offloaded.
    pub kv_offload_backend: Option<Component>,
}

/// One side of a multi-node deployment, as it is written.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Role", rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(description = "One side of a multi-node deployment.")]
pub struct RoleEntry {
    /// Workers; 0 for the decode side of an aggregated deployment.
    pub num_worker: u64,
    /// Tensor parallel size of one worker.
    pub tp: u64,
    /// Expert parallel size of one worker.
    pub ep: u64,
    /// Data parallel attention.
    pub dp_attn: bool,
    /// The GPUs of this side, where the two differ.
    #[schemars(default)]
    pub hardware: Option<String>,
    /// `NAME=VALUE` pairs for the launch.
    #[schemars(default)]
    pub additional_settings: Option<Vec<String>>,
    /// Pipeline parallel size of one worker.
    #[schemars(default = "one")]
    pub pp: u64,
    /// Decode context parallel size; divides `tp`.
    #[schemars(default = "one")]
    pub dcp_size: u64,
    /// Prefill context parallel size.
    #[schemars(default = "one")]
    pub pcp_size: u64,
}

fn one() -> u64 {
    1
}

/// A search-space entry, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchEntry {
    /// Where it stands.
    pub place: Place,
    /// The concurrencies.
    pub conc: ConcSpec,
    /// Speculative decoding.
    pub spec_decoding: SpecDecoding,
    /// The entry's own router.
    pub router: Option<Component>,
    /// The entry's own KV transfer.
    pub kv_p2p_transfer: Option<String>,
    /// What rows only pass on.
    pub passed: Passed,
    /// The topology.
    pub nodes: Nodes,
    /// The KV offload mode; `None` where none was written.
    pub kv_offloading: Option<KvOffloading>,
    /// The KV offload backend.
    pub kv_offload_backend: Option<Component>,
}

/// Concurrencies as they are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConcSpec {
    /// One by one.
    List(Vec<u64>),
    /// From start to end, multiplied by a step.
    Range {
        /// The first.
        start: u64,
        /// The last.
        end: u64,
    },
}

/// One node or many.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Nodes {
    /// One node.
    Single(Parallelism),
    /// Prefill and decode workers.
    Multi(Box<Roles>),
}

/// The two sides of a multi-node deployment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Roles {
    /// The side that reads prompts.
    pub prefill: Role,
    /// The side that writes answers.
    pub decode: Role,
}

/// What the config around an entry decides.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    /// Whether the config spans nodes; `None` when it could not be read.
    pub multinode: Option<bool>,
    pub disagg: bool,
    pub router_above: bool,
    pub transfer_above: bool,
    pub scenario: ScenarioType,
    pub dram_utilization: bool,
}

pub(super) fn decode(d: &mut Decoder, node: &Node<'_>, allowed: Allowed) -> Option<SearchEntry> {
    let mut f = d.fields(node, "a search-space entry")?;
    let conc = concurrency(d, &mut f);
    let spec_decoding = f.optional(d, "spec-decoding", |d, n, name| {
        d.choice(n, name, &SpecDecoding::CHOICES)
    });
    let own_router = f.optional(d, "router", router);
    let transfer = f.optional(d, "kv-p2p-transfer", Decoder::string);
    let mut passed = Passed::default();
    for field in PassedField::ALL {
        passed.set(*field, f.optional(d, field.name(), Decoder::string));
    }
    scopes(d, &f, allowed);
    let nodes = nodes(d, &mut f, allowed);
    let (kv_offloading, kv_offload_backend) = offload(d, &mut f, allowed);
    f.finish(d);
    Some(SearchEntry {
        place: d.place(node.span),
        conc: conc?,
        spec_decoding: spec_decoding.unwrap_or_default(),
        router: own_router,
        kv_p2p_transfer: transfer,
        passed,
        nodes: nodes?,
        kv_offloading,
        kv_offload_backend,
    })
}

fn concurrency(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<ConcSpec> {
    let list = f.optional(d, "conc-list", |d, node, name| {
        let list = d.list(node, name, 1, |d, n| d.integer(n, name, 1))?;
        if list.len() > MAX_POINTS {
            let message = format!(
                "`{name}` holds {} points, at most {MAX_POINTS} are accepted",
                list.len()
            );
            d.refuse(&config::OUT_OF_RANGE, node.span, message, "measure fewer points");
        }
        Some(list)
    });
    let start = f.optional(d, "conc-start", |d, n, name| d.integer(n, name, 1));
    let end = f.optional(d, "conc-end", |d, n, name| d.integer(n, name, 1));
    let (has_start, has_end) = (f.has("conc-start"), f.has("conc-end"));
    if f.has("conc-list") {
        if has_start || has_end {
            let message = "`conc-list` stands beside `conc-start`/`conc-end`";
            d.refuse(
                &config::CONFLICT,
                f.at("conc-list"),
                message,
                "keep the list or the range",
            );
        }
        return list.map(ConcSpec::List);
    }
    if !has_start && !has_end {
        let message = "a search-space entry names no concurrency";
        let names = ["conc-list", "conc-start", "conc-end"];
        let hint = "add `conc-list: [...]`, or `conc-start` and `conc-end`";
        f.lacks(d, &config::INCOMPLETE, &names, message, hint);
        return None;
    }
    if has_start != has_end {
        let (there, missing) = if has_start {
            ("conc-start", "conc-end")
        } else {
            ("conc-end", "conc-start")
        };
        d.refuse(
            &config::INCOMPLETE,
            f.at(there),
            format!("`{there}` stands without `{missing}`"),
            format!("add `{missing}:`"),
        );
    }
    let (start, end) = (start?, end?);
    if start > end {
        let message = format!("`conc-start` {start} is above `conc-end` {end}");
        d.refuse(&config::CONFLICT, f.at("conc-start"), message, "exchange them");
    }
    Some(ConcSpec::Range { start, end })
}

/// `router` and `kv-p2p-transfer` stand at the config's top or here, never both.
fn scopes(d: &mut Decoder, f: &Fields<'_, '_>, allowed: Allowed) {
    for (name, above) in [
        ("router", allowed.router_above),
        ("kv-p2p-transfer", allowed.transfer_above),
    ] {
        if above && f.has(name) {
            let message = format!("`{name}` stands here and at the top of the config");
            d.refuse(&config::CONFLICT, f.at(name), message, "keep one of the two");
        }
    }
    if f.has("kv-p2p-transfer") && allowed.multinode == Some(false) {
        d.refuse(
            &config::CONFLICT,
            f.at("kv-p2p-transfer"),
            "`kv-p2p-transfer` needs `multinode: true`",
            "remove it",
        );
    }
    if allowed.disagg && !allowed.transfer_above && !f.has("kv-p2p-transfer") {
        let message = "`disagg: true` needs a `kv-p2p-transfer`";
        d.refuse(
            &config::INCOMPLETE,
            f.span,
            message,
            "add it here, or at the top of the config",
        );
    }
}

fn nodes(d: &mut Decoder, f: &mut Fields<'_, '_>, allowed: Allowed) -> Option<Nodes> {
    let multi = match allowed.multinode {
        Some(multinode) => multinode,
        None => f.has("prefill") || f.has("decode"),
    };
    if multi { multi_node(d, f) } else { single_node(d, f) }
}

fn single_node(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Nodes> {
    for name in ["prefill", "decode"] {
        f.forbidden(d, name, "the config has `multinode: false`");
    }
    let sizes = sizes(d, f, |size| size.names().required)?;
    checked(d, f, &sizes, 1);
    Some(Nodes::Single(sizes))
}

/// The sizes of one server or worker: those that were left out are 1, or false. `None` where one that is required is
/// missing or wrong.
fn sizes(d: &mut Decoder, f: &mut Fields<'_, '_>, required: impl Fn(Size) -> bool) -> Option<Parallelism> {
    let mut sizes = Parallelism::default();
    let mut whole = true;
    for size in Size::ALL {
        let name = size.names().row;
        let value = |d: &mut Decoder, n: &Node<'_>, name: &'static str| match size.is_flag() {
            true => d.boolean(n, name).map(u64::from),
            false => d.integer(n, name, 1),
        };
        let found = match required(*size) {
            true => f.required(d, name, value),
            false => f.optional(d, name, value),
        };
        match found {
            Some(number) => sizes.set(*size, number),
            None => whole &= !required(*size),
        }
    }
    whole.then_some(sizes)
}

/// Sizes that fit each other. GPUs are counted and summed: more of them than [`MAX_INTEGER`] is a slip of the pen.
fn checked(d: &mut Decoder, f: &Fields<'_, '_>, sizes: &Parallelism, workers: u64) {
    let (tp, dcp_size) = (sizes.tp, sizes.dcp_size);
    if !tp.is_multiple_of(dcp_size) {
        let message = format!("`tp` {tp} is not divisible by `dcp-size` {dcp_size}");
        d.refuse(&config::SIZE, f.at("tp"), message, "correct one of the two");
    }
    let gpus = sizes.checked_gpus().and_then(|gpus| gpus.checked_mul(workers.max(1)));
    if gpus.is_none_or(|gpus| gpus > MAX_INTEGER) {
        let message = format!("its sizes multiply to more than {MAX_INTEGER} GPUs");
        d.refuse(&config::OUT_OF_RANGE, f.span, message, "correct the sizes");
    }
}

fn multi_node(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Nodes> {
    for size in Size::ALL {
        f.forbidden(
            d,
            size.names().row,
            "in a multi-node entry it belongs to `prefill` and `decode`",
        );
    }
    let prefill = f.required(d, "prefill", role);
    let decode = f.required(d, "decode", role);
    let (prefill, decode) = (prefill?, decode?);
    if prefill.hardware.is_some() != decode.hardware.is_some() {
        let (there, missing) = if prefill.hardware.is_some() {
            ("prefill", "decode")
        } else {
            ("decode", "prefill")
        };
        let message = format!("`{there}` names its hardware and `{missing}` does not");
        d.refuse(
            &config::INCOMPLETE,
            f.at(there),
            message,
            "name it on both or on neither",
        );
    }
    Some(Nodes::Multi(Box::new(Roles { prefill, decode })))
}

fn role(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Role> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let num_worker = f.required(d, "num-worker", |d, n, name| d.integer(n, name, 0));
    let sizes = sizes(d, &mut f, |size| size.names().side_required);
    let hardware = f.optional(d, "hardware", Decoder::string);
    let additional_settings = f.optional(d, "additional-settings", |d, node, name| {
        d.list(node, name, 0, |d, node| setting(d, node, name))
    });
    if let Some(sizes) = &sizes {
        checked(d, &f, sizes, num_worker.unwrap_or(1));
    }
    f.finish(d);
    Some(Role {
        num_worker: num_worker?,
        sizes: sizes?,
        hardware,
        additional_settings,
    })
}

/// `NAME=VALUE`: it becomes a variable of the launch.
fn setting(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    let variable = text.split_once('=').map_or("", |(variable, _)| variable);
    let legal = variable.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && variable.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !legal {
        let shown: String = text.chars().take(60).collect();
        d.refuse(
            &config::MALFORMED,
            node.span,
            format!("`{shown}` is not `NAME=VALUE`"),
            "NAME is made of letters, digits and `_`",
        );
    }
    Some(text)
}

fn offload(d: &mut Decoder, f: &mut Fields<'_, '_>, allowed: Allowed) -> (Option<KvOffloading>, Option<Component>) {
    if allowed.scenario == ScenarioType::FixedSeqLen {
        for name in ["kv-offloading", "kv-offload-backend"] {
            f.forbidden(d, name, "it belongs to `agentic-coding`");
        }
        return (None, None);
    }
    let mode = |d: &mut Decoder, n: &Node<'_>, name: &'static str| d.choice(n, name, &KvOffloading::CHOICES);
    let offloading = if allowed.multinode == Some(false) {
        f.required(d, "kv-offloading", mode)
    } else {
        f.optional(d, "kv-offloading", mode)
    };
    let backend = f.optional(d, "kv-offload-backend", component);
    let offloads = offloading.is_some_and(|mode| mode != KvOffloading::None);
    if offloads && !f.has("kv-offload-backend") {
        let message = "`kv-offloading` needs a `kv-offload-backend`";
        d.refuse(
            &config::INCOMPLETE,
            f.at("kv-offloading"),
            message,
            "add `kv-offload-backend: {name: ...}`",
        );
    }
    let known = offloading.is_some() || !f.has("kv-offloading");
    if known && !offloads && f.has("kv-offload-backend") {
        let message = "`kv-offload-backend` stands without `kv-offloading: dram`";
        d.refuse(
            &config::CONFLICT,
            f.at("kv-offload-backend"),
            message,
            "remove it, or offload",
        );
    }
    if offloading == Some(KvOffloading::Dram) && !allowed.dram_utilization {
        let message = "`kv-offloading: dram` needs the `dram-utilization` of its block";
        d.refuse(
            &config::INCOMPLETE,
            f.at("kv-offloading"),
            message,
            "add `dram-utilization: 0.8` beside `search-space`",
        );
    }
    (offloading, backend)
}
