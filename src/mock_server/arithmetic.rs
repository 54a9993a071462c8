//! Plain arithmetic in a text.

use rust_decimal::Decimal;

/// How deep parentheses and signs may nest.
const DEPTH: usize = 64;

/// The value of the last expression in a text that has at least one of `+ - * /` (also `−`, `×`, `·`, `÷`) between
/// numbers, such as `12 + 7 * (3 - 1)`; nothing where there is none, or where its value is no number.
#[must_use]
pub(super) fn last_value(text: &str) -> Option<Decimal> {
    let text: Vec<char> = text.chars().collect();
    let mut last = None;
    let mut at = 0;
    while at < text.len() {
        let inside_word = at > 0 && (text[at - 1].is_alphanumeric() || matches!(text[at - 1], '_' | '.'));
        let starts = !inside_word && (text[at].is_ascii_digit() || matches!(text[at], '(' | '-' | '−'));
        let mut parser = Parser {
            text: &text,
            at,
            operators: 0,
        };
        let value = if starts { parser.sum(DEPTH) } else { None };
        match value {
            Some(value) => {
                if parser.operators > 0 {
                    last = value;
                }
                at = parser.at;
            }
            None => at += 1,
        }
    }
    last
}

/// A recursive descent. `None` is no expression; `Some(None)` is one without a value (a division by zero, a number
/// too large).
struct Parser<'t> {
    text: &'t [char],
    at: usize,
    operators: usize,
}

type Value = Option<Decimal>;

impl Parser<'_> {
    fn sum(&mut self, depth: usize) -> Option<Value> {
        self.chain(
            depth,
            |parser, depth| parser.chain(depth, Self::factor, product),
            |operator, left, right| match operator {
                '+' => Some(left.checked_add(right)),
                '-' | '−' => Some(left.checked_sub(right)),
                _ => None,
            },
        )
    }

    /// Operands with operators of one rank between them, from left to right. `apply` is `None` for other characters.
    fn chain(
        &mut self,
        depth: usize,
        operand: impl Fn(&mut Self, usize) -> Option<Value>,
        apply: impl Fn(char, Decimal, Decimal) -> Option<Value>,
    ) -> Option<Value> {
        let mut left = operand(self, depth)?;
        loop {
            let before = (self.at, self.operators);
            let operator = self.next();
            let is_operator = operator.filter(|c| apply(*c, Decimal::ONE, Decimal::ONE).is_some());
            let right = is_operator.and_then(|_| operand(self, depth));
            // An operator without a right side ends the expression before it.
            let (Some(operator), Some(right)) = (operator, right) else {
                (self.at, self.operators) = before;
                return Some(left);
            };
            self.operators += 1;
            left = left.zip(right).and_then(|(l, r)| apply(operator, l, r).flatten());
        }
    }

    fn factor(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let start = self.at;
        match self.next()? {
            '-' | '−' => Some(self.factor(depth)?.map(|value| -value)),
            '(' => {
                let value = self.sum(depth)?;
                (self.next()? == ')').then_some(value)
            }
            c if c.is_ascii_digit() => {
                self.at = start;
                Some(self.number())
            }
            _ => None,
        }
    }

    /// Digits, thousands set off by commas, and a fraction.
    fn number(&mut self) -> Value {
        self.skip_spaces();
        let mut digits = String::new();
        while let Some(c) = self.text.get(self.at).copied() {
            let followed_by = |count: usize| {
                let rest = &self.text[self.at + 1..];
                rest.len() >= count && rest[..count].iter().all(char::is_ascii_digit)
            };
            match c {
                '0'..='9' => digits.push(c),
                '.' if !digits.contains('.') && followed_by(1) => digits.push(c),
                ',' if !digits.contains('.') && followed_by(3) && !followed_by(4) => {}
                _ => break,
            }
            self.at += 1;
        }
        digits.parse().ok()
    }

    fn next(&mut self) -> Option<char> {
        self.skip_spaces();
        let c = self.text.get(self.at).copied();
        self.at += usize::from(c.is_some());
        c
    }

    fn skip_spaces(&mut self) {
        while self.text.get(self.at).is_some_and(|c| *c == ' ') {
            self.at += 1;
        }
    }
}

fn product(operator: char, left: Decimal, right: Decimal) -> Option<Value> {
    match operator {
        '*' | '×' | '·' => Some(left.checked_mul(right)),
        '/' | '÷' => Some(left.checked_div(right)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<String> {
        last_value(text).map(|value| value.normalize().to_string())
    }

    #[test]
    fn expressions_have_their_usual_value() {
        for (text, expected) in [
            ("What is 2 + 3 * 4?", "14"),
            ("(2 + 3) * -4", "-20"),
            ("Compute 1,250.5 × 2 - 1.", "2500"),
            ("10 − 4 − 3", "3"),
            ("7 ÷ 2 =", "3.5"),
            ("first 1 + 1, then 2 + 2", "4"),
            ("3 + 4 - what?", "7"),
            ("-2 * 3", "-6"),
        ] {
            assert_eq!(value(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_have_none() {
        for text in ["", "Tom has 3 pens.", "a1+2b", "()", "1 + (", "4 / 0", "24-hour", "- -"] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn hostile_texts_end() {
        assert_eq!(value(&"(".repeat(100_000)), None);
        assert_eq!(value(&"-".repeat(100_000)), None);
        assert_eq!(
            value(&format!("{}1", "9*".repeat(10_000))),
            None,
            "too large a value is none"
        );
    }
}
