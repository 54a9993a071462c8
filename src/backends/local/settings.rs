//! The `local` backend: a server on the runner's own host.

use schemars::JsonSchema;

use crate::config::clusters::{Command, Needs, Served, Settings};
use crate::config::decode::{Decoder, Fields};
use crate::config::types::NodeKind;

/// A server on the runner's host.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Local {
    /// The server: a program and its arguments; that of the row's engine unless given.
    pub server_command: Option<Command>,
    /// The throughput client of `server-command`; without one it serves evals only.
    pub throughput_command: Option<Command>,
    /// How rows are served.
    #[schemars(flatten)]
    pub served: Served,
}

impl Settings for Local {
    fn decode(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Self> {
        Some(Local {
            server_command: f.optional(d, "server-command", Command::decode),
            throughput_command: f.optional(d, "throughput-command", Command::decode),
            served: Served::decode(d, f),
        })
    }

    fn needs(&self) -> Needs<'_> {
        match self.server_command {
            Some(_) => Needs::Nothing,
            None => Needs::Engine,
        }
    }

    fn served(&self) -> Option<&Served> {
        Some(&self.served)
    }

    fn runs_locally(&self, _nodes: NodeKind) -> bool {
        true
    }

    fn takes_a_node(&self) -> bool {
        false
    }
}
