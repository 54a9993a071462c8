//! Vendors' suites, BFCL and SWE-bench on a real Slurm: from the plan's row to the table's.

use serde_json::json;

use crate::eval::tools;
use crate::suites::bfcl;
use crate::suites::road::Road;
use crate::suites::support::Desk;
use crate::suites::ways::{SERVED, SRT_1, SRT_2, Way, all_fail, all_pass, passes, swebench_passes};

#[test]
fn a_vendors_row_goes_to_nodes_and_through_srt_slurm() {
    all_pass(Way::is_of_slurm);
}

#[test]
fn a_failed_suite_of_nodes_hands_on_its_evidence_and_its_reason() {
    all_fail(Way::is_of_slurm);
}

/// Its package is an environment of its own, and its client a script of ours.
#[test]
fn bfcl_goes_to_nodes_and_through_srt_slurm() {
    let shared = tools::folder().display().to_string();
    for way in [SERVED, SRT_1, SRT_2] {
        let desk = Desk::new();
        let answers = bfcl::answers(&desk.at("home"));
        let mut road = Road::new(way, &desk, &[], &format!("--answers {}", answers.display()));
        road.environment.push(("SWEEPCTL_TOOLS", shared.clone()));
        let row = passes(way, &road, ("bfcl", "bfcl_smoke"), "bfcl_report.json", &[]);
        assert_eq!(
            (&row["task"], &row["score"], &row["n_eff"]),
            (&json!("bfcl_smoke"), &json!(1.0), &json!(4))
        );
    }
}

#[test]
fn swebench_goes_to_nodes_and_through_srt_slurm() {
    for way in [SERVED, SRT_1, SRT_2] {
        swebench_passes(way);
    }
}
