//! What a container that runs as root leaves on a host whose runner is another user.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Command;

use super::backends::agentic;
use super::support::{Done, Host, run};
use crate::eval::support::{names, write_json};

/// A user who owns nothing.
const NOBODY: u32 = 65_534;

/// Whether this process is root's.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").expect("a process").uid() == 0
}

/// A command of the host's runner, who is not root.
fn by_its_runner(host: &Host, args: &[&str]) -> Done {
    let whole = host.sweepctl(args);
    if !is_root() {
        let mut whole = whole;
        return run(&mut whole);
    }
    let mut command = Command::new("setpriv");
    let user = [
        format!("--reuid={NOBODY}"),
        format!("--regid={NOBODY}"),
        "--clear-groups".to_owned(),
    ];
    command
        .args(user)
        .arg(whole.get_program())
        .args(whole.get_args())
        .current_dir(host.at());
    for (name, value) in whole.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    run(&mut command)
}

#[test]
fn a_result_folder_of_another_user_is_uploaded_and_said_to_stand_in_the_way() {
    let host = Host::with_script("echo started");
    write_json(host.at(), "envelope.json", &agentic(false));
    let artifacts = host.file("results/aiperf_artifacts");
    std::fs::create_dir_all(&artifacts).expect("folders");
    std::fs::create_dir(host.file("results/closed")).expect("a folder");
    std::fs::write(artifacts.join("profile_export.jsonl"), "{}\n").expect("a file");
    if is_root() {
        for place in ["", "state", "configs", "runners"] {
            chown(host.file(place), Some(NOBODY), Some(NOBODY)).expect("an owner");
        }
    }
    let mode = |place: &str, mode: u32| {
        std::fs::set_permissions(host.file(place), PermissionsExt::from_mode(mode)).expect("permissions");
    };
    // Nobody else writes there, and into one of them nobody else sees.
    mode("results/aiperf_artifacts", 0o555);
    mode("results/closed", 0o000);
    mode("results", 0o555);

    let upload = [
        "upload",
        "--kind",
        "agentic",
        "--envelope",
        "envelope.json",
        "--workspace",
        ".",
        "--to",
        "up",
    ];
    let done = by_its_runner(&host, &upload);
    assert!(
        done.stderr.contains("closed") && done.stderr.contains("cannot be looked into"),
        "{}",
        done.stderr
    );
    let gathered = host.file("up/agentic_stub_agentic_0123456789ab/aiperf_artifacts");
    assert_eq!(names(&gathered), ["profile_export.jsonl"], "{}", done.stderr);

    let done = by_its_runner(&host, &["clean", "--workspace", "."]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("a container wrote it as another user"),
        "{}",
        done.stderr
    );
    assert!(artifacts.join("profile_export.jsonl").exists());

    let done = by_its_runner(&host, &["launch", "--envelope", "envelope.json"]);
    assert_eq!(done.code, Some(70), "{}", done.stderr);
    assert!(
        done.stderr.contains("a container wrote it as another user"),
        "{}",
        done.stderr
    );
    assert!(
        !done.stderr.contains("started"),
        "nothing starts beside what is another job's: {}",
        done.stderr
    );
    // The folder's own end needs them.
    mode("results", 0o755);
    mode("results/closed", 0o755);
    mode("results/aiperf_artifacts", 0o755);
}
