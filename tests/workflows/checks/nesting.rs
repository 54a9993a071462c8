//! Levels of calls.

use std::sync::Arc;

use sweepctl::config::source::Source;

use super::{Case, assert_found, found};
use crate::workflows::source;

const CASES: &[Case] = &[(
    (
        "gpu.yml",
        "    steps:\n",
        "    steps: []\n  again:\n    permissions: {}\n    uses: ./.github/workflows/shard.yml\n    steps:\n",
    ),
    ("gpu.yml", "    uses: ./.github/workflows/shard.yml"),
    "the calls never end: run.yml calls shard.yml calls gpu.yml calls shard.yml again",
    "workflow/call-cycle",
)];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}

/// A chain of workflows, each of which calls the next.
fn chain(levels: usize) -> Vec<Arc<Source>> {
    (1..=levels)
        .map(|level| {
            let on = if level == 1 { "push" } else { "workflow_call" };
            let job = if level == levels {
                "    runs-on: ubuntu-24.04\n    timeout-minutes: 5\n    steps:\n      - run: exec work\n".to_owned()
            } else {
                format!("    uses: ./.github/workflows/level-{}.yml\n", level + 1)
            };
            let text = format!(
                "name: Level {level}\non: {on}\npermissions: {{}}\njobs:\n  work:\n    permissions: {{}}\n{job}"
            );
            source(&format!(".github/workflows/level-{level}.yml"), &text)
        })
        .collect()
}

#[test]
fn five_levels_are_too_many() {
    assert_eq!(found(&chain(4)), []);
    let problems = found(&chain(5));
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}")
    };
    assert_eq!(problem.finding.id, "workflow/too-many-levels");
    assert_eq!(problem.file, ".github/workflows/level-4.yml");
    assert_eq!(problem.line, "    uses: ./.github/workflows/level-5.yml");
    assert!(
        problem
            .message
            .starts_with("5 levels of workflows: level-1.yml calls level-2.yml"),
        "{problem}"
    );
}
