//! The artifacts of a run, fetched by exact name: which are wanted, where they are kept, and how they arrive whole.
//!
//! Two services list artifacts and say where their contents lie: the runner's own (`runner_service`), which costs
//! nothing, and GitHub's REST API (`rest`). The rest of this room is the same for both. What they and the archives say
//! is a stranger's text.

pub(crate) mod archive;
pub(crate) mod fetch;
pub(crate) mod folder;
pub(crate) mod report;
pub(crate) mod rest;
mod retry;
pub(crate) mod runner_service;
pub(crate) mod wanted;

use std::collections::HashMap;
use std::time::Duration;

use crate::http::{self, Session};

/// An artifact as a run lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its name; several may share it, of which the newest counts.
    pub name: String,
    /// Its number; a later artifact has a larger one.
    pub id: u64,
    /// `sha256:` and the hex digits of what is downloaded; `None` where the service does not say.
    pub digest: Option<String>,
    /// Whether GitHub keeps its content no longer.
    pub expired: bool,
    /// The run and the job, as the runner's service calls them; empty over REST.
    pub backend: (String, String),
}

/// Who says where an artifact's content lies.
pub(crate) trait Service: Sync {
    /// Its name in reports.
    fn via(&self) -> &'static str;

    /// The address of an artifact's content. It holds a signature: whoever has it may read, so that no log shows it.
    ///
    /// # Errors
    /// What [`Failure`] tells apart.
    fn locate(&self, session: &Session, artifact: &Listed) -> Result<String, Failure>;
}

/// Why an artifact did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It may arrive later, at the earliest after the time that the server asks for.
    Again(String, Option<Duration>),
    /// GitHub keeps its content no longer.
    Expired,
    /// It will not arrive, however often it is asked for.
    Refused(String),
}

impl Failure {
    /// What it says.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Again(reason, _) | Self::Refused(reason) => reason,
            Self::Expired => "GitHub keeps its content no longer",
        }
    }
}

impl From<http::Error> for Failure {
    /// Without any address: those of contents hold signatures.
    fn from(error: http::Error) -> Self {
        match error {
            http::Error::Uri(_) | http::Error::Redirect | http::Error::TooManyRedirects => {
                Self::Refused("its address leads nowhere".to_owned())
            }
            http::Error::TooLarge(most) => Self::Refused(format!("the answer is larger than {} MiB", most >> 20)),
            http::Error::Proxy(_) => Self::Refused(error.to_string()),
            http::Error::Io(_) | http::Error::Timeout | http::Error::Idle(_) | http::Error::Protocol(_) => {
                Self::Again(error.to_string(), None)
            }
        }
    }
}

/// Of several artifacts of a name the newest, whichever attempt at the run it is of.
pub(crate) fn newest(listed: Vec<Listed>) -> HashMap<String, Listed> {
    let mut newest: HashMap<String, Listed> = HashMap::with_capacity(listed.len());
    for artifact in listed {
        match newest.get(&artifact.name) {
            Some(other) if other.id >= artifact.id => {}
            _ => drop(newest.insert(artifact.name.clone(), artifact)),
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_name_the_highest_id_counts_in_any_order() {
        let listed = |id| Listed {
            name: "a".to_owned(),
            id,
            ..Listed::default()
        };
        for order in [[1, 3, 2], [3, 2, 1], [2, 1, 3]] {
            assert_eq!(newest(order.map(listed).to_vec())["a"].id, 3);
        }
    }

    #[test]
    fn no_failure_shows_an_address() {
        let signed = "nonsense://blob/a?sig=hunter2";
        let failure = Failure::from(http::Error::Uri(signed.to_owned()));
        assert!(!failure.reason().contains("hunter2"), "{}", failure.reason());
    }
}
