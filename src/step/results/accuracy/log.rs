//! `benchmark.out` of MMLU, GPQA, LongBench-V2 and AIME.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use crate::files::{MAX_NAME, escaped as shown};
use crate::step::results::file;

/// What AIME is called in this room.
pub(super) const AIME: &str = "aime";

/// What the log says; numbers as they were printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Log {
    /// The benchmark that it is of; `None` where it is of none of these.
    pub benchmark: Option<String>,
    /// The model that the client was told to ask for.
    pub model: Option<String>,
    /// AIME's data set.
    pub data_set: Option<String>,
    /// The name of the file that the client wrote.
    pub wrote: Option<String>,
    /// The name of the file that the script kept of it.
    pub kept: Option<String>,
    /// Whether the script found none to keep.
    pub kept_none: bool,
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
                    self.model = text(config.as_str(), "model");
                }
            }
        } else if let Some(of_aime) = line.strip_prefix("  ").and_then(|line| line.split_once(':')) {
            self.aime(of_aime.0, of_aime.1.trim());
        } else if line.starts_with("=== Phase ") {
            self.benchmark = Some(AIME.to_owned());
        } else if let Some(path) = line.strip_prefix("Writing results to ") {
            self.wrote = file_name(path);
        } else if let Some(path) = line.strip_prefix("Results saved to: ") {
            self.kept = file_name(path);
        } else if line.starts_with("Warning: Could not find result file") {
            self.kept_none = true;
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

    /// A setting of AIME's script, which it prints before it starts.
    fn aime(&mut self, name: &str, value: &str) {
        match name {
            "dataset" if self.benchmark.is_none() => self.data_set = Some(value.to_owned()),
            "repeat" if self.benchmark.is_none() => self.asked_repeats = value.parse().ok(),
            _ => {}
        }
    }

    /// Whether a file of this name is the one of this run: the newest file of a node may be that of an earlier job.
    ///
    /// # Errors
    /// Why not, as the end of a sentence about the file.
    pub(super) fn is_of(&self, name: &str) -> Result<(), String> {
        if self.kept_none {
            return Err("is of another run: its log says that no result file was found".to_owned());
        }
        for (said, did) in [(&self.wrote, "wrote"), (&self.kept, "kept")] {
            if let Some(said) = said.as_ref().filter(|said| *said != name) {
                let said = shown(Path::new(said));
                return Err(format!("is of another run: its log says that it {did} `{said}`"));
            }
        }
        Ok(())
    }
}

/// The last part of a path that a log names.
fn file_name(path: &str) -> Option<String> {
    let name = path.trim().rsplit('/').next()?;
    Some(name.chars().take(MAX_NAME).collect())
}

/// A number of the script's settings, `name=value; ...`.
fn setting(config: &str, name: &str) -> Option<u64> {
    text(config, name)?.parse().ok()
}

/// A setting of the script, `name=value; ...`.
fn text(config: &str, name: &str) -> Option<String> {
    let mut settings = config.split(';').filter_map(|one| one.trim().split_once('='));
    settings
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
}

/// What is no number is none to whoever looks at it.
fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}
