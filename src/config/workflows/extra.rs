//! Steps and jobs of a repository's own.

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::json;

use super::is_word;
use crate::config::decode::Decoder;
use crate::config::labels::named;
use crate::config::problem::nearest;
use crate::config::tree::Node;
use crate::findings::config;

/// Steps of a repository's own, by the place where they run, all on the node of a benchmark.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[serde(rename_all = "kebab-case")]
pub struct Steps {
    /// After the checkout, before the launch.
    #[schemars(default, length(min = 1))]
    pub before_launch: Vec<Step>,
    /// After the launch, also when it failed, before the uploads.
    #[schemars(default, length(min = 1))]
    pub after_launch: Vec<Step>,
}

/// A step of a repository's own: an action of `actions`, or a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[serde(rename_all = "kebab-case")]
pub struct Step {
    /// What it does.
    pub name: String,
    /// The condition.
    #[serde(rename = "if")]
    #[schemars(default, rename = "if")]
    pub condition: Option<String>,
    /// An action by its name in `actions`, or a local one (`./path`).
    #[schemars(default)]
    pub uses: Option<String>,
    /// The action's inputs.
    #[schemars(default, transform = texts)]
    pub with: IndexMap<String, String>,
    /// A script, without expressions: values arrive through `env`.
    #[schemars(default)]
    pub run: Option<String>,
    /// Its variables.
    #[schemars(default, transform = texts)]
    pub env: IndexMap<String, String>,
}

/// A job of a repository's own in `run-sweep`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[serde(rename_all = "kebab-case")]
pub struct Job {
    /// The job's name.
    pub name: String,
    /// The jobs of `run-sweep` that it waits for.
    #[schemars(length(min = 1))]
    pub needs: Vec<String>,
    /// The condition.
    #[serde(rename = "if")]
    #[schemars(default, rename = "if")]
    pub condition: Option<String>,
    /// Its steps.
    #[schemars(length(min = 1))]
    pub steps: Vec<Step>,
}

/// Steps by place.
pub(super) fn steps(d: &mut Decoder, node: &Node<'_>, actions: &[String]) -> Option<Steps> {
    let mut f = d.fields(node, "`extra-steps`")?;
    let list = |d: &mut Decoder, n: &Node<'_>, name: &str| d.list(n, name, 1, |d, n| step(d, n, actions));
    let before_launch = f.optional(d, "before-launch", list);
    let after_launch = f.optional(d, "after-launch", list);
    f.finish(d);
    Some(Steps {
        before_launch: before_launch.unwrap_or_default(),
        after_launch: after_launch.unwrap_or_default(),
    })
}

/// The schema of values that are texts: a plain number is taken as it is written.
fn texts(schema: &mut Schema) {
    schema.insert(
        "additionalProperties".to_owned(),
        json!({ "type": ["string", "number"] }),
    );
}

fn step(d: &mut Decoder, node: &Node<'_>, actions: &[String]) -> Option<Step> {
    let mut f = d.fields(node, "a step")?;
    let name = f.required(d, "name", Decoder::string);
    let condition = f.optional(d, "if", Decoder::string);
    let uses = f.optional(d, "uses", |d, n, name| {
        let action = d.string(n, name)?;
        if !action.starts_with("./") && !actions.contains(&action) {
            let hint = nearest(&action, actions.iter().map(String::as_str));
            d.refuse(
                &config::UNKNOWN_NAME,
                n.span,
                format!("`{action}` is no action of `actions`"),
                hint,
            );
        }
        Some(action)
    });
    let run = f.optional(d, "run", Decoder::string);
    if uses.is_some() == run.is_some() {
        d.refuse(
            &config::CONFLICT,
            f.span,
            "a step has either `uses` or `run`",
            "give it one of them",
        );
    }
    let with = f.optional(d, "with", |d, n, name| named(d, n, name, Decoder::string));
    let env = f.optional(d, "env", |d, n, name| named(d, n, name, Decoder::string));
    f.finish(d);
    Some(Step {
        name: name?,
        condition,
        uses,
        with: with.unwrap_or_default(),
        run,
        env: env.unwrap_or_default(),
    })
}

/// A job of a repository's own.
pub(super) fn job(d: &mut Decoder, node: &Node<'_>, id: &str, actions: &[String]) -> Option<Job> {
    if !is_word(id) {
        let message = format!("`{id}` is not the id of a job");
        d.refuse(
            &config::MALFORMED,
            node.span,
            message,
            "use letters, digits, `-` and `_`",
        );
    }
    let mut f = d.fields(node, &format!("job `{id}`"))?;
    let name = f.required(d, "name", Decoder::string);
    let needs = f.required(d, "needs", |d, n, name| d.strings(n, name, 1));
    let condition = f.optional(d, "if", Decoder::string);
    let steps = f.required(d, "steps", |d, n, name| d.list(n, name, 1, |d, n| step(d, n, actions)));
    f.finish(d);
    Some(Job {
        name: name?,
        needs: needs?,
        condition,
        steps: steps?,
    })
}
