//! Text from files on its way into a log.

use crate::config::problem::Problem;

/// Text on one line, without what the Actions runner takes for a command: `::name::` counts at the start of a line,
/// the old `##[name]` anywhere in it.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out.replace("##[", "# #[")
}

/// A problem whose texts stay on one line each, whatever the names in them.
#[must_use]
pub fn tame(problem: Problem) -> Problem {
    Problem {
        file: one_line(&problem.file),
        message: one_line(&problem.message),
        hint: problem.hint.as_deref().map(one_line),
        ..problem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_starts_a_line_or_a_command() {
        let problem = tame(Problem::file("a\n::error::x", "b\r\n::add-mask::y").hint("c ##[group]z"));
        let text = problem.to_string();
        assert!(text.lines().all(|line| !line.trim_start().starts_with("::")), "{text}");
        assert!(!text.contains("##["), "{text}");
    }
}
