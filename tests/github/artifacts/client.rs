//! GitHub's own client against the same service: what it finds and fetches there is what `fetch` does, so that the service
//! speaks as GitHub's.

use std::process::Command;

use super::service::{Artifact, Given, Service, token};
use super::{arrived, fetched, small, zips};
use crate::fixture::read_json;
use crate::support::stderr;
use crate::workflows::tool;

#[test]
fn githubs_own_client_gets_what_fetch_gets() {
    let raw = Artifact {
        kind: "application/json",
        file: Some("raw.json"),
        ..Artifact::new(31, "raw.json", b"{\"raw\": 1}".to_vec())
    };
    let service = Service::new(vec![
        small(5, "bmk_a"),
        small(40, "bmk_b"),
        small(7, "bmk_b"),
        Artifact::new(8, "deep", zips::zip(&[("a/b/c.json", "{}"), ("d.json", "[]")])),
        small(9, "changed").given(Given::Changed),
        raw,
    ]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let names = ["bmk_a", "bmk_b", "deep", "raw.json"];
    let output = Command::new("node")
        .arg(tool("artifact-client/download.mjs"))
        .args([at.join("theirs"), at.join("said.json")])
        .args(names)
        .current_dir(at)
        .env("ACTIONS_RESULTS_URL", service.url())
        .env("ACTIONS_RUNTIME_TOKEN", token())
        .env("GITHUB_WORKSPACE", at)
        .env_remove("GITHUB_SERVER_URL")
        .output()
        .expect("node runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let said = read_json(&at.join("said.json"));
    // The newest of each name, with the digests that the service says.
    let mut listed: Vec<(String, u64)> = said["listed"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|artifact| {
            let name = artifact["name"].as_str().expect("a name").to_owned();
            (name, artifact["id"].as_u64().expect("an id"))
        })
        .collect();
    listed.sort();
    let wanted = [
        ("bmk_a", 5),
        ("bmk_b", 40),
        ("changed", 9),
        ("deep", 8),
        ("raw.json", 31),
    ];
    assert_eq!(listed, wanted.map(|(name, id)| (name.to_owned(), id)));
    for artifact in said["fetched"].as_array().expect("a list") {
        assert_eq!(artifact["digestMismatch"], false, "{artifact}");
    }
    let report = fetched(&service, at, &[&names[..], &["--out", "ours"]].concat());
    let ids = |list: &serde_json::Value| -> Vec<u64> {
        let list = list.as_array().expect("a list");
        list.iter()
            .map(|artifact| artifact["id"].as_u64().expect("an id"))
            .collect()
    };
    assert_eq!(ids(&report["artifacts"]), ids(&said["fetched"]));
    assert_eq!(arrived(&at.join("ours")), arrived(&at.join("theirs")));
    for file in arrived(&at.join("ours")) {
        let read = |whose: &str| std::fs::read(at.join(whose).join(&file)).expect("a file");
        assert_eq!(read("ours"), read("theirs"), "{file}");
    }
}
