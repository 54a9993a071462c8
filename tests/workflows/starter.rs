//! The starter of a repository that adopts sweepctl.

use super::snapshot;
use crate::support::{commit, git, json, project, run, stderr, stdout, write};

/// Every file under a folder, by its path from there.
fn listing(root: &std::path::Path) -> Vec<String> {
    let mut open = vec![root.to_path_buf()];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.push(
                    path.strip_prefix(root)
                        .expect("a path under the root")
                        .display()
                        .to_string(),
                );
            }
        }
    }
    files.sort();
    files
}

/// The text, with the steps that differ by a number only told once.
fn shortened(text: &str) -> String {
    let mut out = String::new();
    let mut skipping = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let number = line
            .trim_start()
            .strip_prefix("- name: Fetch ")
            .and_then(|n| n.parse::<usize>().ok());
        match (number, skipping) {
            (Some(0) | None, None) => {}
            (Some(1), None) => {
                out.push_str(&format!("{}# and so on\n", " ".repeat(indent)));
                skipping = Some(indent);
                continue;
            }
            (Some(_), _) => continue,
            (None, Some(at)) if indent > at => continue,
            (None, Some(_)) => skipping = None,
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

#[test]
fn the_starter_is_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), ["init"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let library = stdout(&run(folder.path(), ["shell-library"]));
    let files = listing(folder.path());
    let mut text = files.join("\n") + "\n";
    for file in files.iter().filter(|file| !file.ends_with(".schema.json")) {
        let content = std::fs::read_to_string(folder.path().join(file)).expect("a file");
        let is_copy = std::fs::read_to_string(project().join(file)).is_ok_and(|own| own == content);
        let shown = if is_copy {
            "the project's own\n".to_owned()
        } else if content == library {
            "what `sweepctl shell-library` prints\n".to_owned()
        } else {
            shortened(&content)
        };
        text.push_str(&format!("\n======== {file}\n{shown}"));
    }
    snapshot("workflows_starter", &text);
}

/// Straight from `init` to a plan, without touching a file.
#[test]
fn the_starter_checks_renders_and_plans() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    git(root, &["init", "-q"]);
    commit(root, "Start");
    assert!(run(root, ["init", "."]).status.success());
    commit(root, "Adopt sweepctl");
    for command in [&["check"][..], &["render", "--check"], &["workflow", "check"]] {
        let output = run(root, command);
        assert!(
            output.status.success(),
            "{command:?}: {}{}",
            stdout(&output),
            stderr(&output)
        );
    }
    let plan = json(root, ["plan", "--latest"]);
    let rows = plan["single_node"]["8k1k"].as_array().expect("rows").len();
    assert_eq!((rows, plan["evals"].as_array().expect("rows").len()), (2, 1), "{plan}");
}

/// What is not this tool's is not held to its rules, unless it is asked for by name.
#[test]
fn a_workflow_of_ones_own_may_stay_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let own = ".github/workflows/mine.yml";
    let text =
        "on: push\njobs:\n  a:\n    runs-on: x\n    needs: nobody\n    steps:\n    - uses: actions/checkout@v4\n";
    write(root, own, text);
    assert!(run(root, ["init", "."]).status.success());
    for command in [&["render", "--check"][..], &["workflow", "check"]] {
        let output = run(root, command);
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    }
    let named = run(root, ["workflow", "check", own]);
    assert_eq!(named.status.code(), Some(1));
    assert!(stderr(&named).contains("mine.yml"), "{}", stderr(&named));
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    write(root, "configs/runners.yaml", "labels: { mine: [mine_0] }\n");
    write(root, ".github/workflows/lint.yml", "on: push\n");
    let said = json(root, ["init", "--json"]);
    let outcome = |path: &str| {
        let lines = said.as_array().expect("a list");
        let line = lines
            .iter()
            .find(|line| line["file"] == path)
            .unwrap_or_else(|| panic!("{path} is not told"));
        line["outcome"].as_str().expect("a word").to_owned()
    };
    assert_eq!(outcome("configs/runners.yaml"), "kept");
    // What runs on the starter's own runners is no use beside others.
    for name in ["starter-master.yaml", "clusters.yaml"] {
        assert!(!root.join("configs").join(name).exists(), "{name}");
    }
    assert_eq!(outcome("configs/labels.yaml"), "written");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("a file");
    assert_eq!(read("configs/runners.yaml"), "labels: { mine: [mine_0] }\n");
    assert!(read("configs/workflows.yaml").contains("unmanaged: [\"lint.yml\"]"));
    let before = listing(root);
    let again = json(root, ["init", "--json"]);
    assert!(
        again
            .as_array()
            .expect("a list")
            .iter()
            .all(|line| line["outcome"] == "kept"),
        "{again}"
    );
    assert_eq!(listing(root), before);
}

#[test]
fn the_first_sweep_is_written_beside_runners_that_have_its_own() {
    let first = ["configs/starter-master.yaml", "configs/clusters.yaml"];
    for (runners, wanted) in [
        ("labels: { mine: [mine_0], local: [local_1, local_0] }\n", true),
        ("labels: { local: [local_1] }\n", false),
        ("labels: { other: [local_0] }\n", false),
        ("labels: [\n", false),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        write(root, "configs/runners.yaml", runners);
        json(root, ["init", "--json"]);
        for path in first {
            assert_eq!(root.join(path).exists(), wanted, "{path} beside {runners}");
        }
        if wanted {
            let checked = run(root, ["check"]);
            assert!(checked.status.success(), "{}", stderr(&checked));
        }
    }
}

#[test]
fn links_are_not_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink(outside.path(), folder.path().join("configs")).expect("a link");
    let target = outside.path().join("stolen");
    std::os::unix::fs::symlink(&target, folder.path().join("perf-changelog.yaml")).expect("a link");
    let output = run(folder.path(), ["init"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("out of the repository"), "{}", stderr(&output));
    assert_eq!(listing(outside.path()), Vec::<String>::new());
}

/// A repository that moves here has workflows of the same names: nothing is half adopted.
#[test]
fn workflows_of_the_same_names_are_replaced_only_when_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let own = "on: push\njobs:\n  a:\n    runs-on: x\n    steps: [{ run: a }]\n";
    for name in ["run-sweep", "collect-evals", "lint"] {
        write(root, &format!(".github/workflows/{name}.yml"), own);
    }
    let before = listing(root);
    let refused = run(root, ["init"]);
    assert_eq!(refused.status.code(), Some(1));
    for part in [
        "run-sweep.yml` (5 lines) is there",
        "collect-evals.yml` (5 lines)",
        "--replace",
    ] {
        assert!(stderr(&refused).contains(part), "{part}: {}", stderr(&refused));
    }
    assert!(!stderr(&refused).contains("lint.yml"), "{}", stderr(&refused));
    assert_eq!(listing(root), before, "nothing was written");

    // What a link leads to stays.
    let outside = tempfile::tempdir().expect("a folder");
    write(outside.path(), "theirs.yml", own);
    std::fs::remove_file(root.join(".github/workflows/collect-evals.yml")).expect("a file");
    std::os::unix::fs::symlink(
        outside.path().join("theirs.yml"),
        root.join(".github/workflows/collect-evals.yml"),
    )
    .expect("a link");
    let said = json(root, ["init", "--replace", "--json"]);
    let library = root.join("benchmarks/benchmark_lib.sh");
    let printed = stdout(&run(root, ["shell-library"]));
    let replaced: Vec<&str> = said
        .as_array()
        .expect("a list")
        .iter()
        .filter(|line| line["outcome"] == "replaced")
        .map(|line| line["file"].as_str().expect("a path"))
        .collect();
    assert_eq!(
        replaced,
        [".github/workflows/run-sweep.yml", ".github/workflows/collect-evals.yml"]
    );
    assert_eq!(std::fs::read_to_string(&library).expect("a file"), printed);

    // A shell library of its own stays until it is asked for, and is then this one.
    write(root, "benchmarks/benchmark_lib.sh", "mine\n");
    assert!(run(root, ["init"]).status.success());
    assert_eq!(std::fs::read_to_string(&library).expect("a file"), "mine\n");
    assert!(run(root, ["init", "--replace"]).status.success());
    assert_eq!(std::fs::read_to_string(&library).expect("a file"), printed);
    assert_eq!(
        std::fs::read_to_string(outside.path().join("theirs.yml")).expect("a file"),
        own
    );
    assert_eq!(
        std::fs::read_to_string(root.join(".github/workflows/lint.yml")).expect("a file"),
        own
    );
    for command in [&["check"][..], &["render", "--check"], &["workflow", "check"]] {
        let output = run(root, command);
        assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    }
    // A file that settings of one's own do not name would fail `render --check`.
    write(root, ".github/workflows/new.yml", own);
    let refused = run(root, ["init"]);
    assert!(
        stderr(&refused).contains("nothing renders `.github/workflows/new.yml`"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn what_is_not_this_tools_is_neither_checked_nor_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let own = "on: push\njobs:\n  a:\n    runs-on: x\n    needs: nobody\n    steps:\n    - uses: actions/checkout@v4\n";
    write(root, ".github/workflows/mine.yml", own);
    let action = ".github/actions/mine/action.yml";
    write(
        root,
        action,
        "name: a\ndescription: a\nruns:\n  using: composite\n  steps:\n  - uses: actions/cache@v4\n",
    );
    assert!(run(root, ["init"]).status.success());
    let checked = json(root, ["workflow", "check", "--json"]);
    let files: Vec<&str> = checked
        .as_array()
        .expect("a list")
        .iter()
        .map(|line| line["file"].as_str().expect("a path"))
        .collect();
    assert!(
        files.contains(&".github/actions/setup-sweepctl/action.yml"),
        "{files:?}"
    );
    assert!(
        !files.contains(&action) && !files.contains(&".github/workflows/mine.yml"),
        "{files:?}"
    );
    let named = run(root, ["workflow", "check", ".github/workflows/mine.yml"]);
    assert_eq!(named.status.code(), Some(1));
    // What is rendered cannot be set aside.
    let path = "configs/workflows.yaml";
    let text = std::fs::read_to_string(root.join(path)).expect("a file");
    write(root, path, text.replace("[\"mine.yml\"]", "[mine.yml, run-sweep.yml]"));
    let refused = run(root, ["check"]);
    assert!(
        stderr(&refused).contains("`run-sweep.yml` stands in `workflows` too"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn an_example_for_hardware_checks_renders_and_plans() {
    for (hardware, runtime, engine) in [
        ("h100", "docker", "vllm"),
        ("mi355x", "podman", "atom"),
        ("gb200", "docker", "trt"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        git(root, &["init", "-q"]);
        commit(root, "Start");
        let flags = ["--hardware", hardware, "--runtime", runtime, "--engine", engine];
        let output = run(root, [&["init"], &flags[..]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        commit(root, "Adopt sweepctl");
        for command in [&["check"][..], &["render", "--check"], &["workflow", "check"]] {
            let output = run(root, command);
            assert!(output.status.success(), "{command:?}: {}", stderr(&output));
        }
        let plan = json(root, ["plan", "--latest"]);
        let rows = plan["single_node"]["8k1k"].as_array().expect("rows");
        assert!(
            rows.iter()
                .all(|row| row["runner"] == hardware && row["framework"] == engine),
            "{plan}"
        );
        assert_eq!(rows.len(), 2);
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (flags, part) in [
        (
            &["--hardware", "h1000", "--runtime", "docker", "--engine", "vllm"][..],
            "h100",
        ),
        (
            &["--hardware", "h100", "--runtime", "docker", "--engine", "atom"],
            "vllm, sglang, trt",
        ),
        (&["--hardware", "h100"], "--runtime"),
    ] {
        let output = run(folder.path(), [&["init"], flags].concat());
        assert!(
            !output.status.success() && stderr(&output).contains(part),
            "{part}: {}",
            stderr(&output)
        );
    }
    assert_eq!(listing(folder.path()), Vec::<String>::new());
}
