//! Artifacts that are there when they are fetched.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        ("gpu.yml", "          name: plan", "          name: plam"),
        ("gpu.yml", "          name: plam"),
        "no job before `gpu` uploads the artifact `plam`",
        "workflow/unknown-artifact",
    ),
    (
        ("run.yml", "    needs: decide\n", ""),
        ("gpu.yml", "          name: plan"),
        "no job before `gpu` uploads the artifact `plan`",
        "workflow/unknown-artifact",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
