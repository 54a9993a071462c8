//! GitHub's limits on matrices, numbers and files.

use super::{Case, GPU, assert_found, files, found};

const CASES: &[Case] = &[
    (
        ("run.yml", "max-parallel: 4", "max-parallel: 257"),
        ("run.yml", "      max-parallel: 257"),
        "257 is out of range",
        "workflow/limit-out-of-range",
    ),
    (
        (
            "run.yml",
            "    timeout-minutes: 5\n    permissions: {}",
            "    timeout-minutes: 361\n    permissions: {}",
        ),
        ("run.yml", "    timeout-minutes: 361"),
        "361 is out of range",
        "workflow/limit-out-of-range",
    ),
    (
        ("gpu.yml", "timeout-minutes: 60", "timeout-minutes: 7201"),
        ("gpu.yml", "    timeout-minutes: 7201"),
        "7201 is out of range",
        "workflow/limit-out-of-range",
    ),
];

#[test]
fn each_is_found_at_its_place() {
    assert_found(CASES);
}

#[test]
fn a_file_over_500_kb_is_found() {
    let padded = |bytes: usize| {
        let padding = "#".repeat(bytes - GPU.len() - 1) + "\n";
        files(
            "gpu.yml",
            "name: Benchmark on a GPU\n",
            &format!("name: Benchmark on a GPU\n{padding}"),
        )
    };
    assert_eq!(found(&padded(500_000)), []);
    let problems = found(&padded(500_001));
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}")
    };
    assert_eq!(problem.finding.id, "workflow/file-too-large");
    assert_eq!(problem.file, ".github/workflows/gpu.yml");
    assert_eq!(
        problem.message,
        "the file holds 500001 bytes, GitHub takes 500000 of a workflow"
    );
}

#[test]
fn a_matrix_over_256_jobs_is_found() {
    let axis = |n: usize| format!("[{}]", (0..n).map(|n| n.to_string()).collect::<Vec<_>>().join(", "));
    let matrix = |a: usize, b: usize| {
        let axes = format!("shard: {}\n        other: {}", axis(a), axis(b));
        files("run.yml", "shard: [0, 1]", &axes)
    };
    assert_eq!(found(&matrix(16, 16)), []);
    let problems = found(&matrix(16, 17));
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}")
    };
    assert_eq!(problem.finding.id, "workflow/matrix-too-large");
    assert!(
        problem.message.contains("has 272 jobs, GitHub starts at most 256"),
        "{problem}"
    );
}
