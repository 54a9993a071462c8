//! Requests and errors of the OpenAI API, as far as benchmarks and evals use them. Unknown fields are ignored.

use axum::Json;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::reply::{Limits, count};
use super::tools::{Tool, ToolChoice, Tools};

/// The two routes that generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// `/v1/chat/completions`
    Chat,
    /// `/v1/completions`
    Completions,
}

/// A request to generate, of either route.
#[derive(Debug, Deserialize)]
pub(super) struct Request {
    /// The model; the served one where it is left out.
    pub model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<PromptField>,
    max_tokens: Option<usize>,
    max_completion_tokens: Option<usize>,
    min_tokens: Option<usize>,
    ignore_eos: Option<bool>,
    n: Option<usize>,
    stop: Option<Stop>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    tools: Option<Vec<Tool>>,
    tool_choice: Option<ToolChoice>,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: String,
    content: Option<Content>,
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "`content` must be a string or a list of {\"type\": \"text\", \"text\": ...}"
)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "`prompt` must be a string, a list of token ids, or a list of either"
)]
enum PromptField {
    Text(String),
    Texts(Vec<String>),
    Tokens(Vec<u32>),
    TokenLists(Vec<Vec<u32>>),
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "`stop` must be a string or a list of strings")]
enum Stop {
    One(String),
    // lm-eval sends `null` for an end-of-sequence text that it does not know.
    Many(Vec<Option<String>>),
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// What is to be answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    /// Where the question stands: the last user message, or the whole prompt of a completion.
    pub text: String,
    /// The length of everything that was sent, in words (or token ids).
    pub words: usize,
}

impl Request {
    /// The most answers to one prompt.
    const MOST_ANSWERS: usize = 128;

    /// Reads a body.
    ///
    /// # Errors
    /// 400 for anything that is no request.
    pub(super) fn read(body: &[u8]) -> Result<Self, ApiError> {
        serde_json::from_slice(body)
            .map_err(|error| ApiError::invalid(format!("the body is no valid request: {error}")))
    }

    /// The prompts, at least one.
    ///
    /// # Errors
    /// 400 where the field of the route is missing or empty.
    pub(super) fn prompts(&self, endpoint: Endpoint) -> Result<Vec<Prompt>, ApiError> {
        let prompts = match endpoint {
            Endpoint::Chat => self.messages.as_deref().and_then(conversation).into_iter().collect(),
            Endpoint::Completions => self.prompt.as_ref().map(PromptField::prompts).unwrap_or_default(),
        };
        if prompts.is_empty() {
            let field = match endpoint {
                Endpoint::Chat => "messages",
                Endpoint::Completions => "prompt",
            };
            return Err(ApiError::invalid(format!("`{field}` is missing or empty")));
        }
        Ok(prompts)
    }

    /// The tools that the answer may call; `None` where it calls none.
    ///
    /// # Errors
    /// As [`Tools::of`].
    pub(super) fn tools(&self, endpoint: Endpoint) -> Result<Option<Tools<'_>>, ApiError> {
        if endpoint == Endpoint::Completions {
            return Ok(None);
        }
        let last = self.messages.as_deref().and_then(|messages| messages.last());
        let answered = last.is_some_and(|message| message.role == "tool");
        Tools::of(
            self.tools.as_deref().unwrap_or_default(),
            self.tool_choice.as_ref(),
            answered,
        )
    }

    /// How many answers each prompt gets.
    ///
    /// # Errors
    /// 400 outside of 1 to 128.
    pub(super) fn answers(&self) -> Result<usize, ApiError> {
        let n = self.n.unwrap_or(1);
        if (1..=Self::MOST_ANSWERS).contains(&n) {
            return Ok(n);
        }
        let most = Self::MOST_ANSWERS;
        Err(ApiError::invalid(format!("`n` must be from 1 to {most}, not {n}")))
    }

    /// The limits of the answer to a prompt under a context of `context` words.
    ///
    /// # Errors
    /// 400 where prompt and answer do not fit the context, and where the limits contradict each other.
    pub(super) fn limits(&self, endpoint: Endpoint, prompt: &Prompt, context: usize) -> Result<Limits, ApiError> {
        /// What OpenAI's completions give where nothing is asked.
        const COMPLETION: usize = 16;
        let asked = self.max_completion_tokens.or(self.max_tokens);
        let room = context.saturating_sub(prompt.words);
        if room == 0 || asked.is_some_and(|asked| asked > room) {
            return Err(ApiError {
                code: Some("context_length_exceeded"),
                ..ApiError::invalid(format!(
                    "This model's maximum context length is {context} tokens. However, you requested {} tokens in the \
                     prompt and {} in the completion. Shorten the prompt or lower max_tokens.",
                    prompt.words,
                    asked.unwrap_or(1),
                ))
            });
        }
        let max = asked.unwrap_or(match endpoint {
            Endpoint::Chat => room,
            Endpoint::Completions => room.min(COMPLETION),
        });
        let min = match self.min_tokens.unwrap_or(0) {
            _ if self.ignore_eos.unwrap_or(false) => max,
            min => min,
        };
        if max == 0 {
            return Err(ApiError::invalid("`max_tokens` must be at least 1"));
        }
        if min > max {
            return Err(ApiError::invalid(format!(
                "`min_tokens` is {min}, more than `max_tokens`, {max}"
            )));
        }
        let stop = match &self.stop {
            None => Vec::new(),
            Some(Stop::One(text)) => vec![text.clone()],
            Some(Stop::Many(texts)) => texts.iter().flatten().cloned().collect(),
        };
        Ok(Limits { min, max, stop })
    }

    /// Whether the answer comes as events.
    #[must_use]
    pub(super) fn streams(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    /// Whether a stream ends with the token counts.
    #[must_use]
    pub(super) fn includes_usage(&self) -> bool {
        self.stream_options
            .as_ref()
            .and_then(|o| o.include_usage)
            .unwrap_or(false)
    }
}

/// The prompt of a chat: its length is that of all messages, its text the last user message (the last message where
/// no user speaks).
fn conversation(messages: &[Message]) -> Option<Prompt> {
    let asking = messages
        .iter()
        .rfind(|message| message.role == "user")
        .or(messages.last())?;
    Some(Prompt {
        text: asking.text(),
        words: messages.iter().map(|message| count(&message.text())).sum(),
    })
}

impl Message {
    fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Parts(parts)) => {
                let texts: Vec<&str> = parts.iter().filter_map(|part| part.text.as_deref()).collect();
                texts.join("\n")
            }
        }
    }
}

impl PromptField {
    fn prompts(&self) -> Vec<Prompt> {
        let text = |text: &String| Prompt {
            text: text.clone(),
            words: count(text),
        };
        let tokens = |ids: &Vec<u32>| Prompt {
            text: ids.iter().map(u32::to_string).collect::<Vec<_>>().join(" "),
            words: ids.len(),
        };
        match self {
            Self::Text(one) => vec![text(one)],
            Self::Texts(many) => many.iter().map(text).collect(),
            Self::Tokens(one) => vec![tokens(one)],
            Self::TokenLists(many) => many.iter().map(tokens).collect(),
        }
    }
}

/// An error in the shape of OpenAI's.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    message: String,
    code: Option<&'static str>,
}

impl ApiError {
    /// An error with a status and no code.
    #[must_use]
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            code: None,
        }
    }

    /// 400
    #[must_use]
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 404 for a model that is not served.
    #[must_use]
    pub(crate) fn unknown_model(asked: &str, served: &str) -> Self {
        let message = format!("The model `{asked}` does not exist; `{served}` is served.");
        Self {
            code: Some("model_not_found"),
            ..Self::new(StatusCode::NOT_FOUND, message)
        }
    }

    fn body(&self) -> Value {
        let kind = if self.status.is_server_error() {
            "server_error"
        } else {
            "invalid_request_error"
        };
        json!({"error": {"message": self.message, "type": kind, "param": null, "code": self.code}})
    }
}

impl From<BytesRejection> for ApiError {
    fn from(rejection: BytesRejection) -> Self {
        Self::new(rejection.status(), rejection.body_text())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self.body())).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(value: &Value) -> Request {
        Request::read(value.to_string().as_bytes()).expect("a request")
    }

    fn limits(value: &Value) -> Result<Limits, ApiError> {
        let prompt = Prompt {
            text: String::new(),
            words: 10,
        };
        request(value).limits(Endpoint::Chat, &prompt, 100)
    }

    #[test]
    fn a_chat_asks_in_its_last_user_message_and_counts_them_all() {
        let chat = json!({"messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "first question"},
            {"role": "assistant", "content": null, "tool_calls": []},
            {"role": "user", "content": [
                {"type": "text", "text": "second"},
                {"type": "image_url", "image_url": {"url": "data:"}},
                {"type": "text", "text": "question here"},
            ]},
            {"role": "assistant", "content": "Let me"},
        ]});
        let prompts = request(&chat).prompts(Endpoint::Chat).expect("one");
        let expected = Prompt {
            text: "second\nquestion here".to_owned(),
            words: 9,
        };
        assert_eq!(prompts, [expected]);
        assert!(request(&chat).prompts(Endpoint::Completions).is_err());
    }

    #[test]
    fn prompts_are_texts_or_token_ids() {
        for (prompt, words) in [
            (json!("a b c"), vec![3]),
            (json!(["a b", "c"]), vec![2, 1]),
            (json!([5, 6, 7]), vec![3]),
            (json!([[5, 6], [7]]), vec![2, 1]),
        ] {
            let prompts = request(&json!({"prompt": prompt})).prompts(Endpoint::Completions);
            let lengths: Vec<usize> = prompts.expect("prompts").iter().map(|p| p.words).collect();
            assert_eq!(lengths, words, "{prompt}");
        }
        assert!(request(&json!({"prompt": []})).prompts(Endpoint::Completions).is_err());
    }

    #[test]
    fn limits_follow_the_request() {
        let range = |value: Value| limits(&value).map(|limits| (limits.min, limits.max)).ok();
        assert_eq!(range(json!({})), Some((0, 90)));
        assert_eq!(range(json!({"max_tokens": 90})), Some((0, 90)));
        assert_eq!(range(json!({"max_tokens": 91})), None);
        assert_eq!(range(json!({"max_tokens": 0})), None);
        assert_eq!(
            range(json!({"max_tokens": 50, "max_completion_tokens": 20})),
            Some((0, 20))
        );
        assert_eq!(range(json!({"max_tokens": 50, "min_tokens": 7})), Some((7, 50)));
        assert_eq!(range(json!({"max_tokens": 5, "min_tokens": 7})), None);
        assert_eq!(range(json!({"max_tokens": 50, "ignore_eos": true})), Some((50, 50)));
        let stop = json!({"stop": ["</s>", null, "Q:"]});
        assert_eq!(limits(&stop).expect("limits").stop, ["</s>", "Q:"]);
    }

    #[test]
    fn a_wrong_type_is_named() {
        let error = Request::read(br#"{"stop": 5}"#).expect_err("a number is no stop text");
        assert!(error.message.contains("`stop` must be"), "{}", error.message);
    }
}
