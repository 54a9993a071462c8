//! What the commands share that send requests to GitHub.

use clap::Args;

use crate::changelog::link::Slug;
use crate::config::problem::Problems;
use crate::github::client::{Client, Settings};

/// Says in a command's help where its token and its address come from.
pub const ABOUT: &str = "\
The token is that of GH_TOKEN, else GITHUB_TOKEN; the API's address that of GITHUB_API_URL, else github.com's.";

/// Which repository is asked about.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// The repository [default: GITHUB_REPOSITORY, else that of the clone's remote `origin`]
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<Slug>,
}

impl ClientArgs {
    /// Whether a repository is named, which may be another one than that of the run.
    pub fn names_repository(&self) -> bool {
        self.repo.is_some()
    }

    /// A client.
    ///
    /// # Errors
    /// No repository, and settings that are wrong.
    pub fn client(&self) -> Result<Client, Problems> {
        Ok(Client::new(Settings::from_environment(self.repo.clone())?)?)
    }
}
