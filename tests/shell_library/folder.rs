//! The folder that a launch lays into the checkout: what it holds, and what it never holds.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::json;

use super::Checkout;
use crate::eval::support::{envelope, multi_node, read_json, write_json};
use crate::launch::support::{Host, benchmark, run, throughput};
use crate::support::git;

const LEAVES: &str = "cp saved.json $RESULT_FILENAME.json; cp -r .sweepctl seen";

fn host(script: &str) -> Host {
    let host = Host::with_script(script);
    write_json(host.at(), "saved.json", &benchmark(json!({})));
    host
}

fn variables(file: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(file).expect("the variables");
    assert!(text.ends_with('\0'), "each variable is closed");
    let pairs = text
        .trim_end_matches('\0')
        .split('\0')
        .map(|entry| entry.split_once('=').expect("a pair"));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn it_describes_the_job() {
    let host = host(&format!("{LEAVES}; .sweepctl/bin/sweepctl --version > version"));
    std::fs::create_dir_all(host.file(".sweepctl/old")).expect("an old one");
    let done = host.run(&throughput());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(host.read("version").starts_with("sweepctl "));
    let seen = host.file("seen");
    assert_eq!(
        crate::eval::support::names(&seen),
        [".gitignore", "bin", "envelope.json", "variables"]
    );
    assert_eq!(host.read("seen/.gitignore"), "*\n");
    let given = read_json(&host.file("envelope.json"));
    let laid = read_json(&seen.join("envelope.json"));
    assert_eq!(
        (&laid["id"], &laid["row"]["conc"]),
        (&given["id"], &given["row"]["conc"])
    );
    let variables = variables(&seen.join("variables"));
    for (name, value) in [("MODEL", "org/stub-7b"), ("TP", "8"), ("CONC", "4"), ("EVAL_CONC", "")] {
        assert_eq!(variables.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(!variables.contains_key("INFMAX_WORKSPACE"), "a path of the host");
    let mode = |name: &str| host.file(name).metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!(
        (mode(".sweepctl/bin/sweepctl"), mode(".sweepctl/variables")),
        (0o755, 0o644)
    );
    // Git does not see it, and clean removes it.
    git(host.at(), &["init", "-q"]);
    assert!(!git(host.at(), &["status", "--porcelain", "--untracked-files=all"]).contains(".sweepctl"));
    let cleaned = run(&mut host.sweepctl(&["clean"]));
    assert_eq!(cleaned.code, Some(0), "{}", cleaned.stderr);
    assert!(!host.file(".sweepctl").exists());
}

#[test]
fn it_holds_no_secret() {
    let host = host(LEAVES);
    let mut job = multi_node("0123456789ab", &[4]);
    job["row"]["prefill"]["additional-settings"] = json!([
        "HF_TOKEN=hf_of_the_config",
        "PLAIN=1",
        "SPELT=own-s3cret-value",
        "MAX_NUM_TOKENS=7"
    ]);
    for (name, value) in [("run-eval", false), ("eval-only", false)] {
        job["row"][name] = json!(value);
    }
    for name in ["eval-framework", "eval-suite", "eval-all-concs"] {
        job["row"].as_object_mut().expect("a row").remove(name);
    }
    let mut command = host.launch(&job, &[]);
    run(command.env("MY_PASSWORD", "own-s3cret-value"));
    for name in [".sweepctl/variables", ".sweepctl/envelope.json"] {
        let text = host.read(name);
        for secret in ["hf_of_the_config", "own-s3cret-value"] {
            assert!(!text.contains(secret), "{name}: {text}");
        }
        assert!(
            text.contains("PLAIN=1") && text.contains("MAX_NUM_TOKENS=7"),
            "{name}: {text}"
        );
    }
}

#[test]
fn links_are_not_followed() {
    let host = host(LEAVES);
    let other = tempfile::tempdir().expect("a folder");
    std::fs::write(other.path().join("kept"), "").expect("a file");
    symlink(other.path(), host.file(".sweepctl")).expect("a link");
    let done = host.run(&throughput());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(crate::eval::support::names(other.path()), ["kept"]);
    assert!(host.file(".sweepctl").symlink_metadata().expect("it is there").is_dir());
}

#[test]
fn what_cannot_be_written_ends_only_jobs_that_read_it() {
    // A file in a folder without permissions: root may do all, so a mount point stands in where tests run as root.
    let blocked = |host: &Host| {
        let made = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "ro,size=4k", "none"])
            .arg(host.file(".sweepctl"))
            .status();
        made.is_ok_and(|status| status.success())
    };
    let host = host("cp saved.json $RESULT_FILENAME.json");
    std::fs::create_dir(host.file(".sweepctl")).expect("a folder");
    if !blocked(&host) {
        eprintln!("NOT TESTED: no mounts here, so nothing blocks root");
        return;
    }
    let without = host.run(&throughput());
    std::fs::create_dir_all(host.file("benchmarks")).expect("a folder");
    std::fs::write(host.file("benchmarks/benchmark_lib.sh"), "ls .sweepctl\n").expect("a file");
    let with = host.run(&throughput());
    let freed = std::process::Command::new("umount")
        .arg(host.file(".sweepctl"))
        .status();
    assert!(freed.expect("umount runs").success());
    assert_eq!(without.code, Some(0), "{}", without.stderr);
    assert!(without.stderr.contains("cannot be written"), "{}", without.stderr);
    assert_eq!(with.code, Some(70), "{}", with.stderr);
}

#[test]
fn scripts_find_what_no_launcher_passed_on() {
    let checkout = Checkout::new();
    checkout.write(
        ".sweepctl/variables",
        "CONC=4\0MODEL=from the job\0MULTI=two\nlines $(touch evil) `touch evil`\0EP_SIZE=8\0bad name=1\0MODEL_PATH=/no/such/folder\0\
         MAX_MODEL_LEN=9\0KV_OFFLOADING=none\0IS_AGENTIC=1\0",
    );
    std::fs::create_dir(checkout.file(".sweepctl/bin")).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_sweepctl"), checkout.file(".sweepctl/bin/sweepctl")).expect("a link");
    std::fs::remove_file(checkout.file("bin/sweepctl")).expect("it goes");
    write_json(
        &checkout.file(".sweepctl"),
        "envelope.json",
        &envelope("0123456789ab", json!({"conc": 7})),
    );
    let script = "bash -c 'echo \"$CONC|$MODEL|$EP_SIZE|${MODEL_PATH-unset}|$MAX_MODEL_LEN\"; printf %s \"$MULTI\"'
        env -u CONC -u EVAL_CONC true; unset CONC; _sweepctl library eval-points";
    let ran = checkout.run(&[("MODEL", "given"), ("EP_SIZE", "")], script);
    // What a launcher passed on stays, also where it is empty. The job's concurrency is found by its envelope.
    assert_eq!(
        ran.stdout,
        "4|given||unset|9\ntwo\nlines $(touch evil) `touch evil`7\n",
        "{}",
        ran.all()
    );
    assert!(!checkout.file("evil").exists());
    // A script that is no replay by its place and variables is none because of the folder.
    let ran = checkout.run(&[("KV_OFFLOADING", "")], "echo \"fine $MAX_MODEL_LEN\"");
    ran.has(0, &["fine 9"]);
    let ran = checkout.run_as(
        "benchmarks/single_node/agentic/a.sh",
        &[],
        "echo \"[${MAX_MODEL_LEN-unset}]\"",
    );
    ran.has(0, &["[unset]"]);
}
