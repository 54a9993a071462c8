//! Jobs behind optional ones.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        ("run.yml", "    if: always()\n", ""),
        ("run.yml", "  verdict:"),
        "`verdict` is skipped whenever `sweep` is",
        "workflow/skipped-behind-optional",
    ),
    (
        (
            "run.yml",
            "    if: always()\n",
            "    if: needs.decide.outputs.run == 'true'\n",
        ),
        ("run.yml", "    if: needs.decide.outputs.run == 'true'"),
        "`verdict` is skipped whenever `sweep` is",
        "workflow/skipped-behind-optional",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
