//! What the backends share that serve rows themselves, without a launch script.

use schemars::JsonSchema;

use super::decode::{port, seconds};
use crate::config::decode::{Decoder, Fields};

/// How a row without a launch script is served.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Served {
    /// The port that a server without a launch script serves on; a free one is taken unless given.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// Seconds within which such a server must be healthy; 1800 unless given.
    #[schemars(default = "ready_timeout", range(min = 1, max = 86400))]
    pub ready_timeout_seconds: u64,
    /// The eval task of rows that name no suite, a file or a name under `configs/evals`; `gsm8k` unless given.
    #[schemars(length(min = 1))]
    pub eval_task: Option<String>,
}

impl Served {
    /// Reads the fields of a cluster.
    pub(crate) fn decode(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Self {
        Self {
            port: f.optional(d, "port", port),
            ready_timeout_seconds: f
                .optional(d, "ready-timeout-seconds", seconds)
                .unwrap_or_else(ready_timeout),
            eval_task: f.optional(d, "eval-task", Decoder::string),
        }
    }
}

impl Default for Served {
    fn default() -> Self {
        Self {
            port: None,
            ready_timeout_seconds: ready_timeout(),
            eval_task: None,
        }
    }
}

/// Seconds within which a server must be healthy, unless the cluster says otherwise.
fn ready_timeout() -> u64 {
    1800
}
