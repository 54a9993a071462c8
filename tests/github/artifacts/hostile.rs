//! Archives and names that a stranger made.

use super::service::{Artifact, Service};
use super::{arrived, fetch, files, small, state, zips};
use crate::support::{stderr, write};

#[test]
fn no_archive_leaves_its_folder_or_brings_more_than_is_allowed() {
    let deep = format!("{}a.json", "d/".repeat(70));
    let bad: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "up",
            zips::zip(&[("ok.json", "{}"), ("../up.json", "{}")]),
            "is no path inside",
        ),
        ("up-later", zips::zip(&[("a/../../up.json", "{}")]), "is no path inside"),
        (
            "absolute",
            zips::zip(&[("/tmp/sweepctl-test-absolute", "{}")]),
            "is no path inside",
        ),
        ("backslash", zips::zip(&[("..\\up.json", "{}")]), "is no path inside"),
        ("dot", zips::zip(&[("./a.json", "{}")]), "is no path inside"),
        ("deep", zips::zip(&[(deep.as_str(), "{}")]), "is no path inside"),
        (
            "link",
            zips::with_link("a.json", "/etc/passwd"),
            "is a link or a special file",
        ),
        (
            "pipe",
            zips::with_mode("a.json", 0o010_644),
            "is a link or a special file",
        ),
        ("twice", zips::with_name_twice(), "twice"),
        (
            "file-and-folder",
            zips::zip(&[("a", "{}"), ("a/b", "{}")]),
            "cannot be unpacked",
        ),
        ("bomb", zips::zip(&[("a.json", vec![0; 40 << 20])]), "more than 16 MiB"),
        (
            "bombs",
            zips::zip(&[("a.json", vec![0; 9 << 20]), ("b.json", vec![0; 9 << 20])]),
            "more than 16 MiB",
        ),
        (
            "false-size",
            zips::with_false_size(20 << 20, 5),
            "declared uncompressed size",
        ),
        (
            "no-archive",
            b"PK\x03\x04 and nothing more of an archive".to_vec(),
            "no archive",
        ),
        ("empty", Vec::new(), "no archive"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let mut artifacts = vec![small(1, "good")];
    artifacts.extend(
        (2..)
            .zip(&bad)
            .map(|(id, (name, content, _))| Artifact::new(id, name, content.clone())),
    );
    let service = Service::new(artifacts);
    let mut args = vec!["good", "--out", "deep/o", "--max-mib", "16"];
    args.extend(bad.iter().map(|(name, ..)| *name));
    let output = fetch(&service, at, &args);
    assert_eq!(output.status.code(), Some(1));
    let out = at.join("deep/o");
    for (name, _, wanted) in &bad {
        let (state, reason) = state(&out, name);
        assert_eq!(state, "failed", "{name}");
        assert!(reason.contains(wanted), "{name}: {reason}");
    }
    assert_eq!(arrived(&out), ["good/agg_r.json"]);
    let outside: Vec<String> = files(at)
        .into_iter()
        .filter(|file| !file.starts_with("deep/o/"))
        .collect();
    assert!(outside.is_empty(), "{outside:?}");
    assert!(!std::path::Path::new("/tmp/sweepctl-test-absolute").exists());
    // What was uploaded so does not get better by fetching it again.
    let downloads = service.downloads();
    assert!((2..).zip(&bad).all(|(id, _)| downloads[&id] == 1), "{downloads:?}");
    assert_eq!(files(&out.join(".fetch/coming")), [""; 0], "nothing is left on its way");
}

#[test]
fn more_files_than_an_artifact_may_hold_are_refused() {
    let names: Vec<String> = (0..10_001).map(|number| format!("{number}.json")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let service = Service::new(vec![Artifact::new(1, "many", zips::zip(&many))]);
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(
        fetch(&service, folder.path(), &["many", "--out", "o"]).status.code(),
        Some(1)
    );
    assert!(
        state(&folder.path().join("o"), "many")
            .1
            .contains("more than 10000 files")
    );
}

#[test]
fn a_download_that_is_larger_than_allowed_ends() {
    let large: Vec<u8> = (0..3_u32 << 20)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut artifact = Artifact::new(1, "large", large);
    artifact.kind = "application/json";
    let service = Service::new(vec![artifact]);
    let folder = tempfile::tempdir().expect("a folder");
    let output = fetch(&service, folder.path(), &["large", "--out", "o", "--max-mib", "1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("larger than 1 MiB"), "{}", stderr(&output));
}

#[test]
fn a_file_that_was_uploaded_as_it_is_keeps_its_name_and_no_more_of_its_path() {
    let raw = |id: u64, name: &str, file: Option<&'static str>| Artifact {
        kind: "application/json",
        file,
        ..Artifact::new(id, name, b"{}".to_vec())
    };
    let service = Service::new(vec![
        raw(1, "a.json", Some("a.json")),
        raw(2, "b", Some("../../../b.json")),
        raw(3, "c", None),
    ]);
    let folder = tempfile::tempdir().expect("a folder");
    assert!(
        fetch(&service, folder.path(), &["a.json", "b", "c", "--out", "o"])
            .status
            .success()
    );
    let wanted = ["a.json/a.json", "b/b.json", "c/artifact"];
    assert_eq!(arrived(&folder.path().join("o")), wanted);
}

#[test]
fn what_was_not_fetched_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write(at, "o/mine/file", "mine");
    std::os::unix::fs::symlink(at, at.join("o/linked")).expect("a link");
    let service = Service::new(vec![small(1, "mine"), small(2, "linked"), small(3, "new")]);
    let output = fetch(&service, at, &["mine", "linked", "new", "--out", "o"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output).matches("that was not fetched").count(),
        2,
        "{}",
        stderr(&output)
    );
    assert_eq!(std::fs::read(at.join("o/mine/file")).expect("a file"), b"mine");
    assert!(!at.join("agg_r.json").exists() && at.join("o/new/agg_r.json").exists());
}

#[test]
fn collectors_read_nothing_that_is_on_its_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write(at, "o/.fetch/coming/x/whole/agg_r.json", "{\"conc\": 1}");
    write(at, "o/bmk_x_000000000001/.fetch/agg_r.json", "{ half of a file");
    let output = crate::support::run(at, ["collect", "results", "o", "--json"]);
    let collected: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(collected["rows"], serde_json::json!([]), "{collected}");
    assert_eq!(
        collected["problems"].as_array().map(Vec::len),
        Some(1),
        "a job's own folder is read: {collected}"
    );
}
