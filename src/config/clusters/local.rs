//! The `local` backend: a server on the runner's own host.

use schemars::JsonSchema;

use super::decode::{port, seconds};
use super::{Command, Settings};
use crate::config::decode::{Decoder, Fields};

/// A server on the runner's host.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Local {
    /// The server: a program and its arguments; that of the row's engine unless given.
    pub server_command: Option<Command>,
    /// The port that it serves on; a free one is taken unless given.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// Seconds within which it must be healthy; 1800 unless given.
    #[schemars(default = "ready_timeout", range(min = 1, max = 86400))]
    pub ready_timeout_seconds: u64,
    /// The throughput client of `server-command`; without one it serves evals only.
    pub throughput_command: Option<Command>,
    /// The eval task of rows that name no suite, a file or a name under `configs/evals`; `gsm8k` unless given.
    #[schemars(length(min = 1))]
    pub eval_task: Option<String>,
}

impl Settings for Local {
    fn decode(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Self> {
        let server_command = f.optional(d, "server-command", Command::decode);
        let port = f.optional(d, "port", port);
        let ready = f.optional(d, "ready-timeout-seconds", seconds);
        let throughput_command = f.optional(d, "throughput-command", Command::decode);
        let eval_task = f.optional(d, "eval-task", Decoder::string);
        Some(Local {
            server_command,
            port,
            ready_timeout_seconds: ready.unwrap_or_else(ready_timeout),
            throughput_command,
            eval_task,
        })
    }
}

/// Seconds within which a server must be healthy, unless the cluster says otherwise.
#[must_use]
pub fn ready_timeout() -> u64 {
    1800
}
