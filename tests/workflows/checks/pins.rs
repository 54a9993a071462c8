//! Actions by commit.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        (
            "run.yml",
            "checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
            "checkout@v7",
        ),
        ("run.yml", "      - uses: actions/checkout@v7"),
        "`actions/checkout` is not pinned to a commit",
        "workflow/unpinned-action",
    ),
    (
        ("run.yml", "90b1 # v7.0.1", "90b1"),
        (
            "run.yml",
            "      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1",
        ),
        "nobody can see which version of `actions/checkout` this is",
        "workflow/pin-without-version",
    ),
    (
        (
            "action.yml",
            "    - shell: bash",
            "    - uses: docker://alpine:3\n    - shell: bash",
        ),
        ("action.yml", "    - uses: docker://alpine:3"),
        "`docker://alpine:3` is not pinned",
        "workflow/unpinned-action",
    ),
    (
        (
            "shard.yml",
            "uses: ./.github/workflows/gpu.yml",
            "uses: a/b/.github/workflows/gpu.yml@main",
        ),
        ("shard.yml", "    uses: a/b/.github/workflows/gpu.yml@main"),
        "`a/b/.github/workflows/gpu.yml` is not pinned",
        "workflow/unpinned-action",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
