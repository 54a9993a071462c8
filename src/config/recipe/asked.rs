//! What a recipe asks of its accuracy benchmark, and whether that is the benchmark that a row asks for.

use std::sync::Arc;

use super::parameters::{Benchmark, Default};
use super::read::{Recipe, text, value};
use crate::config::problem::{Problem, Problems, nearest};
use crate::config::source::Source;
use crate::config::tree::{self, Value};
use crate::findings::recipe as findings;

/// Problems of each of AIME's data sets.
pub(crate) const AIME_PROBLEMS: u64 = 30;

/// What a recipe's accuracy benchmark has to leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The benchmark.
    pub benchmark: Benchmark,
    /// The task of its result: AIME's data set, else the benchmark's name.
    pub task: String,
    /// How often every example is run; `None` where the benchmark repeats nothing.
    pub repeats: Option<u64>,
    /// How many examples a run has; `None` where all of those are asked for that fit into the context.
    pub examples: Option<u64>,
    /// The categories that are asked for; empty where all are.
    pub categories: Vec<String>,
}

impl Asked {
    /// The same of a run that is limited to so many examples.
    #[must_use]
    pub fn limited(self, limit: u64) -> Self {
        Self {
            examples: Some(self.examples.map_or(limit, |examples| examples.min(limit))),
            ..self
        }
    }
}

/// What a recipe asks of its benchmark, which has to be the one of `suite`.
///
/// # Errors
/// What is no recipe, a recipe that runs something else, and numbers that cannot be.
pub fn asked(source: &Arc<Source>, suite: Benchmark) -> Result<Asked, Problems> {
    let root = tree::parse(source)?;
    let recipe = Recipe::read(source, &root)?;
    if recipe.benchmark() != Some(suite) {
        return Err(other(source, &recipe, suite).into());
    }
    let mut problems = Problems::default();
    let mut number = |path: &[&str], name: &str| {
        let said = value(&root, path);
        let text = said
            .map(|node| node.text().to_owned())
            .or_else(|| default(suite, name))?;
        let number = text.parse::<u64>().ok().filter(|number| *number > 0);
        if let (Some(node), None) = (said, number) {
            let message = format!("`{name}` is `{text}`, which is no whole number of at least 1");
            problems.push(findings::PARAMETER.at(source, node.span, message));
        }
        number
    };
    let (repeats, examples) = match suite {
        Benchmark::Aime => (number(&["benchmark", "env", "REPEAT"], "REPEAT"), Some(AIME_PROBLEMS)),
        _ => (
            number(&["benchmark", "repeat"], "repeat"),
            number(&["benchmark", "num_examples"], "num_examples"),
        ),
    };
    let categories = match value(&root, &["benchmark", "categories"]).map(|node| &node.value) {
        Some(Value::Seq(items)) => items.iter().map(|item| item.text().to_owned()).collect(),
        _ => Vec::new(),
    };
    let data_set = text(&root, &["benchmark", "env", "DATASET"]).map(str::to_owned);
    let task = match suite {
        Benchmark::Aime => data_set.or_else(|| default(suite, "DATASET")),
        _ => None,
    };
    problems.into_result()?;
    Ok(Asked {
        benchmark: suite,
        task: task.unwrap_or_else(|| suite.name().to_owned()),
        repeats,
        examples,
        categories,
    })
}

/// A parameter's default, where it is a value.
fn default(benchmark: Benchmark, name: &str) -> Option<String> {
    let parameter = benchmark.parameters().iter().find(|parameter| parameter.name == name)?;
    match parameter.default {
        Default::Value(text) => Some(text.to_owned()),
        Default::All | Default::ServedName => None,
    }
}

/// A recipe that runs something else than the suite.
fn other(source: &Source, recipe: &Recipe<'_, '_>, suite: Benchmark) -> Problem {
    let place = value(recipe.root, &["benchmark", "type"]).or_else(|| value(recipe.root, &["benchmark"]));
    let span = place.map_or(recipe.root.span, |node| node.span);
    let runs = match recipe.benchmark() {
        Some(other) => other.name(),
        None => text(recipe.root, &["benchmark", "type"]).unwrap_or("no benchmark"),
    };
    let message = format!("the row asks for `{}`, and its recipe runs `{runs}`", suite.name());
    let hint = format!(
        "`sweepctl recipe accuracy {} FILE` writes it; name that recipe as `eval-srt-recipe`",
        suite.name()
    );
    findings::OTHER_BENCHMARK.at(source, span, message).hint(hint)
}

/// The benchmark of a suite.
///
/// # Errors
/// A name that is none, with the nearest.
pub fn suite(name: &str) -> Result<Benchmark, Problem> {
    let known = Benchmark::SUITES.map(Benchmark::name);
    Benchmark::of_suite(name).ok_or_else(|| {
        let message = match name {
            "" => "the evaluator `benchmark` needs a suite".to_owned(),
            name => format!("the evaluator `benchmark` has no suite `{name}`"),
        };
        let hint = match name {
            "" => format!("name one of {}", known.join(", ")),
            name => nearest(name, known),
        };
        crate::findings::config::UNKNOWN_SUITE.file("", message).hint(hint)
    })
}
