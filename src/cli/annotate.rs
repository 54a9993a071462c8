//! Problems as annotations of a step, within what a step may make.

use crate::config::draw;
use crate::config::problem::Problem;
use crate::findings::Severity;
use crate::runner::{self, Level, Location, MAX_ANNOTATIONS};

/// Annotates each problem on GitHub Actions, up to the limit of a step; a notice says how many more there are.
pub(crate) fn problems(problems: &[Problem]) {
    if !runner::on_actions() {
        return;
    }
    for problem in problems.iter().take(MAX_ANNOTATIONS) {
        let hint = problem
            .hint
            .as_ref()
            .map(|hint| format!("\n{hint}"))
            .unwrap_or_default();
        let place = place(problem);
        let message = format!("{}{hint}", problem.message);
        runner::annotate(level(problem.severity), problem.finding.id, &message, place.as_ref());
    }
    let rest = problems.get(MAX_ANNOTATIONS..).unwrap_or_default();
    if rest.is_empty() {
        return;
    }
    let message = format!("{} more: see the log and the step summary", rest.len());
    runner::annotate(Level::Notice, "", &message, None);
}

/// Says problems that do not fail the command, and annotates them as warnings.
pub(crate) fn warn(problems: &[Problem]) {
    say(problems.iter().cloned().map(Problem::warning).collect());
}

/// Says what is worth knowing and no problem, and annotates it as notices.
pub(crate) fn notice(problems: &[Problem]) {
    say(problems.iter().cloned().map(Problem::notice).collect());
}

fn say(said: Vec<Problem>) {
    self::problems(&said);
    for problem in &said {
        anstream::eprintln!("{}", draw::styled(problem));
    }
}

fn level(severity: Severity) -> Level {
    match severity {
        Severity::Error => Level::Error,
        Severity::Warning => Level::Warning,
        Severity::Notice => Level::Notice,
    }
}

/// Puts the problems that [`problems`] has no room for into the step summary, for commands that write none of their own.
pub(crate) fn summarize_rest(problems: &[Problem]) {
    let rest = problems.get(MAX_ANNOTATIONS..).unwrap_or_default();
    if !runner::on_actions() || rest.is_empty() {
        return;
    }
    let texts: String = rest.iter().map(|problem| format!("{problem}\n\n")).collect();
    // The summary repeats what the log says: one that cannot be written takes nothing away.
    if let Err(error) = runner::summarize(&format!("### More problems\n\n{}\n", runner::fenced(&texts))) {
        anstream::eprintln!("note: the log alone has all problems: {error}");
    }
}

/// The place in the repository.
fn place(problem: &Problem) -> Option<Location> {
    (!problem.file.is_empty()).then(|| Location {
        file: problem.path().display().to_string(),
        line: problem.span.map_or(0, |span| span.line),
        column: problem.span.map_or(0, |span| span.column),
    })
}
