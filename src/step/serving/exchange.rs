//! One request: what is sent, and when which part of the answer came.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{Method, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use serde_json::{Value, json};

use super::workload::{Content, Prompt};
use super::{Request, Route};
use crate::config::problem::Problem;

/// The most of one event that is read, in bytes.
const MAX_EVENT: usize = 4 << 20;
/// The most of an error's body that is shown, in characters.
const SHOWN: usize = 300;

/// A server, and how it is asked.
#[derive(Debug)]
pub(super) struct Server {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: Uri,
    route: Route,
    model: String,
    timeout: Duration,
}

/// What became of one request; times in seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Measured {
    /// Tokens of the prompt, as the server counts them, else as it was drawn.
    pub(super) input: u64,
    /// Tokens of the answer, as the server counts them, else its parts.
    pub(super) output: u64,
    /// Until the first part.
    pub(super) first: f64,
    /// Between parts.
    pub(super) gaps: Vec<f64>,
    /// Until the end.
    pub(super) latency: f64,
    /// Why it failed.
    pub(super) error: Option<String>,
}

/// What is read of one event of the stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    choices: Vec<Choice>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    text: Option<String>,
    delta: Option<Delta>,
}

/// Engines call what a model thinks `reasoning_content`, newer ones `reasoning`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Delta {
    content: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

impl Choice {
    fn says_something(&self) -> bool {
        let delta = self.delta.as_ref();
        let texts = [
            self.text.as_ref(),
            delta.and_then(|delta| delta.content.as_ref()),
            delta.and_then(|delta| delta.reasoning_content.as_ref()),
            delta.and_then(|delta| delta.reasoning.as_ref()),
        ];
        texts.into_iter().flatten().any(|text| !text.is_empty())
    }
}

impl Server {
    /// A server at a request's endpoint.
    pub(super) fn new(request: &Request) -> Result<Self, Problem> {
        let text = format!("{}{}", request.endpoint.trim_end_matches('/'), request.route.path());
        let refused = |why: String| {
            Problem::file("", format!("`{}` cannot be measured: {why}", request.endpoint))
                .hint("name the server as http://HOST:PORT")
        };
        let uri: Uri = text.parse().map_err(|error| refused(format!("{error}")))?;
        if uri.scheme_str() != Some("http") || uri.host().is_none() {
            return Err(refused(
                "the client speaks plain HTTP to a server of the same node".to_owned(),
            ));
        }
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            uri,
            route: request.route,
            model: request.served.as_ref().unwrap_or(&request.model).clone(),
            timeout: request.timeout,
        })
    }

    /// Asks, and measures the answer.
    pub(super) async fn ask(&self, prompt: &Prompt) -> Measured {
        let started = Instant::now();
        let mut measured = Measured {
            input: prompt.input,
            ..Measured::default()
        };
        let ended = tokio::time::timeout(self.timeout, self.stream(prompt, started, &mut measured)).await;
        measured.error = match ended {
            Ok(Ok(())) if measured.output == 0 => Some("the answer is empty".to_owned()),
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(_) => Some(format!("no answer within {} s", self.timeout.as_secs())),
        };
        measured
    }

    async fn stream(&self, prompt: &Prompt, started: Instant, measured: &mut Measured) -> Result<(), String> {
        let body = self.body(prompt).to_string();
        let request = axum::http::Request::builder()
            .method(Method::POST)
            .uri(self.uri.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| error.to_string())?;
        let response = self.client.request(request).await.map_err(|error| deepest(&error))?;
        let status = response.status();
        let mut body = response.into_body();
        if !status.is_success() {
            let text = read_some(&mut body).await;
            return Err(format!("{status}: {text}"));
        }
        let mut pending = Vec::new();
        let mut times = Times {
            started,
            last: None,
            parts: 0,
            usage: None,
        };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| deepest(&error))?;
            let Ok(data) = frame.into_data() else { continue };
            pending.extend_from_slice(&data);
            let mut read = 0;
            while let Some(end) = memchr::memchr(b'\n', &pending[read..]) {
                times.line(&pending[read..read + end], measured)?;
                read += end + 1;
            }
            pending.drain(..read);
            if pending.len() > MAX_EVENT {
                return Err(format!("an event is longer than {MAX_EVENT} bytes"));
            }
        }
        times.line(&pending, measured)?;
        times.finish(measured)
    }

    fn body(&self, prompt: &Prompt) -> Value {
        let mut body = json!({
            "model": self.model,
            "max_tokens": prompt.output,
            "min_tokens": prompt.output,
            "ignore_eos": true,
            "temperature": 0.0,
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        let (field, value) = match (&prompt.content, self.route) {
            (Content::Tokens(ids), _) => ("prompt", json!(ids)),
            (Content::Text(text), Route::Completions) => ("prompt", json!(text)),
            (Content::Text(text), Route::Chat) => ("messages", json!([{ "role": "user", "content": text }])),
        };
        body[field] = value;
        body
    }
}

/// When the parts of one answer came.
struct Times {
    started: Instant,
    last: Option<Instant>,
    parts: u64,
    usage: Option<Usage>,
}

impl Times {
    /// A line of the stream: an event, or nothing that counts.
    fn line(&mut self, line: &[u8], measured: &mut Measured) -> Result<(), String> {
        let Some(data) = line.strip_prefix(b"data:") else {
            return Ok(());
        };
        let data = data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let event: Event = serde_json::from_slice(data).map_err(|error| format!("an event is no JSON: {error}"))?;
        if let Some(error) = event.error {
            return Err(shortened(&error.to_string()));
        }
        self.usage = event.usage.or(self.usage);
        if event.choices.iter().any(Choice::says_something) {
            let now = Instant::now();
            match self.last {
                None => measured.first = (now - self.started).as_secs_f64(),
                Some(last) => measured.gaps.push((now - last).as_secs_f64()),
            }
            self.last = Some(now);
            self.parts += 1;
        }
        Ok(())
    }

    /// The end of the stream; the answer is over with its last part, whatever is sent after it.
    fn finish(self, measured: &mut Measured) -> Result<(), String> {
        let last = self.last.ok_or("the stream ended without an answer")?;
        measured.latency = (last - self.started).as_secs_f64();
        measured.output = self.parts;
        if let Some(usage) = self.usage {
            measured.output = usage.completion_tokens.max(1);
            measured.input = if usage.prompt_tokens > 0 {
                usage.prompt_tokens
            } else {
                measured.input
            };
        }
        Ok(())
    }
}

/// The innermost reason of an error: the outer ones only say that a request failed.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

async fn read_some(body: &mut hyper::body::Incoming) -> String {
    let mut text = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data() {
            text.extend_from_slice(&data);
        }
        if text.len() > SHOWN * 4 {
            break;
        }
    }
    shortened(&String::from_utf8_lossy(&text))
}

fn shortened(text: &str) -> String {
    text.chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
