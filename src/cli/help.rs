//! `sweepctl --help`: the commands under headings, as a table of contents that fits a screen.

use clap::{Command, CommandFactory};

use super::{Cli, docs};

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
        commands: &["decide", "dispatch", "reuse", "baseline", "comment", "stats"],
        more: &[],
    },
    Heading {
        title: "Workflows and configs",
        commands: &["render", "workflow", "changelog", "schema", "mock-server", "docs"],
        more: &["shell-library", "recipe", "findings", "completions", "man", "help"],
    },
    Heading {
        title: "Steps of workflows",
        commands: &[
            "launch", "eval", "result", "upload", "collect", "gate", "verdict", "clean",
        ],
        more: &[
            "dispatch-plan",
            "priority",
            "shard",
            "envelope",
            "job",
            "throughput",
            "ingest",
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
    let command = with_pages(Cli::command());
    let template = format!("{ABOVE}{}\n{}", contents(&command), options(&command));
    command.help_template(template)
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
