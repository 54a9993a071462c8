//! What a recipe deploys, with places: the same in both schemas.

use crate::config::problem::{Problem, Span};
use crate::config::scalar::Scalar;
use crate::config::source::Source;
use crate::config::tree::{Node, Value};
use crate::findings::recipe as findings;

use super::Schema;
use super::parameters::{AIME_COMMAND, Benchmark};

/// A number and its place.
pub(super) type Number = Option<(u64, Span)>;

/// The workers of one kind.
#[derive(Debug)]
pub(super) struct Role<'n, 't> {
    /// `prefill`, `decode` or `agg`.
    pub name: &'static str,
    /// Where it is said.
    pub span: Span,
    /// Nodes of all its workers; none where it shares those of another role.
    pub nodes: Number,
    /// How many workers.
    pub workers: Number,
    /// GPUs of one worker.
    pub gpus: Number,
    /// Options of the engine.
    pub args: Option<&'n Node<'t>>,
    /// Variables.
    pub env: Option<&'n Node<'t>>,
    /// Where its variables stand, from the root.
    pub env_path: Vec<&'static str>,
}

/// A recipe.
#[derive(Debug)]
pub(super) struct Recipe<'n, 't> {
    /// The whole.
    pub root: &'n Node<'t>,
    /// The form.
    pub schema: Schema,
    /// The engine's name.
    pub engine: String,
    /// GPUs of one node.
    pub gpus_per_node: Number,
    /// Its workers.
    pub roles: Vec<Role<'n, 't>>,
}

/// A field below a node, by its path, with the node of its name.
pub(super) fn field<'n, 't>(node: &'n Node<'t>, path: &[&str]) -> Option<(&'n Node<'t>, &'n Node<'t>)> {
    let (name, rest) = path.split_first()?;
    let Value::Map(pairs) = &node.value else { return None };
    let (key, value) = pairs.iter().find(|(key, _)| key.text() == *name)?;
    match rest {
        [] => Some((key, value)),
        rest => field(value, rest),
    }
}

/// The value of a field, where it is there and not null.
pub(super) fn value<'n, 't>(node: &'n Node<'t>, path: &[&str]) -> Option<&'n Node<'t>> {
    let (_, value) = field(node, path)?;
    (!matches!(value.scalar(), Some(Scalar::Null))).then_some(value)
}

/// The text of a scalar field.
pub(super) fn text<'n>(node: &'n Node<'_>, path: &[&str]) -> Option<&'n str> {
    let value = value(node, path)?;
    value.scalar().map(|_| value.text())
}

/// A whole number, also one that is written in quotes.
pub(super) fn number(node: &Node<'_>, path: &[&str]) -> Number {
    let (key, value) = field(node, path)?;
    Some((value.text().replace('_', "").parse().ok()?, key.span))
}

/// An option under either spelling of its name.
pub(super) fn option(args: &Node<'_>, name: &str) -> Number {
    number(args, &[&name.replace('_', "-")]).or_else(|| number(args, &[&name.replace('-', "_")]))
}

impl<'n, 't> Recipe<'n, 't> {
    /// Reads a recipe.
    ///
    /// # Errors
    /// What is no recipe of either schema.
    pub(super) fn read(source: &Source, root: &'n Node<'t>) -> Result<Self, Problem> {
        let schema = schema(source, root)?;
        let engine = match schema {
            Schema::One => text(root, &["backend", "type"]),
            Schema::Two => text(root, &["engine", "type"]).or_else(|| text(root, &["engine"])),
        };
        // Schema 1 takes a recipe without a backend for one of SGLang.
        let engine = engine.unwrap_or("sglang").to_owned();
        let roles = match schema {
            Schema::One => roles_1(root, &engine),
            Schema::Two => roles_2(root),
        };
        if roles.is_empty() {
            let message = "the recipe deploys no workers";
            return Err(findings::SCHEMA.at(source, root.span, message));
        }
        Ok(Self {
            root,
            schema,
            engine,
            gpus_per_node: number(root, &["resources", "gpus_per_node"]),
            roles,
        })
    }

    /// The accuracy benchmark of the recipe, where it has one.
    pub(super) fn benchmark(&self) -> Option<Benchmark> {
        match text(self.root, &["benchmark", "type"])? {
            "mmlu" => Some(Benchmark::Mmlu),
            "gpqa" => Some(Benchmark::Gpqa),
            "longbenchv2" => Some(Benchmark::LongBenchV2),
            "custom" => {
                let script = AIME_COMMAND.trim_start_matches("bash /configs/");
                text(self.root, &["benchmark", "command"])?
                    .contains(script)
                    .then_some(Benchmark::Aime)
            }
            _ => None,
        }
    }

    /// The names that the recipe says its model is served under.
    pub(super) fn said_names(&self) -> Vec<&'n str> {
        let of_engine = [&["engine", "served_model_name"][..], &["served_model_name"][..]];
        let of_engine = of_engine.iter().find_map(|path| text(self.root, path));
        let of_roles = self.roles.iter().filter_map(|role| {
            let args = role.args?;
            text(args, &["served-model-name"]).or_else(|| text(args, &["served_model_name"]))
        });
        let mut names: Vec<&str> = of_engine.into_iter().chain(of_roles).collect();
        names.dedup();
        names
    }

    /// The name that the model is served under: what the recipe says, else the last part of the model's path.
    pub(super) fn served_name(&self) -> Option<&'n str> {
        let path = || text(self.root, &["model", "path"]);
        self.said_names()
            .first()
            .copied()
            .or_else(|| path()?.trim_end_matches('/').rsplit(['/', ':']).next())
    }

    /// Every name of the model.
    pub(super) fn model_names(&self) -> impl Iterator<Item = &'n str> {
        let path = text(self.root, &["model", "path"]);
        path.into_iter().chain(self.said_names())
    }
}

/// The schema: what the recipe says, held against its keys.
fn schema(source: &Source, root: &Node<'_>) -> Result<Schema, Problem> {
    let two = ["engine", "roles", "post_eval"];
    match field(root, &["schema"]) {
        Some((_, said)) if said.text() == "2" => match field(root, &["backend"]) {
            Some((key, _)) => {
                let message = "`backend` is of schema 1, and the recipe says that it is of schema 2";
                Err(findings::SCHEMA
                    .at(source, key.span, message)
                    .hint("write `engine` and `roles`"))
            }
            None => Ok(Schema::Two),
        },
        Some((_, said)) => {
            let message = format!("schema `{}` is not known", said.text());
            Err(findings::SCHEMA
                .at(source, said.span, message)
                .hint("write 2, or a recipe of schema 1, which has no such field"))
        }
        None => match two.iter().find_map(|name| field(root, &[name])) {
            Some((key, _)) => {
                let message = format!(
                    "`{}` is of schema 2, and the recipe does not say that it is",
                    key.text()
                );
                Err(findings::SCHEMA.at(source, key.span, message).hint("add `schema: 2`"))
            }
            None => Ok(Schema::One),
        },
    }
}

fn roles_2<'n, 't>(root: &'n Node<'t>) -> Vec<Role<'n, 't>> {
    let role = |name: &'static str| {
        let (key, node) = field(root, &["roles", name])?;
        Some(Role {
            name,
            span: key.span,
            nodes: number(node, &["nodes"]),
            workers: number(node, &["workers"]),
            gpus: number(node, &["gpus"]),
            args: value(node, &["args"]),
            env: value(node, &["env"]),
            env_path: vec!["roles", name, "env"],
        })
    };
    ["prefill", "decode", "agg"].into_iter().filter_map(role).collect()
}

/// A role's names in schema 1: itself, nodes, workers, GPUs, the part of the engine's options, and variables.
const NAMES_1: [[&str; 6]; 3] = [
    [
        "prefill",
        "prefill_nodes",
        "prefill_workers",
        "gpus_per_prefill",
        "prefill",
        "prefill_environment",
    ],
    [
        "decode",
        "decode_nodes",
        "decode_workers",
        "gpus_per_decode",
        "decode",
        "decode_environment",
    ],
    [
        "agg",
        "agg_nodes",
        "agg_workers",
        "gpus_per_agg",
        "aggregated",
        "aggregated_environment",
    ],
];

fn roles_1<'n, 't>(root: &'n Node<'t>, engine: &str) -> Vec<Role<'n, 't>> {
    let config = format!("{engine}_config");
    let role = |[name, nodes, workers, gpus, mode, env]: [&'static str; 6]| {
        let resources = value(root, &["resources"])?;
        let found = |name| number(resources, &[name]);
        let (_, span) = [workers, nodes]
            .into_iter()
            .filter_map(found)
            .find(|(number, _)| *number > 0)?;
        Some(Role {
            name,
            span,
            // Without nodes of its own a role shares those of the other one.
            nodes: found(nodes).filter(|(number, _)| *number > 0),
            workers: found(workers),
            gpus: found(gpus),
            args: value(root, &["backend", &config, mode]),
            env: value(root, &["backend", env]),
            env_path: vec!["backend", env],
        })
    };
    NAMES_1.into_iter().filter_map(role).collect()
}
