//! Rendering: templates and a model become files, the same to the byte each time.

use std::path::Path;
use std::sync::Arc;

use minijinja::value::{Rest, Serde};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value, syntax::SyntaxConfig};

use super::model::{self, Model};
use super::templates::{FOLDER, Templates};
use crate::config::labels::Labels;
use crate::config::problem::{Problem, Problems, Span, nearest};
use crate::config::workflows::{Pin, Workflows};

/// Where workflows stand.
pub const WORKFLOWS: &str = ".github/workflows";
/// The templates of the actions' files, and where each is rendered to.
const ACTIONS: [(&str, &str); 3] = [
    ("setup-sweepctl.yml", ".github/actions/setup-sweepctl/action.yml"),
    ("fetch-artifacts.yml", ".github/actions/fetch-artifacts/action.yml"),
    ("fetch-artifacts.js", ".github/actions/fetch-artifacts/main.js"),
];

/// A rendered file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Its path from the repository's root.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// Renders everything, in the order of the settings.
///
/// # Errors
/// Every template that is missing or cannot be rendered, each at its place.
pub fn render(templates: &Templates, labels: &Labels, settings: &Arc<Workflows>) -> Result<Vec<Rendered>, Problems> {
    let model = Model::new(labels, settings);
    let environment = environment(templates, &model, settings)?;
    let workflows = settings
        .workflows
        .iter()
        .map(|stem| (format!("{stem}.yml"), format!("{WORKFLOWS}/{stem}.yml")));
    let actions = ACTIONS.map(|(name, path)| (name.to_owned(), path.to_owned()));
    let mut rendered = Vec::new();
    let mut problems = Problems::default();
    for (name, path) in workflows.chain(actions) {
        match one(&environment, templates, &name) {
            Ok(text) => rendered.push(Rendered { path, text }),
            Err(problem) => problems.push(problem),
        }
    }
    problems.into_result()?;
    Ok(rendered)
}

fn one(environment: &Environment<'_>, templates: &Templates, name: &str) -> Result<String, Problem> {
    if templates.get(name).is_none() {
        let known = templates.names().filter(|name| !name.contains('/'));
        let message = format!("there is no template `{FOLDER}/{name}`");
        return Err(Problem::file("configs/workflows.yaml", message).hint(nearest(name, known)));
    }
    let body = environment
        .get_template(name)
        .and_then(|template| template.render(()))
        .map_err(|error| located(&error, templates))?;
    Ok(format!("{}{}", header(name), tidy(&body)))
}

/// How the first line of a rendered file begins.
pub(super) const RENDERED: &str = "# Rendered by sweepctl ";

/// The first line of each file: what made it, and how to change it.
fn header(name: &str) -> String {
    let comment = if name.ends_with(".js") { "//" } else { "#" };
    format!(
        "{comment}{}from {FOLDER}/{name} and configs/. Do not edit: change those and run `sweepctl render`.\n",
        RENDERED.trim_start_matches('#')
    )
}

/// Templates leave blank lines and line ends as they come; a file has none twice, and ends with one line end.
fn tidy(body: &str) -> String {
    let mut text = String::with_capacity(body.len());
    let mut blank = true;
    for line in body.lines().map(str::trim_end) {
        if line.is_empty() && blank {
            continue;
        }
        blank = line.is_empty();
        text.push_str(line);
        text.push('\n');
    }
    while text.ends_with("\n\n") {
        text.pop();
    }
    text
}

fn environment<'t>(
    templates: &'t Templates,
    model: &Model,
    settings: &Arc<Workflows>,
) -> Result<Environment<'t>, Problems> {
    let mut environment = Environment::new();
    // GitHub's own expressions are `${{ }}`, which the usual delimiters would take.
    let syntax = SyntaxConfig::builder()
        .block_delimiters("[%", "%]")
        .variable_delimiters("[=", "=]")
        .comment_delimiters("[#", "#]")
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build()
        .map_err(|error| Problem::file(FOLDER, format!("the delimiters clash: {error}")))?;
    environment.set_syntax(syntax);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    let mut problems = Problems::default();
    for name in templates.names() {
        let Some(source) = templates.get(name) else { continue };
        if let Err(error) = environment.add_template(name, &source.text) {
            problems.push(located(&error, templates));
        }
    }
    problems.into_result()?;
    // Macros of imported partials see globals only.
    let globals = Value::from(Serde(model));
    for name in globals.try_iter().into_iter().flatten() {
        if let Ok(value) = globals.get_item(&name) {
            environment.add_global(name.to_string(), value);
        }
    }
    environment.add_filter("yaml", yaml);
    environment.add_filter("expression", expression);
    let with = Arc::clone(settings);
    environment.add_function("uses", move |name: &str| uses(&with, name));
    let with = Arc::clone(settings);
    environment.add_function("permissions", move |jobs: Rest<String>| permissions(&with, &jobs));
    let with = Arc::clone(settings);
    environment.add_function("timeout", move |job: &str| {
        with.timeouts.jobs.get(job).copied().unwrap_or(with.timeouts.default)
    });
    Ok(environment)
}

/// Text as a YAML scalar: a word as it is, anything else in double quotes.
fn yaml(text: &str) -> String {
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/'))
        && matches!(
            crate::config::scalar::resolve(text),
            crate::config::scalar::Scalar::Str(_)
        );
    if is_word {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

/// Text as a string of GitHub's expressions.
fn expression(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// `owner/name@commit # version`, of an action in a folder of its repository too; a local action as it is.
fn uses(settings: &Workflows, name: &str) -> Result<String, Error> {
    if name.starts_with("./") {
        return Ok(name.to_owned());
    }
    let repository: Vec<&str> = name.splitn(3, '/').take(2).collect();
    let Pin { version, sha } = settings.actions.get(&repository.join("/")).ok_or_else(|| {
        let hint = nearest(name, settings.actions.keys().map(String::as_str));
        refused(format!("`actions` pins no `{name}` ({hint})"))
    })?;
    Ok(format!("{name}@{sha} # {version}"))
}

/// The permissions of jobs together, as a flow mapping.
fn permissions(settings: &Workflows, jobs: &[String]) -> Result<String, Error> {
    let of_jobs = jobs.iter().map(|job| {
        settings.permissions.get(job).ok_or_else(|| {
            let hint = nearest(job, settings.permissions.keys().map(String::as_str));
            refused(format!("`permissions` does not say what `{job}` may do ({hint})"))
        })
    });
    let union = model::union(of_jobs.collect::<Result<Vec<_>, _>>()?);
    if union.is_empty() {
        return Ok("{}".to_owned());
    }
    let pairs: Vec<String> = union
        .iter()
        .map(|(scope, access)| format!("{scope}: {}", access.name()))
        .collect();
    Ok(format!("{{ {} }}", pairs.join(", ")))
}

/// An error of a template at its place; what it was included from or called by is said too.
fn located(error: &Error, templates: &Templates) -> Problem {
    let mut inner = error;
    while let Some(source) = std::error::Error::source(inner).and_then(|e| e.downcast_ref::<Error>()) {
        inner = source;
    }
    let message = match inner.detail() {
        Some(detail) => format!("{}: {detail}", inner.kind()),
        None => inner.kind().to_string(),
    };
    let source = inner.name().and_then(|name| templates.get(name));
    let Some((source, line)) = source.zip(inner.line()) else {
        return Problem::file(inner.name().unwrap_or(FOLDER), message);
    };
    let span = match inner.range() {
        Some(range) if range.end <= source.text.len() => Span::of(&source.text, range.start, range.end),
        _ => Span {
            line,
            column: 1,
            length: 1,
        },
    };
    let hint = match inner.kind() {
        ErrorKind::UndefinedError => "templates may name what src/workflow/model.rs has; see docs/workflows.md",
        _ => "correct the template, or configs/workflows.yaml",
    };
    Problem::at(source, span, message).hint(hint)
}

/// What differs between the rendered files and a repository's, by path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Drift {
    /// The file is not there.
    Missing(String),
    /// It differs; a unified diff from what is there to what is rendered.
    Differs(String, String),
    /// A file of the workflows folder that nothing renders.
    Unknown(String),
}

/// Compares with the files under a root.
///
/// # Errors
/// A file that cannot be read.
pub fn drift(root: &Path, rendered: &[Rendered], unmanaged: &[String]) -> Result<Vec<Drift>, Problems> {
    let mut found = Vec::new();
    let mut problems = Problems::default();
    for file in rendered {
        match std::fs::read(root.join(&file.path)) {
            Ok(bytes) if bytes == file.text.as_bytes() => {}
            Ok(bytes) => {
                let there = String::from_utf8_lossy(&bytes);
                let diff = similar::TextDiff::from_lines(there.as_ref(), file.text.as_str());
                let rendered = format!("{} (rendered)", file.path);
                let diff = diff
                    .unified_diff()
                    .context_radius(3)
                    .header(&file.path, &rendered)
                    .to_string();
                found.push(Drift::Differs(file.path.clone(), diff));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                found.push(Drift::Missing(file.path.clone()));
            }
            Err(error) => problems.push(Problem::file(
                &file.path,
                format!("`{}` cannot be read: {error}", file.path),
            )),
        }
    }
    let mut unknown: Vec<String> = std::fs::read_dir(root.join(WORKFLOWS))
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !unmanaged.contains(name))
        .map(|name| format!("{WORKFLOWS}/{name}"))
        .filter(|path| !rendered.iter().any(|file| file.path == *path))
        .collect();
    unknown.sort();
    found.extend(unknown.into_iter().map(Drift::Unknown));
    problems.into_result()?;
    Ok(found)
}

/// Writes the files under a folder; those that hold the text already are left alone. Gives the paths that were written.
///
/// # Errors
/// A file that cannot be written.
pub fn write(out: &Path, rendered: &[Rendered]) -> Result<Vec<String>, Problems> {
    let mut written = Vec::new();
    let mut problems = Problems::default();
    for file in rendered {
        let path = out.join(&file.path);
        if std::fs::read(&path).is_ok_and(|bytes| bytes == file.text.as_bytes()) {
            continue;
        }
        let parent = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        match parent.and_then(|()| std::fs::write(&path, &file.text)) {
            Ok(()) => written.push(file.path.clone()),
            Err(error) => {
                let place = path.display().to_string();
                problems.push(Problem::file(&place, format!("`{place}` cannot be written: {error}")));
            }
        }
    }
    problems.into_result()?;
    Ok(written)
}
