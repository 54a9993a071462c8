//! Groups of tasks, and what is told twice.

use serde_json::{Value, json};

use super::{PASSES, Table};
use crate::fixture::set::{RESULT, SAMPLES, Set};

/// A suite that is a group of two.
fn family(set: &mut Set) {
    for file in ["envelope.json", "meta_env.json"] {
        let text = set.0[file].replace("\"gsm8k\"", "\"family\"");
        set.put(file, text);
    }
    set.0.remove(SAMPLES);
    set.put("thresholds.yaml", "default: { family: 0.9, a: 0.9, b: 0.9 }\n");
    let line = json!({"acc,none": 0.95, "acc_stderr,none": 0.02});
    let count = json!({"original": 20, "effective": 20});
    let result = json!({
        "results": {"family": line, "a": line, "b": line},
        "groups": {"family": line},
        "group_subtasks": {"family": ["a", "b"]},
        "n-samples": {"a": count, "b": count},
    });
    set.put(RESULT, result.to_string());
}

pub fn groups(table: &mut Table) {
    let cases: Vec<(&str, &'static str, Option<Value>, &str)> = vec![
        ("as it is", "/results/family", Some(json!({"acc,none": 0.95})), PASSES),
        (
            "without a line of its own",
            "/results/family",
            Some(json!({"alias": "family"})),
            PASSES,
        ),
        (
            "whose own line is under its floor",
            "/results/family/acc,none",
            Some(json!(0.5)),
            "`family` `acc,none` is 0.5000",
        ),
        (
            "told twice with two values",
            "/groups/family/acc,none",
            Some(json!(0.96)),
            "under `results` and 0.96 under `groups`",
        ),
        (
            "without a leaf's result",
            "/results/b",
            None,
            "`b` of the group `family` has no result",
        ),
        (
            "without a leaf's count",
            "/n-samples/b",
            None,
            "`b` has no sample count",
        ),
        (
            "with a short leaf",
            "/n-samples/b/effective",
            Some(json!(10)),
            "`b` evaluated 10 of 20",
        ),
        (
            "with an empty leaf",
            "/n-samples/b/effective",
            Some(json!(0)),
            "`b` evaluated 0",
        ),
        (
            "with a leaf that is low",
            "/results/b/acc,none",
            Some(json!(0.1)),
            "`b` `acc,none` is 0.1000",
        ),
        (
            "with a leaf without a score",
            "/results/b",
            Some(json!({"alias": "b"})),
            "`b` has no metric",
        ),
        (
            "that holds itself",
            "/group_subtasks/family",
            Some(json!(["a", "b", "family"])),
            "`family` of `group_subtasks` holds itself",
        ),
        (
            "that holds one that holds it",
            "/group_subtasks/b",
            Some(json!(["family"])),
            "holds itself",
        ),
        (
            "with a leaf that nobody lists",
            "/results/c",
            Some(json!({"acc,none": 0.95})),
            "`results` has `c`",
        ),
        (
            "with a leaf that never ran",
            "/group_subtasks/family",
            Some(json!(["a", "b", "gone"])),
            "`gone` of the group `family` has no result",
        ),
        (
            "that holds nothing",
            "/group_subtasks/family",
            Some(json!([])),
            "`results` has `a`",
        ),
    ];
    for (name, pointer, value, wanted) in cases {
        table.add(format!("a group {name}"), wanted, move |set| {
            family(set);
            set.set(RESULT, pointer, value.clone());
            // A line is told in two places: only where a case says so do they differ.
            if pointer.starts_with("/results/family") {
                set.set(RESULT, "/groups", None);
            }
        });
    }
    table.add(
        "a task that its file calls a group",
        "the job asked for `gsm8k`, and `results` has none",
        |set| {
            let text = set.0[RESULT].replace("\"gsm8k\":", "\"easy\":");
            set.put(RESULT, text);
            set.set(RESULT, "/group_subtasks", Some(json!({"gsm8k": ["easy"]})));
        },
    );
}

pub fn twice(table: &mut Table) {
    let twice = "twice in one object";
    table.raw(RESULT, "\"results\":", "\"results\": {}, \"results\":", twice);
    table.raw(
        RESULT,
        "\"gsm8k\":{\"alias\"",
        "\"gsm8k\": {}, \"gsm8k\":{\"alias\"",
        twice,
    );
    table.raw(
        RESULT,
        "\"exact_match,strict-match\":",
        "\"exact_match,strict-match\": 0.1, \"exact_match,strict-match\":",
        twice,
    );
    table.raw(
        RESULT,
        "\"exact_match,strict-match\":",
        "\"\\u0065xact_match,strict-match\": 0.1, \"exact_match,strict-match\":",
        twice,
    );
    table.raw(RESULT, "\"effective\":", "\"effective\": 0, \"effective\":", twice);
    table.raw(RESULT, "\"limit\":", "\"limit\": 3, \"limit\":", twice);
    table.raw(
        RESULT,
        "\"model_name\":",
        "\"x\": [{\"y\": 1, \"y\": 2}], \"model_name\":",
        twice,
    );
    table.raw("meta_env.json", "\"conc\":", "\"conc\": 1, \"conc\":", twice);
    table.raw("meta_env.json", "\"hw\":", "\"hw\": \"h100\", \"hw\":", twice);
    table.raw(
        SAMPLES,
        "\"resps\":",
        "\"resps\": [[\"\"]], \"resps\":",
        "has `resps` twice in one object in line 1",
    );
}
