//! `configs/runners.yaml`: which runners a label stands for, what hardware they have, and what starts jobs there.

use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;

use super::clusters::{self, Cluster};
use super::decode::Decoder;
use super::problem::Problems;
use super::source::Source;
use super::tree::Node;

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
    /// What starts jobs on which runners.
    #[schemars(default)]
    pub clusters: IndexMap<String, Cluster>,
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

    /// The cluster of a runner, with its name: the one that names the runner, else the one of its fleet.
    #[must_use]
    pub fn cluster(&self, runner: &str) -> Option<(&str, &Cluster)> {
        clusters::of_runner(&self.clusters, runner)
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
        let clusters = fields.optional(d, "clusters", |d, node, name| {
            Some(clusters::clusters(d, node, name, labels.as_ref()))
        });
        fields.finish(d);
        Some(Self {
            labels: labels?,
            hardware: hardware.unwrap_or_default(),
            clusters: clusters.unwrap_or_default(),
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
