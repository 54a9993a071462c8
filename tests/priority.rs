//! `sweepctl priority`: the scores of queued jobs.

use std::io::Write;
use std::process::Stdio;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{assert_none, misses, sweepctl, write};

/// Exit status, standard output and standard error.
type Done = (Option<i32>, String, String);

fn priority(policy: &str, args: &[&str], rows: &Value) -> Done {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "policy.yaml", policy);
    let mut command = sweepctl(folder.path());
    command.args(["priority", "--policy", "policy.yaml"]).args(args);
    let pipes = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("the binary runs");
    // A refused policy ends the command before it reads.
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(rows.to_string().as_bytes());
    let output = child.wait_with_output().expect("an end");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn scores(policy: &str, args: &[&str], rows: &Value) -> Vec<String> {
    let (code, stdout, stderr) = priority(policy, args, rows);
    assert_eq!(code, Some(0), "{stderr}");
    let printed: Vec<Value> = serde_json::from_str(&stdout).expect("a list");
    printed
        .iter()
        .map(|item| item["priority"].as_str().expect("a text").to_owned())
        .collect()
}

#[derive(Deserialize)]
struct Case {
    src: String,
    policy: Value,
    event: CaseEvent,
    rows: Value,
    expect: Option<Vec<Value>>,
    refused: Option<Vec<String>>,
    #[serde(default)]
    accept: Vec<Vec<Value>>,
}

#[derive(Deserialize)]
struct CaseEvent {
    name: String,
    labels: Value,
    pr: Option<u64>,
}

/// Whether each item has at least what is wanted of it; null is absent.
fn has(printed: &[Value], wanted: &[Value]) -> bool {
    printed.len() == wanted.len()
        && printed.iter().zip(wanted).all(|(item, wanted)| {
            let fields = wanted.as_object().expect("an object");
            fields.iter().all(|(name, value)| match value {
                Value::Null => item.get(name).is_none(),
                value => item.get(name) == Some(value),
            })
        })
}

#[test]
fn scores_of_the_corpus() {
    let Some(corpus) = crate::corpus::corpus() else { return };
    let text = std::fs::read_to_string(corpus.join("priority/cases.jsonl")).expect("cases");
    let cases: Vec<Case> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a case"))
        .collect();
    let found = misses(&cases, |case| {
        let policy = case
            .policy
            .as_str()
            .map_or_else(|| case.policy.to_string(), str::to_owned);
        let labels = case.event.labels.to_string();
        let mut args = vec!["--event-name", &case.event.name, "--labels-json", &labels];
        let number = case.event.pr.map(|number| number.to_string());
        args.extend(number.iter().flat_map(|number| ["--pr", number.as_str()]));
        let (code, stdout, stderr) = priority(&policy, &args, &case.rows);
        let taken = case.expect.iter().chain(&case.accept).any(|wanted| {
            code == Some(0) && serde_json::from_str(&stdout).is_ok_and(|printed: Vec<Value>| has(&printed, wanted))
        });
        let refused = case.refused.as_ref().is_some_and(|texts| {
            code == Some(1) && stdout.is_empty() && texts.iter().all(|text| stderr.contains(text))
        });
        (!taken && !refused).then(|| format!("{}: {code:?}\n{stdout}\n{stderr}", case.src))
    });
    assert_none("priority", cases.len(), &found);
}

const POLICY: &str = "version: 1
base-score: 1.0005
adjustments:
  event: { push: 3 }
  multi-node: 10
  agentic: 20
  eval-only: 40
  precision: { fp4: 0.1 }
  spec-decoding: { none: 0.01 }
  framework-prefix: { dynamo-trt: 100, dynamo: 200, trt: 400 }
  model-prefix: { glm5: 1000 }
labels:
  skip-queue: { name: first }
  checklist-complete: { names: [done, done-too], adjustment: 0.5 }
  patchwork: { names: [patched], score: -1.0005, waived-by: [fine] }
";

#[test]
fn every_term_is_of_its_own_field() {
    let rows = json!([
        {}, {"prefill": {}}, {"scenario-type": "agentic-coding"}, {"scenario-type": "fixed-seq-len"},
        {"eval-only": true}, {"eval-only": false}, {"precision": "fp4"}, {"precision": "fp41"},
        {"spec-decoding": "none"}, {"framework": "dynamo-trt"}, {"framework": "dynamo-trt-x"},
        {"framework": "dynamo-vllm"}, {"framework": "dynamo"}, {"framework": "dynamos"}, {"framework": "trtllm"},
        {"model-prefix": "glm5"}, {"model-prefix": "glm5.1"},
    ]);
    let wanted = [
        "1.001", "11.001", "21.001", "1.001", "41.001", "1.001", "1.101", "1.001", "1.011", "101.001", "101.001",
        "201.001", "201.001", "1.001", "1.001", "1001.001", "1.001",
    ];
    assert_eq!(scores(POLICY, &[], &rows), wanted);
    assert_eq!(scores(POLICY, &["--event-name", "push"], &json!([{}])), ["4.001"]);
    assert_eq!(scores(POLICY, &["--event-name", "pushed"], &json!([{}])), ["1.001"]);
}

#[test]
fn labels_are_compared_exactly() {
    let of = |labels: &str| scores(POLICY, &["--labels-json", labels], &json!([{"prefill": {}}])).concat();
    assert_eq!(of(r#"["done", "done-too"]"#), "11.501");
    assert_eq!(of(r#"["Done", "done "]"#), "11.001");
    assert_eq!(of(r#"["patched", "done"]"#), "-1.001");
    assert_eq!(of(r#"["patched", "fine"]"#), "11.001");
    assert_eq!(of(r#"["fine"]"#), "11.001");
}

#[test]
fn a_pull_request_that_skips_the_queue_is_named() {
    let printed = |args: &[&str]| priority(POLICY, args, &json!([{}])).1;
    let skips =
        |args: &[&str]| serde_json::from_str::<Value>(&printed(args)).expect("JSON")[0]["skip-queue-pr"].clone();
    assert_eq!(skips(&["--labels-json", r#"["first"]"#, "--pr", "7"]), 7);
    assert_eq!(skips(&["--labels-json", r#"["first", "patched"]"#, "--pr", "7"]), 7);
    assert_eq!(skips(&["--labels-json", r#"["first"]"#]), Value::Null);
    assert_eq!(skips(&["--pr", "7"]), Value::Null);
}

#[test]
fn what_cannot_be_scored_is_refused() {
    let refused = |policy: &str, args: &[&str], rows: &Value, wanted: &str| {
        let (code, stdout, stderr) = priority(policy, args, rows);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
        assert!(stderr.contains(wanted), "{wanted} in {stderr}");
    };
    refused(POLICY, &["--labels-json", "done"], &json!([]), "--labels-json");
    refused(POLICY, &["--labels-json", "[1]"], &json!([]), "--labels-json");
    refused(POLICY, &[], &json!({"prefill": {}}), "standard input");
    refused(&POLICY.replace("fp4: 0.1", "fp4: high"), &[], &json!([{}]), "fp4");
    let most = format!("7{}", "0".repeat(28));
    let huge = POLICY.replace("base-score: 1.0005", &format!("base-score: {most}"));
    let huge = huge.replace("multi-node: 10", &format!("multi-node: {most}"));
    refused(
        &huge,
        &[],
        &json!([{"prefill": {}}]),
        "more digits than a decimal holds",
    );
    assert_eq!(priority(POLICY, &["--pr", "0"], &json!([])).0, Some(2));
}
