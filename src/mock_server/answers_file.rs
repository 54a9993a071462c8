//! Answers files: JSON lines of questions and their answers.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::tools::Call;
use super::truth::Truth;
use crate::config::problem::{Problem, Problems, Span};
use crate::config::source::Source;

/// A question and its right answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    /// With every run of white space as one blank.
    pub question: String,
    /// The right answer.
    pub truth: Truth,
}

/// One line of an answers file.
#[derive(Deserialize)]
struct Line {
    question: String,
    answer: Option<Written>,
    tool_calls: Option<Vec<WrittenCall>>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct WrittenCall {
    name: String,
    arguments: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`answer` must be a text or a number")]
enum Written {
    Text(String),
    Number(serde_json::Number),
}

/// The pairs of each file. A question counts once, in the file that has it first; fields of a line other than
/// `question`, `answer`, `tool_calls` and, without these, `text` are ignored.
///
/// # Errors
/// Files that cannot be read, and every line that is no question with a number or a letter as its answer, or that
/// contradicts an earlier one.
pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Vec<Pair>>, Problems> {
    let mut problems = Problems::default();
    let mut seen = Seen::default();
    let mut read = Vec::new();
    for file in files {
        match Source::read(file) {
            Ok(source) => read.push(seen.pairs(&source, &mut problems)),
            Err(problem) => problems.push(problem),
        }
    }
    problems.into_result()?;
    Ok(read)
}

/// A text with every run of white space as one blank: prompt templates differ in it.
#[must_use]
pub(super) fn one_blank(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The questions so far.
#[derive(Default)]
struct Seen(HashMap<String, Truth>);

impl Seen {
    /// The new pairs of a file.
    fn pairs(&mut self, source: &Source, problems: &mut Problems) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for (at, line) in source.text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            match self.pair(line) {
                Ok(pair) => pairs.extend(pair),
                Err((column, message, hint)) => {
                    let span = Span {
                        line: at + 1,
                        column,
                        length: 1,
                    };
                    problems.push(Problem::at(source, span, message).hint(hint));
                }
            }
        }
        pairs
    }

    /// The pair of a line, where it is new; or where and what is wrong with the line, and the way out.
    fn pair(&mut self, line: &str) -> Result<Option<Pair>, (usize, String, &'static str)> {
        const SHAPE: &str = r##"each line is like {"question": "1 + 1?", "answer": "It is #### 2"}"##;
        let line: Line =
            serde_json::from_str(line).map_err(|error| (error.column().max(1), error.to_string(), SHAPE))?;
        let question = one_blank(&line.question);
        if question.is_empty() {
            return Err((1, "the question is empty".to_owned(), SHAPE));
        }
        let truth = match (line.answer, line.tool_calls, line.text) {
            (Some(answer), None, _) => stated(answer)?,
            (None, Some(calls), _) => Truth::Calls(calls.into_iter().map(WrittenCall::call).collect()),
            (None, None, Some(text)) => Truth::Text(text),
            _ => return Err((1, "a line has either `answer` or `tool_calls`".to_owned(), SHAPE)),
        };
        match self.0.get(&question) {
            Some(known) if *known != truth => {
                let message = format!("`{question}` has the answer {known} already");
                Err((1, message, "remove one of the two lines"))
            }
            Some(_) => Ok(None),
            None => {
                self.0.insert(question.clone(), truth.clone());
                Ok(Some(Pair { question, truth }))
            }
        }
    }
}

impl WrittenCall {
    fn call(self) -> Call {
        Call {
            name: self.name,
            arguments: self.arguments.to_string(),
        }
    }
}

/// The answer that a line states, or where and what is wrong with it, and the way out.
fn stated(answer: Written) -> Result<Truth, (usize, String, &'static str)> {
    let answer = match answer {
        Written::Text(text) => text,
        Written::Number(number) => number.to_string(),
    };
    Truth::parse(&answer).ok_or_else(|| {
        let message = format!("the answer `{answer}` has neither a number nor a letter");
        (1, message, "end it in `#### 42`, or write `42`, `C` or `(C)`")
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn every_bad_line_is_reported() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let lines = [
            r##"{"question": "a", "answer": "so #### 1", "more": true}"##,
            "",
            r#"{"question": "b", "answer": 2}"#,
            r#"{"question": "c"}"#,
            r#"{"question": "d", "answer": "blue"}"#,
            r#"{"question": " a ", "answer": "3"}"#,
            r#"{"question": "b", "answer": "2"}"#,
            r#"{"question": " ", "answer": "2"}"#,
            "not JSON",
        ];
        writeln!(file, "{}", lines.join("\n")).expect("written");
        let files = [file.path().to_owned(), PathBuf::from("no-such-file.jsonl")];
        let problems = read(&files).expect_err("five bad lines");
        let at = problems.0.iter().map(|p| p.span.map(|span| span.line));
        assert_eq!(
            at.collect::<Vec<_>>(),
            [Some(4), Some(5), Some(6), Some(8), Some(9), None]
        );
    }
}
