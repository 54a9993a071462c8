//! Tasks of different metrics by the real lm-eval: run, gated, collected, compared.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::support::{envelope, read_json, root, sweepctl, write_json};
use super::tools;
use crate::mock_server::client::Server;

/// A task, its score's name, and its floor or ceiling: that which the score clears, and one that it misses.
struct Case {
    task: &'static str,
    score: &'static str,
    cleared: &'static str,
    missed: &'static str,
}

const CASES: [Case; 6] = [
    Case {
        task: "accuracy",
        score: "accuracy",
        cleared: "0.8",
        missed: "0.81",
    },
    Case {
        task: "accuracy_by_length",
        score: "acc_norm,none",
        cleared: "0.8",
        missed: "0.81",
    },
    Case {
        task: "match",
        score: "em_strict",
        cleared: "{ min-score: 0.8, metric: 'exact_match,strict-match' }",
        // Without a filter both are judged, and one of them finds nothing.
        missed: "0.8",
    },
    Case {
        task: "overlap",
        score: "f1,none",
        cleared: "{ min-score: 0.81, metric: f1 }",
        // The first metric that the task declares.
        missed: "0.81",
    },
    Case {
        task: "perplexity",
        score: "word_perplexity,none",
        cleared: "{ max: 4.4 }",
        missed: "{ max: 4.3 }",
    },
    Case {
        task: "code",
        score: "pass@1,create_test",
        cleared: "0.8",
        missed: "{ min-score: 0.8, metric: 'pass@10' }",
    },
];

/// A folder with the tasks, as a checkout has them.
struct Checkout(tempfile::TempDir);

impl Checkout {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        copy(
            &root().join("tests/fixtures/evals"),
            &folder.path().join("configs/evals"),
        );
        for (name, threshold) in [("cleared", 0), ("missed", 1)] {
            let lines = CASES.iter().map(|case| {
                let text = [case.cleared, case.missed][threshold];
                format!("  {}: {text}\n", case.task)
            });
            let text = format!("default:\n{}", lines.collect::<String>());
            std::fs::write(folder.path().join(format!("{name}.yaml")), text).expect("a file");
        }
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn step(&self, args: &[&str]) -> Output {
        let mut command = sweepctl();
        command
            .current_dir(self.path())
            .args(args)
            .env("SWEEPCTL_TOOLS", tools::folder())
            .env("HF_HOME", self.path().join("hub"))
            .env("HF_HUB_OFFLINE", "1");
        command.output().expect("the binary runs")
    }

    #[track_caller]
    fn done(&self, args: &[&str]) -> Value {
        let output = self.step(args);
        assert!(output.status.success(), "{args:?}: {}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("copied")),
        }
    }
}

#[test]
fn six_metrics_are_run_gated_collected_and_compared() {
    tools::lm_eval();
    let checkout = Checkout::new();
    let answers = checkout.path().join("configs/evals/data/sums.jsonl");
    let options = [
        "--port",
        "0",
        "--model",
        "org/stub-7b",
        "--accuracy",
        "0.8",
        "--answers",
    ];
    let server = Server::start(&[&options[..], &[answers.to_str().expect("a path")]].concat());
    let endpoint = format!("http://{}", server.address);
    let mut plan = Vec::new();
    for (at, case) in CASES.iter().enumerate() {
        let job = envelope(&format!("{at:012}"), json!({"eval-suite": case.task}));
        write_json(checkout.path(), "envelope.json", &job);
        plan.push(job);
        let run = [
            "eval",
            "run",
            "--endpoint",
            &endpoint,
            "--envelope",
            "envelope.json",
            "--stage-to",
            ".",
        ];
        checkout.done(&run);
        let gate = ["eval", "validate", "--envelope", "envelope.json", "--thresholds"];
        let report = checkout.done(&[&gate[..], &["cleared.yaml"]].concat());
        let checks = report["checks"].as_array().expect("checks");
        assert!(
            !checks.is_empty() && checks.iter().all(|check| check["passed"] == true),
            "{report}"
        );
        let refused = checkout.step(&[&gate[..], &["missed.yaml"]].concat());
        assert_eq!(refused.status.code(), Some(1), "{}", case.task);
        assert!(
            said(&refused).contains(&format!("`{}` ", case.task)),
            "{}",
            said(&refused)
        );
        checkout.done(&[
            "upload",
            "--kind",
            "eval",
            "--envelope",
            "envelope.json",
            "--to",
            "artifacts",
        ]);
    }
    write_json(checkout.path(), "plan.json", &json!(plan));
    let collect = [
        "collect",
        "evals",
        "artifacts",
        "--plan",
        "plan.json",
        "--strict",
        "--out",
    ];
    let collected = checkout.done(&[&collect[..], &["before", "--thresholds", "cleared.yaml"]].concat());
    let rows = collected["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), CASES.len());
    for case in &CASES {
        let row = rows.iter().find(|row| row["task"] == case.task).expect(case.task);
        assert_eq!(
            (&row["score_name"], &row["n_eff"]),
            (&json!(case.score), &json!(10)),
            "{row}"
        );
        let right = match case.task {
            "overlap" => 0.8..1.0,
            "perplexity" => 4.3..4.4,
            _ => 0.8..0.800_001,
        };
        assert!(right.contains(&row["score"].as_f64().expect("a score")), "{row}");
        let direction = (case.task == "perplexity").then_some(&Value::Bool(false));
        assert_eq!(row.get("higher_is_better"), direction);
    }
    // Everything got a little larger: of all but one that is better.
    let mut later = read_json(&checkout.path().join("before/agg_eval_all.json"));
    for row in later.as_array_mut().expect("rows") {
        row["score"] = json!(row["score"].as_f64().expect("a score") + 0.05);
    }
    std::fs::create_dir(checkout.path().join("after")).expect("a folder");
    write_json(checkout.path(), "after/agg_eval_all.json", &later);
    let compared = checkout.done(&["compare", "before", "after"]);
    let scores = compared["scores"].as_array().expect("scores");
    assert_eq!(scores.len(), CASES.len());
    // The largest loss first.
    assert_eq!(scores[0]["task"], "perplexity", "{compared}");
    let less_is_better = scores.iter().filter(|score| score["less_is_better"] == true);
    assert_eq!(less_is_better.count(), 1, "{compared}");
    assert!(
        scores
            .iter()
            .all(|score| score["change"].as_f64().is_some_and(|change| change > 0.04))
    );
}
