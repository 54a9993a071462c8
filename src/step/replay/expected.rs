//! How long the answers were expected to be: the traces that were replayed, in the cache of the hub.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::picked::{Datum, picked};
use super::records::{Metadata, lines_of};
use crate::step::results::loose::{List, Map};
use crate::step::results::{file, json};

/// What the folders of the data sets in the cache are called.
const DATASETS: &str = "datasets--semianalysisai--cc-traces-weka";

/// Expected lengths by trace and turn.
#[derive(Debug, Default)]
pub(crate) struct Expected(HashMap<String, Vec<i128>>);

picked! {
    /// A trace.
    Trace {
        id: Datum = "id",
        requests: List<Map<Request>> = "requests",
    }
}

picked! {
    /// A request of a trace.
    Request {
        kind: Datum = "type",
        output_length: Datum = "output_length",
        out: Datum = "out",
    }
}

/// The hub's cache: HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else `hub` in HF_HOME, else the user's default. An empty
/// variable is none.
#[must_use]
pub(crate) fn hub_cache(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")));
    path("HF_HUB_CACHE")
        .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
        .or_else(|| path("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| home().map(|cache| cache.join("huggingface").join("hub")))
}

impl Expected {
    /// Reads the newest traces of a hub's cache; none where it holds none. Lines and files that are no JSON are skipped.
    #[must_use]
    pub(crate) fn read(hub: Option<&Path>) -> Self {
        let mut expected = Self::default();
        let Some((data_set, snapshot)) = hub.and_then(newest) else {
            return expected;
        };
        let names = names(&snapshot);
        let ending = |end: &'static str| names.iter().filter(move |name| name.ends_with(end));
        for name in ending(".jsonl") {
            if let Some(file) = open(&snapshot.join(name), &data_set) {
                // A line that is too long, or a disk that fails: what was read so far stands.
                let _ = lines_of(BufReader::with_capacity(1 << 20, file), |line| {
                    expected.add(line);
                    Ok::<(), ()>(())
                });
            }
        }
        for name in ending(".json") {
            let mut bytes = Vec::new();
            let file = open(&snapshot.join(name), &data_set);
            let read = file.map(|file| file.take(file::MAX_BYTES).read_to_end(&mut bytes));
            if let Some(Ok(_)) = read {
                expected.add(&bytes);
            }
        }
        expected
    }

    fn add(&mut self, json: &[u8]) {
        let Ok(Trace {
            id: Datum::Text(id),
            requests,
        }) = json::parse_object::<Trace>(json)
        else {
            return;
        };
        let is_turn = |request: &&Request| matches!(&request.kind, Datum::Text(kind) if kind == "n" || kind == "s");
        let length = |request: &Request| {
            let length = match request.output_length {
                Datum::Missing => &request.out,
                _ => &request.output_length,
            };
            length.count().unwrap_or(0)
        };
        let requests = requests.items().filter_map(|request| request.0.as_ref());
        self.0.insert(id, requests.filter(is_turn).map(length).collect());
    }

    /// The length that a record's turn was expected to have.
    pub(super) fn of(&self, metadata: &Metadata) -> Option<i128> {
        let Datum::Text(conversation) = &metadata.conversation_id else {
            return None;
        };
        let trace = conversation.split("::").next().unwrap_or_default();
        let turn = usize::try_from(metadata.turn_index.count()?).ok()?;
        self.0.get(trace)?.get(turn).copied()
    }
}

/// The data set's folder and its newest snapshot that holds traces.
fn newest(hub: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut found: Option<(SystemTime, PathBuf, PathBuf)> = None;
    let data_sets = folders(hub).into_iter().filter(|path| {
        path.file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(DATASETS.as_bytes()))
    });
    for data_set in data_sets {
        for snapshot in folders(&data_set.join("snapshots")) {
            if !names(&snapshot)
                .iter()
                .any(|name| name.ends_with(".jsonl") || name.ends_with(".json"))
            {
                continue;
            }
            let changed = snapshot.metadata().and_then(|found| found.modified());
            let changed = changed.unwrap_or(SystemTime::UNIX_EPOCH);
            if found.as_ref().is_none_or(|(newest, _, _)| changed > *newest) {
                found = Some((changed, data_set.clone(), snapshot));
            }
        }
    }
    found.map(|(_, data_set, snapshot)| (data_set, snapshot))
}

/// The folders in a folder, sorted.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// The names of what is no folder, sorted; those that are not UTF-8 are no traces.
fn names(path: &Path) -> Vec<String> {
    let listed = file::walk(path, 0).unwrap_or_default();
    let names = listed.iter().flat_map(|folder| &folder.names);
    names.filter_map(|name| name.to_str().map(str::to_owned)).collect()
}

/// Opens a file of a snapshot. The hub's cache keeps files in `blobs/` of the data set and links to them: a link is
/// followed there, and nowhere else.
fn open(path: &Path, data_set: &Path) -> Option<File> {
    let (real, root) = (path.canonicalize().ok()?, data_set.canonicalize().ok()?);
    real.starts_with(root).then(|| file::open(&real).ok()).flatten()
}
