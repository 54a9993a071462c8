//! Who asks for reuse, and for which run.

use super::{Access, Authorization, Facts, Which};
use crate::config::labels::Reuse;
use crate::github::client::answers::Comment;
use crate::github::text::{any_of, code};

/// Spaces that a line may start with; of more, Markdown makes code.
const INDENT: usize = 3;

/// Who authorizes reuse: the writer of the latest comment in which a line starts with the command and who may decide so.
///
/// # Errors
/// Nobody does, for the reason that is given.
pub(super) fn authorization(facts: &Facts, reuse: &Reuse) -> Result<Authorization, String> {
    let Some(pull) = &facts.pull else {
        return Err(match facts.pulls.len() {
            0 => "The commit belongs to no merged pull request.".to_owned(),
            count => format!("The commit belongs to {count} merged pull requests, not to one."),
        });
    };
    let mut denied = Vec::new();
    for comment in pull.comments.iter().rev() {
        let Some(which) = asked(comment, facts, reuse) else {
            continue;
        };
        if comment.user.is_none() && !reuse.permissions.is_empty() {
            denied.push("an account that is gone cannot be asked about".to_owned());
            continue;
        }
        let by = comment.user.as_ref().map_or("somebody", |user| &user.login).to_owned();
        match facts.access.get(&by) {
            Some(Access::Has(has)) if !reuse.permissions.iter().any(|needed| has.contains(needed)) => {
                let has = has.first().map_or("no permission", String::as_str);
                denied.push(format!("{} has {}", code(&by), code(has)));
            }
            Some(Access::Unseen(why)) => {
                let note = format!(
                    "whether {} has {} cannot be seen ({why}): the comment counts by its author's association, {}",
                    code(&by),
                    any_of(&reuse.permissions),
                    code(&comment.author_association)
                );
                return Ok(Authorization {
                    by,
                    which,
                    note: Some(note),
                });
            }
            Some(Access::Has(_)) | None => return Ok(Authorization { by, which, note: None }),
        }
    }
    let (number, command) = (pull.number, code(&reuse.command));
    if denied.is_empty() {
        let associations = any_of(&reuse.author_associations);
        return Err(format!(
            "Pull request {number} has no comment {command} by an {associations}."
        ));
    }
    Err(format!(
        "Pull request {number} has no comment {command} by somebody with {}: {}.",
        any_of(&reuse.permissions),
        denied.join(", ")
    ))
}

/// What a comment asks for, where it counts by what its writer is to the repository.
pub(super) fn asked(comment: &Comment, facts: &Facts, reuse: &Reuse) -> Option<Which> {
    let counts = reuse.author_associations.contains(&comment.author_association);
    let which = which(
        comment.body.as_deref().unwrap_or_default(),
        &reuse.command,
        &facts.address,
    )?;
    counts.then_some(which)
}

/// What a comment asks for: the last of its lines that starts with the command.
fn which(body: &str, command: &str, address: &str) -> Option<Which> {
    body.lines()
        .filter_map(|line| of_line(line, command, address))
        .next_back()
}

fn of_line(line: &str, command: &str, address: &str) -> Option<Which> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > INDENT {
        return None;
    }
    let rest = text.strip_prefix(command)?;
    if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let rest = rest.trim();
    Some(match (rest, number(rest).or_else(|| addressed(rest, address))) {
        ("", _) => Which::Newest,
        (_, Some(id)) => Which::Pinned(id),
        (other, None) => Which::Unclear(other.to_owned()),
    })
}

fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// The number of the run that an address leads to: `ADDRESS/actions/runs/N`, and what lies below that page.
fn addressed(text: &str, address: &str) -> Option<u64> {
    let text = text
        .strip_prefix('<')
        .and_then(|text| text.strip_suffix('>'))
        .unwrap_or(text);
    if text.contains(char::is_whitespace) {
        return None;
    }
    // Names of hosts, owners and repositories know no case.
    let start = text
        .get(..address.len())
        .filter(|start| start.eq_ignore_ascii_case(address))?;
    let rest = text[start.len()..].strip_prefix("/actions/runs/")?;
    number(rest.split(['/', '?', '#']).next().unwrap_or_default())
}
