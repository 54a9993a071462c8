//! Logs on their way out of a job: no copy of one shows a secret.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::stage;
use crate::secrets::Mask;

/// The most bytes that a compressed log may hold (4 GiB); more is no log, or was made to fill a disk.
const MAX_UNPACKED: u64 = 4 << 30;

/// How a log is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Text.
    Plain,
    /// One text, compressed.
    Gzip,
    /// Several files in one, compressed together: each keeps its place and its length.
    TarGzip,
    /// Several files in one, each compressed alone.
    Zip,
}

impl Form {
    /// The form of a file, by its name; `None` for what is no log.
    fn of(name: &str) -> Option<Self> {
        let ends = |end: &str| name.ends_with(end);
        match () {
            () if [".log", ".out", ".err"].iter().any(|end| ends(end)) => Some(Self::Plain),
            () if ends(".log.gz") => Some(Self::Gzip),
            () if ends(".tar.gz") && name.contains("server_logs") => Some(Self::TarGzip),
            () if ends(".zip") && name.contains("server_logs") => Some(Self::Zip),
            () => None,
        }
    }
}

/// Copies a file into a folder as [`stage::copy_into`] does; a log without what the mask hides.
///
/// # Errors
/// As [`stage::copy_into`], and a log that cannot be looked into.
pub(crate) fn copy_into(file: &Path, folder: &Path, name: &str, mask: &Mask) -> io::Result<PathBuf> {
    let Some(form) = Form::of(name).filter(|_| !mask.is_empty()) else {
        return stage::copy_into(file, folder, name);
    };
    let mut from = stage::open(file)?;
    stage::write_into(folder, name, |to| match form {
        Form::Plain => {
            let mut to = BufWriter::new(to);
            mask.copy(&mut from, &mut to, false)?;
            to.flush()
        }
        Form::Gzip => repack(from, to, mask, false),
        Form::TarGzip => repack(from, to, mask, true),
        Form::Zip => Err(io::Error::other(
            "a zip file cannot be looked into for secrets; leave the logs plain, or as .tar.gz",
        )),
    })
}

fn repack(from: File, to: &mut File, mask: &Mask, in_place: bool) -> io::Result<()> {
    let unpacked = MultiGzDecoder::new(BufReader::new(from));
    let mut bounded = unpacked.take(MAX_UNPACKED);
    let mut packed = GzEncoder::new(BufWriter::new(to), Compression::fast());
    mask.copy(&mut bounded, &mut packed, in_place)?;
    if bounded.limit() == 0 {
        return Err(io::Error::other(format!("it holds more than {MAX_UNPACKED} bytes")));
    }
    packed.finish()?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "hub-token-123";

    fn copied(name: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).expect("a file");
        let out = folder.path().join("out");
        std::fs::create_dir(&out).expect("a folder");
        let copy = copy_into(&file, &out, name, &Mask::new(&[SECRET]))?;
        std::fs::read(copy)
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes).expect("bytes");
        packed.finish().expect("bytes")
    }

    fn unpacked(bytes: &[u8]) -> String {
        let mut text = String::new();
        MultiGzDecoder::new(bytes).read_to_string(&mut text).expect("text");
        text
    }

    #[test]
    fn logs_are_cleaned_in_every_form_and_results_stay_as_they_are() {
        let text = format!("a {SECRET}\n\n b");
        for name in ["x.log", "slurm-1.out", "slurm-1.err"] {
            assert_eq!(copied(name, text.as_bytes()).expect(name), b"a ***\n\n b");
        }
        assert_eq!(
            unpacked(&copied("x.log.gz", &packed(text.as_bytes())).expect("a log")),
            "a ***\n\n b"
        );
        let members = [packed(text.as_bytes()), packed(SECRET.as_bytes())].concat();
        let shown = unpacked(&copied("x_server_logs.tar.gz", &members).expect("logs"));
        assert_eq!(shown, format!("a {}\n\n b{}", "*".repeat(13), "*".repeat(13)));
        assert!(copied("server_logs.zip", b"PK").is_err());
        assert!(copied("x.log.gz", b"no gzip").is_err());
        assert_eq!(
            copied("results.json", text.as_bytes()).expect("results"),
            text.as_bytes()
        );
    }
}
