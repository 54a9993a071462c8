//! `sweepctl --help`: the commands under headings, as a table of contents that fits a screen.

use clap::builder::Resettable;
use clap::{Command, CommandFactory};

use super::table::Screen;
use super::{Cli, MAX_WIDTH, docs};

/// How a line of usage starts.
const USAGE: &str = "Usage: ";
/// The width of help where nobody knows the terminal's, which is clap's.
const DEFAULT_WIDTH: usize = 100;

/// A part of the table of contents.
struct Heading {
    title: &'static str,
    /// One a line, with its summary.
    commands: &'static [&'static str],
    /// Named on one line.
    more: &'static [&'static str],
}

/// Every command stands under one heading, those that people type first; a test holds the list against the commands.
const HEADINGS: [Heading; 4] = [
    Heading {
        title: "Everyday commands",
        commands: &["plan", "run", "check", "explain", "generate", "compare", "init"],
        more: &[],
    },
    Heading {
        title: "GitHub",
        commands: &["decide", "dispatch", "watch", "triage"],
        more: &["recover", "provenance", "reuse", "stats", "baseline", "comment"],
    },
    Heading {
        title: "Workflows and configs",
        commands: &["render", "workflow", "changelog", "mock-server", "docs"],
        more: &[
            "shell-library",
            "findings",
            "evidence",
            "recipe",
            "schema",
            "completions",
            "man",
            "help",
        ],
    },
    Heading {
        title: "Steps of workflows",
        commands: &[
            "launch", "agentic", "eval", "result", "upload", "collect", "verdict", "clean",
        ],
        more: &[
            "gate",
            "dispatch-plan",
            "priority",
            "shard",
            "envelope",
            "job",
            "throughput",
            "ingest",
            "fetch",
        ],
    },
];

const ABOVE: &str = "\
{about}

{usage-heading} {usage}
";

const BELOW: &str = "\
{options}

Help of one command: sweepctl COMMAND --help
Exit codes: 0 done, 1 refused or failed, 2 wrong usage; of `launch` also 70
host, 71 preflight, 72 engine, 73 benchmark, 74 eval gate (`launch --help`).
Output is a table on a terminal, and JSON when piped or with --json.
";

/// The command line, with the table of contents as its help.
pub(super) fn command() -> Command {
    let command = in_its_place(with_pages(Cli::command()));
    let command = match Screen::width_of_stdout() {
        Some(width) => command.term_width(usize::from(width).min(MAX_WIDTH)),
        None => command,
    };
    let template = format!("{ABOVE}{}\n{}", contents(&command), options(&command));
    command.help_template(template)
}

/// A help or an error of usage, with the lines of usage in the width of the terminal: clap wraps all others.
pub(super) fn with_wrapped_usage(text: &str) -> String {
    let width = Screen::width_of_stdout()
        .map_or(DEFAULT_WIDTH, usize::from)
        .min(MAX_WIDTH);
    let wrapped = text.split_inclusive('\n').map(|line| {
        let plain = anstream::adapter::strip_str(line).to_string();
        match plain.starts_with(USAGE) && plain.trim_end().chars().count() > width {
            true => wrapped(line, width),
            false => line.to_owned(),
        }
    });
    wrapped.collect()
}

/// A line of usage in several, each behind the word that starts it; escape sequences take no room.
fn wrapped(line: &str, width: usize) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for word in line.split(' ') {
        let shown = anstream::adapter::strip_str(word.trim_end())
            .to_string()
            .chars()
            .count();
        if column > 0 && column + 1 + shown > width {
            out.push_str(&format!("\n{}", " ".repeat(USAGE.len())));
            column = USAGE.len();
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += shown;
    }
    out
}

/// What is said of every command's output and requests, and not of how to sweep, whatever stands before it.
const OF_COMMANDS: [&str; 4] = ["json", "repo", "dry_run", "yes"];

/// What changes the jobs of an emitted plan alone, where a command has `--emit`.
const OF_EMITTED_JOBS: [&str; 6] = [
    "fail_fast",
    "agentx_fast",
    "duration",
    "eval_framework",
    "eval_suite",
    "eval_limit",
];

/// Arguments under the headings that they belong to, and with what they need.
fn in_its_place(command: Command) -> Command {
    let emits = command.get_arguments().any(|arg| arg.get_id() == "emit");
    let command = command.mut_args(|arg| {
        let is = |names: &[&str]| names.iter().any(|name| arg.get_id() == name);
        if is(&OF_COMMANDS) {
            return arg.help_heading(Resettable::Reset);
        }
        match arg.get_help().filter(|_| emits && is(&OF_EMITTED_JOBS)) {
            Some(help) => {
                let help = format!("{help}; needs --emit");
                arg.help(help)
            }
            None => arg,
        }
    });
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    names
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, in_its_place))
}

/// Names in the help of each command the page that says more.
fn with_pages(mut command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    for name in names {
        let Some(page) = docs::of_command(&name) else { continue };
        command = command.mut_subcommand(name, |command| {
            let own = command.get_after_help().map(|help| format!("{}\n\n", help.ansi()));
            let more = format!("{}More: sweepctl docs {page}", own.unwrap_or_default());
            command.after_help(more)
        });
    }
    command
}

fn options(command: &Command) -> String {
    let header = command.get_styles().get_header();
    format!("{header}Options:{header:#}\n{BELOW}")
}

fn contents(command: &Command) -> String {
    let shown = HEADINGS.iter().flat_map(|heading| heading.commands);
    let width = shown.map(|name| name.len()).max().unwrap_or_default();
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let mut text = String::new();
    for heading in &HEADINGS {
        text.push_str(&format!("\n{header}{}:{header:#}\n", heading.title));
        for name in heading.commands {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {literal}{name:width$}{literal:#}  {about}\n"));
        }
        if !heading.more.is_empty() {
            text.push_str(&format!("  {literal}{}{literal:#}\n", heading.more.join(", ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_under_one_heading() {
        let mut command = Cli::command();
        command.build();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut wanted: Vec<&str> = shown.map(Command::get_name).collect();
        let listed = HEADINGS
            .iter()
            .flat_map(|heading| heading.commands.iter().chain(heading.more));
        let mut listed: Vec<&str> = listed.copied().collect();
        wanted.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, wanted);
    }
}
