//! Every finding of `workflow check`, each with a broken variant of files that are right.

use std::sync::Arc;

use sweepctl::config::problem::Problem;
use sweepctl::config::source::Source;
use sweepctl::workflow::check::check;

use super::source;
use crate::support::{project, run, stderr, stdout, write};

const RUN: &str = "\
name: Run
on:
  push:

permissions: {}

jobs:
  decide:
    name: Decide
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions: { contents: read }
    outputs:
      run: ${{ steps.decide.outputs.run }}
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with:
          persist-credentials: false
      - id: decide
        env:
          TITLE: ${{ github.event.head_commit.message }}
        run: exec decide \"$TITLE\"
      - uses: actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1
        with:
          name: plan
  sweep:
    name: Sweep
    needs: decide
    if: ${{ needs.decide.outputs.run == 'true' }}
    strategy:
      max-parallel: 4
      matrix:
        shard: [0, 1]
    permissions: { contents: read, actions: read }
    uses: ./.github/workflows/shard.yml
    with:
      shard: ${{ matrix.shard }}
    secrets:
      TOKEN: ${{ secrets.TOKEN }}
  verdict:
    name: Verdict
    needs: [decide, sweep]
    if: always()
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions: {}
    steps:
      - run: exec sweepctl verdict
";

const SHARD: &str = "\
name: Shard
on:
  workflow_call:
    inputs:
      shard:
        type: number
        required: true
    secrets:
      TOKEN:
        required: false

permissions: {}

jobs:
  benchmark:
    name: Benchmark
    permissions: { contents: read, actions: read }
    uses: ./.github/workflows/gpu.yml
    with:
      shard: ${{ inputs.shard }}
    secrets:
      TOKEN: ${{ secrets.TOKEN }}
";

const GPU: &str = "\
name: Benchmark on a GPU
on:
  workflow_call:
    inputs:
      shard:
        type: number
        required: true
    secrets:
      TOKEN:
        required: false

permissions: {}

jobs:
  gpu:
    runs-on: ${{ inputs.shard }}
    timeout-minutes: 60
    permissions: { contents: read, actions: read }
    steps:
      - uses: actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1
        with:
          name: plan
      - run: exec sweepctl clean
      - env:
          TOKEN: ${{ secrets.TOKEN }}
        run: exec sweepctl launch
      - if: always()
        uses: actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1
        with:
          name: result_${{ inputs.shard }}
      - run: exec sweepctl eval validate
      - if: always()
        run: exec sweepctl launch --release
      - if: always()
        run: exec sweepctl clean
";

const ACTION: &str = "\
name: Set up
description: Puts a binary on the path
runs:
  using: composite
  steps:
    - shell: bash
      env:
        FROM: ${{ inputs.from }}
      run: fetch \"$FROM\"
";

/// The files that are right, with one text replaced in one of them.
fn files(file: &str, from: &str, to: &str) -> Vec<Arc<Source>> {
    let all = [
        (".github/workflows/run.yml", RUN),
        (".github/workflows/shard.yml", SHARD),
        (".github/workflows/gpu.yml", GPU),
        (".github/actions/set-up/action.yml", ACTION),
    ];
    let edited = |(name, text): &(&str, &str)| {
        if name.ends_with(file) && !from.is_empty() {
            assert!(text.contains(from), "{name} has no {from:?}");
            return source(name, &text.replace(from, to));
        }
        source(name, text)
    };
    all.iter().map(edited).collect()
}

fn found(files: &[Arc<Source>]) -> Vec<Problem> {
    check(files).err().map(|problems| problems.0).unwrap_or_default()
}

#[test]
fn what_is_right_has_no_finding() {
    assert_eq!(found(&files("run.yml", "", "")), []);
}

/// `(file, from, to)`: one replacement in one file. Then where the finding stands, and what it says.
type Case = (
    (&'static str, &'static str, &'static str),
    (&'static str, &'static str),
    &'static str,
);

const CASES: &[Case] = &[
    // Permissions.
    (
        (
            "run.yml",
            "permissions: { contents: read, actions: read }",
            "permissions: { contents: read }",
        ),
        ("run.yml", "    permissions: { contents: read }"),
        "`sweep` has `actions: none`, and shard.yml asks for `actions: read`",
    ),
    (
        ("gpu.yml", "actions: read", "actions: write"),
        ("shard.yml", "    permissions: { contents: read, actions: read }"),
        "`benchmark` has `actions: read`, and gpu.yml asks for `actions: write`",
    ),
    (
        ("shard.yml", "permissions: {}", "permissions: read-all"),
        ("shard.yml", "permissions: read-all"),
        "every job of this workflow gets these permissions",
    ),
    (
        ("gpu.yml", "permissions: {}\n", "\n"),
        ("gpu.yml", "name: Benchmark on a GPU"),
        "get the repository's default permissions",
    ),
    (
        ("run.yml", "    permissions: {}\n    steps", "    steps"),
        ("run.yml", "  verdict:"),
        "`verdict` does not say what its token may do",
    ),
    // Secrets.
    (
        ("gpu.yml", "    secrets:\n      TOKEN:\n        required: false\n", ""),
        ("gpu.yml", "          TOKEN: ${{ secrets.TOKEN }}"),
        "the secret `TOKEN` is not declared",
    ),
    (
        ("gpu.yml", "secrets.TOKEN }}", "secrets.TOKEM }}"),
        ("gpu.yml", "          TOKEN: ${{ secrets.TOKEM }}"),
        "the secret `TOKEM` is not declared",
    ),
    (
        ("run.yml", "    secrets:\n      TOKEN: ${{ secrets.TOKEN }}\n", ""),
        ("run.yml", "    uses: ./.github/workflows/shard.yml"),
        "`sweep` does not pass the secret `TOKEN`, which shard.yml declares",
    ),
    (
        (
            "run.yml",
            "      TOKEN: ${{ secrets.TOKEN }}",
            "      TOKEN: x\n      OTHER: x",
        ),
        ("run.yml", "      OTHER: x"),
        "shard.yml declares no secret `OTHER`",
    ),
    (
        (
            "run.yml",
            "    secrets:\n      TOKEN: ${{ secrets.TOKEN }}",
            "    secrets: inherit",
        ),
        ("run.yml", "    secrets: inherit"),
        "`sweep` passes every secret there is",
    ),
    // Names.
    (
        ("shard.yml", "name: Shard\n", "name: Run\n"),
        ("shard.yml", "name: Run"),
        "`Run` is also the name of .github/workflows/run.yml",
    ),
    (
        ("run.yml", "name: Verdict", "name: Decide"),
        ("run.yml", "    name: Decide"),
        "`Decide` is also the name of the job `decide`",
    ),
    (
        ("gpu.yml", "name: result_${{ inputs.shard }}", "name: plan"),
        ("gpu.yml", "          name: plan"),
        "a run of .github/workflows/run.yml uploads the artifact `plan` twice",
    ),
    (
        ("gpu.yml", "name: result_${{ inputs.shard }}", "name: result"),
        ("gpu.yml", "          name: result"),
        "a run of .github/workflows/run.yml uploads the artifact `result` twice",
    ),
    // Scripts.
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
    ),
    (
        ("action.yml", "fetch \"$FROM\"", "fetch ${{ inputs.from }}"),
        ("action.yml", "      run: fetch ${{ inputs.from }}"),
        "an expression inside a script",
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
    ),
    // Pins.
    (
        (
            "run.yml",
            "checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
            "checkout@v7",
        ),
        ("run.yml", "      - uses: actions/checkout@v7"),
        "`actions/checkout` is not pinned to a commit",
    ),
    (
        ("run.yml", "90b1 # v7.0.1", "90b1"),
        (
            "run.yml",
            "      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1",
        ),
        "nobody can see which version of `actions/checkout` this is",
    ),
    (
        (
            "action.yml",
            "    - shell: bash",
            "    - uses: docker://alpine:3\n    - shell: bash",
        ),
        ("action.yml", "    - uses: docker://alpine:3"),
        "`docker://alpine:3` is not pinned",
    ),
    (
        (
            "shard.yml",
            "uses: ./.github/workflows/gpu.yml",
            "uses: a/b/.github/workflows/gpu.yml@main",
        ),
        ("shard.yml", "    uses: a/b/.github/workflows/gpu.yml@main"),
        "`a/b/.github/workflows/gpu.yml` is not pinned",
    ),
    // Times and conditions.
    (
        ("gpu.yml", "    timeout-minutes: 60\n", ""),
        ("gpu.yml", "  gpu:"),
        "`gpu` has no `timeout-minutes`",
    ),
    (
        (
            "gpu.yml",
            "    timeout-minutes: 60\n",
            "    timeout-minutes: 60\n    if: always()\n",
        ),
        ("gpu.yml", "    if: always()"),
        "`gpu` takes a GPU, and `always()` starts it even after a cancel",
    ),
    (
        ("run.yml", "if: ${{ needs.decide", "if: ${{ always( ) && needs.decide"),
        (
            "run.yml",
            "    if: ${{ always( ) && needs.decide.outputs.run == 'true' }}",
        ),
        "`sweep` takes a GPU",
    ),
    (
        ("run.yml", "    if: always()\n", ""),
        ("run.yml", "  verdict:"),
        "`verdict` is skipped whenever `sweep` is",
    ),
    (
        (
            "run.yml",
            "    if: always()\n",
            "    if: needs.decide.outputs.run == 'true'\n",
        ),
        ("run.yml", "    if: needs.decide.outputs.run == 'true'"),
        "`verdict` is skipped whenever `sweep` is",
    ),
    // Calls.
    (
        (
            "run.yml",
            "    uses: ./.github/workflows/shard.yml",
            "    timeout-minutes: 5\n    uses: ./.github/workflows/shard.yml",
        ),
        ("run.yml", "    timeout-minutes: 5"),
        "such a job allows no `timeout-minutes`",
    ),
    (
        (
            "run.yml",
            "    uses: ./.github/workflows/shard.yml",
            "    env: { A: b }\n    uses: ./.github/workflows/shard.yml",
        ),
        ("run.yml", "    env: { A: b }"),
        "such a job allows no `env`",
    ),
    (
        ("run.yml", "workflows/shard.yml", "workflows/shards.yml"),
        ("run.yml", "    uses: ./.github/workflows/shards.yml"),
        "`sweep` calls `shards.yml`, which is not there",
    ),
    (
        (
            "shard.yml",
            "  workflow_call:\n    inputs:",
            "  workflow_dispatch:\n    inputs:",
        ),
        ("run.yml", "    uses: ./.github/workflows/shard.yml"),
        "`sweep` calls `shard.yml`, which has no `workflow_call`",
    ),
    (
        (
            "run.yml",
            "      shard: ${{ matrix.shard }}",
            "      chard: ${{ matrix.shard }}",
        ),
        ("run.yml", "      chard: ${{ matrix.shard }}"),
        "`shard.yml` has no input `chard`",
    ),
    (
        ("run.yml", "    with:\n      shard: ${{ matrix.shard }}\n", ""),
        ("run.yml", "    uses: ./.github/workflows/shard.yml"),
        "`sweep` does not pass `shard`, which `shard.yml` requires",
    ),
    (
        (
            "gpu.yml",
            "    steps:\n",
            "    steps: []\n  again:\n    permissions: {}\n    uses: ./.github/workflows/shard.yml\n    steps:\n",
        ),
        ("gpu.yml", "    uses: ./.github/workflows/shard.yml"),
        "the calls never end: run.yml calls shard.yml calls gpu.yml calls shard.yml again",
    ),
    // The verdict.
    (
        ("run.yml", "needs: [decide, sweep]", "needs: [decide]"),
        ("run.yml", "    needs: [decide]"),
        "`verdict` does not judge sweep",
    ),
    (
        ("run.yml", "needs: [decide, sweep]", "needs: sweep"),
        ("run.yml", "    needs: sweep"),
        "`verdict` does not judge decide",
    ),
    (
        ("run.yml", "    if: always()\n", "    if: ${{ !cancelled() }}\n"),
        ("run.yml", "    if: ${{ !cancelled() }}"),
        "`verdict` is skipped where its condition is false",
    ),
    // What jobs wait for, and find.
    (
        ("run.yml", "${{ needs.decide.outputs", "${{ needs.decided.outputs"),
        ("run.yml", "    if: ${{ needs.decided.outputs.run == 'true' }}"),
        "`sweep` does not wait for `decided`",
    ),
    (
        ("run.yml", "    needs: decide\n", "    needs: decided\n"),
        ("run.yml", "    needs: decided"),
        "`sweep` waits for `decided`, which is not there",
    ),
    (
        ("gpu.yml", "          name: plan", "          name: plam"),
        ("gpu.yml", "          name: plam"),
        "no job before `gpu` uploads the artifact `plam`",
    ),
    (
        ("run.yml", "    needs: decide\n", ""),
        ("gpu.yml", "          name: plan"),
        "no job before `gpu` uploads the artifact `plan`",
    ),
    (
        (
            "run.yml",
            "name: Run\n",
            "name: Run\nconcurrency: { group: run, cancel-in-progress: true }\n",
        ),
        ("run.yml", "concurrency: { group: run, cancel-in-progress: true }"),
        "every run of this workflow cancels the one before it",
    ),
    // The order of steps on a node.
    (
        ("gpu.yml", "      - run: exec sweepctl clean\n", ""),
        ("gpu.yml", "  gpu:"),
        "`gpu` does not clean its node first",
    ),
    (
        ("gpu.yml", "      - if: always()\n        uses", "      - uses"),
        (
            "gpu.yml",
            "      - uses: actions/upload-artifact@043fb46d1a93c77aae656e7c1c64a875d1fc6a0a # v7.0.1",
        ),
        "its results and logs are lost",
    ),
    (
        (
            "gpu.yml",
            "exec sweepctl launch\n",
            "exec sweepctl launch\n      - run: exec sweepctl eval validate\n",
        ),
        ("gpu.yml", "      - run: exec sweepctl eval validate"),
        "the gate stands before an upload",
    ),
    (
        (
            "gpu.yml",
            "      - if: always()\n        run: exec sweepctl launch --release\n",
            "      - run: exec sweepctl launch --release\n",
        ),
        ("gpu.yml", "      - run: exec sweepctl launch --release"),
        "the node of `gpu` is not released when the job fails or is cancelled",
    ),
    (
        (
            "gpu.yml",
            "      - if: always()\n        run: exec sweepctl launch --release\n",
            "",
        ),
        ("gpu.yml", "  gpu:"),
        "the node of `gpu` is not released after the launch",
    ),
    (
        (
            "gpu.yml",
            "      - if: always()\n        run: exec sweepctl clean\n",
            "",
        ),
        ("gpu.yml", "  gpu:"),
        "the node of `gpu` is not cleaned again after the launch",
    ),
    // The rest.
    (
        ("run.yml", "persist-credentials: false", "fetch-depth: 0"),
        (
            "run.yml",
            "      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
        ),
        "this checkout leaves its token in the work tree",
    ),
    (
        ("run.yml", "  push:\n", "  pull_request_target:\n"),
        ("run.yml", "  pull_request_target:"),
        "a stranger's code this repository's secrets",
    ),
    (
        ("run.yml", "max-parallel: 4", "max-parallel: 257"),
        ("run.yml", "      max-parallel: 257"),
        "257 is out of range",
    ),
    (
        (
            "run.yml",
            "    timeout-minutes: 5\n    permissions: {}",
            "    timeout-minutes: 361\n    permissions: {}",
        ),
        ("run.yml", "    timeout-minutes: 361"),
        "361 is out of range",
    ),
    (
        ("run.yml", "          name: plan", "          name: a/b"),
        ("run.yml", "          name: a/b"),
        "no artifact may be called `a/b`",
    ),
    (
        ("gpu.yml", "timeout-minutes: 60", "timeout-minutes: 7201"),
        ("gpu.yml", "    timeout-minutes: 7201"),
        "7201 is out of range",
    ),
];

#[test]
fn each_broken_variant_is_found_at_its_place() {
    let mut missed = Vec::new();
    for ((file, from, to), (at, line), message) in CASES {
        let problems = found(&files(file, from, to));
        let is_it = |p: &Problem| {
            let is_there = p.file.ends_with(at) && p.line == *line && p.span.is_some();
            is_there && p.message.contains(message) && p.hint.as_ref().is_some_and(|hint| !hint.is_empty())
        };
        if !problems.iter().any(is_it) {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            missed.push(format!("{message} at {at}: {line}\nfound:\n{}", all.join("\n")));
        }
    }
    assert!(missed.is_empty(), "{} missed:\n\n{}", missed.len(), missed.join("\n\n"));
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
    assert_eq!(problem.file, ".github/workflows/level-4.yml");
    assert_eq!(problem.line, "    uses: ./.github/workflows/level-5.yml");
    assert!(
        problem
            .message
            .starts_with("5 levels of workflows: level-1.yml calls level-2.yml"),
        "{problem}"
    );
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
    assert!(
        problem.message.contains("has 272 jobs, GitHub starts at most 256"),
        "{problem}"
    );
}

#[test]
fn the_command_checks_files_and_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    for file in files("run.yml", "name: Verdict", "name: Decide") {
        write(root, &file.name, &file.text);
    }
    write(root, ".github/workflows/broken.yml", "on: [push\n");
    let output = run(root, ["workflow", "check"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("--> .github/workflows/run.yml:41:11"), "{said}");
    assert!(
        said.contains(".github/workflows/broken.yml") && said.contains("not YAML"),
        "{said}"
    );
    assert!(said.ends_with("2 problems\n"), "{said}");
    // Another file has no finding of its own, and its callees are known.
    let output = run(root, ["workflow", "check", ".github/workflows/shard.yml"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = run(root, ["workflow", "check", ".github/workflows/run.yml"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let empty = tempfile::tempdir().expect("a folder");
    let output = run(empty.path(), ["workflow", "check"]);
    assert!(stderr(&output).contains("holds no workflow"), "{}", stderr(&output));
}

#[test]
fn the_projects_own_workflows_have_no_finding() {
    let output = run(project(), ["workflow", "check"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("setup-sweepctl/action.yml"),
        "{}",
        stdout(&output)
    );
}
