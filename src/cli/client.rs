//! What the commands share that send requests to GitHub.

use clap::Args;

use crate::changelog::link::Slug;
use crate::config::problem::{Problem, Problems, printable};
use crate::github::client::{Client, Settings};
use crate::github::run_address::RunAddress;

/// Says in a command's help where its token and its address come from.
pub(crate) const ABOUT: &str = "\
The token is that of GH_TOKEN, else GITHUB_TOKEN; the API's address that of GITHUB_API_URL, else github.com's.";

/// Which repository is asked about.
#[derive(Debug, Args)]
pub(crate) struct ClientArgs {
    /// The repository [default: GITHUB_REPOSITORY, else that of the clone's remote `origin`]
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<Slug>,
}

impl ClientArgs {
    /// Whether a repository is named, which may be another one than that of the run.
    pub(crate) fn names_repository(&self) -> bool {
        self.repo.is_some()
    }

    /// A client.
    ///
    /// # Errors
    /// No repository, and settings that are wrong.
    pub(crate) fn client(&self) -> Result<Client, Problems> {
        Ok(Client::new(Settings::from_environment(self.repo.clone())?)?)
    }

    /// A client for the repository of a run: an address says which it is in.
    ///
    /// # Errors
    /// As [`Self::client`], an address of another server than the one that is asked, and --repo with another repository.
    pub(crate) fn client_of(&self, run: &RunAddress) -> Result<Client, Problems> {
        let Some(place) = &run.place else {
            return self.client();
        };
        let server = server();
        if place.server != server {
            let message = format!("the run is on {}, and {server} is asked", printable(&place.server));
            let hint = "set GITHUB_SERVER_URL and GITHUB_API_URL to those of its server";
            return Err(Problem::file("", message).hint(hint).into());
        }
        if let Some(repo) = self.repo.as_ref().filter(|repo| **repo != place.repository) {
            let message = format!("the run is in {}, and --repo names {repo}", place.repository);
            return Err(Problem::file("", message)
                .hint("leave --repo out: the address says it")
                .into());
        }
        Ok(Client::new(Settings::from_environment(Some(
            place.repository.clone(),
        ))?)?)
    }
}

/// A run, and where it is.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The run: its number, or the address of its page
    #[arg(value_name = "RUN")]
    pub run: RunAddress,
    #[command(flatten)]
    pub client: ClientArgs,
}

impl RunArgs {
    /// A client for the repository that it is in.
    ///
    /// # Errors
    /// As [`ClientArgs::client_of`].
    pub(crate) fn client(&self) -> Result<Client, Problems> {
        self.client.client_of(&self.run)
    }
}

/// The address of the server whose pages people look at.
pub(crate) fn server() -> String {
    let server = std::env::var("GITHUB_SERVER_URL")
        .ok()
        .filter(|server| !server.is_empty());
    let server = server.unwrap_or_else(|| "https://github.com".to_owned());
    server.trim_end_matches('/').to_owned()
}
