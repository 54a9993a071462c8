//! What of its host a container sees.

use schemars::JsonSchema;

use super::decode::absolute;
use crate::config::decode::Decoder;
use crate::config::tree::Node;

/// The GPUs that a container sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Gpus {
    /// No GPU.
    #[default]
    None,
    /// Every GPU of NVIDIA's.
    Nvidia,
    /// Every GPU of AMD's: `/dev/kfd` and `/dev/dri`.
    Amd,
}

impl Gpus {
    /// Every value with its text form.
    pub const CHOICES: [(&'static str, Self); 3] = [("none", Self::None), ("nvidia", Self::Nvidia), ("amd", Self::Amd)];
}

/// A folder of the host in a container.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mount {
    /// Its absolute path on the host.
    #[schemars(regex(pattern = "^/"))]
    pub host: String,
    /// Its absolute path in the container.
    #[schemars(regex(pattern = "^/"))]
    pub container: String,
    /// Whether the container may only read it; `false` unless given.
    #[schemars(default)]
    pub read_only: bool,
}

impl Mount {
    /// Reads a list of them.
    pub(crate) fn decode_all(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Vec<Self>> {
        d.list(node, name, 1, |d, item| {
            let mut f = d.fields(item, "a mount")?;
            let host = f.required(d, "host", absolute);
            let container = f.required(d, "container", absolute);
            let read_only = f.optional(d, "read-only", Decoder::boolean);
            f.finish(d);
            Some(Self {
                host: host?,
                container: container?,
                read_only: read_only.unwrap_or(false),
            })
        })
    }
}
