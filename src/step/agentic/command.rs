//! The command of a replay: `profile` of agentx-harness 1.0.12, everything that decides what is measured written out.

use std::path::Path;

use super::settings::{Settings, Traces};
use crate::config::problem::{Problem, Problems};

/// The client whose command it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Client {
    /// The pinned one.
    Pinned,
    /// One that a checkout brings, which knows the older name of the scenario, and flags of its own.
    OfCheckout,
}

/// Variables of the client: recorded answers are replayed, loading the traces takes up to a quarter of an hour on a busy
/// disk, and progress is printed.
pub(crate) const VARIABLES: [(&str, &str); 4] = [
    ("AIPERF_DATASET_WEKA_LIVE_ASSISTANT_RESPONSES", "0"),
    ("AIPERF_DATASET_CONFIGURATION_TIMEOUT", "1800"),
    ("AIPERF_SERVICE_PROFILE_CONFIGURE_TIMEOUT", "1800"),
    ("AIPERF_UI_REALTIME_METRICS_ENABLED", "true"),
];
/// The variable by which the pinned client binds a conversation to its worker behind Dynamo's frontend.
pub(crate) const ROUTING: (&str, &str) = ("AIPERF_HTTP_X_DYNAMO_SESSION_ID_FROM_CORRELATION_ID", "true");

/// The words of the command that replays into a folder. No shell reads them, but people may copy them into one, and
/// launch scripts split them at spaces: so no word holds one.
///
/// # Errors
/// Words that are empty, or hold white space or a control character.
pub(crate) fn words(
    program: &str,
    client: Client,
    settings: &Settings,
    artifacts: &Path,
) -> Result<Vec<String>, Problems> {
    let scenario = match client {
        Client::Pinned => "agentx",
        Client::OfCheckout => "inferencex-agentx-mvp",
    };
    let mut words = vec![program.to_owned(), "profile".to_owned()];
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    add("--scenario", scenario.to_owned());
    add("--url", settings.target.url.clone());
    add("--endpoint", "/v1/chat/completions".to_owned());
    add("--endpoint-type", "chat".to_owned());
    add("--model", settings.model.clone());
    add("--tokenizer", settings.tokenizer.clone());
    add("--concurrency", settings.concurrency.to_string());
    add("--benchmark-duration", settings.duration.to_string());
    add("--stats-interval", "30".to_owned());
    add("--random-seed", "42".to_owned());
    add("--failed-request-threshold", settings.live_failed.clone());
    add("--trajectory-start-min-ratio", "0.25".to_owned());
    add("--trajectory-start-max-ratio", "0.75".to_owned());
    add("--warmup-requests-per-lane", settings.warmups.to_string());
    add("--trace-idle-gap-cap-seconds", settings.idle.to_string());
    add("--warmup-grace-period", settings.drain.to_string());
    add("--num-dataset-entries", "393".to_owned());
    add("--slice-duration", "1.0".to_owned());
    add("--output-artifact-dir", artifacts.display().to_string());
    for flag in [
        "--streaming",
        "--use-server-token-count",
        "--no-gpu-telemetry",
        "--tokenizer-trust-remote-code",
    ] {
        words.push(flag.to_owned());
    }
    // The client takes several words behind these.
    let mut list = |name: &str, values: Vec<String>| {
        if !values.is_empty() {
            words.push(name.to_owned());
            words.extend(values);
        }
    };
    list("--extra-inputs", settings.extra_inputs.clone());
    let metrics = settings.metrics.iter().map(|endpoint| endpoint.url.clone());
    list("--server-metrics", metrics.collect());
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if let Some(tokens) = settings.max_context {
        add("--max-context-length", tokens.to_string());
    }
    match &settings.traces {
        Traces::Hub(source) => add("--public-dataset", source.loader.clone()),
        Traces::Local(path) => {
            add("--custom-dataset-type", "weka_trace".to_owned());
            add("--input-file", path.display().to_string());
        }
    }
    if client == Client::OfCheckout && settings.is_routed {
        words.push("--use-dynamo-conv-aware-routing".to_owned());
        words.extend([
            "--dynamo-session-timeout-seconds".to_owned(),
            settings.session.to_string(),
        ]);
    }
    if !settings.diagnostic.is_empty() {
        words.push("--unsafe-override".to_owned());
    }
    speakable(&words, settings)?;
    Ok(words)
}

fn speakable(words: &[String], settings: &Settings) -> Result<(), Problems> {
    let is_bad = |c: char| c.is_whitespace() || c.is_control();
    let mut problems = Problems::default();
    for word in words.iter().filter(|word| word.is_empty() || word.contains(is_bad)) {
        let problem = Problem::file("", format!("`{}` is no word of a command", word.escape_debug()));
        problems.push(problem.hint("give paths and names without spaces"));
    }
    let named = [&settings.model, &settings.tokenizer];
    for value in named
        .into_iter()
        .chain(&settings.extra_inputs)
        .filter(|value| value.starts_with('-'))
    {
        let problem = Problem::file("", format!("`{value}` would be an option of the client, not a value"));
        problems.push(problem.hint("give a model, a tokenizer and inputs that do not start with `-`"));
    }
    problems.into_result()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::agentic::settings::Asked;
    use crate::step::eval::job::Job;

    fn of(more: &[(&str, &str)], client: Client) -> Result<String, Problems> {
        let standard = [
            ("MODEL", "org/m"),
            ("CONC", "8"),
            ("DURATION", "3600"),
            ("PORT", "8000"),
        ];
        let all = standard.iter().chain(more);
        let job = Job::new(None, all.map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        let settings = Settings::of(&Asked::default(), &job)?;
        Ok(words("agentx", client, &settings, Path::new("/r/aiperf_artifacts"))?.join(" "))
    }

    fn holds(more: &[(&str, &str)], client: Client, part: &str) -> bool {
        format!(" {} ", of(more, client).expect("a command")).contains(&format!(" {part} "))
    }

    #[test]
    fn the_defaults_are_written_out() {
        let expected = "agentx profile --scenario agentx --url http://localhost:8000 --endpoint /v1/chat/completions \
            --endpoint-type chat --model org/m --tokenizer org/m --concurrency 8 --benchmark-duration 3600 \
            --stats-interval 30 --random-seed 42 --failed-request-threshold 0.10 --trajectory-start-min-ratio 0.25 \
            --trajectory-start-max-ratio 0.75 --warmup-requests-per-lane 10 --trace-idle-gap-cap-seconds 300 \
            --warmup-grace-period 1800 --num-dataset-entries 393 --slice-duration 1.0 \
            --output-artifact-dir /r/aiperf_artifacts --streaming --use-server-token-count --no-gpu-telemetry \
            --tokenizer-trust-remote-code --public-dataset semianalysis_cc_traces_weka_062126_256k";
        assert_eq!(of(&[], Client::Pinned).expect("a command"), expected);
    }

    #[test]
    fn variables_say_otherwise() {
        let fast = ("AIPERF_EXPERIMENTAL_FAST", "1");
        for (more, part) in [
            (&[("AIPERF_SERVER_URL", "http://h:1")][..], "--url http://h:1"),
            (&[("SERVED_MODEL_NAME", "alias")], "--model alias --tokenizer org/m"),
            (&[fast], "--benchmark-duration 1200"),
            (
                &[fast, ("AIPERF_WARMUP_REQUESTS_PER_LANE", "5")],
                "--warmup-requests-per-lane 1",
            ),
            (
                &[("AIPERF_WARMUP_REQUESTS_PER_LANE", "5")],
                "--warmup-requests-per-lane 5",
            ),
            (&[("AGENTIC_WARMUP_GRACE_PERIOD", "3600")], "--warmup-grace-period 3600"),
            (
                &[("AIPERF_LIVE_FAILED_REQUEST_THRESHOLD", "0.5")],
                "--failed-request-threshold 0.5",
            ),
            (&[("AIPERF_MAX_CONTEXT_LENGTH", "9000")], "--max-context-length 9000"),
            (
                &[("AIPERF_SERVER_METRICS_URLS", "http://a:1,b")],
                "--server-metrics http://a:1/metrics http://b/metrics",
            ),
            (&[("DURATION", "899")], "--unsafe-override"),
            (&[("AIPERF_UNSAFE_OVERRIDE", "true")], "--unsafe-override"),
            (&[("AIPERF_EXTRA_INPUTS", "a:1 b:2")], "--extra-inputs a:1 b:2"),
            (
                &[("MODEL_PREFIX", "kimik3")],
                "--public-dataset semianalysis_cc_traces_weka_062126",
            ),
        ] {
            assert!(
                holds(more, Client::Pinned, part),
                "{part}: {:?}",
                of(more, Client::Pinned)
            );
        }
        assert!(!holds(&[("DURATION", "900")], Client::Pinned, "--unsafe-override"));
        assert!(!holds(
            &[("MAX_MODEL_LEN", "99")],
            Client::Pinned,
            "--max-context-length 99"
        ));
    }

    #[test]
    fn a_client_of_the_checkout_has_its_own_flags() {
        let dynamo = ("FRAMEWORK", "dynamo-vllm");
        let flag = "--use-dynamo-conv-aware-routing --dynamo-session-timeout-seconds 3600";
        assert!(holds(&[dynamo], Client::OfCheckout, flag));
        assert!(holds(&[dynamo], Client::OfCheckout, "--scenario inferencex-agentx-mvp"));
        assert!(!holds(&[dynamo], Client::Pinned, flag));
        for off in [("AIPERF_USE_DYNAMO_CONV_AWARE_ROUTING", "0"), ROUTING] {
            assert!(!holds(&[dynamo, off], Client::OfCheckout, flag), "{off:?}");
        }
    }

    #[test]
    fn what_cannot_be_a_command_is_refused_all_at_once() {
        let bad = [
            ("CONC", "0"),
            ("DURATION", "long"),
            ("AIPERF_LIVE_FAILED_REQUEST_THRESHOLD", "10%"),
            ("AIPERF_SERVER_URL", "h:1"),
            ("WEKA_LOADER_OVERRIDE", "semianalysis_cc_traces_weka_06212"),
        ];
        let problems = of(&bad, Client::Pinned).expect_err("all are bad");
        assert_eq!(problems.0.len(), bad.len(), "{problems}");
        for more in [
            ("MODEL", "a b"),
            ("MODEL", "--config=/etc/x"),
            ("CONC_LIST", "8 16"),
            ("CONC_LIST", "16"),
            ("AIPERF_EXTRA_INPUTS", "--config x"),
        ] {
            assert_eq!(of(&[more], Client::Pinned).expect_err("refused").0.len(), 1, "{more:?}");
        }
        assert!(of(&[("CONC_LIST", "8")], Client::Pinned).is_ok());
    }
}
