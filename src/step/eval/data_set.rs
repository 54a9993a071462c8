//! The data sets of an eval's task, and whether this host has them: without them an eval under HF_HUB_OFFLINE cannot run.
//!
//! The rules are those of the Python library `datasets` 5.2: what it loads from files of any kind by a builder's name, and
//! where it keeps what it fetched (`load.py`, `naming.py`, `config.py`).

use std::path::{Path, PathBuf};

use super::job::Job;
use crate::config::source::Source;
use crate::config::tree::{self, Node, Value};

/// The builders of files that stand beside a task: nothing of them is fetched.
const BUILDERS: [&str; 14] = [
    "arrow",
    "audiofolder",
    "csv",
    "hdf5",
    "imagefolder",
    "json",
    "lance",
    "pandas",
    "parquet",
    "pdffolder",
    "text",
    "videofolder",
    "webdataset",
    "xml",
];
/// How many files a task includes, one the next.
const MAX_INCLUDES: usize = 8;
/// What `datasets` takes for yes.
const YES: [&str; 4] = ["1", "ON", "TRUE", "YES"];

/// The first data set of a task's file that has to be fetched, where a job's variables forbid that.
#[must_use]
pub(super) fn kept_away(task: &Path, job: &Job) -> Option<String> {
    let offline = job.text("HF_HUB_OFFLINE").unwrap_or_default().to_ascii_uppercase();
    if !YES.contains(&offline.as_str()) {
        return None;
    }
    let cache = cache(job);
    let folder = task.parent().unwrap_or(Path::new(""));
    of_task(task, MAX_INCLUDES).into_iter().find(|name| {
        let is_file = BUILDERS.contains(&name.as_str()) || name.starts_with(['/', '.']) || folder.join(name).exists();
        !is_file && !cache.as_ref().is_some_and(|cache| is_cached(name, cache))
    })
}

/// What the file of a task, and those that it includes, name as `dataset_path`.
fn of_task(file: &Path, includes: usize) -> Vec<String> {
    let Ok(mut source) = Source::read(file) else {
        return Vec::new();
    };
    // lm-eval's own tag, which the loader of all configs refuses.
    source.text = source.text.replace("!function ", "");
    let Ok(root) = tree::parse(&source) else {
        return Vec::new();
    };
    let (mut names, mut included) = (Vec::new(), Vec::new());
    gather(&root, &mut names, &mut included);
    let folder = file.parent().unwrap_or(Path::new(""));
    for name in included.iter().filter(|_| includes > 0) {
        names.extend(of_task(&folder.join(name), includes - 1));
    }
    names
}

fn gather(node: &Node<'_>, names: &mut Vec<String>, included: &mut Vec<String>) {
    match &node.value {
        Value::Map(entries) => {
            for (key, value) in entries {
                match (key.text(), &value.value) {
                    ("dataset_path", Value::Scalar { text, .. }) => names.push(text.clone().into_owned()),
                    ("include", Value::Scalar { text, .. }) => included.push(text.clone().into_owned()),
                    _ => gather(value, names, included),
                }
            }
        }
        Value::Seq(items) => items.iter().for_each(|item| gather(item, names, included)),
        Value::Scalar { .. } => {}
    }
}

/// Where `datasets` keeps what it prepared.
fn cache(job: &Job) -> Option<PathBuf> {
    let folder = |name: &str| job.text(name).map(PathBuf::from);
    let of_user = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    let home = || folder("HF_HOME").or_else(|| Some(of_user()?.join("huggingface")));
    folder("HF_DATASETS_CACHE").or_else(|| Some(home()?.join("datasets")))
}

/// Whether a data set of the hub was prepared before: `<org>___<name>/<config>/<version>/<hash>/`.
fn is_cached(name: &str, cache: &Path) -> bool {
    let folder = match name.rsplit_once('/') {
        Some((org, name)) => format!("{org}___{}", snake(name)),
        None => snake(name),
    };
    let folders = |at: PathBuf| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(at).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    let configs = folders(cache.join(folder));
    let versions = configs.into_iter().flat_map(folders);
    versions.flat_map(folders).next().is_some()
}

/// `CamelCase` as `snake_case`: `ARCEasy` is `arc_easy`.
fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1);
        let starts_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                let ends_word = before.is_ascii_lowercase() || before.is_ascii_digit();
                ends_word || (before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase))
            });
        if starts_word {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_cache() {
        for (name, folder) in [
            ("gsm8k", "gsm8k"),
            ("SWE-bench_Lite", "swe-bench_lite"),
            ("ARCEasy", "arc_easy"),
            ("MATH500", "math500"),
            ("HumanEval2x", "human_eval2x"),
        ] {
            assert_eq!(snake(name), folder);
        }
    }

    #[test]
    fn what_is_not_there_is_found_through_groups_and_includes() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        let write = |name: &str, text: &str| std::fs::write(at.join(name), text).expect("a file");
        write("base.yaml", "dataset_path: org/BaseSet\n");
        write("task.yaml", "task: a\ninclude: base.yaml\ndoc_to_text: !function x.y\n");
        write(
            "group.yaml",
            "group: g\ntask: [{task: b, dataset_path: json}, {task: c, dataset_path: org/other}]\n",
        );
        write("loop.yaml", "task: l\ninclude: loop.yaml\n");
        let offline = |more: &[(&str, &str)], name: &str| {
            let standard = [("HF_HUB_OFFLINE", "1"), ("HOME", "/nowhere")];
            let all = standard
                .iter()
                .chain(more)
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
            kept_away(&at.join(name), &Job::new(None, all))
        };
        assert_eq!(offline(&[], "task.yaml").as_deref(), Some("org/BaseSet"));
        assert_eq!(offline(&[], "group.yaml").as_deref(), Some("org/other"));
        assert_eq!(offline(&[("HF_HUB_OFFLINE", "0")], "task.yaml"), None);
        assert_eq!(offline(&[], "loop.yaml"), None);
        assert_eq!(offline(&[], "none.yaml"), None);
        let home = at.display().to_string();
        let cached = at.join("datasets/org___base_set/main");
        std::fs::create_dir_all(&cached).expect("folders");
        assert!(offline(&[("HF_HOME", &home)], "task.yaml").is_some(), "fetched in part");
        std::fs::create_dir_all(cached.join("0.0.0/abc")).expect("folders");
        assert_eq!(offline(&[("HF_HOME", &home)], "task.yaml"), None);
        assert!(offline(&[("HF_HOME", "/nowhere")], "task.yaml").is_some());
    }
}
