//! What stands around results: metadata, samples, thresholds.

use serde_json::json;

use super::{PASSES, Table};
use crate::fixture::set::{RESULT, SAMPLES, Set, samples};

pub fn metadata(table: &mut Table) {
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
        (
            "/hw",
            ["b200", "b200-dgx_03", "h200-dgx_x", "h200-dgx_", "h200-dgx", "h20_1"]
                .map(|hw| json!(hw))
                .into(),
        ),
        ("/recipe_fingerprint", vec![json!("a".repeat(64))]),
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
        // A runner of that label, or of a fleet that is named after no hardware.
        ("/hw", json!("h200-dgx_03")),
        ("/hw", json!("dgx_3")),
        ("/dp_attention", json!("False")),
        ("/is_multinode", json!("false")),
        ("/recipe_fingerprint", json!("")),
        (
            "/answers",
            json!({"asked": 20, "empty": 20, "reasoning_only": 0, "cut": 0}),
        ),
        ("/answers", json!({"asked": "x"})),
        ("/answers", json!([])),
    ] {
        table.field(file, pointer, value, PASSES);
    }
    for hw in ["h200", "h200-special_07"] {
        table.add(format!("the label or the runner, {hw}"), PASSES, move |set| {
            set.set("envelope.json", "/runs-on", Some(json!("h200-special_07")));
            set.set(file, "/hw", Some(json!(hw)));
        });
    }
    table.add("a runner of a label with more words", PASSES, move |set| {
        set.set("envelope.json", "/runs-on", Some(json!("h200-special")));
        set.set("envelope.json", "/row/runner", Some(json!("h200-special")));
        set.set(file, "/hw", Some(json!("h200-dgx_03")));
    });
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

pub fn lines(table: &mut Table) {
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
        (
            "a missing comma",
            "{\"doc_id\": 0, \"resps\": [[\"4\" \"5\"]]}\n",
            "is no JSON: a comma is missing in line 1",
        ),
        (
            "a key twice in the document",
            "{\"doc_id\": 0, \"doc\": {\"target\": 4, \"target\": 5}, \"resps\": [[\"4\"]]}\n",
            "has `doc.target` twice in one object in line 1",
        ),
    ] {
        table.add(format!("samples: {name}"), wanted, move |set| set.put(SAMPLES, text));
    }
    table.add(
        "a hole of NUL bytes in an answer",
        "is no JSON: it holds a control character (0x00) in line 3",
        |set| {
            let hole = "\0".repeat(4096);
            let mut lines: Vec<String> = set.0[SAMPLES].lines().map(str::to_owned).collect();
            lines[2] = lines[2].replacen("so it is", &format!("so {hole}is"), 1);
            assert!(lines[2].contains(&hole), "{}", lines[2]);
            set.put(SAMPLES, lines.join("\n"));
        },
    );
    table.add("a last line that is cut", "is cut off in line 41", |set| {
        let text = format!("{}{{\"doc_id\": 21", set.0[SAMPLES]);
        set.put(SAMPLES, text);
    });
    table.add("no samples at all", PASSES, |set| {
        set.0.remove(SAMPLES);
    });
}

pub fn thresholds(table: &mut Table) {
    table.add(
        "a metric without a filter is judged under every filter",
        "`exact_match,flexible-extract` is 0.5000",
        |set| {
            set.set(RESULT, "/results/gsm8k/exact_match,flexible-extract", Some(json!(0.5)));
            set.put(
                "thresholds.yaml",
                "default: { gsm8k: { min-score: 0.9, metric: exact_match } }",
            );
        },
    );
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
