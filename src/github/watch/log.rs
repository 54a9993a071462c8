//! The last lines of a step in the log of its job.

use jiff::Timestamp;

use crate::github::client::answers::Step;
use crate::github::run_jobs;
use crate::github::text::one_line;

/// The longest line that is shown, in characters.
const LONGEST: usize = 200;

/// The last lines that a step printed, at most so many. Lines of a job's log carry their time; a step has the seconds in
/// which it started and ended. Where no line is of that time, or the step is not known, these are the log's last lines.
#[must_use]
pub(crate) fn last_lines(log: &[u8], step: Option<&Step>, count: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(log);
    let lines: Vec<(Option<Timestamp>, &str)> = text.lines().map(timed).collect();
    let window = step.and_then(|step| {
        let start = run_jobs::time(step.started_at.as_ref())?;
        let end = run_jobs::time(step.completed_at.as_ref())?;
        Some(start.as_second()..=end.as_second())
    });
    let mut own = false;
    let of_step: Vec<&str> = lines
        .iter()
        .filter(|(time, _)| {
            // A line without a time goes on from the one before.
            if let (Some(time), Some(window)) = (time, &window) {
                own = window.contains(&time.as_second());
            }
            own
        })
        .map(|(_, line)| *line)
        .collect();
    match last(&of_step, count) {
        none if none.is_empty() => last(&lines.iter().map(|(_, line)| *line).collect::<Vec<_>>(), count),
        found => found,
    }
}

fn last(lines: &[&str], count: usize) -> Vec<String> {
    let mut found: Vec<String> = lines
        .iter()
        .rev()
        .filter_map(|line| readable(line))
        .take(count)
        .collect();
    found.reverse();
    found
}

/// A line's time and its text.
fn timed(line: &str) -> (Option<Timestamp>, &str) {
    let line = line.trim_start_matches('\u{feff}');
    match line.split_once(' ') {
        Some((time, rest)) => match time.parse() {
            Ok(time) => (Some(time), rest),
            Err(_) => (None, line),
        },
        None => match line.parse() {
            Ok(time) => (Some(time), ""),
            Err(_) => (None, line),
        },
    }
}

/// A line as people read it; nothing of those that only order others.
fn readable(line: &str) -> Option<String> {
    let plain = anstream::adapter::strip_str(line).to_string();
    let text = match plain.strip_prefix("##[") {
        Some(marked) => match marked.split_once(']')? {
            ("error", text) => format!("error: {text}"),
            ("warning", text) => format!("warning: {text}"),
            _ => return None,
        },
        None => plain,
    };
    let shown: String = one_line(text.trim_end()).chars().take(LONGEST).collect();
    (!shown.trim().is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\u{feff}2026-11-01T08:00:00.1000000Z ##[group]Run exec sweepctl clean\n\
        2026-11-01T08:00:01.0000000Z cleaned\n\
        2026-11-01T08:00:02.5000000Z loading weights\n\
        2026-11-01T08:00:03.0000000Z \u{1b}[31mCUDA out of memory\u{1b}[0m\n\
        \n\
        a trace without a time\n\
        2026-11-01T08:00:04.9990000Z ##[error]Process completed with exit code 72.\n\
        2026-11-01T08:00:09.0000000Z released\n\
        2026-11-01T08:00:10.0000000Z Cleaning up orphan processes\n";

    fn step(from: &str, to: &str) -> Step {
        Step {
            name: "Launch".to_owned(),
            conclusion: Some("failure".to_owned()),
            started_at: Some(from.to_owned()),
            completed_at: Some(to.to_owned()),
        }
    }

    #[test]
    fn lines_are_those_of_the_step() {
        let launch = step("2026-11-01T08:00:02Z", "2026-11-01T08:00:04Z");
        let lines = last_lines(LOG.as_bytes(), Some(&launch), 3);
        let wanted = [
            "CUDA out of memory",
            "a trace without a time",
            "error: Process completed with exit code 72.",
        ];
        assert_eq!(lines, wanted);
        assert_eq!(last_lines(LOG.as_bytes(), Some(&launch), 9)[0], "loading weights");
        // Nothing is of its time, or it is not known: the end of the log.
        let other = step("2026-11-01T09:00:02Z", "2026-11-01T09:00:04Z");
        for step in [Some(&other), None] {
            assert_eq!(
                last_lines(LOG.as_bytes(), step, 2),
                ["released", "Cleaning up orphan processes"]
            );
        }
        assert!(last_lines(b"", None, 5).is_empty());
    }

    #[test]
    fn a_log_cannot_steer_the_terminal() {
        let log =
            "2026-11-01T08:00:00Z a\u{1b}]0;title\u{7}b\u{1b}[2J\u{8}c\n2026-11-01T08:00:00Z ::error::x\u{202e}y\n"
                .to_owned();
        let lines = last_lines((log + &"w".repeat(5000)).as_bytes(), None, 5);
        assert!(
            lines
                .iter()
                .all(|line| !line.contains(char::is_control) && !line.contains('\u{202e}')),
            "{lines:?}"
        );
        assert!(lines.iter().all(|line| line.chars().count() <= LONGEST), "{lines:?}");
        assert_eq!(lines.len(), 3);
    }
}
