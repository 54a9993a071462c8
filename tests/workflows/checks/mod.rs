//! Every check of `workflow check`, a file each: broken variants of files that are right.

mod always;
mod artifacts;
mod calls;
mod command;
mod concurrency;
mod conditions;
mod credentials;
mod elsewhere;
mod expressions;
mod launches;
mod limits;
mod names;
mod needs;
mod nesting;
mod permissions;
mod pins;
mod secrets;
mod timeouts;
mod triggers;
mod verdicts;

use std::collections::BTreeSet;
use std::sync::Arc;

use sweepctl::config::problem::Problem;
use sweepctl::config::source::Source;
use sweepctl::findings::{self, refusals};
use sweepctl::workflow::check::check;

use super::source;

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

/// `(file, from, to)`: one replacement in one file. Then where the finding stands, what it says, and its id.
type Case = (
    (&'static str, &'static str, &'static str),
    (&'static str, &'static str),
    &'static str,
    &'static str,
);

/// Breaks files as each case says, and asserts that the finding stands where it says, with its id and a way out.
#[track_caller]
fn assert_found(cases: &[Case]) {
    let mut missed = Vec::new();
    for ((file, from, to), (at, line), message, id) in cases {
        let problems = found(&files(file, from, to));
        let is_it = |p: &Problem| {
            let is_there = p.file.ends_with(at) && p.line == *line && p.span.is_some() && p.finding.id == *id;
            is_there && p.message.contains(message) && p.hint.as_ref().is_some_and(|hint| !hint.is_empty())
        };
        if !problems.iter().any(is_it) {
            let all: Vec<String> = problems.iter().map(ToString::to_string).collect();
            missed.push(format!("{id}: {message} at {at}: {line}\nfound:\n{}", all.join("\n")));
        }
    }
    assert!(missed.is_empty(), "{} missed:\n\n{}", missed.len(), missed.join("\n\n"));
}

#[test]
fn every_finding_of_a_workflow_has_a_case() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/workflows/checks");
    let texts: String = std::fs::read_dir(folder)
        .expect("the tests")
        .map(|entry| std::fs::read_to_string(entry.expect("an entry").path()).expect("a test"))
        .collect();
    let of_workflows = findings::all().filter(|finding| !refusals::is_of_area(finding));
    let ids: BTreeSet<&str> = of_workflows
        .map(|finding| finding.id)
        .filter(|id| id.starts_with("workflow/"))
        .collect();
    // Found where a workflow is simulated, which cannot start with such a file.
    let elsewhere = ["workflow/needs-cycle"];
    let missed: Vec<&&str> = ids
        .iter()
        .filter(|id| !elsewhere.contains(*id) && !texts.contains(&format!("{id:?}")))
        .collect();
    assert!(missed.is_empty(), "no test finds {missed:?}");
}
