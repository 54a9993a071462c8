//! GitHub's REST API: the artifacts of any run, each for a request of the hour's.
//!
//! The list is asked through the project's client; contents are too large for it, so that the redirect to each is asked
//! for here, and what it leads to gets no token.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use super::{Failure, Listed, Service};
use crate::config::problem::{Problem, Problems};
use crate::files;
use crate::github::client::answers::Artifact;
use crate::github::client::budget::{Budget, MAX_WAIT, retry_after};
use crate::github::client::{Access, Client};
use crate::http::{Request, Session};

/// How long a request for a redirect may take.
const WHOLE: Duration = Duration::from_secs(60);
/// So many names are asked for one by one; more are looked for in the list of all.
const ONE_BY_ONE: usize = 5;
/// The version of the API.
const VERSION: &str = "2022-11-28";
/// Pages of lists with their tags.
const PAGES: &str = "pages.json";

/// The API, for the contents of a repository's artifacts.
pub(crate) struct Rest {
    access: Access,
    budget: Mutex<Budget>,
}

impl Rest {
    /// The API that a client asks.
    pub(crate) fn new(client: &Client) -> Self {
        Self {
            access: client.access(),
            budget: Mutex::default(),
        }
    }

    /// The artifacts of a run, of every attempt at it, that may be those of the names. Pages that have not changed since
    /// they were kept in `work` cost nothing.
    ///
    /// # Errors
    /// Requests that fail, and a list that does not end.
    pub(crate) fn list(client: &Client, run: u64, names: &[&str], work: &Path) -> Result<Vec<Listed>, Problems> {
        let pages = work.join(PAGES);
        if let Some(known) = files::read(&pages)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
        {
            client.remember(known);
        }
        let mut artifacts: Vec<Artifact> = Vec::new();
        let listings = match names.len() <= ONE_BY_ONE {
            true => {
                let of_name = |name: &&str| client.artifacts(run, Some(name));
                names.iter().map(of_name).collect::<Result<Vec<_>, _>>()?
            }
            false => vec![client.all_artifacts(run)?],
        };
        for listing in listings {
            if !listing.complete {
                let message = format!(
                    "run {run} has more artifacts than the {} that are listed",
                    listing.items.len()
                );
                return Err(Problem::file("", message).hint("name what is to be fetched").into());
            }
            artifacts.extend(listing.items);
        }
        // Without these pages the next list only costs more.
        if let Ok(text) = serde_json::to_vec(&client.known()) {
            let _ = files::write_atomic(&pages, &text);
        }
        Ok(artifacts.into_iter().map(Listed::from).collect())
    }

    /// Waits where only the reserve of the hour's requests is left, if that is soon over.
    fn spare(&self) -> Result<(), Failure> {
        let budget = *self.budget.lock().map_err(|_| Failure::Refused(BROKEN.to_owned()))?;
        if !budget.is_low() {
            return Ok(());
        }
        if budget.wait() > MAX_WAIT {
            return Err(over(&budget));
        }
        std::thread::sleep(budget.wait());
        Ok(())
    }
}

/// Of a lock that a thread held when it panicked.
const BROKEN: &str = "another download broke";

fn over(budget: &Budget) -> Failure {
    let minutes = budget.wait().as_secs().div_ceil(60);
    Failure::Refused(format!(
        "{} requests are left for the next {minutes} min, and those are kept for others: run it again later",
        budget.remaining()
    ))
}

impl Service for Rest {
    fn via(&self) -> &'static str {
        "rest"
    }

    fn locate(&self, session: &Session, artifact: &Listed) -> Result<String, Failure> {
        self.spare()?;
        let Access { api, repository, token } = &self.access;
        let url = format!("{api}/repos/{repository}/actions/artifacts/{}/zip", artifact.id);
        let request = Request::get(&url, WHOLE)
            .header("x-github-api-version", VERSION)
            .bearer(token.as_deref())
            .with_proxy();
        let answer = session.send(&request)?;
        let budget = Budget::of(&answer.headers);
        *self.budget.lock().map_err(|_| Failure::Refused(BROKEN.to_owned()))? = budget;
        let location = || answer.headers.get("location")?.to_str().ok().map(str::to_owned);
        let asked = retry_after(&answer.headers);
        match answer.status.as_u16() {
            302 => location().ok_or_else(|| Failure::Refused("GitHub gives no address of it".to_owned())),
            410 => Err(Failure::Expired),
            404 => Err(Failure::Refused(
                "GitHub has it no longer, or the token may not read it (`actions: read`)".to_owned(),
            )),
            403 | 429 if budget.is_used_up() && budget.wait() > MAX_WAIT => Err(over(&budget)),
            403 | 429 if budget.is_used_up() => {
                Err(Failure::Again("no request is left".to_owned(), Some(budget.wait())))
            }
            403 if asked.is_none() => Err(Failure::Refused(
                "the token may not read it: it needs the permission `actions: read`".to_owned(),
            )),
            401 => Err(Failure::Refused("GitHub does not accept the token".to_owned())),
            status @ (403 | 408 | 429 | 500..) => Err(Failure::Again(format!("GitHub answered with {status}"), asked)),
            status => Err(Failure::Refused(format!("GitHub answered with {status}"))),
        }
    }
}

impl From<Artifact> for Listed {
    fn from(artifact: Artifact) -> Self {
        Self {
            name: artifact.name,
            id: artifact.id,
            digest: artifact.digest.filter(|digest| !digest.is_empty()),
            expired: artifact.expired,
            backend: Default::default(),
        }
    }
}
