//! The `local` backend: a server on the runner's own host.

use schemars::JsonSchema;

use super::{Command, Settings};
use crate::config::decode::{Decoder, Fields};

/// A day.
const MAX_SECONDS: u64 = 86_400;

/// A server on the runner's host.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Local {
    /// The server: a program and its arguments.
    pub server_command: Command,
    /// The port that it serves on; a free one is taken unless given.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<u16>,
    /// Seconds within which it must be healthy; 1800 unless given.
    #[schemars(default = "ready_timeout", range(min = 1, max = 86400))]
    pub ready_timeout_seconds: u64,
    /// The throughput client; without one such a cluster runs evals only.
    pub throughput_command: Option<Command>,
    /// The eval task of rows that name no suite, a file or a name under `configs/evals`; `gsm8k` unless given.
    #[schemars(length(min = 1))]
    pub eval_task: Option<String>,
}

impl Settings for Local {
    fn decode(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Self> {
        let server_command = f.required(d, "server-command", Command::decode);
        let port = f.optional(d, "port", |d, n, name| {
            let port = d.integer_up_to(n, name, u64::from(u16::MAX))?;
            u16::try_from(port).ok()
        });
        let ready = f.optional(d, "ready-timeout-seconds", |d, n, name| {
            d.integer_up_to(n, name, MAX_SECONDS)
        });
        let throughput_command = f.optional(d, "throughput-command", Command::decode);
        let eval_task = f.optional(d, "eval-task", Decoder::string);
        Some(Local {
            server_command: server_command?,
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
