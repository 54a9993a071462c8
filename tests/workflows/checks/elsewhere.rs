//! Workflows that this tool has no part in: nothing is said of what is right there, and what cannot run is still found.

use super::found;
use crate::workflows::source;

/// What is said of workflows, each `(name, text)`: ids with their lines.
fn said(files: &[(&str, &str)]) -> Vec<String> {
    let sources: Vec<_> = files
        .iter()
        .map(|(name, text)| match name.contains('/') {
            true => source(name, text),
            false => source(&format!(".github/workflows/{name}"), text),
        })
        .collect();
    let line =
        |problem: &sweepctl::config::problem::Problem| format!("{}: {}", problem.finding.id, problem.line.trim());
    found(&sources).iter().map(line).collect()
}

/// A workflow that `on` starts, with jobs.
fn workflow(on: &str, jobs: &str) -> String {
    format!("name: {on}\non: {on}\njobs:\n{jobs}")
}

/// A job with steps, or other keys.
fn job(id: &str, more: &str) -> String {
    format!("  {id}:\n    runs-on: ubuntu-latest\n{more}")
}

const PUBLISH: &str = "\
name: Publish
on:
  workflow_call:
    inputs:
      Tag: { type: string, required: true }
      channel: { type: string, required: true, default: stable }
    secrets:
      TOKEN: { required: false }
      NOTICE: {}
jobs:
  publish:
    runs-on: publisher-16-cores
    environment: release
    steps:
      - run: publish
        env:
          TOKEN: ${{ secrets.TOKEN }}
          KEY: ${{ secrets.SIGNING_KEY }}
";

fn call(more: &str) -> String {
    format!("  publish:\n    uses: ./.github/workflows/publish.yml\n{more}")
}

#[test]
fn what_a_repository_may_do_is_no_finding() {
    let habits = "    steps:\n      - uses: actions/checkout@v6\n      - run: echo ${{ matrix.os }}\n";
    let inherited = workflow("push", &call("    with: { tag: v1 }\n    secrets: inherit\n"));
    let without = workflow("push", &call("    with: { tag: v1 }\n"));
    let after = "    needs: changes\n    steps:\n      - run: exec build\n";
    let changes = job(
        "changes",
        "    if: github.repository == 'acme/bench'\n    steps:\n      - run: exec diff\n",
    );
    let large = "  build:\n    runs-on: ubuntu-22.04-32-cores-b200\n    if: always()\n    timeout-minutes: 600\n    steps: []\n";
    let grouped =
        "  build:\n    runs-on: { group: large }\n    if: always()\n    timeout-minutes: 600\n    steps: []\n";
    for (name, files) in [
        (
            "no time limit, no permissions, no pins",
            vec![("a.yml", workflow("push", &job("a", habits)))],
        ),
        (
            "a trigger that needs care",
            vec![("a.yml", workflow("pull_request_target", &job("a", habits)))],
        ),
        (
            "every secret",
            vec![("a.yml", inherited), ("publish.yml", PUBLISH.to_owned())],
        ),
        (
            "optional secrets, those of an environment, names in another case",
            vec![("a.yml", without), ("publish.yml", PUBLISH.to_owned())],
        ),
        (
            "a job behind an optional one",
            vec![("a.yml", workflow("push", &(changes + &job("build", after))))],
        ),
        ("a large runner", vec![("a.yml", workflow("schedule", large))]),
        (
            "a group of runners",
            vec![("a.yml", workflow("issue_comment", grouped))],
        ),
    ] {
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        assert_eq!(said(&files), [""; 0], "{name}");
    }
}

const BESIDE: &str = "  other:
    runs-on: ubuntu-latest
    steps: []
";

/// A job that uploads and one behind it that fetches `packages-linux`.
fn handed_on(upload: &str) -> String {
    let upload = format!("    steps:\n      - {upload}\n");
    let fetch = "    needs: build\n    steps:\n      - uses: actions/download-artifact@v8\n        with: { name: packages-linux }\n";
    workflow("push", &(job("build", &upload) + &job("use", fetch) + BESIDE))
}

const ACTION: &str = "\
name: Keep
runs:
  using: composite
  steps:
    - uses: actions/upload-artifact@v7
      with: { name: 'packages-${{ inputs.os }}' }
";

#[test]
fn an_artifact_may_come_from_what_is_not_written_down() {
    let found = "workflow/unknown-artifact: with: { name: packages-linux }";
    for (upload, expected) in [
        (
            "uses: actions/upload-artifact@v7\n        with: { name: packages-linux }",
            None,
        ),
        (
            "uses: actions/upload-artifact@v7\n        with: { name: 'packages-${{ matrix.os }}' }",
            None,
        ),
        (
            "uses: actions/upload-artifact@v7\n        with: { name: 'logs-${{ matrix.os }}' }",
            Some(found),
        ),
        (
            "uses: actions/upload-artifact@v7\n        with: { archive: false, path: dist/packages-linux }",
            None,
        ),
        (
            "uses: actions/upload-artifact@v7\n        with: { archive: false, name: packages-linux, path: dist/other }",
            Some(found),
        ),
        (
            "uses: actions/upload-artifact@v7\n        with: { archive: false, path: 'dist/*' }",
            None,
        ),
        ("uses: acme/upload-packages@v1", None),
        ("uses: ./.github/actions/keep", None),
        ("uses: ./.github/actions/elsewhere", None),
        ("uses: actions/cache@v6", Some(found)),
        ("run: exec build", Some(found)),
    ] {
        let text = handed_on(upload);
        let files = [("a.yml", text.as_str()), (".github/actions/keep/action.yml", ACTION)];
        assert_eq!(said(&files), Vec::from_iter(expected), "{upload}");
    }
    let tolerant = handed_on("run: exec build").replace(
        "      - uses: actions/download-artifact@v8\n",
        "      - uses: actions/download-artifact@v8\n        continue-on-error: true\n",
    );
    assert_eq!(said(&[("a.yml", &tolerant)]), [""; 0]);
    let called = workflow(
        "push",
        "  build:\n    uses: acme/shared/.github/workflows/build.yml@v1\n  use:\n    needs: build\n    runs-on: ubuntu-latest\n    \
         steps:\n      - uses: actions/download-artifact@v8\n        with: { name: packages-linux }\n",
    );
    assert_eq!(said(&[("a.yml", &called)]), [""; 0]);
}

/// Two steps that upload under one name, with what each is given besides.
fn two_uploads(first: &str, second: &str) -> String {
    let step = |more: &str| format!("      - uses: actions/upload-artifact@v7\n        with: {{ name: logs }}\n{more}");
    workflow(
        "push",
        &job("a", &format!("    steps:\n{}{}", step(first), step(second))),
    )
}

#[test]
fn uploads_of_one_name_may_exclude_each_other() {
    let twice = "workflow/duplicate-artifact: with: { name: logs }";
    let (on, off) = ("        if: success()\n", "        if: failure()\n");
    for (text, expected) in [
        (two_uploads("", ""), Some(twice)),
        (two_uploads(on, "        if: ${{ always() }}\n"), Some(twice)),
        (two_uploads("        if: inputs.full\n", off), None),
        (two_uploads(off, "        if: env.FULL\n"), None),
        (two_uploads("        if: inputs.full\n", on), Some(twice)),
        (
            two_uploads("", "").replace("{ name: logs }", "{ name: logs, overwrite: true }"),
            None,
        ),
        (
            two_uploads("", "").replace("upload-artifact@v7", "upload-artifact@v3"),
            None,
        ),
    ] {
        assert_eq!(said(&[("a.yml", &text)]), Vec::from_iter(expected), "{text}");
    }
    let matrix = |values: &str, condition: &str| {
        let steps = format!(
            "    strategy:\n      matrix: {{ os: {values} }}\n    steps:\n      - uses: actions/upload-artifact@v7\n{condition}        \
             with: {{ name: logs }}\n"
        );
        workflow("push", &job("a", &steps))
    };
    for (values, condition, expected) in [
        ("[a, b]", "", Some(twice)),
        ("[a]", "", None),
        ("[a, b]", "        if: matrix.os == 'a'\n", None),
        ("[a, b]", "        if: github.ref == 'refs/heads/main'\n", Some(twice)),
        ("'${{ fromJson(inputs.all) }}'", "", Some(twice)),
    ] {
        let text = matrix(values, condition);
        assert_eq!(said(&[("a.yml", &text)]), Vec::from_iter(expected), "{text}");
    }
}

#[test]
fn jobs_of_one_name_may_stand_in_for_each_other() {
    let jobs = |first: &str, second: &str| {
        let one = |id: &str, condition: &str| job(id, &format!("    name: Tests\n{condition}    steps: []\n"));
        workflow("merge_group", &(one("a", first) + &one("b", second)))
    };
    let condition = "    if: github.event_name == 'schedule'\n";
    let other = "    if: github.event_name != 'schedule'\n";
    assert_eq!(said(&[("a.yml", &jobs(condition, other))]), [""; 0]);
    let found = ["workflow/duplicate-job-name: name: Tests"];
    assert_eq!(said(&[("a.yml", &jobs("", other))]), found);
}

#[test]
fn what_cannot_run_is_found_everywhere() {
    let required = PUBLISH.replace("TOKEN: { required: false }", "TOKEN: { required: true }");
    let elsewhere = PUBLISH.replace("    environment: release\n", "");
    let call_of = |more: &str| workflow("push", &call(more));
    let passed = "    with: { tag: v1 }\n    secrets: { token: a }\n";
    for (name, caller, callee, expected) in [
        (
            "a required secret",
            call_of("    with: { tag: v1 }\n"),
            &required,
            Some("workflow/secret-not-passed: "),
        ),
        ("one that is passed", call_of(passed), &required, None),
        (
            "one that nobody declares",
            call_of(passed),
            &elsewhere,
            Some("workflow/undeclared-secret: KEY"),
        ),
        (
            "a required input",
            call_of(""),
            &PUBLISH.to_owned(),
            Some("workflow/missing-input: "),
        ),
        (
            "a key",
            call_of("    with: { tag: v1 }\n    env: { A: b }\n"),
            &PUBLISH.to_owned(),
            Some("workflow/refused-key: "),
        ),
    ] {
        let said = said(&[("a.yml", &caller), ("publish.yml", callee)]);
        assert_eq!(said.len(), expected.iter().len(), "{name}: {said:?}");
        assert!(
            said.iter().zip(expected).all(|(said, start)| said.starts_with(start)),
            "{name}: {said:?}"
        );
    }
    let all = call_of("    permissions: write-all\n    with: { tag: v1 }\n");
    let scoped = PUBLISH.replace(
        "    environment: release\n",
        "    environment: release\n    permissions: { artifact-metadata: write }\n",
    );
    assert_eq!(said(&[("a.yml", &all), ("publish.yml", &scoped)]), [""; 0]);
    let some = all.replace("write-all", "read-all");
    let too_few = ["workflow/too-few-permissions: permissions: read-all"];
    assert_eq!(said(&[("a.yml", &some), ("publish.yml", &scoped)]), too_few);
}

#[test]
fn a_group_that_one_kind_of_event_cancels_is_meant() {
    let with = |on: &str, group: &str| {
        let concurrency = format!("concurrency: {{ group: {group}, cancel-in-progress: true }}\n");
        concurrency + &workflow(on, BESIDE)
    };
    for (on, group, expected) in [
        ("repository_dispatch", "deploy", 0),
        ("[push, pull_request]", "deploy", 1),
        ("[push, pull_request]", "'deploy-${{ inputs.name }}'", 0),
    ] {
        let said = said(&[("a.yml", &with(on, group))]);
        assert_eq!(said.len(), expected, "{on} {group}: {said:?}");
    }
}

#[test]
fn what_is_taken_from_a_matrix_is_not_counted() {
    let axis = (0..20).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let matrix = |more: &str| {
        let strategy = format!("    strategy:\n      matrix: {{ a: [{axis}], b: [{axis}]{more} }}\n    steps: []\n");
        workflow("push", &job("a", &strategy))
    };
    assert_eq!(said(&[("a.yml", &matrix(""))]).len(), 1);
    assert_eq!(said(&[("a.yml", &matrix(", exclude: [{ a: 1 }]"))]), [""; 0]);
}

#[test]
fn a_workflow_beside_those_of_this_tool_is_its_owners() {
    let habits = workflow("push", &job("a", "    steps:\n      - uses: actions/checkout@v6\n"));
    let own = workflow("schedule", &job("b", "    steps:\n      - run: exec sweepctl stats\n"));
    let said = said(&[("a.yml", &habits), ("b.yml", &own)]);
    assert!(said.contains(&"workflow/missing-timeout: b:".to_owned()), "{said:?}");
    assert!(!said.contains(&"workflow/missing-timeout: a:".to_owned()), "{said:?}");
}
