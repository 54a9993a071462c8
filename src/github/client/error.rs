//! What goes wrong with a request, and the way out.

use std::time::Duration;

use crate::config::problem::{Problem, Problems};
use crate::github::text::one_line;

/// Why a request gave nothing that can be used. Texts of the other side are on one line and cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No client can be made.
    #[error("GitHub cannot be asked: {0}")]
    Setup(String),
    /// No whole answer came.
    #[error("{request} got no answer: {reason}")]
    NoAnswer {
        /// The method and the path.
        request: String,
        /// Why.
        reason: String,
        /// Whether GitHub may have acted on it.
        may_have_acted: bool,
    },
    /// GitHub refused.
    #[error("{request} was answered with {status}: {message}")]
    Status {
        /// The method and the path.
        request: String,
        /// The status code.
        status: u16,
        /// What GitHub says of it.
        message: String,
        /// The permission that the request needs.
        permission: String,
    },
    /// The hour's requests are used up, or only the reserve is left.
    #[error("{request} was not sent: {remaining} requests are left for the next {} min", .wait.as_secs().div_ceil(60))]
    Budget {
        /// The method and the path.
        request: String,
        /// How many are left.
        remaining: u64,
        /// Until they are counted anew.
        wait: Duration,
    },
    /// The answer is not what the API's documentation says.
    #[error("{request} was answered with something else than expected: {reason}")]
    Answer {
        /// The method and the path.
        request: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The longest text of the other side that is repeated, in characters.
const SHOWN: usize = 300;

/// A text of the other side: one line, cut, without the token.
pub(super) fn told(text: &str, token: Option<&str>) -> String {
    let text: String = text.chars().take(SHOWN).collect();
    let text = one_line(&text);
    match token {
        Some(token) if !token.is_empty() => text.replace(token, "***"),
        _ => text,
    }
}

impl Error {
    /// Whether there is no such thing, or none that the token may see.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Status { status: 404, .. })
    }

    /// Whether the token may not see it.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Status { status: 403, .. })
    }

    /// Whether the hour's requests are used up.
    #[must_use]
    pub fn is_budget(&self) -> bool {
        matches!(self, Self::Budget { .. })
    }

    fn hint(&self) -> String {
        match self {
            Self::Setup(_) => {
                "install the system's certificates (ca-certificates), and check GITHUB_API_URL".to_owned()
            }
            Self::NoAnswer {
                may_have_acted: true, ..
            } => "look on GitHub whether it was done before you repeat it: it is not repeated by itself".to_owned(),
            Self::NoAnswer { .. } => "check the network and GITHUB_API_URL, then run it again".to_owned(),
            Self::Status { status: 401, .. } => {
                "set GH_TOKEN to a token that is valid; in a workflow: `GH_TOKEN: ${{ github.token }}`".to_owned()
            }
            Self::Status {
                status: 403,
                permission,
                ..
            } => format!(
                "the token needs the permission `{permission}`: add it to the job's `permissions`, or to the token"
            ),
            Self::Status {
                status: 404,
                permission,
                ..
            } => format!(
                "check the name; GitHub also says so where the token may not look: it needs the permission \
                 `{permission}`"
            ),
            Self::Status { status: 422, .. } => "GitHub does not accept these values: see what it says".to_owned(),
            Self::Status { .. } => "run it again; https://www.githubstatus.com says what is down".to_owned(),
            Self::Budget { .. } => {
                "a tenth of the hour's requests is kept for saying how runs end: run it again later, or with a token \
                 of your own in GH_TOKEN"
                    .to_owned()
            }
            Self::Answer { .. } => "see whether GITHUB_API_URL is the API of GitHub".to_owned(),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::file("", error.to_string()).hint(error.hint())
    }
}

impl From<Error> for Problems {
    fn from(error: Error) -> Self {
        Problem::from(error).into()
    }
}
