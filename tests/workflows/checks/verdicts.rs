//! The verdict runs always and judges every job.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        ("run.yml", "needs: [decide, sweep]", "needs: [decide]"),
        ("run.yml", "    needs: [decide]"),
        "`verdict` does not judge sweep",
        "workflow/verdict-incomplete",
    ),
    (
        ("run.yml", "needs: [decide, sweep]", "needs: sweep"),
        ("run.yml", "    needs: sweep"),
        "`verdict` does not judge decide",
        "workflow/verdict-incomplete",
    ),
    (
        ("run.yml", "    if: always()\n", "    if: ${{ !cancelled() }}\n"),
        ("run.yml", "    if: ${{ !cancelled() }}"),
        "`verdict` is skipped where its condition is false",
        "workflow/verdict-skipped",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
