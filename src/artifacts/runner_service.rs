//! The runner's own service: what JavaScript actions ask for the artifacts of their run.
//!
//! Source: the public client, `@actions/artifact` 6.2 (`src/internal`): the two calls, their fields, and the claim of the
//! token that names run and job. Times and tries are this project's own.

use std::collections::HashSet;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::Uri;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::retry::tried;
use super::{Failure, Listed, Service};
use crate::config::problem::{Problem, printable};
use crate::github::client::budget::retry_after;
use crate::http::{Request, Session};

const ADDRESS: &str = "ACTIONS_RESULTS_URL";
const TOKEN: &str = "ACTIONS_RUNTIME_TOKEN";
const CALLS: &str = "twirp/github.actions.results.api.v1.ArtifactService";
/// The claim's part that names a run and a job.
const SCOPE: &str = "Actions.Results";
/// How long a call may take.
const WHOLE: Duration = Duration::from_secs(60);
/// The largest answer that is read, in bytes: a list of 100,000 artifacts.
const MAX_ANSWER: u64 = 64 << 20;
/// How often a call for a list is tried at most.
const ATTEMPTS: u32 = 5;
/// A list that is cut has at least so many: each name that such a list lacks is asked for by itself.
const MAY_BE_CUT: usize = 100;
/// Names that are asked for at a time.
const SIDE_BY_SIDE: usize = 16;
/// The longest text of the service that is repeated, in characters.
const SHOWN: usize = 200;

/// The service, for one job.
pub(crate) struct Runner {
    origin: String,
    token: String,
    run: String,
    job: String,
}

/// An answer to `ListArtifacts`. The service writes names in either case, and large numbers as text.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    artifacts: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(alias = "workflowRunBackendId")]
    workflow_run_backend_id: String,
    #[serde(alias = "workflowJobRunBackendId")]
    workflow_job_run_backend_id: String,
    #[serde(alias = "databaseId", deserialize_with = "number")]
    database_id: u64,
    name: String,
    #[serde(default)]
    digest: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Signed {
    #[serde(default, alias = "signedUrl")]
    signed_url: String,
}

/// What the service says of an error.
#[derive(Debug, Default, Deserialize)]
struct Said {
    #[serde(default)]
    msg: String,
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value
        .as_u64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    number.ok_or_else(|| serde::de::Error::custom("a number is expected"))
}

impl Runner {
    /// The service that the environment gives access to; `None` where it gives none, as in a `run` step.
    ///
    /// # Errors
    /// An address that a token may not be sent to, and a token that names no run.
    pub(crate) fn from_environment() -> Result<Option<Self>, Problem> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let (Some(address), Some(token)) = (variable(ADDRESS), variable(TOKEN)) else {
            return Ok(None);
        };
        Self::new(&address, token).map(Some)
    }

    fn new(address: &str, token: String) -> Result<Self, Problem> {
        let origin = origin(address).ok_or_else(|| {
            Problem::file("", format!("{ADDRESS} is no https address"))
                .hint("leave it as the runner sets it, or unset it and ask GitHub with --run-id")
        })?;
        let (run, job) = backend(&token).ok_or_else(|| {
            Problem::file("", format!("{TOKEN} names no run"))
                .hint("leave it as the runner sets it, or unset it and ask GitHub with --run-id")
        })?;
        Ok(Self {
            origin,
            token,
            run,
            job,
        })
    }

    /// The artifacts of the run, of every attempt at it.
    ///
    /// # Errors
    /// A service that does not answer as it should.
    pub(crate) fn list(&self, names: &[&str]) -> Result<Vec<Listed>, Problem> {
        let session = session()?;
        let mut listed = self.listed(&session, None)?;
        if listed.len() < MAY_BE_CUT {
            return Ok(listed);
        }
        let there: HashSet<&str> = listed.iter().map(|artifact| artifact.name.as_str()).collect();
        let lacking: Vec<&str> = names.iter().copied().filter(|name| !there.contains(name)).collect();
        listed.extend(self.listed_by_name(&lacking)?);
        Ok(listed)
    }

    /// The artifacts of each name, asked for side by side.
    fn listed_by_name(&self, names: &[&str]) -> Result<Vec<Listed>, Problem> {
        let of_part = |names: &[&str]| {
            let session = session()?;
            let of_name = |name: &&str| self.listed(&session, Some(name));
            names.iter().map(of_name).collect::<Result<Vec<_>, _>>()
        };
        let parts = names.chunks(names.len().div_ceil(SIDE_BY_SIDE).max(1));
        let lists = std::thread::scope(|scope| {
            let threads: Vec<_> = parts.map(|names| scope.spawn(move || of_part(names))).collect();
            let broke = |_| Problem::file("", "the run's artifacts cannot be listed: a request broke");
            let ended = threads.into_iter().map(|thread| thread.join().map_err(broke)?);
            ended.collect::<Result<Vec<_>, Problem>>()
        })?;
        Ok(lists.into_iter().flatten().flatten().collect())
    }

    fn listed(&self, session: &Session, name: Option<&str>) -> Result<Vec<Listed>, Problem> {
        let mut asked = self.asked();
        if let Some(name) = name {
            asked["name_filter"] = json!(name);
        }
        let (_, answer) = tried(ATTEMPTS, || self.call::<Answer>(session, "ListArtifacts", &asked));
        let entries = answer.map_err(|failure| unlisted(&failure))?.artifacts;
        Ok(entries.into_iter().map(Listed::from).collect())
    }

    fn asked(&self) -> Value {
        json!({ "workflow_run_backend_id": self.run, "workflow_job_run_backend_id": self.job })
    }

    fn call<T: DeserializeOwned>(&self, session: &Session, call: &str, body: &Value) -> Result<T, Failure> {
        let request = Request::post(&format!("{}/{CALLS}/{call}", self.origin), body.to_string(), WHOLE)
            .header("content-type", "application/json")
            .bearer(Some(&self.token))
            .limit(MAX_ANSWER)
            .with_proxy();
        let answer = session.send(&request)?;
        let status = answer.status.as_u16();
        let said = || {
            let said: Said = serde_json::from_slice(&answer.body).unwrap_or_default();
            let shown: String = said.msg.replace(&self.token, "***").chars().take(SHOWN).collect();
            format!("{call} was answered with {status} {}", printable(&shown))
        };
        match status {
            200..300 => serde_json::from_slice(&answer.body)
                .map_err(|error| Failure::Again(format!("{call} was answered with something else: {error}"), None)),
            408 | 429 | 500.. => Err(Failure::Again(
                said().trim_end().to_owned(),
                retry_after(&answer.headers),
            )),
            _ => Err(Failure::Refused(said().trim_end().to_owned())),
        }
    }
}

impl Service for Runner {
    fn via(&self) -> &'static str {
        "runner"
    }

    fn locate(&self, session: &Session, artifact: &Listed) -> Result<String, Failure> {
        let (run, job) = &artifact.backend;
        let asked = json!({
            "workflow_run_backend_id": run, "workflow_job_run_backend_id": job, "name": artifact.name,
        });
        let Signed { signed_url } = self.call(session, "GetSignedArtifactURL", &asked)?;
        match signed_url.is_empty() {
            true => Err(Failure::Refused("the service gives no address of it".to_owned())),
            false => Ok(signed_url),
        }
    }
}

impl From<Entry> for Listed {
    fn from(entry: Entry) -> Self {
        Self {
            name: entry.name,
            id: entry.database_id,
            digest: entry.digest.filter(|digest| !digest.is_empty()),
            expired: false,
            backend: (entry.workflow_run_backend_id, entry.workflow_job_run_backend_id),
        }
    }
}

fn session() -> Result<Session, Problem> {
    Session::new().map_err(|error| unlisted(&Failure::from(error)))
}

fn unlisted(failure: &Failure) -> Problem {
    let message = format!("the run's artifacts cannot be listed: {}", failure.reason());
    Problem::file("", message).hint("run it again; https://www.githubstatus.com says what is down")
}

/// The address without its path, if a token may be sent there: encrypted, or not beyond this machine.
fn origin(address: &str) -> Option<String> {
    let uri: Uri = address.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let is_local = matches!(authority.host(), "127.0.0.1" | "localhost" | "[::1]");
    let is_fine = scheme == "https" || (scheme == "http" && is_local);
    (is_fine && !authority.as_str().contains('@')).then(|| format!("{scheme}://{authority}"))
}

/// The run and the job that a token is for: `Actions.Results:<run>:<job>` in its claim `scp`.
fn backend(token: &str) -> Option<(String, String)> {
    #[derive(Deserialize)]
    struct Claims {
        scp: String,
    }
    let claims = URL_SAFE_NO_PAD
        .decode(token.split('.').nth(1)?.trim_end_matches('='))
        .ok()?;
    let Claims { scp } = serde_json::from_slice(&claims).ok()?;
    scp.split(' ').find_map(|scope| {
        let mut parts = scope.split(':');
        match (parts.next()?, parts.next()?, parts.next()?, parts.next()) {
            (SCOPE, run, job, None) if !run.is_empty() && !job.is_empty() => Some((run.to_owned(), job.to_owned())),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(claims: &Value) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn the_token_names_run_and_job() {
        let good = json!({ "scp": "Actions.ExampleScope Actions.Results:ce7f:ca39 Other:1:2", "iss": "x" });
        assert_eq!(backend(&token(&good)), Some(("ce7f".to_owned(), "ca39".to_owned())));
        for scp in [
            "",
            "Actions.Results",
            "Actions.Results:a",
            "Actions.Results:a:b:c",
            "Actions.Results::b",
        ] {
            assert_eq!(backend(&token(&json!({ "scp": scp }))), None, "{scp}");
        }
        for token in ["", "a.b", "a.!!.c", &token(&json!({ "scp": 1 })), &token(&json!([]))] {
            assert_eq!(backend(token), None, "{token}");
        }
    }

    #[test]
    fn a_token_is_sent_encrypted_or_to_this_machine() {
        let fine = [
            ("https://results.example.com/", "https://results.example.com"),
            (
                "https://results.example.com:8443/a/b?c",
                "https://results.example.com:8443",
            ),
            ("http://127.0.0.1:4000/x", "http://127.0.0.1:4000"),
            ("http://[::1]:4000", "http://[::1]:4000"),
        ];
        for (address, wanted) in fine {
            assert_eq!(origin(address).as_deref(), Some(wanted));
        }
        for address in [
            "",
            "http://example.com",
            "ftp://127.0.0.1",
            "https://u:p@example.com",
            "/twirp",
        ] {
            assert_eq!(origin(address), None, "{address}");
        }
        let problem = Runner::new("http://example.com", "hunter2".to_owned())
            .err()
            .expect("refused");
        assert!(!problem.to_string().contains("hunter2"));
    }

    #[test]
    fn the_service_writes_names_in_either_case_and_numbers_as_text() {
        let snake = json!({ "artifacts": [{ "workflow_run_backend_id": "r", "workflow_job_run_backend_id": "j",
            "database_id": "9007199254740993", "name": "a", "size": "3", "created_at": "2026-01-01T00:00:00Z",
            "digest": "sha256:1" }] });
        let camel = json!({ "artifacts": [{ "workflowRunBackendId": "r", "workflowJobRunBackendId": "j",
            "databaseId": 9_007_199_254_740_993_u64, "name": "a", "digest": "sha256:1" }] });
        for answer in [snake, camel] {
            let Answer { mut artifacts } = serde_json::from_value(answer).expect("an answer");
            let listed = Listed::from(artifacts.remove(0));
            assert_eq!((listed.id, listed.backend.1.as_str()), (9_007_199_254_740_993, "j"));
        }
        let none: Answer = serde_json::from_str("{}").expect("an answer");
        assert!(none.artifacts.is_empty());
    }
}
