//! `explain`, `plan` and `check` know every suite of the frameworks file.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::fleet::{entry, log, repository};
use crate::support::{json, project, run, stderr, write};

/// Every suite: its framework, its name, its cases, and its checks.
const SUITES: [(&str, &str, u64, u64); 8] = [
    ("kimi-vendor", "kimi_tool_call_schema_full", 204, 408),
    ("kimi-vendor", "kimi_tool_call_schema", 1, 2),
    ("minimax-vendor", "minimax_m3_full", 102, 102),
    ("minimax-vendor", "minimax_m3_smoke", 1, 1),
    ("bfcl", "bfcl_smoke", 4, 4),
    ("bfcl", "bfcl_vllm_minimax_m3", 1000, 1000),
    ("bfcl", "bfcl_vllm_kimi", 1240, 1240),
    ("swebench", "swebench_lite", 300, 300),
];

/// What the frameworks file holds: a framework is a key of the second level, a suite one of the fourth.
fn shipped() -> BTreeSet<(String, String)> {
    let text = std::fs::read_to_string(project().join("configs/evals/frameworks.yaml")).expect("the file");
    let mut found = BTreeSet::new();
    let (mut framework, mut block) = ("", "");
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let key = line.trim().strip_suffix(':');
        match (line.len() - line.trim_start().len(), key) {
            (2, Some(key)) => framework = key,
            (4, _) => block = line.trim(),
            (6, Some(key)) if block == "suites:" => drop(found.insert((framework.to_owned(), key.to_owned()))),
            _ => {}
        }
    }
    found
}

#[test]
fn explain_plan_and_check_know_every_suite() {
    let known: BTreeSet<_> = SUITES
        .iter()
        .map(|(f, s, ..)| ((*f).to_owned(), (*s).to_owned()))
        .collect();
    assert_eq!(shipped(), known, "the table above is of the file");
    let folder = repository();
    let at = folder.path();
    log(at, &entry("alpha-mi-vllm-fp8", ""));
    let policy = std::fs::read_to_string(project().join("configs/eval-policy.yaml")).expect("the policies");
    let lm_eval = "evaluator: { framework: lm-eval }";
    assert!(policy.contains(lm_eval));
    for (framework, suite, cases, checks) in SUITES {
        let evaluator = |suite: &str| format!("evaluator: {{ framework: {framework}, suite: {suite} }}");
        write(
            at,
            "configs/eval-policy.yaml",
            policy.replace(lm_eval, &evaluator(suite)),
        );
        // The policy selects it: nothing is wrong with that, and a row says what takes it.
        let output = run(at, ["check"]);
        assert!(output.status.success(), "{suite}: {}", stderr(&output));
        let size = match cases == checks {
            true => format!("({cases} cases)"),
            false => format!("({cases} cases, {checks} checks)"),
        };
        let explained = json(at, ["explain", "alpha-mi-vllm-fp8", "--json"]);
        let rules = explained
            .as_array()
            .expect("rows")
            .iter()
            .flat_map(|row| row["rules"].as_array().expect("rules"));
        let taken: Vec<&str> = rules
            .filter(|rule| rule["taken"] == true)
            .filter_map(|rule| rule["why"].as_str())
            .collect();
        let why = format!(", by {framework} {suite} {size}");
        assert!(
            !taken.is_empty() && taken.iter().all(|found| found.ends_with(&why)),
            "{why}: {taken:?}"
        );
        // So does its plan, by the policy and where it is asked for.
        for asked in [&[][..], &["--eval-framework", framework, "--eval-suite", suite]] {
            let of = |jobs: &Value| {
                let jobs = jobs.as_array().expect("jobs").clone();
                let evals = jobs.into_iter().filter(|job| job["row"]["eval-only"] == true);
                evals
                    .map(|job| (job["name"].clone(), job["row"].clone()))
                    .collect::<Vec<_>>()
            };
            let _ = std::fs::remove_dir_all(at.join("plan"));
            json(at, [&["plan", "--latest", "--emit", "plan"], asked].concat());
            let shard = std::fs::read_to_string(at.join("plan/evals/0.json")).expect("a shard");
            let evals = of(&serde_json::from_str(&shard).expect("JSON"));
            assert!(!evals.is_empty(), "{suite}");
            for (name, row) in evals {
                assert_eq!(
                    (&row["eval-framework"], &row["eval-suite"]),
                    (&json!(framework), &json!(suite)),
                    "{name}"
                );
                assert!(
                    name.as_str()
                        .is_some_and(|name| name.contains(&format!("eval:{framework}"))),
                    "{name}"
                );
            }
        }
        // A slip is found by each, with the suite that was meant.
        write(
            at,
            "configs/eval-policy.yaml",
            policy.replace(lm_eval, &evaluator(&format!("{suite}x"))),
        );
        let meant = format!("did you mean `{suite}`");
        for command in [&["check"][..], &["plan", "--latest", "--emit", "refused"]] {
            let output = run(at, command);
            let said = stderr(&output);
            assert!(!output.status.success() && said.contains(&meant), "{command:?}: {said}");
        }
        let explained = json(at, ["explain", "alpha-mi-vllm-fp8", "--json"]).to_string();
        assert!(
            explained.contains(&format!("by {framework} {suite}x, which nothing here runs")),
            "{explained}"
        );
    }
}
