//! What is known of a job: its envelope, and the environment that a launch made of it.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use crate::config::problem::{Problem, nearest};
use crate::matrix::envelope::Envelope;
use crate::step::environment::{self, Place};

/// A job's variables. A variable of the environment overrides what the envelope says, and stands in for it where
/// there is no envelope; an empty one counts as unset.
#[derive(Debug, Clone, Default)]
pub struct Job {
    row: IndexMap<String, String>,
    env: BTreeMap<String, String>,
    /// The envelope's id; empty without one.
    pub id: String,
}

impl Job {
    /// The job of an envelope in an environment.
    #[must_use]
    pub fn new(envelope: Option<&Envelope>, env: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            row: envelope.map(variables).unwrap_or_default(),
            env: env.into_iter().filter(|(_, value)| !value.trim().is_empty()).collect(),
            id: envelope.map(|envelope| envelope.id.clone()).unwrap_or_default(),
        }
    }

    /// The job of an envelope in this process' environment; variables that are not UTF-8 are left out.
    #[must_use]
    pub fn here(envelope: Option<&Envelope>) -> Self {
        let env = std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)));
        Self::new(envelope, env)
    }

    /// The same job as it was planned: where there is an envelope, what it says counts, whatever scripts and launchers
    /// made of those variables. What a run adds is still the environment's.
    #[must_use]
    pub fn as_planned(&self) -> Self {
        let mut job = self.clone();
        if !self.row.is_empty() {
            let planned = |name: &str| {
                let of_a_side = ["PREFILL_", "DECODE_"].iter().any(|side| name.starts_with(side));
                (of_a_side || self.row.contains_key(name)) && !name.starts_with("GITHUB_")
            };
            job.env.retain(|name, _| !planned(name));
        }
        job
    }

    /// A variable's text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let own = self.env.get(name).map(|value| value.trim());
        own.or_else(|| self.row.get(name).map(String::as_str).filter(|v| !v.is_empty()))
    }

    /// A whole number of at least `least`.
    ///
    /// # Errors
    /// Anything else.
    pub fn number(&self, name: &str, least: u64) -> Result<Option<u64>, Problem> {
        let parse = |text: &str| {
            text.parse().ok().filter(|n| *n >= least).ok_or_else(|| {
                Problem::file(
                    "",
                    format!("{name} is `{text}`, not a whole number of at least {least}"),
                )
                .hint(format!("set {name} to a number, or unset it"))
            })
        };
        self.text(name).map(parse).transpose()
    }

    /// A flag: `true` or `false`, also as `1` or `0`.
    ///
    /// # Errors
    /// Anything else.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        let parse = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => Err(Problem::file("", format!("{name} is `{text}`, neither true nor false"))
                .hint(nearest(other, ["true", "false"]))),
        };
        self.text(name).map(parse).transpose()
    }

    /// Whether throughput comes first and decides: then a failed eval is reported, and fails nothing.
    #[must_use]
    pub fn is_combined(&self) -> bool {
        let flag = |name| self.flag(name).ok().flatten();
        flag("RUN_EVAL") == Some(true) && flag("EVAL_ONLY") == Some(false)
    }
}

/// What an envelope's variables are where no launch has set them. The served model's name is
/// left out: MODEL of the environment comes before it.
fn variables(envelope: &Envelope) -> IndexMap<String, String> {
    let mut all = environment::of_row(envelope, &Place::default());
    all.shift_remove("MODEL_NAME");
    all
}
