//! Answers as server-sent events.

use axum::body::Bytes;
use serde_json::{Value, json};

use super::protocol::Endpoint;
use super::reply::{Channel, Reply};

/// The events of one request: a chunk for each word, then the counts where asked for, then the end mark.
pub(super) struct Events {
    /// The route.
    pub endpoint: Endpoint,
    /// What every chunk begins with.
    pub head: Value,
    /// The request's number.
    pub number: u64,
    /// The answers, in the order of their index.
    pub replies: Vec<Reply>,
    /// The token counts, where the request wants them.
    pub usage: Option<Value>,
}

impl Events {
    /// How many steps there are before the end: as many as the longest answer has words. An answer without words
    /// takes one, which says that it is over.
    #[must_use]
    pub(super) fn steps(&self) -> usize {
        self.replies
            .iter()
            .map(|reply| reply.words.len())
            .max()
            .unwrap_or(0)
            .max(1)
    }

    /// The chunks of all answers at a step, and how many words an answer has with it. Made one after another: an
    /// answer may be long.
    pub(super) fn into_iter(self) -> impl Iterator<Item = (usize, Bytes)> + Send + 'static {
        let steps = self.steps();
        (0..=steps).map(move |step| {
            let text = if step < steps { self.step(step) } else { self.end() };
            (steps.min(step + 1), Bytes::from(text))
        })
    }

    fn step(&self, step: usize) -> String {
        let speaking = |(_, reply): &(usize, &Reply)| step < reply.words.len().max(1);
        let replies = self.replies.iter().enumerate().filter(speaking);
        replies.map(|(index, reply)| self.chunk(index, reply, step)).collect()
    }

    /// The chunk of one word. The last word also says why the answer ends.
    fn chunk(&self, index: usize, reply: &Reply, step: usize) -> String {
        let nothing = (Channel::Content, String::new());
        let (channel, word) = reply.words.get(step).unwrap_or(&nothing);
        let mut choice = json!({"index": index});
        match self.endpoint {
            Endpoint::Completions => choice["text"] = word.as_str().into(),
            Endpoint::Chat => {
                choice["delta"] = match channel {
                    Channel::Content => json!({"content": word}),
                    Channel::Reasoning => json!({"reasoning_content": word}),
                    Channel::Call(call) => {
                        let mut piece = json!({"index": call, "function": {"arguments": word}});
                        // The first piece of a call says which it is.
                        if step == 0 || reply.words[step - 1].0 != *channel {
                            piece["id"] = call_id(self.number, index, *call).into();
                            piece["type"] = "function".into();
                            piece["function"]["name"] = reply.calls[*call].as_str().into();
                        }
                        json!({"tool_calls": [piece]})
                    }
                };
                if step == 0 {
                    choice["delta"]["role"] = "assistant".into();
                }
            }
        }
        choice["logprobs"] = Value::Null;
        let is_last = step + 1 >= reply.words.len();
        choice["finish_reason"] = is_last.then_some(reply.finish_reason).into();
        let mut chunk = self.head.clone();
        chunk["choices"] = json!([choice]);
        if self.usage.is_some() {
            chunk["usage"] = Value::Null;
        }
        event(&chunk)
    }

    fn end(&self) -> String {
        let counts = self.usage.as_ref().map(|usage| {
            let mut chunk = self.head.clone();
            chunk["choices"] = json!([]);
            chunk["usage"] = usage.clone();
            event(&chunk)
        });
        counts.unwrap_or_default() + "data: [DONE]\n\n"
    }
}

/// The id of a tool call, unique in a server's life.
#[must_use]
pub(super) fn call_id(number: u64, index: usize, call: usize) -> String {
    format!("call_{number}_{index}_{call}")
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}
