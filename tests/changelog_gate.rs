//! The changelog gate: what a change may do to the file's bytes, and the two repairs, in real repositories.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{self, commit, git, git_command, stderr, stdout, sweepctl, write};

const FILE: &str = "perf-changelog.yaml";
const MASTER: &str = "\
toy-a: &toy
  image: toy:1
  model: toy/toy
  model-prefix: toy
  precision: fp8
  framework: vllm
  runner: box
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 1024
      osl: 1024
      search-space:
      - { tp: 1, conc-list: [4, 8] }
toy-b: *toy
";

/// An entry as people write it, with its pull request.
fn entry(key: &str, link: &str) -> String {
    format!("- config-keys:\n    - {key}\n  description:\n    - \"Measure {key}\"\n  pr-link: {link}\n")
}

fn link(number: u32) -> String {
    format!("https://github.com/some-org/fleet/pull/{number}")
}

/// Two entries of the past.
fn past() -> String {
    format!("{}\n{}", entry("toy-a", &link(1)), entry("toy-b", &link(2)))
}

/// A repository with configs and, where there is one, a changelog.
fn repository(changelog: Option<&[u8]>) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    git(dir.path(), &["init", "-q"]);
    write(dir.path(), "configs/toy-master.yaml", MASTER);
    write(
        dir.path(),
        "configs/runners.yaml",
        "labels:\n  box: [box_0]\nhardware: {}\n",
    );
    if let Some(bytes) = changelog {
        write(dir.path(), FILE, bytes);
    }
    commit(dir.path(), "base");
    dir
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = sweepctl(folder);
    let command = command.arg("changelog").args(args).env_remove("GITHUB_REPOSITORY");
    command.output().expect("the binary runs")
}

fn check(folder: &Path, more: &[&str]) -> Output {
    run(
        folder,
        &[&["check", "--base-ref", "HEAD~1", "--head-ref", "HEAD"], more].concat(),
    )
}

/// The gate's answer to a change from one text to another.
fn change(base: &[u8], head: &[u8], more: &[&str]) -> Output {
    let dir = repository(Some(base));
    write(dir.path(), FILE, head);
    commit(dir.path(), "head");
    check(dir.path(), more)
}

fn verdict(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("the verdict is JSON")
}

/// The refusal's text; nothing is printed besides.
fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}{}", stdout(output), stderr(output));
    assert_eq!(stdout(output), "");
    stderr(output)
}

#[track_caller]
fn refused(base: impl AsRef<[u8]>, head: impl AsRef<[u8]>, words: &[&str]) -> String {
    let text = refusal(&change(base.as_ref(), head.as_ref(), &[]));
    for word in words {
        assert!(text.contains(word), "no `{word}` in:\n{text}");
    }
    text
}

/// Compares a message with `snapshots/<name>.snap`; hashes differ from run to run.
fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.add_filter(r"git checkout [0-9a-f]{12}", "git checkout <base>");
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn an_appended_entry_passes_and_its_jobs_are_counted() {
    let head = format!("{}\n{}", past(), entry("toy-*", &link(7)));
    let found = verdict(&change(past().as_bytes(), head.as_bytes(), &["--pr", "7", "--json"]));
    let jobs = json!({
        "single_node": 4, "multi_node": 0, "evals": 0, "agentic_evals": 0,
        "multinode_evals": 0, "multinode_agentic_evals": 0, "total": 4,
    });
    assert_eq!(found, json!({"added": 1, "corrected_links": 0, "jobs": jobs}));
}

#[test]
fn the_first_entries_of_a_missing_or_empty_changelog_pass() {
    let head = format!("{}\n# why\n{}", entry("toy-a", &link(1)), entry("toy-b", &link(1)));
    for base in [None, Some(&b""[..]), Some(b"[]\n")] {
        let dir = repository(base);
        write(dir.path(), FILE, &head);
        commit(dir.path(), "head");
        assert_eq!(verdict(&check(dir.path(), &["--pr", "1"]))["added"], 2, "{base:?}");
    }
    refused(
        "",
        format!("\n{head}"),
        &[&format!("{FILE}:2:1"), "remove the empty lines above line 2"],
    );
}

#[test]
fn a_base_without_its_last_line_end_is_appended_to() {
    let base = past();
    let base = base.trim_end();
    let head = format!("{base}\n\n{}", entry("toy-a", &link(3)));
    assert_eq!(verdict(&change(base.as_bytes(), head.as_bytes(), &[]))["added"], 1);
    let ended = change(base.as_bytes(), past().as_bytes(), &[]);
    assert_eq!(verdict(&ended)["added"], 0);
    assert!(stderr(&ended).contains("nothing to plan"));
    refused(
        base,
        head.trim_end(),
        &["the last line has no line end", "echo >>", &format!("{FILE}:17:")],
    );
}

#[test]
fn a_crlf_base_keeps_its_line_ends_and_gains_plain_ones() {
    let base = past().replace('\n', "\r\n");
    let added = entry("toy-a", &link(3));
    let head = format!("{base}\n{added}");
    assert_eq!(verdict(&change(base.as_bytes(), head.as_bytes(), &[]))["added"], 1);
    refused(
        &base,
        format!("{base}\r\n{}", added.replace('\n', "\r\n")),
        &["a carriage return is added", ":12:1"],
    );
    refused(
        &base,
        format!("{}\n{added}", past()),
        &["11 existing lines end in another way", ":1:15", "core.autocrlf"],
    );
    let corrected = base.replace("pull/1\r", "pull/11\r");
    assert_eq!(
        verdict(&change(base.as_bytes(), corrected.as_bytes(), &[]))["corrected_links"],
        1
    );
    let unended = base.replace("pull/1\r\n", "pull/11\n");
    refused(&base, unended, &["1 existing line ends in another way", ":5:"]);
}

#[test]
fn empty_lines_between_entries_are_counted() {
    let added = entry("toy-a", &link(3));
    let zero = refused(
        past(),
        format!("{}{added}", past()),
        &["no empty line stands above", ":12:1"],
    );
    snapshot("changelog_gate_no_empty_line", &zero);
    refused(
        past(),
        format!("{}\n\n{added}", past()),
        &["2 empty lines", "remove 1 of them"],
    );
    refused(
        past(),
        format!("{}\n{added}{added}", past()),
        &[":18:1", "insert one empty line above line 18"],
    );
    refused(
        past(),
        format!("{}\n# why\n\n\n{added}", past()),
        &["2 empty lines", ":16:1"],
    );
    refused(
        past(),
        format!("{}  \n{added}", past()),
        &["the line between two entries holds spaces", ":12:1"],
    );
    refused(
        past(),
        format!("{}\n{added}\n\n", past()),
        &["ends in empty lines", "ends with line 17"],
    );
    // What the base ends in may not be removed, and serves.
    let spaced = format!("{}\n\n", past());
    assert_eq!(
        verdict(&change(spaced.as_bytes(), format!("{spaced}{added}").as_bytes(), &[]))["added"],
        1
    );
    refused(&spaced, format!("{spaced}\n{added}"), &["none belongs there"]);
}

#[test]
fn existing_text_is_immutable() {
    let (one, two, three) = (
        entry("toy-a", &link(1)),
        entry("toy-b", &link(2)),
        entry("toy-a", &link(3)),
    );
    let base = format!("{one}\n{two}\n{three}");
    let added = entry("toy-*", &link(4));
    let edited = base.replacen("Measure toy-b", "Measured toy-b", 1);
    let text = refused(
        &base,
        format!("{edited}\n{added}"),
        &["line 10 was `- \"Measure toy-b\"`", ":10:15"],
    );
    snapshot("changelog_gate_altered", &text);
    let removed = refused(
        &base,
        format!("{one}\n{three}\n{added}"),
        &["6 existing lines are removed", "HEAD~1:"],
    );
    snapshot("changelog_gate_removed", &removed);
    refused(
        &base,
        format!("{one}\n{added}\n{two}\n{three}"),
        &["6 lines are added before the end", ":7:1"],
    );
    refused(
        &base,
        format!(
            "{two}
{one}
{three}"
        ),
        &["altered", ":8:11"],
    );
    refused(
        &base,
        format!(
            "{one}
{three}
{two}"
        ),
        &["6 existing lines are removed", "HEAD~1:", ":7:1"],
    );
    refused(&base, format!("{base}    - more\n"), &["no entry of its own"]);
    refused(
        &base,
        format!("{base}  evals-only: true\n\n{added}"),
        &["no entry of its own", ":18:3"],
    );
    refused(&base, base.replace('"', "'"), &["altered"]);
    refused(
        &base,
        format!("# new\n{base}\n{added}"),
        &["1 line is added before the end"],
    );
    refused(
        &base,
        format!("{base}\n# only a comment\n"),
        &["text is added, but no entry"],
    );
    refused(&base, "", &["17 existing lines are removed"]);
    refused(&base, &base, &["the head adds no entry"]);
}

#[test]
fn a_repeated_entry_counts_as_appended() {
    let head = format!("{}\n{}", past(), entry("toy-b", &link(2)));
    assert_eq!(verdict(&change(past().as_bytes(), head.as_bytes(), &[]))["added"], 1);
}

#[test]
fn a_missing_file_at_the_head_is_a_removal() {
    let dir = repository(Some(past().as_bytes()));
    git(dir.path(), &["rm", "-q", FILE]);
    commit(dir.path(), "head");
    assert!(refusal(&check(dir.path(), &[])).contains("11 existing lines are removed"));
}

#[test]
fn links_of_existing_entries_may_be_set_right() {
    let base = format!("{}\n{}", past(), entry("toy-a", "XXX # soon"));
    let right = base.replace("XXX # soon", &link(3)).replace("pull/1\n", "pull/11\n");
    let found = change(base.as_bytes(), right.as_bytes(), &["--pr", "9"]);
    assert_eq!(
        verdict(&found),
        json!({"added": 0, "corrected_links": 2, "jobs": verdict(&found)["jobs"]})
    );
    assert_eq!(verdict(&found)["jobs"]["total"], 0);
    assert!(stderr(&found).contains("2 existing links set right: nothing to plan"));

    let with_entry = format!("{right}\n{}", entry("toy-b", &link(9)));
    // A plan refuses altered entries, so the two cannot share a change.
    let found = change(base.as_bytes(), with_entry.as_bytes(), &["--pr", "9"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(
        stderr(&found).contains("correct links in a change of its own"),
        "{}",
        stderr(&found)
    );
}

#[test]
fn what_only_looks_like_a_link_is_no_correction() {
    let base = past();
    refused(
        &base,
        base.replace(&link(1), "nowhere"),
        &["no pull request's link", ":5:3"],
    );
    refused(
        &base,
        base.replace(&link(1), &format!("{}, evals-only: true", link(1))),
        &["not YAML"],
    );
    refused(
        &base,
        base.replace(&link(1), &format!("{}/files", link(1))),
        &["no pull request's link"],
    );
    refused(
        &base,
        base.replace(
            "  pr-link: https://github.com/some-org/fleet/pull/1\n",
            "   pr-link: x\n",
        ),
        &["altered"],
    );
    let literal = format!(
        "- config-keys: [toy-a]\n  description:\n    - |\n      pr-link: {}\n  pr-link: {0}\n",
        link(1)
    );
    refused(
        &literal,
        literal.replacen("pull/1", "pull/2", 1),
        &["which is no entry's `pr-link`", ":4:7"],
    );
    refused(
        &base,
        base.replace("pr-link: https", "pr-link:\thttps"),
        &["a tab is added", ":5:11"],
    );
}

#[test]
fn added_entries_link_to_their_own_pull_request() {
    let head = format!("{}\n{}\n{}", past(), entry("toy-a", "xxx"), entry("toy-b", &link(8)));
    let text = refusal(&change(past().as_bytes(), head.as_bytes(), &["--pr", "7"]));
    snapshot("changelog_gate_links", &text);
    assert_eq!(
        verdict(&change(past().as_bytes(), head.as_bytes(), &[]))["added"],
        2,
        "without --pr links are free"
    );

    let dir = repository(None);
    write(dir.path(), FILE, entry("toy-a", "XXX"));
    commit(dir.path(), "head");
    assert!(refusal(&check(dir.path(), &["--pr", "7"])).contains("--repo owner/name"));
    let given = refusal(&check(dir.path(), &["--pr", "7", "--repo", "a/b"]));
    assert!(given.contains("canonicalize --pr 7 --repo a/b"), "{given}");
}

#[test]
fn every_violation_is_told_at_once() {
    let base = past();
    let added = entry("no-such-key", "https://example.com/1").replace("    - \"", "\t- \"");
    let head = format!("{}\n\n{added}", base.replacen("Measure", "Measured", 1));
    let text = refused(&base, &head, &["1 existing line is altered", "a tab is added"]);
    assert!(text.contains(" problems"), "{text}");
    let head = format!(
        "{}\n\n{}",
        base.replacen("Measure", "Measured", 1),
        entry("no-such-key", "XXX").trim_end()
    );
    let output = change(base.as_bytes(), head.as_bytes(), &["--pr", "3"]);
    let text = refusal(&output);
    for part in [
        "altered",
        "2 empty lines",
        "still open",
        "no line end",
        "no config matches the key `no-such-key`",
    ] {
        assert!(text.contains(part), "no `{part}` in:\n{text}");
    }
    assert!(text.ends_with("5 problems\n"), "{text}");
}

#[test]
fn added_entries_must_be_plannable() {
    let with = |text: &str| format!("{}\n{text}", past());
    refused(past(), with("- config-keys: [toy-a]\n  pr-link: x\n"), &["description"]);
    refused(past(), with(&entry("toy-zz", &link(3))), &["`toy-zz`"]);
    refused(
        past(),
        with(&format!(
            "{}  no-evals: true\n  evals-only: true\n",
            entry("toy-a", &link(3))
        )),
        &["no-evals"],
    );
    refused(past(), with("- ] nonsense\n"), &["not YAML"]);
}

#[test]
fn hostile_bytes_are_refused_where_they_stand() {
    let with = |text: &[u8]| [past().as_bytes(), b"\n", text].concat();
    let plain = entry("toy-a", &link(3));
    for (bytes, name) in [
        (&b"\0"[..], "a NUL is added"),
        (b"\r", "a carriage return is added"),
        (b"\t", "a tab is added"),
        (b"\x1b[31m", "the control character U+001B is added"),
        (b"\xff", "the byte 0xFF, which is not UTF-8, is added"),
        (b"\xef\xbb\xbf", "a byte order mark is added"),
    ] {
        let at = plain.find("Measure").expect("a description");
        let text = [&plain.as_bytes()[..at], bytes, &plain.as_bytes()[at..]].concat();
        let said = refused(past(), with(&text), &[name, ":16:8"]);
        assert!(!said.contains('\u{1b}') && !said.contains('\0'), "{said:?}");
    }
    // A flood costs a bounded message.
    let flood = "\t\n".repeat(200_000);
    let said = refused(
        past(),
        with(flood.as_bytes()),
        &["such characters stand in 199980 more lines"],
    );
    assert!(said.len() < 20_000, "{}", said.len());
}

#[test]
fn text_for_a_shell_or_an_expression_stays_text() {
    let hostile = entry("toy-a", &link(3)).replace("Measure toy-a", "${{ secrets.X }} $(touch pwned) `touch pwned`; :");
    let dir = repository(Some(past().as_bytes()));
    write(dir.path(), FILE, format!("{}\n{hostile}", past()));
    commit(dir.path(), "head");
    assert_eq!(verdict(&check(dir.path(), &["--pr", "3"]))["added"], 1);
    assert!(!dir.path().join("pwned").exists());
}

#[test]
fn a_huge_rewrite_is_told_in_bounded_time() {
    let many: String = (1..4000).map(|n| format!("{}\n", entry("toy-a", &link(n)))).collect();
    let other: String = (1..4000)
        .rev()
        .map(|n| format!("{}\n", entry("toy-b", &link(n))))
        .collect();
    let start = std::time::Instant::now();
    refused(many, other, &["altered"]);
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[test]
fn configs_are_read_where_the_comparison_says() {
    let dir = repository(Some(past().as_bytes()));
    write(dir.path(), FILE, format!("{}\n{}", past(), entry("toy-a", &link(3))));
    commit(dir.path(), "head");
    write(dir.path(), "configs/toy-master.yaml", "broken: [\n");
    assert!(refusal(&check(dir.path(), &[])).contains("toy-master.yaml"));
    let args = "changelog check --base-ref HEAD~1 --head-ref HEAD --configs-from head";
    assert_eq!(support::json(dir.path(), args.split(' '))["added"], 1);
}

mod canonicalize {
    use super::*;

    const AWKWARD: &str = "# a comment\r\n- config-keys: ['toy-a']\r\n  description: [ \"XXX stays\" ]\n  pr-link: \"xxx\"   # open\n\n- pr-link: 'TBD'\n  config-keys: [toy-b]\n  description:\n  - 'pr-link: XXX'\n\n- {config-keys: [toy-a], description: [x], pr-link: https://github.com/o/r/pull/XXX}\n- config-keys: [toy-ü]\n  description: [ü]\n  pr-link: XXX";

    fn opened() -> TempDir {
        let dir = repository(Some(format!("{}\n{}", past(), entry("toy-a", "XXX")).as_bytes()));
        git(dir.path(), &["switch", "-qc", "branch"]);
        let text = std::fs::read_to_string(dir.path().join(FILE)).expect("the changelog");
        write(dir.path(), FILE, format!("{text}\n{AWKWARD}"));
        dir
    }

    #[test]
    fn open_links_of_new_entries_are_filled_in_byte_for_byte() {
        let dir = opened();
        let output = run(dir.path(), &["canonicalize", "--pr", "42"]);
        let said = verdict(&output);
        assert_eq!(said["pr_link"], link(42));
        assert_eq!(said["replaced"].as_array().map(Vec::len), Some(4));
        assert_eq!(said["replaced"][0], json!({"line": 22, "was": "xxx"}));
        let expected = AWKWARD
            .replace("\"xxx\"", &format!("\"{}\"", link(42)))
            .replace("'TBD'", &format!("'{}'", link(42)))
            .replace("https://github.com/o/r/pull/XXX", &link(42))
            .replace("ü]\n  pr-link: XXX", &format!("ü]\n  pr-link: {}", link(42)));
        let base = format!("{}\n{}", past(), entry("toy-a", "XXX"));
        let now = std::fs::read_to_string(dir.path().join(FILE)).expect("the changelog");
        assert_eq!(now, format!("{base}\n{expected}"));
        assert!(stderr(&output).contains(&format!("{FILE}:22: `xxx` is now `{}`", link(42))));
        let again = verdict(&run(dir.path(), &["canonicalize", "--pr", "42"]));
        assert_eq!(again["replaced"], json!([]));
    }

    #[test]
    fn it_keeps_to_the_base_that_is_named_also_after_a_commit() {
        let dir = opened();
        commit(dir.path(), "open links");
        let to_head = verdict(&run(dir.path(), &["canonicalize", "--pr", "42", "--base-ref", "HEAD"]));
        assert_eq!(to_head["replaced"], json!([]));
        let to_main = verdict(&run(dir.path(), &["canonicalize", "--pr", "42", "--repo", "a/b"]));
        assert_eq!(to_main["pr_link"], "https://github.com/a/b/pull/42");
        assert_eq!(to_main["replaced"].as_array().map(Vec::len), Some(4));
    }

    #[test]
    fn check_writes_nothing_and_fails() {
        let dir = opened();
        let before = std::fs::read(dir.path().join(FILE)).expect("the changelog");
        let text = refusal(&run(dir.path(), &["canonicalize", "--pr", "42", "--check"]));
        assert!(
            text.contains("4 problems") && text.contains("canonicalize --pr 42"),
            "{text}"
        );
        assert_eq!(std::fs::read(dir.path().join(FILE)).expect("the changelog"), before);
        run(dir.path(), &["canonicalize", "--pr", "42"]);
        assert!(
            run(dir.path(), &["canonicalize", "--pr", "42", "--check"])
                .status
                .success()
        );
    }

    #[test]
    fn what_it_cannot_replace_it_leaves() {
        let dir = repository(Some(past().as_bytes()));
        let escaped = entry("toy-a", r#""\x58XX""#);
        write(dir.path(), FILE, format!("{}\n{escaped}", past()));
        let text = refusal(&run(dir.path(), &["canonicalize", "--pr", "4"]));
        assert!(text.contains("write it on one line"), "{text}");

        let outside = write(dir.path(), "outside.yaml", entry("toy-a", "XXX"));
        std::fs::remove_file(dir.path().join(FILE)).expect("removed");
        std::os::unix::fs::symlink(&outside, dir.path().join(FILE)).expect("a link");
        assert!(refusal(&run(dir.path(), &["canonicalize", "--pr", "4"])).contains("no plain file"));
        assert!(std::fs::read_to_string(&outside).expect("the target").contains("XXX"));
        assert_eq!(run(dir.path(), &["canonicalize", "--pr", "0"]).status.code(), Some(2));
    }
}

mod resolve {
    use super::*;

    fn text(dir: &Path) -> String {
        std::fs::read_to_string(dir.join(FILE)).expect("the changelog")
    }

    /// Appends to the changelog on a branch that starts at main's first commit.
    fn on(dir: &Path, branch: &str, changelog: &str) {
        if branch != "main" {
            git(dir, &["switch", "-qc", branch, "main"]);
        }
        write(dir, FILE, changelog);
        commit(dir, branch);
        git(dir, &["switch", "-q", "main"]);
    }

    #[track_caller]
    fn conflicts(dir: &Path, args: &[&str]) {
        let output = git_command(dir, args).output().expect("git runs");
        assert!(!output.status.success(), "git {args:?} met no conflict");
        assert!(!git(dir, &["ls-files", "-u", FILE]).is_empty());
    }

    fn go_on(dir: &Path, args: &[&str]) {
        let output = git_command(dir, args)
            .env("GIT_EDITOR", "true")
            .output()
            .expect("git runs");
        assert!(output.status.success(), "{}", stderr(&output));
    }

    /// Main and a branch that each appended an entry.
    fn forked(base: &str, main: &str, branch: &str) -> TempDir {
        let dir = repository(Some(base.as_bytes()));
        on(dir.path(), "branch", branch);
        on(dir.path(), "main", main);
        dir
    }

    fn two_sides() -> (String, String, String) {
        let main = format!("{}\n{}", past(), entry("toy-b", &link(5)));
        let branch = format!(
            "{}\n# mine\n{}\n{}",
            past(),
            entry("toy-a", "'XXX'"),
            entry("toy-*", "tbd")
        );
        let expected = format!(
            "{main}\n# mine\n{}\n{}",
            entry("toy-a", &format!("'{}'", link(6))),
            entry("toy-*", &link(6))
        );
        (main, branch, expected)
    }

    #[test]
    fn a_merge_of_main_keeps_theirs_and_appends_ours() {
        let (main, branch, expected) = two_sides();
        let dir = forked(&past(), &main, &branch);
        git(dir.path(), &["switch", "-q", "branch"]);
        conflicts(dir.path(), &["merge", "main"]);
        let said = verdict(&run(dir.path(), &["resolve", "--pr", "6"]));
        assert_eq!(
            said,
            json!({"main_side": "theirs", "appended": 2, "already_on_main": 0, "links_filled_in": 2, "next": "git commit"})
        );
        assert_eq!(text(dir.path()), expected);
        assert_eq!(git(dir.path(), &["ls-files", "-u"]), "");
        assert_eq!(
            git(dir.path(), &["diff", "--name-only"]),
            "",
            "what is staged is what stands there"
        );
        go_on(dir.path(), &["commit", "-q", "--no-edit"]);
        let args = ["check", "--base-ref", "main", "--head-ref", "HEAD", "--pr", "6"];
        assert_eq!(verdict(&run(dir.path(), &args))["added"], 2);
    }

    #[test]
    fn a_merge_on_main_keeps_ours() {
        let (main, branch, expected) = two_sides();
        let dir = forked(&past(), &main, &branch);
        conflicts(dir.path(), &["merge", "branch"]);
        assert_eq!(
            verdict(&run(dir.path(), &["resolve", "--pr", "6"]))["main_side"],
            "ours"
        );
        assert_eq!(text(dir.path()), expected);
    }

    #[test]
    fn a_rebase_keeps_ours_also_in_a_worktree_and_over_several_commits() {
        let (main, branch, expected) = two_sides();
        let dir = forked(&past(), &main, &branch);
        let tree = tempfile::tempdir().expect("a folder");
        let tree = tree.path().join("tree");
        git(
            dir.path(),
            &["worktree", "add", "-q", tree.to_str().expect("a path"), "branch"],
        );
        // A second commit sets the links right that the first one left open.
        run(&tree, &["canonicalize", "--pr", "6"]);
        commit(&tree, "links");
        conflicts(&tree, &["rebase", "main"]);
        let said = verdict(&run(&tree, &["resolve", "--pr", "6"]));
        assert_eq!(
            (&said["main_side"], &said["next"]),
            (&json!("ours"), &json!("git rebase --continue"))
        );
        assert_eq!(text(&tree), expected);
        let mut go = git_command(&tree, &["rebase", "--continue"]);
        let output = go.env("GIT_EDITOR", "true").output().expect("git runs");
        if !output.status.success() {
            let said = verdict(&run(&tree, &["resolve", "--pr", "6"]));
            assert_eq!((&said["appended"], &said["already_on_main"]), (&json!(0), &json!(2)));
            assert_eq!(text(&tree), expected);
            // Nothing is left of that commit.
            go_on(&tree, &["rebase", "--skip"]);
        }
        assert_eq!(text(&tree), expected);
        assert_eq!(git(&tree, &["status", "--porcelain"]), "");
        let args = ["check", "--base-ref", "main", "--head-ref", "HEAD", "--pr", "6"];
        assert_eq!(verdict(&run(&tree, &args))["added"], 2);
    }

    #[test]
    fn main_is_kept_byte_for_byte() {
        let added = entry("toy-a", &link(6));
        for main in [
            format!(
                "{}\r\n{}",
                past().replace('\n', "\r\n"),
                entry("toy-b", &link(5)).replace('\n', "\r\n")
            ),
            format!("{}\n{}\n\n", past(), entry("toy-b", &link(5))),
            format!("{}\n{}", past(), entry("toy-b", &link(5)))
                .trim_end()
                .to_owned(),
        ] {
            let dir = forked(&past(), &main, &format!("{}\n{added}", past()));
            git(dir.path(), &["switch", "-q", "branch"]);
            conflicts(dir.path(), &["merge", "main"]);
            verdict(&run(dir.path(), &["resolve"]));
            let gap = match (main.ends_with("\n\n"), main.ends_with('\n')) {
                (true, _) => "",
                (_, true) => "\n",
                _ => "\n\n",
            };
            assert_eq!(text(dir.path()), format!("{main}{gap}{added}"));
            let staged = git_command(dir.path(), &["show", &format!(":{FILE}")])
                .output()
                .expect("git runs");
            assert_eq!(staged.stdout, text(dir.path()).as_bytes());
        }
    }

    #[test]
    fn both_sides_bring_the_first_changelog() {
        let dir = repository(None);
        on(dir.path(), "branch", &entry("toy-a", &link(6)));
        on(dir.path(), "main", &entry("toy-b", &link(5)));
        git(dir.path(), &["switch", "-q", "branch"]);
        conflicts(dir.path(), &["merge", "main"]);
        verdict(&run(dir.path(), &["resolve", "--pr", "6"]));
        assert_eq!(
            text(dir.path()),
            format!("{}\n{}", entry("toy-b", &link(5)), entry("toy-a", &link(6)))
        );
    }

    #[test]
    fn entries_that_main_gained_as_well_are_not_doubled() {
        let shared = entry("toy-a", &link(6));
        let main = format!("{}\n{}\n{shared}", past(), entry("toy-b", &link(5)));
        let branch = format!("{}\n{}\n{}", past(), entry("toy-a", "XXX"), entry("toy-*", &link(6)));
        let dir = forked(&past(), &main, &branch);
        git(dir.path(), &["switch", "-q", "branch"]);
        conflicts(dir.path(), &["merge", "main"]);
        let said = verdict(&run(dir.path(), &["resolve", "--pr", "6"]));
        assert_eq!((&said["appended"], &said["already_on_main"]), (&json!(1), &json!(1)));
        assert_eq!(text(dir.path()), format!("{main}\n{}", entry("toy-*", &link(6))));
    }

    #[test]
    fn a_branch_that_altered_old_entries_is_refused_and_nothing_is_written() {
        let main = format!("{}\n{}", past(), entry("toy-b", &link(5)));
        let branch = format!(
            "{}\n{}",
            past().replace("Measure toy-b", "Changed"),
            entry("toy-a", &link(6))
        );
        let dir = forked(&past(), &main, &branch);
        git(dir.path(), &["switch", "-q", "branch"]);
        conflicts(dir.path(), &["merge", "main"]);
        let before = text(dir.path());
        let said = refusal(&run(dir.path(), &["resolve", "--pr", "6"]));
        snapshot("changelog_resolve_altered", &said);
        assert_eq!(text(dir.path()), before);
        assert!(!git(dir.path(), &["ls-files", "-u"]).is_empty());
    }

    #[test]
    fn without_a_conflict_or_a_known_side_it_says_what_to_do() {
        let dir = repository(Some(past().as_bytes()));
        let said = refusal(&run(dir.path(), &["resolve", "--pr", "6"]));
        assert!(
            said.contains("has no merge conflict") && said.contains("git rebase"),
            "{said}"
        );

        let (main, branch, expected) = two_sides();
        let dir = forked(&past(), &main, &branch);
        conflicts(dir.path(), &["cherry-pick", "branch"]);
        let said = refusal(&run(dir.path(), &["resolve", "--pr", "6"]));
        assert!(said.contains("--main-side ours"), "{said}");
        let canonicalize = refusal(&run(dir.path(), &["canonicalize", "--pr", "6"]));
        assert!(canonicalize.contains("changelog resolve --pr 6"), "{canonicalize}");
        verdict(&run(dir.path(), &["resolve", "--pr", "6", "--main-side", "ours"]));
        assert_eq!(text(dir.path()), expected);
    }

    #[test]
    fn a_side_without_the_file_is_refused() {
        let dir = repository(Some(past().as_bytes()));
        on(
            dir.path(),
            "branch",
            &format!("{}\n{}", past(), entry("toy-a", &link(6))),
        );
        git(dir.path(), &["rm", "-q", FILE]);
        commit(dir.path(), "removed");
        git(dir.path(), &["switch", "-q", "branch"]);
        conflicts(dir.path(), &["merge", "main"]);
        let said = refusal(&run(dir.path(), &["resolve", "--pr", "6"]));
        assert!(
            said.contains("one side of the conflict removed") && said.contains("checkout --ours"),
            "{said}"
        );
    }
}
