//! The rules of an envelope hold wherever it comes in.

use serde_json::{Value, json};

use super::{envelope, single_fixed};
use crate::support;

/// The commands that read an envelope, but for its file.
const READERS: [&[&str]; 4] = [
    &["job", "env"],
    &["launch", "--dry-run"],
    &["result", "process", "result.json"],
    &["eval", "validate"],
];

/// Every reader refuses an envelope with exit 1, and says this.
#[track_caller]
fn assert_refused(envelope: &Value, said: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    support::write(folder.path(), "envelope.json", envelope.to_string());
    for reader in READERS {
        let mut command = support::sweepctl(folder.path());
        let done = command.args(reader).args(["--envelope", "envelope.json"]).output();
        let done = done.expect("the binary runs");
        let stderr = support::stderr(&done);
        assert_eq!(done.status.code(), Some(1), "{reader:?}: {stderr}");
        assert!(stderr.contains(said), "{reader:?}: no `{said}` in\n{stderr}");
    }
}

fn row_with(name: &str, value: Value) -> Value {
    let mut row = single_fixed();
    row[name] = value;
    envelope(row)
}

#[test]
fn the_rules_of_a_rows_shape_hold_in_every_command() {
    assert_refused(&row_with("disagg", json!(true)), "`disagg` is true on one node");
    assert_refused(
        &row_with("router", json!({"name": "r"})),
        "`router` lacks its `version`",
    );
    assert_refused(&row_with("dcp-sizes", json!(2)), "unknown field `dcp-sizes`");
}

#[test]
fn numbers_of_an_envelope_are_bounded_in_every_command() {
    let mut job = envelope(single_fixed());
    job["timeout-minutes"] = json!(9_223_372_036_854_775_808_u64);
    assert_refused(&job, "`timeout-minutes` is 9223372036854775808");
    assert_refused(&row_with("isl", json!(u64::MAX)), "`isl` is 18446744073709551615");
}

#[test]
fn an_unknown_field_beside_the_row_is_refused_in_every_command() {
    let mut job = envelope(single_fixed());
    job["runs-one"] = json!("b200");
    assert_refused(&job, "unknown field `runs-one`");
}

#[test]
fn the_same_envelope_without_a_fault_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = support::write(folder.path(), "envelope.json", envelope(single_fixed()).to_string());
    let mut command = support::sweepctl(folder.path());
    let done = command.args(["job", "env", "--envelope"]).arg(file).output();
    assert!(done.expect("the binary runs").status.success());
}
