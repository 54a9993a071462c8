//! What a job that calls may say.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        (
            "run.yml",
            "    uses: ./.github/workflows/shard.yml",
            "    timeout-minutes: 5\n    uses: ./.github/workflows/shard.yml",
        ),
        ("run.yml", "    timeout-minutes: 5"),
        "such a job allows no `timeout-minutes`",
        "workflow/refused-key",
    ),
    (
        (
            "run.yml",
            "    uses: ./.github/workflows/shard.yml",
            "    env: { A: b }\n    uses: ./.github/workflows/shard.yml",
        ),
        ("run.yml", "    env: { A: b }"),
        "such a job allows no `env`",
        "workflow/refused-key",
    ),
    (
        ("run.yml", "workflows/shard.yml", "workflows/shards.yml"),
        ("run.yml", "    uses: ./.github/workflows/shards.yml"),
        "`sweep` calls `shards.yml`, which is not there",
        "workflow/unknown-callee",
    ),
    (
        (
            "shard.yml",
            "  workflow_call:\n    inputs:",
            "  workflow_dispatch:\n    inputs:",
        ),
        ("run.yml", "    uses: ./.github/workflows/shard.yml"),
        "`sweep` calls `shard.yml`, which has no `workflow_call`",
        "workflow/not-callable",
    ),
    (
        (
            "run.yml",
            "      shard: ${{ matrix.shard }}",
            "      chard: ${{ matrix.shard }}",
        ),
        ("run.yml", "      chard: ${{ matrix.shard }}"),
        "`shard.yml` has no input `chard`",
        "workflow/unknown-input",
    ),
    (
        ("run.yml", "    with:\n      shard: ${{ matrix.shard }}\n", ""),
        ("run.yml", "    uses: ./.github/workflows/shard.yml"),
        "`sweep` does not pass `shard`, which `shard.yml` requires",
        "workflow/missing-input",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
