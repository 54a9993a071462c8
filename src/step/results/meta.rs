//! `meta_env.json`: which job a set of eval results comes from.

use std::path::Path;

use serde::Deserialize;

use super::answers::Answers;
use super::loose::{Cell, List, Map};
use super::{file, json};
use crate::config::master::search_space::Nodes;
use crate::config::types::Role;
use crate::matrix::envelope::Envelope;
use crate::matrix::row::Scenario;

/// The file's name.
pub const NAME: &str = "meta_env.json";
/// What writers put where they know nothing.
pub const UNKNOWN: &str = "unknown";

/// Why the file says nothing, as the end of a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// There is none.
    #[error("does not exist")]
    Missing,
    /// It cannot be read, or is no such JSON.
    #[error("{0}")]
    Unreadable(String),
}

/// The file's fields; writers differ in whether a number is a string.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "named as in the file")]
pub struct MetaEnv {
    pub is_multinode: Cell,
    pub framework: Cell,
    pub precision: Cell,
    pub spec_decoding: Cell,
    pub recipe_fingerprint: Cell,
    pub tp: Cell,
    pub pp: Cell,
    pub dcp_size: Cell,
    pub pcp_size: Cell,
    pub conc: Cell,
    pub eval_concs: Option<List<Cell>>,
    pub completed_eval_concs: Option<List<Cell>>,
    pub failed_eval_concs: Option<List<Cell>>,
    pub ep: Cell,
    pub dp_attention: Cell,
    pub prefill_tp: Cell,
    pub prefill_pp: Cell,
    pub prefill_dcp_size: Cell,
    pub prefill_pcp_size: Cell,
    pub prefill_ep: Cell,
    pub prefill_dp_attention: Cell,
    pub prefill_num_workers: Cell,
    pub decode_tp: Cell,
    pub decode_pp: Cell,
    pub decode_dcp_size: Cell,
    pub decode_pcp_size: Cell,
    pub decode_ep: Cell,
    pub decode_dp_attention: Cell,
    pub decode_num_workers: Cell,
    pub model: Cell,
    pub infmax_model_prefix: Cell,
    pub hw: Cell,
    pub isl: Cell,
    pub osl: Cell,
    pub eval_suite: Cell,
    pub job_id: Cell,
    pub run_id: Cell,
    pub run_attempt: Cell,
    pub answers: Map<Answers>,
}

impl MetaEnv {
    /// Reads the file.
    ///
    /// # Errors
    /// A file that is missing, cannot be read, or is no such JSON.
    pub fn read(path: &Path) -> Result<Self, MetaError> {
        let bytes = file::read(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => MetaError::Missing,
            _ => MetaError::Unreadable(format!("cannot be read: {error}")),
        })?;
        json::parse_object(&bytes).map_err(MetaError::Unreadable)
    }

    /// The model's short name, where the writer knew it.
    #[must_use]
    pub fn model_prefix(&self) -> Option<&str> {
        self.infmax_model_prefix.text().filter(|prefix| *prefix != UNKNOWN)
    }

    /// The job that the set comes from.
    #[must_use]
    pub fn job(&self) -> Option<&str> {
        self.job_id.text()
    }

    /// Run and attempt: of two, the newer is the larger.
    #[must_use]
    pub fn attempt(&self) -> (u64, u64) {
        (
            self.run_id.integer().unwrap_or(0),
            self.run_attempt.integer().unwrap_or(0),
        )
    }

    /// Whether several concurrencies were evaluated against one server.
    #[must_use]
    pub fn is_batch(&self) -> bool {
        self.eval_concs.is_some()
    }

    /// Every field in which the file contradicts the envelope of its job. Fields that it lacks say nothing.
    #[must_use]
    pub fn contradictions(&self, envelope: &Envelope) -> Vec<String> {
        let row = &envelope.row;
        let t = &*row.topology;
        let mut found = Contradictions(Vec::new());
        let multinode = matches!(t.nodes, Nodes::Multi(_));
        found.text("job_id", &self.job_id, &envelope.id);
        found.flag("is_multinode", &self.is_multinode, multinode);
        found.text("framework", &self.framework, &t.framework);
        found.text("precision", &self.precision, &t.precision);
        found.text("spec_decoding", &self.spec_decoding, t.spec_decoding.as_str());
        found.text("model", &self.model, &t.model);
        found.text("infmax_model_prefix", &self.infmax_model_prefix, &t.model_prefix);
        found.text("hw", &self.hw, &t.runner);
        if let Some(evaluator) = &row.eval.evaluator {
            found.text("eval_suite", &self.eval_suite, &evaluator.suite);
        }
        if let Scenario::Fixed(seq) = &t.scenario {
            found.number("isl", &self.isl, seq.isl);
            found.number("osl", &self.osl, seq.osl);
        }
        match &t.nodes {
            Nodes::Single(p) => {
                found.number("tp", &self.tp, p.tp);
                found.number("pp", &self.pp, p.pp);
                found.number("dcp_size", &self.dcp_size, p.dcp_size);
                found.number("pcp_size", &self.pcp_size, p.pcp_size);
                found.number("ep", &self.ep, p.ep.unwrap_or(1));
                found.flag("dp_attention", &self.dp_attention, p.dp_attn.unwrap_or(false));
            }
            Nodes::Multi(roles) => {
                found.role("prefill", self.prefill(), &roles.prefill);
                found.role("decode", self.decode(), &roles.decode);
            }
        }
        found.0
    }

    /// tp, pp, dcp, pcp, ep, workers and data-parallel attention of the prefill side.
    fn prefill(&self) -> ([&Cell; 6], &Cell) {
        let sizes = [
            &self.prefill_tp,
            &self.prefill_pp,
            &self.prefill_dcp_size,
            &self.prefill_pcp_size,
        ];
        let [tp, pp, dcp, pcp] = sizes;
        (
            [tp, pp, dcp, pcp, &self.prefill_ep, &self.prefill_num_workers],
            &self.prefill_dp_attention,
        )
    }

    /// The same of the decode side.
    fn decode(&self) -> ([&Cell; 6], &Cell) {
        let sizes = [
            &self.decode_tp,
            &self.decode_pp,
            &self.decode_dcp_size,
            &self.decode_pcp_size,
        ];
        let [tp, pp, dcp, pcp] = sizes;
        (
            [tp, pp, dcp, pcp, &self.decode_ep, &self.decode_num_workers],
            &self.decode_dp_attention,
        )
    }
}

struct Contradictions(Vec<String>);

impl Contradictions {
    fn add(&mut self, name: &str, found: &Cell, wanted: impl std::fmt::Display) {
        self.0.push(format!("`{name}` is {found}, the job's is {wanted}"));
    }

    /// Case aside: writers spell hardware and frameworks in both.
    fn text(&mut self, name: &str, found: &Cell, wanted: &str) {
        if found
            .text()
            .is_some_and(|text| text != UNKNOWN && !text.eq_ignore_ascii_case(wanted))
        {
            self.add(name, found, format_args!("\"{wanted}\""));
        }
    }

    fn number(&mut self, name: &str, found: &Cell, wanted: u64) {
        let says_nothing = matches!(found, Cell::Null) || matches!(found, Cell::Text(text) if text.is_empty());
        if !says_nothing && found.integer() != Some(wanted) {
            self.add(name, found, wanted);
        }
    }

    fn flag(&mut self, name: &str, found: &Cell, wanted: bool) {
        if found.flag().is_some_and(|flag| flag != wanted) {
            self.add(name, found, wanted);
        }
    }

    fn role(&mut self, side: &str, (sizes, dp_attention): ([&Cell; 6], &Cell), role: &Role) {
        let wanted = [
            ("tp", role.tp),
            ("pp", role.pp),
            ("dcp_size", role.dcp_size),
            ("pcp_size", role.pcp_size),
            ("ep", role.ep),
            ("num_workers", role.num_worker),
        ];
        for ((name, wanted), found) in wanted.into_iter().zip(sizes) {
            self.number(&format!("{side}_{name}"), found, wanted);
        }
        self.flag(&format!("{side}_dp_attention"), dp_attention, role.dp_attn);
    }
}
