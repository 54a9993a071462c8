//! Groups that cancel.

use super::{Case, assert_found};

const CASES: &[Case] = &[(
    (
        "run.yml",
        "name: Run\n",
        "name: Run\nconcurrency: { group: run, cancel-in-progress: true }\n",
    ),
    ("run.yml", "concurrency: { group: run, cancel-in-progress: true }"),
    "every run of this workflow cancels the one before it",
    "workflow/shared-cancellation",
)];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
