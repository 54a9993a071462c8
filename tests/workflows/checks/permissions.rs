//! What tokens may do.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        (
            "run.yml",
            "permissions: { contents: read, actions: read }",
            "permissions: { contents: read }",
        ),
        ("run.yml", "    permissions: { contents: read }"),
        "`sweep` has `actions: none`, and shard.yml asks for `actions: read`",
        "workflow/too-few-permissions",
    ),
    (
        ("gpu.yml", "actions: read", "actions: write"),
        ("shard.yml", "    permissions: { contents: read, actions: read }"),
        "`benchmark` has `actions: read`, and gpu.yml asks for `actions: write`",
        "workflow/too-few-permissions",
    ),
    (
        ("shard.yml", "permissions: {}", "permissions: read-all"),
        ("shard.yml", "permissions: read-all"),
        "every job of this workflow gets these permissions",
        "workflow/default-permissions",
    ),
    (
        ("gpu.yml", "permissions: {}\n", "\n"),
        ("gpu.yml", "name: Benchmark on a GPU"),
        "get the repository's default permissions",
        "workflow/default-permissions",
    ),
    (
        ("run.yml", "    permissions: {}\n    steps", "    steps"),
        ("run.yml", "  verdict:"),
        "`verdict` does not say what its token may do",
        "workflow/missing-permissions",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
