//! Tool calls: which of a request's tools is called, and with which arguments.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::draw::draw;
use super::protocol::ApiError;
use super::schema;

/// Which calls break their schema.
const WRONG: &str = "tool";
/// How a wrong call is wrong.
const HOW: &str = "tool-wrong";

/// What a request says of one tool.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Tool {
    function: Function,
}

#[derive(Debug, Clone, Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    parameters: Value,
}

/// Whether tools are called.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "`tool_choice` must be `none`, `auto`, `required` or {\"type\": \"function\", \"function\": {\"name\": ...}}"
)]
pub(crate) enum ToolChoice {
    /// `none`, `auto` or `required`
    Mode(Mode),
    /// One tool.
    Named {
        /// Which.
        function: Name,
    },
}

/// Whether tools are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// No tool.
    None,
    /// As the model likes.
    Auto,
    /// A tool.
    Required,
}

/// The name of a tool.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Name {
    name: String,
}

/// The call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The tool's name.
    pub name: String,
    /// Its arguments: a JSON object as text, unless they are wrong.
    pub arguments: String,
}

impl Call {
    /// The arguments in the pieces in which they are streamed; each counts as a word.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = String> {
        /// Characters of a piece.
        const LENGTH: usize = 6;
        let characters: Vec<char> = self.arguments.chars().collect();
        let pieces: Vec<String> = characters.chunks(LENGTH).map(|piece| piece.iter().collect()).collect();
        pieces.into_iter()
    }
}

/// The tools of a request that may be called, at least one.
#[derive(Debug)]
pub(crate) struct Tools<'a> {
    offered: Vec<&'a Tool>,
    /// What tells these tools from others.
    text: String,
}

impl<'a> Tools<'a> {
    /// The tools of a request; `None` where no tool is called. `answered` says that the conversation ends in the result
    /// of a tool, after which a model that may choose speaks.
    ///
    /// # Errors
    /// 400 for a choice that the tools do not allow.
    pub(crate) fn of(tools: &'a [Tool], choice: Option<&ToolChoice>, answered: bool) -> Result<Option<Self>, ApiError> {
        let offered: Vec<&Tool> = match choice {
            Some(ToolChoice::Mode(Mode::None)) => return Ok(None),
            Some(ToolChoice::Named {
                function: Name { name },
            }) => {
                let named: Vec<&Tool> = tools.iter().filter(|tool| tool.function.name == *name).collect();
                if named.is_empty() {
                    return Err(ApiError::invalid(format!(
                        "`tool_choice` names `{name}`, which is no tool here"
                    )));
                }
                named
            }
            Some(ToolChoice::Mode(Mode::Required)) if tools.is_empty() => {
                return Err(ApiError::invalid("`tool_choice` is `required`, and there are no tools"));
            }
            Some(ToolChoice::Mode(Mode::Required)) => tools.iter().collect(),
            None | Some(ToolChoice::Mode(Mode::Auto)) if answered => return Ok(None),
            None | Some(ToolChoice::Mode(Mode::Auto)) => tools.iter().collect(),
        };
        if offered.is_empty() {
            return Ok(None);
        }
        let texts = offered
            .iter()
            .map(|tool| format!("\0{}\0{}", tool.function.name, tool.function.parameters));
        Ok(Some(Self {
            text: texts.collect(),
            offered,
        }))
    }

    /// What tells these tools from others: clients ask the same question with one tool after another.
    #[must_use]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The call that answers a question: the tool that the question names, else the first, with the smallest arguments
    /// that fit its schema. The draws of a share of questions make them wrong.
    #[must_use]
    pub(crate) fn call(&self, question: &str, seed: u64, wrong_rate: f64) -> Call {
        let named = self
            .offered
            .iter()
            .find(|tool| question.contains(tool.function.name.as_str()));
        let Function { name, parameters } = &named.unwrap_or(&self.offered[0]).function;
        let subject = format!("{question}{}", self.text);
        let right = schema::value(parameters).filter(Value::is_object).unwrap_or(json!({}));
        let arguments = if draw(seed, WRONG, &subject) < wrong_rate {
            wrong(&right, parameters, draw(seed, HOW, &subject))
        } else {
            right.to_string()
        };
        Call {
            name: name.clone(),
            arguments,
        }
    }
}

/// Arguments that break their schema: one of the required is missing, or has a type that its schema does not allow.
/// Where the schema forbids neither, they are cut off.
fn wrong(right: &Value, parameters: &Value, chance: f64) -> String {
    let (missing, mistyped) = (missing(right, parameters), mistyped(right, parameters));
    let (first, second) = if chance < 0.5 {
        (missing, mistyped)
    } else {
        (mistyped, missing)
    };
    match first.or(second) {
        Some(arguments) => arguments.to_string(),
        None => "{\"".to_owned(),
    }
}

fn missing(right: &Value, parameters: &Value) -> Option<Value> {
    let required = parameters["required"].as_array()?.first()?.as_str()?;
    let mut arguments = right.as_object()?.clone();
    arguments.shift_remove(required)?;
    Some(Value::Object(arguments))
}

fn mistyped(right: &Value, parameters: &Value) -> Option<Value> {
    let others = [
        json!("text"),
        json!(1.5),
        json!([]),
        json!({}),
        json!(true),
        Value::Null,
    ];
    let wrong_of = |property: &Map<String, Value>| {
        let other = others.iter().find(|other| !schema::is_allowed(property, other));
        other.cloned()
    };
    let (name, value) = parameters["properties"]
        .as_object()?
        .iter()
        .find_map(|(name, property)| Some((name, wrong_of(property.as_object()?)?)))?;
    let mut arguments = right.as_object()?.clone();
    arguments.insert(name.clone(), value);
    Some(Value::Object(arguments))
}
