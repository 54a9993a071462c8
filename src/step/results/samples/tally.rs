//! What the lines of a sample file add up to, by question.

use std::collections::HashMap;

use super::Answers;

/// What one line says.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Line {
    /// Whether it holds anything yet.
    pub begun: bool,
    /// Whether it has a list of answers.
    pub answered: bool,
    /// Whether an answer holds anything but white space.
    pub spoken: bool,
    /// The hash of its question's id.
    pub question: Option<u64>,
    /// The hash of its filter's name.
    pub filter: u64,
}

/// The questions so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Whether something was said, by question: one with an id, or by its place among those of its filter.
    questions: HashMap<(bool, u64), bool>,
    /// Lines without a question's id, by filter.
    unnamed: HashMap<u64, u64>,
    lines: u64,
}

impl Tally {
    /// How many lines have ended.
    pub(super) fn lines(&self) -> u64 {
        self.lines
    }

    /// Adds a line; an empty one is of no question.
    ///
    /// # Errors
    /// A line without answers, as the end of a sentence about it.
    pub(super) fn add(&mut self, line: Line) -> Result<(), &'static str> {
        if line.begun {
            if !line.answered {
                return Err("has no list of answers (`resps`)");
            }
            let question = match line.question {
                Some(id) => (true, id),
                None => {
                    let count = self.unnamed.entry(line.filter).or_default();
                    *count += 1;
                    (false, *count)
                }
            };
            *self.questions.entry(question).or_default() |= line.spoken;
        }
        self.lines += 1;
        Ok(())
    }

    /// The questions, and those of which nothing says anything.
    ///
    /// # Errors
    /// No question at all.
    pub(super) fn finish(self) -> Result<Answers, String> {
        if self.questions.is_empty() {
            return Err("is empty: it holds no sample".to_owned());
        }
        Ok(Answers {
            total: self.questions.len() as u64,
            empty: self.questions.values().filter(|spoken| !**spoken).count() as u64,
        })
    }
}
