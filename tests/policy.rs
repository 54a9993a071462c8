//! A policy of one's own: the rules are data, and data alone decides.

use serde_json::Value;

use crate::support::fleet::{edit, fixture, folder, lines, text, wanted};
use crate::support::{self, project, run, stderr};

fn args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let file = ["generate", "full-sweep", "--eval-policy-file"];
    file.into_iter()
        .chain(["policy/fifth.yaml"])
        .chain(more.iter().copied())
        .collect()
}

fn fleet() -> tempfile::TempDir {
    let folder = folder();
    let text = std::fs::read(fixture("policy/fifth.yaml")).expect("a fixture");
    support::write(folder.path(), "policy/fifth.yaml", text);
    folder
}

#[track_caller]
fn same(more: &[&str], text: &str) {
    let found = lines(&support::json(fleet().path(), args(more)));
    let taken: Vec<String> = found.into_iter().filter(|line| line.contains(" run")).collect();
    assert_eq!(taken, wanted(text), "found\n{}\n", taken.join("\n"));
}

#[test]
fn a_fifth_policy_picks_what_it_says() {
    // fixed: floor 8 over alpha's 8k1k points 8, 16, 32, 64 of both widths; n/2 is 32, and the first row at it goes.
    //   The mtp rows belong to the same deployment here. beta has 16 alone.
    // sides: gamma's rows stand with their highest from 12 up, 64, 128 and 12. By decode.num-worker, prefill.dp-attn
    //   there are two groups, {64, 128} and {12}; the median of the first is 128, whose own list has 16 and 128.
    //   It looks at every length: gamma's 1k1k row, with 4, is under the floor.
    // memory: agentic rows that offload, by an evaluator of their own, only where evals are the point.
    // traces: agentic rows from 8 up by model; kimi's 16, and minimax's 32. delta's 8 is enough; beta's too.
    same(
        &[],
        "alpha_8k1k tp1 32 run
         beta_8k1k tp8 16 run
         beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8 run harness:long
         kimik3_tp8_conc16_kvnone tp8 16 run harness:long
         gamma_8k1k 1x4/1x8 [16,128] run @128 other
         gamma_8k1k 2x8/1x8 [2,4,8,12] run @12 other
         delta_p1x8_d0x8_conc8 1x8/0x8 [8] run @8 harness:long
         minimaxm3_p1x4_d1x4_conc32 1x4/1x4 [32] run @32 harness:long",
    );
    same(
        &["--evals-only"],
        "alpha_8k1k tp1 32 run only
         beta_8k1k tp8 16 run only
         beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8 run only memory
         beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8 run only harness:long
         kimik3_tp8_conc16_kvnone tp8 16 run only harness:long
         gamma_8k1k 1x4/1x8 [16,128] run only @128 other
         gamma_8k1k 2x8/1x8 [2,4,8,12] run only @12 other
         delta_p1x8_d0x8_conc8 1x8/0x8 [8] run only @8 harness:long
         delta_p1x4ep4dpa_d1x8ep8_conc2_kvdram-hicache 1x4/1x8 [2] run only @2 memory
         minimaxm3_p1x4_d1x4_conc32 1x4/1x4 [32] run only @32 harness:long",
    );
}

#[test]
fn its_all_evals_are_its_own_too() {
    same(
        &["--all-evals"],
        "alpha_1k1k tp2 4 run only
         alpha_1k1k tp2 8 run only
         alpha_1k1k tp2 16 run only
         alpha_1k1k tp2 20 run only
         gamma_1k1k 1x4/2x8 [4] run only @4 other
         gamma_8k1k 1x4/1x8 [8,16,32,64,128] run only @128 other
         gamma_8k1k 2x8/1x8 [2,4,8,12] run only @12 other",
    );
}

#[test]
fn a_fallback_takes_the_first_of_the_highest() {
    let folder = fleet();
    let policy = "policy/fifth.yaml";
    // With a floor above every agentic point each model falls back to its first highest row.
    edit(folder.path(), policy, "floor: 8 # traces", "floor: 1000");
    let found = lines(&support::json(
        folder.path(),
        args(&["--scenario-type", "agentic-coding"]),
    ));
    let taken: Vec<String> = found.into_iter().filter(|line| line.contains(" run")).collect();
    assert_eq!(
        taken,
        [
            "beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8 run harness:long",
            "kimik3_tp8_conc16_kvnone tp8 16 run harness:long",
            "delta_p1x8_d0x8_conc8 1x8/0x8 [8] run @8 harness:long",
            "minimaxm3_p1x4_d1x4_conc32 1x4/1x4 [32] run @32 harness:long",
        ]
    );
    edit(folder.path(), policy, "        fallback: { group-by: [model] }\n", "");
    let found = lines(&support::json(
        folder.path(),
        args(&["--scenario-type", "agentic-coding"]),
    ));
    assert!(found.iter().all(|line| line.ends_with(" no")), "{found:?}");
}

#[test]
fn the_repositorys_own_policy_file_is_used_and_a_name_chooses_in_it() {
    let folder = fleet();
    let own = std::fs::read_to_string(folder.path().join("policy/fifth.yaml")).expect("a file");
    support::write(folder.path(), "configs/eval-policy.yaml", own);
    let plain = ["generate", "full-sweep", "--evals-only"];
    assert_eq!(lines(&support::json(folder.path(), plain)).len(), 10);
    let named = ["generate", "full-sweep", "--evals-only", "--eval-policy", "nothing"];
    assert_eq!(lines(&support::json(folder.path(), named)).len(), 0);
    let output = run(folder.path(), ["generate", "full-sweep", "--eval-policy", "fith"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("no eval policy is named `fith`"), "{said}");
    assert!(said.contains("did you mean `fifth`?"), "{said}");
}

#[test]
fn no_source_file_names_a_policy() {
    let mut folders = vec![project().join("src")];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source file");
            for name in ["2026-03", "2026-05", "2026-08", "2026-10"] {
                assert!(!text.contains(name), "{} names the policy {name}", path.display());
            }
            read += 1;
        }
    }
    assert!(read > 30, "{read} files");
}

#[test]
fn malformed_policies_are_refused_with_the_nearest_names() {
    for (old, new, wanted) in [
        (
            "active: fifth",
            "active: fith",
            &["no policy is named `fith`", "did you mean `fifth`?"][..],
        ),
        (
            "scenario: agentic-coding # traces",
            "scenario: agentic",
            &["`agentic` is not a value of `scenario`", "agentic-coding"],
        ),
        (
            "pick: [upper-median] # fixed",
            "pick: [median]",
            &["`median` is not a value of `pick`", "upper-median"],
        ),
        ("pick: [upper-median] # fixed", "pick: []", &["`pick` is an empty list"]),
        (
            "[decode.num-worker, prefill.dp-attn]",
            "[decode.num-workers]",
            &["decode.num-workers", "did you mean `decode.num-worker`?"],
        ),
        (
            "take: first-row # fixed",
            "takes: first-row",
            &["unknown field `takes`", "did you mean `take`?"],
        ),
        ("floor: 8 # fixed", "floor: 0", &["`floor` is 0, it must be positive"]),
        (
            "floor: 8 # fixed",
            "floor: \"8\"",
            &["`floor` is a string (`8`), not an integer", "remove the quotes"],
        ),
        (
            "sequence-lengths: [8k1k] # fixed",
            "sequence-lengths: [8k2k]",
            &["`8k2k` is not a value of `sequence-lengths`", "8k1k"],
        ),
        ("        floor: 8 # traces\n", "", &["`fallback` needs a `floor`"]),
        (
            "plan-trim: minimum # fifth",
            "plan-trim: lowest",
            &["`lowest` is not a value of `plan-trim`", "`minimum`, `topology`"],
        ),
        (
            "evaluator: { framework: memory }",
            "evaluator: { suite: memory }",
            &["`evaluator` lacks `framework`"],
        ),
        (
            "match: { kv-offloading: [dram] }",
            "match: { kv-offload: [dram] }",
            &["kv-offload", "did you mean `kv-offloading`?"],
        ),
    ] {
        let folder = fleet();
        edit(folder.path(), "policy/fifth.yaml", old, new);
        let output = run(folder.path(), args(&[]));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{new}");
        assert!(said.contains("policy/fifth.yaml:"), "{new}: {said}");
        for part in wanted {
            assert!(said.contains(part), "{new}: wanted `{part}`\n{said}");
        }
    }
}

fn explained(keys: &[&str], more: &[&str]) -> Vec<Value> {
    let args = [&["explain"], keys, &["--json"], more].concat();
    let all = support::json(&fixture("fleet"), args);
    all.as_array().expect("a list").clone()
}

/// What `explain` says of the first row with a concurrency: whether it is taken, and why, rule by rule.
fn why(rows: &[Value], name: &str, conc: &Value) -> String {
    let row = rows
        .iter()
        .find(|row| row["exp-name"] == name && row["conc"] == *conc)
        .expect("a row");
    let rules = row["rules"].as_array().expect("rules");
    let mut said: Vec<String> = rules
        .iter()
        .map(|rule| format!("{} {}: {}", rule["taken"], text(&rule["rule"]), text(&rule["why"])))
        .collect();
    if let Some(kind) = row.get("nothing-looks-at") {
        said.push(format!("nothing looks at {}", text(kind)));
    }
    format!("{} | {}", row["taken"], said.join(" | "))
}

#[test]
fn explain_says_why_of_each_row() {
    let rows = explained(&["alpha-*"], &[]);
    let at = |name: &str, conc: u64| why(&rows, name, &serde_json::json!([conc]));
    assert_eq!(at("alpha_1k1k", 4), "false | nothing looks at single-node 1k1k rows");
    assert_eq!(
        at("alpha_8k1k", 8),
        "false | false fixed-single-node: concurrency 8 is under the floor 16"
    );
    assert_eq!(
        at("alpha_8k1k", 16),
        "false | false fixed-single-node: its group picks highest 64 and upper-median 32, this is 16"
    );
    assert_eq!(
        at("alpha_8k1k", 32),
        "true | true fixed-single-node: the upper median concurrency of its group"
    );
    assert_eq!(
        at("alpha_8k1k", 64),
        "true | true fixed-single-node: the highest concurrency of its group"
    );
    assert!(
        rows.iter().all(|row| row["config-key"] == "alpha-mi-vllm-fp8"),
        "{rows:?}"
    );
    let taken = rows.iter().find(|row| row["taken"] == true).expect("a row");
    let rule = &taken["rules"][0];
    assert_eq!(rule["concurrencies"], serde_json::json!([16, 32, 64]));
    assert_eq!(
        rule["picks"],
        serde_json::json!([["highest", 64], ["upper-median", 32]])
    );
    let group = rule["group"].as_array().expect("a group");
    assert!(
        group.contains(&serde_json::json!(["spec-decoding", "none"])),
        "{group:?}"
    );

    let rows = explained(&["delta-*", "kimi-*"], &[]);
    assert_eq!(
        why(&rows, "delta_p1x8_d0x8_conc8", &serde_json::json!([8])),
        "true | true agentic-multi-node: the highest of a deployment that has nothing at the floor"
    );
    let kimi = why(&rows, "kimik3_tp8_conc16_kvnone", &serde_json::json!([16]));
    assert!(
        kimi.starts_with("true | true kimi-vendor: every such row, by kimi-vendor"),
        "{kimi}"
    );
    assert!(
        kimi.ends_with("true agentic-single-node: the highest concurrency of its group"),
        "{kimi}"
    );
}

#[test]
fn explain_agrees_with_what_is_generated() {
    for mode in [&[][..], &["--evals-only"], &["--all-evals"], &["--no-evals"]] {
        for policy in ["2026-10", "2026-08", "2026-05", "2026-03"] {
            let more = [mode, &["--eval-policy", policy]].concat();
            let explained = explained(&["*"], &more);
            let taken = explained.iter().filter(|row| row["taken"] == true).count();
            let mark = [&["generate", "test-config", "--config-keys", "*", "--json"], &more[..]].concat();
            let rows = support::json(&fixture("fleet"), mark);
            let rows = rows.as_array().expect("rows");
            // A merged row stands for several, an extra one for one that is taken already.
            if mode.is_empty() {
                let marked = rows
                    .iter()
                    .filter(|row| row["run-eval"] == true && row.get("eval-only").is_none());
                assert_eq!(taken, marked.count(), "{policy}");
            }
            assert_eq!(
                taken == 0,
                !rows.iter().any(|row| row["run-eval"] == true),
                "{policy} {mode:?}"
            );
        }
    }
}
