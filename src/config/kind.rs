//! The kinds of file: their names, their JSON Schemas, and how each is checked.

use std::sync::Arc;

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};

use super::changelog::{Changelog, ChangelogFile};
use super::clusters::Clusters;
use super::engines::Engines;
use super::frameworks::EvalFrameworks;
use super::labels::Labels;
use super::master::{self, MasterFile};
use super::policy::EvalPolicies;
use super::priority::Priorities;
use super::problem::Problems;
use super::runners::Runners;
use super::source::Source;
use super::thresholds::Thresholds;
use super::workflows::Workflows;

/// A kind of YAML file that the project reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// `configs/*-master.yaml`
    Master,
    /// `configs/runners.yaml`
    Runners,
    /// `configs/clusters.yaml`
    Clusters,
    /// `configs/engines.yaml`
    Engines,
    /// `perf-changelog.yaml`
    Changelog,
    /// `configs/eval-policy.yaml`
    EvalPolicy,
    /// `configs/evals/frameworks.yaml`
    Frameworks,
    /// `configs/labels.yaml`
    Labels,
    /// `configs/thresholds.yaml`
    Thresholds,
    /// `configs/ci-priority.yaml`
    CiPriority,
    /// `configs/workflows.yaml`
    Workflows,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Master,
        Self::Runners,
        Self::Clusters,
        Self::Engines,
        Self::Changelog,
        Self::EvalPolicy,
        Self::Frameworks,
        Self::Labels,
        Self::Thresholds,
        Self::CiPriority,
        Self::Workflows,
    ];

    /// Its name, as in `sweepctl schema <kind>`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Runners => "runners",
            Self::Clusters => "clusters",
            Self::Engines => "engines",
            Self::Changelog => "changelog",
            Self::EvalPolicy => "eval-policy",
            Self::Frameworks => "frameworks",
            Self::Labels => "labels",
            Self::Thresholds => "thresholds",
            Self::CiPriority => "ci-priority",
            Self::Workflows => "workflows",
        }
    }

    /// The kind of a file by its name.
    #[must_use]
    pub fn of(file_name: &str) -> Option<Self> {
        match file_name {
            "runners.yaml" => Some(Self::Runners),
            "clusters.yaml" => Some(Self::Clusters),
            "engines.yaml" => Some(Self::Engines),
            "perf-changelog.yaml" => Some(Self::Changelog),
            "eval-policy.yaml" => Some(Self::EvalPolicy),
            "frameworks.yaml" => Some(Self::Frameworks),
            "labels.yaml" => Some(Self::Labels),
            "thresholds.yaml" => Some(Self::Thresholds),
            "ci-priority.yaml" => Some(Self::CiPriority),
            "workflows.yaml" => Some(Self::Workflows),
            name if name.ends_with("-master.yaml") => Some(Self::Master),
            _ => None,
        }
    }

    /// The JSON Schema (draft 2020-12) that editors complete and check with.
    #[must_use]
    pub fn schema(self) -> serde_json::Value {
        match self {
            Self::Master => schema_of::<MasterFile>("Master configs"),
            Self::Runners => schema_of::<Runners>("Runners"),
            Self::Clusters => schema_of::<Clusters>("Clusters"),
            Self::Engines => schema_of::<Engines>("Engines"),
            Self::Changelog => schema_of::<ChangelogFile>("Changelog"),
            Self::EvalPolicy => schema_of::<EvalPolicies>("Eval policies"),
            Self::Frameworks => schema_of::<EvalFrameworks>("Eval frameworks"),
            Self::Labels => schema_of::<Labels>("Labels"),
            Self::Thresholds => schema_of::<Thresholds>("Thresholds"),
            Self::CiPriority => schema_of::<Priorities>("Priorities"),
            Self::Workflows => schema_of::<Workflows>("Workflow settings"),
        }
    }

    /// Reads a source as this kind and says how many entries it holds.
    ///
    /// # Errors
    /// Every problem of the source.
    pub fn check(self, source: &Arc<Source>) -> Result<usize, Problems> {
        Ok(match self {
            Self::Master => master::load(std::slice::from_ref(source))?.len(),
            Self::Runners => Runners::load(source)?.labels.len(),
            Self::Clusters => Clusters::load(source, None)?.clusters.len(),
            Self::Engines => Engines::load(source)?.engines.len(),
            Self::Changelog => {
                let changelog = Changelog::parse(source)?;
                changelog.decode(&changelog.items())?.len()
            }
            Self::EvalPolicy => EvalPolicies::load(source)?.policies.len(),
            Self::Frameworks => EvalFrameworks::load(source)?.frameworks.len(),
            Self::Labels => {
                let labels = Labels::load(source)?;
                labels.primary.len() + labels.modifiers.len()
            }
            Self::Thresholds => {
                let thresholds = Thresholds::load(source)?;
                thresholds.default.len() + thresholds.models.values().map(indexmap::IndexMap::len).sum::<usize>()
            }
            Self::CiPriority => {
                Priorities::load(source)?;
                1
            }
            Self::Workflows => Workflows::load(source)?.workflows.len(),
        })
    }

    /// What [`Kind::check`] counts.
    #[must_use]
    pub fn counts(self) -> &'static str {
        match self {
            Self::Master => "config",
            Self::Runners | Self::Labels => "label",
            Self::Clusters => "cluster",
            Self::Engines => "engine",
            Self::Changelog => "entry",
            Self::EvalPolicy => "policy",
            Self::Frameworks => "framework",
            Self::Thresholds => "threshold",
            Self::CiPriority => "file",
            Self::Workflows => "workflow",
        }
    }
}

fn schema_of<T: JsonSchema>(title: &str) -> serde_json::Value {
    let generator = SchemaGenerator::new(SchemaSettings::draft2020_12());
    let mut schema = generator.into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    let mut schema = schema.to_value();
    drop_null(&mut schema);
    schema
}

/// Optional fields are left out, never written as null: editors should not offer it.
fn drop_null(schema: &mut serde_json::Value) {
    use serde_json::Value;
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(types)) = fields.get_mut("type") {
                types.retain(|t| t != "null");
                if let [one] = types.as_slice() {
                    let one = one.clone();
                    fields.insert("type".to_owned(), one);
                }
            }
            if let Some(Value::Array(choices)) = fields.get_mut("anyOf") {
                choices.retain(|c| c.get("type").is_none_or(|t| t != "null"));
            }
            if fields.get("default").is_some_and(Value::is_null) {
                fields.remove("default");
            }
            fields.values_mut().for_each(drop_null);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null),
        _ => {}
    }
}
