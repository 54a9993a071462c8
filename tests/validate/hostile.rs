//! One good set, changed in one way at a time: what the gate must then say, and that the collector agrees.

use serde_json::{Value, json};

use super::set::{RESULT, SAMPLES, Set, samples};
use crate::support;

/// What a change leads to where the gate passes the set.
const PASSES: &str = "";

type Change = Box<dyn Fn(&mut Set)>;

/// Changes with their names, and a part of what the gate says of each.
struct Table(Vec<(String, String, Change)>);

impl Table {
    fn add(&mut self, name: impl Into<String>, wanted: &str, change: impl Fn(&mut Set) + 'static) {
        self.0.push((name.into(), wanted.to_owned(), Box::new(change)));
    }

    fn field(&mut self, file: &'static str, pointer: &'static str, value: Value, wanted: &str) {
        let name = format!("{file} {pointer} = {value}");
        self.add(name, wanted, move |set| set.set(file, pointer, Some(value.clone())));
    }

    fn gone(&mut self, file: &'static str, pointer: &'static str, wanted: &str) {
        self.add(format!("{file} without {pointer}"), wanted, move |set| {
            set.set(file, pointer, None)
        });
    }

    fn raw(&mut self, file: &'static str, from: &'static str, to: &'static str, wanted: &str) {
        self.add(format!("{file} with {to} for {from}"), wanted, move |set| {
            set.replace(file, from, to)
        });
    }
}

fn table() -> Vec<(String, String, Change)> {
    let mut table = Table(Vec::new());
    table.add("as it is", PASSES, |_| {});
    scores(&mut table);
    tasks(&mut table);
    counts(&mut table);
    groups(&mut table);
    twice(&mut table);
    metadata(&mut table);
    lines(&mut table);
    thresholds(&mut table);
    table.0
}

fn scores(table: &mut Table) {
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

fn tasks(table: &mut Table) {
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

fn counts(table: &mut Table) {
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
    for limit in ["full", "0", ""] {
        table.add(
            format!("the limit `{limit}`, which is none"),
            "no limit was set",
            limited(limit),
        );
    }
}

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

fn groups(table: &mut Table) {
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

fn twice(table: &mut Table) {
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
        "has a key twice in line 1",
    );
}

fn metadata(table: &mut Table) {
    let file = "meta_env.json";
    for (pointer, values) in [
        ("/job_id", vec![json!("ffffffffffff")]),
        ("/run_id", vec![json!("7002"), json!(7002)]),
        ("/run_attempt", vec![json!("1"), json!(3), json!([2])]),
        (
            "/conc",
            vec![json!(32), json!(null), json!("x"), json!(0), json!([64]), json!(64.5)],
        ),
        ("/framework", vec![json!("sglang")]),
        ("/precision", vec![json!("fp4")]),
        ("/spec_decoding", vec![json!("mtp")]),
        ("/hw", vec![json!("b200")]),
        ("/model", vec![json!("org/other")]),
        ("/infmax_model_prefix", vec![json!("m2")]),
        ("/eval_suite", vec![json!("gpqa_diamond")]),
        ("/tp", vec![json!(4), json!("4")]),
        ("/isl", vec![json!("1024"), json!(1)]),
        ("/osl", vec![json!("1")]),
        ("/is_multinode", vec![json!(true)]),
        ("/dp_attention", vec![json!(true), json!("true")]),
    ] {
        let field = format!("`{}`", &pointer[1..]);
        for value in values {
            table.field(file, pointer, value, &field);
        }
    }
    for (pointer, value) in [
        ("/conc", json!("64")),
        ("/tp", json!("8")),
        ("/hw", json!("H200")),
        ("/framework", json!("vLLM")),
        ("/run_id", json!(7001)),
        ("/run_id", json!("")),
        ("/run_attempt", json!(2)),
        ("/hw", json!("unknown")),
        (
            "/answers",
            json!({"asked": 20, "empty": 20, "reasoning_only": 0, "cut": 0}),
        ),
        ("/answers", json!({"asked": "x"})),
        ("/answers", json!([])),
    ] {
        table.field(file, pointer, value, PASSES);
    }
    table.gone(file, "/conc", "`conc` is null, 64 was asked for");
    for (name, text, wanted) in [
        ("an empty file", "", "meta_env.json is empty"),
        ("a list", "[]", "meta_env.json is no JSON object"),
        ("null", "null", "meta_env.json is no JSON object"),
        ("cut off", "{\"conc\": 64", "meta_env.json is cut off"),
    ] {
        table.add(format!("metadata: {name}"), wanted, move |set| set.put(file, text));
    }
    table.add("no metadata", "meta_env.json does not exist", move |set| {
        set.0.remove(file);
    });
    table.add("no result", "there is no result file", |set| {
        set.0.remove(RESULT);
    });
    for (name, text, wanted) in [
        ("empty", "", "is empty"),
        ("a list", "[{}]", "no JSON object"),
        ("cut", "{\"results\":", "cut off"),
    ] {
        table.add(format!("a result that is {name}"), wanted, move |set| {
            set.put(RESULT, text)
        });
    }
    table.add("two results", "2 result files for a single point", |set| {
        let text = set.0[RESULT].clone();
        set.put("results_2026-11-02T00-00-00.json", text);
    });
}

fn lines(table: &mut Table) {
    for blank in [
        "",
        " ",
        "\n",
        "\t\r\n",
        "\u{a0}",
        "\u{1680}",
        "\u{2003}",
        "\u{2028}",
        "\u{202f}",
        "\u{205f}",
        "\u{3000}",
        "\u{85}",
        "\u{200b}",
        "\u{feff}",
        "\u{2060}",
        "\u{3164}",
        "\u{2800}",
        " \u{3000}\u{a0} ",
    ] {
        table.add(
            format!("answers of {blank:?}"),
            "20 of 20 questions have an empty answer",
            move |set| {
                set.put(SAMPLES, samples(20, |_| blank.to_owned()));
            },
        );
    }
    let some = |empty: usize| {
        move |set: &mut Set| {
            set.put(
                SAMPLES,
                samples(20, |id| if id < empty { String::new() } else { "4".to_owned() }),
            );
        }
    };
    table.add("one silent question of twenty", PASSES, some(1));
    table.add("two silent questions of twenty", "2 of 20 questions", some(2));
    table.add("silence in one filter's line only", PASSES, |set| {
        let text = set.0[SAMPLES].replacen("so it is 4", "", 19);
        set.put(SAMPLES, text);
    });
    for (name, count) in [("fewer", 19), ("one", 1), ("more", 21)] {
        table.add(
            format!("{name} questions than were evaluated"),
            "and `effective` says that 20 were evaluated",
            move |set| {
                set.put(SAMPLES, samples(count, |_| "4".to_owned()));
            },
        );
    }
    for (name, text, wanted) in [
        ("nothing", "", "is empty: it holds no sample"),
        ("empty lines", "\n\n", "is empty: it holds no sample"),
        ("a list", "[]\n", "holds no JSON object in line 1"),
        (
            "no answers",
            "{\"doc_id\": 0}\n",
            "has no list of answers (`resps`) in line 1",
        ),
        (
            "a text for answers",
            "{\"doc_id\": 0, \"resps\": \"4\"}\n",
            "has no list of answers",
        ),
        (
            "null for answers",
            "{\"doc_id\": 0, \"resps\": null}\n",
            "has no list of answers",
        ),
        (
            "answers under another name",
            "{\"doc_id\": 0, \"Resps\": [[\"4\"]]}\n",
            "has no list of answers",
        ),
        (
            "answers inside the document",
            "{\"doc_id\": 0, \"doc\": {\"resps\": [[\"4\"]]}}\n",
            "has no list of answers",
        ),
        ("a cut line", "{\"doc_id\": 0, \"resps\": [[\"4", "is cut off in line 1"),
        (
            "brackets that do not match",
            "{\"doc_id\": 0, \"resps\": [[\"4\"}]}\n",
            "brackets do not match",
        ),
    ] {
        table.add(format!("samples: {name}"), wanted, move |set| set.put(SAMPLES, text));
    }
    table.add("a last line that is cut", "is cut off in line 41", |set| {
        let text = format!("{}{{\"doc_id\": 21", set.0[SAMPLES]);
        set.put(SAMPLES, text);
    });
    table.add("no samples at all", PASSES, |set| {
        set.0.remove(SAMPLES);
    });
}

fn thresholds(table: &mut Table) {
    for (text, wanted) in [
        (
            "default: { GSM8K: 0.1 }",
            "`default.GSM8K` reaches no task: the name of this one is `gsm8k`",
        ),
        ("default: { 'gsm8k ': 0.1 }", "the name of this one is `gsm8k`"),
        (
            "default: { gsm8k: 0.9 }\nmodels: { M1: { gsm8k: 0.99 } }",
            "`models.M1` reaches no job: the key of this model is `m1`",
        ),
        (
            "default: { gsm8k: 0.9 }\nmodels: { org/model: { gsm8k: 0.99 } }",
            "the key of this model is `m1`",
        ),
        (
            "default: { gsm8k: 0.9 }\nmodels: { model: { gsm8k: 0.99 } }",
            "the key of this model is `m1`",
        ),
        (
            "default: { gsm8k: 0.9 }\nmodels: { m1: { GSM8K: 0.99 } }",
            "`models.m1.GSM8K` reaches no task",
        ),
        (
            "default: { gsm8k: 0.9 }\nmodels: { m1: { gsm8k: 0.99 } }",
            "under 0.99 (models.m1)",
        ),
        ("default: { gsm8k: 0.99 }\nmodels: { m1: { gsm8k: 0.9 } }", PASSES),
        ("default: { gsm8k: 0.9 }\nmodels: { m2: { gsm8k: 0.99 } }", PASSES),
        (
            "default: { gsm8k: { min-score: 0.9, metric: f1 } }",
            "has no `f1`, which its threshold names",
        ),
        (
            "default: { gsm8k: { min-score: 0.955, metric: 'exact_match,flexible-extract' } }",
            PASSES,
        ),
        (
            "default: { gsm8k: { min-score: 0.955, metric: 'exact_match' } }",
            "under 0.955",
        ),
        (
            "default: { gsm8k: { min-score: 0.9, metric: 'exact_match_stderr' } }",
            "has no `exact_match_stderr`",
        ),
        ("default: { gsm8k: { max: 0.99 } }", "no `min-score` judges it"),
        ("default: { gsm8k: {} }", "has neither `min-score` nor `max`"),
        ("default: { gsm8k: 1.5 }", "it must be 0 to 1"),
        ("default: { gsm8k: 0.9, gsm8k: 0.1 }", "gsm8k"),
        ("default: {}", PASSES),
        ("[]", "thresholds"),
    ] {
        table.add(format!("thresholds {text:?}"), wanted, move |set| {
            set.put("thresholds.yaml", text)
        });
    }
}

#[test]
fn every_hostile_set_is_answered_as_it_should_be() {
    let table = table();
    let refused = table.iter().filter(|(_, wanted, _)| wanted != PASSES).count();
    assert!(refused >= 150, "only {refused} changes are refused");
    let missed = |(name, wanted, change): &(String, String, Change)| {
        let mut set = Set::good();
        change(&mut set);
        let (code, said) = set.judge();
        if wanted != PASSES {
            let missed = code != 1 || !said.contains(wanted);
            return missed.then(|| format!("{name}: exit {code}, does not say {wanted:?}\n{said}"));
        }
        if code != 0 {
            return Some(format!("{name}: refused\n{said}"));
        }
        set.rows()
            .is_empty()
            .then(|| format!("{name}: passes, and is not published"))
    };
    let misses: Vec<String> = table.iter().filter_map(missed).collect();
    support::assert_none("hostile sets", table.len(), &misses);
}

#[test]
fn neither_the_order_of_keys_nor_that_of_files_changes_an_answer() {
    for (name, _, change) in table().iter().step_by(4) {
        let mut set = Set::good();
        change(&mut set);
        let mut other = set.clone();
        for file in ["envelope.json", "meta_env.json", RESULT] {
            if let Some(Ok(value)) = set.0.get(file).map(|text| serde_json::from_str::<Value>(text))
                && !name.contains("twice")
                && !name.contains(" with ")
            {
                let mut text = String::new();
                write_turned(&value, &mut text);
                other.put(file, text);
            }
        }
        let sorted = |(code, said): (i32, String)| {
            let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
            lines.sort();
            (code, lines)
        };
        assert_eq!(sorted(set.judge()), sorted(other.judge()), "{name}");
        assert_eq!(set.rows(), other.rows(), "{name}");
    }
}

/// Writes an object's keys from the last to the first: maps in memory sort theirs.
fn write_turned(value: &Value, out: &mut String) {
    let Value::Object(fields) = value else {
        out.push_str(&value.to_string());
        return;
    };
    out.push('{');
    for (index, (key, value)) in fields.iter().rev().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
        write_turned(value, out);
    }
    out.push('}');
}
