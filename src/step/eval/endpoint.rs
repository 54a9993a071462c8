//! The server under test: whether it is ready, and which model it serves.

use std::time::{Duration, Instant};

use hyper::Uri;
use serde_json::{Value, json};

use crate::config::problem::Problem;
use crate::http;
use crate::process::Cancellation;

/// How long a server may take until it is ready, unless EVAL_ENDPOINT_READY_TIMEOUT_SECONDS says otherwise.
pub(crate) const READY_TIMEOUT: Duration = Duration::from_secs(900);
/// How long one probe may take; a cancelled step has no time for more.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long one token may take. A cancelled step waits for no longer; a cold server gets another probe.
const CHAT_TIMEOUT: Duration = Duration::from_secs(4);
/// The pause between probes.
const PAUSE: Duration = Duration::from_millis(500);

/// An OpenAI-compatible server.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    base: String,
    host: String,
    key: Option<String>,
}

impl Endpoint {
    /// The server at a URL such as `http://localhost:8000`; a trailing `/` or `/v1` is left out.
    ///
    /// `key` is sent as a bearer token. No proxy is asked: the server is the job's own.
    ///
    /// # Errors
    /// A text that is no such URL, or one that carries credentials: results repeat it.
    pub(crate) fn parse(url: &str, key: Option<&str>) -> Result<Self, Problem> {
        let refused = |why: &str| {
            Problem::file("", format!("`{url}` is no endpoint: {why}")).hint("write it as http://HOST:PORT")
        };
        let uri: Uri = url.trim().parse().map_err(|_| refused("it is no URL"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(refused("it starts with neither http:// nor https://"));
        }
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| refused("it names no host"))?;
        if uri
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'))
        {
            return Err(refused(
                "it carries credentials, which the results would show; set OPENAI_API_KEY",
            ));
        }
        if uri.query().is_some() || url.contains([',', '=', '\'', '"']) {
            return Err(refused("it holds more than a host, a port and a path"));
        }
        let base = url.trim().trim_end_matches('/');
        let base = base.strip_suffix("/v1").unwrap_or(base).trim_end_matches('/');
        Ok(Self {
            base: base.to_owned(),
            host: host.to_owned(),
            key: key.map(str::to_owned),
        })
    }

    /// The URL that clients of the OpenAI API start from.
    #[must_use]
    pub(crate) fn base_url(&self) -> String {
        format!("{}/v1", self.base)
    }

    /// The URL of chat completions.
    #[must_use]
    pub(crate) fn chat_url(&self) -> String {
        format!("{}/v1/chat/completions", self.base)
    }

    /// The host's name or address.
    #[must_use]
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Waits until `/health` or `/v1/models` answers with success, within a deadline.
    ///
    /// # Errors
    /// It does not, with the last answers; or the wait was cancelled.
    pub(crate) fn wait(&self, deadline: Duration, cancel: &Cancellation) -> Result<(), Problem> {
        self.wait_at("/health", deadline, cancel)
    }

    /// Waits until a path or `/v1/models` answers with success, within a deadline.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub(crate) fn wait_at(&self, path: &str, deadline: Duration, cancel: &Cancellation) -> Result<(), Problem> {
        self.wait_for(deadline, cancel, "not ready", || {
            self.get(path).map(drop).or_else(|health| {
                self.get("/v1/models")
                    .map(drop)
                    .map_err(|models| format!("{health}; {models}"))
            })
        })
    }

    /// Waits until a model answers on the chat route, which says more than a healthy frontend does.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub(crate) fn wait_for_chat(&self, model: &str, deadline: Duration, cancel: &Cancellation) -> Result<(), Problem> {
        let hello = json!({
            "model": model,
            "messages": [{"role": "user", "content": "Hello"}],
            "max_tokens": 1,
        });
        let what = format!("not serving `{model}` on its chat route");
        self.wait_for(deadline, cancel, &what, || self.post("/v1/chat/completions", &hello))
    }

    /// The served model's name: the first of some that `/v1/models` lists, else the only one that it lists. A server
    /// that has no such list is asked under the first name. What is not as it was asked for goes to `show`.
    ///
    /// # Errors
    /// It lists none of them, and not exactly one; or it cannot be asked, and there is no name.
    pub(crate) fn served(&self, names: &[&str], show: &mut dyn FnMut(&str)) -> Result<String, Problem> {
        let failed = |why: String| {
            Problem::file("", format!("the served model is unknown: {why}")).hint("set MODEL_NAME to the served model")
        };
        let listed = match (self.models(), names.first()) {
            (Ok(listed), _) => listed,
            (Err(why), Some(first)) => {
                show(&format!(
                    "the server does not say what it serves ({why}): it is asked for `{first}`"
                ));
                return Ok((*first).to_owned());
            }
            (Err(why), None) => return Err(failed(why)),
        };
        // A folder's name may end in a slash or not.
        let is =
            |listed: &str, name: &str| listed == name || listed.trim_end_matches('/') == name.trim_end_matches('/');
        let found = names
            .iter()
            .find_map(|name| listed.iter().find(|listed| is(listed, name)));
        match (found, &listed[..]) {
            (Some(found), _) => Ok(found.clone()),
            (None, [only]) => {
                if !names.is_empty() {
                    show(&format!("the server serves `{only}`, and none of {}", names.join(", ")));
                }
                Ok(only.clone())
            }
            (None, []) => Err(failed("/v1/models lists none".to_owned())),
            (None, _) => Err(failed(format!("/v1/models lists {}", listed.join(", ")))),
        }
    }

    /// The names that `/v1/models` lists.
    fn models(&self) -> Result<Vec<String>, String> {
        let body = self.get("/v1/models")?;
        let list: Value = serde_json::from_str(&body).map_err(|error| format!("/v1/models is no JSON: {error}"))?;
        let models = list["data"].as_array().into_iter().flatten();
        Ok(models
            .filter_map(|model| Some(model["id"].as_str()?.to_owned()))
            .collect())
    }

    fn wait_for(
        &self,
        deadline: Duration,
        cancel: &Cancellation,
        what: &str,
        mut probe: impl FnMut() -> Result<(), String>,
    ) -> Result<(), Problem> {
        let started = Instant::now();
        loop {
            let Err(last) = probe() else { return Ok(()) };
            if started.elapsed() + PAUSE >= deadline {
                let seconds = deadline.as_secs_f64();
                let message = format!("{} is {what} after {seconds} s: {last}", self.base);
                return Err(Problem::file("", message).hint(
                    "look at the server's log; a slow start gets more time by EVAL_ENDPOINT_READY_TIMEOUT_SECONDS",
                ));
            }
            if !cancel.sleep(PAUSE) {
                let message = format!("the wait for {} was cancelled: {last}", self.base);
                return Err(Problem::file("", message));
            }
        }
    }

    fn get(&self, path: &str) -> Result<String, String> {
        self.ask(path, http::Request::get(&format!("{}{path}", self.base), PROBE_TIMEOUT))
    }

    fn post(&self, path: &str, body: &Value) -> Result<(), String> {
        let request = http::Request::post(&format!("{}{path}", self.base), body.to_string(), CHAT_TIMEOUT);
        self.ask(path, request.header("content-type", "application/json"))
            .map(drop)
    }

    fn ask(&self, path: &str, request: http::Request) -> Result<String, String> {
        let answer = request.bearer(self.key.as_deref()).send();
        let answer = answer.map_err(|error| format!("{path}: {error}"))?;
        if !answer.status.is_success() {
            return Err(format!("{path}: {}", answer.status));
        }
        String::from_utf8(answer.body).map_err(|_| format!("{path}: io: stream did not contain valid UTF-8"))
    }
}
