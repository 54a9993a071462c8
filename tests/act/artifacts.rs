//! The stand-ins for the actions keep the rules of the real ones.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{commit, git, project, write};

/// A workspace and a store.
struct Job {
    folder: tempfile::TempDir,
}

impl Job {
    fn new(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["store", "work"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        for file in files {
            write(folder.path(), &format!("work/{file}"), *file);
        }
        Self { folder }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Runs an action with inputs. Gives what it printed, and whether it succeeded.
    fn action(&self, verb: &str, inputs: &[(&str, &str)]) -> (bool, String) {
        let output = Command::new("python3")
            .arg("-IS")
            .arg(project().join("tests/act/actions/artifacts.py"))
            .arg(verb)
            .current_dir(self.at("work"))
            .env("ACT_ARTIFACTS", self.at("store"))
            .envs(inputs.iter().map(|(name, value)| (format!("INPUT_{name}"), value)))
            .output()
            .expect("python3 runs");
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        (output.status.success(), said.into_owned())
    }

    fn upload(&self, name: &str, path: &str, missing: &str) -> (bool, String) {
        self.action(
            "upload",
            &[("NAME", name), ("PATH", path), ("IF_NO_FILES_FOUND", missing)],
        )
    }

    /// What an upload put into the store.
    fn uploaded(&self, name: &str, path: &str) -> Vec<String> {
        let (ok, said) = self.upload(name, path, "error");
        assert!(ok, "{said}");
        tree(&self.at("store").join(name))
    }

    /// What a download put into a new folder.
    fn downloaded(&self, inputs: &[(&str, &str)]) -> Vec<String> {
        let _ = std::fs::remove_dir_all(self.at("work/into"));
        let (ok, said) = self.action("download", &[inputs, &[("PATH", "into")]].concat());
        assert!(ok, "{said}");
        tree(&self.at("work/into"))
    }
}

/// The files below a folder, by their paths, sorted.
pub fn tree(folder: &Path) -> Vec<String> {
    let mut open = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => open.push(path),
                false => files.push(path.strip_prefix(folder).expect("below").display().to_string()),
            }
        }
    }
    files.sort();
    files
}

#[test]
fn a_name_is_legal_and_taken_once() {
    let job = Job::new(&["a.json"]);
    for name in [
        "a:b",
        "a/b",
        "a\\b",
        "a*b",
        "a?b",
        "a\"b",
        "a<b",
        "a>b",
        "a|b",
        "a\nb",
        "a\rb",
        "",
        &"a".repeat(257),
    ] {
        let (ok, said) = job.upload(name, "a.json", "error");
        assert!(
            !ok && said.contains("The artifact name is not valid"),
            "{name:?}: {said}"
        );
    }
    assert_eq!(job.uploaded(&"a".repeat(255), "a.json"), ["a.json"]);
    assert_eq!(job.uploaded("result", "a.json"), ["a.json"]);
    let (ok, said) = job.upload("result", "a.json", "error");
    assert!(!ok && said.contains("already exists on the workflow run"), "{said}");
}

#[test]
fn files_keep_their_paths_below_the_least_common_ancestor() {
    let files = [
        "out/a.json",
        "out/deep/b.json",
        "out/.hidden.json",
        "logs/c.log",
        "top.json",
    ];
    let job = Job::new(&files);
    assert_eq!(job.uploaded("file", "out/deep/b.json"), ["b.json"]);
    assert_eq!(job.uploaded("folder", "out"), ["a.json", "deep/b.json"]);
    assert_eq!(job.uploaded("glob", "out/*.json"), ["a.json"]);
    assert_eq!(job.uploaded("deep", "out/**/*.json"), ["a.json", "deep/b.json"]);
    assert_eq!(
        job.uploaded("several", "out/deep\nlogs/*.log\n"),
        ["logs/c.log", "out/deep/b.json"]
    );
    assert_eq!(job.uploaded("but", "out\n!out/deep/**"), ["a.json"]);
    let absolute = job.at("work/*.json");
    assert_eq!(
        job.uploaded("absolute", absolute.to_str().expect("a path")),
        ["top.json"]
    );
}

#[test]
fn nothing_found_is_what_the_input_says() {
    let job = Job::new(&["a.json"]);
    let (ok, said) = job.upload("one", "*.txt", "error");
    assert!(!ok && said.contains("::error::No files were found"), "{said}");
    let (ok, said) = job.upload("one", "*.txt", "warn");
    assert!(ok && said.contains("::warning::No files were found"), "{said}");
    let (ok, said) = job.upload("one", "*.txt", "ignore");
    assert!(ok && !said.contains("::"), "{said}");
    assert_eq!(tree(&job.at("store")), Vec::<String>::new());
    assert!(!job.upload("one", "a.json", "maybe").0);
}

#[test]
fn downloads_come_by_name_or_pattern() {
    let job = Job::new(&["a.json", "b.json", "c.json"]);
    for (name, file) in [("bmk_a", "a.json"), ("bmk_b", "b.json"), ("eval_c", "c.json")] {
        job.uploaded(name, file);
    }
    assert_eq!(job.downloaded(&[("NAME", "bmk_a")]), ["a.json"]);
    let (ok, said) = job.action("download", &[("NAME", "bmk_x"), ("PATH", "into")]);
    assert!(!ok && said.contains("Artifact not found for name: bmk_x"), "{said}");
    write(&job.at("store-77"), "bmk_x/x.json", "");
    assert_eq!(job.downloaded(&[("NAME", "bmk_x"), ("RUN_ID", "77")]), ["x.json"]);
    assert_eq!(job.downloaded(&[]), ["bmk_a/a.json", "bmk_b/b.json", "eval_c/c.json"]);
    assert_eq!(
        job.downloaded(&[("PATTERN", "bmk_*")]),
        ["bmk_a/a.json", "bmk_b/b.json"]
    );
    let merged = [("PATTERN", "bmk_*"), ("MERGE_MULTIPLE", "true")];
    assert_eq!(job.downloaded(&merged), ["a.json", "b.json"]);
    assert_eq!(
        job.downloaded(&[("PATTERN", "eval_*")]),
        ["c.json"],
        "one match is unpacked flat"
    );
    assert_eq!(job.downloaded(&[("PATTERN", "x_*")]), Vec::<String>::new());
}

#[test]
fn a_thousand_artifacts_are_listed() {
    let job = Job::new(&[]);
    for number in 0..1001 {
        write(&job.at("store"), &format!("bmk_{number}/a.json"), "");
    }
    assert_eq!(job.downloaded(&[("PATTERN", "bmk_*")]).len(), 1000);
}

#[test]
fn a_checkout_cleans_its_own_clone_and_replaces_anything_else() {
    let job = Job::new(&["stale.json"]);
    let origin = job.at("origin");
    write(&origin, "kept.txt", "1");
    git(&origin, &["init", "-q"]);
    let first = commit(&origin, "First");
    write(&origin, "kept.txt", "2");
    let second = commit(&origin, "Second");
    let checkout = |reference: &str, clean: &str, depth: &str| {
        let output = Command::new("bash")
            .arg(project().join("tests/act/actions/checkout/checkout.sh"))
            .env("ACT_ORIGIN", &origin)
            .env("GITHUB_WORKSPACE", job.at("work"))
            .env("GITHUB_OUTPUT", job.at("outputs"))
            .envs([("INPUT_REF", reference), ("INPUT_CLEAN", clean), ("INPUT_DEPTH", depth)])
            .envs([("INPUT_PATH", "."), ("INPUT_PERSIST", "false")])
            .output()
            .expect("bash runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut files = tree(&job.at("work"));
        files.retain(|file| !file.starts_with(".git/"));
        files
    };
    let text = || std::fs::read_to_string(job.at("work/kept.txt")).expect("a file");
    assert_eq!(
        checkout(&first, "false", "1"),
        ["kept.txt"],
        "no clone of ours: everything goes"
    );
    assert_eq!(text(), "1");
    write(&job.at("work"), "stale.json", "");
    assert_eq!(checkout(&second, "false", "1"), ["kept.txt", "stale.json"]);
    assert_eq!(text(), "2");
    assert_eq!(git(&job.at("work"), &["rev-list", "--count", "HEAD"]), "1");
    assert_eq!(checkout("main", "true", "0"), ["kept.txt"]);
    assert_eq!(git(&job.at("work"), &["rev-list", "--count", "HEAD"]), "2");
    let outputs = std::fs::read_to_string(job.at("outputs")).expect("outputs");
    assert_eq!(outputs, format!("commit={first}\ncommit={second}\ncommit={second}\n"));
}
