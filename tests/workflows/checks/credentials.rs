//! What a checkout leaves.

use super::{Case, assert_found};

const CASES: &[Case] = &[(
    ("run.yml", "persist-credentials: false", "fetch-depth: 0"),
    (
        "run.yml",
        "      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
    ),
    "this checkout leaves its token in the work tree",
    "workflow/kept-credentials",
)];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
