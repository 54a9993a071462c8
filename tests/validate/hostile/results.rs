//! Result files: scores, tasks, sample counts.

use serde_json::json;

use super::{PASSES, Table};
use crate::fixture::set::{RESULT, Set};

pub fn scores(table: &mut Table) {
    let strict = "/results/gsm8k/exact_match,strict-match";
    let flexible = "/results/gsm8k/exact_match,flexible-extract";
    for pointer in [strict, flexible] {
        for value in [
            json!(-0.01),
            json!(1.01),
            json!(95),
            json!("0.95"),
            json!(true),
            json!([0.95]),
            json!({"v": 1}),
        ] {
            table.field(RESULT, pointer, value, "not a number from 0 to 1");
        }
        for value in [json!(0.8999), json!(0), json!(0.0)] {
            table.field(RESULT, pointer, value, "under 0.9");
        }
        for value in [json!(0.9), json!(1), json!(1.0)] {
            table.field(RESULT, pointer, value, PASSES);
        }
    }
    for token in ["NaN", "Infinity", "-Infinity", "null"] {
        table.add(format!("every score {token}"), "gsm8k", move |set| {
            set.replace(RESULT, ":0.95", &format!(":{token}"));
            set.replace(RESULT, ":0.96", &format!(":{token}"));
        });
    }
    table.raw(RESULT, ":0.95", ":NaN", "is NaN, not a number from 0 to 1");
    table.field(RESULT, "/results/gsm8k", json!({}), "`gsm8k` has no metric");
    table.field(RESULT, "/results/gsm8k", json!([]), "`gsm8k` holds no metrics");
    table.field(
        RESULT,
        "/results/gsm8k",
        json!({"exact_match_stderr,strict-match": 0.95}),
        "`gsm8k` has no metric",
    );
    table.field(
        RESULT,
        "/results/gsm8k",
        json!({"exact_match": 0.95}),
        "`gsm8k` has no metric",
    );
    table.field(RESULT, "/results", json!({}), "holds no task");
    table.field(RESULT, "/results", json!([]), "holds no task");
    table.gone(RESULT, "/results", "holds no task");
    table.field(
        RESULT,
        "/integration_error",
        json!("no sandbox"),
        "the eval itself failed: no sandbox",
    );
    table.field(RESULT, "/integration_error", json!({}), "the eval itself failed");
    table.field(
        RESULT,
        "/higher_is_better/gsm8k/exact_match",
        json!(false),
        "no `max` judges it",
    );
    table.field(RESULT, "/results/gsm8k/alias", json!("other"), PASSES);
    table.field(RESULT, "/results/gsm8k/f1,none", json!(0.1), PASSES);
    table.field(
        RESULT,
        "/results/gsm8k/exact_match_stderr,strict-match",
        json!("N/A"),
        PASSES,
    );
}

pub fn tasks(table: &mut Table) {
    for name in [
        "gsm8k_smoke",
        "GSM8K",
        "gsm8k ",
        " gsm8k",
        "Gsm8k",
        "gsm8k\u{200b}",
        "gsm8",
        "gsm8k_cot",
        "winogrande",
        "gsm8к",
        "",
    ] {
        table.add(
            format!("the task `{name}` instead"),
            "the job asked for `gsm8k`, and `results` has none",
            move |set| {
                let text = set.0[RESULT].replace("\"gsm8k\":", &format!("\"{name}\":"));
                set.put(RESULT, text);
                set.put(
                    "thresholds.yaml",
                    format!("default: {{ gsm8k: 0.9, \"{name}x\": 0.1 }}\n"),
                );
            },
        );
        table.add(
            format!("the task `{name}` beside it"),
            "and the job asked for `gsm8k`",
            move |set| {
                set.json(RESULT, |root| {
                    for part in ["results", "configs", "n-samples", "higher_is_better"] {
                        let own = root[part]["gsm8k"].clone();
                        root[part][name] = own;
                    }
                });
            },
        );
    }
    table.field(
        RESULT,
        "/groups",
        json!({"easy": {"exact_match,strict-match": 0.99}}),
        "`results` has `easy`",
    );
}

pub fn counts(table: &mut Table) {
    let effective = "/n-samples/gsm8k/effective";
    for value in [
        json!(0),
        json!(-20),
        json!(19.5),
        json!("20"),
        json!(null),
        json!(true),
        json!([20]),
        json!({}),
    ] {
        table.field(RESULT, effective, value, "`gsm8k` evaluated ");
    }
    for value in [
        json!(0),
        json!(-1),
        json!(20.5),
        json!("20"),
        json!(null),
        json!(false),
        json!([]),
        json!({}),
    ] {
        table.field(RESULT, "/n-samples/gsm8k/original", value, "count of original samples");
    }
    table.field(RESULT, effective, json!(21), "more than there are");
    table.field(
        RESULT,
        effective,
        json!(19),
        "evaluated 19 of 20 samples, and no limit was set",
    );
    table.field(
        RESULT,
        "/n-samples/gsm8k/original",
        json!(1319),
        "evaluated 20 of 1319 samples",
    );
    table.field(RESULT, "/n-samples/gsm8k/original", json!(19), "more than there are");
    table.gone(RESULT, effective, "`gsm8k` evaluated null samples");
    table.gone(RESULT, "/n-samples/gsm8k", "`gsm8k` has no sample count");
    table.gone(RESULT, "/n-samples", "`gsm8k` has no sample count");
    table.field(RESULT, "/n-samples", json!([]), "`gsm8k` has no sample count");
    table.field(RESULT, "/n-samples/gsm8k", json!(20), "`gsm8k` has no sample count");
    table.add(
        "a limit that the file alone says",
        "evaluated 20 of 1319 samples, and no limit",
        |set| {
            set.set(RESULT, "/n-samples/gsm8k/original", Some(json!(1319)));
            set.set(RESULT, "/config/limit", Some(json!(20)));
        },
    );
    let limited = |limit: &'static str| {
        move |set: &mut Set| {
            set.set(RESULT, "/n-samples/gsm8k/original", Some(json!(1319)));
            set.set("envelope.json", "/overrides", Some(json!({"eval-limit": limit})));
        }
    };
    table.add("the job's own limit", PASSES, limited("20"));
    table.add("a larger limit of the job", "and the limit was 50", limited("50"));
    for limit in ["full", "0", "00", ""] {
        table.add(
            format!("the limit `{limit}`, which is none"),
            "no limit was set",
            limited(limit),
        );
    }
}
