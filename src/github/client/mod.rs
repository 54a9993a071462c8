//! What is asked of GitHub's API: one client with blocking functions and narrow types.
//!
//! octocrab is the transport; its runtime lives in this room alone. Every answer is bounded and decoded strictly into
//! the few fields that are used; what it says is a stranger's text. Sources: GitHub's REST documentation, version
//! 2022-11-28, and its "Rate limits for the REST API".

pub(crate) mod answers;
mod budget;
mod error;
mod requests;
mod runs;
mod settings;
mod transport;

pub use error::Error;
pub use settings::Settings;

use crate::changelog::link::Slug;

/// A client for one repository.
pub struct Client {
    transport: transport::Transport,
    repository: Slug,
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

    /// The repository.
    #[must_use]
    pub fn repository(&self) -> &Slug {
        &self.repository
    }
}
