//! The command: what it reads, says and prints.

use super::files;
use crate::support::{project, run, stderr, stdout, write};

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
