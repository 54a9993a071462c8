//! The order of steps on a node.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        ("gpu.yml", "      - run: exec sweepctl clean\n", ""),
        ("gpu.yml", "  gpu:"),
        "`gpu` does not clean its node first",
        "workflow/not-cleaned-first",
    ),
    (
        ("gpu.yml", "      - if: always()\n        uses", "      - uses"),
        (
            "gpu.yml",
            "      - uses: actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1",
        ),
        "its results and logs are lost",
        "workflow/upload-not-always",
    ),
    (
        (
            "gpu.yml",
            "exec sweepctl launch\n",
            "exec sweepctl launch\n      - run: exec sweepctl eval validate\n",
        ),
        ("gpu.yml", "      - run: exec sweepctl eval validate"),
        "the gate stands before an upload",
        "workflow/gate-before-upload",
    ),
    (
        (
            "gpu.yml",
            "      - if: always()\n        run: exec sweepctl launch --release\n",
            "      - run: exec sweepctl launch --release\n",
        ),
        ("gpu.yml", "      - run: exec sweepctl launch --release"),
        "the node of `gpu` is not released when the job fails or is cancelled",
        "workflow/not-released",
    ),
    (
        (
            "gpu.yml",
            "      - if: always()\n        run: exec sweepctl launch --release\n",
            "",
        ),
        ("gpu.yml", "  gpu:"),
        "the node of `gpu` is not released after the launch",
        "workflow/not-released",
    ),
    (
        (
            "gpu.yml",
            "      - if: always()\n        run: exec sweepctl clean\n",
            "",
        ),
        ("gpu.yml", "  gpu:"),
        "the node of `gpu` is not cleaned again after the launch",
        "workflow/not-released",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
