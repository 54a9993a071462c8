//! What is known of a job: its envelope, and the environment that a launch made of it.

use std::collections::BTreeMap;

use crate::config::master::search_space::Nodes;
use crate::config::problem::{Problem, nearest};
use crate::config::types::Role;
use crate::matrix::envelope::Envelope;
use crate::matrix::row::{Row, Scenario};

/// A job's variables. A variable of the environment overrides what the envelope says, and stands in for it where
/// there is no envelope; an empty one counts as unset.
#[derive(Debug, Clone, Default)]
pub struct Job {
    row: BTreeMap<&'static str, String>,
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

/// The variables that evals read, as a launch sets them.
fn variables(envelope: &Envelope) -> BTreeMap<&'static str, String> {
    let row = &envelope.row;
    let t = &*row.topology;
    let mut all = BTreeMap::from([
        ("MODEL", t.model.clone()),
        ("MODEL_PREFIX", t.model_prefix.clone()),
        ("FRAMEWORK", t.framework.clone()),
        ("PRECISION", t.precision.clone()),
        ("RUNNER_TYPE", t.runner.clone()),
        ("SPEC_DECODING", t.spec_decoding.as_str().to_owned()),
        ("RUN_EVAL", row.runs_eval().to_string()),
        ("EVAL_ONLY", row.eval.eval_only.to_string()),
        ("IS_AGENTIC", matches!(t.scenario, Scenario::Agentic(_)).to_string()),
        ("IS_MULTINODE", matches!(t.nodes, Nodes::Multi(_)).to_string()),
        ("EVAL_CONC", eval_conc(row)),
        ("EVAL_LIMIT", envelope.overrides.eval_limit.clone().unwrap_or_default()),
        ("RECIPE_FINGERPRINT", row.recipe_fingerprint.clone().unwrap_or_default()),
    ]);
    if let Some(evaluator) = &row.eval.evaluator {
        all.insert("EVAL_FRAMEWORK", evaluator.framework.clone());
        all.insert("EVAL_SUITE", evaluator.suite.clone());
    }
    if let Some(seq) = row.seq() {
        all.insert("ISL", seq.isl.to_string());
        all.insert("OSL", seq.osl.to_string());
        all.insert("MAX_MODEL_LEN", seq.max_model_len().to_string());
    }
    match &t.nodes {
        Nodes::Single(p) => {
            all.insert("TP", p.tp.to_string());
            all.insert("PP_SIZE", p.pp.to_string());
            all.insert("DCP_SIZE", p.dcp_size.to_string());
            all.insert("PCP_SIZE", p.pcp_size.to_string());
            all.insert("EP_SIZE", p.ep.unwrap_or(1).to_string());
            all.insert("DP_ATTENTION", p.dp_attn.unwrap_or(false).to_string());
        }
        Nodes::Multi(roles) => {
            all.extend(side(&PREFILL, &roles.prefill));
            all.extend(side(&DECODE, &roles.decode));
        }
    }
    all
}

/// The concurrencies of a row's eval, separated by spaces; empty where the row leaves it open.
fn eval_conc(row: &Row) -> String {
    let single = matches!(row.topology.nodes, Nodes::Single(_));
    let points: Vec<u64> = match row.eval.eval_conc {
        _ if single || row.eval.eval_all_concs => row.conc.points().to_vec(),
        Some(conc) => vec![conc],
        None => Vec::new(),
    };
    points.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// The variables of one side of a multi-node deployment.
#[derive(Debug)]
pub(super) struct Side {
    pub workers: &'static str,
    pub tp: &'static str,
    pub pp: &'static str,
    pub dcp: &'static str,
    pub pcp: &'static str,
    pub ep: &'static str,
    pub dp_attention: &'static str,
    /// The name that srt-slurm passes on for the same.
    pub dp_attn: &'static str,
}

pub(super) const PREFILL: Side = Side {
    workers: "PREFILL_NUM_WORKERS",
    tp: "PREFILL_TP",
    pp: "PREFILL_PP_SIZE",
    dcp: "PREFILL_DCP_SIZE",
    pcp: "PREFILL_PCP_SIZE",
    ep: "PREFILL_EP",
    dp_attention: "PREFILL_DP_ATTENTION",
    dp_attn: "PREFILL_DP_ATTN",
};

pub(super) const DECODE: Side = Side {
    workers: "DECODE_NUM_WORKERS",
    tp: "DECODE_TP",
    pp: "DECODE_PP_SIZE",
    dcp: "DECODE_DCP_SIZE",
    pcp: "DECODE_PCP_SIZE",
    ep: "DECODE_EP",
    dp_attention: "DECODE_DP_ATTENTION",
    dp_attn: "DECODE_DP_ATTN",
};

fn side(names: &Side, role: &Role) -> [(&'static str, String); 7] {
    [
        (names.workers, role.num_worker.to_string()),
        (names.tp, role.tp.to_string()),
        (names.pp, role.pp.to_string()),
        (names.dcp, role.dcp_size.to_string()),
        (names.pcp, role.pcp_size.to_string()),
        (names.ep, role.ep.to_string()),
        (names.dp_attention, role.dp_attn.to_string()),
    ]
}
