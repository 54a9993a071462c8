//! What serves a row without a launch script: its engine's server and clients, or those that its cluster names.

use indexmap::IndexMap;

use crate::config::clusters::command::{self, NoValue, Template, fill};
use crate::config::engines::{Condition, Conditions, Engine, Engines, Item, Override, Subject};
use crate::config::fields::{Field, Size};
use crate::config::master::search_space::Nodes;
use crate::config::problem::{Problem, nearest};
use crate::matrix::row::{FieldValue, Row, Scenario};
use crate::step::environment::{Environment, RANDOM_RANGE_RATIO};

use super::backend::Prepared;

/// The client of fixed sequences, unless the engine names another.
const THROUGHPUT: [&str; 12] = [
    "sweepctl",
    "throughput",
    "--endpoint=http://127.0.0.1:{port}",
    "--model={model-name}",
    "--isl={isl}",
    "--osl={osl}",
    "--random-range-ratio={random-range-ratio}",
    "--concurrency={conc}",
    "--requests-per-concurrency=10",
    "--warmups={warmups}",
    "--backend={framework}",
    "--save={workspace}/{result-filename}.json",
];
/// The client of replays, unless the engine names another. What else it needs it takes from the job.
const REPLAY: [&str; 8] = [
    "sweepctl",
    "agentic",
    "run",
    "--endpoint=http://127.0.0.1:{port}",
    "--model={model-name}",
    "--tokenizer={model}",
    "--result-dir={workspace}/agentic_results",
    "--out={workspace}/{result-filename}.json",
];
/// The folder of the state folder that holds the files of a server.
pub(crate) const FILES: &str = "engine";
/// How many times its concurrency a client sends before it measures.
const WARMUPS: u64 = 2;

/// The server of a row, and what measures it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serving {
    /// Whose commands these are, for messages: `the engine vllm`.
    pub whose: String,
    /// The server.
    pub server: Vec<Template>,
    /// The client of jobs that measure throughput.
    pub client: Option<Vec<Template>>,
    /// Where the server says that it is ready.
    pub health: String,
    /// Files of the server by name, with their lines.
    pub files: IndexMap<String, Vec<Template>>,
}

impl Serving {
    /// The commands of a row's engine; `config_key` is that of the row's config, where it is known.
    ///
    /// # Errors
    /// A row that no engine can serve, and one with something that its engine does not pass on to the server.
    pub fn of_row(engines: &Engines, row: &Row, config_key: Option<&str>) -> Result<Self, Problem> {
        let framework = &row.topology.framework;
        let hint = "write a launch script, or add to configs/engines.yaml";
        let Nodes::Single(_) = row.topology.nodes else {
            let message = "no engine serves a row of several nodes";
            return Err(Problem::file("", message).hint("write a launch script, or give the row a recipe"));
        };
        let Some(engine) = engines.of(framework) else {
            let known = engines.engines.keys().map(String::as_str);
            let message = format!("there is no engine `{framework}`");
            return Err(Problem::file("", message).hint(format!("{hint}; {}", nearest(framework, known))));
        };
        let mut chosen = Chosen::new(row, config_key);
        let server = chosen.server(engine);
        let files = chosen.files(engine);
        let lost = chosen.lost(&server, &files);
        if !lost.is_empty() {
            let message = format!(
                "the engine `{framework}` does not say how {} of `{}` reaches the server",
                lost.join(", "),
                row.exp_name
            );
            return Err(Problem::file("", message).hint(hint));
        }
        let (own, default) = match &row.topology.scenario {
            Scenario::Agentic(_) => (&engine.replay, &REPLAY[..]),
            Scenario::Fixed(_) => (&engine.throughput, &THROUGHPUT[..]),
        };
        let client = own.as_ref().map_or_else(|| built_in(default), |own| own.0.clone());
        Ok(Self {
            whose: format!("the engine `{framework}`"),
            server,
            client: Some(client),
            health: engine.health.clone(),
            files,
        })
    }

    /// Whether the server is the mock server, which loads no model.
    #[must_use]
    pub fn is_mock(&self) -> bool {
        command::program(&self.server) == Some("sweepctl")
    }
}

/// The variables that an engine adds to a row's job, and what its server calls the model.
#[must_use]
pub(crate) fn variables(
    engine: &Engine,
    row: &Row,
    config_key: Option<&str>,
) -> (IndexMap<String, Template>, Option<Template>) {
    let mut chosen = Chosen::new(row, config_key);
    let mut variables = engine.env.clone();
    let mut name = engine.served_model_name.clone();
    for over in chosen.overrides(engine) {
        variables.extend(over.env.clone());
        name = over.served_model_name.clone().or(name);
    }
    (variables, name)
}

/// A built-in client.
fn built_in(command: &[&str]) -> Vec<Template> {
    // Its placeholders are known, as a test holds.
    command.iter().filter_map(|text| Template::parse(text).ok()).collect()
}

/// What a row takes of an engine, and which of its fields had a say in that.
struct Chosen<'a> {
    row: &'a Row,
    config_key: Option<&'a str>,
    asked: Vec<Subject>,
}

impl<'a> Chosen<'a> {
    fn new(row: &'a Row, config_key: Option<&'a str>) -> Self {
        Self {
            row,
            config_key,
            asked: Vec::new(),
        }
    }

    fn server(&mut self, engine: &Engine) -> Vec<Template> {
        let overrides = self.overrides(engine);
        let items = overrides.iter().rev().find_map(|over| over.server.as_ref());
        let mut server = self.items(items.unwrap_or(&engine.server));
        for over in overrides {
            server.extend(self.items(&over.add));
        }
        if self.row.eval.eval_only && matches!(self.row.topology.scenario, Scenario::Fixed(_)) {
            server.extend(engine.context.iter().cloned());
        }
        server
    }

    fn files(&mut self, engine: &Engine) -> IndexMap<String, Vec<Template>> {
        let overrides = self.overrides(engine);
        let mut files: IndexMap<String, Vec<Template>> = IndexMap::new();
        let all = std::iter::once(&engine.files).chain(overrides.iter().map(|over| &over.files));
        for (name, items) in all.flatten() {
            let lines = self.items(items);
            files.entry(name.clone()).or_default().extend(lines);
        }
        files
    }

    /// The overrides that take the row.
    fn overrides<'e>(&mut self, engine: &'e Engine) -> Vec<&'e Override> {
        let overrides = engine.overrides.iter();
        overrides.filter(|over| self.takes(&over.r#for)).collect()
    }

    fn items(&mut self, items: &[Item]) -> Vec<Template> {
        let mut all = Vec::new();
        for item in items {
            match item {
                Item::Always(text) => all.push(text.clone()),
                Item::When(conditional) if self.takes(&conditional.when) => {
                    all.extend(conditional.args.iter().cloned())
                }
                Item::When(_) => {}
            }
        }
        all
    }

    /// Whether conditions take the row; those that do are remembered.
    fn takes(&mut self, conditions: &Conditions) -> bool {
        let meets = |(subject, condition): &(Subject, Condition)| {
            let value = value(self.row, self.config_key, *subject);
            match condition {
                Condition::OneOf(values) => values.contains(&value.to_string()),
                Condition::Above(least) => matches!(value, FieldValue::Int(number) if number > *least),
            }
        };
        let takes = conditions.0.iter().all(meets);
        if takes {
            self.asked.extend(conditions.0.iter().map(|(subject, _)| *subject));
        }
        takes
    }

    /// What of the row would not reach the server: it would measure another row than the one that is asked for.
    fn lost(&self, server: &[Template], files: &IndexMap<String, Vec<Template>>) -> Vec<String> {
        let placeholders: Vec<&str> = server
            .iter()
            .chain(files.values().flatten())
            .flat_map(Template::placeholders)
            .collect();
        let sizes = Size::ALL.iter().map(|size| Field::Size(*size));
        let must_reach = sizes.chain([Field::SpecDecoding, Field::KvOffloading]);
        let lost = must_reach.filter(|field| {
            let value = self.row.topology.field(*field);
            let plain = match value {
                FieldValue::Missing => true,
                FieldValue::Text(text) => text == "none",
                FieldValue::Int(number) => number <= 1,
                FieldValue::Bool(flag) => !flag,
                _ => true,
            };
            let passed = placeholders.iter().any(|name| passes_on(name, *field));
            !plain && !passed && !self.asked.contains(&Subject::Field(*field))
        });
        lost.map(|field| format!("`{}: {}`", field.name(), self.row.topology.field(field)))
            .collect()
    }
}

/// Whether a placeholder tells the server a field: it is the field's own, or follows from it.
fn passes_on(placeholder: &str, field: Field) -> bool {
    let follows = [
        (Field::Size(Size::Tp), "gpu-count"),
        (Field::KvOffloading, "total-cpu-dram-gb"),
    ];
    field.name() == placeholder
        || field.variable() == Some(command::variable(placeholder))
        || follows.contains(&(field, placeholder))
}

fn value<'a>(row: &'a Row, config_key: Option<&'a str>, subject: Subject) -> FieldValue<'a> {
    match subject {
        Subject::Field(field) => row.topology.field(field),
        Subject::Conc => match row.conc.points() {
            [point] => FieldValue::Int(*point),
            _ => FieldValue::Missing,
        },
        Subject::ConfigKey => config_key.map_or(FieldValue::Missing, FieldValue::Text),
        Subject::EvalOnly => FieldValue::Bool(row.eval.eval_only),
        Subject::KvOffloadBackend => match &row.topology.scenario {
            Scenario::Agentic(offload) => {
                let backend = offload.backend.as_ref();
                backend.map_or(FieldValue::Missing, |backend| FieldValue::Text(&backend.name))
            }
            Scenario::Fixed(_) => FieldValue::Missing,
        },
    }
}

/// Fills texts for a job whose server listens on a port.
///
/// # Errors
/// Placeholders that the job has no value for.
pub(crate) fn filled<'t>(
    templates: impl IntoIterator<Item = &'t Template>,
    job: &Prepared<'_>,
    port: u16,
) -> Result<Vec<String>, NoValue> {
    fill(templates, &|name| self::variable(job, port, name))
}

/// A value that a placeholder stands for: what only a launch knows, or what the job's variables say.
fn variable(job: &Prepared<'_>, port: u16, name: &str) -> Option<String> {
    match name {
        "PORT" => Some(port.to_string()),
        "FILES" => Some(job.state.join(FILES).display().to_string()),
        _ => job_value(job.environment, &job.workspace.display().to_string(), name),
    }
}

/// A variable of a job, or what follows from one.
pub(crate) fn job_value(environment: &Environment, workspace: &str, name: &str) -> Option<String> {
    let own = |name: &str| {
        environment
            .get(name)
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
    };
    let number = |name: &str| own(name)?.parse::<u64>().ok();
    match name {
        "CONTEXT" => own("EVAL_MAX_MODEL_LEN").or_else(|| own("MAX_MODEL_LEN")),
        // A server of a cluster's own is started with the eval's context.
        "MAX_MODEL_LEN" => own("EVAL_MAX_MODEL_LEN").or_else(|| own(name)),
        "MODEL_NAME" => own(name).or_else(|| own("MODEL")),
        "RANDOM_RANGE_RATIO" => own(name).or_else(|| Some(RANDOM_RANGE_RATIO.to_owned())),
        "WARMUPS" => Some(number("CONC")?.saturating_mul(WARMUPS).to_string()),
        "TOTAL_CPU_DRAM_BYTES" => Some(number("TOTAL_CPU_DRAM_GB")?.checked_mul(1_000_000_000)?.to_string()),
        "DRAM_GB_PER_GPU" => Some((number("TOTAL_CPU_DRAM_GB")? / number("GPU_COUNT")?.max(1)).to_string()),
        "RESULT_DIR" => own(name).or_else(|| Some(format!("{workspace}/results"))),
        _ => own(name),
    }
}
