//! Requests and answers: retries of reads, the hour's budget, tags that save it, and bounds.
//!
//! octocrab would repeat a POST as readily as a GET, so its retries are off. A write is sent once: a second dispatch
//! costs a fleet's night.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use futures_util::StreamExt;
use octocrab::Octocrab;
use octocrab::service::middleware::retry::RetryConfig;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use super::budget::{Budget, MAX_WAIT, retry_after};
use super::error::{Error, told};
use super::settings::Settings;

/// The largest answer that is read, in bytes: a hundred comments of the greatest length stay under it.
const MAX_ANSWER: usize = 32 << 20;
/// The most that is kept of a text of any size, in bytes.
const MAX_TAIL: usize = 1 << 20;
/// The most that is read for it.
const MAX_READ: usize = 512 << 20;
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a request may take, with its answer.
const WHOLE: Duration = Duration::from_secs(60);
/// How often a read is sent at most.
const ATTEMPTS: u32 = 4;
/// The wait before the second attempt; each later one waits twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// A connection to the API.
pub(super) struct Transport {
    runtime: Runtime,
    octocrab: Octocrab,
    token: Option<String>,
    budget: Cell<Budget>,
    uses_reserve: bool,
    /// Answers to reads with their tags, by path.
    known: RefCell<HashMap<String, (HeaderValue, Bytes)>>,
}

/// An answer to a read, with its tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// What was asked for.
    path: String,
    /// The tag that the answer came with.
    tag: String,
    /// The answer.
    body: String,
}

/// A write, by its method.
#[derive(Debug, Clone, Copy)]
pub(super) enum Write {
    /// Makes something.
    Post,
    /// Changes something.
    Patch,
}

impl Write {
    fn name(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Patch => "PATCH",
        }
    }
}

/// An answer, whatever its status.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Transport {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// No certificate store, and settings that octocrab refuses.
    pub(super) fn new(settings: &Settings) -> Result<Self, Error> {
        let failed = |error: &dyn std::error::Error| Error::Setup(chain(error));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(&error))?;
        let mut builder = Octocrab::builder()
            .base_uri(settings.api.as_str())
            .and_then(|builder| builder.upload_uri(settings.api.as_str()))
            .map_err(|error| failed(&error))?
            .add_retry_config(RetryConfig::None)
            .set_connect_timeout(Some(CONNECT))
            .set_read_timeout(Some(WHOLE))
            .set_write_timeout(Some(WHOLE));
        if let Some(token) = &settings.token {
            if HeaderValue::from_str(token).is_err() {
                return Err(Error::Setup("the token holds a character that no token has".to_owned()));
            }
            builder = builder.personal_token(token.as_str());
        }
        let octocrab = {
            let _inside = runtime.enter();
            builder.build().map_err(|error| failed(&error))?
        };
        Ok(Self {
            runtime,
            octocrab,
            token: settings.token.clone(),
            budget: Cell::default(),
            uses_reserve: false,
            known: RefCell::default(),
        })
    }

    /// Lets reads use the reserve.
    pub(super) fn use_reserve(&mut self) {
        self.uses_reserve = true;
    }

    /// Answers with their tags, as far as both are text.
    pub(super) fn known(&self) -> Vec<Known> {
        let text = |(path, (tag, body)): (&String, &(HeaderValue, Bytes))| {
            Some(Known {
                path: path.clone(),
                tag: tag.to_str().ok()?.to_owned(),
                body: std::str::from_utf8(body).ok()?.to_owned(),
            })
        };
        self.known.borrow().iter().filter_map(text).collect()
    }

    /// Takes answers of an earlier connection.
    pub(super) fn remember(&self, known: Vec<Known>) {
        let mut all = self.known.borrow_mut();
        for Known { path, tag, body } in known {
            if let Ok(tag) = HeaderValue::from_str(&tag) {
                all.insert(path, (tag, Bytes::from(body)));
            }
        }
    }

    /// Reads; `permission` is what a token needs for it.
    ///
    /// # Errors
    /// Everything but a whole answer with a good status, after the last attempt.
    pub(super) fn get(&self, path: &str, permission: &str) -> Result<Bytes, Error> {
        let request = format!("GET {path}");
        self.runtime.block_on(async {
            let mut attempt = 1;
            loop {
                self.spare(&request).await?;
                let answer = self.read(path, &request).await;
                match self.repeat_in(&answer, attempt) {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => return self.take(answer?, path, &request, permission),
                }
                attempt += 1;
            }
        })
    }

    /// Reads a text that may be of any size, and gives the end of it. GitHub answers with an address elsewhere, which gets
    /// no token. It is not repeated: what it is asked for is worth knowing, not needed.
    ///
    /// # Errors
    /// Everything but an answer with a good status.
    pub(super) fn tail(&self, path: &str, permission: &str) -> Result<Vec<u8>, Error> {
        let request = format!("GET {path}");
        let no_answer = |reason: String| Error::NoAnswer {
            request: request.clone(),
            reason: told(&reason, self.token.as_deref()),
            may_have_acted: false,
        };
        self.runtime.block_on(async {
            self.spare(&request).await?;
            let whole = async {
                let sent = self.octocrab._get_with_headers(path, None).await;
                let (parts, body) = sent.map_err(|error| no_answer(chain(&error)))?.into_parts();
                if !parts.status.is_success() {
                    let body = axum::body::to_bytes(Body::new(body), MAX_ANSWER)
                        .await
                        .unwrap_or_default();
                    let (status, headers) = (parts.status.as_u16(), parts.headers);
                    self.budget.set(Budget::of(&headers));
                    self.judge(&Answer { status, headers, body }, &request, permission)?;
                    return Ok(Vec::new());
                }
                end_of(Body::new(body)).await.map_err(|error| no_answer(chain(&error)))
            };
            let late = |_| no_answer(format!("it took longer than {} s", WHOLE.as_secs()));
            tokio::time::timeout(WHOLE, whole).await.map_err(late)?
        })
    }

    /// How long a reader that asks again and again waits, so that so many requests a turn last until the hour's are counted
    /// anew: at least as long as it likes to.
    pub(super) fn pause(&self, requests: u64, least: Duration) -> Duration {
        self.budget.get().pause(requests, least)
    }

    /// Writes, once.
    ///
    /// # Errors
    /// Everything but a whole answer with a good status.
    pub(super) fn write(
        &self,
        how: Write,
        path: &str,
        body: &impl Serialize,
        permission: &str,
    ) -> Result<Bytes, Error> {
        self.written(how, path, body, permission).map(|answer| answer.body)
    }

    /// Sends what is answered with no content. Once, as [`Self::write`].
    ///
    /// # Errors
    /// Everything but that answer.
    pub(super) fn send(&self, path: &str, body: &impl Serialize, permission: &str) -> Result<(), Error> {
        /// No content.
        const DONE: u16 = 204;
        match self.written(Write::Post, path, body, permission)?.status {
            DONE => Ok(()),
            status => Err(Error::Answer {
                request: format!("POST {path}"),
                reason: format!("the status is {status}, where {DONE} says that it was done"),
            }),
        }
    }

    fn written(&self, how: Write, path: &str, body: &impl Serialize, permission: &str) -> Result<Answer, Error> {
        let request = format!("{} {path}", how.name());
        self.runtime.block_on(async {
            let sent = async {
                match how {
                    Write::Post => self.octocrab._post(path, Some(body)).await,
                    Write::Patch => self.octocrab._patch(path, Some(body)).await,
                }
            };
            let answer = self.whole(sent, &request, true).await?;
            self.judge(&answer, &request, permission)?;
            Ok(answer)
        })
    }

    /// Waits for the next hour where only the reserve is left and that is soon.
    async fn spare(&self, request: &str) -> Result<(), Error> {
        let budget = self.budget.get();
        if self.uses_reserve || !budget.is_low() {
            return Ok(());
        }
        if budget.wait() > MAX_WAIT {
            return Err(over(&budget, request));
        }
        tokio::time::sleep(budget.wait()).await;
        Ok(())
    }

    async fn read(&self, path: &str, request: &str) -> Result<Answer, Error> {
        let mut headers = HeaderMap::new();
        if let Some((tag, _)) = self.known.borrow().get(path) {
            headers.insert(header::IF_NONE_MATCH, tag.clone());
        }
        let sent = self.octocrab._get_with_headers(path, Some(headers));
        self.whole(sent, request, false).await
    }

    /// How long to wait before a read is repeated; `None` where its answer stands.
    fn repeat_in(&self, answer: &Result<Answer, Error>, attempt: u32) -> Option<Duration> {
        let pause = FIRST_WAIT * 2_u32.pow(attempt - 1);
        let wait = match answer {
            Err(Error::NoAnswer { .. }) => pause,
            Err(_) => return None,
            Ok(Answer {
                status: 500.., headers, ..
            }) => retry_after(headers).unwrap_or(pause),
            Ok(Answer {
                status: status @ (403 | 429),
                headers,
                ..
            }) => match retry_after(headers) {
                Some(wait) => wait,
                None if self.budget.get().is_used_up() => self.budget.get().wait().max(pause),
                None if *status == 429 => pause,
                None => return None,
            },
            Ok(_) => return None,
        };
        (attempt < ATTEMPTS && wait <= MAX_WAIT).then_some(wait)
    }

    /// The body of an answer to a read. One that has not changed is not sent again, and costs nothing of the budget.
    fn take(&self, answer: Answer, path: &str, request: &str, permission: &str) -> Result<Bytes, Error> {
        let mut known = self.known.borrow_mut();
        if answer.status == 304
            && let Some((_, body)) = known.get(path)
        {
            return Ok(body.clone());
        }
        self.judge(&answer, request, permission)?;
        if let Some(tag) = answer.headers.get(header::ETAG) {
            known.insert(path.to_owned(), (tag.clone(), answer.body.clone()));
        }
        Ok(answer.body)
    }

    fn judge(&self, answer: &Answer, request: &str, permission: &str) -> Result<(), Error> {
        let budget = self.budget.get();
        match answer.status {
            200..300 => Ok(()),
            403 | 429 if budget.is_used_up() => Err(over(&budget, request)),
            status => Err(Error::Status {
                request: request.to_owned(),
                status,
                message: told(&said(&answer.body), self.token.as_deref()),
                permission: permission.to_owned(),
            }),
        }
    }

    /// The whole answer, in time and within bounds.
    async fn whole<B>(
        &self,
        sent: impl Future<Output = octocrab::Result<Response<B>>>,
        request: &str,
        may_have_acted: bool,
    ) -> Result<Answer, Error>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let no_answer = |reason: String| Error::NoAnswer {
            request: request.to_owned(),
            reason: told(&reason, self.token.as_deref()),
            may_have_acted,
        };
        let whole = async {
            let (parts, body) = sent.await.map_err(|error| no_answer(chain(&error)))?.into_parts();
            self.budget.set(Budget::of(&parts.headers));
            let body = axum::body::to_bytes(Body::new(body), MAX_ANSWER).await;
            let body = body.map_err(|error| match chain(&error) {
                reason if reason.contains("length limit") => Error::Answer {
                    request: request.to_owned(),
                    reason: format!("it is larger than {} MiB", MAX_ANSWER >> 20),
                },
                reason => no_answer(reason),
            })?;
            Ok(Answer {
                status: parts.status.as_u16(),
                headers: parts.headers,
                body,
            })
        };
        let late = |_| no_answer(format!("it took longer than {} s", WHOLE.as_secs()));
        tokio::time::timeout(WHOLE, whole).await.map_err(late)?
    }
}

/// The end of a body, up to [`MAX_TAIL`].
async fn end_of(body: Body) -> Result<Vec<u8>, axum::Error> {
    let mut frames = body.into_data_stream();
    let mut end: Vec<u8> = Vec::new();
    let mut read = 0;
    while let Some(frame) = frames.next().await {
        let frame = frame?;
        read += frame.len();
        end.extend_from_slice(&frame);
        if end.len() > 2 * MAX_TAIL {
            end.drain(..end.len() - MAX_TAIL);
        }
        if read > MAX_READ {
            break;
        }
    }
    end.drain(..end.len().saturating_sub(MAX_TAIL));
    Ok(end)
}

fn over(budget: &Budget, request: &str) -> Error {
    Error::Budget {
        request: request.to_owned(),
        remaining: budget.remaining(),
        wait: budget.wait(),
    }
}

/// An error with its causes, which octocrab's own text leaves out.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

/// What GitHub says of an error: the `message` of its JSON and its `errors`, else the body's first line.
fn said(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Said {
        message: String,
        #[serde(default)]
        errors: serde_json::Value,
    }
    match serde_json::from_slice::<Said>(body) {
        Ok(Said {
            message,
            errors: serde_json::Value::Null,
        }) => message,
        Ok(Said { message, errors }) => format!("{message} {errors}"),
        Err(_) => String::from_utf8_lossy(body)
            .lines()
            .next()
            .unwrap_or("no text")
            .to_owned(),
    }
}
