//! Secrets by name, at every level.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        ("gpu.yml", "    secrets:\n      TOKEN:\n        required: false\n", ""),
        ("gpu.yml", "          TOKEN: ${{ secrets.TOKEN }}"),
        "the secret `TOKEN` is not declared",
        "workflow/undeclared-secret",
    ),
    (
        ("gpu.yml", "secrets.TOKEN }}", "secrets.TOKEM }}"),
        ("gpu.yml", "          TOKEN: ${{ secrets.TOKEM }}"),
        "the secret `TOKEM` is not declared",
        "workflow/undeclared-secret",
    ),
    (
        ("run.yml", "    secrets:\n      TOKEN: ${{ secrets.TOKEN }}\n", ""),
        ("run.yml", "    uses: ./.github/workflows/shard.yml"),
        "`sweep` does not pass the secret `TOKEN`, which shard.yml declares",
        "workflow/secret-not-passed",
    ),
    (
        (
            "run.yml",
            "      TOKEN: ${{ secrets.TOKEN }}",
            "      TOKEN: x\n      OTHER: x",
        ),
        ("run.yml", "      OTHER: x"),
        "shard.yml declares no secret `OTHER`",
        "workflow/unknown-secret",
    ),
    (
        (
            "run.yml",
            "    secrets:\n      TOKEN: ${{ secrets.TOKEN }}",
            "    secrets: inherit",
        ),
        ("run.yml", "    secrets: inherit"),
        "`sweep` passes every secret there is",
        "workflow/inherited-secrets",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
