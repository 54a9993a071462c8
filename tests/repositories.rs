//! Real repositories, made by git: every way to name a commit, and every kind of clone.

use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support::fleet::{CHANGELOG, FIRST_CHANGELOG, edit, entry, fixture, log, repository};
use crate::support::{self, commit, fed, git, git_command, run, stderr, write};

/// A fleet with three commits after the first: an entry for delta, a comment, an entry for kimi.
fn history() -> tempfile::TempDir {
    let folder = repository();
    log(folder.path(), &entry("delta-nv-trt-fp4", ""));
    log(folder.path(), "# A comment.\n");
    log(folder.path(), &entry("kimi-mi-vllm-fp4", ""));
    folder
}

fn plan(folder: &Path, base: &str, head: &str) -> Output {
    run(
        folder,
        ["plan", "--base-ref", base, "--head-ref", head, "--configs-from", "head"],
    )
}

/// The config keys of the entries that are planned.
fn planned(folder: &Path, base: &str, head: &str) -> Vec<String> {
    let output = plan(folder, base, head);
    assert!(output.status.success(), "{base}..{head}: {}", stderr(&output));
    keys(&serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn keys(plan: &Value) -> Vec<String> {
    let entries = plan["changelog_metadata"]["entries"].as_array().expect("entries");
    let keys = entries
        .iter()
        .map(|entry| entry["config-keys"][0].as_str().expect("a key").to_owned());
    keys.collect()
}

#[track_caller]
fn refused(output: &Output, parts: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty());
    for part in parts {
        assert!(said.contains(part), "wanted `{part}`\n{said}");
    }
}

const DELTA: &str = "delta-nv-trt-fp4";
const KIMI: &str = "kimi-mi-vllm-fp4";

#[test]
fn a_commit_has_many_names() {
    let folder = history();
    let path = folder.path();
    git(path, &["tag", "light", "HEAD~3"]);
    git(path, &["tag", "-a", "-m", "An annotated tag", "heavy", "HEAD~3"]);
    git(path, &["branch", "feature/one/two", "HEAD~3"]);
    let hash = git(path, &["rev-parse", "HEAD~3"]);
    let names = [
        "HEAD~3",
        "HEAD^^^",
        "light",
        "heavy",
        "tags/heavy",
        "refs/tags/light",
        "feature/one/two",
        "main~3",
        &hash,
        &hash[..8],
        "main@{3}",
    ];
    for name in names {
        assert_eq!(planned(path, name, "HEAD"), [DELTA, KIMI], "{name}");
        let output: Value = serde_json::from_slice(&plan(path, name, "HEAD").stdout).expect("JSON");
        assert_eq!(output["changelog_metadata"]["base_ref"], name, "refs stand as given");
    }
    assert_eq!(planned(path, "HEAD~2", "main"), [KIMI]);
    assert_eq!(planned(path, "HEAD~3", "HEAD~2"), [DELTA]);
    git(path, &["checkout", "-q", "--detach", "HEAD~2"]);
    assert_eq!(planned(path, "HEAD~1", "HEAD"), [DELTA]);
}

#[test]
fn an_unknown_ref_names_the_nearest() {
    let folder = history();
    git(folder.path(), &["branch", "release/next"]);
    refused(
        &plan(folder.path(), "release/nxt", "HEAD"),
        &[
            "no commit is known as `release/nxt` here",
            "did you mean `release/next`",
            "git fetch origin release/nxt",
        ],
    );
    // Both refs are looked at, and neither is taken for an option or a path.
    refused(
        &plan(folder.path(), "nowhere", "HEAD:configs"),
        &["`nowhere`", "`HEAD:configs`", "2 problems"],
    );
    let hash = "0123456789012345678901234567890123456789";
    refused(
        &plan(folder.path(), hash, "HEAD"),
        &["no commit is known as `0123456789"],
    );
}

#[test]
fn an_ambiguous_hash_wants_more_digits() {
    let folder = history();
    let path = folder.path();
    // Blobs share the first four digits with a commit soon enough.
    let commits = git(path, &["rev-list", "HEAD"]);
    let starts: Vec<&str> = commits.lines().map(|hash| &hash[..4]).collect();
    let mut tried = 0;
    let start = loop {
        let text: String = (tried..tried + 4000)
            .map(|n| format!("blob\ndata {}\n{n}\n", n.to_string().len()))
            .collect();
        tried += 4000;
        import(path, &text);
        let all = git(
            path,
            &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"],
        );
        let twice = starts
            .iter()
            .find(|start| all.lines().filter(|hash| hash.starts_with(**start)).count() > 1);
        if let Some(start) = twice {
            break (*start).to_owned();
        }
        assert!(tried < 400_000, "no hash is ambiguous");
    };
    let output = plan(path, &start, "HEAD");
    refused(&output, &["names more than one", "write more of the hash"]);
}

fn import(folder: &Path, text: &str) {
    let output = fed(&mut git_command(folder, &["fast-import", "--quiet"]), text);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn worktrees_and_bare_repositories_plan_the_same() {
    let folder = history();
    let beside = tempfile::tempdir().expect("a folder");
    let tree = beside.path().join("tree");
    git(
        folder.path(),
        &["worktree", "add", "-q", "--detach", tree.to_str().expect("a path")],
    );
    assert_eq!(planned(&tree, "HEAD~1", "HEAD"), [KIMI]);
    let bare = beside.path().join("bare.git");
    git(
        beside.path(),
        &[
            "clone",
            "-q",
            "--bare",
            folder.path().to_str().expect("a path"),
            "bare.git",
        ],
    );
    // A bare repository has no files: configs come from the head, whatever was asked for.
    let plan = support::json(&bare, ["plan", "--base-ref", "HEAD~1", "--head-ref", "HEAD"]);
    assert_eq!(keys(&plan), [KIMI]);
}

#[test]
fn a_shallow_clone_says_which_fetch_helps() {
    let folder = history();
    let beside = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", folder.path().display());
    git(beside.path(), &["clone", "-q", "--depth", "2", &url, "shallow"]);
    let shallow = beside.path().join("shallow");
    assert_eq!(planned(&shallow, "HEAD~1", "HEAD"), [KIMI]);
    refused(
        &plan(&shallow, "HEAD~3", "HEAD"),
        &[
            "no commit is known as `HEAD~3` here",
            "this clone is shallow",
            "git fetch --unshallow",
            "fetch-depth: 0",
        ],
    );
    let missing = git(folder.path(), &["rev-parse", "HEAD~3"]);
    refused(
        &plan(&shallow, &missing, "HEAD"),
        &["this clone is shallow", &format!("git fetch origin {missing}")],
    );
    assert_eq!(keys(&support::json(&shallow, ["plan", "--latest"])), [KIMI]);
    // The newest commit that added entries is beyond the cut.
    git(folder.path(), &["commit", "-q", "--allow-empty", "-m", "Nothing"]);
    git(beside.path(), &["clone", "-q", "--depth", "1", &url, "one"]);
    refused(
        &run(&beside.path().join("one"), ["plan", "--latest"]),
        &["this clone is shallow"],
    );
}

#[test]
fn a_partial_clone_says_that_content_was_not_fetched() {
    let folder = history();
    git(folder.path(), &["config", "uploadpack.allowFilter", "true"]);
    let beside = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", folder.path().display());
    git(
        beside.path(),
        &["clone", "-q", "--filter=blob:none", "--no-checkout", &url, "partial"],
    );
    refused(
        &plan(&beside.path().join("partial"), "HEAD~1", "HEAD"),
        &[
            "the content of `perf-changelog.yaml`",
            "was not fetched",
            "partial clone",
            "--no-filter",
        ],
    );
}

#[test]
fn a_checkout_of_another_user_is_refused_with_the_command_that_trusts_it() {
    let folder = history();
    let mine = std::fs::metadata(folder.path()).expect("a folder").uid();
    let give = |path: &Path| chown(path, Some(mine + 4242), None);
    if let Err(error) = give(folder.path()) {
        // Only root gives folders away; others keep theirs, and their own checkout is fine.
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
        assert_eq!(planned(folder.path(), "HEAD~1", "HEAD"), [KIMI]);
        return;
    }
    give(&folder.path().join(".git")).expect("root gives it away");
    let output = support::sweepctl(folder.path())
        .args(["plan", "--latest"])
        .env("HOME", folder.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("it runs");
    let real = folder.path().canonicalize().expect("a path");
    refused(
        &output,
        &[
            "belongs to another user",
            &format!("git config --global --add safe.directory {}", real.display()),
        ],
    );
}

/// A repository of a format, with a commit.
fn of_format(format: &str) -> tempfile::TempDir {
    let folder = support::fleet::folder();
    git(folder.path(), &["init", "-q", format]);
    commit(folder.path(), "One");
    folder
}

#[test]
fn formats_that_are_not_read_say_so() {
    let reftable = of_format("--ref-format=reftable");
    refused(
        &plan(reftable.path(), "HEAD", "HEAD"),
        &["reftable", "--ref-format=files"],
    );
    let sha256 = of_format("--object-format=sha256");
    refused(&plan(sha256.path(), "HEAD", "HEAD"), &["SHA-256 object names"]);
    let none = support::fleet::folder();
    refused(&plan(none.path(), "HEAD", "HEAD"), &["this is no git repository"]);
    let empty = support::fleet::folder();
    git(empty.path(), &["init", "-q"]);
    refused(
        &plan(empty.path(), "HEAD", "HEAD"),
        &["no commit is known as `HEAD` here"],
    );
    refused(
        &run(empty.path(), ["plan", "--latest"]),
        &["no commit is known as `HEAD` here"],
    );
}

#[test]
fn a_changelog_may_be_missing_at_the_base_and_not_at_the_head() {
    let folder = repository();
    let path = folder.path();
    let first = git(path, &["rev-parse", "HEAD"]);
    git(path, &["rm", "-q", CHANGELOG]);
    commit(path, "Gone");
    let gone = git(path, &["rev-parse", "HEAD"]);
    refused(&plan(path, &first, &gone), &["`perf-changelog.yaml` does not exist at"]);
    refused(&plan(path, &gone, &gone), &["`perf-changelog.yaml` does not exist at"]);
    write(path, CHANGELOG, FIRST_CHANGELOG);
    commit(path, "Back");
    assert_eq!(planned(path, &gone, "HEAD"), ["alpha-mi-vllm-fp8"]);
    // An empty one is an empty list.
    write(path, CHANGELOG, "# Nothing yet.\n");
    let empty = commit(path, "Empty");
    write(path, CHANGELOG, FIRST_CHANGELOG);
    commit(path, "Full");
    assert_eq!(planned(path, &empty, "HEAD"), ["alpha-mi-vllm-fp8"]);
    refused(&plan(path, "HEAD", &empty), &["missing or altered at the head"]);
}

#[test]
fn latest_finds_the_newest_commit_that_added_entries() {
    let folder = history();
    let path = folder.path();
    let latest = || support::json(path, ["plan", "--latest"]);
    let kimi = git(path, &["rev-parse", "HEAD"]);
    assert_eq!(keys(&latest()), [KIMI]);
    assert_eq!(latest()["changelog_metadata"]["head_ref"], kimi);
    // A comment, another file, and an altered old entry are no additions.
    log(path, "# Another comment.\n");
    write(path, "README.md", "Words.\n");
    commit(path, "Words");
    let text = std::fs::read_to_string(path.join(CHANGELOG)).expect("a file");
    write(
        path,
        CHANGELOG,
        text.replacen("https://example.com/1", "https://example.com/11", 1),
    );
    commit(path, "Fix a link");
    assert_eq!(keys(&latest()), [KIMI]);
    assert_eq!(latest()["changelog_metadata"]["head_ref"], kimi);
    // A merge brings what its branch gained, all at once.
    git(path, &["checkout", "-q", "-b", "side", "HEAD"]);
    log(path, &entry("gamma-nv-sglang-fp4", ""));
    log(path, &entry("beta-mi-vllm-fp8", ""));
    git(path, &["checkout", "-q", "main"]);
    write(path, "README.md", "More words.\n");
    commit(path, "More words");
    git(path, &["merge", "-q", "--no-ff", "-m", "Merge", "side"]);
    assert_eq!(keys(&latest()), ["gamma-nv-sglang-fp4", "beta-mi-vllm-fp8"]);
    assert_eq!(
        latest()["changelog_metadata"]["base_ref"],
        git(path, &["rev-parse", "HEAD^1"])
    );
}

#[test]
fn latest_works_from_the_first_commit_and_without_any_entry() {
    let folder = repository();
    let plan = support::json(folder.path(), ["plan", "--latest"]);
    assert_eq!(keys(&plan), ["alpha-mi-vllm-fp8"]);
    assert_eq!(plan["changelog_metadata"]["base_ref"], "");
    let folder = support::fleet::folder();
    std::fs::remove_file(folder.path().join(CHANGELOG)).expect("a file");
    git(folder.path(), &["init", "-q"]);
    commit(folder.path(), "No changelog");
    refused(
        &run(folder.path(), ["plan", "--latest"]),
        &["no commit of this branch added an entry"],
    );
}

#[test]
fn configs_come_from_the_work_tree_or_from_the_head() {
    let folder = history();
    let path = folder.path();
    edit(
        path,
        "configs/amd-master.yaml",
        "conc-list: [4, 16]",
        "conc-list: [4, 16, 64]",
    );
    let points = |from: &[&str]| {
        let args = [&["plan", "--base-ref", "HEAD~1", "--head-ref", "HEAD"], from].concat();
        support::json(path, args)["single_node"]["agentic"]
            .as_array()
            .map(Vec::len)
    };
    assert_eq!(points(&[]), Some(3));
    assert_eq!(points(&["--configs-from", "worktree"]), Some(3));
    assert_eq!(points(&["--configs-from", "head"]), Some(2));
    // The changelog is that of the head, never the one in the work tree.
    write(path, CHANGELOG, "not: a list\n");
    assert_eq!(points(&[]), Some(3));
    // At the head only what it has is there, and of the files in the work tree all that are.
    std::fs::remove_dir_all(path.join("configs")).expect("a folder");
    assert_eq!(points(&["--configs-from", "head"]), Some(2));
    refused(
        &run(path, ["plan", "--latest"]),
        &["no `configs/*-master.yaml` here", "run from the repository's root"],
    );
}

#[test]
fn named_files_and_a_policy_are_read_at_the_head_too() {
    let folder = history();
    let path = folder.path();
    let policy = std::fs::read_to_string(fixture("policy/fifth.yaml")).expect("a fixture");
    // One that is run here: a plan of others is refused.
    let policy = policy.replace("framework: harness, suite: long", "framework: bfcl, suite: bfcl_smoke");
    write(path, "configs/eval-policy.yaml", policy);
    commit(path, "A policy of our own");
    std::fs::remove_file(path.join("configs/eval-policy.yaml")).expect("a file");
    let evals = |from: &str| {
        let args = [
            "plan",
            "--base-ref",
            "HEAD~2",
            "--head-ref",
            "HEAD",
            "--configs-from",
            from,
        ];
        support::json(path, args)["agentic_evals"][0]["eval-framework"].clone()
    };
    assert_eq!(evals("head"), "bfcl");
    assert_eq!(evals("worktree"), "kimi-vendor", "the built-in policy");
    let amd = ["--config-files", "configs/amd-master.yaml"];
    let args = [
        &[
            "plan",
            "--base-ref",
            "HEAD~2",
            "--head-ref",
            "HEAD",
            "--configs-from",
            "head",
        ][..],
        &amd,
    ]
    .concat();
    assert_eq!(keys(&support::json(path, &args)), [KIMI]);
    let args = [
        &[
            "plan",
            "--base-ref",
            "HEAD~2",
            "--head-ref",
            "HEAD",
            "--configs-from",
            "head",
        ][..],
        &["--config-files", "configs/x.yaml"],
    ]
    .concat();
    refused(&run(path, &args), &["`configs/x.yaml` does not exist at HEAD"]);
}

#[test]
fn a_folder_below_the_root_is_told_where_to_run() {
    let folder = history();
    let below = folder.path().join("configs");
    for args in [&["plan", "--latest"][..], &["generate", "full-sweep"], &["explain"]] {
        refused(
            &run(&below, args),
            &["no `configs/*-master.yaml` here", "run from the repository's root"],
        );
    }
    // Through git the paths are those of the root.
    let args = ["plan", "--latest", "--configs-from", "head"];
    assert_eq!(keys(&support::json(&below, args)), [KIMI]);
    assert!(
        run(&below, ["check"]).status.success(),
        "configs are found by their names"
    );
}
