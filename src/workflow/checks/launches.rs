//! The order of steps on a node: it is cleaned before anything else, what the job leaves is uploaded whatever happened, the
//! gate comes after the uploads, and at the end the node is released and cleaned again.

use crate::config::problem::Problems;
use crate::config::tree::Node;
use crate::findings::workflow;
use crate::workflow::check::{Files, launches};
use crate::workflow::tree::{File, Job, calls, get, uses};

/// Finds jobs that launch and do not keep that order.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.workflows() {
        for job in file.jobs() {
            if let Some(launch) = job.steps().iter().position(launches) {
                cleaned_first(file, &job, launch, problems);
                uploaded(file, &job.steps()[launch..], problems);
                for (what, command) in [
                    ("released", &["launch", "--release"][..]),
                    ("cleaned again", &["clean"]),
                ] {
                    ended(file, &job, launch, what, command, problems);
                }
            }
        }
    }
}

fn cleaned_first(file: &File<'_>, job: &Job<'_, '_>, launch: usize, problems: &mut Problems) {
    let before = &job.steps()[..launch];
    let clean = before.iter().position(|step| calls(step, &["clean"]));
    let checkout = before.iter().position(|step| uses(step, "actions/checkout"));
    let late = match (clean, checkout) {
        (Some(clean), Some(checkout)) => clean > checkout,
        (clean, _) => clean.is_none(),
    };
    if late {
        let span = checkout.map_or(job.id.span, |at| before[at].span);
        let message = format!(
            "`{}` does not clean its node first: what an earlier job left stays",
            job.id.text()
        );
        problems.push(
            file.finding(&workflow::NOT_CLEANED_FIRST, span, message)
                .hint("run `sweepctl clean` before the checkout"),
        );
    }
}

fn uploaded(file: &File<'_>, behind: &[Node<'_>], problems: &mut Problems) {
    let is_upload = |step: &&Node<'_>| uses(step, "actions/upload-artifact");
    for upload in behind.iter().filter(is_upload).filter(|step| !is_always(step)) {
        let problem = file.finding(
            &workflow::CONDITIONAL_UPLOAD,
            upload.span,
            "a job that fails does not upload this: its results and logs are lost",
        );
        problems.push(problem.hint("begin its `if` with `always() &&`"));
    }
    let last = behind.iter().rposition(|step| is_upload(&step));
    let gate = behind.iter().position(|step| calls(step, &["eval", "validate"]));
    if let (Some(gate), Some(last)) = (gate, last)
        && gate < last
    {
        let problem = file.finding(
            &workflow::GATE_BEFORE_UPLOAD,
            behind[gate].span,
            "the gate stands before an upload: what fails it cannot be looked at",
        );
        problems.push(problem.hint("gate after the last upload"));
    }
}

fn ended(file: &File<'_>, job: &Job<'_, '_>, launch: usize, what: &str, command: &[&str], problems: &mut Problems) {
    let command_text = format!("sweepctl {}", command.join(" "));
    match job.steps()[launch + 1..].iter().find(|step| calls(step, command)) {
        None => {
            let message = format!("the node of `{}` is not {what} after the launch", job.id.text());
            problems.push(
                file.finding(&workflow::NOT_RELEASED, job.id.span, message)
                    .hint(format!("end with `{command_text}`, `if: always()`")),
            );
        }
        Some(step) if !is_always(step) => {
            let message = format!(
                "the node of `{}` is not {what} when the job fails or is cancelled",
                job.id.text()
            );
            problems.push(
                file.finding(&workflow::NOT_RELEASED, step.span, message)
                    .hint("begin its `if` with `always() &&`"),
            );
        }
        Some(_) => {}
    }
}

fn is_always(step: &Node<'_>) -> bool {
    get(step, "if").is_some_and(|node| node.text().replace(' ', "").contains("always()"))
}
