//! What is asked: lengths drawn evenly, prompts of random tokens or, for the chat route, of random words.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::Request;
use super::exchange::Server;
use crate::config::problem::Problem;

/// Token ids that prompts are drawn from. Lower ids are often special tokens and single bytes; every vocabulary that is
/// served today has more than the upper bound.
const TOKENS: std::ops::Range<u32> = 1_000..30_000;
/// Words that tokenizers of today know as one token each, with the space before it.
const WORDS: [&str; 16] = [
    "time", "year", "people", "way", "day", "man", "thing", "woman", "life", "child", "world", "school", "state",
    "family", "student", "group",
];
/// Words of the two questions from which a chat template's own length is found.
const PROBES: [u64; 2] = [64, 320];

/// One request's prompt, and how long its answer is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Prompt {
    pub(super) content: Content,
    /// Tokens of the prompt, as far as they are known before the server has counted them.
    pub(super) input: u64,
    /// Tokens of the answer.
    pub(super) output: u64,
}

/// What a prompt is made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Tokens(Vec<u32>),
    Text(String),
}

/// How many tokens a text of words takes on the chat route: `fixed + words * each`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Template {
    fixed: f64,
    each: f64,
}

impl Template {
    /// The line through the token counts of two questions.
    fn through(counts: [u64; 2]) -> Option<Self> {
        let [first, second] = counts.map(|count| count as f64);
        let [few, many] = PROBES.map(|words| words as f64);
        let each = (second - first) / (many - few);
        (each > 0.0).then_some(Self {
            fixed: first - few * each,
            each,
        })
    }

    /// The words that make a prompt of so many tokens; at least one.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and as large as a prompt"
    )]
    fn words(self, tokens: u64) -> u64 {
        ((tokens as f64 - self.fixed) / self.each).round().max(1.0) as u64
    }
}

/// Asks a server how many tokens two questions take under its chat template.
pub(super) async fn template(server: &Server) -> Result<Template, Problem> {
    let mut random = SmallRng::seed_from_u64(0);
    let mut counts = [0; 2];
    for (count, words) in counts.iter_mut().zip(PROBES) {
        let prompt = Prompt {
            content: Content::Text(text(&mut random, words)),
            input: words,
            output: 1,
        };
        let measured = server.ask(&prompt).await;
        if let Some(error) = measured.error {
            return Err(Problem::file("", format!("the chat route did not answer: {error}"))
                .hint("name the served model with --model, or measure on --route completions"));
        }
        *count = measured.input;
    }
    Template::through(counts).ok_or_else(|| {
        Problem::file("", "the server's token counts do not grow with the prompt")
            .hint("measure on --route completions, where prompts are token ids")
    })
}

fn text(random: &mut SmallRng, words: u64) -> String {
    let words: Vec<&str> = (0..words).map(|_| WORDS[random.random_range(0..WORDS.len())]).collect();
    words.join(" ")
}

/// Draws prompts.
#[derive(Debug)]
pub(super) struct Lengths {
    random: SmallRng,
    input: (u64, u64),
    output: (u64, u64),
}

impl Lengths {
    pub(super) fn new(request: &Request) -> Self {
        Self {
            random: SmallRng::seed_from_u64(request.seed),
            input: bounds(request.isl, request.range_ratio),
            output: bounds(request.osl, request.range_ratio),
        }
    }

    /// The next prompt.
    pub(super) fn prompt(&mut self, template: Option<&Template>) -> Prompt {
        let input = self.random.random_range(self.input.0..=self.input.1);
        let output = self.random.random_range(self.output.0..=self.output.1);
        let content = match template {
            None => Content::Tokens((0..input).map(|_| self.random.random_range(TOKENS)).collect()),
            Some(template) => Content::Text(text(&mut self.random, template.words(input))),
        };
        Prompt { content, input, output }
    }
}

/// The least and the most tokens, both at least 1.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a positive length"
)]
fn bounds(most: u64, ratio: f64) -> (u64, u64) {
    let most = most.max(1);
    let least = (most as f64 * ratio) as u64;
    (least.clamp(1, most), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_lie_between_the_share_and_the_most() {
        assert_eq!(bounds(1024, 0.8), (819, 1024));
        assert_eq!(bounds(1024, 0.0), (1, 1024));
        assert_eq!(bounds(1, 1.0), (1, 1));
    }

    #[test]
    fn a_template_is_a_line_through_two_counts() {
        // 12 tokens of its own, and 1.5 a word.
        let template = Template::through([12 + 96, 12 + 480]).expect("a line");
        assert_eq!(template.words(12 + 150), 100);
        assert_eq!(template.words(3), 1, "a prompt has at least one word");
        assert!(Template::through([50, 50]).is_none(), "counts that do not grow");
    }
}
