//! The one comment on a pull request that says how its sweep ended.

use super::client::answers::Comment;
use super::client::{Client, Error};

/// What the comment starts with; nobody sees it.
pub(crate) const MARKER: &str = "<!-- sweepctl: how the sweep ended -->";

/// Writes the comment, or changes the one that `author` wrote before. Comments of others with the marker are theirs.
///
/// # Errors
/// Requests that fail.
pub(crate) fn put(client: &Client, pull: u64, author: &str, body: &str) -> Result<(), Error> {
    let comments = client.comments(pull)?.items;
    let is_own = |comment: &&Comment| {
        comment.user.as_ref().is_some_and(|user| user.login == author)
            && comment.body.as_ref().is_some_and(|body| body.starts_with(MARKER))
    };
    match comments.iter().find(is_own) {
        Some(own) if own.body.as_deref() == Some(body) => Ok(()),
        Some(own) => client.change_comment(own.id, body),
        None => client.add_comment(pull, body),
    }
}
