//! Plans of changelog entries over the fleet.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::fleet::{CHANGELOG, FIRST_CHANGELOG, edit, entry, lines, log, repository, text};
use crate::support::{self, commit, difference, run, stderr, write};

const ARGS: [&str; 7] = [
    "plan",
    "--base-ref",
    "HEAD~1",
    "--head-ref",
    "HEAD",
    "--eval-policy",
    "2026-10",
];

/// The plan of entries that one commit adds to the fleet's changelog.
fn planned(entries: &[String], flags: &[&str]) -> Value {
    let folder = repository();
    log(folder.path(), &entries.concat());
    support::json(folder.path(), [&ARGS[..], flags].concat())
}

/// What planning them says when it is refused.
fn refused(entries: &[String], flags: &[&str]) -> String {
    let folder = repository();
    log(folder.path(), &entries.concat());
    let output = run(folder.path(), [&ARGS[..], flags].concat());
    assert_eq!(output.status.code(), Some(1), "{}", support::stdout(&output));
    assert!(output.stdout.is_empty());
    stderr(&output)
}

/// How many rows each part of a plan has, as `bucket:count`.
fn counts(plan: &Value) -> String {
    let mut all = Vec::new();
    // The order of the buckets of a map says nothing.
    for nodes in ["single_node", "multi_node"] {
        let buckets = plan[nodes].as_object().expect("a map").iter();
        all.extend(buckets.map(|(lengths, rows)| format!("{nodes}/{lengths}:{}", rows.as_array().map_or(0, Vec::len))));
    }
    all.sort();
    for bucket in ["evals", "agentic_evals", "multinode_evals", "multinode_agentic_evals"] {
        match plan[bucket].as_array().expect("rows").len() {
            0 => {}
            count => all.push(format!("{bucket}:{count}")),
        }
    }
    all.join(" ")
}

#[test]
fn a_plan_has_all_seven_parts_and_its_rows_their_defaults() {
    let plan = planned(&[entry("gamma-nv-sglang-fp4", "")], &[]);
    let keys: Vec<&String> = plan.as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        [
            "single_node",
            "multi_node",
            "evals",
            "agentic_evals",
            "multinode_evals",
            "multinode_agentic_evals",
            "changelog_metadata"
        ]
    );
    assert_eq!(plan["single_node"], json!({}));
    assert_eq!(counts(&plan), "multi_node/1k1k:1 multi_node/8k1k:3 multinode_evals:1");
    let row = &plan["multi_node"]["1k1k"][0];
    for (field, value) in [
        ("run-eval", json!(false)),
        ("eval-only", json!(false)),
        ("eval-all-concs", json!(false)),
    ] {
        assert_eq!(row[field], value, "{field}");
    }
    assert_eq!(row["prefill"]["additional-settings"], json!([]));
    assert_eq!(
        plan["multi_node"]["8k1k"][2]["prefill"]["additional-settings"],
        json!(["A=1"])
    );
    assert!(plan["multinode_evals"][0].get("recipe-fingerprint").is_none());
    let wanted = json!({
        "base_ref": "HEAD~1", "head_ref": "HEAD",
        "entries": [{
            "config-keys": ["gamma-nv-sglang-fp4"], "description": ["A change."],
            "pr-link": "https://example.com/2", "evals-only": false, "all-evals": false, "append-only": false,
        }],
    });
    assert_eq!(difference(&plan["changelog_metadata"], &wanted), None);
}

#[test]
fn agentic_plan_rows_get_no_eval_fields_and_settings_where_there_are_sides() {
    let plan = planned(&[entry("beta-mi-vllm-fp8, delta-nv-trt-fp4", "")], &[]);
    let single = &plan["single_node"]["agentic"][0];
    let multi = &plan["multi_node"]["agentic"][0];
    for row in [single, multi] {
        for field in ["run-eval", "eval-only", "eval-all-concs", "eval-conc"] {
            assert!(row.get(field).is_none(), "{field}");
        }
        assert_eq!(text(&row["recipe-fingerprint"]).len(), 64);
    }
    assert_eq!(multi["decode"]["additional-settings"], json!([]));
    assert_eq!(plan["single_node"]["8k1k"][0]["eval-only"], json!(false));
    assert!(plan["single_node"]["8k1k"][0].get("eval-all-concs").is_none());
}

#[test]
fn the_fingerprint_is_the_hash_of_the_row_as_generated() {
    let plan = planned(&[entry("alpha-mi-vllm-fp8", "")], &[]);
    let canonical = concat!(
        r#"{"dcp-size":1,"disagg":false,"dp-attn":false,"ep":1,"framework":"vllm","image":"example/vllm:1","#,
        r#""isl":1024,"max-model-len":2304,"model":"org/alpha","model-prefix":"alpha","osl":1024,"pcp-size":1,"#,
        r#""pp":1,"precision":"fp8","run-eval":false,"runner":"mi","spec-decoding":"none","tp":2}"#,
    );
    let rows = plan["single_node"]["1k1k"].as_array().expect("rows");
    for row in rows {
        assert_eq!(
            text(&row["recipe-fingerprint"]),
            sha256(canonical),
            "every point of a recipe has one"
        );
    }
}

#[test]
fn the_fingerprint_escapes_what_is_not_ascii_and_has_no_plan_defaults() {
    let folder = repository();
    edit(
        folder.path(),
        "configs/nvidia-master.yaml",
        "model: org/gamma",
        "model: org/g\u{e4}m\u{1f600}",
    );
    log(folder.path(), &entry("gamma-nv-sglang-fp4", ""));
    let plan = support::json(folder.path(), ARGS);
    let canonical = concat!(
        r#"{"decode":{"dcp-size":1,"dp-attn":true,"ep":8,"num-worker":2,"pcp-size":1,"pp":1,"tp":8},"disagg":true,"#,
        r#""framework":"sglang","image":"example/sglang:2","isl":1024,"kv-p2p-transfer":"nixl","#,
        r#""max-model-len":2304,"model":"org/g\u00e4m\ud83d\ude00","model-prefix":"gamma","osl":1024,"#,
        r#""precision":"fp4","prefill":{"dcp-size":1,"dp-attn":false,"ep":1,"num-worker":1,"pcp-size":1,"pp":1,"#,
        r#""tp":4},"router":{"name":"rr","version":"2"},"run-eval":false,"runner":"nv-pair","#,
        r#""spec-decoding":"none"}"#,
    );
    assert_eq!(
        text(&plan["multi_node"]["1k1k"][0]["recipe-fingerprint"]),
        sha256(canonical)
    );
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn what_an_earlier_entry_covered_is_not_planned_again() {
    let whole = "single_node/8k1k:1 single_node/agentic:3 evals:1 agentic_evals:2";
    let beta = || entry("beta-mi-vllm-fp8", "");
    assert_eq!(counts(&planned(&[beta()], &[])), whole);
    assert_eq!(counts(&planned(&[beta(), beta()], &[])), whole);
    // The second entry covers what is left: the fixed scenario, in a run of its own.
    let agentic = || entry("beta-mi-vllm-fp8", "  scenario-type: [agentic-coding]\n");
    assert_eq!(
        counts(&planned(&[agentic()], &[])),
        "single_node/agentic:3 agentic_evals:2"
    );
    assert_eq!(counts(&planned(&[agentic(), beta()], &[])), whole);
    // Throughput and evals have coverage of their own.
    let evals = || entry("beta-mi-vllm-fp8", "  evals-only: true\n");
    let no_evals = || entry("beta-mi-vllm-fp8", "  no-evals: true\n");
    assert_eq!(counts(&planned(&[evals()], &[])), "evals:1 agentic_evals:2");
    assert_eq!(
        counts(&planned(&[no_evals()], &[])),
        "single_node/8k1k:1 single_node/agentic:3"
    );
    assert_eq!(counts(&planned(&[evals(), no_evals()], &[])), whole);
    assert_eq!(counts(&planned(&[evals(), beta()], &[])), whole);
}

#[test]
fn all_evals_entries_go_first_and_metadata_keeps_the_changelogs_order() {
    let plan = planned(
        &[
            entry("alpha-mi-vllm-fp8", ""),
            entry("alpha-mi-vllm-fp8", "  all-evals: true\n"),
        ],
        &[],
    );
    // All eight 8k1k rows, not the three of the first entry.
    assert_eq!(
        counts(&plan),
        "single_node/1k1k:4 single_node/2048_512:1 single_node/8k1k:8 evals:8"
    );
    let flags: Vec<&Value> = plan["changelog_metadata"]["entries"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| &entry["all-evals"])
        .collect();
    assert_eq!(flags, [&json!(false), &json!(true)]);
}

#[test]
fn flags_of_a_run_change_every_entry() {
    let gamma = || [entry("gamma-nv-sglang-fp4", "")];
    assert_eq!(counts(&planned(&gamma(), &["--evals-only"])), "multinode_evals:1");
    assert_eq!(
        counts(&planned(&gamma(), &["--all-evals"])),
        "multi_node/1k1k:1 multi_node/8k1k:3 multinode_evals:2"
    );
    assert_eq!(
        counts(&planned(&gamma(), &["--all-evals", "--evals-only"])),
        "multinode_evals:2"
    );
    let said = refused(&[entry("beta-mi-vllm-fp8", "  no-evals: true\n")], &["--evals-only"]);
    assert!(
        said.contains("a `no-evals` entry cannot be planned with all-evals or evals-only"),
        "{said}"
    );
}

#[test]
fn a_trimmed_plan_keeps_the_lowest_throughput_and_every_eval() {
    let plan = planned(&[entry("gamma-nv-sglang-fp4, alpha-mi-vllm-fp8", "")], &["--trim-conc"]);
    assert_eq!(
        lines(&plan["multi_node"]["8k1k"]),
        ["gamma_8k1k 1x4/1x8 [8] no", "gamma_8k1k 2x8/1x8 [2] no"]
    );
    assert_eq!(
        lines(&plan["single_node"]["8k1k"]),
        ["alpha_8k1k tp1 8 no", "alpha_8k1k tp4 16 no", "alpha_8k1k tp2 4 no"]
    );
    assert_eq!(
        lines(&plan["multinode_evals"]),
        ["gamma_8k1k 1x4/1x8 [16,128] run only @128 lm-eval"]
    );
    assert_eq!(plan["evals"].as_array().map(Vec::len), Some(3));
    // Before the newest policy each multi-node row keeps its own minimum.
    let folder = repository();
    log(folder.path(), &entry("gamma-nv-sglang-fp4", ""));
    let args = [&ARGS[..5], &["--trim-conc", "--eval-policy", "2026-08"]].concat();
    assert_eq!(
        lines(&support::json(folder.path(), args)["multi_node"]["8k1k"]),
        [
            "gamma_8k1k 1x4/1x8 [8] no",
            "gamma_8k1k 1x4/1x8 [16] no",
            "gamma_8k1k 2x8/1x8 [2] no"
        ]
    );
}

#[test]
fn eval_min_prefill_ep_drops_multi_node_evals_below_it() {
    let with = |least: &str| {
        let keys = "gamma-nv-sglang-fp4, delta-nv-trt-fp4, alpha-mi-vllm-fp8";
        let more = format!("  all-evals: true\n  eval-min-prefill-ep: {least}\n");
        counts(&planned(&[entry(keys, &more)], &[]))
    };
    assert_eq!(with("1"), "evals:8 multinode_evals:2 multinode_agentic_evals:2");
    assert_eq!(with("4"), "evals:8 multinode_evals:2 multinode_agentic_evals:1");
    assert_eq!(with("5"), "evals:8 multinode_evals:1");
    assert_eq!(with("9"), "evals:8");
}

#[test]
fn wildcards_match_whole_keys_in_file_order() {
    assert_eq!(
        counts(&planned(&[entry("'*-vllm-fp8'", "  no-evals: true\n")], &[])),
        "single_node/1k1k:4 single_node/2048_512:1 single_node/8k1k:9 single_node/agentic:3"
    );
    let said = refused(&[entry("'vllm*', alpha-mi-vllm-fp", "")], &[]);
    assert!(said.contains("no config matches the pattern `vllm*`"), "{said}");
    assert!(said.contains("no config matches the key `alpha-mi-vllm-fp`"), "{said}");
    assert!(said.contains("did you mean `alpha-mi-vllm-fp8`"), "{said}");
    // `?` is no wildcard here.
    let said = refused(&[entry("'alpha-mi-vllm-fp?'", "")], &[]);
    assert!(said.contains("no config matches the key"), "{said}");
}

#[test]
fn entries_count_by_value_wherever_they_stand() {
    let folder = repository();
    let path = folder.path();
    let comment = "# A comment.\n\n";
    // Comments, quotes, flow style and blank lines add nothing.
    let reworded = "- description:\n    - \"The first measurement.\"\n  pr-link: 'https://example.com/1'\n\n  config-keys:\n    - \"alpha-mi-vllm-fp8\"\n";
    write(path, CHANGELOG, format!("{comment}{reworded}"));
    commit(path, "Other words");
    let output = run(path, ARGS);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("adds no entry"), "{}", stderr(&output));
    // The identical entry once more is one addition, also before the others.
    write(path, CHANGELOG, format!("{FIRST_CHANGELOG}{reworded}"));
    commit(path, "Again");
    let again = support::json(path, ARGS);
    assert_eq!(again["changelog_metadata"]["entries"].as_array().map(Vec::len), Some(1));
    let inserted = entry("delta-nv-trt-fp4", "  no-evals: true\n");
    write(path, CHANGELOG, format!("{inserted}{FIRST_CHANGELOG}{reworded}"));
    commit(path, "Before");
    assert_eq!(counts(&support::json(path, ARGS)), "multi_node/agentic:3");
    // Removing one of two identical entries is a removal.
    write(
        path,
        CHANGELOG,
        format!("{inserted}{FIRST_CHANGELOG}{}", entry("beta-mi-vllm-fp8", "")),
    );
    commit(path, "Removed");
    let output = run(path, ARGS);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("an entry that exists at the base is missing or altered at the head"),
        "{said}"
    );
}

#[test]
fn only_added_entries_are_checked_against_the_schema() {
    let folder = repository();
    let path = folder.path();
    log(path, "- config-keys: [gone-config]\n  written-long-ago: true\n");
    log(path, &entry("delta-nv-trt-fp4", "  no-evals: true\n"));
    assert_eq!(counts(&support::json(path, ARGS)), "multi_node/agentic:3");
    let output = run(path, ["plan", "--base-ref", "HEAD~2", "--head-ref", "HEAD"]);
    let said = stderr(&output);
    for part in [
        "unknown field `written-long-ago`",
        "lacks `description`",
        "lacks `pr-link`",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn an_entry_with_nothing_left_is_no_error() {
    let plan = planned(&[entry("kimi-mi-vllm-fp4", "  scenario-type: [fixed-seq-len]\n")], &[]);
    assert_eq!(counts(&plan), "");
}
