//! What GitHub says and asks: events and what they start, the jobs of a run and what becomes of them.

pub mod account;
pub mod decide;
pub mod event;
pub mod facts;
pub mod gate;
pub mod needs;
pub mod verdict;

/// Text from an event as inline code: without control characters or backticks, and no longer than a label may be, so
/// that it stays code wherever the sentence around it is shown.
fn code(text: &str) -> String {
    /// GitHub's limit of a label's name is 50 characters; branches may be longer.
    const SHOWN: usize = 80;
    let safe = |c: char| match c {
        '`' => '\'',
        c if c.is_control() => ' ',
        c => c,
    };
    let shown: String = text.chars().take(SHOWN).map(safe).collect();
    format!("`{shown}`")
}

/// Names as inline code, with commas and an `and` between them.
fn listed<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<String> = names.iter().map(|name| code(name.as_ref())).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}
