//! The Actions runner's protocol: outputs, environment, step summary, annotations.
//!
//! Everything that a step tells the runner goes through here, so that no value can pass for a command. Sources:
//! GitHub's "Workflow commands for GitHub Actions" and the limits of its "Actions limits" page.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::fs::OpenOptions;
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::config::problem::{is_hidden, printable};

/// One step's summary, in bytes.
pub const MAX_SUMMARY: usize = 1_048_576;
/// Annotations of one level that a step may make are 10; the last place says how many more there are.
pub const MAX_ANNOTATIONS: usize = 9;

/// How loud an annotation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something failed.
    Error,
    /// Something to look at.
    Warning,
    /// Something to know.
    Notice,
}

/// A place in a file of the repository.
#[derive(Debug, Clone, Default)]
pub struct Location {
    /// The path from the repository's root.
    pub file: String,
    /// Line, counted from 1; 0 for the whole file.
    pub line: usize,
    /// Column, counted from 1.
    pub column: usize,
}

/// Whether the process runs as a step of GitHub Actions.
#[must_use]
pub fn on_actions() -> bool {
    std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true")
}

/// Writes an annotation to standard error, where the runner reads commands as well as on standard output.
pub fn annotate(level: Level, title: &str, message: &str, place: Option<&Location>) {
    eprintln!("{}", annotation(level, title, message, place));
}

/// The text of an annotation command.
#[must_use]
pub fn annotation(level: Level, title: &str, message: &str, place: Option<&Location>) -> String {
    let mut properties = Vec::new();
    if let Some(place) = place {
        properties.push(format!("file={}", escape_property(&place.file)));
        if place.line > 0 {
            properties.push(format!("line={},col={}", place.line, place.column));
        }
    }
    if !title.is_empty() {
        properties.push(format!("title={}", escape_property(title)));
    }
    let name = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Notice => "notice",
    };
    let space = if properties.is_empty() { "" } else { " " };
    format!("::{name}{space}{}::{}", properties.join(","), escape_data(message))
}

/// Text that the runner decodes, of lines that can be printed.
fn escape_data(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    let text = lines.join("\n");
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

/// One of the files that the runner reads after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnerFile {
    /// `GITHUB_OUTPUT`
    Output,
    /// `GITHUB_ENV`
    Env,
    /// `GITHUB_STEP_SUMMARY`
    Summary,
}

impl RunnerFile {
    fn variable(self) -> &'static str {
        match self {
            Self::Output => "GITHUB_OUTPUT",
            Self::Env => "GITHUB_ENV",
            Self::Summary => "GITHUB_STEP_SUMMARY",
        }
    }

    /// Its path; `None` outside of a job.
    #[must_use]
    pub fn path(self) -> Option<PathBuf> {
        std::env::var_os(self.variable())
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    }
}

/// Appends names and values in the heredoc form, whose delimiter no value can guess.
///
/// # Errors
/// A file that cannot be written; a name that is none; a missing variable (`GITHUB_OUTPUT` ...).
pub fn append(file: RunnerFile, values: &[(String, String)]) -> std::io::Result<()> {
    let path = file.path().ok_or_else(|| {
        let message = format!("{} is not set: this runs in a step of GitHub Actions", file.variable());
        std::io::Error::other(message)
    })?;
    let mut text = String::new();
    for (name, value) in values {
        if name.is_empty() || name.contains(['\n', '\r', '=']) || name.contains("<<") {
            return Err(std::io::Error::other(format!(
                "`{name}` cannot name an output or a variable"
            )));
        }
        text.push_str(&heredoc(name, value));
    }
    append_to(&path, &text).map_err(|error| unwritable(file, &path, &error))
}

/// Whether a file of the runner can be appended to, before what it is told is made.
///
/// # Errors
/// Outside of a step, and a file that cannot be opened.
pub(crate) fn ready(file: RunnerFile) -> std::io::Result<()> {
    append(file, &[])
}

fn unwritable(file: RunnerFile, path: &Path, error: &std::io::Error) -> std::io::Error {
    let message = format!(
        "{} names `{}`, which cannot be written: {error}",
        file.variable(),
        path.display()
    );
    std::io::Error::other(message)
}

fn append_to(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// `name<<delimiter`, the value, and the delimiter, each on a line of its own.
#[must_use]
pub fn heredoc(name: &str, value: &str) -> String {
    let mut delimiter = random_delimiter();
    while value.contains(&delimiter) {
        delimiter = random_delimiter();
    }
    format!("{name}<<{delimiter}\n{value}\n{delimiter}\n")
}

/// 128 bits that the process seeds from the system's randomness.
fn random_delimiter() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("sweepctl_{:016x}{:016x}", word(), word())
}

/// Text of several lines without characters that show nothing of themselves, in code and out of it: control characters
/// become spaces, the others are shown by their number. Line ends stay.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| c != '\n' && is_hidden(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            c if c.is_control() => out.push(' '),
            c if is_hidden(c) => out.push_str(&printable(c.encode_utf8(&mut [0; 4]))),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Appends Markdown to the step summary, as [`visible`] shows it; nothing outside of a job.
///
/// What stands there already counts: past [`MAX_SUMMARY`] the text is cut at a line, and a last line says so.
///
/// # Errors
/// A file that cannot be written.
pub fn summarize(markdown: &str) -> std::io::Result<()> {
    let Some(path) = RunnerFile::Summary.path() else {
        return Ok(());
    };
    let used = std::fs::metadata(&path).map_or(0, |m| usize::try_from(m.len()).unwrap_or(usize::MAX));
    let text = cut_to(&visible(markdown), MAX_SUMMARY.saturating_sub(used));
    append_to(&path, &text).map_err(|error| unwritable(RunnerFile::Summary, &path, &error))
}

/// Text of at most `limit` bytes, cut at a line, with a last line that says how many lines are missing.
#[must_use]
pub fn cut_to(text: &str, limit: usize) -> String {
    /// Room for the last line.
    const NOTE: usize = 80;
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut lines = text.split_inclusive('\n');
    let mut left = 0;
    for line in lines.by_ref() {
        if kept.len() + line.len() + NOTE > limit {
            left = 1;
            break;
        }
        kept.push_str(line);
    }
    left += lines.count();
    let note = match left {
        1 => "\n_1 more line does not fit a step summary._\n".to_owned(),
        left => format!("\n_{left} more lines do not fit a step summary._\n"),
    };
    if kept.len() + note.len() <= limit {
        kept.push_str(&note);
    }
    kept
}

/// Text as a fenced block of Markdown, with a fence that the text cannot close.
#[must_use]
pub fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}text\n{}\n{fence}", text.trim_end())
}

/// The bytes that a text takes as UTF-16, as GitHub counts outputs.
#[must_use]
pub fn utf16_bytes(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum::<usize>() * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_forges_a_command() {
        let place = Location {
            file: "a,b:c.yaml".into(),
            line: 3,
            column: 7,
        };
        assert_eq!(
            annotation(Level::Error, "", "100%\n::add-mask::x", Some(&place)),
            "::error file=a%2Cb%3Ac.yaml,line=3,col=7::100%25%0A::add-mask::x"
        );
        assert_eq!(annotation(Level::Notice, "t", "m", None), "::notice title=t::m");
        let place = Location {
            file: "a\u{1b}[31m\nb\u{202e}c\u{9b}.yaml".into(),
            ..Location::default()
        };
        assert_eq!(
            annotation(Level::Warning, "t\u{200b}", "m\u{2066}", Some(&place)),
            "::warning file=a\\u{1b}[31m%0Ab\\u{202e}c\\u{9b}.yaml,title=t\\u{200b}::m\\u{2066}"
        );
        assert_eq!(
            annotation(Level::Error, "", "a\u{1b}[31m\n##[b]", None),
            "::error::a\\u{1b}[31m%0A# #[b]"
        );
    }

    #[test]
    fn heredoc_delimiters_differ_and_wrap_the_value() {
        let text = heredoc("name", "a\nEOF\nb=1");
        let (head, rest) = text.split_once('\n').expect("a first line");
        let delimiter = head.strip_prefix("name<<").expect("the heredoc form");
        assert_eq!(rest, format!("a\nEOF\nb=1\n{delimiter}\n"));
        assert_ne!(text, heredoc("name", "a\nEOF\nb=1"));
    }

    #[test]
    fn a_summary_shows_every_character() {
        assert_eq!(
            visible("a\u{202e}b\u{85}c\td\r\n`\u{2069}`\n"),
            "a\\u{202e}b c d \n`\\u{2069}`\n"
        );
        assert!(matches!(visible("é 👍🏽\n| x |\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_cut_summary_says_what_is_missing() {
        let text = "0123456789\n".repeat(100);
        let cut = cut_to(&text, 300);
        assert!(cut.len() <= 300, "{}", cut.len());
        let shown = cut.matches("0123456789").count();
        assert!(cut.contains(&format!("{} more lines", 100 - shown)), "{cut}");
        assert_eq!(cut_to(&text, 1100), text);
    }

    #[test]
    fn utf16_counts_as_github_does() {
        assert_eq!(utf16_bytes("aé"), 4);
        assert_eq!(utf16_bytes("\u{1F600}"), 4);
    }
}
