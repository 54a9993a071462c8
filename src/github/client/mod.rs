//! What is asked of GitHub's API: one client with blocking functions and narrow types.
//!
//! octocrab is the transport; its runtime lives in this room alone. Every answer is bounded and decoded strictly into
//! the few fields that are used; what it says is a stranger's text. Sources: GitHub's REST documentation, version
//! 2022-11-28, and its "Rate limits for the REST API".

pub(crate) mod answers;
pub(crate) mod budget;
mod error;
mod requests;
mod runs;
mod settings;
mod transport;

pub(crate) use error::Error;
pub(crate) use settings::Settings;
pub(crate) use transport::Known;

use crate::changelog::link::Slug;

/// A client for one repository.
pub struct Client {
    transport: transport::Transport,
    repository: Slug,
    api: String,
    token: Option<String>,
}

/// What a request needs that is too large for this client: its answer is streamed by whoever asks.
pub(crate) struct Access {
    /// The API's address, without a slash at its end.
    pub api: String,
    /// The repository.
    pub repository: Slug,
    /// The token, where there is one.
    pub token: Option<String>,
}

impl Client {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// No certificate store, and settings that octocrab refuses.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        Ok(Self {
            transport: transport::Transport::new(&settings)?,
            repository: settings.repository,
            api: settings.api,
            token: settings.token,
        })
    }

    /// Lets reads use the last tenth of the hour's requests too, for a command that has to say how a run ended.
    #[must_use]
    pub fn with_reserve(mut self) -> Self {
        self.transport.use_reserve();
        self
    }

    /// How long to wait between turns of so many requests each, at least `least`; see [`budget::Budget::pause`].
    #[must_use]
    pub fn pause(&self, requests: u64, least: std::time::Duration) -> std::time::Duration {
        self.transport.pause(requests, least)
    }

    /// What other requests are made with.
    pub(crate) fn access(&self) -> Access {
        Access {
            api: self.api.clone(),
            repository: self.repository.clone(),
            token: self.token.clone(),
        }
    }

    /// Answers to reads with their tags, to be kept for [`Self::remember`]. What has not changed then costs nothing.
    pub(crate) fn known(&self) -> Vec<Known> {
        self.transport.known()
    }

    /// Takes answers that an earlier client knew.
    pub(crate) fn remember(&self, known: Vec<Known>) {
        self.transport.remember(known);
    }

    /// The repository.
    #[must_use]
    pub fn repository(&self) -> &Slug {
        &self.repository
    }
}
