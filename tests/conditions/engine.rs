//! The evaluator against GitHub's own engine: the same expressions in the same contexts give the same values.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value as Json, json};
use sweepctl::config::source::Source;
use sweepctl::workflow::simulate::evaluate::{Scope, Status, evaluate, parse};
use sweepctl::workflow::simulate::template::{Part, parts};
use sweepctl::workflow::simulate::value::Value;
use sweepctl::workflow::tree::{File, FileKind, get};

use super::rendered;
use crate::support::{assert_none, fed, stderr};
use crate::workflows::tool;

/// The contexts of GitHub, and `jobs` of called workflows.
const CONTEXTS: [&str; 12] = [
    "github", "needs", "inputs", "matrix", "strategy", "env", "vars", "secrets", "runner", "steps", "job", "jobs",
];

/// A scope in the form that both sides read.
fn scope_of(json: &Json) -> Scope {
    let mut scope = Scope::default();
    for name in CONTEXTS {
        if let Some(value) = json["contexts"].get(name) {
            scope = scope.with(name, value.into());
        }
    }
    let flag = |name: &str| json["status"][name].as_bool().expect("a flag");
    match json["status"].is_null() {
        true => scope,
        false => scope.in_status(Status {
            success: flag("success"),
            failure: flag("failure"),
            cancelled: flag("cancelled"),
        }),
    }
}

/// What this project's evaluator says, in the form of `evaluate.mjs`.
fn ours(expression: &str, scope: &Scope) -> Json {
    match parse(expression).and_then(|expression| evaluate(&expression, scope)) {
        Ok(value) => {
            let kind = match &value {
                Value::Null => "Null",
                Value::Bool(_) => "Boolean",
                Value::Number(_) => "Number",
                Value::String(_) => "String",
                Value::Array(_) => "Array",
                Value::Object(_) => "Dictionary",
            };
            json!({ "kind": kind, "text": *value.text(), "json": value.to_json() })
        }
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// Asks GitHub's engine, in one process.
fn theirs(scopes: &[Json], cases: &[(String, usize)]) -> Vec<Json> {
    let asked = json!({ "scopes": scopes, "cases": cases }).to_string();
    // Node.js is there once `tests/tools` ran.
    let output = fed(Command::new("node").arg(tool("workflows-node/evaluate.cjs")), &asked);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Both sides on all cases; errors are equal whatever their words.
fn compare(what: &str, scopes: &[Json], cases: &[(String, usize)]) {
    let known: Vec<Scope> = scopes.iter().map(scope_of).collect();
    let answers = theirs(scopes, cases);
    assert_eq!(answers.len(), cases.len());
    let errors = answers.iter().filter(|answer| answer.get("error").is_some()).count();
    assert!(
        errors * 2 < cases.len(),
        "{what}: {errors} of {} cases are errors",
        cases.len()
    );
    let missed: Vec<String> = cases
        .iter()
        .zip(&answers)
        .filter_map(|((expression, number), theirs)| {
            let ours = ours(expression, &known[*number]);
            let same = match (ours.get("error"), theirs.get("error")) {
                (Some(_), Some(_)) => true,
                _ => ours == *theirs,
            };
            (!same).then(|| {
                format!(
                    "{expression}\n  in    {}\n  ours   {ours}\n  theirs {theirs}",
                    scopes[*number]
                )
            })
        })
        .collect();
    assert_none(what, cases.len(), &missed);
}

/// Every expression of the rendered files: in conditions, and between braces.
fn expressions(sources: &[Arc<Source>]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut add = |text: &str| {
        for part in parts(text).expect("braces that end") {
            if let Part::Expression(text) = part {
                all.insert(text.trim().to_owned());
            }
        }
    };
    let mut bare = BTreeSet::new();
    for source in sources {
        let kind = match source.name.contains("/actions/") {
            true => FileKind::Action,
            false => FileKind::Workflow,
        };
        let file = File::parse(source, kind).expect("YAML");
        file.scalars().into_iter().for_each(|node| add(node.text()));
        let of_jobs = file.jobs().map(|job| job.condition().to_owned()).collect::<Vec<_>>();
        let of_steps = file
            .steps()
            .filter_map(|step| get(step, "if"))
            .map(|node| node.text().to_owned());
        bare.extend(
            of_jobs
                .into_iter()
                .chain(of_steps)
                .filter(|text| !text.is_empty() && !text.contains("${{")),
        );
    }
    all.extend(bare);
    all
}

/// The paths that expressions name: `needs.decide.outputs.run`.
fn paths(expressions: &BTreeSet<String>) -> Vec<Vec<String>> {
    let mut found = BTreeSet::new();
    for expression in expressions {
        let tree = parse(expression).unwrap_or_else(|error| panic!("{error}"));
        for (context, _) in tree.contexts() {
            let Some(pattern) = context.as_pattern() else { continue };
            let path: Vec<String> = pattern.split('.').map(str::to_owned).collect();
            if path.len() > 1 && !path.iter().any(|part| part == "*") {
                found.insert(path);
            }
        }
    }
    found.into_iter().collect()
}

/// Values that a workflow's contexts hold, and some that they should not.
fn leaves() -> Vec<Json> {
    let envelope = r#"{"id":"0123456789ab","name":"tp8 conc 4","runs-on":"h200","timeout-minutes":90,"row":{"tp":8}}"#;
    vec![
        json!("true"),
        json!("false"),
        json!("True"),
        json!(""),
        json!("0"),
        json!("1"),
        json!("12"),
        json!(" 0 "),
        json!("success"),
        json!("failure"),
        json!("skipped"),
        json!("cancelled"),
        json!("SUCCESS"),
        json!("[]"),
        json!("[0,1]"),
        json!(r#"["bundle_evals_0",""]"#),
        json!("[0"),
        json!(envelope),
        json!(format!("[{envelope}]")),
        json!(r#"["bmk","eval"]"#),
        json!("null"),
        json!("64"),
        json!("pull_request"),
        json!("push"),
        json!("labeled"),
        json!("synchronize"),
        json!("opened"),
        json!("sweep-enabled"),
        json!("Full-Sweep-Enabled"),
        json!("documentation"),
        json!("all-evals"),
        json!("multi_node_1k1k"),
        json!("MULTI"),
        json!("evals"),
        json!("acme/bench"),
        json!("somebody/bench"),
        json!("open"),
        json!("closed"),
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(7),
        json!(-1.5),
        json!([]),
        json!(["a"]),
        json!({}),
        json!({ "name": "x" }),
    ]
}

/// Puts a value at a path, in place of what is no mapping there.
fn put(tree: &mut Json, path: &[String], leaf: Json) {
    let Some((first, rest)) = path.split_first() else {
        *tree = leaf;
        return;
    };
    if !tree.is_object() {
        *tree = json!({});
    }
    put(&mut tree[first.as_str()], rest, leaf);
}

/// Scopes with a value at each path, drawn by proptest.
fn drawn_scopes(paths: &[Vec<String>], count: usize) -> Vec<Json> {
    let one = proptest::collection::vec(
        proptest::option::weighted(0.9, proptest::sample::select(leaves())),
        paths.len(),
    );
    let status = proptest::option::weighted(0.9, any::<(bool, bool, bool)>());
    let strategy = (one, status);
    let mut runner = TestRunner::deterministic();
    (0..count)
        .map(|_| {
            let (values, status) = strategy.new_tree(&mut runner).expect("a draw").current();
            let mut contexts = json!({});
            for name in CONTEXTS {
                contexts[name] = json!({});
            }
            for (path, value) in paths.iter().zip(values) {
                if let Some(value) = value {
                    put(&mut contexts, path, value);
                }
            }
            let status = status.map(|(success, failure, cancelled)| {
                json!({ "success": success, "failure": failure, "cancelled": cancelled })
            });
            json!({ "contexts": contexts, "status": status })
        })
        .collect()
}

/// A run as it is, at its best and at its worst.
fn made_scopes(paths: &[Vec<String>]) -> Vec<Json> {
    let status =
        |success, failure, cancelled| json!({ "success": success, "failure": failure, "cancelled": cancelled });
    let all = |leaf: &dyn Fn(&[String]) -> Json, status: Json| {
        let mut contexts = json!({});
        CONTEXTS.iter().for_each(|name| contexts[*name] = json!({}));
        paths.iter().for_each(|path| put(&mut contexts, path, leaf(path)));
        json!({ "contexts": contexts, "status": status })
    };
    let sound = |path: &[String]| match path.last().map_or("", String::as_str) {
        "result" | "outcome" | "conclusion" => json!("success"),
        name if name.ends_with("_jobs") => json!("3"),
        "shard" => json!(0),
        name if name.ends_with("shards") => json!("[0,1]"),
        name if name.ends_with("inputs") => json!(r#"[{"max-parallel":4,"envelopes":"[]"}]"#),
        "envelope" => json!(r#"{"runs-on":"h200","timeout-minutes":90}"#),
        name if ["artifacts", "envelopes", "kinds"].contains(&name) => json!(r#"["a","b"]"#),
        "number" => json!(12),
        "event_name" => json!("pull_request"),
        "action" => json!("labeled"),
        "name" => json!("sweep-enabled"),
        _ => json!("true"),
    };
    vec![
        all(&sound, status(true, false, false)),
        all(
            &|path| {
                if path.last().is_some_and(|name| name == "result") {
                    json!("skipped")
                } else {
                    sound(path)
                }
            },
            status(false, false, false),
        ),
        all(
            &|path| {
                if path.last().is_some_and(|name| name == "result") {
                    json!("failure")
                } else {
                    json!("")
                }
            },
            status(false, true, false),
        ),
        all(&|_| json!("0"), status(false, false, true)),
        all(&|_| json!(null), status(true, false, false)),
        json!({ "contexts": { "github": {} }, "status": null }),
    ]
}

#[test]
fn every_rendered_expression_has_githubs_value() {
    let expressions = expressions(&rendered());
    assert!(expressions.len() > 100, "{} expressions", expressions.len());
    let paths = paths(&expressions);
    assert!(paths.len() > 60, "{paths:?}");
    let mut scopes = made_scopes(&paths);
    scopes.extend(drawn_scopes(&paths, 24));
    let numbers = 0..scopes.len();
    let cases: Vec<(String, usize)> = numbers
        .flat_map(|number| expressions.iter().map(move |expression| (expression.clone(), number)))
        .collect();
    compare("rendered expressions", &scopes, &cases);
}

/// Corner cases by hand, a line each.
#[test]
fn corner_cases_have_githubs_value() {
    let lines = include_str!("expressions.txt").lines();
    let lines: Vec<&str> = lines
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    assert!(lines.len() >= 150, "{} expressions", lines.len());
    let cases: Vec<(String, usize)> = lines.iter().map(|line| ((*line).to_owned(), 0)).collect();
    compare("corner cases", &[corner_scope()], &cases);
}

fn corner_scope() -> Json {
    json!({
        "contexts": {
            "github": {
                "event_name": "push", "Ref": "refs/heads/main", "empty": "", "zero": 0, "no": false, "nothing": null,
                "event": {
                    "label": { "name": "Sweep-Enabled" },
                    "labels": [{ "name": "a", "id": 1 }, { "name": "B", "id": 2 }, { "id": 3 }, "text", ["x", "y"]],
                    "nested": { "one": { "v": [1, 2] }, "two": { "v": [3] }, "three": 3 },
                    "numbers": [0, 1.5, -2, 1e21, 1e-7, 123456789012i64],
                },
            },
            "needs": {
                "a": { "result": "success", "outputs": { "n": "3", "list": "[1,2,3]", "o": "{\"k\":[{\"z\":null}]}" } },
                "b-c": { "result": "skipped", "outputs": {} },
            },
            "matrix": { "envelope": { "name": "tp8", "runs-on": "h200", "deep": { "x": [true, null, "q\"\\\n\u{1}é"] } } },
        },
        "status": { "success": false, "failure": true, "cancelled": false },
    })
}

/// Expressions of any form, drawn by proptest.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        proptest::sample::select(vec![
            "true",
            "false",
            "null",
            "0",
            "1",
            "-1",
            "2.5",
            "1e3",
            "0x1f",
            "NaN",
            "Infinity",
            "-Infinity",
            ".5",
            "''",
            "'a'",
            "'A'",
            "'abc'",
            "'0'",
            "' 1 '",
            "'0x1F'",
            "'1e3'",
            "'true'",
            "'NaN'",
            "'é'",
            "'ß'",
            "'it''s'",
            "'[1,2]'",
            "'{\"k\":\"v\"}'",
            "'[0'",
            "'{0} {1}'",
            "'{{{0}}}'",
            "'{'",
        ])
        .prop_map(str::to_owned),
        proptest::sample::select(vec![
            "github.event_name",
            "github.REF",
            "github.empty",
            "github.zero",
            "github.no",
            "github.nothing",
            "github.missing.more",
            "github.event.label.name",
            "github.event.labels",
            "github.event.labels.*.name",
            "github.event.labels.*.*",
            "github.event.labels[1].name",
            "github.event.nested.*.v",
            "github.event.numbers",
            "github.event.numbers[1]",
            "github.event.nested",
            "needs.a.result",
            "needs.b-c.result",
            "needs.*.result",
            "needs.a.outputs.n",
            "needs.a.outputs.list",
            "needs['A'].outputs['N']",
            "matrix.envelope",
            "matrix.envelope.deep.x",
            "success()",
            "failure()",
            "cancelled()",
            "always()",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let binary = proptest::sample::select(vec!["&&", "||", "==", "!=", "<", "<=", ">", ">="]);
        let two = proptest::sample::select(vec!["contains", "startsWith", "endsWith", "join", "format"]);
        let one = proptest::sample::select(vec!["toJSON", "fromJSON", "TOJSON", "join", "format"]);
        prop_oneof![
            4 => (inner.clone(), binary, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            1 => inner.clone().prop_map(|a| format!("!({a})")),
            2 => (two, inner.clone(), inner.clone()).prop_map(|(name, a, b)| format!("{name}({a}, {b})")),
            1 => (one, inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("fromJSON(toJSON({a}))[{b}]")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("case({a} == {b}, {a}, {b})")),
            1 => (inner.clone(), inner).prop_map(|(a, b)| format!("({a}).name.*[{b}]")),
        ]
    })
}

#[test]
fn drawn_expressions_have_githubs_value() {
    let mut runner = TestRunner::deterministic();
    let strategy = expression();
    let draw = |_| (strategy.new_tree(&mut runner).expect("a draw").current(), 0);
    let cases: Vec<(String, usize)> = (0..3000).map(draw).collect();
    compare("drawn expressions", &[corner_scope()], &cases);
}
