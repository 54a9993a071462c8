//! Expressions inside scripts.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        (
            "run.yml",
            "exec decide \"$TITLE\"",
            "exec decide \"${{ github.event.head_commit.message }}\"",
        ),
        (
            "run.yml",
            "        run: exec decide \"${{ github.event.head_commit.message }}\"",
        ),
        "an expression inside a script",
        "workflow/expression-in-script",
    ),
    (
        ("action.yml", "fetch \"$FROM\"", "fetch ${{ inputs.from }}"),
        ("action.yml", "      run: fetch ${{ inputs.from }}"),
        "an expression inside a script",
        "workflow/expression-in-script",
    ),
    (
        (
            "run.yml",
            "      - run: exec sweepctl verdict",
            "      - uses: actions/github-script@3a2844b7e9c422d3c10d287c895573f7108da1b3 # v9.0.0\n        with:\n          \
             script: core.info('${{ github.actor }}')",
        ),
        ("run.yml", "          script: core.info('${{ github.actor }}')"),
        "an expression inside a script",
        "workflow/expression-in-script",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
