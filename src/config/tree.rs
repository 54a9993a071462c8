//! A YAML text as a located tree.
//!
//! The parser's events become nodes that know their place, so that a decoder can report every problem and point at
//! each. Duplicate keys are refused here. Size, depth and alias expansion are bounded here, so that a hostile file
//! costs no more than an honest one of the same length.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span as ParserSpan};

use super::problem::{Problem, Problems, Span};
use super::scalar::{Scalar, resolve};
use super::source::Source;
use crate::findings::{Finding, files};

/// How deeply a file may nest. Real files stay under 12.
pub const MAX_DEPTH: usize = 64;
/// How many values a file may hold: twenty times those of a fleet of ten thousand lines.
pub const MAX_NODES: usize = 2_000_000;
/// How many values the anchors of one file may remember and its aliases bring, counted with all that they hold.
pub const MAX_ALIAS_NODES: usize = 100_000;

/// The changelog's name, whose conflicts have a command of their own.
const CHANGELOG: &str = "perf-changelog.yaml";

/// A value and its place.
#[derive(Debug, Clone)]
pub struct Node<'s> {
    /// Where it begins; for collections the first character.
    pub span: Span,
    /// What it is.
    pub value: Value<'s>,
}

/// What a node is.
#[derive(Debug, Clone)]
pub enum Value<'s> {
    /// A scalar: its text, and whether it was written without quotes.
    Scalar {
        /// The text, unescaped.
        text: Cow<'s, str>,
        /// Plain scalars have a type; quoted ones are strings.
        plain: bool,
    },
    /// A list.
    Seq(Vec<Node<'s>>),
    /// A mapping in file order; keys are distinct scalars.
    Map(Vec<(Node<'s>, Node<'s>)>),
}

impl Node<'_> {
    /// The scalar's meaning; `None` for collections.
    #[must_use]
    pub fn scalar(&self) -> Option<Scalar<'_>> {
        match &self.value {
            Value::Scalar { text, plain: true } => Some(resolve(text)),
            Value::Scalar { text, plain: false } => Some(Scalar::Str(Cow::Borrowed(text))),
            _ => None,
        }
    }

    /// What a person calls this kind of value.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Scalar { .. } => self.scalar().map_or("", |s| s.kind()),
            Value::Seq(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// The text of a key.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.value {
            Value::Scalar { text, .. } => text,
            _ => "",
        }
    }

    fn nodes(&self) -> usize {
        1 + match &self.value {
            Value::Scalar { .. } => 0,
            Value::Seq(items) => items.iter().map(Node::nodes).sum(),
            Value::Map(pairs) => pairs.iter().map(|(k, v)| k.nodes() + v.nodes()).sum(),
        }
    }
}

/// Parses one document. An empty text is a null scalar.
///
/// # Errors
/// A syntax error (one: a parser cannot go on after it), or every duplicate key, tag and over-use of aliases.
pub fn parse(source: &Source) -> Result<Node<'_>, Problems> {
    if let Some(problem) = conflict(source) {
        return Err(problem.into());
    }
    let mut builder = Builder {
        source,
        open: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        alias_nodes: 0,
        root: None,
        problems: Problems::default(),
    };
    for event in Parser::new_from_str(&source.text) {
        let (event, span) = event.map_err(|error| {
            let span = Span {
                line: error.marker().line().max(1),
                column: error.marker().col() + 1,
                length: 1,
            };
            // The parser looks ahead, and has a limit of its own.
            if error.info().contains("recursion limit") {
                return too_deep(source, span);
            }
            let message = format!("not YAML: {}", error.info());
            let hint = match holds_open_brace(source.line(span.line)) {
                true => "a `{` in a list of `[...]` starts a mapping: put the text that holds it in quotes",
                false => way_out(error.info()),
            };
            files::SYNTAX.at(source, span, message).hint(hint)
        })?;
        builder.event(event, span)?;
    }
    builder.problems.into_result()?;
    Ok(builder.root.unwrap_or(Node {
        span: Span {
            line: 1,
            column: 1,
            length: 1,
        },
        value: Value::Scalar {
            text: Cow::Borrowed(""),
            plain: true,
        },
    }))
}

struct Open<'s> {
    span: Span,
    anchor: usize,
    items: Items<'s>,
}

enum Items<'s> {
    Seq(Vec<Node<'s>>),
    Map(Vec<(Node<'s>, Node<'s>)>, Option<Node<'s>>),
}

struct Builder<'s> {
    source: &'s Source,
    open: Vec<Open<'s>>,
    anchors: HashMap<usize, Node<'s>>,
    nodes: usize,
    alias_nodes: usize,
    root: Option<Node<'s>>,
    problems: Problems,
}

impl<'s> Builder<'s> {
    fn event(&mut self, event: Event<'s>, span: ParserSpan) -> Result<(), Problem> {
        let span = place(&span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let forced_string = self.tag(tag.as_deref(), span);
                let plain = style == ScalarStyle::Plain && !forced_string;
                let value = Value::Scalar { text, plain };
                self.close(Node { span, value }, anchor)?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.tag(tag.as_deref(), span);
                self.push(span, anchor, Items::Seq(Vec::new()))?;
            }
            Event::MappingStart(anchor, tag) => {
                self.tag(tag.as_deref(), span);
                self.push(span, anchor, Items::Map(Vec::new(), None))?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.pop()?,
            Event::Alias(anchor) => self.alias(anchor, span)?,
            Event::DocumentStart(_) if self.root.is_some() => {
                let problem = files::DOCUMENTS.at(self.source, span, "a second document");
                return Err(problem.hint("one file holds one document: remove the `---`"));
            }
            _ => {}
        }
        Ok(())
    }

    fn refuse(&mut self, finding: &'static Finding, span: Span, message: impl Into<String>, hint: &str) {
        let message = message.into();
        self.problems.push_at(self.source, span, |problem| {
            Problem { message, ..problem }.hint(hint).id(finding)
        });
    }

    /// Whether a tag makes its scalar a string. Tags beyond the core ones are problems.
    fn tag(&mut self, tag: Option<&saphyr_parser::Tag>, span: Span) -> bool {
        let Some(tag) = tag else { return false };
        let core = tag.handle == "tag:yaml.org,2002:"
            && matches!(
                tag.suffix.as_str(),
                "str" | "int" | "bool" | "float" | "null" | "map" | "seq"
            );
        let non_specific = tag.handle.is_empty() && tag.suffix == "!";
        if !core && !non_specific {
            let message = format!("the tag `{}` is not accepted", tag.suffix);
            self.refuse(&files::TAG, span, message, "remove it");
        }
        tag.suffix == "str" || tag.suffix == "!"
    }

    fn push(&mut self, span: Span, anchor: usize, items: Items<'s>) -> Result<(), Problem> {
        if self.open.len() == MAX_DEPTH {
            return Err(too_deep(self.source, span));
        }
        let span = Span { length: 1, ..span };
        self.open.push(Open { span, anchor, items });
        Ok(())
    }

    fn pop(&mut self) -> Result<(), Problem> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let value = match open.items {
            Items::Seq(items) => Value::Seq(items),
            Items::Map(pairs, _) => Value::Map(self.checked(pairs)),
        };
        let span = open.span;
        self.close(Node { span, value }, open.anchor)
    }

    /// Gives a finished node to whatever is open.
    fn close(&mut self, node: Node<'s>, anchor: usize) -> Result<(), Problem> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let message = format!("the file holds more than {MAX_NODES} values");
            let problem = files::TOO_MANY_VALUES.at(self.source, node.span, message);
            return Err(problem.hint("split it: several master files are merged"));
        }
        if anchor > 0 {
            self.repeats(&node, node.span)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.root = Some(node),
            Some(Items::Seq(items)) => items.push(node),
            Some(Items::Map(pairs, key)) => match key.take() {
                None => *key = Some(node),
                Some(name) => pairs.push((name, node)),
            },
        }
        Ok(())
    }

    /// Counts a value that is held once more.
    fn repeats(&mut self, node: &Node<'s>, span: Span) -> Result<(), Problem> {
        self.alias_nodes += node.nodes();
        if self.alias_nodes > MAX_ALIAS_NODES {
            let message = format!("the anchors and aliases of this file repeat more than {MAX_ALIAS_NODES} values");
            let problem = files::ALIAS.at(self.source, span, message);
            return Err(problem.hint("write the values out"));
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Problem> {
        let Some(node) = self.anchors.get(&anchor) else {
            let message = "an alias to something that contains it";
            return Err(files::ALIAS.at(self.source, span, message).hint("write the values out"));
        };
        let node = node.clone();
        self.repeats(&node, span)?;
        self.close(node, 0)
    }

    /// Merges `<<` and reports keys that stand twice or are no scalars.
    fn checked(&mut self, pairs: Vec<(Node<'s>, Node<'s>)>) -> Vec<(Node<'s>, Node<'s>)> {
        let mut seen: HashMap<String, Span> = HashMap::with_capacity(pairs.len());
        let mut merges = Vec::new();
        let mut own = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            let Value::Scalar { text, plain } = &key.value else {
                let message = format!("a key that is {}", key.kind());
                self.refuse(&files::KEY, key.span, message, "keys are plain names");
                continue;
            };
            if *plain && text == "<<" {
                merges.push(value);
                continue;
            }
            if let Some(first) = seen.insert(text.to_string(), key.span) {
                let message = format!("duplicate key `{text}`");
                let hint = format!("it stands first on line {}; remove one", first.line);
                self.refuse(&files::DUPLICATE_KEY, key.span, message, &hint);
            }
            own.push((key, value));
        }
        for node in merges {
            let maps = match node.value {
                Value::Seq(items) => items,
                _ => vec![node],
            };
            for map in maps {
                let Value::Map(pairs) = map.value else {
                    let message = "`<<` merges mappings only";
                    self.refuse(&files::MERGE, map.span, message, "write the fields out");
                    continue;
                };
                for (key, value) in pairs {
                    if !seen.contains_key(key.text()) {
                        seen.insert(key.text().to_owned(), key.span);
                        own.push((key, value));
                    }
                }
            }
        }
        own
    }
}

/// The likeliest way out of a syntax error, by what the parser says.
fn way_out(info: &str) -> &'static str {
    const HINTS: [(&str, &str); 6] = [
        ("tabs", "indent with spaces"),
        ("simple key", "the line before may lack a space after its `:`"),
        (
            "mapping values",
            "indent the line like its neighbours, or quote a text that holds `: `",
        ),
        (
            "only valid inside a block",
            "a `[`, `{` or quote before it may not be closed",
        ),
        ("unknown anchor", "define it with `&name` before it is used"),
        ("quoted scalar", "close the quote"),
    ];
    let known = HINTS.iter().find(|(part, _)| info.contains(part));
    known.map_or(
        "check the indentation, and that each `[`, `{` and quote is closed",
        |(_, hint)| hint,
    )
}

/// What a merge left in a text: both sides, between markers that no YAML file has at the start of a line.
fn conflict(source: &Source) -> Option<Problem> {
    let first = |marker: &str| source.text.lines().position(|line| line.starts_with(marker));
    let start = first("<<<<<<< ")?;
    first(">>>>>>> ").filter(|end| *end > start)?;
    let span = Span {
        line: start + 1,
        column: 1,
        length: 7,
    };
    let problem = files::CONFLICT.at(
        source,
        span,
        "a merge conflict is not settled: its markers are in the file",
    );
    Some(match source.name.ends_with(CHANGELOG) {
        true => problem.hint("settle it with `sweepctl changelog resolve`, which keeps the entries of both sides"),
        false => problem.hint("keep what holds of both sides, and remove the lines of markers"),
    })
}

/// Whether a line has a list of `[...]` in which an unquoted text holds a `{`: `[serve, --port={port}]`.
fn holds_open_brace(line: &str) -> bool {
    let Some((_, list)) = line.split_once('[') else {
        return false;
    };
    let mut before = '[';
    let mut quote = None;
    for c in list.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') if !matches!(before, ' ' | ',' | '[' | '{' | ':') => return true,
            (None, _) => {}
        }
        before = c;
    }
    false
}

fn too_deep(source: &Source, span: Span) -> Problem {
    let problem = files::TOO_DEEP.at(source, span, format!("nested more than {MAX_DEPTH} levels deep"));
    problem.hint("check the brackets and the indentation")
}

fn place(span: &ParserSpan) -> Span {
    let same_line = span.start.line() == span.end.line();
    Span {
        line: span.start.line().max(1),
        column: span.start.col() + 1,
        length: if same_line { span.len().max(1) } else { 1 },
    }
}
