//! Triggers that give secrets away.

use super::{Case, assert_found};

const CASES: &[Case] = &[(
    ("run.yml", "  push:\n", "  pull_request_target:\n"),
    ("run.yml", "  pull_request_target:"),
    "a stranger's code this repository's secrets",
    "workflow/dangerous-trigger",
)];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
