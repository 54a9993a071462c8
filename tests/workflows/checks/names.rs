//! Names that stand once.

use super::{Case, assert_found};

const CASES: &[Case] = &[
    (
        ("shard.yml", "name: Shard\n", "name: Run\n"),
        ("shard.yml", "name: Run"),
        "`Run` is also the name of .github/workflows/run.yml",
        "workflow/duplicate-workflow-name",
    ),
    (
        ("run.yml", "name: Verdict", "name: Decide"),
        ("run.yml", "    name: Decide"),
        "`Decide` is also the name of the job `decide`",
        "workflow/duplicate-job-name",
    ),
    (
        ("gpu.yml", "name: result_${{ inputs.shard }}", "name: plan"),
        ("gpu.yml", "          name: plan"),
        "a run of .github/workflows/run.yml uploads the artifact `plan` twice",
        "workflow/duplicate-artifact",
    ),
    (
        ("gpu.yml", "name: result_${{ inputs.shard }}", "name: result"),
        ("gpu.yml", "          name: result"),
        "a run of .github/workflows/run.yml uploads the artifact `result` twice",
        "workflow/duplicate-artifact",
    ),
    (
        ("run.yml", "          name: plan", "          name: a/b"),
        ("run.yml", "          name: a/b"),
        "no artifact may be called `a/b`",
        "workflow/artifact-name",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}
