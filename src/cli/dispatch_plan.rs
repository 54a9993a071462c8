//! `sweepctl dispatch-plan`: what a dispatch form asks for, as a plan.

use clap::{ArgGroup, Args, FromArgMatches, Subcommand, error::ErrorKind};

use super::generate::Generate;
use super::plan::PlanArgs;
use super::usage;
use crate::config::asked::{Asked, Refs};

const HELP: &str = "\
The command is split into words as a shell would split it, and read as arguments of `sweepctl generate`. Nothing else \
happens to it: no variable, substitution or redirection has a meaning here.

Examples:
  sweepctl dispatch-plan --emit plan --generate \"full-sweep --max-conc 16\"
  sweepctl dispatch-plan --base-ref main --head-ref topic --emit plan";

/// `sweepctl dispatch-plan`
#[derive(Debug, Args)]
#[command(after_help = HELP, group = ArgGroup::new("what").required(true).args(["generate", "base_ref"]))]
pub(crate) struct DispatchPlan {
    /// Arguments of `sweepctl generate`, on one line
    #[arg(long, value_name = "COMMAND")]
    generate: Option<String>,
    #[command(flatten)]
    refs: Refs,
    /// What is asked of the sweep as flags on one line, for a form with few inputs: `--trim-conc --eval-limit=full`
    #[arg(long, value_name = "FLAGS", default_value = "", hide_default_value = true)]
    asked: String,
    /// Flags that `plan` and `generate` share: --emit, --github-output, --trim-conc, --duration, ...
    #[arg(value_name = "FLAGS", trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<String>,
}

/// What a form's command may not say: where the plan is written is the workflow's business.
const RESERVED: [&str; 3] = ["--emit", "--github-output", "--json"];

impl DispatchPlan {
    /// Plans or generates.
    ///
    /// # Errors
    /// Wrong usage, and everything wrong with the inputs.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let flags: Vec<String> = asked(&self.asked)?
            .flags()
            .into_iter()
            .chain(self.flags.clone())
            .collect();
        match &self.generate {
            Some(command) => parsed(command, &flags)?.run(),
            None => PlanArgs::read(self.refs.flags().into_iter().chain(flags))?.run(),
        }
    }
}

/// What one line of flags asks of a sweep; nothing else is a flag there.
fn asked(line: &str) -> anyhow::Result<Asked> {
    let Some(words) = shlex::split(line) else {
        let message = format!("--asked `{line}` has a quote that is not closed");
        return Err(usage(ErrorKind::ValueValidation, message));
    };
    let command = Asked::augment_args(clap::Command::new("--asked").no_binary_name(true));
    let matches = command.try_get_matches_from(words)?;
    Ok(Asked::from_arg_matches(&matches)?)
}

/// A form's command with flags, read as arguments of `sweepctl generate`.
///
/// # Errors
/// Quotes that are not closed, flags that a form may not give, and wrong usage.
pub(super) fn parsed(command: &str, flags: &[String]) -> anyhow::Result<Generate> {
    let Some(words) = shlex::split(command) else {
        let message = format!("--generate `{command}` has a quote that is not closed");
        return Err(usage(ErrorKind::ValueValidation, message));
    };
    let is_reserved = |word: &&String| {
        let flag = word.split('=').next().unwrap_or_default();
        // Clap takes the first letters of a flag for the flag only where it is told to, which it is not here.
        RESERVED.contains(&flag)
    };
    if let Some(word) = words.iter().find(is_reserved) {
        return Err(usage(
            ErrorKind::ValueValidation,
            format!("--generate may not hold `{word}`"),
        ));
    }
    let args = ["generate".to_owned()]
        .into_iter()
        .chain(words)
        .chain(flags.iter().cloned());
    let generate = clap::Command::new("generate").subcommand_required(true);
    let matches = Generate::augment_subcommands(generate).try_get_matches_from(args)?;
    Ok(Generate::from_arg_matches(&matches)?)
}
