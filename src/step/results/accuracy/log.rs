//! `benchmark.out` of MMLU, GPQA and LongBench-V2.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use crate::step::results::file;

/// What AIME is called in this room.
pub(super) const AIME: &str = "aime";

/// What the log says; numbers as they were printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Log {
    /// The benchmark that it is of; `None` where it is of none of these.
    pub benchmark: Option<String>,
    /// Examples of one run, as the script was told.
    pub examples: Option<u64>,
    /// Repeats that the script was told.
    pub asked_repeats: Option<u64>,
    /// Repeats that the client names.
    pub repeats: Option<u64>,
    /// Their mean.
    pub mean: Option<f64>,
    /// The score of each.
    pub scores: Vec<f64>,
    /// The score of the last, or only, run.
    pub score: Option<f64>,
    /// All metrics of the last run.
    pub metrics: Vec<(String, f64)>,
    /// Whether the script says that it is done.
    pub is_complete: bool,
}

static CONFIG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(MMLU|GPQA|LongBench-v2) (?:Config: (.*)|evaluation complete\s*)$").expect("a constant pattern")
});
static REPEAT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^Repeat: (\d{1,6}), mean: (\S+)\s*$").expect("a constant pattern"));
static METRIC: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"'([^']{1,200})': (?:np\.float\d+\()?([-+.\w]{1,40})").expect("a constant pattern"));

impl Log {
    /// Reads a log.
    ///
    /// # Errors
    /// A file that cannot be read, as the end of a sentence about it.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let bytes = file::read(path).map_err(|error| format!("cannot be read: {error}"))?;
        Ok(Self::of(&String::from_utf8_lossy(&bytes)))
    }

    /// Reads the text of a log.
    #[must_use]
    pub(super) fn of(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.lines() {
            log.line(line.trim_end());
        }
        log
    }

    fn line(&mut self, line: &str) {
        if let Some(found) = CONFIG.captures(line) {
            self.benchmark = Some(match &found[1] {
                "MMLU" => "mmlu".to_owned(),
                "GPQA" => "gpqa".to_owned(),
                _ => "longbenchv2".to_owned(),
            });
            match found.get(2) {
                None => self.is_complete = true,
                Some(config) => {
                    self.examples = setting(config.as_str(), "num_examples");
                    self.asked_repeats = setting(config.as_str(), "repeat");
                }
            }
        } else if line == "=== Phase 2: ns eval ===" {
            self.benchmark = Some(AIME.to_owned());
        } else if line == "=== Done ===" {
            self.is_complete = true;
        } else if let Some(found) = REPEAT.captures(line) {
            self.repeats = found[1].parse().ok();
            self.mean = Some(number(&found[2]));
        } else if let Some(list) = line.strip_prefix("Scores: [") {
            let list = list.trim_end_matches(']').split(',');
            self.scores = list.map(|item| number(item.trim().trim_matches(['\'', '"']))).collect();
        } else if let Some(score) = line.strip_prefix("Score: ") {
            self.score = Some(number(score.trim()));
        } else if line.starts_with("{'") {
            let found = METRIC.captures_iter(line);
            self.metrics = found.map(|found| (found[1].to_owned(), number(&found[2]))).collect();
        }
    }
}

/// A number of the script's settings, `name=value; ...`.
fn setting(config: &str, name: &str) -> Option<u64> {
    let mut settings = config.split(';').filter_map(|one| one.trim().split_once('='));
    settings.find(|(key, _)| *key == name)?.1.parse().ok()
}

/// What is no number is none to whoever looks at it.
fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}
