//! Power and energy of one node, beside a throughput result.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::{cases, envelope, multinode_envelope, read_json, run, sweepctl, write};

/// How two values differ, as the corpus compares: what is not wanted is free, but not in maps by GPU and in metrics.
fn difference(path: &str, found: &Value, wanted: &Value) -> Option<String> {
    let says = || Some(format!("{path}: {found} for {wanted}"));
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            let closed = path.starts_with("per_gpu") || ["metrics", "device_issues"].contains(&path);
            if closed && found.len() != wanted.len() {
                return says();
            }
            wanted.iter().find_map(|(name, wanted)| {
                let inner = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                match found.get(name) {
                    Some(found) => difference(&inner, found, wanted),
                    None => Some(format!("{inner} is missing")),
                }
            })
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64()?, b.as_f64()?);
            if (a - b).abs() > 1e-6 * b.abs() { says() } else { None }
        }
        (Value::Array(a), Value::Array(b)) if path == "reasons" => {
            let sorted = |list: &[Value]| {
                let mut texts: Vec<String> = list.iter().map(Value::to_string).collect();
                texts.sort();
                texts
            };
            if sorted(a) == sorted(b) { None } else { says() }
        }
        _ if found == wanted => None,
        _ => says(),
    }
}

#[test]
fn power_of_the_corpus() {
    for case in cases("power").into_iter().filter(|case| case.is_dir()) {
        let out = tempfile::tempdir().expect("a folder");
        let mut command = sweepctl(&case);
        command.args(["result", "process", "result.json", "--envelope", "envelope.json"]);
        command
            .args(["--gpu-metrics", "gpu_metrics.csv", "--out"])
            .arg(out.path());
        for (name, value) in read_json(&case.join("env.json")).as_object().expect("variables") {
            command.env(name, value.as_str().expect("a text"));
        }
        let (code, _, stderr) = run(&mut command);
        let name = case.display();
        assert_eq!(read_json(&case.join("case.json"))["exit"], code, "{name}: {stderr}");
        for (written, wanted) in [
            ("agg_result.json", "expected.json"),
            ("power_validation_result.json", "expected_validation.json"),
        ] {
            let (found, wanted) = (read_json(&out.path().join(written)), read_json(&case.join(wanted)));
            assert_eq!(difference("", &found, &wanted), None, "{name}: {written}");
            if wanted["power_valid"] == json!(0) {
                assert!(found.get("avg_power_w").is_none(), "{name}");
            }
        }
    }
}

/// A job of two GPUs that ran from 1000 to 1010 s.
struct Node(TempDir);

impl Node {
    fn new() -> Self {
        let node = Self(tempfile::tempdir().expect("a folder"));
        let mut job = envelope("0123456789ab", 4);
        job["row"]["tp"] = json!(2);
        write(node.path().join("envelope.json"), job.to_string());
        node.reports(&json!({}));
        node
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn reports(&self, changed: &Value) {
        let mut saved = json!({
            "model_id": "org/model", "max_concurrency": 4, "num_prompts": 10, "completed": 10, "duration": 10.0,
            "total_input_tokens": 81_920, "total_output_tokens": 10_240, "output_throughput": 1024.0,
            "total_token_throughput": 9216.0, "benchmark_start_time_unix": 1000.0, "benchmark_end_time_unix": 1010.0,
        });
        saved
            .as_object_mut()
            .expect("fields")
            .extend(changed.as_object().expect("fields").clone());
        write(self.path().join("r.json"), saved.to_string());
    }

    fn samples(&self, text: &str) {
        write(self.path().join("gpu_metrics.csv"), text);
    }

    fn process(&self, variables: &[(&str, &str)]) -> (i32, String) {
        let mut command = sweepctl(self.path());
        command.args(["result", "process", "r.json", "--gpu-metrics", "gpu_metrics.csv"]);
        command.env("TZ", "UTC").envs(variables.iter().copied());
        let (code, _, stderr) = run(&mut command);
        (code, stderr)
    }

    fn account(&self) -> Value {
        assert_eq!(self.process(&[]), (0, String::new()));
        read_json(&self.path().join("power_validation_r.json"))
    }

    fn reasons(&self, samples: &str) -> Vec<String> {
        self.samples(samples);
        let account = self.account();
        let reasons = account["reasons"].as_array().expect("a list").iter();
        reasons
            .map(|reason| reason.as_str().expect("a text").to_owned())
            .collect()
    }
}

/// A sample of each GPU every two seconds from 998 to 1012 s, at 100 and 300 W.
fn steady(header: &str) -> String {
    let lines = (998..=1012).step_by(2).flat_map(|time| {
        let line = move |gpu: u64| format!("{time}, {gpu}, {} W\n", 100 + 200 * gpu);
        [line(0), line(1)]
    });
    std::iter::once(format!("{header}\n")).chain(lines).collect()
}

const HEADER: &str = "timestamp, index, power.draw [W]";

#[test]
fn steady_power_is_its_own_mean() {
    let node = Node::new();
    node.samples(&steady(HEADER));
    let account = node.account();
    let metrics = json!({"avg_power_w": 200.0, "avg_total_gpu_power_w": 400.0, "total_gpu_energy_j": 4000.0,
        "joules_per_successful_query": 400.0, "joules_per_input_token": 0.048_828, "joules_per_output_token": 0.390_625,
        "joules_per_total_token": 0.043_403});
    assert_eq!(account["metrics"], metrics);
    assert_eq!(account["per_gpu_energy_j"], json!({"0": 1000.0, "1": 3000.0}));
    let aggregate = read_json(&node.path().join("agg_r.json"));
    assert_eq!(
        (&aggregate["power_valid"], &aggregate["power_metric_schema_version"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(aggregate["joules_per_total_token"], 0.043_403);
}

#[test]
fn every_column_is_found_by_its_name() {
    let node = Node::new();
    for header in [
        "Time,CARD,Average_Power",
        "timestamp,device,socket_power",
        " unix time , gpu_id , POWER ",
    ] {
        assert_eq!(node.reasons(&steady(header)), Vec::<String>::new(), "{header}");
    }
    let all = [
        "timestamp_column_missing",
        "power_column_missing",
        "gpu_identity_column_missing",
    ];
    assert_eq!(node.reasons(&steady("t,gpus,power.limit")), all);
    assert_eq!(node.reasons(&steady("time,gpu,power_cap")), ["power_column_missing"]);
}

#[test]
fn each_line_that_cannot_be_used_is_a_reason() {
    let node = Node::new();
    let with = |line: &str| node.reasons(&format!("{}{line}\n", steady(HEADER)));
    assert_eq!(with("soon, 0, 5 W"), ["invalid_timestamp_sample"]);
    assert_eq!(with("1005, 0, -5 W"), ["invalid_power_sample"]);
    assert_eq!(with("1005, 0, [N/A]"), ["invalid_power_sample"]);
    assert_eq!(with("1005, 0"), ["invalid_power_sample"]);
    assert_eq!(with("1005, , 5 W"), ["gpu_identity_missing"]);
    // Over three seconds away it does not matter what stands there.
    assert_eq!(with("996.9, , [N/A]"), Vec::<String>::new());
    assert_eq!(with("997, , [N/A]"), ["invalid_power_sample"]);
    assert_eq!(with("1013.1, 7, [N/A]"), Vec::<String>::new());
    assert_eq!(
        with("1005, 7, 5 W"),
        ["expected_gpu_count_mismatch", "insufficient_power_samples"]
    );
    assert_eq!(node.reasons(&format!("{HEADER}\n")), ["no_usable_power_samples"]);
    assert_eq!(node.reasons(""), ["telemetry_file_empty"]);
    write(node.path().join("gpu_metrics.csv"), [0xff, 0xfe, b'\n']);
    assert_eq!(node.account()["reasons"], json!(["telemetry_file_unreadable"]));
}

#[test]
fn gpus_are_sorted_by_value_and_then_by_name() {
    let node = Node::new();
    let gpus = ["10", "2", "b", "0", "a"];
    let lines = [999, 1002, 1005, 1008, 1011]
        .into_iter()
        .flat_map(|time| gpus.map(|gpu| format!("{time},{gpu},1\n")));
    node.samples(&format!("{HEADER}\n{}", lines.collect::<String>()));
    let account = node.account();
    assert_eq!(account["observed_gpu_ids"], json!(["0", "2", "10", "a", "b"]));
    assert_eq!(account["reasons"], json!(["expected_gpu_count_mismatch"]));
    assert_eq!(account["per_gpu_max_sample_gap_s"]["a"], 3.0);
    assert_eq!(account["metrics"], json!({}));
}

#[test]
fn a_window_is_three_numbers_that_can_be() {
    let node = Node::new();
    node.samples(&steady(HEADER));
    let reasons = |changed: Value| {
        node.reports(&changed);
        node.account()["reasons"].clone()
    };
    for wrong in [
        json!({"benchmark_start_time_unix": "1000"}),
        json!({"benchmark_end_time_unix": true}),
        json!({"benchmark_end_time_unix": 1000.0}),
        json!({"benchmark_start_time_unix": null}),
    ] {
        assert_eq!(reasons(wrong), json!(["invalid_benchmark_window"]));
        assert_eq!(node.account()["benchmark_window"], Value::Null);
        assert_eq!(node.account()["observed_gpu_count"], 0);
    }
    assert_eq!(reasons(json!({"duration": 10.5})), json!([]));
    assert_eq!(
        reasons(json!({"duration": 10.51})),
        json!(["benchmark_duration_mismatch"])
    );
    assert_eq!(node.account()["observed_gpu_count"], 2);
}

#[test]
fn figures_are_required_by_a_word_in_any_case() {
    let node = Node::new();
    for (word, code) in [("1", 1), ("TRUE", 1), ("Yes", 1), ("0", 0), ("", 0), ("no", 0)] {
        let _ = std::fs::remove_file(node.path().join("power_validation_r.json"));
        let (found, stderr) = node.process(&[("REQUIRE_POWER", word)]);
        assert_eq!(found, code, "{word}: {stderr}");
        assert_eq!(stderr.contains("telemetry_file_missing"), code == 1);
        assert!(node.path().join("agg_r.json").is_file() && node.path().join("power_validation_r.json").is_file());
    }
    node.samples(&steady(HEADER));
    assert_eq!(node.process(&[("REQUIRE_POWER", "1")]).0, 0);
    write(
        node.path().join("envelope.json"),
        multinode_envelope("0123456789ab", &[4]).to_string(),
    );
    let (code, stderr) = node.process(&[]);
    assert_eq!(code, 1);
    assert!(stderr.contains("--gpu-metrics is of one node"), "{stderr}");
}

#[test]
fn counters_of_energy_are_a_second_opinion() {
    let node = Node::new();
    node.samples(&steady(HEADER));
    let snapshot = |which: &str, text: &str| write(node.path().join(format!("gpu_metrics_energy_{which}.csv")), text);
    let check = || {
        let account = node.account();
        assert_eq!(account["power_valid"], true);
        account["accumulator_check"].clone()
    };
    assert_eq!(check(), Value::Null);
    let unavailable = |reason: &str| json!({"available": false, "reason": reason});
    snapshot("end", "gpu,total_energy_consumption\n0,1400\n1,4200\n3,1\n");
    assert_eq!(check(), unavailable("missing_start_snapshot"));
    snapshot("start", "gpu,energy\n0,0\n");
    assert_eq!(check(), unavailable("unparseable_start_snapshot"));
    snapshot(
        "start",
        "GPU,other,total_energy_consumption\n0,x,0\n1,x,0\n2,x,5\n4,x,N/A\n",
    );
    let found = check();
    // 14 s at 100 and at 300 W.
    let wanted = json!({"available": true, "accumulator_delta_j": 5600.0, "integrated_stream_j": 5600.0,
        "relative_error": 0.0, "within_tolerance": true, "tolerance": 0.05,
        "per_gpu_delta_j": {"0": 1400.0, "1": 4200.0}, "integrated_gpu_ids": ["0", "1"],
        "unmatched_gpus": ["2", "3"], "negative_delta_gpus": [], "stream_span_s": 14.0});
    assert_eq!(found, wanted);
    snapshot("end", "gpu,total_energy_consumption\n0,-1\n1,0.5\n");
    let found = check();
    assert_eq!(found["relative_error"], Value::Null);
    assert_eq!(
        (&found["within_tolerance"], &found["negative_delta_gpus"]),
        (&json!(false), &json!(["0"]))
    );
    snapshot("end", "nothing\n");
    assert_eq!(check(), unavailable("unparseable_end_snapshot"));
}
