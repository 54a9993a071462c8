//! What may be asked of a sweep: one type for labels, dispatch forms, flags, plans and outputs, with the same names
//! everywhere (`trim-conc` is the flag `--trim-conc`, the input `trim-conc` and the output `trim_conc`).

use clap::builder::RangedU64ValueParser;
use clap::{ArgAction, Args};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::decode::{Decoder, Fields};
use super::problem::printable;

/// What may be asked of a sweep. The first line of each field's comment is what flags and forms say of it.
///
/// Reading takes texts for the values that they spell, since forms send every value as text, an empty one where nothing
/// was entered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Args)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
#[command(next_help_heading = "How to sweep")]
pub struct Asked {
    /// Only the lowest concurrency of each topology
    #[arg(long)]
    #[serde(deserialize_with = "boolean")]
    pub trim_conc: bool,
    /// Every eligible eval
    #[arg(long)]
    #[serde(deserialize_with = "boolean")]
    pub all_evals: bool,
    /// No throughput
    #[arg(long)]
    #[serde(deserialize_with = "boolean")]
    pub evals_only: bool,
    /// The first failure of a matrix cancels its other jobs
    #[arg(long)]
    #[serde(deserialize_with = "boolean")]
    pub fail_fast: bool,
    /// Short agentic replays
    #[arg(long)]
    #[serde(deserialize_with = "boolean")]
    pub agentx_fast: bool,
    /// Seconds of each agentic replay
    #[arg(long, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    #[serde(deserialize_with = "seconds")]
    #[schemars(skip)]
    pub duration: Option<u64>,
    /// What evaluates, instead of the rows' own
    #[arg(long, value_name = "NAME")]
    #[serde(deserialize_with = "text")]
    #[schemars(skip)]
    pub eval_framework: Option<String>,
    /// The evaluator's suite, instead of the rows' own
    #[arg(long, value_name = "NAME")]
    #[serde(deserialize_with = "text")]
    #[schemars(skip)]
    pub eval_suite: Option<String>,
    /// Samples of each eval; `full` is the whole split
    #[arg(long, value_name = "N", value_parser = samples)]
    #[serde(deserialize_with = "limit")]
    #[schemars(skip)]
    pub eval_limit: Option<String>,
}

/// The pair of refs whose changelogs are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Args)]
#[serde(rename_all = "kebab-case", default)]
pub struct Refs {
    /// Where the changelog is compared from: a branch, tag, hash or `HEAD~1`; empty for a first commit's own
    #[arg(long, value_name = "REF", requires = "head_ref")]
    #[serde(deserialize_with = "text")]
    pub base_ref: Option<String>,
    /// Where it is compared to
    #[arg(long, value_name = "REF", requires = "base_ref")]
    #[serde(deserialize_with = "text")]
    pub head_ref: Option<String>,
}

impl Refs {
    /// Both; `None` where one is missing.
    #[must_use]
    pub fn pair(&self) -> Option<(&str, &str)> {
        self.base_ref.as_deref().zip(self.head_ref.as_deref())
    }

    /// The refs as arguments of a command.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let refs = [("base", &self.base_ref), ("head", &self.head_ref)];
        let given = refs.iter().filter_map(|(side, of)| Some((side, of.as_ref()?)));
        given.map(|(side, of)| format!("--{side}-ref={of}")).collect()
    }
}

/// One thing that may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name: of a flag without `--`, and of an input.
    pub name: String,
    /// What it is, for people.
    pub about: String,
    /// Whether it is asked or not; else it has a value.
    pub is_switch: bool,
}

/// Everything that may be asked, in order.
#[must_use]
pub fn fields() -> Vec<Field> {
    let command = Asked::augment_args(clap::Command::new("asked"));
    let field = |arg: &clap::Arg| {
        Some(Field {
            name: arg.get_long()?.to_owned(),
            about: arg.get_help()?.to_string(),
            is_switch: matches!(arg.get_action(), ArgAction::SetTrue),
        })
    };
    command.get_arguments().filter_map(field).collect()
}

/// The name of an output, as expressions like it.
#[must_use]
pub fn output_name(name: &str) -> String {
    name.replace('-', "_")
}

/// What does not make a sweep less than a full one.
const KEEPS_ALL: [&str; 2] = ["--all-evals", "--fail-fast"];

impl Asked {
    /// The switches among the fields of a mapping; a label asks for no more.
    pub(super) fn decode(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Self {
        let mut is = |name| f.optional(d, name, Decoder::boolean).unwrap_or(false);
        Self {
            trim_conc: is("trim-conc"),
            all_evals: is("all-evals"),
            evals_only: is("evals-only"),
            fail_fast: is("fail-fast"),
            agentx_fast: is("agentx-fast"),
            ..Self::default()
        }
    }

    /// The switches of both.
    #[must_use]
    pub fn with_switches(self, other: &Self) -> Self {
        Self {
            trim_conc: self.trim_conc || other.trim_conc,
            all_evals: self.all_evals || other.all_evals,
            evals_only: self.evals_only || other.evals_only,
            fail_fast: self.fail_fast || other.fail_fast,
            agentx_fast: self.agentx_fast || other.agentx_fast,
            ..self
        }
    }

    /// What of it changes single jobs; the rest changes which jobs there are, or how they are started.
    #[must_use]
    pub fn of_jobs(&self) -> Self {
        Self {
            trim_conc: false,
            all_evals: false,
            evals_only: false,
            fail_fast: false,
            ..self.clone()
        }
    }

    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is asked, by name: `true`, a number or a text.
    fn given(&self) -> Map<String, Value> {
        let mut given = match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => unreachable!("a struct of booleans, numbers and texts is an object"),
        };
        given.retain(|_, value| !matches!(value, Value::Null | Value::Bool(false)));
        given
    }

    /// What is asked, in words.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        let given = self.given();
        let words = |field: Field| match given.get(&field.name)? {
            Value::Bool(_) => {
                let mut letters = field.about.chars();
                let first = letters.next()?.to_lowercase();
                Some(first.chain(letters).collect())
            }
            value => Some(format!("{} {}", field.name, value_text(value))),
        };
        fields().into_iter().filter_map(words).collect()
    }

    /// What is asked, as the inputs of a form.
    #[must_use]
    pub fn inputs(&self) -> Vec<(String, String)> {
        let given = self.given().into_iter();
        given.map(|(name, value)| (name, value_text(&value))).collect()
    }

    /// What is asked, as arguments of a command.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let flag = |(name, value): (String, Value)| match value {
            Value::Bool(_) => format!("--{name}"),
            value => format!("--{name}={}", value_text(&value)),
        };
        self.given().into_iter().map(flag).collect()
    }

    /// The flags that make it less than a full sweep, or another: its results stand in for none.
    #[must_use]
    pub fn narrowing(&self) -> Vec<String> {
        let mut flags = self.flags();
        flags.retain(|flag| !KEEPS_ALL.contains(&flag.as_str()));
        flags
    }
}

/// A field's value as an output holds it; nothing where there is none.
#[must_use]
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Writes what is asked, and leaves out what is not.
///
/// # Errors
/// Those of the serializer.
pub fn only_given<S: Serializer>(asked: &Asked, serializer: S) -> Result<S::Ok, S::Error> {
    asked.given().serialize(serializer)
}

/// One value of a form as text; `None` where nothing was entered.
///
/// # Errors
/// Lists, objects and control characters.
pub fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = match Value::deserialize(deserializer)? {
        Value::Null => return Ok(None),
        Value::String(text) => text.trim().to_owned(),
        value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
        Value::Array(_) | Value::Object(_) => {
            return Err(serde::de::Error::custom(
                "an input is a list or an object, not one value",
            ));
        }
    };
    if text.contains(char::is_control) {
        return Err(wrong(&text, "holds a control character"));
    }
    Ok((!text.is_empty()).then_some(text))
}

/// `true` or `false`, also as text; `false` where nothing was entered.
///
/// # Errors
/// Anything else.
pub fn boolean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match text(deserializer)?.as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(wrong(other, "is neither `true` nor `false`")),
    }
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(text) = text(deserializer)? else {
        return Ok(None);
    };
    match text.parse() {
        Ok(seconds) if seconds > 0 => Ok(Some(seconds)),
        _ => Err(wrong(&text, "is no positive number of seconds")),
    }
}

fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let Some(text) = text(deserializer)? else {
        return Ok(None);
    };
    samples(&text).map(Some).map_err(|problem| wrong(&text, problem))
}

fn samples(text: &str) -> Result<String, &'static str> {
    match text == "full" || text.parse::<u64>().is_ok() {
        true => Ok(text.to_owned()),
        false => Err("is neither a number of samples nor `full`"),
    }
}

fn wrong<E: serde::de::Error>(text: &str, problem: &str) -> E {
    /// The most characters that are shown.
    const SHOWN: usize = 80;
    let shown: String = text.chars().take(SHOWN).collect();
    E::custom(format!("`{}` {problem}", printable(&shown).replace('`', "'")))
}
