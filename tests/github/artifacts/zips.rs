//! Archives, right ones and wrong ones.

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn options() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Deflated)
}

/// An archive of files.
pub fn zip<T: AsRef<[u8]>>(files: &[(&str, T)]) -> Vec<u8> {
    made(|writer| {
        for (name, text) in files {
            writer.start_file(*name, options()).expect("a file");
            writer.write_all(text.as_ref()).expect("written");
        }
    })
}

/// An archive with a link.
pub fn with_link(name: &str, to: &str) -> Vec<u8> {
    made(|writer| writer.add_symlink(name, to, options()).expect("a link"))
}

/// An archive with a file of a mode.
pub fn with_mode(name: &str, mode: u32) -> Vec<u8> {
    let archive = zip(&[(name, "x")]);
    // The upper half of the external attributes is the mode; the writer makes regular files only.
    edited(&archive, |entry| {
        let attributes = mode << 16;
        entry[38..42].copy_from_slice(&attributes.to_le_bytes());
    })
}

/// An archive whose file holds more zeros than it says.
pub fn with_false_size(zeros: usize, said: u32) -> Vec<u8> {
    let archive = zip(&[("a.json", vec![0; zeros])]);
    edited(&archive, |entry| entry[24..28].copy_from_slice(&said.to_le_bytes()))
}

/// An archive with one name twice.
pub fn with_name_twice() -> Vec<u8> {
    let archive = zip(&[("a.json", "1"), ("b.json", "2")]);
    let mut twice = archive;
    for at in 0..twice.len() - 6 {
        if &twice[at..at + 6] == b"b.json" {
            twice[at] = b'a';
        }
    }
    twice
}

fn made(write: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    write(&mut writer);
    writer.finish().expect("an archive").into_inner()
}

/// An archive with the first entry of its directory changed.
fn edited(archive: &[u8], edit: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut archive = archive.to_vec();
    let at = archive
        .windows(4)
        .rposition(|bytes| bytes == b"PK\x01\x02")
        .expect("a directory");
    edit(&mut archive[at..]);
    archive
}
