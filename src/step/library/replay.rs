//! The command of a replay, and whether what it left counts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use crate::config::problem::{Problem, Problems};

/// The shortest replay that the client's scenario takes for a measurement, in seconds.
const SHORTEST: u64 = 900;
/// How long a replay of the fast mode takes, in seconds.
const FAST: u64 = 1200;
/// The longest line of the client's records that is read, in bytes.
const MAX_LINE: usize = 64 << 20;

/// The variables that a command is made of. Empty ones count as unset.
#[derive(Debug, Clone, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Those of some names and values.
    pub fn new(all: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(all.into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }

    /// Those of this process' environment.
    #[must_use]
    pub fn here() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self::new(std::env::vars_os().filter_map(text))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn or<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.get(name).unwrap_or(default)
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == Some(value)
    }

    fn needed(&self, name: &str, problems: &mut Problems) -> String {
        let value = self.get(name).unwrap_or_default().to_owned();
        if value.is_empty() {
            problems.push(Problem::file("", format!("{name} is not set")).hint(format!("a replay needs {name}")));
        }
        value
    }
}

/// The words of the command that replays into `<folder>/aiperf_artifacts`. The caller splits them at spaces.
///
/// # Errors
/// What is missing, and values that no word of a command may hold.
pub fn command(folder: &str, variables: &Variables, has_submodule: bool) -> Result<String, Problems> {
    let mut problems = Problems::default();
    let model = variables.needed("MODEL", &mut problems);
    let conc = variables.needed("CONC", &mut problems);
    let fast = variables.is("AIPERF_EXPERIMENTAL_FAST", "1");
    let duration = if fast {
        FAST
    } else {
        let text = variables.needed("DURATION", &mut problems);
        text.parse().unwrap_or_else(|_| {
            if !text.is_empty() {
                let problem = Problem::file("", format!("DURATION is `{text}`, no number of seconds"));
                problems.push(problem.hint("give a whole number of seconds"));
            }
            0
        })
    };
    let warmups = if fast {
        "1"
    } else {
        variables.or("AIPERF_WARMUP_REQUESTS_PER_LANE", "10")
    };
    let port = format!("http://localhost:{}", variables.or("PORT", "8888"));
    let client = variables.or("AIPERF_CLI", "aiperf");
    let duration_text = duration.to_string();
    let artifacts = format!("{folder}/aiperf_artifacts");
    let options = [
        ("--scenario", "inferencex-agentx-mvp"),
        ("--url", variables.or("AIPERF_SERVER_URL", &port)),
        ("--endpoint", "/v1/chat/completions"),
        ("--endpoint-type", "chat"),
        // The name on the wire; the tokenizer is found under the model's own.
        ("--model", variables.or("SERVED_MODEL_NAME", &model)),
        ("--tokenizer", &model),
        ("--concurrency", &conc),
        ("--benchmark-duration", &duration_text),
        ("--stats-interval", "30"),
        ("--random-seed", "42"),
        (
            "--failed-request-threshold",
            variables.or("AIPERF_LIVE_FAILED_REQUEST_THRESHOLD", "0.10"),
        ),
        ("--trajectory-start-min-ratio", "0.25"),
        ("--trajectory-start-max-ratio", "0.75"),
        ("--warmup-requests-per-lane", warmups),
        (
            "--trace-idle-gap-cap-seconds",
            variables.or("AIPERF_TRACE_IDLE_GAP_CAP_SECONDS", "300"),
        ),
        (
            "--warmup-grace-period",
            variables.or("AGENTIC_WARMUP_GRACE_PERIOD", "1800"),
        ),
        ("--num-dataset-entries", "393"),
        ("--slice-duration", "1.0"),
        ("--output-artifact-dir", &artifacts),
    ];
    let mut words = vec![client.to_owned(), "profile".to_owned()];
    words.extend(
        options
            .iter()
            .flat_map(|(name, value)| [(*name).to_owned(), (*value).to_owned()]),
    );
    words.extend(
        [
            "--streaming",
            "--use-server-token-count",
            "--no-gpu-telemetry",
            "--tokenizer-trust-remote-code",
        ]
        .map(str::to_owned),
    );
    if let Some(word) = words
        .iter()
        .find(|word| word.is_empty() || word.contains(char::is_whitespace))
    {
        let problem = Problem::file("", format!("`{}` is no word of a command", word.escape_debug()));
        problems.push(problem.hint("give paths and names without spaces"));
    }
    // The client takes several words here.
    words.extend(
        variables
            .get("AIPERF_EXTRA_INPUTS")
            .map(|inputs| format!("--extra-inputs {inputs}")),
    );
    if has_submodule {
        words.extend(routing(variables));
    }
    if let Some(length) = variables.get("MAX_MODEL_LEN").filter(|length| *length != "0") {
        words.push(format!("--max-context-length {length}"));
    }
    if let Some(urls) = variables.get("AIPERF_SERVER_METRICS_URLS") {
        let urls: Vec<&str> = urls.split(',').collect();
        if urls
            .iter()
            .any(|url| url.is_empty() || url.contains(char::is_whitespace))
        {
            let problem = Problem::file("", "AIPERF_SERVER_METRICS_URLS holds an empty URL, or one with a space");
            problems.push(problem.hint("give URLs with commas between, and nothing else"));
        }
        words.push(format!("--server-metrics {}", urls.join(" ")));
    }
    if duration < SHORTEST || variables.is("AIPERF_UNSAFE_OVERRIDE", "true") {
        words.push("--unsafe-override".to_owned());
    }
    words.extend(variables.get("TRACE_SOURCE_FLAG").map(str::to_owned));
    problems.into_result()?;
    Ok(words.join(" "))
}

/// Flags that the client of checkouts knows and the pinned one does not: a conversation stays with its worker.
fn routing(variables: &Variables) -> Option<String> {
    let wanted = variables.or("FRAMEWORK", "").starts_with("dynamo-")
        && !variables.is("AIPERF_USE_DYNAMO_CONV_AWARE_ROUTING", "0")
        && !variables.is("AIPERF_HTTP_X_DYNAMO_SESSION_ID_FROM_CORRELATION_ID", "true");
    let seconds = variables.or("AIPERF_DYNAMO_SESSION_TIMEOUT_SECONDS", "3600");
    wanted.then(|| format!("--use-dynamo-conv-aware-routing --dynamo-session-timeout-seconds {seconds}"))
}

/// What is read of one record of the client.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Record {
    metadata: Metadata,
    error: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    benchmark_phase: Option<String>,
    was_cancelled: bool,
}

/// Whether few enough requests of a replay failed. Gives how many of how many.
///
/// # Errors
/// No records, unreadable ones, and a share above `most`.
pub fn check(artifacts: &Path, most: f64) -> Result<(u64, u64), Problem> {
    let path = artifacts.join("profile_export.jsonl");
    let name = path.display().to_string();
    let failed = |why: String| Problem::file(&name, format!("{name} {why}")).hint("the replay's log says why");
    let mut lines = BufReader::new(File::open(&path).map_err(|error| failed(format!("cannot be read: {error}")))?);
    let (mut all, mut bad) = (0_u64, 0_u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = std::io::Read::take(&mut lines, MAX_LINE as u64)
            .read_until(b'\n', &mut line)
            .map_err(|error| failed(format!("cannot be read: {error}")))?;
        if count == 0 {
            break;
        }
        let record: Record =
            serde_json::from_slice(&line).map_err(|error| failed(format!("is not what the client writes: {error}")))?;
        let measured = record
            .metadata
            .benchmark_phase
            .as_deref()
            .is_none_or(|phase| phase == "profiling");
        if measured && !record.metadata.was_cancelled {
            all += 1;
            bad += u64::from(record.error.is_some_and(|error| !error.is_null()));
        }
    }
    if all == bad {
        return Err(failed(format!(
            "holds {}, of which none succeeded",
            crate::plural::count(all, "request")
        )));
    }
    if bad as f64 > most * all as f64 {
        return Err(failed(format!(
            "holds {}, of which {bad} failed: more than {most}",
            crate::plural::count(all, "request")
        )));
    }
    Ok((bad, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(more: &[(&str, &str)], has_submodule: bool) -> Result<String, Problems> {
        let standard = [
            ("MODEL", "org/m"),
            ("CONC", "8"),
            ("DURATION", "3600"),
            ("PORT", "8000"),
        ];
        let all = standard
            .iter()
            .chain(more)
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        command("/r", &Variables::new(all), has_submodule)
    }

    fn holds(more: &[(&str, &str)], part: &str) -> bool {
        format!(" {} ", of(more, true).expect("a command")).contains(&format!(" {part} "))
    }

    #[test]
    fn the_variables_of_scripts_are_taken() {
        for (more, part) in [
            (&[][..], "--url http://localhost:8000"),
            (&[("AIPERF_SERVER_URL", "http://h:1")], "--url http://h:1"),
            (&[("SERVED_MODEL_NAME", "alias")], "--model alias --tokenizer org/m"),
            (&[("AIPERF_EXPERIMENTAL_FAST", "1")], "--benchmark-duration 1200"),
            (
                &[
                    ("AIPERF_EXPERIMENTAL_FAST", "1"),
                    ("AIPERF_WARMUP_REQUESTS_PER_LANE", "5"),
                ],
                "--warmup-requests-per-lane 1",
            ),
            (
                &[("AIPERF_WARMUP_REQUESTS_PER_LANE", "5")],
                "--warmup-requests-per-lane 5",
            ),
            (&[("MAX_MODEL_LEN", "9000")], "--max-context-length 9000"),
            (&[("AIPERF_SERVER_METRICS_URLS", "a,b")], "--server-metrics a b"),
            (&[("DURATION", "899")], "--unsafe-override"),
            (&[("AIPERF_UNSAFE_OVERRIDE", "true")], "--unsafe-override"),
            (&[("AIPERF_EXTRA_INPUTS", "a:1 b:2")], "--extra-inputs a:1 b:2"),
            (&[], "--output-artifact-dir /r/aiperf_artifacts"),
            (&[("FRAMEWORK", "dynamo-vllm")], "--use-dynamo-conv-aware-routing"),
        ] {
            assert!(holds(more, part), "{part}: {:?}", of(more, true));
        }
        assert!(!holds(&[], "--unsafe-override"));
        assert!(!holds(&[("MAX_MODEL_LEN", "0")], "--max-context-length 0"));
        let off = [
            ("FRAMEWORK", "dynamo-vllm"),
            ("AIPERF_USE_DYNAMO_CONV_AWARE_ROUTING", "0"),
        ];
        assert!(!holds(&off, "--use-dynamo-conv-aware-routing"));
        let pinned = of(&[("FRAMEWORK", "dynamo-vllm")], false).expect("a command");
        assert!(!pinned.contains("dynamo-conv"), "{pinned}");
    }

    #[test]
    fn what_is_wrong_is_said_at_once() {
        let wrong = [
            ("MODEL", "two words"),
            ("DURATION", "long"),
            ("AIPERF_SERVER_METRICS_URLS", "a,,b"),
        ];
        assert_eq!(of(&wrong, true).expect_err("three problems").0.len(), 3);
        let none = command("/r", &Variables::default(), true);
        assert!(none.expect_err("what is missing").0.len() >= 3);
    }

    #[test]
    fn a_replay_counts_by_its_failed_requests() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |lines: &[&str]| {
            std::fs::write(folder.path().join("profile_export.jsonl"), lines.join("\n")).expect("a file");
        };
        let (good, bad) = (r#"{"metrics": {}}"#, r#"{"error": {"code": 500}}"#);
        let warmup = r#"{"metadata": {"benchmark_phase": "warmup"}, "error": {"code": 500}}"#;
        assert!(check(folder.path(), 0.1).is_err(), "no records");
        write(&[warmup, good, good, good, bad]);
        assert_eq!(check(folder.path(), 0.25), Ok((1, 4)));
        assert!(check(folder.path(), 0.2).is_err());
        write(&[bad]);
        assert!(check(folder.path(), 1.0).is_err(), "none succeeded");
        write(&[good, "{cut"]);
        assert!(check(folder.path(), 1.0).is_err(), "cut");
    }
}
