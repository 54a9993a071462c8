//! What of a sweep is published, and who is told of it.

use minijinja::value::Serde;
use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value, syntax::SyntaxConfig,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{repository, secret, word};
use crate::config::decode::Decoder;
use crate::config::tree::{self, Node};
use crate::findings::config;

/// What of a sweep is published, compared and announced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[schemars(rename_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Publish {
    /// Everything if every planned job is done, else nothing
    Run,
    /// The recipes whose planned jobs are all done: a curve with a missing point misleads
    #[default]
    Recipe,
    /// Every job that is done
    Job,
}

impl Publish {
    const NAMES: &'static [(&'static str, Self)] = &[("run", Self::Run), ("recipe", Self::Recipe), ("job", Self::Job)];
}

/// One repository that is told of a finished sweep, by a `repository_dispatch` event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
#[serde(rename_all = "kebab-case")]
pub struct Ingest {
    /// The repository that is told, `owner/name`.
    pub repository: String,
    /// The type of the event.
    pub event_type: String,
    /// The secret that holds a token for that repository.
    pub secret: String,
    /// The template of `client_payload`, a JSON object of at most 10 fields, in which `[= name =]` stands for a value as
    /// JSON; without one the usual payload is sent.
    #[schemars(default)]
    pub payload: Option<String>,
}

/// How targets are written.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "it only describes the file")]
pub(super) enum Targets {
    One(Ingest),
    Several(Vec<Ingest>),
}

pub(super) fn mode(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Publish> {
    d.choice(node, name, Publish::NAMES)
}

/// The targets: a list, or one alone.
pub(super) fn targets(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Vec<Ingest>> {
    if matches!(node.value, tree::Value::Map(_)) {
        return Some(vec![target(d, node, name)?]);
    }
    let targets = d.list(node, name, 1, |d, node| target(d, node, name))?;
    for (index, one) in targets.iter().enumerate() {
        let is_same = |other: &Ingest| other.repository == one.repository && other.event_type == one.event_type;
        if targets[..index].iter().any(is_same) {
            let message = format!("`{}` is told of `{}` twice", one.repository, one.event_type);
            d.refuse(&config::NAMED_TWICE, node.span, message, "take one of the two out");
        }
    }
    Some(targets)
}

fn target(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Ingest> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let to = f.required(d, "repository", repository);
    let event_type = f.required(d, "event-type", |d, n, name| word(d, n, name, "the type of an event"));
    let secret = f.required(d, "secret", |d, n, _| secret(d, n));
    let payload = f.optional(d, "payload", |d, n, name| {
        let text = d.string(n, name)?;
        if let Err(reason) = check(&text) {
            let message = format!("`{name}` cannot be sent: {reason}");
            d.refuse(&config::MALFORMED, n.span, message, HINT);
            return None;
        }
        Some(text)
    });
    f.finish(d);
    Some(Ingest {
        repository: to?,
        event_type: event_type?,
        secret: secret?,
        payload,
    })
}

/// The most fields that GitHub takes at the top of a `client_payload` ("Create a repository dispatch event").
pub(crate) const MAX_FIELDS: usize = 10;

/// What a payload says, by the names that a template may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Announced {
    /// The repository that sweeps.
    pub repository: String,
    /// The run.
    pub run_id: String,
    /// Its attempt.
    pub run_attempt: String,
    /// The run whose results were taken over; null where none was.
    pub reused_run_id: Option<String>,
    /// The commit; null where it is not known.
    pub commit: Option<String>,
    /// What is published: `run`, `recipe` or `job`; null without a ledger, as what follows.
    pub publish: Option<Publish>,
    /// The fingerprints of the recipes that are published.
    pub published: Vec<String>,
    /// The recipes that are not.
    pub withheld: Vec<Withheld>,
    /// How many are published, also where the list was cut.
    pub published_count: usize,
    /// How many are not.
    pub withheld_count: usize,
    /// Whether the lists name all of them; else the artifact `ledger` of the run does.
    pub whole: bool,
}

/// A recipe that is withheld.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Withheld {
    /// Its fingerprint.
    pub recipe: String,
    /// What it is, for people.
    pub name: String,
    /// Why it is withheld.
    pub reason: String,
}

impl Announced {
    /// One with a value under every name.
    fn example() -> Self {
        Self {
            repository: "owner/name".to_owned(),
            run_id: "1".to_owned(),
            run_attempt: "1".to_owned(),
            publish: Some(Publish::Recipe),
            published: vec![String::new()],
            withheld: vec![Withheld::default()],
            ..Self::default()
        }
    }
}

const HINT: &str = "write a JSON object of at most 10 fields, in which `[= name =]` stands for a whole value, with its \
                    quotes; docs/results.md lists the names";

/// Whether a template gives a payload.
///
/// # Errors
/// Why not.
pub(crate) fn check(template: &str) -> Result<(), String> {
    if template.contains("${{") {
        return Err("`${{` would be an expression of the workflow that holds it".to_owned());
    }
    payload(template, &Announced::example()).map(drop)
}

/// A payload by its template. Every value is written as JSON, so what it says cannot change what surrounds it.
///
/// # Errors
/// A template that is wrong, one that names what there is not, and text that is no JSON object of at most
/// [`MAX_FIELDS`] fields.
pub(crate) fn payload(template: &str, values: &Announced) -> Result<serde_json::Value, String> {
    let text = render(template, values).map_err(|error| {
        let place = error.line().map(|line| format!("line {line}: ")).unwrap_or_default();
        let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
        format!("{place}{}{detail}", error.kind())
    })?;
    let payload: serde_json::Value = serde_json::from_str(&text).map_err(|error| format!("it is no JSON: {error}"))?;
    match payload.as_object().map(serde_json::Map::len) {
        Some(fields) if fields <= MAX_FIELDS => Ok(payload),
        Some(fields) => Err(format!("it has {fields} fields at its top, GitHub takes {MAX_FIELDS}")),
        None => Err("it is no JSON object".to_owned()),
    }
}

fn render(template: &str, values: &Announced) -> Result<String, Error> {
    let mut environment = Environment::new();
    // As in workflow templates: `{{` and `}}` are JSON, and `${{ }}` is GitHub's.
    let syntax = SyntaxConfig::builder()
        .block_delimiters("[%", "%]")
        .variable_delimiters("[=", "=]")
        .comment_delimiters("[#", "#]")
        .build()?;
    environment.set_syntax(syntax);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(as_json);
    environment.render_str(template, Value::from(Serde(values)))
}

fn as_json(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let failed = |error: &dyn std::error::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
    let text = serde_json::to_string(value).map_err(|error| failed(&error))?;
    std::fmt::Write::write_str(out, &text).map_err(|error| failed(&error))
}
