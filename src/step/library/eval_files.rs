//! The files of a script's eval: their description, and their way to where workflows gather them.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::config::problem::{Problem, Problems};
use crate::files::{self, shown};
use crate::step::eval::job::Job;
use crate::step::eval::meta_env;
use crate::step::eval::parse_concurrency;
use crate::step::stage::{self, EVAL};

/// The largest description that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// What else evals leave.
const ANY: [&str; 1] = ["*.json*"];

/// The concurrencies of a batch, as a script holds them: numbers with spaces between.
#[derive(Debug, Default)]
pub(crate) struct Points {
    /// Those asked for; empty where it was no batch.
    pub all: String,
    /// Those that succeeded.
    pub completed: String,
    /// Those that did not.
    pub failed: String,
}

impl Points {
    /// The keys of the description, with their lists.
    fn keys(&self) -> Result<Vec<(&'static str, Vec<u64>)>, Problem> {
        if self.all.trim().is_empty() {
            return Ok(Vec::new());
        }
        let list = |name, text: &str| match text.trim() {
            "" => Ok((name, Vec::new())),
            text => parse_concurrency(text)
                .map(|points| (name, points))
                .map_err(|why| Problem::file("", why).hint("give positive numbers with spaces between")),
        };
        Ok(vec![
            list("eval_concs", &self.all)?,
            list("completed_eval_concs", &self.completed)?,
            list("failed_eval_concs", &self.failed)?,
        ])
    }
}

/// Writes the description of a job's eval. What the eval itself said of its points and answers stays, unless it is given.
///
/// # Errors
/// Concurrencies that are no numbers, and a file that cannot be written.
pub(crate) fn describe(out: &Path, job: &Job, conc: Option<&str>, points: &Points) -> Result<(), Problem> {
    let (meta, _) = meta_env::of(&job.as_planned());
    let found = read(out).filter(|found| {
        let id = found.get("job_id").and_then(Value::as_str).unwrap_or_default();
        id == job.id
    });
    let mut keys = points.keys()?;
    let concs = conc
        .map(parse_concurrency)
        .transpose()
        .map_err(|why| Problem::file("", why))?;
    let first = keys.first().map(|(_, all)| all.as_slice()).or(concs.as_deref());
    let conc = first.and_then(|all| all.first().copied()).unwrap_or_else(|| {
        let said = found.as_ref().and_then(|found| found.get("conc")?.as_u64());
        said.or(job.number("CONC", 1).ok().flatten()).unwrap_or(1)
    });
    let single = concs.as_ref().is_some_and(|concs| concs.len() == 1);
    if let (true, Some(several)) = (keys.is_empty() && !single, concs) {
        keys.push(("eval_concs", several));
    }
    let written = serde_json::to_value(&meta).unwrap_or_default();
    let mut all = written.as_object().cloned().unwrap_or_default();
    all.insert("conc".to_owned(), json!(conc));
    all.extend(keys.into_iter().map(|(name, points)| (name.to_owned(), json!(points))));
    // What only the eval knew; of a description for one concurrency, no batch.
    for (name, value) in found.into_iter().flatten() {
        let of_a_batch = name.ends_with("eval_concs");
        if all.get(&name).is_none_or(Value::is_null) && !(single && of_a_batch) {
            all.insert(name, value);
        }
    }
    write(out, &all).map_err(|error| {
        let name = shown(out);
        Problem::file(&name, format!("{name} cannot be written: {error}")).hint("free space there")
    })
}

/// The lines of a batch's keys that a launcher pastes into a description.
///
/// # Errors
/// Text that is none.
pub(crate) fn keys(text: &str) -> Result<Points, Problem> {
    let text = text.trim().trim_end_matches(',');
    if text.is_empty() {
        return Ok(Points::default());
    }
    let keys: Map<String, Value> = serde_json::from_str(&format!("{{{text}}}"))
        .map_err(|error| Problem::file("", format!("the keys of the batch are no JSON: {error}")))?;
    let list = |name: &str| -> String {
        let values = keys.get(name).and_then(Value::as_array).into_iter().flatten();
        values.map(Value::to_string).collect::<Vec<_>>().join(" ")
    };
    Ok(Points {
        all: list("eval_concs"),
        completed: list("completed_eval_concs"),
        failed: list("failed_eval_concs"),
    })
}

/// The concurrencies of a batch that its description names.
///
/// # Errors
/// No description, or one without them.
pub(crate) fn points(meta: &Path, completed: bool) -> Result<String, Problem> {
    let name = if completed {
        "completed_eval_concs"
    } else {
        "failed_eval_concs"
    };
    let found = read(meta).and_then(|found| found.get(name)?.as_array().cloned());
    let found = found.ok_or_else(|| Problem::file(&shown(meta), format!("{} names no {name}", shown(meta))))?;
    Ok(found.iter().map(Value::to_string).collect::<Vec<_>>().join(" "))
}

fn read(path: &Path) -> Option<Map<String, Value>> {
    let small = path
        .symlink_metadata()
        .is_ok_and(|m| m.is_file() && m.len() <= MAX_BYTES);
    let text = small.then(|| std::fs::read_to_string(path).ok()).flatten()?;
    serde_json::from_str(&text).ok()
}

fn write(path: &Path, all: &Map<String, Value>) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(format!("{}\n", serde_json::to_string_pretty(all)?).as_bytes())?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(mode)?;
    file.persist(path)?;
    Ok(())
}

/// Moves an eval's files flat into a folder, over files of the same names, and then removes the folder where they lay,
/// unless the other is in it.
///
/// # Errors
/// Files that are no plain ones, or cannot be moved: those stay, and so does the folder.
pub(crate) fn hand_on(from: &Path, to: &Path, remove: bool) -> Result<Vec<PathBuf>, Problems> {
    let inside = holds(from, to);
    // What else lies in a folder that holds the other is none of the eval's.
    let found = stage::find(from, &[&EVAL[..], &ANY].concat(), !inside);
    let mut problems = Problems(found.refused);
    let mut moved = Vec::new();
    for file in found.files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if file.parent().is_some_and(|parent| inside && holds(to, parent)) {
            continue;
        }
        // Of two files of one name in this eval's folders the second is kept beside the first.
        let target = to.join(&name);
        if !moved.contains(&target) && target.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
            let _ = std::fs::remove_file(&target);
        }
        match files::move_into(&file, to, &name) {
            Ok(target) => moved.push(target),
            Err(error) => {
                let problem = Problem::file(&shown(&file), format!("it cannot be staged: {error}"));
                problems.push(problem.hint("it stays where it is"));
            }
        }
    }
    problems.into_result()?;
    let is_folder = from.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
    if remove && is_folder && !inside {
        // What cannot be removed is in nobody's way.
        let _ = std::fs::remove_dir_all(from);
    }
    Ok(moved)
}

/// Whether one folder is, or holds, another.
fn holds(outer: &Path, inner: &Path) -> bool {
    match (outer.canonicalize(), inner.canonicalize()) {
        (Ok(outer), Ok(inner)) => inner.starts_with(outer),
        _ => true,
    }
}
