//! What git knows of an event's commits: their message, and what the head is compared with.

use super::decide::Facts;
use super::event::{Event, Hash, PullRequest, Push};
use crate::config::problem::{Problem, Problems};
use crate::repo::{self, Repo};

/// What to do about commits that are not in this clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Refuse: a run must not guess.
    Refuse,
    /// Say so and go on with what the event says, as at a desk that has only the event.
    Note,
}

/// Looks up what a decision on an event needs; nothing where it needs nothing.
///
/// # Errors
/// With [`Missing::Refuse`], no repository, and commits that are not in it, with the fetch that brings them.
pub fn gather(
    event: &Event,
    open: impl FnOnce() -> Result<Repo, Problem>,
    missing: Missing,
) -> Result<Facts, Problems> {
    let asked = match event {
        Event::PullRequest(pull) if pull.open => Asked::PullRequest(pull),
        Event::Push(push) if push.is_to_default_branch() => match &push.after {
            Some(after) => Asked::Push(push, after),
            None => return Ok(Facts::default()),
        },
        _ => return Ok(Facts::default()),
    };
    let found = open().map_err(Problems::from).and_then(|repo| asked.look_up(&repo));
    match (found, missing) {
        (Ok(facts), _) => Ok(facts),
        (Err(problems), Missing::Refuse) => Err(problems),
        (Err(problems), Missing::Note) => Ok(asked.from_event(&problems)),
    }
}

/// The commits that a decision needs.
enum Asked<'e> {
    PullRequest(&'e PullRequest),
    Push(&'e Push, &'e Hash),
}

impl Asked<'_> {
    fn look_up(&self, repo: &Repo) -> Result<Facts, Problems> {
        match self {
            Self::PullRequest(pull) => pull_request(pull, repo),
            Self::Push(push, after) => pushed(push, after, repo),
        }
    }

    /// What the event alone says.
    fn from_event(&self, problems: &Problems) -> Facts {
        let (base, head, guess) = match self {
            Self::PullRequest(pull) => (
                Some(&pull.base),
                &pull.head,
                "so no skip marker is assumed, and the base branch's tip stands for the merge base",
            ),
            Self::Push(push, after) => (
                push.before.as_ref(),
                *after,
                "so the event's commits are taken as they are",
            ),
        };
        let reasons: Vec<&str> = problems.0.iter().map(|problem| problem.message.as_str()).collect();
        Facts {
            head_message: None,
            base: base.map(|hash| hash.as_str().to_owned()).unwrap_or_default(),
            head: head.as_str().to_owned(),
            note: Some(format!("{}: {guess}", reasons.join("; "))),
        }
    }
}

fn pull_request(pull: &PullRequest, repo: &Repo) -> Result<Facts, Problems> {
    let mut found = repo::all([repo.revision(pull.base.as_str()), repo.revision(pull.head.as_str())])?;
    let (head, base) = (found.remove(1), found.remove(0));
    Ok(Facts {
        head_message: Some(repo.message(&head)?),
        base: repo.merge_base(&base, &head)?.hash(),
        head: head.hash(),
        note: None,
    })
}

fn pushed(push: &Push, after: &Hash, repo: &Repo) -> Result<Facts, Problems> {
    let head = repo.revision(after.as_str())?;
    let base = match &push.before {
        Some(before) => repo
            .revision(before.as_str())
            .map(Some)
            .map_err(|problem| match push.forced {
                true => thrown_away(before),
                false => problem,
            })?,
        None => repo.first_parent(&head)?,
    };
    Ok(Facts {
        head_message: Some(repo.message(&head)?),
        base: base.map(|base| base.hash()).unwrap_or_default(),
        head: head.hash(),
        note: None,
    })
}

/// No branch holds the commits that a forced push replaced, so no clone of branches brings them.
fn thrown_away(before: &Hash) -> Problem {
    let message = format!(
        "the forced push threw away {}, and this clone has it not",
        before.as_str()
    );
    let hint = format!(
        "fetch it with `git fetch origin {}`, or dispatch the sweep with a base and a head of your choice",
        before.as_str()
    );
    Problem::file("", message).hint(hint)
}
