//! Jobs that are named and not waited for.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        ("run.yml", "${{ needs.decide.outputs", "${{ needs.decided.outputs"),
        ("run.yml", "    if: ${{ needs.decided.outputs.run == 'true' }}"),
        "`sweep` does not wait for `decided`",
        "workflow/need-not-declared",
    ),
    (
        ("run.yml", "    needs: decide\n", "    needs: decided\n"),
        ("run.yml", "    needs: decided"),
        "`sweep` waits for `decided`, which is not there",
        "workflow/unknown-need",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
