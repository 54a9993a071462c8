//! What a job of srt-slurm left, brought into the workspace.
//!
//! Its containers write to `/logs`, which on the host is the folder of the job's own log, `outputs/<job id>/logs`:
//! `sa-bench_.../results_concurrency_<n>_....json` of throughput, `agentic_agg/<RESULT_FILENAME>_conc<n>.json` and
//! `agentic/` of replays, `eval_results/` of evals, and the logs of workers and services in folders of their own. All of
//! it passes the same allow-lists as an upload.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use regex::Regex;

use crate::config::master::search_space::Nodes;
use crate::matrix::row::Scenario;
use crate::process::{self, Cancellation};
use crate::secrets::Mask;
use crate::step::eval::meta_env;
use crate::step::launch::backend::Prepared;
use crate::step::launch::outputs::is_fresh;
use crate::step::places::AGENTIC_FOLDER;
use crate::step::results::meta::{self, Owner};
use crate::step::stage::{self, AGENTIC_LEFT_OUT, EVAL, SERVER_LOGS, shown};
use crate::step::upload::{MAX_BYTES, MAX_FILES};

/// The results of srt-slurm's throughput client, one a concurrency.
const THROUGHPUT: [&str; 1] = ["*concurrency_*.json"];
/// The folder of replays' results.
const REPLAY_RESULTS: &str = "agentic_agg";
/// The folder of what replays recorded.
const REPLAYS: &str = "agentic";
/// The folder of evals' results.
const EVALS: &str = "eval_results";
/// The logs that are texts.
const TEXTS: [&str; 3] = ["log", "out", "err"];
/// How long a launch that was told to end still brings files.
const PARTING: Duration = Duration::from_secs(1);
/// How many refused files are named.
const NAMED: usize = 20;

/// What a job left, and where.
pub(super) struct Outputs<'a> {
    /// The job's own log.
    log: &'a Path,
    /// The folder that it lies in.
    folder: &'a Path,
    job: &'a Prepared<'a>,
    mask: &'a Mask,
}

/// A file on its way.
struct Item {
    from: PathBuf,
    /// The folder that it comes to, in the workspace.
    to: PathBuf,
    name: String,
}

impl<'a> Outputs<'a> {
    /// What lies beside a job's own log.
    pub(super) fn of(log: &'a Path, job: &'a Prepared<'a>, mask: &'a Mask) -> Self {
        Self {
            log,
            folder: log.parent().unwrap_or(Path::new("")),
            job,
            mask,
        }
    }

    /// Copies what the job has written `since` into the workspace, results first, and says what was left out. Logs
    /// are copied without secrets.
    pub(super) fn bring(&self, since: SystemTime, cancel: &Cancellation, show: &mut dyn FnMut(&str)) {
        if !self.is_apart() {
            return;
        }
        let started = Instant::now();
        let (items, mut refused) = self.items();
        let (mut count, mut bytes) = (0, 0_u64);
        for item in items.iter().filter(|item| is_fresh(&item.from, since)) {
            bytes = bytes.saturating_add(item.from.symlink_metadata().map_or(0, |m| m.len()));
            if count == MAX_FILES || bytes > MAX_BYTES {
                refused.push(format!("more than {MAX_FILES} files or {MAX_BYTES} bytes"));
                break;
            }
            if cancel.signal().is_some() && started.elapsed() >= PARTING {
                refused.push("what could not be copied in time".to_owned());
                break;
            }
            match self.copy(item).and_then(|to| self.sign(&to)) {
                Ok(()) => count += 1,
                Err(error) => refused.push(format!("{}: {error}", shown(&item.from))),
            }
        }
        show(&format!("launch: brought {count} files from {}", shown(self.folder)));
        for why in refused.iter().take(NAMED) {
            show(&format!("launch: left out {why}"));
        }
        if refused.len() > NAMED {
            show(&format!("launch: left out {} more", refused.len() - NAMED));
        }
    }

    /// Whether the folder is one of the job's own, and not the one that the workspace lies in.
    fn is_apart(&self) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        match (real(self.folder), real(self.job.workspace)) {
            (Some(folder), Some(workspace)) => !workspace.starts_with(folder),
            _ => false,
        }
    }

    /// Every file that is allowed, and why others are not.
    fn items(&self) -> (Vec<Item>, Vec<String>) {
        let (mut items, mut refused) = (Vec::new(), Vec::new());
        let workspace = self.job.workspace;
        let mut take = |found: stage::Found, place: &dyn Fn(&Path) -> Option<(PathBuf, String)>| {
            for from in found.files {
                if let Some((to, name)) = place(&from) {
                    items.push(Item { from, to, name });
                }
            }
            let why = |problem: crate::config::problem::Problem| format!("{}: {}", problem.file, problem.message);
            refused.extend(found.refused.into_iter().map(why));
        };
        let as_it_is = |from: &Path| Some((workspace.to_owned(), file_name(from)));
        take(stage::find(self.folder, &THROUGHPUT, true), &|from| {
            Some((workspace.to_owned(), self.result_name(from)?))
        });
        if matches!(self.job.envelope.row.topology.scenario, Scenario::Agentic(_)) {
            let results = [format!("{}*.json", globset::escape(self.result()))];
            take(self.find(REPLAY_RESULTS, &results, false), &as_it_is);
            let root = self.folder.join(REPLAYS);
            take(self.find(REPLAYS, &["*"], true), &|from| {
                let name = file_name(from);
                let parent = from.strip_prefix(&root).ok()?.parent()?;
                let kept = !AGENTIC_LEFT_OUT.contains(&name.as_str());
                kept.then(|| (workspace.join(AGENTIC_FOLDER).join(parent), name))
            });
        }
        take(self.find(EVALS, &EVAL, false), &as_it_is);
        take(stage::find(self.folder, &SERVER_LOGS, true), &|from| {
            let shown_already = from == self.log || from.starts_with(self.folder.join(REPLAYS));
            as_it_is(from).filter(|_| !shown_already)
        });
        (items, refused)
    }

    /// The allowed files of a folder beside the log. A link in its place leads nowhere.
    fn find<S: AsRef<str>>(&self, name: &str, globs: &[S], deep: bool) -> stage::Found {
        let folder = self.folder.join(name);
        match folder.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => stage::find(&folder, globs, deep),
            _ => stage::Found::default(),
        }
    }

    fn result(&self) -> &str {
        self.job.environment.get("RESULT_FILENAME").unwrap_or_default()
    }

    /// What a throughput result is called in the workspace.
    fn result_name(&self, from: &Path) -> Option<String> {
        static CONC: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"(?:^|_)concurrency_(\d{1,10})[_.]").expect("a constant pattern"));
        let name = file_name(from);
        let conc = &CONC.captures(&name)?[1];
        Some(match self.job.envelope.row.topology.nodes {
            Nodes::Single(_) => format!("{}.json", self.result()),
            Nodes::Multi(_) => format!("{}_conc{conc}.json", self.result()),
        })
    }

    /// Says in the metadata of an eval which job it was of, and what else srt-slurm's own evals do not know. What
    /// contradicts the job stays as it is, and an upload refuses it.
    fn sign(&self, file: &Path) -> std::io::Result<()> {
        if *file != self.job.workspace.join(meta::NAME) {
            return Ok(());
        }
        let var = |name| std::env::var(name).unwrap_or_default();
        let (id, attempt) = (var("GITHUB_RUN_ID"), var("GITHUB_RUN_ATTEMPT"));
        let run = (id.as_str(), attempt.as_str());
        let envelope = self.job.envelope;
        match meta::MetaEnv::read(file) {
            Ok(found) if !matches!(found.owner(envelope, run, Some(true)), Owner::Other(_)) => {
                meta_env::anew(envelope, run, &found).write(self.job.workspace)
            }
            _ => Ok(()),
        }
    }

    fn copy(&self, item: &Item) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(&item.to)?;
        // Its script of schema 1 evaluates in the checkout itself, and copies from there what comes back here.
        let there = item.to.join(&item.name);
        if is_same(&item.from, &there) {
            return Ok(there);
        }
        let is_text = |extension: &std::ffi::OsStr| TEXTS.iter().any(|text| extension == *text);
        if !item.from.extension().is_some_and(is_text) {
            return stage::copy_into(&item.from, &item.to, &item.name);
        }
        let log = stage::open(&item.from)?;
        stage::write_into(&item.to, &item.name, |copy| {
            let mut written = Ok(());
            process::read_lines(log, self.mask, |text| {
                written = copy.write_all(text.as_bytes());
                written.is_ok()
            });
            written
        })
    }
}

/// Whether two plain files hold the same.
fn is_same(one: &Path, other: &Path) -> bool {
    let length = |path: &Path| path.symlink_metadata().ok().filter(|m| m.is_file()).map(|m| m.len());
    let read = |path: &Path| -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        stage::open(path)?.read_to_end(&mut bytes).map(|_| bytes)
    };
    length(one).is_some()
        && length(one) == length(other)
        && matches!((read(one), read(other)), (Ok(one), Ok(other)) if one == other)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
