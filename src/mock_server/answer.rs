//! How a question is answered.

use std::borrow::Cow;
use std::path::PathBuf;

use aho_corasick::AhoCorasick;
use clap::Args;
use rust_decimal::Decimal;

use super::answers_file::{self, Pair, one_blank};
use super::arithmetic;
use super::draw::{draw, share, spread};
use super::tools::{Call, Tools};
use super::truth::Truth;
use crate::config::problem::{Problem, Problems};

/// Keeps right or wrong, and silent, apart from other draws.
const ORDER: &str = "order";
/// Which questions are answered in the reasoning alone.
const REASONING: &str = "reasoning";
/// Which answers end half way.
const CUT: &str = "cut";
/// Which wrong answer is given.
const WRONG: &str = "wrong";

/// How well questions are answered; shares are `0.0..=1.0`.
#[derive(Debug, Clone, Args)]
pub(crate) struct Skill {
    /// JSON lines {"question": "...", "answer": "... #### 42"}; an answer may also be a plain number or a letter, or
    /// `"tool_calls": [{"name": "...", "arguments": {...}}]`
    #[arg(long, value_name = "FILE", num_args = 1.., help_heading = "Answers")]
    pub answers: Vec<PathBuf>,
    /// The share of questions that are answered rightly, exact over each of the answers files
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share, help_heading = "Answers")]
    pub accuracy: f64,
    /// Chooses which questions get which treatment
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Answers")]
    pub seed: u64,
    /// The share of questions that get an empty answer, wrongly answered ones first
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share, help_heading = "Faults")]
    pub empty_rate: f64,
    /// The share of questions whose chat answer stands in `reasoning_content`, with `content` empty
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share, help_heading = "Faults")]
    pub reasoning_only_rate: f64,
    /// The share of questions whose answer, or reasoning, ends half way, as where the output budget is spent
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share, help_heading = "Faults")]
    pub cut_rate: f64,
    /// The share of tool calls whose arguments break their schema: one is missing, or of a wrong type
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share, help_heading = "Faults")]
    pub tool_wrong_rate: f64,
}

/// What the model says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The thinking, apart from the answer.
    pub reasoning: String,
    /// The answer.
    pub content: String,
    /// The tools that are called, instead of an answer.
    pub calls: Vec<Call>,
    /// Whether it ends half way.
    pub is_cut: bool,
}

/// Answers questions, each always in the same way.
#[derive(Debug)]
pub(crate) struct Answerer {
    skill: Skill,
    known: Vec<Known>,
    finder: AhoCorasick,
}

/// A question whose answer is known, with its places among those of its file.
#[derive(Debug)]
pub(crate) struct Known {
    /// With every run of white space as one blank.
    question: String,
    truth: Truth,
    places: Places,
}

/// Where a question stands among the others, for each kind of treatment, in `0.0..1.0`.
#[derive(Debug, Clone, Copy)]
struct Places {
    order: f64,
    reasoning: f64,
    cut: f64,
}

impl Places {
    /// Those of a question that no file knows.
    fn drawn(seed: u64, question: &str) -> Self {
        Self {
            order: draw(seed, ORDER, question),
            reasoning: draw(seed, REASONING, question),
            cut: draw(seed, CUT, question),
        }
    }
}

impl Answerer {
    /// Reads the answers files.
    ///
    /// # Errors
    /// As [`answers_file::read`].
    pub(crate) fn load(skill: Skill) -> Result<Self, Problems> {
        let files = answers_file::read(&skill.answers)?;
        Self::new(files, skill)
    }

    fn new(files: Vec<Vec<Pair>>, skill: Skill) -> Result<Self, Problems> {
        // A file is a task: each gets its own exact shares.
        let known: Vec<Known> = files.into_iter().flat_map(|file| placed(file, skill.seed)).collect();
        let finder = AhoCorasick::new(known.iter().map(|known| &known.question))
            .map_err(|error| Problem::file("", format!("the answers are too many to search: {error}")))?;
        Ok(Self { skill, known, finder })
    }

    /// The question that a prompt asks: the known one nearest its end (few-shot examples stand before it), the longest
    /// of those that end there, or the whole prompt.
    #[must_use]
    pub(crate) fn question<'a>(&'a self, prompt: &str) -> Question<'a> {
        let prompt = one_blank(prompt);
        let found = self
            .finder
            .find_overlapping_iter(&prompt)
            .max_by_key(|found| (found.end(), found.len()));
        match found {
            Some(found) => Question::Known(&self.known[found.pattern().as_usize()]),
            None => Question::Unknown(prompt),
        }
    }

    /// Answers the question of a prompt, by calling a tool where there are any.
    #[must_use]
    pub(crate) fn answer(&self, question: &Question<'_>, prompt: &str, tools: Option<&Tools<'_>>) -> Answer {
        let skill = &self.skill;
        let (truth, places) = match question {
            Question::Known(known) => (Cow::Borrowed(&known.truth), known.places),
            Question::Unknown(text) => (Cow::Owned(computed(text)), Places::drawn(skill.seed, text)),
        };
        if places.order >= 1.0 - skill.empty_rate {
            return Answer::default();
        }
        let is_right = places.order < skill.accuracy;
        let is_cut = places.cut < skill.cut_rate;
        if let Some(tools) = tools {
            let made = || vec![tools.call(question.text(), skill.seed, skill.tool_wrong_rate)];
            let calls = match &*truth {
                Truth::Calls(calls) if is_right => calls.clone(),
                // Where no tool fits, calling one is wrong, and where some do, calling none.
                Truth::Calls(calls) if !calls.is_empty() => Vec::new(),
                _ => made(),
            };
            if !calls.is_empty() {
                return Answer {
                    calls,
                    is_cut,
                    ..Answer::default()
                };
            }
        }
        let reply = if is_right {
            truth.reply(prompt)
        } else {
            let chance = draw(skill.seed, WRONG, question.text());
            truth.wrong(chance).reply(prompt)
        };
        if places.reasoning < skill.reasoning_only_rate {
            Answer {
                reasoning: reply,
                is_cut,
                ..Answer::default()
            }
        } else {
            Answer {
                content: reply,
                is_cut,
                ..Answer::default()
            }
        }
    }
}

/// The questions of one file, with their places.
fn placed(file: Vec<Pair>, seed: u64) -> Vec<Known> {
    let questions: Vec<&str> = file.iter().map(|pair| pair.question.as_str()).collect();
    let [orders, reasonings, cuts] = [ORDER, REASONING, CUT].map(|what| spread(seed, what, &questions));
    let places = orders.into_iter().zip(reasonings).zip(cuts);
    let known = file
        .into_iter()
        .zip(places)
        .map(|(pair, ((order, reasoning), cut))| Known {
            question: pair.question,
            truth: pair.truth,
            places: Places { order, reasoning, cut },
        });
    known.collect()
}

/// A question, as [`Answerer::question`] found it.
#[derive(Debug)]
pub(crate) enum Question<'a> {
    /// One of the answers files.
    Known(&'a Known),
    /// The prompt, with every run of white space as one blank.
    Unknown(String),
}

impl Question<'_> {
    /// What tells it from other questions.
    #[must_use]
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Known(known) => &known.question,
            Self::Unknown(text) => text,
        }
    }
}

/// The answer to a question that no file knows: the value of its last plain arithmetic expression, or 0.
fn computed(question: &str) -> Truth {
    /// Digits after the point.
    const DIGITS: u32 = 6;
    let value = arithmetic::last_value(question).unwrap_or(Decimal::ZERO);
    Truth::Number(value.round_dp(DIGITS).normalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERFECT: Skill = Skill {
        answers: Vec::new(),
        accuracy: 1.0,
        seed: 0,
        empty_rate: 0.0,
        reasoning_only_rate: 0.0,
        cut_rate: 0.0,
        tool_wrong_rate: 0.0,
    };

    fn file(pairs: &[(&str, &str)]) -> Vec<Pair> {
        let pair = |(question, answer): &(&str, &str)| Pair {
            question: (*question).to_owned(),
            truth: Truth::parse(answer).expect("an answer"),
        };
        pairs.iter().map(pair).collect()
    }

    fn answerer(pairs: &[(&str, &str)], skill: Skill) -> Answerer {
        Answerer::new(vec![file(pairs)], skill).expect("a few questions")
    }

    fn content(answerer: &Answerer, prompt: &str) -> String {
        answerer.answer(&answerer.question(prompt), prompt, None).content
    }

    fn sums(count: usize) -> Vec<(String, String)> {
        let question = |n| format!("What is the sum of {n} and one?");
        (0..count).map(|n| (question(n), (n + 1).to_string())).collect()
    }

    fn of_sums(pairs: &[(String, String)], skill: Skill) -> Answerer {
        let pairs: Vec<_> = pairs.iter().map(|(q, a)| (q.as_str(), a.as_str())).collect();
        answerer(&pairs, skill)
    }

    #[test]
    fn the_question_nearest_the_end_wins() {
        let answerer = answerer(
            &[
                ("How many?", "1"),
                ("Tom has pens. How many?", "2"),
                ("Ada has pens. How many?", "3"),
            ],
            PERFECT,
        );
        let few_shot = "Q: Ada has pens. How many?\nA: #### 3\n\nQ: Tom has\n  pens. How many?\nA:";
        assert!(content(&answerer, few_shot).ends_with("#### 2"));
        let other_way = "Q: Tom has pens. How many?\nA: #### 2\n\nQ: Ada has pens. How many?\nA:";
        assert!(content(&answerer, other_way).ends_with("#### 3"));
        assert!(content(&answerer, "And how many? How many?").ends_with("#### 1"));
    }

    #[test]
    fn unknown_questions_are_computed_or_zero() {
        let answerer = answerer(&[], PERFECT);
        assert!(content(&answerer, "What is 10 / 4?").ends_with("#### 2.5"));
        assert!(content(&answerer, "2 / 3 = ?").ends_with("#### 0.666667"));
        assert!(content(&answerer, "Who are you?").ends_with("#### 0"));
    }

    #[test]
    fn the_share_of_right_answers_is_exact() {
        let pairs = sums(40);
        for (accuracy, expected) in [(0.0, 0), (0.25, 10), (0.5, 20), (0.9, 36), (1.0, 40)] {
            let answerer = of_sums(&pairs, Skill { accuracy, ..PERFECT });
            let right = |(question, truth): &&(String, String)| {
                content(&answerer, question).ends_with(&format!("#### {truth}"))
            };
            assert_eq!(pairs.iter().filter(right).count(), expected, "{accuracy}");
        }
    }

    #[test]
    fn each_file_gets_its_share() {
        let pairs = sums(30);
        let pairs: Vec<_> = pairs.iter().map(|(question, _)| (question.as_str(), "C")).collect();
        let skill = Skill {
            accuracy: 0.5,
            ..PERFECT
        };
        let (first, second) = pairs.split_at(10);
        let answerer = Answerer::new(vec![file(first), file(second)], skill).expect("a few questions");
        let right = |pairs: &[(&str, &str)]| {
            let contents = pairs.iter().map(|(q, _)| content(&answerer, q));
            contents.filter(|content| content == "The answer is (C).").count()
        };
        assert_eq!((right(first), right(second)), (5, 10));
    }

    #[test]
    fn a_better_model_keeps_what_a_worse_one_knew() {
        let pairs = sums(40);
        let right = |accuracy: f64| -> Vec<bool> {
            let answerer = of_sums(&pairs, Skill { accuracy, ..PERFECT });
            let is_right = |(q, a): &(String, String)| content(&answerer, q).ends_with(&format!("#### {a}"));
            pairs.iter().map(is_right).collect()
        };
        let (worse, better) = (right(0.3), right(0.7));
        assert!(worse.iter().zip(&better).all(|(worse, better)| better >= worse));
    }

    #[test]
    fn silence_takes_the_wrong_answers_first() {
        let pairs = sums(20);
        let skill = Skill {
            accuracy: 0.9,
            empty_rate: 0.1,
            ..PERFECT
        };
        let answerer = of_sums(&pairs, skill);
        for (question, truth) in &pairs {
            let content = content(&answerer, question);
            assert!(content.is_empty() || content.ends_with(&format!("#### {truth}")));
        }
        let empty = pairs.iter().filter(|(q, _)| content(&answerer, q).is_empty()).count();
        assert_eq!(empty, 2);
    }

    #[test]
    fn reasoning_alone_still_holds_the_answer() {
        let pairs = sums(20);
        let skill = Skill {
            reasoning_only_rate: 0.25,
            ..PERFECT
        };
        let answerer = of_sums(&pairs, skill);
        let answers = pairs
            .iter()
            .map(|(q, _)| answerer.answer(&answerer.question(q), q, None));
        let hidden: Vec<_> = answers.filter(|answer| answer.content.is_empty()).collect();
        assert_eq!(hidden.len(), 5);
        assert!(hidden.iter().all(|answer| answer.reasoning.contains("\n#### ")));
    }
}
