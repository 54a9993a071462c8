//! The results of four clients, each held against the job's row.

use serde_json::{Value, json};

use super::{Job, benchmark};
use crate::fixture::{cases, envelope, read_json, run, sweepctl, write};

/// Whether an aggregate has what is wanted of it, numbers within a millionth.
fn misses(found: &Value, wanted: &Value) -> Vec<String> {
    let fields = wanted.as_object().expect("fields").iter();
    let differs = |name: &String, wanted: &Value| match (found[name].as_f64(), wanted.as_f64()) {
        (Some(found), Some(wanted)) => (found - wanted).abs() > 1e-6 * wanted.abs(),
        _ => found[name] != *wanted,
    };
    let wrong = fields.filter(|(name, wanted)| differs(name, wanted));
    wrong
        .map(|(name, wanted)| format!("{name}: {} for {wanted}", found[name]))
        .collect()
}

#[test]
fn results_of_the_corpus() {
    for case in cases("clients").into_iter().filter(|case| case.is_dir()) {
        let told = read_json(&case.join("case.json"));
        let out = tempfile::tempdir().expect("a folder");
        let file = told["file"].as_str().expect("a file");
        let mut command = sweepctl(&case);
        command
            .args(["result", "process", file, "--envelope", "envelope.json", "--out"])
            .arg(out.path());
        command.args(["--format", told["format"].as_str().expect("a format")]);
        for (name, value) in told["env"].as_object().expect("variables") {
            command.env(name, value.as_str().expect("a text"));
        }
        let (code, _, stderr) = run(&mut command);
        let written = out.path().join(format!("agg_{file}"));
        let case = case.display();
        if let Some(texts) = told["refused"].as_array() {
            assert_eq!(code, 1, "{case}");
            assert!(!written.exists(), "{case}");
            for text in texts {
                let text = text.as_str().expect("a text");
                assert!(stderr.replace(file, "").contains(text), "{case}: {text} in {stderr}");
            }
            continue;
        }
        assert_eq!(code, 0, "{case}: {stderr}");
        let found = read_json(&written);
        assert_eq!(misses(&found, &told["agg"]), Vec::<String>::new(), "{case}");
        for absent in told["absent"].as_array().into_iter().flatten() {
            assert_eq!(found.get(absent.as_str().expect("a name")), None, "{case}");
        }
    }
}

fn metric(unit: &str, avg: f64) -> Value {
    json!({"unit": unit, "avg": avg, "p50": avg, "p99": avg * 2.0})
}

/// An export of 640 requests in 100 s, without its settings.
fn export() -> Value {
    json!({
        "request_count": metric("requests", 640.0), "request_throughput": metric("requests/sec", 6.4),
        "request_latency": metric("ms", 20_000.0), "time_to_first_token": metric("ms", 500.0),
        "inter_token_latency": metric("ms", 20.0), "input_sequence_length": metric("tokens", 8192.0),
        "output_sequence_length": metric("tokens", 1024.0), "output_token_throughput": metric("tokens/sec", 6553.6),
        "benchmark_duration": metric("sec", 100.0), "total_isl": metric("tokens", 5_242_880.0),
        "total_osl": metric("tokens", 655_360.0),
    })
}

fn aiperf() -> Value {
    let mut export = export();
    export["input_config"] = json!({"endpoint": {"model_names": ["org/model"]},
                                    "loadgen": {"concurrency": 64, "request_count": 640}});
    export
}

fn genai_perf() -> Value {
    let mut export = export();
    export["input_config"] = json!({"model": ["org/model"], "concurrency": 64, "request_count": 640});
    export
}

fn sglang() -> Value {
    json!({
        "random_range_ratio": 0.0, "max_concurrency": 64, "duration": 100.0, "completed": 640,
        "server_info": {"model_path": "org/model"}, "total_input_tokens": 5_242_880, "total_output_tokens": 655_360,
        "input_throughput": 52_428.8, "output_throughput": 6553.6, "mean_ttft_ms": 500.0, "mean_tpot_ms": 20.0,
        "mean_e2e_latency_ms": 20_000.0, "errors": ["", ""],
    })
}

struct Client {
    job: Job,
    saved: Value,
}

impl Client {
    fn new(saved: Value) -> Self {
        let job = Job::new(&envelope("0123456789ab", 64));
        Self { job, saved }
    }

    fn with(&self, pointer: &str, value: Value) -> Self {
        let mut saved = self.saved.clone();
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        saved.pointer_mut(parent).expect("there")[name] = value;
        Self::new(saved)
    }

    fn without(&self, name: &str) -> Self {
        let mut saved = self.saved.clone();
        saved.as_object_mut().expect("an object").remove(name);
        Self::new(saved)
    }

    /// Writes the file with a value replaced by a text that no JSON writer gives.
    fn process_with(&self, token: &str, args: &[&str]) -> (i32, String) {
        write(
            self.job.path().join("r.json"),
            self.saved.to_string().replace("\"HERE\"", token),
        );
        self.job.process(&[&["r.json"], args].concat())
    }

    fn taken(&self, args: &[&str]) -> Value {
        assert_eq!(self.process_with("", args), (0, String::new()));
        read_json(&self.job.path().join("agg_r.json"))
    }

    fn refused(&self, wanted: &str) {
        let (code, stderr) = self.process_with("", &[]);
        assert_eq!(code, 1, "{wanted}: {stderr}");
        assert!(stderr.contains(wanted), "{wanted} in {stderr}");
        assert!(!self.job.path().join("agg_r.json").exists());
    }
}

#[test]
fn every_client_gives_the_same_fields() {
    for (format, saved) in [("aiperf", aiperf()), ("genai-perf", genai_perf()), ("sglang", sglang())] {
        let found = Client::new(saved.clone()).taken(&[]);
        let wanted = json!({"conc": 64, "model": "org/model", "completed": 640, "tput_per_gpu": 7372.8,
            "output_tput_per_gpu": 819.2, "input_tput_per_gpu": 6553.6, "mean_ttft": 0.5, "mean_tpot": 0.02,
            "mean_intvty": 50.0, "mean_e2el": 20.0});
        assert_eq!(misses(&found, &wanted), Vec::<String>::new(), "{format}");
        assert_eq!(found.get("mean_itl"), None);
        Client::new(saved.clone()).taken(&["--format", format]);
        let (code, stderr) = Client::new(saved).process_with("", &["--format", "vllm"]);
        assert_eq!(code, 1);
        assert!(
            stderr.contains(&format!("is what {format} saves, not vllm")),
            "{stderr}"
        );
    }
    let usage = Client::new(aiperf()).process_with("", &["--format", "locust"]);
    assert_eq!(usage.0, 2);
}

#[test]
fn units_of_time_are_read() {
    let found = Client::new(aiperf())
        .with("/time_to_first_token", metric("sec", 0.5))
        .taken(&[]);
    assert_eq!((&found["mean_ttft"], &found["p99_ttft"]), (&json!(0.5), &json!(1.0)));
    let client = Client::new(aiperf()).with("/time_to_first_token", metric("fortnights", 0.5));
    client.refused("`time_to_first_token.unit` is \"fortnights\", no unit of time that is known");
}

#[test]
fn requests_that_failed_are_refused_in_every_clients_words() {
    let aiperf = Client::new(aiperf());
    aiperf
        .with("/error_request_count", metric("requests", 3.0))
        .refused("`error_request_count.avg`: 3 requests failed");
    aiperf
        .with("/was_cancelled", json!(true))
        .refused("`was_cancelled` is true");
    aiperf
        .with("/is_complete", json!(false))
        .refused("`is_complete` is false");
    aiperf
        .with("/input_config/loadgen/request_count", json!(641))
        .refused("is 640, 641 requests were planned");
    Client::new(genai_perf())
        .with("/input_config/request_count", json!(641))
        .refused("641 requests were planned");
    // Its default says nothing.
    Client::new(genai_perf())
        .with("/input_config/request_count", json!(0))
        .taken(&[]);
    Client::new(sglang())
        .with("/errors", json!(["", "reset"]))
        .refused("`errors`: 1 request failed");
    let vllm = Client::new(benchmark(64));
    vllm.with("/failed", json!(2)).refused("`failed`: 2 requests failed");
    vllm.with("/completed", json!(639))
        .refused("`completed` is 639, 640 requests were planned");
    vllm.with("/completed", json!(641))
        .refused("`completed` is 641, 640 requests were planned");
    vllm.with("/completed", json!(0)).refused("no request completed");
    for nothing in [json!(0), json!(null)] {
        vllm.with("/total_output_tokens", nothing)
            .refused("nothing was generated");
    }
}

#[test]
fn counts_and_times_are_numbers_that_can_be() {
    let vllm = Client::new(benchmark(64));
    for field in ["completed", "num_prompts", "failed", "max_concurrency"] {
        vllm.with(&format!("/{field}"), json!("640"))
            .refused(&format!("`{field}` is \"640\""));
    }
    for field in ["total_input_tokens", "total_output_tokens"] {
        vllm.with(&format!("/{field}"), json!("5242880"))
            .refused(&format!("`{field}` is \"5242880\""));
    }
    for (field, token) in [
        ("duration", "0"),
        ("duration", "-1"),
        ("duration", "NaN"),
        ("duration", "\"5\""),
        ("mean_ttft_ms", "1e-310"),
        ("mean_ttft_ms", "1e-306"),
        ("output_throughput", "5e-324"),
    ] {
        let (code, stderr) = vllm.with(&format!("/{field}"), json!("HERE")).process_with(token, &[]);
        assert_eq!(code, 1, "{field} {token}");
        assert!(
            stderr.contains(&format!("`{field}` is {token}")),
            "{field} {token}: {stderr}"
        );
    }
    vllm.without("duration").taken(&[]);
}

#[test]
fn a_model_is_its_name_behind_the_last_slash() {
    for (name, fits) in [
        ("/models/MODEL", true),
        ("model", true),
        ("other/model", true),
        ("org/model-fp8", false),
        ("org/mode", false),
        ("model/", true),
    ] {
        let client = Client::new(aiperf()).with("/input_config/endpoint/model_names", json!([name]));
        if fits {
            assert_eq!(client.taken(&[])["model"], name);
        } else {
            client.refused("the row's model is `org/model`");
        }
    }
    let silent = Client::new(sglang()).without("server_info");
    assert_eq!(silent.taken(&[])["model"], "org/model");
    Client::new(benchmark(64))
        .with("/model_id", json!(null))
        .refused("`model_id` is null");
}

#[test]
fn mean_lengths_are_the_rows_under_the_jobs_ratio() {
    let with = |ratio: &str, input: f64| {
        let client = Client::new(aiperf()).with("/input_sequence_length", metric("tokens", input));
        write(client.job.path().join("r.json"), client.saved.to_string());
        let mut command = sweepctl(client.job.path());
        command
            .args(["result", "process", "r.json"])
            .env("RANDOM_RANGE_RATIO", ratio);
        let (code, _, stderr) = run(&mut command);
        (code, stderr)
    };
    // 8192 tokens: at 0.8 from 5898.24, at 0 from 3276.8, at 1 from 6553.6, and to 9011.2.
    for (ratio, input, code) in [
        ("", 5898.24, 0),
        ("", 5898.2, 1),
        ("0.8", 9011.2, 0),
        ("0.8", 9011.3, 1),
        ("0", 3276.8, 0),
        ("0", 3276.7, 1),
        ("1", 6553.6, 0),
        ("1", 6553.5, 1),
    ] {
        let (found, stderr) = with(ratio, input);
        assert_eq!(found, code, "{ratio} {input}: {stderr}");
        if code == 1 {
            assert!(
                stderr.contains(&input.to_string()) && stderr.contains("8192"),
                "{stderr}"
            );
        }
    }
    for ratio in ["high", "1.5", "-0.1", "NaN"] {
        let (code, stderr) = with(ratio, 8192.0);
        assert_eq!(code, 1);
        assert!(stderr.contains("RANDOM_RANGE_RATIO"), "{stderr}");
    }
    Client::new(benchmark(64))
        .without("total_input_tokens")
        .refused("`total_input_tokens` is null");
}

/// An aiperf file of phases, each a name, maybe a kind, its requests and its concurrency.
fn phases(phases: &Value) -> Client {
    let mut export = export();
    export["input_config"] = json!({"models": {"items": [{"name": "org/model"}]}, "phases": phases});
    Client::new(export)
}

#[test]
fn a_phase_without_a_kind_is_of_the_kind_that_it_is_named_after() {
    let warmup = json!({"name": "warmup", "type": "concurrency", "requests": 9, "concurrency": 8});
    let profiling = json!({"name": "profiling", "type": "concurrency", "requests": 640, "concurrency": 64});
    let found = phases(&json!([warmup, profiling])).taken(&[]);
    assert_eq!((&found["conc"], &found["completed"]), (&json!(64), &json!(640)));
    // With a kind, the name says nothing.
    let mut named = profiling.clone();
    (named["name"], named["kind"]) = (json!("steady"), json!("profiling"));
    phases(&json!([named])).taken(&[]);
    named["kind"] = json!("warmup");
    phases(&json!([named])).refused("`input_config.phases[profiling].concurrency` is null");
}

#[test]
fn phases_that_are_measured_together_have_one_concurrency() {
    let phase = |requests: Value, conc: Value| json!({"name": "one of them", "kind": "profiling", "requests": requests, "concurrency": conc});
    phases(&json!([phase(json!(300), json!(64)), phase(json!(340), json!(64))])).taken(&[]);
    phases(&json!([phase(json!(300), json!(64)), phase(json!(341), json!(64))]))
        .refused("is 640, 641 requests were planned");
    phases(&json!([phase(json!(320), json!(64)), phase(json!(320), json!(512))]))
        .refused("`input_config.phases[profiling].concurrency` is 64 and 512");
    // One that ends after a time does not say how many requests it sends.
    phases(&json!([phase(json!(320), json!(64)), phase(json!(null), json!(64))])).taken(&[]);
    phases(&json!([phase(json!(320), json!(64)), phase(json!("320"), json!(64))]))
        .refused("`input_config.phases[profiling].requests` is \"320\", it must be a whole number");
}

#[test]
fn more_requests_than_were_planned_are_refused_of_every_client_that_plans() {
    Client::new(aiperf())
        .with("/input_config/loadgen/request_count", json!(639))
        .refused("`request_count.avg` is 640, 639 requests were planned");
    Client::new(genai_perf())
        .with("/input_config/request_count", json!(639))
        .refused("`request_count.avg` is 640, 639 requests were planned");
    Client::new(benchmark(64))
        .with("/num_prompts", json!(0))
        .refused("`num_prompts` is 0: no request was planned");
}

#[test]
fn settings_that_plan_no_count_hold_the_run_to_none() {
    let nested = |num: Value| {
        let mut export = export();
        export["input_config"] = json!({"model_names": ["org/model"], "perf_analyzer": {
            "stimulus": {"concurrency": 64}, "measurement": {"mode": "request_count", "num": num}}});
        Client::new(export)
    };
    for nothing in [json!(""), json!(null), json!(0), json!(640)] {
        nested(nothing).taken(&[]);
    }
    nested(json!(641)).refused("641 requests were planned");
    nested(json!("641")).refused("`input_config.perf_analyzer.measurement.num` is \"641\"");
}

#[test]
fn limits_that_a_user_set_are_no_measured_times() {
    for limits in [json!({"ttft": 500.0, "tpot": 50.0}), json!(null)] {
        let found = Client::new(sglang()).with("/goodput_slos_ms", limits).taken(&[]);
        let named = found.as_object().expect("fields").keys();
        assert_eq!(named.filter(|name| name.contains("goodput")).count(), 0, "{found}");
    }
    // What else ends like a time is one.
    Client::new(sglang())
        .with("/max_itl_ms", json!({"ttft": 500.0}))
        .refused("`max_itl_ms` is a list or a mapping");
}

#[test]
fn tokens_are_counted_whole() {
    for saved in [sglang(), benchmark(64)] {
        let client = Client::new(saved);
        for (field, tokens) in [
            ("total_input_tokens", 5_242_880.5_f64),
            ("total_output_tokens", 655_360.25),
        ] {
            client
                .with(&format!("/{field}"), json!(tokens))
                .refused(&format!("`{field}` is {tokens}, it must be a whole number"));
            client.with(&format!("/{field}"), json!(tokens.trunc())).taken(&[]);
        }
    }
}

#[test]
fn a_file_of_several_runs_and_one_with_a_mark_are_told_as_such() {
    for saved in [sglang(), benchmark(64)] {
        let client = Client::new(saved);
        // As Python writes it.
        let run = client
            .with("/request_rate", json!("HERE"))
            .saved
            .to_string()
            .replace("\"HERE\"", "Infinity");
        let refused = |bytes: &[u8], wanted: &str| {
            std::fs::write(client.job.path().join("r.json"), bytes).expect("written");
            let (code, stderr) = client.job.process(&["r.json"]);
            assert!(code == 1 && stderr.contains(wanted), "{wanted}: {code} {stderr}");
        };
        refused(
            format!("{run}\n{run}\n\n{run}\n").as_bytes(),
            "r.json holds 3 runs, one a line",
        );
        refused(format!("{run}\n{run}\n").as_bytes(), "keep the line of this run alone");
        refused(
            format!("\u{feff}{run}").as_bytes(),
            "r.json starts with a byte order mark (UTF-8)",
        );
        refused(b"\xff\xfe{\0", "r.json starts with a byte order mark (UTF-16)");
        refused(format!("{run}\nnoise").as_bytes(), "r.json is no JSON");
        refused(&run.as_bytes()[..run.len() - 9], "r.json is cut off in line 1");
        // One run in a line, and in several lines.
        write(client.job.path().join("r.json"), format!("{run}\n"));
        assert_eq!(client.job.process(&["r.json"]), (0, String::new()));
        write(
            client.job.path().join("r.json"),
            serde_json::to_string_pretty(&client.saved).expect("JSON"),
        );
        assert_eq!(client.job.process(&["r.json"]), (0, String::new()));
    }
}
