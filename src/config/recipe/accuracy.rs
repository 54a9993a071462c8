//! `recipe accuracy`: an accuracy benchmark written into a recipe, with every parameter and its default.

use std::sync::Arc;

use super::edit::{self, Change};
use super::parameters::{
    Benchmark, Default, EFFORT, Kind, LM_EVAL_VARIABLES, Parameter, Place, THINKING, needs_thinking,
};
use super::read::{Recipe, field, text, value};
use crate::config::clusters::Schema;
use crate::config::problem::{Problem, Problems, nearest};
use crate::config::source::Source;
use crate::config::tree;
use crate::config::yaml::Yaml;
use crate::findings::recipe as findings;

/// A parameter that is asked to be something else than its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Its value; lists with commas.
    pub value: String,
}

/// The text of a recipe with an accuracy benchmark.
///
/// Where the recipe runs that benchmark already, its own values stay, but for those of `settings`. The benchmark of a
/// recipe that runs another is replaced.
///
/// # Errors
/// Settings that the benchmark does not have or cannot have, what is no recipe, and a recipe that cannot be edited.
pub fn update(source: &Arc<Source>, benchmark: Benchmark, settings: &[Setting]) -> Result<String, Problems> {
    let root = tree::parse(source)?;
    let recipe = Recipe::read(source, &root)?;
    settings_fit(benchmark, settings)?;
    let is_same = benchmark == Benchmark::LmEval || recipe.benchmark() == Some(benchmark);
    let mut changes = Vec::new();
    if let Some(name) = benchmark.type_name() {
        changes.push(Change::Set(vec!["benchmark", "type"], name.into()));
    } else if text(&root, &["benchmark", "type"]).is_none() {
        // Servers alone: srt-slurm skips the benchmark of a job that is an eval.
        changes.push(Change::Set(vec!["benchmark", "type"], "manual".into()));
    }
    if !is_same {
        changes.extend(leftovers(&recipe, benchmark));
    }
    for parameter in benchmark.parameters() {
        let asked = settings.iter().rfind(|setting| setting.name == parameter.name);
        let asked = asked.map(|setting| setting.value.as_str());
        match parameter.place {
            Place::RoleEnv => changes.extend(of_roles(&recipe, parameter, asked)),
            _ => changes.extend(of_section(&recipe, parameter, asked, is_same)),
        }
    }
    if benchmark == Benchmark::LmEval && recipe.schema == Schema::Two {
        changes.extend(post_eval(&recipe));
    }
    edit::apply(source, &changes)
}

/// Whether each setting is one of the benchmark's, with a value that it can have.
fn settings_fit(benchmark: Benchmark, settings: &[Setting]) -> Result<(), Problems> {
    let mut problems = Problems::default();
    let names = || benchmark.parameters().iter().map(|parameter| parameter.name);
    for setting in settings {
        let Some(parameter) = benchmark
            .parameters()
            .iter()
            .find(|parameter| parameter.name == setting.name)
        else {
            let message = format!("{} has no parameter `{}`", benchmark.name(), setting.name);
            problems.push(
                findings::PARAMETER
                    .file("", message)
                    .hint(nearest(&setting.name, names())),
            );
            continue;
        };
        if let Some(reason) = parameter.kind.refuses(&setting.value) {
            problems.push(refused(parameter, &setting.value, &reason));
        } else if let (Some(there), "num_examples") = (benchmark.examples(), parameter.name)
            && setting.value.parse::<u64>().is_ok_and(|asked| asked > there)
        {
            let message = format!(
                "`num_examples` is {}, and {} has {there}",
                setting.value,
                benchmark.name()
            );
            problems.push(findings::EXAMPLES.file("", message));
        }
    }
    problems.into_result()
}

fn refused(parameter: &Parameter, value: &str, reason: &str) -> Problem {
    let message = format!("`{}` is `{value}`, which {reason}", parameter.name);
    let finding = match parameter.kind {
        Kind::Some(_) => &findings::CATEGORY,
        _ => &findings::PARAMETER,
    };
    finding.file("", message)
}

/// Removes what only another accuracy benchmark reads. Fields of throughput stay: launches and evals read them.
fn leftovers(recipe: &Recipe<'_, '_>, benchmark: Benchmark) -> Vec<Change> {
    let own = |name: &str| benchmark.parameters().iter().any(|parameter| parameter.name == name);
    let mut changes: Vec<Change> = Vec::new();
    let others = Benchmark::ALL
        .into_iter()
        .filter(|other| *other != Benchmark::LmEval)
        .flat_map(|other| other.parameters());
    for other in others.filter(|other| !own(other.name)) {
        let path = match other.place {
            Place::Field => vec!["benchmark", other.name],
            Place::Env if recipe.benchmark() == Some(Benchmark::Aime) => vec!["benchmark", "env", other.name],
            _ => continue,
        };
        let is_new = !changes
            .iter()
            .any(|change| matches!(change, Change::Remove(old) if *old == path));
        if is_new && field(recipe.root, &path).is_some() {
            changes.push(Change::Remove(path));
        }
    }
    changes
}

/// A parameter of the section, or none where it is to be left as it is.
fn of_section(recipe: &Recipe<'_, '_>, parameter: &Parameter, asked: Option<&str>, is_same: bool) -> Option<Change> {
    let path = match parameter.place {
        Place::Field => vec!["benchmark", parameter.name],
        _ => vec!["benchmark", "env", parameter.name],
    };
    let is_there = value(recipe.root, &path).is_some();
    if asked.is_none() && is_there && is_same {
        return None;
    }
    let text = match (asked, parameter.default) {
        (Some(text), _) => text,
        (None, Default::Value(text)) => text,
        (None, Default::ServedName) => recipe.served_name()?,
        (None, Default::All) => return is_there.then_some(Change::Remove(path)),
    };
    Some(Change::Set(path, typed(parameter, text)))
}

/// Variables are texts, fields are what they are.
fn typed(parameter: &Parameter, text: &str) -> Yaml {
    let number = |text: &str| text.trim().parse::<u64>().map_or_else(|_| text.into(), Yaml::from);
    match (parameter.place, parameter.kind) {
        (Place::Field, Kind::Count | Kind::Seed) => number(text),
        (Place::Field, Kind::Counts) => Yaml::List(text.split(',').map(number).collect()),
        (Place::Field, Kind::Some(_)) => Yaml::List(text.split(',').map(|item| item.trim().into()).collect()),
        _ => text.into(),
    }
}

/// A variable of every role: where it is asked for, or where the model needs it and the engine knows it.
fn of_roles(recipe: &Recipe<'_, '_>, parameter: &Parameter, asked: Option<&str>) -> Vec<Change> {
    let is_needed = recipe.engine == "sglang" && recipe.model_names().any(needs_thinking);
    debug_assert!([THINKING, EFFORT].contains(&parameter.name));
    let Some(text) = asked.or_else(|| is_needed.then(|| parameter.default.text())) else {
        return Vec::new();
    };
    let roles = recipe
        .roles
        .iter()
        .map(|role| [&role.env_path[..], &[parameter.name]].concat());
    roles
        .filter(|path| asked.is_some() || value(recipe.root, path).is_none())
        .map(|path| Change::Set(path, text.into()))
        .collect()
}

/// The eval behind the benchmark: every variable that it is told. Without a command it is srt-slurm's own lm-eval.
fn post_eval(recipe: &Recipe<'_, '_>) -> Vec<Change> {
    let mut changes = Vec::new();
    let path = ["post_eval", "passthrough_env"];
    let there = match value(recipe.root, &path).map(Yaml::from) {
        Some(Yaml::List(names)) => names,
        _ => Vec::new(),
    };
    let lacking: Vec<Yaml> = LM_EVAL_VARIABLES
        .iter()
        .map(|name| Yaml::from(*name))
        .filter(|name| !there.contains(name))
        .collect();
    if !lacking.is_empty() {
        let names = there.into_iter().chain(lacking).collect();
        changes.push(Change::Set(path.to_vec(), Yaml::List(names)));
    }
    changes
}
