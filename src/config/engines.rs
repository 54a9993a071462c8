//! `configs/engines.yaml`: how a server of each framework is started, and what is measured of it.

mod condition;
mod decode;

use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;

use super::clusters::command::{Command, Template};
use super::problem::Problems;
use super::source::Source;
pub(crate) use condition::{Condition, Conditions, Subject};

/// The copy that serves a repository without engines of its own.
pub(crate) const BUILT_IN: &str = include_str!("../../configs/engines.yaml");

/// Where a server says that it is ready, unless its engine says otherwise.
pub(crate) const HEALTH: &str = "/health";

/// The engines file.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Engines {
    /// Engines by the framework of the rows that they serve.
    pub engines: IndexMap<String, Engine>,
}

impl Engines {
    /// Reads an engines file.
    ///
    /// # Errors
    /// Every problem of the file.
    pub fn load(source: &Arc<Source>) -> Result<Self, Problems> {
        super::load(source, decode::engines)
    }

    /// The engines of a repository without a file of its own.
    ///
    /// # Errors
    /// None: a test loads them.
    pub fn built_in() -> Result<Self, Problems> {
        Self::load(&Arc::new(Source::new("<built-in>/engines.yaml", BUILT_IN)))
    }

    /// The engine of a framework.
    #[must_use]
    pub fn of(&self, framework: &str) -> Option<&Engine> {
        self.engines.get(framework)
    }
}

/// How servers of one framework are started, on one node.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Engine {
    /// The server: a program and its arguments, some of them only for rows that a condition takes.
    #[schemars(length(min = 1))]
    pub server: Vec<Item>,
    /// The path that answers when the server is ready; `/health` unless given.
    #[schemars(default = "health", regex(pattern = "^/"))]
    pub health: String,
    /// The arguments that give the server of an eval-only job its context, which is `{context}`.
    #[schemars(default, length(min = 1))]
    pub context: Vec<Template>,
    /// The throughput client; `sweepctl throughput` unless given.
    pub throughput: Option<Command>,
    /// The client of agentic rows; `sweepctl agentic run` unless given.
    pub replay: Option<Command>,
    /// What the server calls its model; a client asks for the row's `model` unless given.
    pub served_model_name: Option<Template>,
    /// Variables of its jobs.
    #[schemars(default, with = "super::environment::Variables")]
    pub env: IndexMap<String, Template>,
    /// Files that the server reads, by name, a line an item; they lie in the folder `{files}`.
    #[schemars(default)]
    pub files: IndexMap<String, Vec<Item>>,
    /// What is different for some rows; all that take a row apply, in this order.
    #[schemars(default)]
    pub overrides: Vec<Override>,
}

/// What is different for some rows.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Override {
    /// The rows.
    pub r#for: Conditions,
    /// Arguments after the others.
    #[schemars(default)]
    pub add: Vec<Item>,
    /// The whole server, instead of the engine's.
    #[schemars(length(min = 1))]
    pub server: Option<Vec<Item>>,
    /// Variables beside the engine's; of one name the later is taken.
    #[schemars(default, with = "super::environment::Variables")]
    pub env: IndexMap<String, Template>,
    /// Lines after those of the engine's files.
    #[schemars(default)]
    pub files: IndexMap<String, Vec<Item>>,
    /// What the server calls its model.
    pub served_model_name: Option<Template>,
}

/// An argument or a line, or several that stand only for some rows.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum Item {
    /// For every row.
    Always(Template),
    /// For the rows that the conditions take.
    When(Conditional),
}

/// Arguments for some rows.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Conditional {
    /// The rows.
    pub when: Conditions,
    /// The arguments.
    #[schemars(length(min = 1))]
    pub args: Vec<Template>,
}

fn health() -> String {
    HEALTH.to_owned()
}
