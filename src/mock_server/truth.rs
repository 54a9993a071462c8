//! Right answers: what they are, and how a reply states one.

use std::fmt;

use rust_decimal::Decimal;

use super::tools::Call;

/// What starts the answer line of GSM8K.
const HASHES: &str = "####";
/// What the answers of competition mathematics stand in.
const BOXED: &str = "\\boxed";

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Truth {
    /// A number, without thousands separators.
    Number(Decimal),
    /// The letter of a choice, `A` to `Z`.
    Choice(char),
    /// The tools that are called, in order; none where no tool fits.
    Calls(Vec<Call>),
    /// A text, as it is.
    Text(String),
}

impl Truth {
    /// Reads an answer as data sets write it: what follows the last `####`, or the whole text; a number (`1,234`,
    /// `$5`) or a letter (`C`, `(C)`).
    #[must_use]
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.rsplit(HASHES).next().unwrap_or(text).trim();
        let text = text.strip_suffix('.').unwrap_or(text);
        let inner = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let mut letters = inner.unwrap_or(text).chars();
        if let (Some(letter @ 'A'..='Z'), None) = (letters.next(), letters.next()) {
            return Some(Self::Choice(letter));
        }
        text.replace([',', '$'], "").parse().ok().map(Self::Number)
    }

    /// A different answer of the same kind, or no call instead of some; `chance` in `0.0..1.0` chooses which.
    #[must_use]
    pub(super) fn wrong(&self, chance: f64) -> Self {
        /// How many wrong numbers there are to choose from.
        const NUMBERS: f64 = 9.0;
        match self {
            Self::Number(number) => {
                let distance = Decimal::from(1 + (chance * NUMBERS) as u32);
                let more = number.checked_add(distance);
                Self::Number(more.unwrap_or_else(|| number - distance))
            }
            Self::Choice(letter) => {
                // Most questions have four choices; a letter past them comes from a longer list.
                let choices = if *letter <= 'D' { b'D' } else { b'Z' } - b'A' + 1;
                let step = 1 + (chance * f64::from(choices - 1)) as u8;
                Self::Choice((b'A' + (*letter as u8 - b'A' + step) % choices) as char)
            }
            Self::Calls(_) => Self::Calls(Vec::new()),
            Self::Text(_) => Self::Text("I do not know.".to_owned()),
        }
    }

    /// A reply that gives this answer. It ends in the form that the prompt asks for: of `####` and `\boxed` the one
    /// that the prompt mentions last. Where it mentions none, a number ends in `#### N` and a choice in
    /// `The answer is (C).`
    #[must_use]
    pub(super) fn reply(&self, prompt: &str) -> String {
        let asks_boxed = prompt.rfind(BOXED) > prompt.rfind(HASHES);
        let last_line = match self {
            _ if asks_boxed => format!("\n{BOXED}{{{self}}}"),
            Self::Choice(_) if !prompt.contains(HASHES) => String::new(),
            _ => format!("\n{HASHES} {self}"),
        };
        match self {
            Self::Number(number) => format!("The answer is {number}.{last_line}"),
            Self::Choice(letter) => format!("The answer is ({letter}).{last_line}"),
            Self::Calls(calls) if calls.is_empty() => "No tool fits.".to_owned(),
            Self::Calls(_) => format!("The answer is {self}."),
            Self::Text(text) => text.clone(),
        }
    }
}

impl fmt::Display for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Choice(letter) => letter.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::Calls(calls) => {
                let calls: Vec<String> = calls
                    .iter()
                    .map(|call| format!("{}({})", call.name, call.arguments))
                    .collect();
                f.write_str(&calls.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_data_sets_write_them() {
        let number = |text: &str| Some(Truth::Number(text.parse().expect("a number")));
        for (text, expected) in [
            ("29+14=43\n#### 43", number("43")),
            ("#### 1 is wrong\n#### -1,234.50", number("-1234.50")),
            ("$18", number("18")),
            ("7.", number("7")),
            ("C", Some(Truth::Choice('C'))),
            ("(B)", Some(Truth::Choice('B'))),
            ("#### (D).", Some(Truth::Choice('D'))),
            ("", None),
            ("()", None),
            ("blue", None),
            ("####", None),
        ] {
            assert_eq!(Truth::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_wrong_answer_is_another_of_the_kind() {
        for chance in [0.0, 0.3, 0.7, 0.999_999] {
            let number = Truth::Number(Decimal::from(5));
            assert!(matches!(number.wrong(chance), Truth::Number(n) if n != Decimal::from(5)));
            let largest = Truth::Number(Decimal::MAX);
            assert_ne!(largest.wrong(chance), largest);
            for letter in 'A'..='Z' {
                let Truth::Choice(other) = Truth::Choice(letter).wrong(chance) else {
                    panic!("{letter} became no choice");
                };
                assert_ne!(other, letter);
                assert!(('A'..=if letter <= 'D' { 'D' } else { 'Z' }).contains(&other));
            }
        }
    }

    #[test]
    fn a_reply_ends_as_the_prompt_asks() {
        let number = Truth::Number(Decimal::from(42));
        let choice = Truth::Choice('C');
        let gsm8k = "Question: ...\nformatted as: #### [number]\nAnswer:";
        let boxed = "Not ####, but within \\boxed{}.";
        assert_eq!(number.reply(""), "The answer is 42.\n#### 42");
        assert_eq!(number.reply(gsm8k), "The answer is 42.\n#### 42");
        assert_eq!(number.reply(boxed), "The answer is 42.\n\\boxed{42}");
        assert_eq!(choice.reply("(A) ... (B) ..."), "The answer is (C).");
        assert_eq!(choice.reply(gsm8k), "The answer is (C).\n#### C");
        assert_eq!(choice.reply(boxed), "The answer is (C).\n\\boxed{C}");
    }
}
