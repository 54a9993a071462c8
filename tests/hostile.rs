//! Hostile and broken files: refused at a bounded cost, in bounded memory, and never taken for anything but data.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::fleet::{CHANGELOG, edit, entry, folder, log, repository};
use crate::support::{self, commit, git, run, stderr, stdout, write};

const MASTER: &str = "configs/amd-master.yaml";

/// Memory that a refusal may take, in KiB of address space.
const MEMORY: &str = "1048576";

/// Seconds of the processor that a refusal may take, in a build that is not optimized: a guard against what never ends.
const PROCESSOR: &str = "60";

/// Runs the binary with bounds on its memory and on what it may compute; the kernel ends it where it passes them.
fn bounded(folder: &Path, args: &[&str], input: Stdio) -> Output {
    Command::new("sh")
        .args([
            "-c",
            "ulimit -v \"$MEMORY\"; ulimit -t \"$PROCESSOR\"; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_sweepctl"),
        ])
        .args(args)
        .current_dir(folder)
        .env("MEMORY", MEMORY)
        .env("PROCESSOR", PROCESSOR)
        .env("NO_COLOR", "1")
        .env_remove("GITHUB_ACTIONS")
        .stdin(input)
        .output()
        .expect("sh runs")
}

/// A master file that is refused within bounds; gives what was said.
fn refused(text: impl AsRef<[u8]>) -> String {
    let folder = folder();
    write(folder.path(), MASTER, text);
    said(&bounded(folder.path(), &["check", MASTER], Stdio::null()))
}

fn said(output: &Output) -> String {
    let said = stderr(output);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        said.chars().take(2000).collect::<String>()
    );
    // A check prints its findings into a pipe, anything else nothing.
    let printed = serde_json::from_slice::<Value>(&output.stdout);
    assert!(output.stdout.is_empty() || printed.is_ok_and(|printed| printed["findings"].is_array()));
    assert!(
        said.starts_with("error["),
        "{}",
        said.chars().take(2000).collect::<String>()
    );
    assert!(said.len() < 200_000, "{} bytes of messages", said.len());
    said
}

#[track_caller]
fn refused_for(text: impl AsRef<[u8]>, reason: &str) {
    let said = refused(text);
    assert!(
        said.contains(reason),
        "wanted `{reason}`\n{}",
        said.chars().take(2000).collect::<String>()
    );
}

/// A whole config whose one search-space entry is given.
fn config(entry: &str) -> String {
    format!(
        "a-b:\n  image: i\n  model: m\n  model-prefix: p\n  precision: fp8\n  framework: f\n  runner: mi\n  \
         multinode: false\n  scenarios:\n    fixed-seq-len:\n    - isl: 8192\n      osl: 1024\n      \
         search-space:\n      - {entry}\n"
    )
}

#[test]
fn alias_bombs_are_refused() {
    // A billion laughs.
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let before = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    refused_for(
        &text,
        "the anchors and aliases of this file repeat more than 100000 values",
    );
    // One large value, and many aliases of it.
    let large = vec!["1"; 90_000].join(", ");
    let text = format!("a: &a [{large}]\n{}", "b: *a\n".repeat(50_000));
    refused_for(text, "the anchors and aliases of this file repeat more than");
    // Anchors within anchors, each of which remembers all below it.
    let text = format!("a: {}{}{}\n", "&x [".repeat(60), "1, ".repeat(400_000), "]".repeat(60));
    refused_for(text, "anchors");
    refused_for("a: &a [*a]\n", "an alias to something that contains it");
    refused_for("a: *nowhere\n", "nowhere");
}

#[test]
fn huge_and_endless_files_are_refused() {
    let folder = folder();
    let file = std::fs::File::create(folder.path().join(MASTER)).expect("a file");
    file.set_len(10 << 30).expect("a sparse file");
    let sparse = bounded(folder.path(), &["check", MASTER], Stdio::null());
    assert!(said(&sparse).contains("the file is larger than 64 MiB"));
    let zero = ["generate", "full-sweep", "--config-files", "/dev/zero"];
    assert!(said(&bounded(folder.path(), &zero, Stdio::null())).contains("larger than 64 MiB"));
    let yes = Command::new("yes").stdout(Stdio::piped()).spawn().expect("yes runs");
    let mut yes = yes;
    let pipe = yes.stdout.take().expect("a pipe");
    let piped = ["generate", "full-sweep", "--config-files", "/dev/stdin"];
    let output = bounded(folder.path(), &piped, pipe.into());
    assert!(said(&output).contains("larger than 64 MiB"));
    yes.kill().ok();
    yes.wait().expect("yes ends");
}

#[test]
fn a_fifo_that_nobody_writes_to_does_not_hang() {
    let folder = folder();
    std::fs::remove_file(folder.path().join(MASTER)).expect("a file");
    let path = folder.path().join(MASTER);
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a fifo");
    let output = bounded(folder.path(), &["check"], Stdio::null());
    assert!(said(&output).contains("is not a regular file"), "{}", stderr(&output));
}

#[test]
fn many_values_and_many_problems_stay_bounded() {
    // 3 million values in 9 MiB.
    refused_for(format!("a: [{}]\n", "1, ".repeat(3_000_000)), "more than");
    // Each line is a problem, and finding its text must not read the file again.
    let text: String = (0..100_000).map(|n| format!("k{n}: 1\n")).collect();
    refused_for(&text, "more problems");
    let text = format!("a:\n{}", "  image: 1\n".repeat(100_000));
    refused_for(&text, "more problems");
    // One line of many problems.
    let text = format!(
        "a: {{{}}}\n",
        (0..40_000).map(|n| format!("k{n}: 1, ")).collect::<String>()
    );
    refused_for(&text, "more problems");
}

#[test]
fn deep_nesting_is_refused() {
    refused_for(
        format!("a: {}{}\n", "[".repeat(10_000), "]".repeat(10_000)),
        "nested more than 64 levels deep",
    );
    refused_for(
        format!("a: {}1{}\n", "{b: ".repeat(10_000), "}".repeat(10_000)),
        "nested more than 64 levels deep",
    );
    let block: String = (0..10_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    refused_for(block, "nested more than 64 levels deep");
    refused_for(
        format!("a:\n  {}x\n", "- ".repeat(10_000)),
        "nested more than 64 levels deep",
    );
    refused_for("[".repeat(1_000_000), "nested more than 64 levels deep");
}

#[test]
fn duplicate_keys_are_refused_with_both_places() {
    let said = refused(config("{ tp: 8, conc-list: [4], tp: 8 }"));
    assert!(said.contains("duplicate key `tp`"), "{said}");
    assert!(said.contains("amd-master.yaml:14:34"), "{said}");
    assert!(said.contains("it stands first on line 14"), "{said}");
    refused_for(config("{ tp: 8, \"tp\": 8, conc-list: [4] }"), "duplicate key `tp`");
    refused_for(config("{ tp: 8, conc-list: [4] }").repeat(2), "duplicate key `a-b`");
}

#[test]
fn what_is_no_text_is_refused_with_its_place() {
    refused_for(b"a: \xff\xfe\n", "byte 3, on line 1, is not UTF-8");
    refused_for("a: 1\nb: x\0y\n", "control character U+0000");
    refused_for("a: \u{1b}[31mred\n", "control character U+001B");
    // A control character by its escape is data; it reaches no terminal as it is.
    let said = refused(config("{ tp: 8, conc-list: [4], \"a\\e[31m\": 1 }"));
    assert!(said.contains("unknown field `a\\u{1b}[31m`"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
    refused_for([0xff, 0xfe, b'a', 0], "not UTF-8");
}

#[test]
fn numbers_are_exact_and_bounded() {
    for (entry, reason) in [
        (
            "{ tp: 8.5, conc-list: [4] }",
            "`tp` is a number with a fraction (`8.5`), not an integer",
        ),
        (
            "{ tp: 99999999999999999999, conc-list: [4] }",
            "`tp` is 99999999999999999999, the largest accepted is 2147483647",
        ),
        (
            "{ tp: 9999999999999999999999999999999999999999999, conc-list: [4] }",
            "not an integer",
        ),
        (
            "{ tp: \"8\", conc-list: [4] }",
            "`tp` is a string (`8`), not an integer",
        ),
        (
            "{ tp: !!str 8, conc-list: [4] }",
            "`tp` is a string (`8`), not an integer",
        ),
        (
            "{ tp: 8, conc-list: [\"4\"] }",
            "`conc-list` is a string (`4`), not an integer",
        ),
        ("{ tp: 8, conc-list: [] }", "`conc-list` is an empty list"),
        ("{ tp: 8, conc-list: 4 }", "`conc-list` is an integer (`4`), not a list"),
        ("{ tp: 8, conc-list: [0] }", "`conc-list` is 0, it must be positive"),
        ("{ tp: -8, conc-list: [4] }", "`tp` is -8, it must be positive"),
        ("{ tp: .inf, conc-list: [4] }", "not an integer"),
        ("{ tp: 1e3, conc-list: [4] }", "not an integer"),
        (
            "{ tp: yes, conc-list: [4] }",
            "`tp` is a boolean (`yes`), not an integer",
        ),
        ("{ tp: , conc-list: [4] }", "`tp` is nothing, not an integer"),
        ("{ tp: [8], conc-list: [4] }", "`tp` is a list, not an integer"),
        (
            "{ tp: 8, dp-attn: \"true\", conc-list: [4] }",
            "`dp-attn` is a string (`true`), not a boolean",
        ),
        (
            "{ tp: 8, conc-start: -4, conc-end: 8 }",
            "`conc-start` is -4, it must be positive",
        ),
        (
            "{ tp: 8, conc-start: 1, conc-end: 9223372036854775807 }",
            "the largest accepted is 2147483647",
        ),
        (
            "{ tp: 8, conc-start: 8, conc-end: 4 }",
            "`conc-start` 8 is above `conc-end` 4",
        ),
    ] {
        refused_for(config(entry), reason);
    }
    let many: Vec<String> = (1..=1025).map(|n| n.to_string()).collect();
    let entry = format!("{{ tp: 8, conc-list: [{}] }}", many.join(", "));
    refused_for(config(&entry), "holds 1025 points, at most 1024 are accepted");
}

#[test]
fn the_widest_range_is_a_handful_of_points() {
    let folder = folder();
    write(
        folder.path(),
        MASTER,
        config("{ tp: 8, conc-start: 1, conc-end: 2147483647 }"),
    );
    let rows = support::json(folder.path(), ["generate", "test-config", "--config-keys", "a-b"]);
    let rows = rows.as_array().expect("rows");
    assert_eq!(rows.len(), 32);
    assert_eq!(rows[31]["conc"], 2_147_483_647);
}

#[test]
fn sizes_that_multiply_beyond_a_number_are_refused_or_counted() {
    let folder = folder();
    let huge = "tp: 2147483647, pp: 2147483647, pcp-size: 2147483647";
    write(folder.path(), MASTER, config(&format!("{{ {huge}, conc-list: [4] }}")));
    let entries = entry("a-b", "");
    git(folder.path(), &["init", "-q"]);
    commit(folder.path(), "One");
    log(folder.path(), &entries);
    let output = run(folder.path(), ["plan", "--latest", "--summary"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let said = stderr(&output);
    assert!(said.contains("GPUs"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn keys_may_look_like_anything() {
    let folder = folder();
    for key in ["2026-11-29", "yes", "1.10", "~", "null", "0x10", "true"] {
        write(
            folder.path(),
            MASTER,
            config("{ tp: 8, conc-list: [4] }").replace("a-b:", &format!("{key}:")),
        );
        let rows = support::json(folder.path(), ["generate", "test-config", "--config-keys", key]);
        assert_eq!(rows.as_array().map(Vec::len), Some(1), "{key}");
    }
    refused_for(
        config("{ tp: 8, conc-list: [4] }").replace("a-b:", "\"a*\":"),
        "holds a `*`",
    );
    refused_for(
        config("{ tp: 8, conc-list: [4] }").replace("a-b:", "? [a, b]\n:"),
        "a key that is a list",
    );
    refused_for(
        config("{ tp: 8, conc-list: [4] }").replace("a-b:", "\"\":"),
        "a config key is empty",
    );
}

#[test]
fn tags_documents_and_merges_are_held_to_data() {
    refused_for(
        config("{ tp: !!python/object:os.system 8, conc-list: [4] }"),
        "is not accepted",
    );
    refused_for(config("!custom { tp: 8, conc-list: [4] }"), "is not accepted");
    refused_for(config("{ tp: 8, conc-list: [4] }") + "---\nb: 1\n", "a second document");
    refused_for("%TAG ! tag:example.com,2000:\n---\na: !x 1\n", "is not accepted");
    refused_for("a: &a 1\nb:\n  <<: *a\n", "`<<` merges mappings only");
    refused_for("just text\n", "not a mapping");
    refused_for("- a\n- b\n", "not a mapping");
    refused_for("a: [1, 2\n", "not YAML");
    refused_for("a:\n\t- 1\n", "not YAML");
    // A merge fills in what is not there, and its source is a config like any other.
    let folder = folder();
    let one = config("&space { tp: 8, conc-list: [4] }\n      - { <<: *space, tp: 4 }");
    write(folder.path(), MASTER, one);
    let rows = support::json(folder.path(), ["generate", "test-config", "--config-keys", "a-b"]);
    assert_eq!((&rows[0]["tp"], &rows[1]["tp"]), (&Value::from(8), &Value::from(4)));
    assert_eq!(rows[1]["conc"], 4);
}

#[test]
fn an_empty_file_holds_no_config() {
    let folder = folder();
    for text in ["", "# nothing\n", "---\n", "~\n", "\u{feff}"] {
        write(folder.path(), MASTER, text);
        let output = run(folder.path(), ["check", MASTER]);
        assert!(output.status.success(), "{text:?}: {}", stderr(&output));
    }
    write(folder.path(), "configs/runners.yaml", "");
    let output = run(folder.path(), ["check"]);
    assert!(stderr(&output).contains("the runners file"), "{}", stderr(&output));
}

#[test]
fn a_wildcard_that_matches_everything_is_honest_work() {
    let folder = repository();
    log(folder.path(), &entry("'*', '**', '*-*'", ""));
    let plan = support::json(folder.path(), ["plan", "--latest"]);
    assert_eq!(plan["single_node"]["1k1k"].as_array().map(Vec::len), Some(4));
    // Many stars match in linear time.
    log(folder.path(), &entry(&format!("'{}'", "*a".repeat(5_000)), ""));
    let output = bounded(folder.path(), &["plan", "--latest"], Stdio::null());
    assert!(said(&output).contains("no config matches the pattern"));
}

const NASTY: &str = "x$(touch pwned)`touch pwned`;&|<>\\\"'${{ secrets.TOKEN }}\\nEOF\\nforged=1\\n::error::x\u{202e}";

#[test]
fn shell_and_expression_text_stays_data() {
    let folder = folder();
    let nasty = NASTY.replace("\\\"", "\\\\\\\"");
    edit(
        folder.path(),
        MASTER,
        "image: example/vllm:1\n  model: org/alpha",
        &format!("image: \"{nasty}\"\n  model: org/alpha"),
    );
    edit(
        folder.path(),
        MASTER,
        "model-prefix: alpha",
        &format!("model-prefix: \"{nasty}\""),
    );
    edit(folder.path(), MASTER, "alpha-mi-vllm-fp8:", &format!("\"{nasty}\":"));
    let out = folder.path().join("outputs");
    let sweepctl = |args: &[&str]| {
        let output = support::sweepctl(folder.path())
            .args(args)
            .env("GITHUB_OUTPUT", &out)
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    sweepctl(&["generate", "full-sweep", "--emit", "plan", "--github-output"]);
    let shard = sweepctl(&["shard", "--bucket", "single_node_1k1k", "--index", "0"]);
    let shard: Value = serde_json::from_str(&shard).expect("JSON");
    let image = shard[0]["row"]["image"].as_str().expect("an image");
    assert!(
        image.contains("$(touch pwned)") && image.contains("\nEOF\nforged=1\n"),
        "{image}"
    );
    sweepctl(&[
        "shard",
        "--bucket",
        "single_node_1k1k",
        "--index",
        "0",
        "--github-output",
    ]);
    let outputs = outputs(&std::fs::read_to_string(&out).expect("the outputs"));
    let names: Vec<&str> = outputs.iter().map(|(name, _)| name.as_str()).collect();
    assert!(!names.contains(&"forged"), "{names:?}");
    let (_, envelopes) = outputs.iter().find(|(name, _)| name == "envelopes").expect("an output");
    let again: Value = serde_json::from_str(envelopes).expect("JSON");
    assert_eq!(again, shard);
    assert!(!folder.path().join("pwned").exists());
    // Messages and tables hold no line of their own that a runner could take for a command.
    let output = support::sweepctl(folder.path())
        .args(["generate", "test-config", "--config-keys", "zz", "--no-evals"])
        .env("GITHUB_ACTIONS", "true")
        .output()
        .expect("it runs");
    for line in stderr(&output).lines().filter(|line| line.starts_with("::")) {
        assert!(
            line.starts_with("::error title=plan/unknown-config::no config matches the key `zz`"),
            "{line}"
        );
    }
}

#[test]
fn names_reach_annotations_and_summaries_without_what_cannot_be_seen() {
    let folder = folder();
    let name = "a\u{1b}[31m\u{9b}\u{202e}\u{200b}b";
    let set = format!("sets/{name}");
    support::write(folder.path(), &format!("{set}/meta_env.json"), "{}");
    support::write(folder.path(), &format!("{set}/results.json"), "{");
    support::write(folder.path(), &format!("{name}.yaml"), "a: [");
    let summary = folder.path().join("summary");
    let hidden = |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{202e}' | '\u{200b}'));
    let commands: [&[&str]; 3] = [
        &["collect", "evals", "sets"],
        &["eval", "validate", "--results-glob", &format!("{set}/results.json")],
        &["check", &format!("{name}.yaml")],
    ];
    for args in commands {
        let output = support::sweepctl(folder.path())
            .args(args)
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_STEP_SUMMARY", &summary)
            .output()
            .expect("it runs");
        let said = stderr(&output);
        let annotated: Vec<&str> = said.lines().filter(|line| line.starts_with("::")).collect();
        assert!(!annotated.is_empty(), "{args:?}: {said}");
        assert!(!said.contains(hidden), "{args:?}: {said:?}");
    }
    let text = std::fs::read_to_string(&summary).expect("a summary");
    assert!(
        text.contains("### Eval results") && text.contains("### Eval scores"),
        "{text}"
    );
    assert!(!text.contains(hidden) && text.contains(r"\u{202e}"), "{text:?}");
}

/// The outputs of a file, read as the runner reads them.
fn outputs(text: &str) -> Vec<(String, String)> {
    let mut outputs = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (name, delimiter) = line.split_once("<<").unwrap_or_else(|| panic!("no heredoc: {line}"));
        let value: Vec<&str> = lines.by_ref().take_while(|line| *line != delimiter).collect();
        outputs.push((name.to_owned(), value.join("\n")));
    }
    outputs
}

#[test]
fn a_changelog_that_is_no_file_is_refused() {
    let folder = repository();
    let path = folder.path().join(CHANGELOG);
    std::fs::remove_file(&path).expect("a file");
    write(folder.path(), "elsewhere.yaml", entry("alpha-mi-vllm-fp8", ""));
    std::os::unix::fs::symlink("elsewhere.yaml", &path).expect("a link");
    commit(folder.path(), "A link");
    let args = ["plan", "--base-ref", "HEAD~1", "--head-ref", "HEAD"];
    let output = run(folder.path(), args);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("`perf-changelog.yaml` is a symbolic link at HEAD"),
        "{}",
        stderr(&output)
    );

    std::fs::remove_file(&path).expect("a link");
    write(&path, "inner.yaml", "x: 1\n");
    commit(folder.path(), "A folder");
    let output = run(folder.path(), args);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("`perf-changelog.yaml` is no file at HEAD"),
        "{}",
        stderr(&output)
    );
    let output = run(folder.path(), ["check"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("perf-changelog.yaml"), "{}", stderr(&output));
}

#[test]
fn a_huge_changelog_in_a_commit_is_refused_without_reading_it() {
    let folder = repository();
    let file = std::fs::File::create(folder.path().join(CHANGELOG)).expect("a file");
    file.set_len(600 << 20).expect("a sparse file");
    git(
        folder.path(),
        &[
            "-c",
            "core.bigFileThreshold=1m",
            "-c",
            "core.compression=1",
            "add",
            CHANGELOG,
        ],
    );
    git(folder.path(), &["commit", "-qm", "Huge"]);
    let output = bounded(
        folder.path(),
        &["plan", "--base-ref", "HEAD~1", "--head-ref", "HEAD"],
        Stdio::null(),
    );
    assert!(said(&output).contains("larger than 64 MiB"), "{}", stderr(&output));
}

/// A file that every part of a checkout may be replaced by a link to, and what none of it may print.
const ELSEWHERE: &str = "https://user:of-this-machine@example.com\n";

#[test]
fn a_link_in_the_work_tree_shows_nothing_of_where_it_leads() {
    for (path, args) in [
        (MASTER, &["check"][..]),
        (MASTER, &["generate", "full-sweep"]),
        (MASTER, &["plan", "--latest"]),
        (CHANGELOG, &["check"]),
        ("configs/runners.yaml", &["generate", "full-sweep"]),
    ] {
        let folder = repository();
        log(folder.path(), &entry("alpha-mi-vllm-fp8", ""));
        write(folder.path(), "elsewhere", ELSEWHERE);
        let link = folder.path().join(path);
        std::fs::remove_file(&link).expect("a file");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &link).expect("a link");
        let output = run(folder.path(), args);
        let all = stdout(&output) + &stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{path} {args:?}: {all}");
        assert!(all.contains(&format!("`{path}` is a symbolic link")), "{all}");
        assert!(!all.contains("of-this-machine"), "{all}");
    }
    // A folder that leads elsewhere is no better.
    let folder = repository();
    let configs = folder.path().join("configs");
    std::fs::rename(&configs, folder.path().join("elsewhere")).expect("moved");
    std::os::unix::fs::symlink("elsewhere", &configs).expect("a link");
    let output = run(folder.path(), ["generate", "full-sweep"]);
    assert!(
        stderr(&output).contains("`configs` is a symbolic link"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn no_hint_is_a_command_that_runs_what_a_ref_says() {
    let folder = repository();
    for (name, fetch) in [
        ("--upload-pack=id", false),
        ("$(touch x)", false),
        ("a;b", false),
        ("@{-9}", false),
        ("feature/one", true),
    ] {
        let base = format!("--base-ref={name}");
        let output = run(folder.path(), ["plan", &base, "--head-ref", "HEAD"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.contains("git fetch"), fetch, "{name}: {said}");
    }
}

#[test]
fn many_unknown_fields_and_runners_are_told_once_each_within_the_limit() {
    let fields: String = (0..50_000).map(|n| format!("  field-{n}: 1\n")).collect();
    assert!(refused(format!("k:\n{fields}")).contains("more problems than the 100"));
    let folder = folder();
    let labels: String = (0..5000).map(|n| format!("  label-{n}: [node-{n}]\n")).collect();
    edit(
        folder.path(),
        "configs/runners.yaml",
        "labels:\n",
        &format!("labels:\n{labels}"),
    );
    let one = |n: u64| config("{ tp: 8, conc-list: [16] }").replacen("a-b:", &format!("a-{n}:"), 1);
    let configs: String = (0..300).map(one).collect();
    write(
        folder.path(),
        "configs/amd-master.yaml",
        configs.replace("runner: mi", "runner: labbel"),
    );
    let said = said(&bounded(folder.path(), &["check"], Stdio::null()));
    assert!(said.contains("more configs have no label and no runner"), "{said}");
}
