//! What git knows of an event's commits: their message, what the head is compared with, and what the changelog gains.

use super::decide::{Change, Facts};
use super::event::{Event, Hash, PullRequest, Push};
use crate::changelog::gate::Comparison;
use crate::changelog::text::Text;
use crate::config::problem::{Problem, Problems};
use crate::repo::{CHANGELOG, Repo, Revision, display_name};

/// What to do about commits that are not in this clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Refuse: a run must not guess.
    Refuse,
    /// Say so and go on with what the event says, as locally, where there is only the event.
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
    let Some(asked) = Asked::by(event) else {
        return Ok(Facts::default());
    };
    let (message, base, change) = match &open() {
        Ok(repo) => {
            let base = asked.base(repo);
            // Without a base there is no comparison, and one problem says so.
            let change = base
                .as_ref()
                .map_or(Ok(Change::default()), |base| asked.change(repo, base));
            (asked.message(repo), base, change)
        }
        Err(problem) => (Err(problem.clone()), Err(problem.clone()), Ok(Change::default())),
    };
    let mut assumed = Vec::new();
    let mut problems = Problems::default();
    let mut or = |problem: Problem, instead: &str| {
        assumed.push(format!("{}: {instead}", problem.message));
        problems.push(problem);
    };
    let head_message = message.unwrap_or_else(|problem| {
        or(problem, "no skip marker is assumed");
        None
    });
    let base = base.unwrap_or_else(|problem| {
        let (base, instead) = asked.base_of_the_event();
        or(problem, instead);
        base
    });
    let change = change.unwrap_or_else(|problem| {
        or(problem, "an added entry is assumed");
        Change::default()
    });
    if missing == Missing::Refuse {
        problems.into_result()?;
    }
    Ok(Facts {
        head_message,
        base,
        head: asked.head().as_str().to_owned(),
        change,
        assumed,
        ..Facts::default()
    })
}

/// The commits that a decision needs.
enum Asked<'e> {
    PullRequest(&'e PullRequest),
    /// A push with the commit that it brought.
    Push(&'e Push, &'e Hash),
}

impl<'e> Asked<'e> {
    fn by(event: &'e Event) -> Option<Self> {
        match event {
            Event::PullRequest(pull) if pull.open => Some(Self::PullRequest(pull)),
            Event::Push(push) if push.is_to_default_branch() => Some(Self::Push(push, push.after.as_ref()?)),
            _ => None,
        }
    }

    fn head(&self) -> &'e Hash {
        match self {
            Self::PullRequest(pull) => &pull.head,
            Self::Push(_, after) => after,
        }
    }

    /// The head's message, where it is asked: pushes ignore it.
    fn message(&self, repo: &Repo) -> Result<Option<String>, Problem> {
        match self {
            Self::PullRequest(pull) => repo.message(&repo.revision(pull.head.as_str())?).map(Some),
            Self::Push(..) => Ok(None),
        }
    }

    /// The commit that the head is compared with; empty for a first commit.
    fn base(&self, repo: &Repo) -> Result<String, Problem> {
        let head = repo.revision(self.head().as_str())?;
        match self {
            Self::PullRequest(pull) => {
                let base = repo.revision(pull.base.as_str())?;
                Ok(repo.merge_base(&base, &head)?.hash())
            }
            Self::Push(push, _) => match &push.before {
                Some(before) => match repo.revision(before.as_str()) {
                    Ok(base) => Ok(base.hash()),
                    Err(_) if push.forced => Err(thrown_away(before)),
                    Err(problem) => Err(problem),
                },
                None => Ok(repo
                    .first_parent(&head)?
                    .map(|parent| parent.hash())
                    .unwrap_or_default()),
            },
        }
    }

    /// What happens to the changelog between a base and the head.
    fn change(&self, repo: &Repo, base: &str) -> Result<Change, Problem> {
        let head = repo.revision(self.head().as_str())?;
        let base = (!base.is_empty()).then(|| repo.revision(base)).transpose()?;
        change(repo, base.as_ref(), &head)
    }

    /// What stands in for the base where only the event is known, and in which words.
    fn base_of_the_event(&self) -> (String, &'static str) {
        match self {
            Self::PullRequest(pull) => (
                pull.base.as_str().to_owned(),
                "the tip of the base branch stands for the merge base",
            ),
            Self::Push(push, _) => match &push.before {
                Some(before) => (before.as_str().to_owned(), "the commits are taken as the event says"),
                None => (String::new(), "its first parent is not known"),
            },
        }
    }
}

/// What happens to the changelog between two commits; the base is `None` for a first commit.
fn change(repo: &Repo, base: Option<&Revision>, head: &Revision) -> Result<Change, Problem> {
    let before = base.map(|base| repo.bytes(base, CHANGELOG)).transpose()?.flatten();
    let after = repo.bytes(head, CHANGELOG)?;
    if before == after {
        return Ok(Change::None);
    }
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let base_name = base.map_or_else(String::new, |base| display_name(base, CHANGELOG));
    let head_name = display_name(head, CHANGELOG);
    let comparison = Comparison {
        base: &Text::new(&base_name, &before),
        head: &Text::new(&head_name, &after),
        base_commit: "",
        pull_request: None,
    };
    Ok(match comparison.judge().is_only_a_correction() {
        true => Change::Correction,
        false => Change::Entries,
    })
}

/// No branch holds the commits that a forced push replaced, so no clone of branches brings them.
fn thrown_away(before: &Hash) -> Problem {
    let before = before.as_str();
    let message = format!("the forced push threw away {before}, and this clone has it not");
    let hint = format!(
        "fetch it with `git fetch origin {before}`, or dispatch the sweep with a base and a head of your choice"
    );
    Problem::file("", message).hint(hint)
}
