//! JSON that GitHub or another command wrote, from a file or standard input.

use std::path::Path;

use crate::config::problem::{Problem, printable};
use crate::config::source::{MAX_BYTES, Source};
use crate::files;

/// Reads a text of at most [`MAX_BYTES`]; `-` is standard input. JSON may hold control characters that configs may
/// not, so [`Source::read`] is not asked.
///
/// # Errors
/// A file that is missing, too large, or no UTF-8.
pub(crate) fn read(path: &Path) -> Result<Source, Problem> {
    let stdin = path.as_os_str() == "-";
    let name = if stdin {
        "<stdin>".to_owned()
    } else {
        path.display().to_string()
    };
    let failed = |error: std::io::Error| {
        let problem = Problem::file(&name, format!("`{name}` cannot be read: {error}"));
        problem.hint("name a file that can be read, or `-` for standard input")
    };
    let bytes = match stdin {
        true => files::bounded(std::io::stdin().lock(), MAX_BYTES),
        false => files::read_named(path, MAX_BYTES),
    };
    let bytes = bytes.map_err(failed)?;
    let text =
        String::from_utf8(bytes).map_err(|error| Problem::file(&name, format!("`{name}` is no UTF-8: {error}")))?;
    Ok(Source::new(name, text))
}

/// Text from outside on one line, without control characters: no line of it passes for a command in a log.
#[must_use]
pub(crate) fn one_line(text: &str) -> String {
    printable(&text.replace(['\n', '\r'], " "))
}

/// Text from outside as inline code: one line without backticks, and not much longer than a label may be, so that it
/// stays code wherever the sentence around it is shown.
pub(super) fn code(text: &str) -> String {
    /// GitHub's limit of a label's name is 50 characters; branches may be longer.
    const SHOWN: usize = 80;
    let shown: String = text.chars().take(SHOWN).collect();
    format!("`{}`", one_line(&shown).replace('`', "'"))
}

/// Names as inline code: `a`, `b` and `c`.
pub(super) fn listed<S: AsRef<str>>(names: &[S]) -> String {
    joined(names, "and")
}

/// Names as inline code: `a`, `b` or `c`.
pub(super) fn any_of<S: AsRef<str>>(names: &[S]) -> String {
    joined(names, "or")
}

fn joined<S: AsRef<str>>(names: &[S], word: &str) -> String {
    let names: Vec<String> = names.iter().map(|name| code(name.as_ref())).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} {word} {last}", rest.join(", ")),
    }
}
