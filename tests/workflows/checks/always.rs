//! `always()` on a job that takes a GPU.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        (
            "gpu.yml",
            "    timeout-minutes: 60\n",
            "    timeout-minutes: 60\n    if: always()\n",
        ),
        ("gpu.yml", "    if: always()"),
        "`gpu` takes a GPU, and `always()` starts it even after a cancel",
        "workflow/always-on-gpu",
    ),
    (
        ("run.yml", "if: ${{ needs.decide", "if: ${{ always( ) && needs.decide"),
        (
            "run.yml",
            "    if: ${{ always( ) && needs.decide.outputs.run == 'true' }}",
        ),
        "`sweep` takes a GPU",
        "workflow/always-on-gpu",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
