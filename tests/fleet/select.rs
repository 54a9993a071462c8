//! What `generate`'s arguments keep.

use super::{generate, generated, refusal, same};
use crate::support::fleet::{edit, fixture, folder, lines, text};
use crate::support::{self};

const ALPHA: [&str; 3] = ["test-config", "--config-keys", "alpha-mi-vllm-fp8"];

fn alpha(more: &[&str]) -> Vec<String> {
    let args: Vec<&str> = ALPHA.iter().chain(more).copied().collect();
    generated(&args)
}

#[test]
fn keys_and_globs_keep_their_order_and_drop_doubles() {
    let keys = |args: &[&str]| {
        let rows = generate(&[&["test-config", "--config-keys"], args].concat());
        let mut prefixes: Vec<String> = Vec::new();
        for row in rows.as_array().expect("rows") {
            let prefix = text(&row["model-prefix"]).to_owned();
            if prefixes.last() != Some(&prefix) {
                prefixes.push(prefix);
            }
        }
        prefixes
    };
    assert_eq!(
        keys(&["delta-nv-trt-fp4", "*-mi-*"]),
        ["delta", "alpha", "beta", "kimik3"]
    );
    assert_eq!(keys(&["beta-mi-vllm-fp8", "?eta-*", "beta-*"]), ["beta"]);
    let said = refusal(
        &fixture("fleet"),
        &["test-config", "--config-keys", "alpha-mi-vllm-fp9", "zz*"],
    );
    assert!(said.contains("no config matches the key `alpha-mi-vllm-fp9`"), "{said}");
    assert!(said.contains("did you mean `alpha-mi-vllm-fp8`"), "{said}");
    assert!(said.contains("no config matches the pattern `zz*`"), "{said}");
}

#[test]
fn other_glob_characters_are_plain_text() {
    let folder = folder();
    edit(
        folder.path(),
        "configs/amd-master.yaml",
        "alpha-mi-vllm-fp8:",
        "\"al[ph]a{x,y}\":",
    );
    let rows = support::json(
        folder.path(),
        ["generate", "test-config", "--config-keys", "al[ph]a{x,y}*"],
    );
    assert_eq!(rows.as_array().map(Vec::len), Some(13));
    let said = refusal(folder.path(), &["test-config", "--config-keys", "al[ph]ax*"]);
    assert!(said.contains("no config matches the pattern"), "{said}");
}

#[test]
fn conc_keeps_listed_points_in_the_configs_order() {
    same(
        &alpha(&["--conc", "64", "16", "4", "--no-evals"]),
        "alpha_1k1k tp2 4 no
         alpha_1k1k tp2 16 no
         alpha_8k1k tp1 16 no
         alpha_8k1k tp4 16 no
         alpha_8k1k tp4 64 no
         alpha_8k1k tp2 4 no",
    );
    same(
        &generated(&[
            "test-config",
            "--config-keys",
            "gamma-*",
            "--conc",
            "8",
            "64",
            "--no-evals",
        ]),
        "gamma_8k1k 1x4/1x8 [64,8] no
         gamma_8k1k 2x8/1x8 [8] no",
    );
    same(&alpha(&["--conc", "-4"]), "");
}

#[test]
fn seq_lens_narrow_fixed_rows_and_keep_agentic_ones() {
    same(
        &generated(&[
            "test-config",
            "--config-keys",
            "beta-*",
            "--seq-lens",
            "1k1k",
            "--no-evals",
        ]),
        "beta_tp2_conc2_kvnone tp2 2
         beta_tp2_conc4_kvnone tp2 4
         beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8",
    );
    same(
        &generated(&[
            "test-config",
            "--config-keys",
            "beta-*",
            "--scenario-type",
            "fixed-seq-len",
            "--no-evals",
        ]),
        "beta_8k1k tp8 16 no",
    );
}

#[test]
fn exp_names_are_exact_and_match_one_row_before_evals_are_selected() {
    // 4 is under the highest of its group, and the highest of the rows that are left.
    same(
        &generated(&[
            "test-config",
            "--config-keys",
            "kimi-*",
            "beta-*",
            "--exp-names",
            "beta_tp2_conc2_kvnone",
            "--evals-only",
        ]),
        "beta_tp2_conc2_kvnone tp2 2 run only lm-eval",
    );
    let said = refusal(
        &fixture("fleet"),
        &[
            "test-config",
            "--config-keys",
            "alpha-*",
            "--exp-names",
            "alpha_8k1k",
            "alpha_2k1k",
        ],
    );
    assert!(said.contains("`alpha_8k1k` matches 8 rows"), "{said}");
    assert!(said.contains("`alpha_2k1k` matches 0 rows"), "{said}");
}

#[test]
fn a_node_filter_replaces_the_label_by_runner_names() {
    let runners = |rows: serde_json::Value| {
        let rows = rows.as_array().expect("rows").clone();
        rows.iter()
            .map(|row| format!("{} {}", row["conc"], text(&row["runner"])))
            .collect::<Vec<_>>()
    };
    let test = |filter: &str| {
        let args = [
            &ALPHA[..],
            &["--seq-lens", "1k1k", "--conc", "4", "8", "--runner-node-filter", filter],
        ]
        .concat();
        runners(generate(&args))
    };
    let sweep = |filter: &str| {
        runners(generate(&[
            "full-sweep",
            "--model-prefix",
            "alpha",
            "--seq-lens",
            "1k1k",
            "--max-conc",
            "8",
            "--runner-node-filter",
            filter,
        ]))
    };
    // The label is a candidate of `test-config` alone, and stands first; runners are the inner loop.
    assert_eq!(
        test("mi"),
        [
            "4 mi", "4 mi-a_0", "4 mi-a_1", "4 mi-b_0", "8 mi", "8 mi-a_0", "8 mi-a_1", "8 mi-b_0"
        ]
    );
    assert_eq!(test("b_"), ["4 mi-b_0", "8 mi-b_0"]);
    assert_eq!(
        sweep("mi"),
        ["4 mi-a_0", "4 mi-a_1", "4 mi-b_0", "8 mi-a_0", "8 mi-a_1", "8 mi-b_0"]
    );
    assert!(test("none-such").is_empty());
    // In multi-node jobs the runner is the outer loop of agentic rows, and the hardware stays the label's.
    let rows = generate(&["full-sweep", "--model-prefix", "delta", "--runner-node-filter", "nv-x"]);
    assert_eq!(rows[5]["total-cpu-dram-gb"], 2399);
    assert_eq!(
        runners(rows),
        [
            "[4] nv-x_0",
            "[8] nv-x_0",
            "[4] nv-x_1",
            "[8] nv-x_1",
            "[2] nv-x_0",
            "[2] nv-x_1"
        ]
    );
}

#[test]
fn a_full_sweep_filters() {
    let sweep = |args: &[&str]| {
        let mut all = vec!["full-sweep", "--no-evals"];
        all.extend(args);
        generated(&all)
    };
    let gamma = "gamma_1k1k 1x4/2x8 [4] no
                 gamma_8k1k 1x4/1x8 [64,8,32] no
                 gamma_8k1k 1x4/1x8 [16,128] no
                 gamma_8k1k 2x8/1x8 [2,4,8,12] no";
    same(&sweep(&["--framework", "sglang", "nothing"]), gamma);
    same(&sweep(&["--runner-type", "nv-pair"]), gamma);
    same(&sweep(&["--model-prefix", "gamma-nv", "--precision", "fp4"]), gamma);
    assert!(sweep(&["--model-prefix", "gamma", "--precision", "fp8"]).is_empty());
    assert_eq!(sweep(&["--multi-node"]).len(), 9);
    assert_eq!(sweep(&["--single-node"]).len(), 19);
    assert_eq!(sweep(&["--single-node", "--multi-node"]).len(), 28);
    let said = refusal(&fixture("fleet"), &["full-sweep", "--runner-type", "nv-pairs"]);
    assert!(said.contains("no runner label is named `nv-pairs`"), "{said}");
    assert!(said.contains("did you mean `nv-pair`?"), "{said}");
}

#[test]
fn bounds_clip_ranges_and_filter_lists() {
    let sweep = |prefix: &str, args: &[&str]| {
        let mut all = vec!["full-sweep", "--no-evals", "--model-prefix", prefix];
        all.extend(args);
        generated(&all)
    };
    // 4..20 clipped to 5..17; 16..64 to 16..17; lists are filtered.
    same(
        &sweep("alpha", &["--min-conc", "5", "--max-conc", "17"]),
        "alpha_1k1k tp2 5 no
         alpha_1k1k tp2 10 no
         alpha_1k1k tp2 17 no
         alpha_8k1k tp1 8 no
         alpha_8k1k tp1 16 no
         alpha_8k1k tp4 16 no
         alpha_8k1k tp4 17 no
         alpha_8k1k tp2 8 no",
    );
    // Where the upper bound leaves nothing, one point stands at it; where the lower one does, none.
    same(
        &sweep("alpha", &["--max-conc", "2"]),
        "alpha_1k1k tp2 2 no
         alpha_8k1k tp1 2 no
         alpha_8k1k tp4 2 no
         alpha_8k1k tp2 2 no
         alpha_2048_512 tp8 1 no",
    );
    same(
        &sweep("alpha", &["--min-conc", "33"]),
        "alpha_8k1k tp4 33 no\nalpha_8k1k tp4 64 no",
    );
    // In multi-node jobs an expanded range is filtered like a list.
    same(
        &sweep("gamma", &["--min-conc", "3", "--max-conc", "9"]),
        "gamma_1k1k 1x4/2x8 [4] no
         gamma_8k1k 1x4/1x8 [8] no
         gamma_8k1k 1x4/1x8 [9] no
         gamma_8k1k 2x8/1x8 [4,8] no",
    );
    // Agentic points are only filtered.
    same(
        &sweep("delta", &["--max-conc", "3"]),
        "delta_p1x4ep4dpa_d1x8ep8_conc2_kvdram-hicache 1x4/1x8 [2]",
    );
    same(&sweep("kimi", &["--max-conc", "3"]), "");
    // Nothing and less leave no fixed entry.
    for bound in ["0", "-3"] {
        same(
            &sweep("beta", &["--min-conc", bound]),
            &sweep("beta", &["--scenario-type", "agentic-coding"]).join("\n"),
        );
        same(&sweep("gamma", &["--max-conc", bound]), "");
        same(&sweep("alpha", &["--max-tp", bound]), "");
        same(&sweep("alpha", &["--max-ep", bound]), "");
        assert_eq!(sweep("gamma", &["--max-tp", bound, "--max-ep", bound]).len(), 4);
    }
}

#[test]
fn max_tp_skips_and_max_ep_caps() {
    let sweep = |args: &[&str]| {
        let mut all = vec![
            "full-sweep",
            "--no-evals",
            "--model-prefix",
            "alpha",
            "--seq-lens",
            "8k1k",
        ];
        all.extend(args);
        generate(&all)
    };
    same(
        &lines(&sweep(&["--max-tp", "2"])),
        "alpha_8k1k tp1 8 no
         alpha_8k1k tp1 16 no
         alpha_8k1k tp1 32 no
         alpha_8k1k tp2 4 no
         alpha_8k1k tp2 8 no",
    );
    let eps = |rows: serde_json::Value| {
        let rows = rows.as_array().expect("rows").clone();
        rows.iter()
            .map(|row| row["ep"].as_u64().expect("ep"))
            .collect::<Vec<_>>()
    };
    assert_eq!(eps(sweep(&["--max-ep", "3"])), [1, 1, 1, 3, 3, 3, 1, 1]);
    assert_eq!(eps(sweep(&["--max-ep", "8"])), [1, 1, 1, 4, 4, 4, 1, 1]);
}
