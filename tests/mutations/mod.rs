//! Deliberate faults in templates and labels, each of which a checker must find: what the checks and tables are worth.

use std::sync::Arc;

use sweepctl::config::labels::{BUILT_IN, Labels};
use sweepctl::config::source::Source;
use sweepctl::config::workflows::Workflows;
use sweepctl::workflow::check::check;
use sweepctl::workflow::render::render;
use sweepctl::workflow::templates::Templates;

use crate::conditions::{events, faults, messages, sequences};
use crate::decisions;
use crate::support::{assert_none, misses, project, write};

/// Who finds a fault.
#[derive(Debug, Clone, Copy)]
enum Checker {
    /// `sweepctl workflow check`.
    Check,
    /// The table of faults.
    Faults,
    /// The table of events.
    Events,
    /// The table of sequences.
    Sequences,
    /// The table of decisions.
    Decisions,
}
use Checker::{Check, Decisions, Events, Faults, Sequences};

/// A fault: its name, the file, the text that is replaced and by what, who finds it, and in which words.
type Mutation = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    Checker,
    &'static str,
);

const LABELS: &str = "configs/labels.yaml";
const SWEEP: &str = "workflows-templates/run-sweep.yml";
const SHARD: &str = "workflows-templates/sweep-shard.yml";
const JOBS: &str = "workflows-templates/partials/sweep.yml";
const BENCHMARK: &str = "workflows-templates/partials/benchmark.yml";

const MUTATIONS: &[Mutation] = &[
    // What jobs wait for.
    (
        "a need is dropped",
        SWEEP,
        "['decide', 'canary'] + sweep_jobs, false)",
        "['canary'] + sweep_jobs, false)",
        Check,
        "`collect` does not wait for `decide`",
    ),
    (
        "a bucket does not wait for the canary",
        JOBS,
        "  needs: [decide[% if canary %], canary[% endif %]]",
        "  needs: [decide]",
        Check,
        "`sweep-evals` does not wait for `canary`",
    ),
    (
        "a bucket is left out of the verdict",
        SWEEP,
        "'reuse-results', 'canary'] + sweep_jobs + [",
        "'reuse-results', 'canary'] + sweep_jobs[1:] + [",
        Check,
        "`verdict` does not judge sweep-single-node-1k1k",
    ),
    // Conditions.
    (
        "success() in place of !cancelled()",
        JOBS,
        "!cancelled() && needs.decide.result",
        "success() && needs.decide.result",
        Faults,
        "sweep-evals does not run",
    ),
    (
        "no status function",
        JOBS,
        "!cancelled() && needs.decide.result == 'success' && ",
        "",
        Check,
        "`sweep-evals` is skipped whenever",
    ),
    (
        "always() on a job that takes a GPU",
        SWEEP,
        "if: ${{ [= sweep.planned() =] && needs.decide.outputs.canary_jobs",
        "if: ${{ always() && needs.decide.outputs.canary_jobs",
        Check,
        "`canary` takes a GPU, and `always()` starts it even after a cancel",
    ),
    (
        "a skipped canary counts as none",
        JOBS,
        "needs.canary.result == 'success') }}",
        "needs.canary.result == 'success' || needs.canary.result == 'skipped') }}",
        Faults,
        "sweep-evals runs",
    ),
    (
        "a failed canary starts the rest",
        JOBS,
        "(needs.decide.outputs.canary_jobs == '0' || needs.canary.result == 'success') }}",
        "(needs.decide.outputs.canary_jobs == '0' || needs.canary.result != 'skipped') }}",
        Faults,
        "sweep-evals runs",
    ),
    (
        "a count of canaries that was dropped is taken for none",
        JOBS,
        "needs.decide.outputs.canary_jobs == '0' ||",
        "!(needs.decide.outputs.canary_jobs > 0) ||",
        Faults,
        "sweep-evals runs",
    ),
    (
        "the collection asks that an eval job succeeded",
        JOBS,
        "  if: ${{ [= planned() =] }}\n  runs-on",
        "  if: ${{ [= planned() =] && needs.sweep-evals.result == 'success' }}\n  runs-on",
        Faults,
        "collect does not run",
    ),
    (
        "a plan is made where nothing is to sweep",
        SWEEP,
        "        if: ${{ steps.decide.outputs.run == 'true' }}\n        env:\n          BASE_REF",
        "        env:\n          BASE_REF",
        Events,
        "sweep-evals runs",
    ),
    (
        "a bucket without jobs runs",
        JOBS,
        "needs.decide.outputs.[= bucket.name =]_jobs != '0'\n",
        "needs.decide.outputs.[= bucket.name =]_shards != ''\n",
        Faults,
        "`sweep-evals` failed, and nothing was planned for it",
    ),
    (
        "the verdict is skipped after a cancellation",
        JOBS,
        "  if: always()",
        "  if: ${{ !cancelled() }}",
        Check,
        "`verdict` is skipped where its condition is false",
    ),
    (
        "the comment is written for forks",
        SWEEP,
        "needs.decide.outputs.run == 'true'\n      && github.event.pull_request.head.repo.full_name == github.repository }}",
        "needs.decide.outputs.run == 'true' }}",
        Events,
        "comment runs",
    ),
    // Labels and groups.
    (
        "two labels are exchanged",
        LABELS,
        "  full-sweep-enabled: { canary: true }\n  non-canary-full-sweep-enabled: {}",
        "  full-sweep-enabled: {}\n  non-canary-full-sweep-enabled: { canary: true }",
        Decisions,
        "full-sweep-enabled",
    ),
    (
        "two modifiers are exchanged",
        LABELS,
        "  all-evals: { all-evals: true, reusable: true }\n  evals-only: { evals-only: true, reusable: false }",
        "  all-evals: { evals-only: true, reusable: false }\n  evals-only: { all-evals: true, reusable: true }",
        Decisions,
        "evals-only",
    ),
    (
        "a label does not restart the sweep",
        SWEEP,
        "contains(fromJson([= sweep_labels | expression =]), github",
        "contains(fromJson('[\"sweep-enabled\",\"full-sweep-enabled\",\"non-canary-full-sweep-enabled\",\
         \"full-sweep-fail-fast\",\"full-sweep-fail-fast-no-canary\",\"all-evals\",\"evals-only\"]'), github",
        Events,
        "the group is sweep-run-1",
    ),
    (
        "every other event shares a group",
        SWEEP,
        "format('sweep-run-{0}', github.run_id)",
        "'sweep'",
        Events,
        "the group is sweep ",
    ),
    (
        "the group is constant",
        SWEEP,
        "concurrency:\n  group: >-\n",
        "concurrency:\n  group: sweep\n  cancel-in-progress: true\nenv:\n  UNUSED: >-\n",
        Check,
        "every run of this workflow cancels the one before it",
    ),
    (
        "a new sweep does not cancel the old one",
        SWEEP,
        "  cancel-in-progress: ${{ github.run_attempt == 1 }}",
        "  cancel-in-progress: false",
        Events,
        "(cancels: false)",
    ),
    (
        "a run that is started again cancels the newest",
        SWEEP,
        "  cancel-in-progress: ${{ github.run_attempt == 1 }}",
        "  cancel-in-progress: true",
        Sequences,
        "an old run is started again while the newest runs",
    ),
    (
        "a merge cancels the sweep",
        SWEEP,
        "github.event.action == 'closed' && !github.event.pull_request.merged",
        "github.event.action == 'closed'",
        Sequences,
        "merged while its sweep runs, which goes on",
    ),
    (
        "a close leaves the sweep running",
        SWEEP,
        "(github.event.action == 'closed' && !github.event.pull_request.merged\n    || ",
        "(",
        Events,
        "the group is sweep-run-1",
    ),
    // What branches see.
    (
        "merge groups start nothing",
        SWEEP,
        "  merge_group:\n",
        "",
        Events,
        "it starts on push, pull_request, not on merge_group",
    ),
    (
        "opened pull requests start nothing",
        SWEEP,
        "types: [opened, reopened,",
        "types: [reopened,",
        Events,
        "not on opened",
    ),
    (
        "another label reports as the verdict",
        JOBS,
        "    && contains(fromJson([= sweep_labels | expression =]), github.event.label.name)\n    && (false",
        "    && (false",
        Sequences,
        "another label after a sweep failed",
    ),
    (
        "taking the label off reports as the verdict",
        JOBS,
        "    && (false\n",
        "    && (true\n",
        Sequences,
        "the label is taken off after its sweep failed",
    ),
    (
        "a draft reports as the verdict",
        JOBS,
        "    && !github.event.pull_request.draft\n",
        "",
        Sequences,
        "a draft that is made ready",
    ),
    (
        "what blocks does not arrive",
        SWEEP,
        "'decides', 'blocked'] %]",
        "'decides'] %]",
        Sequences,
        "a merge queue refuses what failed",
    ),
    // Matrices and calls.
    (
        "fail-fast is constant",
        JOBS,
        "    fail-fast: ${{ needs.decide.outputs.fail_fast == 'true' }}\n    matrix:",
        "    fail-fast: true\n    matrix:",
        Events,
        "fail-fast of sweep-evals is true",
    ),
    (
        "fail-fast is not passed on",
        JOBS,
        "    ref: ${{ needs.decide.outputs.head_ref }}\n    fail-fast: ${{ needs.decide.outputs.fail_fast == 'true' }}",
        "    ref: ${{ needs.decide.outputs.head_ref }}",
        Events,
        "fail-fast of sweep-evals/one-node is false",
    ),
    (
        "the shards of another bucket",
        JOBS,
        "fromJson(needs.decide.outputs.[= bucket.name =]_shards",
        "fromJson(needs.decide.outputs.evals_shards",
        Faults,
        "has no value",
    ),
    (
        "the envelope of another matrix field",
        SHARD,
        "toJson(matrix.envelope)",
        "toJson(matrix.shard)",
        Faults,
        "the canary failed",
    ),
    (
        "a caller has too little permission",
        JOBS,
        "permissions: [= permissions('load', 'benchmark') =]",
        "permissions: {}",
        Check,
        "`sweep-evals` has `contents: none`, and sweep-shard.yml asks for `contents: read`",
    ),
    (
        "a secret is not passed",
        JOBS,
        "  [= secret =]: ${{ secrets.[= secret =] }}",
        "  OTHER_[= secret =]: ${{ secrets.[= secret =] }}",
        Check,
        "does not pass the secret `HF_TOKEN`",
    ),
    (
        "the plan is not kept",
        SWEEP,
        "      [= steps.keep_plan(\"${{ steps.plan.outcome == 'success' }}\") | trim | indent(6) =]\n",
        "",
        Check,
        "no job before `load` uploads the artifact `plan`",
    ),
    // Steps on a node.
    (
        "a gate before the uploads",
        BENCHMARK,
        "[% for kind in artifact_kinds %]\n      - name: Gather",
        "      - name: Gate\n        run: exec sweepctl eval validate --envelope x\n[% for kind in artifact_kinds %]\n      - name: Gather",
        Check,
        "the gate stands before an upload",
    ),
    (
        "an upload without always()",
        BENCHMARK,
        "if: ${{ always() && steps.[= kind.name =].outputs.name != '' }}",
        "if: ${{ steps.[= kind.name =].outputs.name != '' }}",
        Check,
        "its results and logs are lost",
    ),
    (
        "a node is released after success only",
        BENCHMARK,
        "if: ${{ always() && steps.job.outcome == 'success' }}\n        run: exec sweepctl launch",
        "if: ${{ steps.job.outcome == 'success' }}\n        run: exec sweepctl launch",
        Check,
        "the node of `benchmark` is not released when the job fails",
    ),
    (
        "a node is not cleaned first",
        BENCHMARK,
        "      - name: Clean\n        run: exec sweepctl clean\n",
        "",
        Check,
        "`benchmark` does not clean its node first",
    ),
];

/// The project's files with one text replaced: rendered as a repository's own templates are.
fn mutated(file: &str, from: &str, to: &str) -> (Vec<Arc<Source>>, Labels) {
    let text = std::fs::read_to_string(project().join(file)).expect("a file");
    assert!(text.contains(from), "{file} has no {from:?}: mend the list");
    let text = text.replacen(from, to, 1);
    let folder = tempfile::tempdir().expect("a folder");
    let labels = if file == LABELS { text.as_str() } else { BUILT_IN };
    let labels = Labels::load(&Arc::new(Source::new("labels.yaml", labels))).expect("labels");
    if file != LABELS {
        write(folder.path(), file, &text);
    }
    let source = Source::new("workflows.yaml", include_str!("../../configs/workflows.yaml"));
    let settings = Arc::new(Workflows::load(&Arc::new(source)).expect("settings"));
    let templates = Templates::with_folder(&folder.path().join("workflows-templates"), &settings.workflows);
    let rendered = render(&templates.expect("templates"), &labels, &settings).expect("it renders");
    let sources = rendered
        .into_iter()
        .filter(|file| file.path.ends_with(".yml"))
        .map(|file| Arc::new(Source::new(file.path, file.text)));
    (sources.collect(), labels)
}

/// What a checker says, until it says some words. Without a fault none says anything: each has a test of its own.
fn said(checker: Checker, sources: &[Arc<Source>], labels: &Labels, words: &str) -> String {
    match checker {
        Check => check(sources)
            .err()
            .map(|problems| messages(&problems.0))
            .unwrap_or_default(),
        Faults => faults::missed(sources, Some(words)).join("\n"),
        Events => events::missed(sources, labels, Some(words)).join("\n"),
        Sequences => sequences::missed(sources, labels, Some(words)).join("\n"),
        Decisions => decisions::missed(labels).join("\n"),
    }
}

#[test]
fn every_deliberate_fault_is_found() {
    assert!(MUTATIONS.len() >= 20);
    let missed = misses(MUTATIONS, |(name, file, from, to, checker, words)| {
        let (sources, labels) = mutated(file, from, to);
        let said = said(*checker, &sources, &labels, words);
        let shown: String = said.chars().take(1500).collect();
        (!said.contains(words)).then(|| format!("{name}: {checker:?} does not say {words:?} but:\n{shown}"))
    });
    assert_none("mutations", MUTATIONS.len(), &missed);
}
