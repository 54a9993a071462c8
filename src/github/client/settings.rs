//! Where the API is, whose repository is asked about, and with which token.

use std::fmt;

use crate::changelog::link::Slug;
use crate::config::problem::{Problem, printable};
use crate::repo::Repo;

/// The API of github.com.
const API: &str = "https://api.github.com";

/// What a client needs to know.
pub struct Settings {
    /// The API's address, without a slash at its end.
    pub(super) api: String,
    /// The repository.
    pub(super) repository: Slug,
    /// The token, where there is one.
    pub(super) token: Option<String>,
}

impl fmt::Debug for Settings {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map(|_| "***");
        f.debug_struct("Settings")
            .field("api", &self.api)
            .field("repository", &self.repository)
            .field("token", &token)
            .finish()
    }
}

impl Settings {
    /// Reads `GITHUB_API_URL`, `GH_TOKEN` or else `GITHUB_TOKEN`, and, unless a repository is named,
    /// `GITHUB_REPOSITORY` or else the remote `origin` of the clone that the command runs in.
    ///
    /// # Errors
    /// No repository, and an address that a token may not be sent to.
    pub fn from_environment(repository: Option<Slug>) -> Result<Self, Problem> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let api = variable("GITHUB_API_URL").unwrap_or_else(|| API.to_owned());
        check_address(&api)?;
        let repository = match (repository, variable("GITHUB_REPOSITORY")) {
            (Some(repository), _) => repository,
            (None, Some(name)) => name.parse().map_err(|error| {
                Problem::file("", format!("GITHUB_REPOSITORY: {error}")).hint("name the repository with --repo")
            })?,
            (None, None) => of_the_clone()?,
        };
        Ok(Self {
            api: api.trim_end_matches('/').to_owned(),
            repository,
            token: variable("GH_TOKEN")
                .or_else(|| variable("GITHUB_TOKEN"))
                .map(|token| token.trim().to_owned()),
        })
    }
}

/// A token travels encrypted, or not beyond this machine; and no password stands where errors show it.
fn check_address(api: &str) -> Result<(), Problem> {
    let authority = api.split_once("://").map_or(api, |(_, rest)| rest);
    if authority
        .split(['/', '?', '#'])
        .next()
        .is_some_and(|authority| authority.contains('@'))
    {
        let problem = Problem::file("", "GITHUB_API_URL holds a user or a password");
        return Err(problem.hint("take it out, and set GH_TOKEN"));
    }
    let rest = api.strip_prefix("http://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    if api.starts_with("https://") || matches!(host, "127.0.0.1" | "localhost" | "[::1]") {
        return Ok(());
    }
    let message = format!("GITHUB_API_URL is {}, which is no https address", printable(api));
    Err(Problem::file("", message).hint("unset it for github.com, or name the API of your server"))
}

fn of_the_clone() -> Result<Slug, Problem> {
    let repo = Repo::open(std::path::Path::new("."));
    let found = repo.ok().and_then(|repo| of_remote(&repo.remote("origin")?));
    found.ok_or_else(|| {
        Problem::file("", "it is not known which repository to ask about")
            .hint("name it with --repo owner/name, or set GITHUB_REPOSITORY")
    })
}

/// The repository that a remote's address leads to, in the forms of https and ssh.
fn of_remote(address: &str) -> Option<Slug> {
    let path = match address.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.1,
        None => address.split_once(':')?.1,
    };
    path.trim_end_matches('/').trim_end_matches(".git").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_name_a_repository_or_none() {
        for known in [
            "https://github.com/acme/bench",
            "https://github.com/acme/bench.git",
            "https://user@github.com/acme/bench/",
            "git@github.com:acme/bench.git",
            "ssh://git@github.com:22/acme/bench.git",
        ] {
            let found = of_remote(known).map(|slug| slug.to_string());
            assert_eq!(found.as_deref(), Some("acme/bench"), "{known}");
        }
        for other in [
            "/srv/bench.git",
            "../bench",
            "https://github.com/acme",
            "git@host:a/b/c",
        ] {
            assert_eq!(of_remote(other), None, "{other}");
        }
    }

    #[test]
    fn a_token_is_sent_encrypted_or_to_this_machine() {
        for fine in ["https://api.github.com", "http://127.0.0.1:8080", "http://localhost"] {
            assert!(check_address(fine).is_ok(), "{fine}");
        }
        for wrong in [
            "http://api.github.com",
            "http://127.0.0.1.example.com",
            "ftp://x",
            "api.github.com",
            "http://localhost@example.com",
            "http://127.0.0.1:80@example.com",
            "https://user:hunter2@api.github.com",
            "http://user:hunter2@127.0.0.1:8080",
        ] {
            let problem = check_address(wrong).expect_err(wrong);
            assert!(!problem.to_string().contains("hunter2"), "{problem}");
        }
    }
}
