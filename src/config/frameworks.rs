//! `configs/evals/frameworks.yaml`: evaluators that are a command with a JSON report.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use regex::Regex;
use schemars::JsonSchema;

use super::decode::{Decoder, Fields};
use super::problem::{Problem, Problems};
use super::source::Source;
use super::tree::Node;
use crate::findings::config as findings;

/// Where the file lies, from a repository's root.
pub(crate) const FILE: &str = "configs/evals/frameworks.yaml";
/// The copy that serves a repository without one of its own.
pub(crate) const BUILT_IN: &str = include_str!("../../configs/evals/frameworks.yaml");
/// The placeholders of arguments and variables.
pub(crate) const PLACEHOLDERS: [&str; 11] = [
    "api-key",
    "base-url",
    "cases",
    "client",
    "concurrency",
    "first-cases",
    "limit",
    "model",
    "out",
    "source",
    "work",
];

/// The frameworks file.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct EvalFrameworks {
    /// Frameworks by the name that the eval policy calls them by.
    pub frameworks: IndexMap<String, Framework>,
}

/// One framework: a Python program, what it needs, and how its report is read.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Framework {
    /// What it is, in a line.
    pub description: String,
    /// The least version of Python that it runs on.
    #[schemars(regex(pattern = "^3\\.[0-9]+$"))]
    pub python: String,
    /// Pinned packages that it imports.
    #[schemars(default)]
    pub packages: Vec<String>,
    /// Pinned packages that are installed without what they ask for.
    #[schemars(default)]
    pub packages_alone: Vec<String>,
    /// Its source, where no package holds it.
    pub archive: Option<Archive>,
    /// A script of ours, beside this file or built in, that drives it.
    pub client: Option<String>,
    /// Variables of its process. `{...}` are placeholders, as in arguments.
    #[schemars(default, with = "IndexMap<String, Value>")]
    pub environment: IndexMap<String, String>,
    /// The most requests at a time that it is told of.
    #[schemars(range(min = 1))]
    pub most_concurrency: Option<u64>,
    /// Exit codes after which its report counts; 0 alone where none is given.
    #[schemars(default)]
    pub exit_codes: Vec<u64>,
    /// The file that `{first-cases}` takes its lines from, in the source.
    pub case_file: Option<String>,
    /// How its report is read.
    pub report: ReportMap,
    /// Its suites, by names that no other framework has.
    pub suites: IndexMap<String, Suite>,
}

/// A variable's value, as schemas describe it: a number stands for its digits.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum Value {
    Text(String),
    Number(f64),
}

/// A source at one commit, checked by its content.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Archive {
    /// Where the `.tar.gz` is. Its first folder is left out.
    pub url: String,
    /// The commit.
    pub r#ref: String,
    /// The files and folders that are taken from it.
    #[schemars(length(min = 1))]
    pub paths: Vec<String>,
    /// The SHA-256 of what `sha256sum` says of these files, sorted by their paths.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub sha256: String,
    /// Files that are checked by git's own id for them, and are no part of the sum.
    #[schemars(default)]
    pub git_ids: IndexMap<String, String>,
}

/// How a report is read. Places are JSON pointers, numbers at several places are added up, and a missing one is 0.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ReportMap {
    /// The report's name, in `{out}`.
    pub file: String,
    /// How many checks there were.
    #[schemars(length(min = 1))]
    pub checks: Vec<String>,
    /// How many of them passed.
    #[schemars(length(min = 1))]
    pub passed: Vec<String>,
    /// What the passed ones are a share of, where that is not all checks.
    #[schemars(default)]
    pub of: Vec<String>,
    /// How many requests were never served.
    #[schemars(default)]
    pub unserved: Vec<String>,
    /// Rows that were never served, known by their text.
    pub unserved_rows: Option<UnservedRows>,
    /// A count that is above 0 where the program was asked not to score: then there is no score, and no fault either.
    pub unscored: Option<String>,
    /// The filter that the score stands under; `none` where none is given.
    pub filter: Option<String>,
    /// More shares, by name.
    #[schemars(default)]
    pub shares: IndexMap<String, Share>,
}

/// Rows whose text says that no answer came.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct UnservedRows {
    /// Where the list of rows is.
    pub rows: String,
    /// Where the text is, in a row.
    pub text: String,
    /// The expression that finds them.
    pub pattern: String,
    /// An expression that takes some of them out again.
    pub except: Option<String>,
}

/// A share.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Share {
    /// The part.
    #[schemars(length(min = 1))]
    pub passed: Vec<String>,
    /// The whole.
    #[schemars(length(min = 1))]
    pub of: Vec<String>,
}

/// One suite.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Suite {
    /// What Python is given.
    #[schemars(length(min = 1))]
    pub arguments: Vec<String>,
    /// How many cases it has.
    #[schemars(range(min = 1))]
    pub cases: u64,
    /// How many checks a whole report holds.
    #[schemars(range(min = 1))]
    pub checks: u64,
    /// How long it may take, unless a job says otherwise.
    #[schemars(range(min = 1))]
    pub deadline_seconds: Option<u64>,
    /// Whether it can run on its first cases alone, one check each: `{limit}` is then their number, and 0 all of them.
    #[schemars(default)]
    pub takes_limit: bool,
}

impl EvalFrameworks {
    /// Reads a frameworks file.
    ///
    /// # Errors
    /// Every problem of the file.
    pub(crate) fn load(source: &Arc<Source>) -> Result<Self, Problems> {
        super::load(source, |d, node| {
            let mut f = d.fields(node, "the frameworks file")?;
            let frameworks = f.required(d, "frameworks", |d, node, name| {
                let mut all = IndexMap::new();
                for (key, value) in d.entries(node, name) {
                    if key.text() == super::recipe::parameters::FRAMEWORK {
                        let message = format!("`{}` is the framework of srt-slurm's own benchmarks", key.text());
                        d.report(key.span, message, "give this one another name");
                    }
                    if !is_name(key.text()) {
                        let hint = "write letters, digits, - and _";
                        d.report(key.span, format!("`{}` is no name of a framework", key.text()), hint);
                    }
                    if let Some(framework) = framework(d, value, key.text()) {
                        all.insert(key.text().to_owned(), framework);
                    }
                }
                Some(all)
            });
            f.finish(d);
            let all = Self {
                frameworks: frameworks?,
            };
            all.suites_are_told_apart(d, node);
            Some(all)
        })
    }

    /// The frameworks of a repository: the file of the first root that has one, else the built-in one; with the folder
    /// of that file.
    ///
    /// # Errors
    /// Every problem of the file.
    pub(crate) fn of(roots: &[PathBuf]) -> Result<(Self, Option<PathBuf>), Problems> {
        let file = roots.iter().map(|root| root.join(FILE)).find(|file| file.is_file());
        let source = match &file {
            Some(file) => Source::read(file)?,
            None => Source::new("<built-in>/frameworks.yaml".to_owned(), BUILT_IN.to_owned()),
        };
        let folder = file.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        Ok((Self::load(&Arc::new(source))?, folder))
    }

    /// Results are told apart by the suite's name alone.
    fn suites_are_told_apart(&self, d: &mut Decoder, node: &Node<'_>) {
        let mut seen: IndexMap<&str, &str> = IndexMap::new();
        for (name, framework) in &self.frameworks {
            for suite in framework.suites.keys() {
                if let Some(other) = seen.insert(suite, name) {
                    let message = format!("`{other}` and `{name}` both have a suite `{suite}`");
                    d.report(node.span, message, "give one of them another name");
                }
            }
        }
    }
}

impl UnservedRows {
    /// Whether a row's text says that no answer came.
    #[must_use]
    pub(crate) fn is_one(&self, text: &str) -> bool {
        let found = |pattern: &str| Regex::new(pattern).is_ok_and(|regex| regex.is_match(text));
        found(&self.pattern) && !self.except.as_deref().is_some_and(found)
    }
}

fn framework(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Framework> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let description = f.required(d, "description", Decoder::string);
    let python = f.required(d, "python", python);
    let packages = f.optional(d, "packages", pins).unwrap_or_default();
    let packages_alone = f.optional(d, "packages-alone", pins).unwrap_or_default();
    let archive = f.optional(d, "archive", archive);
    let client = f.optional(d, "client", |d, node, name| {
        let file = d.string(node, name)?;
        valid(
            d,
            node,
            is_name(file.trim_end_matches(".py")),
            "a script is a name that ends in .py",
        )?;
        Some(file)
    });
    let environment = f.optional(d, "environment", |d, node, name| {
        let mut all = IndexMap::new();
        for (key, value) in d.entries(node, name) {
            all.extend(template(d, value, key.text()).map(|text| (key.text().to_owned(), text)));
        }
        Some(all)
    });
    let most_concurrency = f.optional(d, "most-concurrency", |d, n, name| d.integer(n, name, 1));
    let exit_codes = f.optional(d, "exit-codes", |d, n, name| {
        d.list(n, name, 1, |d, n| d.integer(n, name, 0))
    });
    let case_file = f.optional(d, "case-file", inner_path);
    let report = f.required(d, "report", report_map);
    let suites = f.required(d, "suites", |d, node, name| {
        let mut all = IndexMap::new();
        for (key, value) in d.entries(node, name) {
            if !is_name(key.text()) {
                d.report(
                    key.span,
                    format!("`{}` is no name of a suite", key.text()),
                    "write letters, digits, - and _",
                );
            }
            all.extend(suite(d, value, key.text()).map(|suite| (key.text().to_owned(), suite)));
        }
        Some(all)
    });
    if !["packages", "packages-alone", "archive", "client"]
        .iter()
        .any(|name| f.has(name))
    {
        d.report(
            node.span,
            format!("`{name}` names nothing that runs"),
            "add `archive`, `packages` or `client`",
        );
    }
    f.finish(d);
    Some(Framework {
        description: description?,
        python: python?,
        packages,
        packages_alone,
        archive,
        client,
        environment: environment.unwrap_or_default(),
        most_concurrency,
        exit_codes: exit_codes.unwrap_or_else(|| vec![0]),
        case_file,
        report: report?,
        suites: suites?,
    })
}

fn suite(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Suite> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let arguments = f.required(d, "arguments", |d, n, name| {
        d.list(n, name, 1, |d, n| template(d, n, name))
    });
    let cases = f.required(d, "cases", |d, n, name| d.integer(n, name, 1));
    let checks = f.required(d, "checks", |d, n, name| d.integer(n, name, 1));
    let deadline_seconds = f.optional(d, "deadline-seconds", |d, n, name| d.integer(n, name, 1));
    let takes_limit = f.optional(d, "takes-limit", Decoder::boolean).unwrap_or_default();
    if let (true, Some(cases), Some(checks)) = (takes_limit, cases, checks)
        && cases != checks
    {
        let message = format!("`{name}` takes a limit, and has {checks} checks of {cases} cases");
        d.report(node.span, message, "a case of such a suite is one check");
    }
    f.finish(d);
    Some(Suite {
        arguments: arguments?,
        cases: cases?,
        checks: checks?,
        deadline_seconds,
        takes_limit,
    })
}

fn archive(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Archive> {
    let mut f: Fields<'_, '_> = d.fields(node, &format!("`{name}`"))?;
    let url = f.required(d, "url", Decoder::string);
    let commit = f.required(d, "ref", Decoder::string);
    let paths = f.required(d, "paths", |d, n, name| {
        d.list(n, name, 1, |d, n| inner_path(d, n, name))
    });
    let sha256 = f.required(d, "sha256", |d, n, name| hex(d, n, name, 64));
    let git_ids = f.optional(d, "git-ids", |d, node, name| {
        let mut all = IndexMap::new();
        for (key, value) in d.entries(node, name) {
            let (path, id) = (inner_path(d, key, name), hex(d, value, key.text(), 40));
            all.extend(path.zip(id));
        }
        Some(all)
    });
    f.finish(d);
    Some(Archive {
        url: url?,
        r#ref: commit?,
        paths: paths?,
        sha256: sha256?,
        git_ids: git_ids.unwrap_or_default(),
    })
}

fn report_map(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<ReportMap> {
    let mut f = d.fields(node, &format!("`{name}`"))?;
    let file = f.required(d, "file", |d, node, name| {
        let file = d.string(node, name)?;
        let staged = file.strip_suffix("_report.json").is_some_and(is_name);
        valid(
            d,
            node,
            staged,
            "a report is staged under a name that ends in _report.json",
        )?;
        Some(file)
    });
    let checks = f.required(d, "checks", pointers);
    let passed = f.required(d, "passed", pointers);
    let of = f.optional(d, "of", pointers).unwrap_or_default();
    let unserved = f.optional(d, "unserved", pointers).unwrap_or_default();
    let unscored = f.optional(d, "unscored", pointer);
    let filter = f.optional(d, "filter", |d, node, name| {
        let text = d.string(node, name)?;
        valid(d, node, is_name(&text), "write letters, digits, - and _")?;
        Some(text)
    });
    let unserved_rows = f.optional(d, "unserved-rows", |d, node, name| {
        let mut f = d.fields(node, &format!("`{name}`"))?;
        let rows = f.required(d, "rows", pointer);
        let text = f.required(d, "text", pointer);
        let pattern = f.required(d, "pattern", expression);
        let except = f.optional(d, "except", expression);
        f.finish(d);
        Some(UnservedRows {
            rows: rows?,
            text: text?,
            pattern: pattern?,
            except,
        })
    });
    let shares = f.optional(d, "shares", |d, node, name| {
        let mut all = IndexMap::new();
        for (key, value) in d.entries(node, name) {
            let mut f = d.fields(value, &format!("`{}`", key.text()))?;
            let (passed, of) = (f.required(d, "passed", pointers), f.required(d, "of", pointers));
            f.finish(d);
            all.extend(
                passed
                    .zip(of)
                    .map(|(passed, of)| (key.text().to_owned(), Share { passed, of })),
            );
        }
        Some(all)
    });
    f.finish(d);
    Some(ReportMap {
        file: file?,
        checks: checks?,
        passed: passed?,
        of,
        unserved,
        unserved_rows,
        unscored,
        filter,
        shares: shares.unwrap_or_default(),
    })
}

fn valid(d: &mut Decoder, node: &Node<'_>, is_valid: bool, rule: &str) -> Option<()> {
    if !is_valid {
        d.report(node.span, format!("`{}` cannot stand here", node.text()), rule);
    }
    is_valid.then_some(())
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

fn python(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    let minor = text.strip_prefix("3.").and_then(|minor| minor.parse::<u32>().ok());
    valid(d, node, minor.is_some(), "write the least version, such as \"3.12\"")?;
    Some(text)
}

/// Requirements with one version each.
fn pins(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Vec<String>> {
    d.list(node, name, 1, |d, node| {
        let text = d.string(node, name)?;
        let pinned = text.split_once("==").is_some_and(|(package, version)| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.+![],".contains(c);
            !package.is_empty()
                && !package.starts_with('-')
                && !version.is_empty()
                && (package.to_owned() + version).chars().all(allowed)
        });
        valid(
            d,
            node,
            pinned,
            "pin it, such as openai==2.14.0: another version changes scores",
        )?;
        Some(text)
    })
}

/// A path within a source.
fn inner_path(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    let inner = Path::new(&text)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    valid(d, node, inner, "write a path within the source, without `..`")?;
    Some(text)
}

fn hex(d: &mut Decoder, node: &Node<'_>, name: &str, digits: usize) -> Option<String> {
    let text = d.string(node, name)?;
    let is_hex = text.len() == digits && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    valid(d, node, is_hex, &format!("write {digits} digits from 0 to f"))?;
    Some(text)
}

fn pointers(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Vec<String>> {
    d.list(node, name, 1, |d, node| pointer(d, node, name))
}

fn pointer(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    valid(
        d,
        node,
        text.starts_with('/'),
        "a JSON pointer starts with /, such as /summary/total",
    )?;
    Some(text)
}

fn expression(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    if let Err(error) = Regex::new(&text) {
        d.report(
            node.span,
            format!("`{name}` is no regular expression: {error}"),
            "see the syntax of the crate regex",
        );
        return None;
    }
    Some(text)
}

/// A text whose placeholders are known.
fn template(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string_or_empty(node, name)?;
    match fill(&text, |name| PLACEHOLDERS.contains(&name).then(String::new)) {
        Ok(_) => Some(text),
        Err(problem) => {
            d.report(node.span, problem.message, problem.hint.unwrap_or_default());
            None
        }
    }
}

/// A text with its placeholders replaced. A `{` that no letter follows, as in JSON, is none.
///
/// # Errors
/// A placeholder that `value` does not know.
pub(crate) fn fill(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, Problem> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let name = rest[1..].split_once('}').map(|(name, _)| name);
        let name = name.filter(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
        let Some(name) = name else {
            out.push('{');
            rest = &rest[1..];
            continue;
        };
        let Some(value) = value(name) else {
            let known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(" ");
            return Err(findings::EVAL_PLACEHOLDER
                .file("", format!("`{{{name}}}` is no placeholder here"))
                .hint(format!("known are {known}")));
        };
        out.push_str(&value);
        rest = &rest[name.len() + 2..];
    }
    out.push_str(rest);
    Ok(out)
}
