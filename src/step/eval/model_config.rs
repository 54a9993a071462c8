//! A model's native maximum length, from its `config.json`.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::job::Job;
use crate::config::problem::Problem;

/// The native maximum where no config can be read, in tokens.
pub(crate) const FALLBACK: u64 = 16_384;
/// Where a container mounts its checkpoint.
pub(crate) const MOUNT: &str = "/model";
/// The names that engines' configs give to it; the first that is there counts.
const NAMES: [&str; 4] = [
    "max_position_embeddings",
    "max_sequence_length",
    "seq_length",
    "n_positions",
];
/// The largest config that is read, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The native maximum, and the file that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Native {
    /// In tokens.
    pub tokens: u64,
    /// The file.
    pub file: PathBuf,
}

/// Looks in MODEL_PATH, in MODEL where it is a folder, in `mount`, and in the hub's cache.
///
/// # Errors
/// No config there that names a length: a problem that says where it was looked for, and what is taken instead.
pub(crate) fn native(job: &Job, mount: &Path) -> Result<Native, Problem> {
    let mut tried = Vec::new();
    for file in candidates(job, mount) {
        match read(&file) {
            Ok(tokens) => return Ok(Native { tokens, file }),
            Err(why) => tried.push(format!("{}: {why}", file.display())),
        }
    }
    let model = job.text("MODEL");
    let model = model.map_or_else(
        || "a model that MODEL does not name".to_owned(),
        |model| format!("`{model}`"),
    );
    if tried.is_empty() {
        tried.push("there is no MODEL_PATH, no /model, and no copy in the hub's cache".to_owned());
    }
    Err(Problem::file(
        "",
        format!(
            "the native length of {model} is unknown, {FALLBACK} is taken ({})",
            tried.join("; ")
        ),
    )
    .hint("set MODEL to the model's name, MODEL_PATH to the checkpoint's folder, or EVAL_MAX_MODEL_LEN to the length"))
}

fn candidates(job: &Job, mount: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    folders.extend(job.text("MODEL_PATH").map(PathBuf::from));
    let model = job.text("MODEL");
    folders.extend(model.map(PathBuf::from).filter(|path| path.is_dir()));
    folders.push(mount.to_owned());
    let mut files: Vec<PathBuf> = folders.iter().map(|folder| folder.join("config.json")).collect();
    files.extend(model.and_then(|model| cached(&hub(job)?, model)));
    files.retain(|file| file.exists());
    files
}

/// The hub's cache: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub.
fn hub(job: &Job) -> Option<PathBuf> {
    let home = || Some(PathBuf::from(job.text("HOME")?).join(".cache/huggingface"));
    match job.text("HF_HUB_CACHE") {
        Some(cache) => Some(cache.into()),
        None => Some(job.text("HF_HOME").map(PathBuf::from).or_else(home)?.join("hub")),
    }
}

/// `models--org--name/snapshots/<revision>/config.json`: of the revision that `refs/main` names, else of the newest.
fn cached(hub: &Path, model: &str) -> Option<PathBuf> {
    if model
        .split('/')
        .any(|part| part.is_empty() || part == "." || part == "..")
    {
        return None;
    }
    let folder = hub.join(format!("models--{}", model.replace('/', "--")));
    let snapshots = folder.join("snapshots");
    let config = |revision: &str| Some(snapshots.join(revision).join("config.json")).filter(|file| file.exists());
    let main = std::fs::read_to_string(folder.join("refs/main")).unwrap_or_default();
    let main = main.trim();
    let named = (!main.is_empty() && main.bytes().all(|b| b.is_ascii_alphanumeric())).then(|| config(main));
    named.flatten().or_else(|| {
        let modified = |file: &PathBuf| file.metadata().and_then(|m| m.modified()).ok();
        let revisions = std::fs::read_dir(&snapshots).ok()?.flatten();
        revisions
            .filter_map(|entry| config(entry.file_name().to_str()?))
            .max_by_key(|file| (modified(file), file.clone()))
    })
}

fn read(file: &Path) -> Result<u64, String> {
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text))
        .map_err(|error| error.to_string())?;
    let config: Value = serde_json::from_str(&text).map_err(|error| format!("no JSON: {error}"))?;
    length(&config)
        .or_else(|| length(&config["text_config"]))
        .ok_or_else(|| format!("none of {}", NAMES.join(", ")))
}

fn length(config: &Value) -> Option<u64> {
    NAMES.iter().find_map(|name| config[*name].as_u64().filter(|n| *n > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: &Path, text: &str) {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
        std::fs::write(file, text).expect("a file");
    }

    fn job(pairs: &[(&str, &Path)]) -> Job {
        let text = |path: &Path| path.display().to_string();
        Job::new(None, pairs.iter().map(|(n, p)| ((*n).to_owned(), text(p))))
    }

    #[test]
    fn sources_are_asked_in_order_and_a_bad_one_is_passed_over() {
        let root = tempfile::tempdir().expect("a folder");
        let at = |name: &str| root.path().join(name);
        write(&at("path/config.json"), "{not json");
        write(&at("mount/config.json"), r#"{"text_config": {"n_positions": 4096}}"#);
        let both = job(&[("MODEL_PATH", &at("path"))]);
        assert_eq!(native(&both, &at("mount")).expect("the mount's").tokens, 4096);
        write(
            &at("path/config.json"),
            r#"{"seq_length": 8192, "max_position_embeddings": 131072}"#,
        );
        assert_eq!(native(&both, &at("mount")).expect("the path's").tokens, 131_072);
        write(&at("local/config.json"), r#"{"max_sequence_length": 2048}"#);
        let local = job(&[("MODEL", &at("local"))]);
        assert_eq!(native(&local, &at("mount")).expect("the folder's").tokens, 2048);
    }

    #[test]
    fn the_hub_cache_prefers_main() {
        let root = tempfile::tempdir().expect("a folder");
        let model = root.path().join("models--org--name");
        write(&model.join("snapshots/aaa/config.json"), r#"{"n_positions": 1}"#);
        write(&model.join("snapshots/bbb/config.json"), r#"{"n_positions": 2}"#);
        write(&model.join("refs/main"), "aaa\n");
        let job = job(&[("MODEL", Path::new("org/name")), ("HF_HUB_CACHE", root.path())]);
        let nowhere = root.path().join("none");
        assert_eq!(native(&job, &nowhere).expect("main's").tokens, 1);
        write(&model.join("refs/main"), "../../outside");
        assert!(native(&job, &nowhere).expect("one of them").file.starts_with(&model));
    }

    #[test]
    fn nothing_readable_names_the_fallback() {
        let root = tempfile::tempdir().expect("a folder");
        let job = job(&[("MODEL", Path::new("../etc")), ("HOME", root.path())]);
        let problem = native(&job, root.path()).expect_err("no config");
        assert!(problem.message.contains("16384"), "{}", problem.message);
    }
}
