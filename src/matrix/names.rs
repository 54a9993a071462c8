//! The names that a job's results are kept under.

use sha2::{Digest, Sha256};

use super::envelope::Envelope;
use super::fingerprint::hex;
use super::row::{Row, Scenario};
use crate::config::master::search_space::Nodes;
use crate::config::types::Role;

/// The longest result name, in bytes: file names hold 255, and suffixes follow.
pub const MAX_RESULT_NAME: usize = 200;
/// The longest artifact name, in characters.
pub const MAX_ARTIFACT_NAME: usize = 256;
/// The most of an experiment's name that stands in an artifact's name, in characters.
const MAX_EXP_NAME: usize = 160;

/// What an artifact holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// A throughput result.
    Bmk,
    /// An agentic throughput result.
    BmkAgentic,
    /// Raw agentic results.
    Agentic,
    /// Eval results.
    Eval,
    /// Server logs.
    ServerLogs,
    /// GPU metrics.
    GpuMetrics,
}

impl ArtifactKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Bmk,
        Self::BmkAgentic,
        Self::Agentic,
        Self::Eval,
        Self::ServerLogs,
        Self::GpuMetrics,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.prefix(false)
    }

    /// The one small kind that collectors read of a row's job.
    #[must_use]
    pub fn collected(row: &Row) -> Self {
        match (row.eval.eval_only, &row.topology.scenario) {
            (true, _) => Self::Eval,
            (false, Scenario::Fixed(_)) => Self::Bmk,
            (false, Scenario::Agentic(_)) => Self::BmkAgentic,
        }
    }

    /// The start of the artifact's name; eval-only jobs have forms of their own for logs and metrics.
    #[must_use]
    pub fn prefix(self, eval_only: bool) -> &'static str {
        match (self, eval_only) {
            (Self::Bmk, _) => "bmk",
            (Self::BmkAgentic, _) => "bmk_agentic",
            (Self::Agentic, _) => "agentic",
            (Self::Eval, _) => "eval",
            (Self::ServerLogs, false) => "server_logs",
            (Self::ServerLogs, true) => "eval_server_logs",
            (Self::GpuMetrics, false) => "gpu_metrics",
            (Self::GpuMetrics, true) => "eval_gpu_metrics",
        }
    }

    /// The kinds that a job of a row may upload.
    #[must_use]
    pub fn of(row: &Row) -> Vec<Self> {
        let mut kinds = vec![Self::ServerLogs, Self::GpuMetrics];
        if row.runs_eval() {
            kinds.push(Self::Eval);
        }
        if !row.eval.eval_only {
            match row.topology.scenario {
                Scenario::Fixed(_) => kinds.push(Self::Bmk),
                Scenario::Agentic(_) => kinds.extend([Self::BmkAgentic, Self::Agentic]),
            }
        }
        kinds
    }
}

/// `<kind>_<exp-name, cut>_<id>`, with what artifact names may not hold replaced by `-`.
#[must_use]
pub fn artifact(kind: ArtifactKind, envelope: &Envelope) -> String {
    let row = &envelope.row;
    let exp_name: String = row
        .exp_name
        .chars()
        .take(MAX_EXP_NAME)
        .map(|c| if is_illegal(c) { '-' } else { c })
        .collect();
    format!("{}_{exp_name}_{}", kind.prefix(row.eval.eval_only), envelope.id)
}

/// Whether an artifact's name may not hold a character.
#[must_use]
pub fn is_illegal(c: char) -> bool {
    matches!(c, '"' | ':' | '<' | '>' | '|' | '*' | '?' | '\\' | '/') || c.is_control()
}

/// Whether an artifact may be called so.
#[must_use]
pub fn is_legal_artifact(name: &str) -> bool {
    (1..=MAX_ARTIFACT_NAME).contains(&name.chars().count()) && !name.contains(is_illegal)
}

/// The stem of a throughput result's file name; `runner` is the name of the runner that takes the job.
#[must_use]
pub fn result(row: &Row, runner: &str) -> String {
    let topology = &row.topology;
    let points: Vec<String> = row.conc.points().iter().map(u64::to_string).collect();
    let split = match &topology.nodes {
        Nodes::Single(sizes) => {
            let parts = sizes
                .texts()
                .map(|(size, value)| format!("{}{value}", size.names().short));
            parts.collect::<Vec<_>>().join("-")
        }
        Nodes::Multi(roles) => {
            let (prefill, decode) = (side("prefill", &roles.prefill), side("decode", &roles.decode));
            format!("{prefill}_{decode}")
        }
    };
    let mut name = format!(
        "{}_{}_{}_{split}_disagg-{}_spec-{}_conc{}_{runner}",
        row.exp_name,
        topology.precision,
        topology.framework,
        topology.disagg,
        topology.spec_decoding.as_str(),
        points.join("x"),
    );
    if let Some(fingerprint) = &row.recipe_fingerprint {
        name.push_str("_recipe-");
        name.extend(fingerprint.chars().take(16));
    }
    let name: String = name
        .chars()
        .map(|c| if c == '/' || c.is_control() { '-' } else { c })
        .collect();
    cut(name, MAX_RESULT_NAME)
}

fn side(name: &str, role: &Role) -> String {
    let mut text = name.to_owned();
    for (size, value) in role.texts() {
        text.push_str(&format!("-{}{value}", size.names().side_short));
    }
    format!("{text}-nw{}", role.num_worker)
}

/// A name of at most `limit` bytes: a longer one is cut and ends in a hash of the whole.
fn cut(name: String, limit: usize) -> String {
    if name.len() <= limit {
        return name;
    }
    let hash = &hex(&Sha256::digest(name.as_bytes()))[..12];
    let mut end = limit - hash.len() - 1;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}_{hash}", &name[..end])
}
