//! `configs/runners.yaml`: which runners a label stands for, and what hardware they have.

use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;

use super::decode::Decoder;
use super::problem::Problems;
use super::source::Source;
use super::tree::Node;
use crate::findings::config;

/// The repository's own runners file.
pub(crate) const FILE: &str = "configs/runners.yaml";

/// The runners file.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Runners {
    /// Runner names by label, in file order.
    #[schemars(extend("additionalProperties" = {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}))]
    pub labels: IndexMap<String, Vec<String>>,
    /// What the nodes behind a label have.
    #[schemars(default)]
    pub hardware: IndexMap<String, Hardware>,
}

/// The facts of one label's nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Hardware {
    /// Host memory that jobs may use, in MiB.
    #[schemars(range(min = 1))]
    pub available_cpu_dram_mib: u64,
    /// GPUs of one node.
    #[schemars(range(min = 1))]
    pub gpus_per_node: u64,
}

impl Runners {
    /// Reads a runners file.
    ///
    /// # Errors
    /// Every problem of the file.
    pub fn load(source: &Arc<Source>) -> Result<Self, Problems> {
        super::load(source, Self::decode)
    }

    fn decode(d: &mut Decoder, node: &Node<'_>) -> Option<Self> {
        let mut fields = d.fields(node, "the runners file")?;
        let labels = fields.required(d, "labels", |d, node, name| {
            let mut labels = IndexMap::new();
            for (key, value) in d.entries(node, name) {
                if let Some(names) = d.strings(value, key.text(), 1) {
                    labels.insert(key.text().to_owned(), names);
                }
            }
            Some(labels)
        });
        let hardware = fields.optional(d, "hardware", |d, node, name| {
            let mut hardware = IndexMap::new();
            for (key, value) in d.entries(node, name) {
                if let Some(facts) = Hardware::decode(d, value, key.text()) {
                    hardware.insert(key.text().to_owned(), facts);
                }
            }
            Some(hardware)
        });
        // Other programs read this file too, and refuse what they do not know.
        if let Some(clusters) = fields.get("clusters") {
            let message = "unknown field `clusters` in the runners file";
            let hint = "move `clusters` to configs/clusters.yaml";
            d.refuse(&config::UNKNOWN_FIELD, clusters.span, message, hint);
        }
        fields.finish(d);
        Some(Self {
            labels: labels?,
            hardware: hardware.unwrap_or_default(),
        })
    }
}

impl Hardware {
    fn decode(d: &mut Decoder, node: &Node<'_>, label: &str) -> Option<Self> {
        let mut fields = d.fields(node, &format!("the hardware of `{label}`"))?;
        let dram = fields.required(d, "available-cpu-dram-mib", |d, n, name| d.integer(n, name, 1));
        let gpus = fields.required(d, "gpus-per-node", |d, n, name| d.integer(n, name, 1));
        fields.finish(d);
        Some(Self {
            available_cpu_dram_mib: dram?,
            gpus_per_node: gpus?,
        })
    }
}
