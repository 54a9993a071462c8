//! What each path answers.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Request as HttpRequest, State};
use axum::http::{StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::answer::Answerer;
use super::events::{Events, call_id};
use super::faults::{Arrival, Attempts, Fault};
use super::pace::{self, End, Piece};
use super::protocol::{ApiError, Endpoint, Request};
use super::reply::{Channel, Reply};
use super::tools::Tools;
use super::traffic::{Ticket, Traffic};
use super::{MAX_BODY, Settings};

/// What all requests share.
#[derive(Debug)]
pub(super) struct App {
    settings: Settings,
    answerer: Answerer,
    traffic: Arc<Traffic>,
    attempts: Attempts,
    ready_at: Instant,
}

impl App {
    /// A server that starts now.
    #[must_use]
    pub(super) fn new(settings: Settings, answerer: Answerer) -> Self {
        Self {
            traffic: Arc::new(Traffic::new(settings.faults.die_after)),
            attempts: Attempts::default(),
            ready_at: Instant::now() + settings.serving.startup_delay,
            answerer,
            settings,
        }
    }
}

/// The routes. All but `/metrics` wait for the startup delay.
pub(super) fn router(app: App) -> Router {
    let app = Arc::new(app);
    let engine = Router::new()
        .route("/health", get(|| async { StatusCode::OK }))
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completions))
        .route_layer(middleware::from_fn_with_state(Arc::clone(&app), when_ready));
    engine
        .route("/metrics", get(metrics))
        .fallback(|uri: Uri| async move { ApiError::new(StatusCode::NOT_FOUND, format!("no route `{}`", uri.path())) })
        .method_not_allowed_fallback(|| async {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this route has another method")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(app)
}

async fn when_ready(State(app): State<Arc<App>>, request: HttpRequest, next: Next) -> Response {
    if Instant::now() < app.ready_at {
        return ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the server is starting").into_response();
    }
    next.run(request).await
}

async fn models(State(app): State<Arc<App>>) -> Json<Value> {
    let serving = &app.settings.serving;
    Json(json!({"object": "list", "data": [{
        "id": serving.model,
        "object": "model",
        "created": now(),
        "owned_by": "sweepctl",
        "root": serving.model,
        "max_model_len": serving.max_model_len,
    }]}))
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        app.traffic.metrics(),
    )
        .into_response()
}

type Body = Result<Bytes, BytesRejection>;

async fn chat(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    generate(&app, Endpoint::Chat, body).await
}

async fn completions(State(app): State<Arc<App>>, body: Body) -> Result<Response, ApiError> {
    generate(&app, Endpoint::Completions, body).await
}

async fn generate(app: &App, endpoint: Endpoint, body: Body) -> Result<Response, ApiError> {
    let start = Instant::now();
    let request = Request::read(&body?)?;
    let generation = Generation::new(app, endpoint, &request)?;
    let ticket = app.traffic.arrive();
    let fault = app.settings.faults.strike(
        app.settings.skill.seed,
        Arrival {
            number: ticket.number,
            in_flight: ticket.in_flight,
            question: &generation.question,
            attempt: app.attempts.note(&generation.question),
        },
    );
    if fault.is_some() {
        ticket.failed();
    }
    let end = match fault {
        None => End::Whole,
        Some(Fault::CloseEarly) => End::Cut,
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::Fail) => {
            return Err(ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "a fault, as asked for",
            ));
        }
    };
    Ok(if request.streams() {
        generation.stream(app, start, end, ticket, request.includes_usage())
    } else {
        generation.whole(app, start, end, ticket).await
    })
}

/// The answers to one request, before they are sent.
struct Generation {
    endpoint: Endpoint,
    /// What is asked, all prompts together.
    question: String,
    /// In the order of their index: those to the first prompt first.
    replies: Vec<Reply>,
    usage: Value,
}

impl Generation {
    fn new(app: &App, endpoint: Endpoint, request: &Request) -> Result<Self, ApiError> {
        let serving = &app.settings.serving;
        if let Some(model) = request.model.as_ref().filter(|model| **model != serving.model) {
            return Err(ApiError::unknown_model(model, &serving.model));
        }
        let prompts = request.prompts(endpoint)?;
        let answers = request.answers()?;
        let tools = request.tools(endpoint)?;
        let mut questions = Vec::new();
        let mut replies = Vec::new();
        for prompt in &prompts {
            let limits = request.limits(endpoint, prompt, serving.max_model_len)?;
            let question = app.answerer.question(&prompt.text);
            let mut answer = app.answerer.answer(&question, &prompt.text, tools.as_ref());
            if endpoint == Endpoint::Completions {
                // Completions have no reasoning of their own: it is part of the text.
                answer.content = std::mem::take(&mut answer.reasoning) + &answer.content;
            }
            let reply = Reply::new(&answer, &limits);
            replies.extend(std::iter::repeat_n(reply, answers));
            let tools = tools.as_ref().map(Tools::text).unwrap_or_default();
            questions.push(format!("{}{tools}", question.text()));
        }
        let read: usize = prompts.iter().map(|prompt| prompt.words).sum();
        let written: usize = replies.iter().map(|reply| reply.words.len()).sum();
        Ok(Self {
            endpoint,
            question: questions.join("\0"),
            replies,
            usage: json!({"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}),
        })
    }

    /// One JSON value, sent when its last word is due.
    async fn whole(self, app: &App, start: Instant, end: End, ticket: Ticket) -> Response {
        let mut value = head(app, self.endpoint, ticket.number, false);
        let choices = self
            .replies
            .iter()
            .enumerate()
            .map(|(index, reply)| self.choice(ticket.number, index, reply));
        value["choices"] = choices.collect();
        value["usage"] = self.usage.clone();
        let bytes = Bytes::from(value.to_string());
        let length = bytes.len();
        let words = self.replies.iter().map(|reply| reply.words.len()).max().unwrap_or(0);
        let at = start + app.settings.pace.due(words);
        sleep_until(at).await;
        let sent = if end == End::Cut {
            bytes.slice(..length / 2)
        } else {
            bytes
        };
        let headers = [
            (header::CONTENT_TYPE, "application/json".to_owned()),
            (header::CONTENT_LENGTH, length.to_string()),
        ];
        let pieces = std::iter::once(Piece { at, bytes: sent });
        (headers, pace::body(pieces, end, ticket)).into_response()
    }

    fn choice(&self, number: u64, index: usize, reply: &Reply) -> Value {
        let content = reply.text(Channel::Content);
        let mut choice = json!({"index": index});
        match self.endpoint {
            Endpoint::Completions => choice["text"] = content.into(),
            Endpoint::Chat => {
                choice["message"] = json!({"role": "assistant", "content": content});
                let reasoning = reply.text(Channel::Reasoning);
                if !reasoning.is_empty() {
                    choice["message"]["reasoning_content"] = reasoning.into();
                }
                if !reply.calls.is_empty() {
                    choice["message"]["content"] = Value::Null;
                    let calls = reply.calls.iter().enumerate();
                    let calls = calls.map(|(at, name)| {
                        let arguments = reply.text(Channel::Call(at));
                        json!({
                            "id": call_id(number, index, at),
                            "type": "function",
                            "function": {"name": name, "arguments": arguments},
                        })
                    });
                    choice["message"]["tool_calls"] = calls.collect();
                }
            }
        }
        choice["logprobs"] = Value::Null;
        choice["finish_reason"] = reply.finish_reason.into();
        choice
    }

    /// Server-sent events, each sent when its word is due.
    fn stream(self, app: &App, start: Instant, end: End, ticket: Ticket, with_usage: bool) -> Response {
        let events = Events {
            endpoint: self.endpoint,
            head: head(app, self.endpoint, ticket.number, true),
            number: ticket.number,
            replies: self.replies,
            usage: with_usage.then_some(self.usage),
        };
        let kept = match end {
            End::Whole => usize::MAX,
            End::Cut => events.steps().div_ceil(2),
        };
        let pace = app.settings.pace.clone();
        let pieces = events.into_iter().take(kept).map(move |(words, bytes)| Piece {
            at: start + pace.due(words),
            bytes,
        });
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        (headers, pace::body(pieces, end, ticket)).into_response()
    }
}

/// What every answer and every chunk of one begins with.
fn head(app: &App, endpoint: Endpoint, number: u64, chunk: bool) -> Value {
    let (prefix, object) = match (endpoint, chunk) {
        (Endpoint::Chat, false) => ("chatcmpl", "chat.completion"),
        (Endpoint::Chat, true) => ("chatcmpl", "chat.completion.chunk"),
        (Endpoint::Completions, _) => ("cmpl", "text_completion"),
    };
    json!({
        "id": format!("{prefix}-{number}"),
        "object": object,
        "created": now(),
        "model": app.settings.serving.model,
    })
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
