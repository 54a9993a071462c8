//! What stays with this process: variables that no child inherits, and values that no log shows.
//!
//! One list for every child, whatever starts it. A secret is a variable whose name says so, and every one that
//! `launch-secrets` names, whatever it is called.

use std::io::{self, Read, Write};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// What no child has a use for: the runner's files, which decide what later steps do, and its tokens.
const WITHHELD: [&str; 13] = [
    "ACTIONS_CACHE_URL",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ACTIONS_RESULTS_URL",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_RUNTIME_URL",
    "GH_TOKEN",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_TOKEN",
];
/// Starts of names that stay here where a scheduler keeps a copy of the whole environment.
const WITHHELD_FROM_JOBS: [&str; 6] = ["ACTIONS_", "GH_", "GITHUB_", "INPUT_", "SBATCH_", "SWEEPCTL_"];
/// What of them a job may know.
const KNOWN_TO_JOBS: [&str; 4] = [
    "GITHUB_RUN_ATTEMPT",
    "GITHUB_RUN_ID",
    "SWEEPCTL_EVAL_SOURCES",
    "SWEEPCTL_TOOLS",
];
/// Ends of the names of variables that are secret.
const SECRET: [&str; 9] = [
    "TOKEN",
    "TOKEN_ID",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
];
/// What stands for a key where a server asks for none.
const NO_KEY: &str = "EMPTY";
/// What stands in place of a secret.
const MASK: &str = "***";
/// Shorter values are no secrets, and masking them would hide ordinary text.
const MIN_SECRET: usize = 5;
/// Where `base64` and MIME break lines, in characters.
const BASE64_LINES: [usize; 2] = [76, 64];
/// How much of a log is looked at together, in bytes.
const BLOCK: usize = 1 << 20;

/// Names of secret variables that do not say so themselves.
static DECLARED: OnceLock<Vec<String>> = OnceLock::new();

/// Declares variables secret, whatever they are called: those of `launch-secrets`. A command does it once, before it
/// starts anything.
pub fn declare(names: Vec<String>) {
    // A second declaration would be of the same file.
    let _ = DECLARED.set(names);
}

/// Keeps from a child what it has no use for.
pub fn withhold(command: &mut Command) {
    for name in WITHHELD {
        command.env_remove(name);
    }
}

/// Keeps from a child whose whole environment a scheduler copies what belongs to the runner.
pub fn withhold_from_job(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if WITHHELD_FROM_JOBS.iter().any(|start| text.starts_with(start)) && !KNOWN_TO_JOBS.contains(&&*text) {
            command.env_remove(&name);
        }
    }
}

/// Whether a variable is secret by its name, or because it was [declared](declare).
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let declared = DECLARED.get().map_or(&[][..], Vec::as_slice);
    let upper = name.to_ascii_uppercase();
    SECRET.iter().any(|end| upper.ends_with(end)) || declared.iter().any(|own| own == name)
}

/// What no text may show: values as they are, in base64 (also within a longer text), and URL-encoded.
#[derive(Debug, Clone, Default)]
pub struct Mask(Option<Arc<Parts>>);

#[derive(Debug)]
struct Parts {
    finder: AhoCorasick,
    /// The length of the longest form, in bytes.
    longest: usize,
}

impl Mask {
    /// A mask of values. Each line of one is a secret of its own.
    #[must_use]
    pub fn new<S: AsRef<str>>(values: &[S]) -> Self {
        let lines = values.iter().flat_map(|value| value.as_ref().lines()).map(str::trim);
        let whole = values.iter().map(|value| value.as_ref().trim());
        let mut forms: Vec<String> = lines
            .chain(whole)
            .filter(|value| value.len() >= MIN_SECRET && *value != NO_KEY)
            .flat_map(forms)
            .filter(|form| form.len() >= MIN_SECRET)
            .collect();
        forms.sort_unstable();
        forms.dedup();
        let longest = forms.iter().map(String::len).max().unwrap_or_default();
        // The leftmost and longest, so that none leaves a rest of another.
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&forms);
        match finder {
            Ok(finder) if longest > 0 => Self(Some(Arc::new(Parts { finder, longest }))),
            _ => Self::default(),
        }
    }

    /// The mask of this process' variables that are secret.
    #[must_use]
    pub fn of_environment() -> Self {
        let values: Vec<String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
            .filter(|(name, _)| is_secret(name))
            .map(|(_, value)| value)
            .collect();
        Self::new(&values)
    }

    /// Whether it hides nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The length of the longest text that it hides, in bytes.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.0.as_ref().map_or(0, |parts| parts.longest)
    }

    /// Bytes as a text without secrets.
    #[must_use]
    pub fn text(&self, bytes: Vec<u8>) -> String {
        let text =
            String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        match &self.0 {
            Some(parts) if parts.finder.is_match(&text) => {
                let mut clean = String::with_capacity(text.len());
                parts.finder.replace_all_with(&text, &mut clean, |_, _, to| {
                    to.push_str(MASK);
                    true
                });
                clean
            }
            _ => text,
        }
    }

    /// Copies bytes without secrets. With `in_place` each is replaced by as many `*` as it has bytes, so that all
    /// others keep their places.
    ///
    /// # Errors
    /// As reading and writing.
    pub fn copy(&self, from: &mut dyn Read, to: &mut dyn Write, in_place: bool) -> io::Result<()> {
        let Some(parts) = &self.0 else {
            return io::copy(from, to).map(drop);
        };
        let mut held = Vec::new();
        loop {
            let before = held.len();
            from.take(BLOCK as u64).read_to_end(&mut held)?;
            let over = held.len() == before;
            // A secret that begins later may end in the next block.
            let safe = if over {
                held.len()
            } else {
                held.len().saturating_sub(parts.longest)
            };
            let mut at = 0;
            for found in parts.finder.find_iter(&held) {
                if found.start() >= safe && !over {
                    break;
                }
                to.write_all(&held[at..found.start()])?;
                match in_place {
                    true => to.write_all("*".repeat(found.len()).as_bytes())?,
                    false => to.write_all(MASK.as_bytes())?,
                }
                at = found.end();
            }
            let until = safe.max(at);
            to.write_all(&held[at..until])?;
            held.drain(..until);
            if over {
                return Ok(());
            }
        }
    }
}

/// The texts that a value may be shown as.
fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    for bytes in [value.as_bytes().to_vec(), format!("{value}\n").into_bytes()] {
        for engine in [&STANDARD, &URL_SAFE] {
            let whole = engine.encode(&bytes);
            for width in BASE64_LINES.into_iter().filter(|width| whole.len() > *width) {
                let lines = whole.as_bytes().chunks(width);
                forms.extend(lines.map(|line| String::from_utf8_lossy(line).into_owned()));
            }
            forms.push(whole.trim_end_matches('=').to_owned());
            forms.push(whole);
        }
    }
    for engine in [&STANDARD, &URL_SAFE] {
        forms.extend((0..3).map(|before| inside_base64(value.as_bytes(), before, engine)));
    }
    let encode = |hex: fn(u8) -> String, space: &str| -> String {
        let one = |byte: u8| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            b' ' if !space.is_empty() => space.to_owned(),
            other => hex(other),
        };
        value.bytes().map(one).collect()
    };
    for hex in [|byte| format!("%{byte:02X}"), |byte| format!("%{byte:02x}")] as [fn(u8) -> String; 2] {
        forms.extend([encode(hex, ""), encode(hex, "+")]);
    }
    // As JSON shows it.
    forms.extend(serde_json::to_string(value).map(|text| text.trim_matches('"').to_owned()));
    forms
}

/// What stays the same of a value's base64 when `before` bytes modulo 3 stand before it, and any after it.
fn inside_base64(value: &[u8], before: usize, engine: &impl Engine) -> String {
    let text = engine.encode([&vec![0; before][..], value].concat());
    let (start, end) = ((before * 8).div_ceil(6), (before + value.len()) * 8 / 6);
    text.get(start..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str, secrets: &[&str]) -> String {
        Mask::new(secrets).text(text.as_bytes().to_vec())
    }

    #[test]
    fn a_secret_is_hidden_as_itself_in_base64_and_in_addresses() {
        let secret = "s3cr3t/token+of the=hub";
        assert_eq!(masked(&format!("a {secret} b"), &[secret]), "a *** b");
        assert_eq!(masked(&STANDARD.encode(secret), &[secret]), "***");
        assert_eq!(masked(&STANDARD.encode(format!("{secret}\n")), &[secret]), "***");
        assert_eq!(masked(&URL_SAFE.encode(secret), &[secret]), "***");
        for encoded in ["s3cr3t%2Ftoken%2Bof%20the%3Dhub", "s3cr3t%2ftoken%2bof+the%3dhub"] {
            assert_eq!(masked(&format!("?t={encoded}&x"), &[secret]), "?t=***&x");
        }
    }

    #[test]
    fn base64_of_a_longer_text_shows_no_secret_at_any_alignment() {
        let secret = "s3cr3t-token-of-the-hub";
        for before in 0..6 {
            for after in 0..4 {
                let text = format!("{}{secret}{}", "x".repeat(before), "y".repeat(after));
                let shown = masked(&STANDARD.encode(&text), &[secret]);
                assert!(shown.contains(MASK) && shown.len() < 20, "{before} {after}: {shown}");
            }
        }
        let long = "k".repeat(33) + &"z9".repeat(50);
        let wrapped = STANDARD.encode(&long);
        let wrapped: Vec<&str> = wrapped
            .as_bytes()
            .chunks(76)
            .map(|l| std::str::from_utf8(l).expect("text"))
            .collect();
        assert_eq!(masked(&wrapped.join("\n"), &[&long]), "***\n***\n***");
    }

    #[test]
    fn the_longest_goes_first_and_short_values_are_text() {
        assert_eq!(
            masked("a token-1234-long b", &["token-1234", "token-1234-long"]),
            "a *** b"
        );
        assert_eq!(masked("the key is EMPTY", &["", "abc", "EMPTY"]), "the key is EMPTY");
        assert_eq!(masked("one-line two-line", &["one-line\ntwo-line"]), "*** ***");
    }

    #[test]
    fn a_log_is_cleaned_across_its_blocks() {
        let secret = "s3cr3t-token-of-the-hub";
        let mask = Mask::new(&[secret]);
        for at in [0, BLOCK - 30, BLOCK - 10, BLOCK - 1, BLOCK, 2 * BLOCK - 5] {
            let text = format!("{}{secret}tail {secret}", "x".repeat(at));
            for in_place in [false, true] {
                let mut clean = Vec::new();
                mask.copy(&mut text.as_bytes(), &mut clean, in_place).expect("a copy");
                let stars = if in_place {
                    "*".repeat(secret.len())
                } else {
                    MASK.to_owned()
                };
                assert!(
                    clean == format!("{}{stars}tail {stars}", "x".repeat(at)).into_bytes(),
                    "{at}"
                );
            }
        }
    }

    #[test]
    fn names_say_what_is_secret() {
        for name in [
            "HF_TOKEN",
            "openai_api_key",
            "AWS_SECRET_ACCESS_KEY",
            "DB_PASSWORD",
            "SSH_PRIVATE_KEY",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "TOKENS", "KEYBOARD", "MODEL"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
