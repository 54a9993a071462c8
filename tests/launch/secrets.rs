//! No secret reaches a log, whatever a job does with it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::support::{Done, Host, run, throughput};
use crate::eval::support::root;

const TOKEN: &str = "hub/token+123 of=all";
const LICENCE: &str = "k9-licence-of-the-vendor";

/// A host with a launch script, whose settings name a launch secret that does not say so itself.
fn host(script: &str) -> Host {
    let host = Host::with_script(script);
    let settings = std::fs::read_to_string(root().join("configs/workflows.yaml")).expect("the project's settings");
    let mut lines: Vec<&str> = settings
        .lines()
        .filter(|line| !line.starts_with("launch-secrets:"))
        .collect();
    lines.push("launch-secrets: [HF_TOKEN, VENDOR_LICENCE]");
    std::fs::write(host.file("configs/workflows.yaml"), lines.join("\n") + "\n").expect("a file");
    host
}

fn command(host: &Host, args: &[&str]) -> Done {
    run(host
        .launch(&throughput(), &[])
        .args(args)
        .env("HF_TOKEN", TOKEN)
        .env("VENDOR_LICENCE", LICENCE)
        .env("GITHUB_ENV", "/nowhere")
        .env("GITHUB_STATE", "/nowhere"))
}

/// Every form of a secret that must not be seen.
fn forms() -> Vec<String> {
    vec![
        TOKEN.to_owned(),
        "hub%2Ftoken%2B123%20of%3Dall".to_owned(),
        STANDARD.encode(TOKEN),
        // Of a longer text, without what its neighbours decide.
        STANDARD.encode(format!("x{TOKEN}"))[2..20].to_owned(),
        LICENCE.to_owned(),
        STANDARD.encode(LICENCE),
    ]
}

fn assert_clean(text: &str, what: &str) {
    for form in forms() {
        assert!(!text.contains(&form), "{what} shows {form}: {text}");
    }
    assert!(text.contains("***"), "{what} shows nothing: {text}");
}

#[test]
fn what_a_script_prints_shows_no_secret_and_neither_does_a_log_that_is_uploaded() {
    let host = host(
        r#"
say() {
    echo "raw $HF_TOKEN"
    echo -n "$HF_TOKEN" | base64 -w 0; echo
    echo -n "x$HF_TOKEN" | base64 -w 0; echo
    echo "https://h/?t=hub%2Ftoken%2B123%20of%3Dall"
    echo "licence $VENDOR_LICENCE"
    echo -n "$VENDOR_LICENCE" | base64 -w 0; echo
}
say
say > engine.log
say > slurm-1.out
say > slurm-1.err
say | gzip > worker.log.gz
env | grep -E '^(GITHUB_ENV|GITHUB_STATE)=' && echo inherited
exit 3
"#,
    );
    let done = command(&host, &[]);
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert_clean(&done.stderr, "standard error");
    assert_clean(&host.read("launch.log"), "the launch's log");
    assert!(!done.stderr.contains("inherited"), "{}", done.stderr);

    let mut upload = host.sweepctl(&[
        "upload",
        "--kind",
        "server_logs",
        "--envelope",
        "envelope.json",
        "--to",
        "up",
    ]);
    let done = run(upload.env("HF_TOKEN", TOKEN).env("VENDOR_LICENCE", LICENCE));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let said: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    let folder = said["path"].as_str().expect("a path");
    for name in ["engine.log", "slurm-1.out", "slurm-1.err"] {
        let text = std::fs::read_to_string(format!("{folder}/{name}")).expect(name);
        assert_clean(&text, name);
    }
    let unpacked = std::process::Command::new("gzip")
        .args(["-dc", &format!("{folder}/worker.log.gz")])
        .output()
        .expect("gzip runs");
    assert_clean(&String::from_utf8_lossy(&unpacked.stdout), "worker.log.gz");
}

#[test]
fn settings_that_cannot_be_read_start_nothing() {
    let host = host("touch started");
    std::fs::write(host.file("configs/workflows.yaml"), "launch-secrets: 3\n").expect("a file");
    let done = command(&host, &[]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(!host.file("started").exists());
}
