//! The commands: one file each, with its arguments and the call it makes.

pub(crate) mod agentic;
mod agentic_run;
mod agentic_watch;
pub(crate) mod annotate;
pub(crate) mod baseline;
pub(crate) mod changelog;
pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod client;
pub(crate) mod collect;
mod collect_sweep;
pub(crate) mod comment;
mod comment_changes;
pub(crate) mod compare;
pub(crate) mod decide;
pub(crate) mod dispatch;
pub(crate) mod dispatch_plan;
mod dispatch_preview;
pub(crate) mod docs;
pub(crate) mod envelope;
pub(crate) mod envelope_file;
pub(crate) mod eval;
pub(crate) mod eval_calibrate;
pub(crate) mod eval_validate;
pub(crate) mod evidence;
pub(crate) mod explain;
pub(crate) mod fetch;
pub(crate) mod findings;
pub(crate) mod format;
pub(crate) mod gate;
pub(crate) mod generate;
mod help;
pub(crate) mod ingest;
pub(crate) mod init;
pub(crate) mod inputs;
pub(crate) mod job;
pub(crate) mod launch;
pub(crate) mod library;
pub(crate) mod mock_server;
pub(crate) mod output;
mod own_command;
pub(crate) mod plan;
pub(crate) mod priority;
pub(crate) mod provenance;
mod published;
mod queue;
pub(crate) mod recipe;
pub(crate) mod recover;
pub(crate) mod render;
pub(crate) mod replay_of_script;
mod replay_result;
pub(crate) mod result;
pub(crate) mod reuse;
pub(crate) mod rows;
pub(crate) mod run;
mod run_plan;
mod runnable;
pub(crate) mod schema;
pub(crate) mod shard;
pub(crate) mod shell_library;
pub(crate) mod simulate;
pub(crate) mod stats;
mod table;
pub(crate) mod throughput;
pub(crate) mod triage;
pub(crate) mod upload;
pub(crate) mod verdict;
pub(crate) mod watch;
pub(crate) mod workflow;

use std::io::Write;
use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};

use crate::config::draw;
use crate::config::problem::{Problem, Problems, printable};
use crate::findings::refusals;
use crate::process::harmless;
use crate::step::launch::failure::Failure;
use format::Asked;

/// The widest that help is.
const MAX_WIDTH: usize = 110;

/// Done.
pub const DONE: u8 = 0;
/// Refused or failed.
pub const REFUSED: u8 = 1;
/// Wrong usage.
pub const USAGE: u8 = 2;

/// Decides, runs and gates LLM benchmark and accuracy sweeps on GitHub Actions
#[derive(Debug, Parser)]
#[command(name = "sweepctl", version = env!("SWEEPCTL_VERSION"), about, max_term_width = MAX_WIDTH)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the jobs that a change of the changelog asks for
    Plan(plan::PlanArgs),
    /// Print the rows of configs, without a changelog
    #[command(subcommand)]
    Generate(generate::Generate),
    /// Show which rule takes each row for evaluation, or why none does
    Explain(explain::Explain),
    /// Plan what a dispatch form asks for: a comparison, or a generator command
    DispatchPlan(dispatch_plan::DispatchPlan),
    /// Print one shard of an emitted plan
    Shard(shard::Shard),
    Priority(priority::PriorityArgs),
    /// Check what a change does to perf-changelog.yaml, and repair it
    #[command(subcommand)]
    Changelog(changelog::ChangelogCommand),
    /// Print what one job's steps need
    #[command(subcommand)]
    Job(job::Job),
    /// Decide whether an event starts a sweep, and print why
    Decide(decide::Decide),
    /// Decide whether a job behind optional ones runs
    Gate(gate::GateArgs),
    /// Fail unless everything that was planned ran
    Verdict(verdict::VerdictArgs),
    /// Start a sweep of a pull request, or of a generator command
    Dispatch(Box<dispatch::Dispatch>),
    /// Watch a run: its jobs by state, what waits, what failed
    Watch(watch::Watch),
    /// Tell why jobs of a run failed, and run those again that may be
    Triage(triage::Triage),
    /// Do what is missing of a run's collection, check and announcement
    Recover(recover::Recover),
    /// Print what a run's results come from, as one JSON
    Provenance(provenance::Provenance),
    /// Decide whether a push takes over the results of a pull request
    Reuse(reuse::ReuseArgs),
    /// Write or update the sweep's comment on its pull request
    Comment(comment::CommentArgs),
    /// Print how long a run's jobs waited and ran, and their GPU hours
    Stats(stats::Stats),
    /// Notify another repository of new results
    Ingest(ingest::Ingest),
    /// Find the run that new results are compared with
    Baseline(baseline::BaselineArgs),
    /// Write the envelope of a job from standard input to a file for its steps
    Envelope(envelope::OpenEnvelope),
    /// Write the workflows from templates and configs
    Render(render::Render),
    /// Write accuracy benchmarks into srt-slurm recipes, and check them
    #[command(subcommand)]
    Recipe(recipe::RecipeCommand),
    /// Check workflow files, and simulate their runs
    #[command(subcommand)]
    Workflow(workflow::Workflow),
    /// Write starter configs, changelog and workflows to a repository
    Init(init::Init),
    /// Print or write the shell library that launch scripts call
    ShellLibrary(shell_library::ShellLibrary),
    /// What the functions of the shell library call
    #[command(subcommand, hide = true)]
    Library(Box<library::Library>),
    /// Check the configs and the changelog of a repository
    Check(check::Check),
    /// Print a page of the documentation, or list the pages
    Docs(docs::Docs),
    /// List what can be found, by id
    Findings(findings::Findings),
    /// Print the JSON Schema of a kind of file
    Schema(schema::Schema),
    /// Print the completion script of a shell
    Completions(schema::Completions),
    /// Print or write the manual pages
    Man(schema::Man),
    /// Serve an OpenAI-compatible API that answers evals without a GPU
    MockServer(mock_server::MockServer),
    /// Process the result of a throughput job
    #[command(subcommand)]
    Result(result::ResultCommand),
    Fetch(fetch::Fetch),
    /// Gather the results of all jobs
    #[command(subcommand)]
    Collect(collect::Collect),
    /// Show what changed between two collections of results
    Compare(compare::Compare),
    Evidence(evidence::Evidence),
    /// Size, run and validate an accuracy eval
    #[command(subcommand)]
    Eval(eval::Eval),
    /// Replay recorded conversations
    #[command(subcommand)]
    Agentic(agentic::Agentic),
    Run(run::Run),
    Launch(Box<launch::Launch>),
    Throughput(throughput::Throughput),
    Upload(upload::Upload),
    Clean(clean::Clean),
}

/// The command, and the form in which its findings are asked for.
fn parse() -> Result<(Asked, Cli), clap::Error> {
    let matches = help::command().try_get_matches()?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut help::command()))?;
    Ok((Asked::of(&matches), cli))
}

/// Parses the arguments, runs the command and maps its error to an exit code.
#[must_use]
pub fn main() -> ExitCode {
    let (asked, cli) = match parse() {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help and version are no errors.
            let code = if error.use_stderr() { USAGE } else { DONE };
            print(&error);
            return ExitCode::from(code);
        }
    };
    let result = match cli.command {
        Command::Plan(plan) => plan.run(),
        Command::Generate(generate) => generate.run(),
        Command::Explain(explain) => explain.run(),
        Command::DispatchPlan(plan) => plan.run(),
        Command::Shard(shard) => shard.run(),
        Command::Priority(priority) => priority.run(),
        Command::Changelog(changelog) => changelog.run(),
        Command::Job(job) => job.run(),
        Command::Decide(decide) => decide.run(),
        Command::Gate(gate) => gate.run(),
        Command::Verdict(verdict) => verdict.run(),
        Command::Dispatch(dispatch) => dispatch.run(),
        Command::Watch(watch) => watch.run(),
        Command::Triage(triage) => triage.run(),
        Command::Recover(recover) => recover.run(),
        Command::Provenance(provenance) => provenance.run(),
        Command::Reuse(reuse) => reuse.run(),
        Command::Comment(comment) => comment.run(),
        Command::Stats(stats) => stats.run(),
        Command::Ingest(ingest) => ingest.run(),
        Command::Baseline(baseline) => baseline.run(),
        Command::Envelope(envelope) => envelope.run(),
        Command::Render(render) => render.run(),
        Command::Recipe(recipe) => recipe.run(),
        Command::Workflow(workflow) => workflow.run(),
        Command::Init(init) => init.run(),
        Command::ShellLibrary(library) => library.run(),
        Command::Library(library) => library.run(),
        Command::Check(check) => check.run(),
        Command::Docs(docs) => docs.run(),
        Command::Findings(findings) => findings.run(),
        Command::Schema(schema) => schema.run(),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
        Command::MockServer(server) => server.run(),
        Command::Result(result) => result.run(),
        Command::Fetch(fetch) => fetch.run(),
        Command::Collect(collect) => collect.run(),
        Command::Compare(compare) => compare.run(),
        Command::Evidence(evidence) => evidence.run(),
        Command::Eval(eval) => eval.run(),
        Command::Agentic(agentic) => agentic.run(),
        Command::Run(run) => run.run(),
        Command::Launch(launch) => launch.run(),
        Command::Throughput(throughput) => throughput.run(),
        Command::Upload(upload) => upload.run(),
        Command::Clean(clean) => clean.run(),
    };
    match result {
        Ok(()) => ExitCode::from(DONE),
        Err(error) => ExitCode::from(report(&error, &asked)),
    }
}

fn report(error: &anyhow::Error, asked: &Asked) -> u8 {
    if let Some(usage) = error.downcast_ref::<clap::Error>() {
        print(usage);
        return USAGE;
    }
    if let Some(failure) = error.downcast_ref::<Failure>() {
        report_problems(&failure.problems, asked);
        annotate::summarize_rest(&failure.problems.0);
        return failure.kind.code();
    }
    if let Some(Told(problems)) = error.downcast_ref() {
        report_problems(problems, asked);
    } else if let Some(problems) = error.downcast_ref::<Problems>() {
        report_problems(problems, asked);
        annotate::summarize_rest(&problems.0);
    } else {
        let problem = refusals::COMMAND.file("", format!("{error:#}"));
        anstream::eprintln!("{}", draw::styled(&problem));
        print_findings(asked, &[problem]);
    }
    REFUSED
}

/// Prints help, or an error of usage. Those quote arguments, and one with control characters must neither reach a terminal
/// as it is nor start a line that the runner takes for a command.
fn print(error: &clap::Error) {
    if !std::env::args().any(|argument| argument.chars().any(char::is_control)) {
        let text = help::with_wrapped_usage(&error.render().ansi().to_string());
        match error.use_stderr() {
            true => anstream::eprint!("{text}"),
            // A reader that went away ends the output.
            false => drop(write!(anstream::stdout(), "{text}")),
        }
        return;
    }
    for line in error.render().to_string().lines() {
        anstream::eprintln!("{}", printable(&harmless(line)));
    }
}

/// Problems that the step summary holds already.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Told(Problems);

/// Problems for people; on Actions they are annotations too.
fn report_problems(problems: &Problems, asked: &Asked) {
    if !asked.replaces_text() {
        anstream::eprintln!("{}", draw::all_styled(problems));
    }
    annotate::problems(&problems.0);
    print_findings(asked, &problems.0);
}

/// Findings for programs, on standard output.
fn print_findings(asked: &Asked, problems: &[Problem]) {
    if let Err(error) = format::findings(asked, problems) {
        anstream::eprintln!(
            "{}",
            refusals::COMMAND.file("", format!("the findings cannot be printed: {error}"))
        );
    }
}

/// A usage error that clap's own rules cannot express, with the usage of the command that was called.
fn usage(kind: clap::error::ErrorKind, message: impl std::fmt::Display) -> anyhow::Error {
    let mut root = help::command();
    root.build();
    let matches = root.clone().try_get_matches().ok();
    let mut command = &mut root;
    let mut called = matches.as_ref().and_then(clap::ArgMatches::subcommand);
    while let Some((name, inner)) = called {
        let Some(index) = command.get_subcommands().position(|known| known.get_name() == name) else {
            break;
        };
        let Some(next) = command.get_subcommands_mut().nth(index) else {
            unreachable!("it was found there")
        };
        (command, called) = (next, inner.subcommand());
    }
    command.error(kind, message).into()
}
