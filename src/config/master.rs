//! `configs/*-master.yaml`: what is benchmarked, as a mapping of config key to entry.

pub(crate) mod search_space;

use std::sync::Arc;

use indexmap::IndexMap;
use rust_decimal::Decimal;
use schemars::JsonSchema;

use self::search_space::{Allowed, SearchEntry, SearchSpaceEntry};
use super::decode::{Decoder, Fields};
use super::problem::{Place, Problems, Span};
use super::scalar::Scalar;
use super::source::Source;
use super::tree::{self, Node, Value};
use super::types::{Component, ScenarioType, SeqLen};
use crate::findings::config;

/// A master file as it is written.
#[derive(Debug, JsonSchema)]
#[schemars(transparent)]
pub struct MasterFile(#[allow(dead_code, reason = "the shape of the JSON Schema")] IndexMap<String, ConfigEntry>);

/// One config as it is written.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConfigEntry {
    /// The container image that serves.
    pub image: String,
    /// The model: a hub name or a name that the launch script knows.
    pub model: String,
    /// The model's short name, used in experiment names and thresholds.
    pub model_prefix: String,
    /// The precision of the weights, such as `fp8`.
    pub precision: String,
    /// The serving engine, such as `vllm`.
    pub framework: String,
    /// A label of the runners file; agentic configs take one that starts with `cluster:`.
    pub runner: String,
    /// Whether the server spans several nodes.
    pub multinode: bool,
    /// Whether prefill and decode are apart; needs `multinode: true` and a KV transfer.
    #[schemars(default)]
    pub disagg: Option<bool>,
    /// The router in front of the workers, for every search-space entry.
    pub router: Option<Router>,
    /// How the KV cache moves between workers, for every search-space entry.
    pub kv_p2p_transfer: Option<String>,
    /// What is run; at least one of the two.
    pub scenarios: Scenarios,
}

/// A router with its version.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Router {
    /// Its name.
    pub name: String,
    /// Its version; an image reference is none.
    #[schemars(regex(pattern = "^(?!image:)"))]
    pub version: String,
}

/// The scenarios of a config as they are written.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields, extend("minProperties" = 1))]
pub struct Scenarios {
    /// Requests of fixed lengths.
    #[schemars(length(min = 1))]
    pub fixed_seq_len: Option<Vec<FixedSeqLen>>,
    /// Replayed traces of coding agents.
    #[schemars(length(min = 1))]
    pub agentic_coding: Option<Vec<AgenticCoding>>,
}

/// One pair of lengths as it is written.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FixedSeqLen {
    /// Input tokens.
    #[schemars(range(min = 1))]
    pub isl: u64,
    /// Output tokens.
    #[schemars(range(min = 1))]
    pub osl: u64,
    /// The topologies and their concurrencies.
    #[schemars(length(min = 1))]
    pub search_space: Vec<SearchSpaceEntry>,
}

/// One agentic block as it is written.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AgenticCoding {
    /// The share of host memory that an offloaded cache may take, above 0 and at most 1.
    #[schemars(with = "Option<f64>", extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub dram_utilization: Option<Decimal>,
    /// The topologies and their concurrencies.
    #[schemars(length(min = 1))]
    pub search_space: Vec<SearchSpaceEntry>,
}

/// One config, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Its key.
    pub key: String,
    /// Where it stands.
    pub place: Place,
    /// The container image.
    pub image: String,
    /// The model.
    pub model: String,
    /// The model's short name.
    pub model_prefix: String,
    /// The weights' precision.
    pub precision: String,
    /// The serving engine.
    pub framework: String,
    /// The runner label.
    pub runner: String,
    /// Whether it spans nodes.
    pub multinode: bool,
    /// Whether prefill and decode are apart.
    pub disagg: bool,
    /// The router of every entry.
    pub router: Option<Component>,
    /// The KV transfer of every entry.
    pub kv_p2p_transfer: Option<String>,
    /// The fixed-sequence scenario: lengths with their search spaces, in file order.
    pub fixed: Option<Vec<Fixed>>,
    /// The agentic scenario, in file order.
    pub agentic: Option<Vec<Agentic>>,
}

/// A pair of lengths with its search space.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixed {
    /// The lengths.
    pub seq: SeqLen,
    /// The entries, in file order.
    pub space: Vec<SearchEntry>,
}

/// An agentic block with its search space.
#[derive(Debug, Clone, PartialEq)]
pub struct Agentic {
    /// The share of host memory for an offloaded cache.
    pub dram_utilization: Option<Decimal>,
    /// The entries, in file order.
    pub space: Vec<SearchEntry>,
}

impl Config {
    /// Whether it has anything of a scenario.
    #[must_use]
    pub fn has(&self, scenario: ScenarioType) -> bool {
        match scenario {
            ScenarioType::FixedSeqLen => self.fixed.is_some(),
            ScenarioType::AgenticCoding => self.agentic.is_some(),
        }
    }
}

/// The configs of all master files, in the order of the files and then of each file.
pub type Master = IndexMap<String, Config>;

/// Reads master files side by side and merges them.
///
/// # Errors
/// Every problem of every file, and every key that stands in two places, with both.
pub fn load(sources: &[Arc<Source>]) -> Result<Master, Problems> {
    let read: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = sources
            .iter()
            .map(|source| scope.spawn(move || load_one(source)))
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().expect("a decoder does not panic"))
            .collect()
    });
    let mut master = Master::new();
    let mut places: IndexMap<String, (&Arc<Source>, Span)> = IndexMap::new();
    let mut problems = Problems::default();
    for (source, result) in sources.iter().zip(read) {
        match result {
            Err(more) => problems.extend(more),
            Ok(configs) => {
                for (config, span) in configs {
                    if let Some((other, first)) = places.get(&config.key) {
                        let message = format!("config key `{}` stands in two places", config.key);
                        let hint = format!("the other is {}:{}:{}", other.name, first.line, first.column);
                        problems.push(config::NAMED_TWICE.at(source, span, message).hint(hint));
                        continue;
                    }
                    places.insert(config.key.clone(), (source, span));
                    master.insert(config.key.clone(), config);
                }
            }
        }
    }
    problems.into_result()?;
    Ok(master)
}

fn load_one(source: &Arc<Source>) -> Result<Vec<(Config, Span)>, Problems> {
    let root = tree::parse(source)?;
    let mut d = Decoder::new(source);
    let mut configs = Vec::new();
    let empty = matches!(root.scalar(), Some(Scalar::Null));
    if !empty {
        for (key, node) in d.entries(&root, "a master file") {
            if key.text().is_empty() {
                d.refuse(
                    &config::EMPTY,
                    key.span,
                    "a config key is empty",
                    "give the config a name",
                );
            }
            if key.text().contains('*') {
                let message = format!("config key `{}` holds a `*`", key.text());
                d.refuse(
                    &config::MALFORMED,
                    key.span,
                    message,
                    "`*` is for patterns; rename the key",
                );
            }
            if let Some(config) = entry(&mut d, key.text(), key.span, node) {
                configs.push((config, key.span));
            }
        }
    }
    d.problems.into_result()?;
    Ok(configs)
}

/// A config's runner, as its file says it.
#[derive(Debug)]
pub(crate) struct NamedRunner {
    /// The config's key.
    pub key: String,
    /// The label, or the runner.
    pub runner: String,
    /// Where it stands.
    pub place: Place,
}

/// The runners that the configs of a file name, also of a file with other problems; none of a text that is no YAML.
pub(crate) fn runners_of(source: &Arc<Source>) -> Vec<NamedRunner> {
    let Ok(root) = tree::parse(source) else {
        return Vec::new();
    };
    let Value::Map(configs) = &root.value else {
        return Vec::new();
    };
    let runner = |(key, config): &(Node<'_>, Node<'_>)| {
        let Value::Map(fields) = &config.value else { return None };
        let (_, runner) = fields.iter().find(|(name, _)| name.text() == "runner")?;
        let is_named = matches!(runner.scalar(), Some(Scalar::Str(text)) if !text.is_empty());
        is_named.then(|| NamedRunner {
            key: key.text().to_owned(),
            runner: runner.text().to_owned(),
            place: Place::new(source, runner.span),
        })
    };
    configs.iter().filter_map(runner).collect()
}

fn entry(d: &mut Decoder, key: &str, at: Span, node: &Node<'_>) -> Option<Config> {
    let mut f = d.fields(node, &format!("config `{key}`"))?;
    let image = f.required(d, "image", Decoder::string);
    let model = f.required(d, "model", Decoder::string);
    let model_prefix = f.required(d, "model-prefix", Decoder::string);
    let precision = f.required(d, "precision", Decoder::string);
    let framework = f.required(d, "framework", Decoder::string);
    let runner = f.required(d, "runner", Decoder::string);
    let multinode = f.required(d, "multinode", Decoder::boolean);
    let disagg = f.optional(d, "disagg", Decoder::boolean).unwrap_or(false);
    let router = f.optional(d, "router", router);
    let transfer = f.optional(d, "kv-p2p-transfer", Decoder::string);
    if disagg && multinode == Some(false) {
        d.refuse(
            &config::CONFLICT,
            f.at("disagg"),
            "`disagg: true` needs `multinode: true`",
            "correct one of the two",
        );
    }
    if f.has("kv-p2p-transfer") && multinode == Some(false) {
        d.refuse(
            &config::CONFLICT,
            f.at("kv-p2p-transfer"),
            "`kv-p2p-transfer` needs `multinode: true`",
            "remove it",
        );
    }
    let allowed = Allowed {
        multinode,
        disagg,
        router_above: f.has("router"),
        transfer_above: f.has("kv-p2p-transfer"),
        scenario: ScenarioType::FixedSeqLen,
        dram_utilization: false,
    };
    let scenarios = f.required(d, "scenarios", |d, node, _| scenarios(d, node, allowed));
    if let (Some((_, Some(_))), Some(label)) = (&scenarios, &runner)
        && !label.starts_with("cluster:")
    {
        let message = format!("the agentic config `{key}` runs on `{label}`");
        d.refuse(
            &config::CONFLICT,
            f.at("runner"),
            message,
            "agentic configs take a label that starts with `cluster:`",
        );
    }
    f.finish(d);
    let (fixed, agentic) = scenarios?;
    Some(Config {
        key: key.to_owned(),
        place: d.place(at),
        image: image?,
        model: model?,
        model_prefix: model_prefix?,
        precision: precision?,
        framework: framework?,
        runner: runner?,
        multinode: multinode?,
        disagg,
        router,
        kv_p2p_transfer: transfer,
        fixed,
        agentic,
    })
}

type BothScenarios = (Option<Vec<Fixed>>, Option<Vec<Agentic>>);

fn scenarios(d: &mut Decoder, node: &Node<'_>, allowed: Allowed) -> Option<BothScenarios> {
    let mut f = d.fields(node, "`scenarios`")?;
    let fixed = f.optional(d, "fixed-seq-len", |d, node, name| {
        d.list(node, name, 1, |d, node| fixed(d, node, allowed))
    });
    let agentic = f.optional(d, "agentic-coding", |d, node, name| {
        d.list(node, name, 1, |d, node| agentic(d, node, allowed))
    });
    if !f.has("fixed-seq-len") && !f.has("agentic-coding") {
        let hint = "add `fixed-seq-len` or `agentic-coding`";
        let names = ["fixed-seq-len", "agentic-coding"];
        f.lacks(d, &config::EMPTY, &names, "`scenarios` holds no scenario", hint);
    }
    f.finish(d);
    Some((fixed, agentic))
}

fn fixed(d: &mut Decoder, node: &Node<'_>, allowed: Allowed) -> Option<Fixed> {
    let mut f = d.fields(node, "a `fixed-seq-len` item")?;
    let isl = f.required(d, "isl", |d, n, name| d.integer(n, name, 1));
    let osl = f.required(d, "osl", |d, n, name| d.integer(n, name, 1));
    let space = space(d, &mut f, allowed);
    f.finish(d);
    let seq = SeqLen { isl: isl?, osl: osl? };
    Some(Fixed { seq, space: space? })
}

fn agentic(d: &mut Decoder, node: &Node<'_>, allowed: Allowed) -> Option<Agentic> {
    let mut f = d.fields(node, "an `agentic-coding` item")?;
    let dram_utilization = f.optional(d, "dram-utilization", |d, node, name| {
        let share = d.decimal(node, name)?;
        if share <= Decimal::ZERO || share > Decimal::ONE {
            let message = format!("`{name}` is {share}, it must be above 0 and at most 1");
            d.refuse(&config::OUT_OF_RANGE, node.span, message, "write a share such as 0.8");
        }
        Some(share)
    });
    let allowed = Allowed {
        scenario: ScenarioType::AgenticCoding,
        dram_utilization: f.has("dram-utilization"),
        ..allowed
    };
    let space = space(d, &mut f, allowed);
    f.finish(d);
    Some(Agentic {
        dram_utilization,
        space: space?,
    })
}

fn space(d: &mut Decoder, f: &mut Fields<'_, '_>, allowed: Allowed) -> Option<Vec<SearchEntry>> {
    f.required(d, "search-space", |d, node, name| {
        d.list(node, name, 1, |d, node| search_space::decode(d, node, allowed))
    })
}

/// A component; its version is no image reference.
pub(super) fn component(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Component> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let component = f.required(d, "name", Decoder::string);
    let version = f.optional(d, "version", |d, node, field| {
        let version = d.string(node, field)?;
        if version.starts_with("image:") {
            d.refuse(
                &config::MALFORMED,
                node.span,
                format!("the version of `{name}` is an image"),
                "write a version number",
            );
        }
        Some(version)
    });
    f.finish(d);
    Some(Component {
        name: component?,
        version,
    })
}

/// A router: a component whose version must be written.
pub(super) fn router(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Component> {
    let router = component(d, node, name)?;
    if router.version.is_none() {
        d.refuse(
            &config::MISSING_FIELD,
            node.span,
            format!("`{name}` lacks `version`"),
            "add `version:`",
        );
    }
    Some(router)
}
