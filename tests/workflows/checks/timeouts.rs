//! A time limit on every job.

use super::{Case, assert_found};

const CASES: &[Case] = &[(
    ("gpu.yml", "    timeout-minutes: 60\n", ""),
    ("gpu.yml", "  gpu:"),
    "`gpu` has no `timeout-minutes`",
    "workflow/missing-timeout",
)];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
