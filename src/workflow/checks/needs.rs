//! `needs.<job>` of a job that is not waited for is empty without a word.

use crate::config::problem::{Problems, nearest};
use crate::config::tree::Node;
use crate::findings::workflow;
use crate::workflow::check::Files;
use crate::workflow::simulate::evaluate::parse;
use crate::workflow::simulate::template::{Part, parts};

/// Finds expressions that name a job in `needs` which their job does not wait for.
pub(crate) fn check(files: &Files<'_>, problems: &mut Problems) {
    for file in files.workflows() {
        for job in file.jobs() {
            let known = job.needs();
            for node in job.scalars() {
                for asked in named(node)
                    .into_iter()
                    .filter(|asked| !known.iter().any(|need| need.eq_ignore_ascii_case(asked)))
                {
                    let message = format!(
                        "`{}` does not wait for `{asked}`, so `needs.{asked}` is empty",
                        job.id.text()
                    );
                    let hint = format!("add it to `needs`; {}", nearest(&asked, known.iter().copied()));
                    problems.push(
                        file.finding(&workflow::NEED_NOT_DECLARED, node.span, message)
                            .hint(hint),
                    );
                }
            }
            if let Some(node) = job.get("needs") {
                let jobs: Vec<&str> = file.jobs().map(|job| job.id.text()).collect();
                for need in known.iter().filter(|need| !jobs.contains(need)) {
                    let message = format!("`{}` waits for `{need}`, which is not there", job.id.text());
                    problems.push(
                        file.finding(&workflow::UNKNOWN_NEED, node.span, message)
                            .hint(nearest(need, jobs.iter().copied())),
                    );
                }
            }
        }
    }
}

/// The jobs that the expressions of a text name, in lower case. What is no expression is GitHub's to refuse.
fn named(node: &Node<'_>) -> Vec<String> {
    let text = node.text();
    let found = match text.contains("${{") {
        true => parts(text).unwrap_or_default(),
        false if text.contains("needs.") => vec![Part::Expression(text)],
        false => Vec::new(),
    };
    let mut all = Vec::new();
    for part in found {
        let Part::Expression(text) = part else { continue };
        let Ok(tree) = parse(text) else { continue };
        for (context, _) in tree.contexts() {
            let pattern = context.as_pattern().unwrap_or_default();
            let mut path = pattern.split('.');
            if let (Some("needs"), Some(job)) = (path.next(), path.next())
                && job != "*"
            {
                all.push(job.to_owned());
            }
        }
    }
    all
}
