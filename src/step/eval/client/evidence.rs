//! What a program leaves besides its report, as one archive.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

use crate::step::stage;

/// The largest file that is kept, in bytes; a larger one is named in `left-out.txt`.
const MAX_FILE: u64 = 256 << 20;

/// Packs a folder into `<name>_artifacts.tar.gz`, and removes it. Links and special files stay out.
///
/// # Errors
/// A folder that cannot be read or written.
pub(super) fn pack(work: &Path, out: &Path, name: &str) -> io::Result<()> {
    let found = stage::find(work, &["*"], true);
    let mut left_out: Vec<String> = found.refused.iter().map(|problem| problem.message.clone()).collect();
    archive(out, name, |tar| {
        for path in &found.files {
            let inner = path.strip_prefix(work).unwrap_or(path);
            let mut file = stage::open(path)?;
            let length = file.metadata()?.len();
            if length > MAX_FILE {
                left_out.push(format!("{}: {length} bytes", inner.display()));
                continue;
            }
            tar.append_file(inner, &mut file)?;
        }
        match left_out.is_empty() {
            true => Ok(()),
            false => append(tar, "left-out.txt", &(left_out.join("\n") + "\n")),
        }
    })?;
    match std::fs::remove_dir_all(work) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Packs one text.
///
/// # Errors
/// As [`pack`].
pub(super) fn pack_text(file: &str, text: &str, out: &Path, name: &str) -> io::Result<()> {
    archive(out, name, |tar| append(tar, file, text))
}

type Tar<'f> = Builder<GzEncoder<&'f mut File>>;

fn archive(out: &Path, name: &str, fill: impl FnOnce(&mut Tar<'_>) -> io::Result<()>) -> io::Result<()> {
    let file = format!("{}_artifacts.tar.gz", name.replace('-', "_"));
    stage::write_into(out, &file, |file| {
        let mut tar = Builder::new(GzEncoder::new(file, Compression::default()));
        tar.follow_symlinks(false);
        fill(&mut tar)?;
        tar.into_inner()?.finish()?.flush()
    })
    .map(drop)
}

fn append(tar: &mut Tar<'_>, name: &str, text: &str) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, text.as_bytes())
}
