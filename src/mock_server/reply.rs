//! A reply under the limits of its request, word by word. A word is the token here: what white space separates.

use super::answer::Answer;

/// What a request allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// The least number of words.
    pub min: usize,
    /// The largest number of words.
    pub max: usize,
    /// Texts that end the reply, and are no part of it.
    pub stop: Vec<String>,
}

/// Where a word belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    /// `reasoning_content`
    Reasoning,
    /// `content`, or `text` of a completion
    Content,
    /// The arguments of a tool call, by its index
    Call(usize),
}

/// What the model says, ready to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// Words with the white space before them; all together they are the text. Of a tool call's arguments, the pieces.
    pub words: Vec<(Channel, String)>,
    /// The names of the tools that are called.
    pub calls: Vec<String>,
    /// `stop`, `tool_calls` where tools are called, or `length` where the limit cut the reply.
    pub finish_reason: &'static str,
}

impl Reply {
    /// Puts an answer under limits: cut before a stop text, filled up in front to the least number of words (so that
    /// the answer still stands at the end), and cut at the largest; one that is to be cut ends half way. An empty answer
    /// stays empty, and so that they stay JSON the arguments of tool calls are neither stopped nor filled up.
    #[must_use]
    pub(super) fn new(answer: &Answer, limits: &Limits) -> Self {
        let channels = [
            (Channel::Reasoning, answer.reasoning.as_str()),
            (Channel::Content, answer.content.as_str()),
        ];
        let mut words: Vec<_> = channels
            .into_iter()
            .flat_map(|(channel, text)| words(until(text, &limits.stop)).map(move |word| (channel, word.to_owned())))
            .collect();
        let pieces = answer.calls.iter().enumerate();
        words.extend(pieces.flat_map(|(at, call)| call.pieces().map(move |piece| (Channel::Call(at), piece))));
        if let Some((channel @ (Channel::Reasoning | Channel::Content), _)) = words.first() {
            let missing = limits.min.saturating_sub(words.len());
            words.splice(0..0, filler(*channel, missing));
        }
        if answer.is_cut {
            words.truncate(words.len().div_ceil(2));
        }
        // A reply that must be as long as it may be never ends by itself.
        let cut = answer.is_cut || words.len() > limits.max || (words.len() == limits.max && limits.min >= limits.max);
        words.truncate(limits.max);
        Self {
            words,
            finish_reason: match answer.calls.is_empty() {
                _ if cut => "length",
                true => "stop",
                false => "tool_calls",
            },
            calls: answer.calls.iter().map(|call| call.name.clone()).collect(),
        }
    }

    /// The text of one channel.
    #[must_use]
    pub(super) fn text(&self, channel: Channel) -> String {
        let words = self.words.iter().filter(|(of, _)| *of == channel);
        words.map(|(_, word)| word.as_str()).collect()
    }
}

/// How many words a text has.
#[must_use]
pub(super) fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

/// `count` words that say nothing, to stand before others.
fn filler(channel: Channel, count: usize) -> impl Iterator<Item = (Channel, String)> {
    (1..=count).map(move |n| (channel, if n == count { "so\n" } else { "so " }.to_owned()))
}

/// The text before the first stop text.
fn until<'t>(text: &'t str, stop: &[String]) -> &'t str {
    let ends = stop.iter().filter(|stop| !stop.is_empty());
    let end = ends.filter_map(|stop| text.find(stop.as_str())).min();
    &text[..end.unwrap_or(text.len())]
}

/// The words of a text, each with the white space before it, the last also with that after it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(|c: char| !c.is_whitespace())?;
        let end = rest[start..]
            .find(char::is_whitespace)
            .map_or(rest.len(), |at| start + at);
        let end = if rest[end..].trim().is_empty() { rest.len() } else { end };
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(content: &str, min: usize, max: usize, stop: &[&str]) -> Reply {
        let answer = Answer {
            content: content.to_owned(),
            ..Answer::default()
        };
        let stop = stop.iter().map(|stop| (*stop).to_owned()).collect();
        Reply::new(&answer, &Limits { min, max, stop })
    }

    #[test]
    fn words_make_up_the_text() {
        for text in ["The answer is 42.\n#### 42", " two  words \n", "one", ""] {
            let reply = reply(text, 0, 99, &[]);
            assert_eq!(reply.text(Channel::Content), text);
            assert_eq!(reply.words.len(), count(text));
            assert_eq!(reply.finish_reason, "stop");
        }
    }

    #[test]
    fn limits_hold() {
        let cut = reply("a b c", 0, 2, &[]);
        assert_eq!(
            (cut.text(Channel::Content).as_str(), cut.finish_reason),
            ("a b", "length")
        );
        let whole = reply("a b c", 0, 3, &[]);
        assert_eq!((whole.words.len(), whole.finish_reason), (3, "stop"));
        let filled = reply("a b\n#### 1", 9, 9, &[]);
        assert_eq!((filled.words.len(), filled.finish_reason), (9, "length"));
        assert!(filled.text(Channel::Content).ends_with("so\na b\n#### 1"));
        assert_eq!(count(&filled.text(Channel::Content)), 9);
        assert_eq!(reply("", 5, 5, &[]).words, []);
    }

    #[test]
    fn a_cut_answer_ends_half_way_and_says_so() {
        let answer = Answer {
            content: "a b c".to_owned(),
            is_cut: true,
            ..Answer::default()
        };
        let limits = Limits {
            max: 99,
            ..Limits::default()
        };
        let cut = Reply::new(&answer, &limits);
        assert_eq!(
            (cut.text(Channel::Content).as_str(), cut.finish_reason),
            ("a b", "length")
        );
    }

    #[test]
    fn the_first_stop_text_ends_the_reply() {
        let stopped = reply("one two three four", 0, 99, &["four", "</s>", "two", ""]);
        assert_eq!(stopped.text(Channel::Content), "one ");
        assert_eq!(stopped.finish_reason, "stop");
        assert_eq!(reply("one", 0, 99, &["one"]).words, []);
    }
}
