//! The small vocabulary that configs and rows share, each type with its text form beside it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use super::fields::{Parallelism, Role};

/// Input and output sequence lengths, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeqLen {
    /// Input sequence length.
    pub isl: u64,
    /// Output sequence length.
    pub osl: u64,
}

impl SeqLen {
    /// 1024 in, 1024 out.
    pub const ONE_K_ONE_K: Self = Self { isl: 1024, osl: 1024 };
    /// 8192 in, 1024 out.
    pub const EIGHT_K_ONE_K: Self = Self { isl: 8192, osl: 1024 };
    /// The lengths that have a short name.
    pub const NAMED: [(&'static str, Self); 2] = [("1k1k", Self::ONE_K_ONE_K), ("8k1k", Self::EIGHT_K_ONE_K)];

    /// The lengths that a short name stands for.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(n, _)| *n == name).map(|(_, s)| *s)
    }

    /// The context that a request of these lengths needs, with 256 tokens of room for a chat template.
    #[must_use]
    pub fn max_model_len(self) -> u64 {
        self.isl + self.osl + 256
    }
}

impl fmt::Display for SeqLen {
    /// The short name, or `<isl>_<osl>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMED.iter().find(|(_, s)| s == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}_{}", self.isl, self.osl),
        }
    }
}

/// Speculative decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum SpecDecoding {
    /// Multi-token prediction heads of the model itself.
    Mtp,
    /// A smaller draft model.
    DraftModel,
    /// No speculation.
    #[default]
    None,
}

impl SpecDecoding {
    /// Every value with its text form.
    pub const CHOICES: [(&'static str, Self); 3] = [
        ("mtp", Self::Mtp),
        ("draft_model", Self::DraftModel),
        ("none", Self::None),
    ];

    /// The text form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        text_of(&Self::CHOICES, self)
    }
}

/// Where the key-value cache of agentic jobs is offloaded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum KvOffloading {
    /// It stays on the GPUs.
    #[default]
    None,
    /// The hosts' memory.
    Dram,
}

impl KvOffloading {
    /// Every value with its text form.
    pub const CHOICES: [(&'static str, Self); 2] = [("none", Self::None), ("dram", Self::Dram)];

    /// The text form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        text_of(&Self::CHOICES, self)
    }
}

/// The two kinds of workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScenarioType {
    /// Requests of fixed input and output lengths.
    FixedSeqLen,
    /// Replayed traces of coding agents.
    AgenticCoding,
}

impl ScenarioType {
    /// Every value with its text form, in the order in which rows are generated.
    pub const CHOICES: [(&'static str, Self); 2] = [
        ("fixed-seq-len", Self::FixedSeqLen),
        ("agentic-coding", Self::AgenticCoding),
    ];

    /// The text form.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        text_of(&Self::CHOICES, self)
    }
}

/// One node or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// The server runs on one node.
    Single,
    /// Prefill and decode workers over several nodes.
    Multi,
}

impl NodeKind {
    /// Every value with its text form.
    pub const CHOICES: [(&'static str, Self); 2] = [("single", Self::Single), ("multi", Self::Multi)];
}

fn text_of<T: PartialEq + Copy>(choices: &[(&'static str, T)], value: T) -> &'static str {
    choices.iter().find(|(_, v)| *v == value).map_or("", |(n, _)| *n)
}

/// A named part of a deployment: a router, or the backend of an offloaded cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// Its name.
    pub name: String,
    /// Its version; an image reference is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}
