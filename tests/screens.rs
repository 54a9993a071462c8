//! What stands on a terminal: the help, and tables on 80 and on 120 columns.

use std::process::Command;

use crate::support::{fleet, project, sweepctl, terminal};

fn command(folder: &std::path::Path, args: &[&str]) -> Command {
    let mut command = sweepctl(folder);
    command.args(args);
    command
}

/// The help of a command on so many columns.
fn help(path: &[&str], columns: u16) -> String {
    let mut command = command(project(), path);
    let output = command.arg("--help").env("COLUMNS", columns.to_string()).output();
    String::from_utf8(output.expect("the binary runs").stdout).expect("text")
}

#[test]
fn the_help_is_a_table_of_contents_that_fits_a_screen() {
    let text = help(&[], 80);
    assert!(text.lines().count() <= 50, "{} lines", text.lines().count());
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    insta::with_settings!({
        snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!("help_80", text);
    });
}

/// Every command and subcommand, as its words, from what the completions know.
fn commands() -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut open: Vec<Vec<String>> = help(&[], 80)
        .lines()
        .filter(|line| line.starts_with("  "))
        .filter_map(
            |line| match line.contains(", ") && line.split(", ").all(|word| !word.trim().contains(' ')) {
                true => Some(line.trim().split(", ").map(str::to_owned).collect::<Vec<_>>()),
                false => line.split_whitespace().next().map(|word| vec![word.to_owned()]),
            },
        )
        .flatten()
        .filter(|word| word != "help" && word != "sweepctl" && word.starts_with(|c: char| c.is_ascii_lowercase()))
        .map(|word| vec![word])
        .collect();
    while let Some(path) = open.pop() {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let text = help(&words, 80);
        let inner = text.lines().skip_while(|line| *line != "Commands:").skip(1);
        for line in inner.take_while(|line| !line.is_empty()) {
            let name = line.strip_prefix("  ").filter(|name| !name.starts_with(' '));
            if let Some(name) = name
                .and_then(|line| line.split_whitespace().next())
                .filter(|name| *name != "help")
            {
                open.push([path.clone(), vec![name.to_owned()]].concat());
            }
        }
        found.push(path);
    }
    found
}

#[test]
fn no_help_is_wrapped_twice_or_gives_a_default_twice() {
    let commands = commands();
    assert!(commands.len() > 40, "{commands:?}");
    for path in commands {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let text = help(&words, 80);
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2) {
            let [line, next] = pair else { continue };
            let is_prose = |line: &str| line.starts_with(|c: char| c.is_alphabetic()) && !line.starts_with("Usage:");
            if !is_prose(line) || !is_prose(next) {
                continue;
            }
            let word = next.split(' ').next().unwrap_or_default();
            assert!(
                line.chars().count() + 1 + word.chars().count() > 80,
                "{path:?}: broken before it is full:\n{line}\n{next}"
            );
        }
        for option in text.split("\n\n") {
            let defaults = option.matches("[default:").count();
            let options = option
                .lines()
                .filter(|line| line.trim_start().starts_with(['-', '[', '<']))
                .count();
            assert!(defaults <= options.max(1), "{path:?}: {option}");
        }
        assert!(!text.contains("] [default"), "{path:?}: {text}");
        let examples = text.lines().skip_while(|line| !line.starts_with("Example")).skip(1);
        for line in examples.filter(|line| !line.is_empty() && !line.starts_with("More: ")) {
            let starts = ["  sweepctl ", "  exec ", "  git ", "      "];
            assert!(starts.iter().any(|start| line.starts_with(start)), "{path:?}: {line}");
        }
    }
}

#[test]
fn tables_fit_80_and_120_columns() {
    let fleet = fleet::repository();
    let at = fleet.path();
    terminal::held("screen_plan", &command(at, &["plan", "--latest"]));
    terminal::held("screen_plan_summary", &command(at, &["plan", "--latest", "--summary"]));
    terminal::held("screen_explain", &command(at, &["explain"]));
    terminal::held(
        "screen_generate",
        &command(at, &["generate", "full-sweep", "--max-conc", "16"]),
    );
    terminal::held("screen_check", &command(at, &["check"]));
}

#[test]
fn states_are_coloured_on_a_terminal_unless_colours_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut launch = command(project(), &["workflow", "simulate"]);
    launch.arg("--event").arg(fleet::fixture("events/merge_group.json"));
    launch.env("NO_COLOR", "1");
    assert!(!terminal::shown(&launch, 120).contains('\u{1b}'), "NO_COLOR");
    launch.env_remove("NO_COLOR").env("CLICOLOR", "0");
    assert!(!terminal::shown(&launch, 120).contains('\u{1b}'), "CLICOLOR=0");
    launch.env("CLICOLOR", "1").env("TERM", "xterm");
    let shown = terminal::shown(&launch, 120);
    // Green, and a plain word beside it.
    assert!(
        shown.contains("\u{1b}[38;5;10msuccess") || shown.contains("\u{1b}[32msuccess"),
        "{shown:?}"
    );
    drop(folder);
}
