//! `sweepctl docs`: the pages of the documentation, which travel in the binary.

use clap::Args;
use serde::Serialize;

use super::output;
use crate::config::problem::{Problem, Problems, nearest};

macro_rules! pages {
    ($($name:literal),+ $(,)?) => {
        /// The pages by name; a test holds the list against the folder.
        const PAGES: &[Page] =
            &[$(Page { name: $name, text: include_str!(concat!("../../docs/", $name, ".md")) }),+];
    };
}

pages! {
    "accuracy",
    "adopting",
    "agentic",
    "coming-from-inferencex",
    "configs",
    "engines",
    "eval-policy",
    "evals",
    "evidence",
    "fetch",
    "findings",
    "gate",
    "labels",
    "launch",
    "results",
    "runs",
    "shell-library",
    "vendor-suites",
    "workflows",
}

/// What commands have a page of their own that says more than their help.
const OF_COMMANDS: &[(&str, &str)] = &[
    ("agentic", "agentic"),
    ("changelog", "configs"),
    ("check", "configs"),
    ("clean", "launch"),
    ("collect", "results"),
    ("compare", "results"),
    ("decide", "labels"),
    ("dispatch", "labels"),
    ("eval", "evals"),
    ("evidence", "evidence"),
    ("explain", "eval-policy"),
    ("fetch", "fetch"),
    ("findings", "findings"),
    ("generate", "configs"),
    ("init", "adopting"),
    ("job", "launch"),
    ("launch", "launch"),
    ("mock-server", "evals"),
    ("plan", "configs"),
    ("provenance", "runs"),
    ("recover", "runs"),
    ("recipe", "accuracy"),
    ("render", "workflows"),
    ("result", "results"),
    ("reuse", "labels"),
    ("run", "launch"),
    ("schema", "configs"),
    ("stats", "runs"),
    ("throughput", "results"),
    ("triage", "runs"),
    ("upload", "results"),
    ("verdict", "workflows"),
    ("watch", "runs"),
    ("workflow", "workflows"),
];

/// A page.
struct Page {
    name: &'static str,
    text: &'static str,
}

impl Page {
    /// Its first heading.
    fn title(&self) -> &'static str {
        let heading = self.text.lines().find_map(|line| line.strip_prefix("# "));
        heading.unwrap_or(self.name)
    }
}

/// The page of a command.
#[must_use]
pub(crate) fn of_command(command: &str) -> Option<&'static str> {
    OF_COMMANDS
        .iter()
        .find(|(name, _)| *name == command)
        .map(|(_, page)| *page)
}

/// `sweepctl docs`
#[derive(Debug, Args)]
pub(crate) struct Docs {
    /// The page, as it is listed without one
    #[arg(value_name = "PAGE")]
    page: Option<String>,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Line {
    page: &'static str,
    title: &'static str,
}

impl Docs {
    /// Prints a page, or the list of pages.
    ///
    /// # Errors
    /// A page that there is not.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let Some(wanted) = &self.page else {
            return self.list();
        };
        let name = wanted.strip_suffix(".md").unwrap_or(wanted);
        let Some(page) = PAGES.iter().find(|page| page.name == name) else {
            let hint = nearest(name, PAGES.iter().map(|page| page.name));
            let problem = Problem::file("", format!("there is no page `{name}`"));
            return Err(Problems::from(problem.hint(format!("{hint}; `sweepctl docs` lists all"))).into());
        };
        if self.json {
            return output::json(&serde_json::json!({ "page": page.name, "title": page.title(), "text": page.text }));
        }
        output::text(page.text)
    }

    fn list(&self) -> anyhow::Result<()> {
        let lines = PAGES.iter().map(|page| Line {
            page: page.name,
            title: page.title(),
        });
        if output::wants_json(self.json) {
            return output::json(&lines.collect::<Vec<_>>());
        }
        let rows: Vec<Vec<String>> = lines
            .map(|line| vec![line.page.to_owned(), line.title.to_owned()])
            .collect();
        output::text(&output::table(&["page", "about"], &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_travels() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/docs")).expect("the docs");
        let mut files: Vec<String> = folder
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
            .collect();
        files.sort();
        let names: Vec<&str> = PAGES.iter().map(|page| page.name).collect();
        assert_eq!(names, files);
        for (command, page) in OF_COMMANDS {
            assert!(names.contains(page), "{command}: {page}");
        }
        for page in PAGES {
            assert!(page.text.starts_with("# "), "{}", page.name);
        }
    }
}
