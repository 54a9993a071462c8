//! The four policies over the fleet, in every mode.

use super::{generated, same};

fn under(policy: &str, mode: &[&str]) -> Vec<String> {
    let mut args = vec!["full-sweep", "--eval-policy", policy];
    args.extend(mode);
    generated(&args)
}

/// The lines of marked rows.
fn marked(policy: &str, mode: &[&str]) -> Vec<String> {
    let lines = under(policy, mode);
    lines.into_iter().filter(|line| line.contains(" run")).collect()
}

#[test]
fn no_evals_marks_nothing_under_any_policy() {
    for policy in ["2026-10", "2026-08", "2026-05", "2026-03"] {
        let lines = under(policy, &["--no-evals"]);
        assert_eq!(lines.len(), 28, "{policy}");
        assert!(lines.iter().all(|line| !line.contains("run")), "{policy}");
    }
}

#[test]
fn marking_keeps_every_row_in_place_and_adds_the_vendors_doubles_last() {
    same(
        &under("2026-10", &[])[13..],
        "beta_8k1k tp8 16 run lm-eval
         beta_tp2_conc2_kvnone tp2 2 no
         beta_tp2_conc4_kvnone tp2 4 run lm-eval
         beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8 run lm-eval
         kimik3_tp8_conc4_kvnone tp8 4 run kimi-vendor:kimi_tool_call_schema_full
         kimik3_tp8_conc16_kvnone tp8 16 run kimi-vendor:kimi_tool_call_schema_full
         gamma_1k1k 1x4/2x8 [4] no
         gamma_8k1k 1x4/1x8 [64,8,32] no
         gamma_8k1k 1x4/1x8 [16,128] run @128 lm-eval
         gamma_8k1k 2x8/1x8 [2,4,8,12] no
         delta_p1x8_d0x8_conc4 1x8/0x8 [4] no
         delta_p1x8_d0x8_conc8 1x8/0x8 [8] run @8 lm-eval
         delta_p1x4ep4dpa_d1x8ep8_conc2_kvdram-hicache 1x4/1x8 [2] no
         minimaxm3_p1x4_d1x4_conc16 1x4/1x4 [16] run @16 minimax-vendor:minimax_m3_full
         minimaxm3_p1x4_d1x4_conc32 1x4/1x4 [32] run @32 minimax-vendor:minimax_m3_full
         kimik3_tp8_conc16_kvnone tp8 16 run only lm-eval
         minimaxm3_p1x4_d1x4_conc32 1x4/1x4 [32] run only @32 lm-eval",
    );
    // Of 16, 32 and 64 the upper median is 32; rows of both widths at a picked level are taken.
    same(
        &marked("2026-10", &[])[..3],
        "alpha_8k1k tp1 32 run lm-eval
         alpha_8k1k tp4 32 run lm-eval
         alpha_8k1k tp4 64 run lm-eval",
    );
}

const FIXED: &str = "alpha_8k1k tp1 32 run
                     alpha_8k1k tp4 32 run
                     alpha_8k1k tp4 64 run
                     beta_8k1k tp8 16 run";

#[test]
fn older_policies_mark_less() {
    same(
        &marked("2026-08", &[]),
        &format!("{FIXED}\ngamma_8k1k 1x4/1x8 [16,128] run @128"),
    );
    // One group by the two sides' attention: its highest row, at the upper median of that row's own list.
    same(
        &marked("2026-05", &[]),
        &format!("{FIXED}\ngamma_8k1k 1x4/1x8 [16,128] run @128"),
    );
    // Without a floor the 8 counts (8, 16, 32, 64: still 32 at n/2), and the mtp group has picks.
    same(
        &marked("2026-03", &[]),
        "alpha_8k1k tp1 32 run
         alpha_8k1k tp4 32 run
         alpha_8k1k tp4 64 run
         alpha_8k1k tp2 8 run
         beta_8k1k tp8 16 run",
    );
    for policy in ["2026-08", "2026-05", "2026-03"] {
        assert_eq!(under(policy, &[]).len(), 28, "{policy}");
    }
}

#[test]
fn evals_only_keeps_the_selected_rows() {
    let only = |policy| {
        let lines = under(policy, &["--evals-only"]);
        assert!(lines.iter().all(|line| line.contains(" run only")), "{lines:?}");
        lines
    };
    same(
        &only("2026-10")[3..],
        "beta_8k1k tp8 16 run only lm-eval
         beta_tp2_conc4_kvnone tp2 4 run only lm-eval
         beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8 run only lm-eval
         kimik3_tp8_conc4_kvnone tp8 4 run only kimi-vendor:kimi_tool_call_schema_full
         kimik3_tp8_conc16_kvnone tp8 16 run only kimi-vendor:kimi_tool_call_schema_full
         gamma_8k1k 1x4/1x8 [16,128] run only @128 lm-eval
         delta_p1x8_d0x8_conc8 1x8/0x8 [8] run only @8 lm-eval
         minimaxm3_p1x4_d1x4_conc16 1x4/1x4 [16] run only @16 minimax-vendor:minimax_m3_full
         minimaxm3_p1x4_d1x4_conc32 1x4/1x4 [32] run only @32 minimax-vendor:minimax_m3_full
         kimik3_tp8_conc16_kvnone tp8 16 run only lm-eval
         minimaxm3_p1x4_d1x4_conc32 1x4/1x4 [32] run only @32 lm-eval",
    );
    // Agentic evals where evals are the point; without spec-decoding in the group beta has one, and delta none.
    same(
        &only("2026-08")[3..],
        "beta_8k1k tp8 16 run only
         beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8 run only
         kimik3_tp8_conc16_kvnone tp8 16 run only
         gamma_8k1k 1x4/1x8 [16,128] run only @128
         minimaxm3_p1x4_d1x4_conc32 1x4/1x4 [32] run only @32",
    );
    assert_eq!(only("2026-05").len(), 5);
    assert_eq!(only("2026-03").len(), 5);
}

#[test]
fn all_evals_merge_topologies_and_put_doubles_beside() {
    for mode in [&["--all-evals"][..], &["--all-evals", "--evals-only"]] {
        same(
            &under("2026-10", mode),
            "alpha_8k1k tp1 8 run only lm-eval
             alpha_8k1k tp1 16 run only lm-eval
             alpha_8k1k tp1 32 run only lm-eval
             alpha_8k1k tp4 16 run only lm-eval
             alpha_8k1k tp4 32 run only lm-eval
             alpha_8k1k tp4 64 run only lm-eval
             alpha_8k1k tp2 4 run only lm-eval
             alpha_8k1k tp2 8 run only lm-eval
             beta_8k1k tp8 16 run only lm-eval
             beta_tp2_conc2_kvnone tp2 2 run only lm-eval
             beta_tp2_conc4_kvnone tp2 4 run only lm-eval
             beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8 run only lm-eval
             kimik3_tp8_conc4_kvnone tp8 4 run only kimi-vendor:kimi_tool_call_schema_full
             kimik3_tp8_conc4_kvnone tp8 4 run only lm-eval
             kimik3_tp8_conc16_kvnone tp8 16 run only kimi-vendor:kimi_tool_call_schema_full
             kimik3_tp8_conc16_kvnone tp8 16 run only lm-eval
             gamma_8k1k 1x4/1x8 [8,16,32,64,128] run only all lm-eval
             gamma_8k1k 2x8/1x8 [2,4,8,12] run only all lm-eval
             delta_p1x8_d0x8_conc4 1x8/0x8 [4,8] run only @8 lm-eval
             delta_p1x4ep4dpa_d1x8ep8_conc2_kvdram-hicache 1x4/1x8 [2] run only @2 lm-eval
             minimaxm3_p1x4_d1x4_conc16 1x4/1x4 [16] run only @16 minimax-vendor:minimax_m3_full
             minimaxm3_p1x4_d1x4_conc16 1x4/1x4 [16,32] run only @32 lm-eval
             minimaxm3_p1x4_d1x4_conc32 1x4/1x4 [32] run only @32 minimax-vendor:minimax_m3_full",
        );
    }
    same(
        &under("2026-08", &["--all-evals"])[9..],
        "beta_tp2_conc2_kvnone tp2 2 run only
         beta_tp2_conc4_kvnone tp2 4 run only
         beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8 run only
         kimik3_tp8_conc4_kvnone tp8 4 run only
         kimik3_tp8_conc16_kvnone tp8 16 run only
         gamma_8k1k 1x4/1x8 [8,16,32,64,128] run only all
         gamma_8k1k 2x8/1x8 [2,4,8,12] run only all
         delta_p1x8_d0x8_conc4 1x8/0x8 [4,8] run only @8
         delta_p1x4ep4dpa_d1x8ep8_conc2_kvdram-hicache 1x4/1x8 [2] run only @2
         minimaxm3_p1x4_d1x4_conc16 1x4/1x4 [16,32] run only @32",
    );
    same(
        &under("2026-05", &["--all-evals"])[9..],
        "gamma_8k1k 1x4/1x8 [8,16,32,64,128] run only all
         gamma_8k1k 2x8/1x8 [2,4,8,12] run only all",
    );
    assert_eq!(under("2026-03", &["--all-evals"]).len(), 9);
}

#[test]
fn trimming_keeps_the_lowest_point_and_its_topologys_eval() {
    same(
        &under("2026-10", &["--trim-conc"]),
        "alpha_1k1k tp2 4 no
         alpha_8k1k tp1 8 run lm-eval
         alpha_8k1k tp4 16 run lm-eval
         alpha_8k1k tp2 4 no
         alpha_2048_512 tp8 1 no
         beta_8k1k tp8 16 run lm-eval
         beta_tp2_conc2_kvnone tp2 2 run lm-eval
         beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8 run lm-eval
         kimik3_tp8_conc4_kvnone tp8 4 run kimi-vendor:kimi_tool_call_schema_full
         gamma_1k1k 1x4/2x8 [4] no
         gamma_8k1k 1x4/1x8 [8] run @8 lm-eval
         gamma_8k1k 2x8/1x8 [2] no
         delta_p1x8_d0x8_conc4 1x8/0x8 [4] run @4 lm-eval
         delta_p1x4ep4dpa_d1x8ep8_conc2_kvdram-hicache 1x4/1x8 [2] no
         minimaxm3_p1x4_d1x4_conc16 1x4/1x4 [16] run @16 minimax-vendor:minimax_m3_full
         kimik3_tp8_conc16_kvnone tp8 16 run only lm-eval
         minimaxm3_p1x4_d1x4_conc32 1x4/1x4 [32] run only @32 lm-eval",
    );
    // `--evals-only` filters after the trim.
    assert_eq!(under("2026-10", &["--trim-conc", "--evals-only"]).len(), 11);
    same(
        &under("2026-10", &["--trim-conc", "--all-evals"]),
        "alpha_8k1k tp1 8 run only lm-eval
         alpha_8k1k tp4 16 run only lm-eval
         alpha_8k1k tp2 4 run only lm-eval
         beta_8k1k tp8 16 run only lm-eval
         beta_tp2_conc2_kvnone tp2 2 run only lm-eval
         beta_tp4_conc8_kvdram-lmcache_spec-mtp tp4 8 run only lm-eval
         kimik3_tp8_conc4_kvnone tp8 4 run only kimi-vendor:kimi_tool_call_schema_full
         kimik3_tp8_conc4_kvnone tp8 4 run only lm-eval
         gamma_8k1k 1x4/1x8 [8] run only all lm-eval
         gamma_8k1k 2x8/1x8 [2] run only all lm-eval
         delta_p1x8_d0x8_conc4 1x8/0x8 [4] run only @4 lm-eval
         delta_p1x4ep4dpa_d1x8ep8_conc2_kvdram-hicache 1x4/1x8 [2] run only @2 lm-eval
         minimaxm3_p1x4_d1x4_conc16 1x4/1x4 [16] run only @16 minimax-vendor:minimax_m3_full
         minimaxm3_p1x4_d1x4_conc16 1x4/1x4 [16] run only @16 lm-eval",
    );
}
