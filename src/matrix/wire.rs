//! The JSON form of a row, with the field names that launch scripts and published results rely on.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::row::{Conc, EvalMark, Offload, Row, Scenario, Topology};
use crate::config::master::search_space::{Nodes, Roles};
use crate::config::policy::Evaluator;
use crate::config::types::{Component, KvOffloading, Parallelism, Role, ScenarioType, SeqLen, SpecDecoding};

/// Every field that a row of any shape may have.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are those of Row and Topology")]
pub struct RowJson {
    pub image: String,
    pub model: String,
    pub model_prefix: String,
    pub precision: String,
    pub framework: String,
    pub runner: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isl: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub osl: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tp: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pp: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dcp_size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcp_size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ep: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dp_attn: Option<bool>,
    pub spec_decoding: SpecDecoding,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill: Option<Role>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decode: Option<Role>,
    pub conc: ConcJson,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_model_len: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_offloading: Option<KvOffloading>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_offload_backend: Option<Component>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cpu_dram_gb: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<u64>,
    pub exp_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disagg: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario_type: Option<ScenarioType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<Component>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_p2p_transfer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srt_recipe: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_srt_recipe: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_eval: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_only: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_conc: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_all_concs: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_framework: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eval_suite: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipe_fingerprint: Option<String>,
}

/// One concurrency, or a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[allow(missing_docs, reason = "named by their types")]
pub enum ConcJson {
    Point(u64),
    List(Vec<u64>),
}

impl From<&Row> for RowJson {
    fn from(row: &Row) -> Self {
        let t = &*row.topology;
        let single = match &t.nodes {
            Nodes::Single(p) => Some(p),
            Nodes::Multi(_) => None,
        };
        let roles = match &t.nodes {
            Nodes::Multi(roles) => Some(roles),
            Nodes::Single(_) => None,
        };
        let offload = match &t.scenario {
            Scenario::Agentic(offload) => Some(offload),
            Scenario::Fixed(_) => None,
        };
        // Rows of agentic jobs on one node say nothing of disaggregation.
        let says_disagg = offload.is_none() || roles.is_some();
        Self {
            image: t.image.clone(),
            model: t.model.clone(),
            model_prefix: t.model_prefix.clone(),
            precision: t.precision.clone(),
            framework: t.framework.clone(),
            runner: t.runner.clone(),
            isl: t.seq().map(|s| s.isl),
            osl: t.seq().map(|s| s.osl),
            tp: single.map(|p| p.tp),
            pp: single.map(|p| p.pp),
            dcp_size: single.map(|p| p.dcp_size),
            pcp_size: single.map(|p| p.pcp_size),
            ep: single.map(|p| p.ep.unwrap_or(1)),
            dp_attn: single.map(|p| p.dp_attn.unwrap_or(false)),
            spec_decoding: t.spec_decoding,
            prefill: roles.map(|r| r.prefill.clone()),
            decode: roles.map(|r| r.decode.clone()),
            conc: match &row.conc {
                Conc::Point(point) => ConcJson::Point(*point),
                Conc::List(points) => ConcJson::List(points.clone()),
            },
            max_model_len: t.seq().map(SeqLen::max_model_len),
            kv_offloading: offload.map(|o| o.mode),
            kv_offload_backend: offload.and_then(|o| o.backend.clone()),
            total_cpu_dram_gb: offload.map(|o| o.total_cpu_dram_gb),
            duration: offload.map(|o| o.duration),
            exp_name: row.exp_name.clone(),
            disagg: says_disagg.then_some(t.disagg),
            scenario_type: offload.map(|_| ScenarioType::AgenticCoding),
            router: t.router.clone(),
            kv_p2p_transfer: t.kv_p2p_transfer.clone(),
            srt_recipe: t.srt_recipe.clone(),
            eval_srt_recipe: t.eval_srt_recipe.clone(),
            run_eval: row.eval.run_eval,
            eval_only: row.eval.eval_only.then_some(true),
            eval_conc: row.eval.eval_conc,
            eval_all_concs: row.eval.eval_all_concs.then_some(true),
            eval_framework: row.eval.evaluator.as_ref().map(|e| e.framework.clone()),
            eval_suite: row.eval.evaluator.as_ref().map(|e| e.suite.clone()),
            recipe_fingerprint: row.recipe_fingerprint.clone(),
        }
    }
}

impl RowJson {
    /// Writes out what a plan's rows always carry.
    #[must_use]
    pub fn with_plan_defaults(mut self) -> Self {
        for role in [&mut self.prefill, &mut self.decode].into_iter().flatten() {
            role.additional_settings.get_or_insert_default();
        }
        if self.scenario_type.is_none() {
            self.run_eval.get_or_insert(false);
            self.eval_only.get_or_insert(false);
            if self.prefill.is_some() {
                self.eval_all_concs.get_or_insert(false);
            }
        }
        self
    }
}

/// A JSON row that has the fields of no shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RowJsonError(String);

impl TryFrom<RowJson> for Row {
    type Error = RowJsonError;

    fn try_from(json: RowJson) -> Result<Self, RowJsonError> {
        let missing = |name: &str| RowJsonError(format!("the row lacks `{name}`"));
        let nodes = match (json.prefill, json.decode, json.tp) {
            (Some(prefill), Some(decode), None) => Nodes::Multi(Box::new(Roles { prefill, decode })),
            (None, None, Some(tp)) => Nodes::Single(Parallelism {
                tp,
                pp: json.pp.ok_or_else(|| missing("pp"))?,
                dcp_size: json.dcp_size.ok_or_else(|| missing("dcp-size"))?,
                pcp_size: json.pcp_size.ok_or_else(|| missing("pcp-size"))?,
                ep: json.ep,
                dp_attn: json.dp_attn,
            }),
            _ => {
                return Err(RowJsonError(
                    "the row has neither `tp` alone nor both `prefill` and `decode`".into(),
                ));
            }
        };
        let scenario = match json.scenario_type {
            Some(ScenarioType::AgenticCoding) => Scenario::Agentic(Offload {
                mode: json.kv_offloading.ok_or_else(|| missing("kv-offloading"))?,
                backend: json.kv_offload_backend,
                total_cpu_dram_gb: json.total_cpu_dram_gb.ok_or_else(|| missing("total-cpu-dram-gb"))?,
                duration: json.duration.ok_or_else(|| missing("duration"))?,
            }),
            _ => Scenario::Fixed(SeqLen {
                isl: json.isl.ok_or_else(|| missing("isl"))?,
                osl: json.osl.ok_or_else(|| missing("osl"))?,
            }),
        };
        let topology = Topology {
            image: json.image,
            model: json.model,
            model_prefix: json.model_prefix,
            precision: json.precision,
            framework: json.framework,
            runner: json.runner,
            spec_decoding: json.spec_decoding,
            disagg: json.disagg.unwrap_or(false),
            router: json.router,
            kv_p2p_transfer: json.kv_p2p_transfer,
            srt_recipe: json.srt_recipe,
            eval_srt_recipe: json.eval_srt_recipe,
            nodes,
            scenario,
        };
        let conc = match json.conc {
            ConcJson::Point(point) => Conc::Point(point),
            ConcJson::List(points) => Conc::List(points),
        };
        let mut row =
            Self::new(Arc::new(topology), conc, json.exp_name).map_err(|error| RowJsonError(error.to_string()))?;
        row.eval = EvalMark {
            run_eval: json.run_eval,
            eval_only: json.eval_only.unwrap_or(false),
            eval_conc: json.eval_conc,
            eval_all_concs: json.eval_all_concs.unwrap_or(false),
            evaluator: json.eval_framework.map(|framework| Evaluator {
                framework,
                suite: json.eval_suite.unwrap_or_default(),
            }),
        };
        row.recipe_fingerprint = json.recipe_fingerprint;
        Ok(row)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RowJson::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RowJson::deserialize(deserializer)?
            .try_into()
            .map_err(serde::de::Error::custom)
    }
}
