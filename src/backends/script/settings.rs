//! The `script` backend: a fleet's own launch script, and what it may leave behind: Slurm jobs and containers under known
//! names.

use schemars::JsonSchema;

use crate::config::clusters::decode::inside;
use crate::config::clusters::{Needs, Settings};
use crate::config::decode::{Decoder, Fields};
use crate::config::tree::Node;
use crate::findings::config;

/// The placeholder for the runner's name in [`Script::job_names`] and [`Script::container_names`].
const RUNNER: &str = "{runner-name}";

/// A program that launch scripts start something with that outlives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Program {
    /// Jobs of Slurm.
    Slurm,
    /// Containers of docker.
    Docker,
    /// Containers of podman.
    Podman,
}

impl Program {
    /// Every value with its text form, which for containers is the command's name.
    pub const CHOICES: [(&'static str, Self); 3] = [
        ("slurm", Self::Slurm),
        ("docker", Self::Docker),
        ("podman", Self::Podman),
    ];
}

/// A launch script. Before and after a job, what bears exactly one of its names is ended; without `uses` nothing is
/// looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Script {
    /// The script, from the repository's root; `runners/launch_<fleet>.sh` unless given.
    pub path: Option<String>,
    /// The programs that the scripts use.
    #[schemars(default)]
    pub uses: Vec<Program>,
    /// The names of their Slurm jobs; `{runner-name}` unless given.
    #[schemars(default, length(min = 1), inner(length(min = 1)))]
    pub job_names: Vec<String>,
    /// The names of their containers; `bmk-server-{runner-name}` unless given. Containers that are called after one of
    /// those Slurm jobs (`container_..._<job id>`, `router_...`, `client_...`) are always meant.
    #[schemars(default, length(min = 1), inner(length(min = 1)))]
    pub container_names: Vec<String>,
}

impl Settings for Script {
    fn decode(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Self> {
        let path = f.optional(d, "path", inside);
        let uses = f.optional(d, "uses", |d, n, name| {
            d.list(n, name, 1, |d, item| d.choice(item, name, &Program::CHOICES))
        });
        let uses = uses.unwrap_or_default();
        let own = |wanted: &[Program]| uses.iter().any(|program| wanted.contains(program));
        let (slurm, containers) = (own(&[Program::Slurm]), own(&[Program::Docker, Program::Podman]));
        let neither = "`uses` says neither `docker` nor `podman`";
        Some(Self {
            path,
            job_names: names(d, f, "job-names", slurm, "`uses` does not say `slurm`"),
            container_names: names(d, f, "container-names", containers, neither),
            uses,
        })
    }

    fn needs(&self) -> Needs<'_> {
        Needs::Script(self.path.as_deref())
    }
}

impl Script {
    /// The names of a runner's Slurm jobs.
    #[must_use]
    pub fn jobs(&self, runner: &str) -> Vec<String> {
        filled(&self.job_names, RUNNER, runner)
    }

    /// The names of a runner's containers.
    #[must_use]
    pub fn containers(&self, runner: &str) -> Vec<String> {
        filled(&self.container_names, "bmk-server-{runner-name}", runner)
    }
}

fn filled(given: &[String], default: &str, runner: &str) -> Vec<String> {
    let default = [default.to_owned()];
    let names = if given.is_empty() { &default[..] } else { given };
    names.iter().map(|name| name.replace(RUNNER, runner)).collect()
}

fn names(d: &mut Decoder, f: &mut Fields<'_, '_>, field: &'static str, is_used: bool, why: &str) -> Vec<String> {
    if !is_used {
        f.forbidden(d, field, why);
        return Vec::new();
    }
    let names = f.optional(d, field, |d, n, name| d.list(n, name, 1, |d, item| word(d, item, name)));
    names.unwrap_or_default()
}

/// A name in which nothing but the runner's stands for something else.
fn word(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    let rest = text.replace(RUNNER, "r");
    if rest.is_empty() || !rest.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
        let message = format!("`{text}` is no name of a job or a container");
        let hint = format!("use letters, digits, `_`, `.` and `-`, and `{RUNNER}` for the runner's name");
        d.refuse(&config::RULE, node.span, message, hint);
        return None;
    }
    Some(text)
}
