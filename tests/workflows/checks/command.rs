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

/// GitHub's parser lets a line that only closes a list stand as far left as it likes; YAML does not.
#[test]
fn a_list_that_is_closed_at_the_margin_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let called = |end: &str| {
        format!(
            "name: Called\non: workflow_call\njobs:\n  a:\n    strategy:\n      matrix:\n        gpus: [\n          \"0\",\n        {end}\n    \
             runs-on: ubuntu-latest\n    needs: b\n    steps:\n      - run: |\n          list=(\n          ]\n"
        )
    };
    let caller = "name: Caller\non: push\njobs:\n  a:\n    uses: ./.github/workflows/called.yml\n";
    write(root, ".github/workflows/caller.yml", caller);
    write(root, ".github/workflows/called.yml", called("]"));
    let output = run(root, ["workflow", "check"]);
    let said = stderr(&output);
    assert!(
        said.contains("`a` waits for `b`") && said.matches("error[").count() == 1,
        "{said}"
    );
    // One that cannot be read is there all the same: its callers are right.
    write(root, ".github/workflows/called.yml", called("}"));
    let said = stderr(&run(root, ["workflow", "check"]));
    assert!(
        said.contains("not YAML") && said.matches("error[").count() == 1,
        "{said}"
    );
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
