//! Reading a log that grows, and one that is replaced: whole lines, each with its number, bounded in size.

use std::fs::Metadata;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::files;

/// The most bytes that one look reads: of a longer log the end.
const MOST: u64 = 64 << 20;
/// The longest line that is kept, in bytes.
const LINE: usize = 4096;

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Counted from 1 in the file; `None` where the start of the file was passed over.
    pub number: Option<u64>,
    pub text: String,
}

/// A log that is read again and again.
#[derive(Debug)]
pub(super) struct Log {
    pub path: PathBuf,
    /// Which file this is; another one under the name is read from its start.
    identity: Option<(u64, u64)>,
    offset: u64,
    /// The next line's number; `None` from where a part was passed over.
    next: Option<u64>,
    /// What stands behind the last line end.
    rest: Vec<u8>,
    /// When it was written to last.
    pub written: Option<SystemTime>,
    /// How often the file was replaced or cut.
    pub rotations: u32,
}

impl Log {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            identity: None,
            offset: 0,
            next: Some(1),
            rest: Vec::new(),
            written: None,
            rotations: 0,
        }
    }

    /// The lines that were written since the last look. A file that is not there yet has none.
    pub(super) fn read(&mut self) -> io::Result<Vec<Line>> {
        let mut file = match files::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        let metadata = file.metadata()?;
        self.turn(&metadata);
        let size = metadata.len();
        if size.saturating_sub(self.offset) > MOST {
            self.offset = size - MOST;
            self.next = None;
            self.rest.clear();
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = std::mem::take(&mut self.rest);
        let read = file.take(MOST).read_to_end(&mut bytes)?;
        self.offset += u64::try_from(read).unwrap_or(MOST);
        Ok(self.lines(&bytes))
    }

    /// Starts again where the file was replaced or cut.
    fn turn(&mut self, metadata: &Metadata) {
        let identity = (metadata.dev(), metadata.ino());
        let replaced = self.identity.is_some_and(|known| known != identity);
        if replaced || metadata.len() < self.offset {
            self.offset = 0;
            self.next = Some(1);
            self.rest.clear();
            self.rotations += 1;
        }
        self.identity = Some(identity);
        self.written = metadata.modified().ok();
    }

    fn lines(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut parts: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let rest = parts.pop().unwrap_or_default();
        self.rest = rest[..rest.len().min(LINE)].to_vec();
        let mut lines = Vec::with_capacity(parts.len());
        for part in parts {
            let text = String::from_utf8_lossy(&part[..part.len().min(LINE)]);
            lines.push(Line {
                number: self.next,
                text: text.trim_end_matches('\r').to_owned(),
            });
            self.next = self.next.map(|next| next + 1);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn texts(log: &mut Log) -> Vec<(Option<u64>, String)> {
        let lines = log.read().expect("read");
        lines.into_iter().map(|line| (line.number, line.text)).collect()
    }

    #[test]
    fn a_log_grows_is_replaced_and_is_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.log");
        let mut log = Log::new(&path);
        assert!(texts(&mut log).is_empty(), "it is not there yet");
        std::fs::write(&path, "one\ntw").expect("written");
        assert_eq!(
            texts(&mut log),
            [(Some(1), "one".to_owned())],
            "a line without its end waits"
        );
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("open");
        file.write_all(b"o\nthree\n").expect("written");
        assert_eq!(
            texts(&mut log),
            [(Some(2), "two".to_owned()), (Some(3), "three".to_owned())]
        );
        std::fs::rename(&path, folder.path().join("a.log.1")).expect("renamed");
        std::fs::write(&path, "a new file, longer than the old\n").expect("written");
        assert_eq!(
            texts(&mut log),
            [(Some(1), "a new file, longer than the old".to_owned())]
        );
        std::fs::write(&path, "cut\n").expect("written");
        assert_eq!(texts(&mut log), [(Some(1), "cut".to_owned())]);
        assert_eq!(log.rotations, 2);
    }
}
