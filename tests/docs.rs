//! The examples of the documentation: files load as what they say they are, commands run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use sweepctl::config::kind::Kind;
use sweepctl::config::source::Source;

use crate::support::{project, sweepctl};

/// A fenced block of a Markdown file.
struct Block {
    place: String,
    info: Vec<String>,
    text: String,
}

/// README.md and every page under docs/.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![project().join("README.md")];
    let docs = std::fs::read_dir(project().join("docs")).into_iter().flatten();
    pages.extend(docs.filter_map(|entry| Some(entry.ok()?.path())));
    pages.retain(|page| page.extension().is_some_and(|end| end == "md") && page.is_file());
    pages.sort();
    pages
}

fn blocks() -> Vec<Block> {
    pages().iter().flat_map(|page| blocks_of(page)).collect()
}

fn blocks_of(page: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(page).expect("a page");
    let name = page.strip_prefix(project()).unwrap_or(page).display().to_string();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open.as_mut()) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(info), None) => {
                open = Some(Block {
                    place: format!("{name}:{}", index + 1),
                    info: info.split_whitespace().map(str::to_owned).collect(),
                    text: String::new(),
                });
            }
            (None, Some(block)) => block.text.push_str(&format!("{line}\n")),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{name}: a fence is not closed");
    blocks
}

#[test]
fn yaml_examples_load_or_are_refused_as_they_say() {
    let mut tried = 0;
    for block in blocks() {
        let info: Vec<&str> = block.info.iter().map(String::as_str).collect();
        let ["yaml", kind, rest @ ..] = info.as_slice() else {
            continue;
        };
        if *kind == "task" {
            // lm-eval's own format: the eval's tests run it.
            continue;
        }
        let Some(kind) = Kind::ALL.into_iter().find(|k| k.name() == *kind) else {
            panic!("{}: no kind of file is named `{kind}`", block.place);
        };
        let refused = match rest {
            [] => false,
            ["refused"] => true,
            other => panic!("{}: unknown words {other:?}", block.place),
        };
        let source = Arc::new(Source::new(block.place.clone(), block.text));
        match kind.check(&source) {
            Ok(_) => assert!(!refused, "{}: it is not refused", block.place),
            Err(problems) => assert!(refused, "{}: {problems}", block.place),
        }
        tried += 1;
    }
    assert!(tried > 0, "no example was found");
}

/// A word of capital letters that stands for something of the reader's own.
fn has_placeholder(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_') && word != "HEAD")
}

/// Runs the commands of a block one after another in one shell folder, as a reader would.
fn run_block(block: &Block, folder: &Path) {
    let lines: Vec<&str> = block.text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        // The README builds first; the tests have built already.
        let command = &command.replacen("cargo run --release -- ", "sweepctl ", 1);
        let next = lines.get(index + 1).and_then(|next| next.strip_prefix("[exit "));
        let wanted: i32 = next.map_or(0, |code| code.trim_end_matches(']').parse().expect("[exit N]"));
        let binary = Path::new(env!("CARGO_BIN_EXE_sweepctl")).parent().expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", command])
            .current_dir(folder)
            .env("PATH", format!("{}:{path}", binary.display()))
            .env("NO_COLOR", "1")
            .env_remove("GITHUB_ACTIONS")
            .output()
            .expect("bash runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(wanted),
            "{}: `{command}`\n{said}",
            block.place
        );
    }
}

#[test]
fn console_examples_run() {
    let copy = tempfile::tempdir().expect("a folder");
    let folder = copy.path().join("project");
    clone_of_the_project(&folder);
    for block in blocks() {
        let info: Vec<&str> = block.info.iter().map(String::as_str).collect();
        match info.as_slice() {
            ["console"] => run_block(&block, &folder),
            ["console", "no-run"] => {
                assert!(
                    has_placeholder(&block.text),
                    "{}: `no-run` is for commands with a placeholder such as BASE",
                    block.place
                );
            }
            ["console", other @ ..] => panic!("{}: unknown words {other:?}", block.place),
            _ => {}
        }
    }
}

/// The project as it is now, with one commit, so that examples write nothing into the project itself.
fn clone_of_the_project(folder: &Path) {
    use crate::support::{commit, git};
    let files = git(project(), &["ls-files", "-co", "--exclude-standard"]);
    for file in files.lines().filter(|file| !file.starts_with("target/")) {
        let from = project().join(file);
        if from.is_file() {
            let to = folder.join(file);
            std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            std::fs::copy(from, to).expect("a copy");
        }
    }
    git(folder, &["init", "-q"]);
    commit(folder, "The project");
}

#[test]
fn help_names_every_command_that_the_pages_name() {
    let help = sweepctl(project()).arg("--help").output().expect("the binary runs");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let commands: Vec<&str> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .flat_map(|line| match line.contains("  ") {
            true => line.split_whitespace().take(1).collect::<Vec<_>>(),
            false => line.split(", ").collect(),
        })
        .collect();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for (_, rest) in text
            .match_indices("`sweepctl ")
            .map(|(at, m)| text[at..].split_at(m.len()))
        {
            let word: String = rest
                .chars()
                .take_while(|c| c.is_ascii_lowercase() || *c == '-')
                .collect();
            assert!(
                word.is_empty() || commands.contains(&word.as_str()),
                "{}: there is no command `sweepctl {word}`",
                page.display()
            );
        }
    }
}

#[test]
fn pages_travel_in_the_binary() {
    let print = |args: &[&str]| {
        let output = sweepctl(project()).args(args).output().expect("the binary runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let launch = std::fs::read_to_string(project().join("docs/launch.md")).expect("a page");
    for name in ["launch", "launch.md"] {
        assert_eq!(print(&["docs", name]), (Some(0), launch.clone(), String::new()));
    }
    let (code, list, _) = print(&["docs", "--json"]);
    assert_eq!(code, Some(0));
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let named = |page: &str| {
        list.as_array()
            .is_some_and(|all| all.iter().any(|line| line["page"] == page))
    };
    assert!(named("coming-from-inferencex") && named("launch"), "{list}");
    let (code, _, error) = print(&["docs", "lanch"]);
    assert!(code == Some(1) && error.contains("launch"), "{error}");
    for (command, page) in [("launch", "launch"), ("init", "adopting"), ("eval", "evals")] {
        let (_, help, _) = print(&[command, "--help"]);
        assert!(
            help.contains(&format!("More: sweepctl docs {page}")),
            "{command}: {help}"
        );
    }
}
