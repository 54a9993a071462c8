//! Which Python a suite runs on, and what is said where there is none.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::configured::{CLIENT, made_up};
use super::support::{Desk, text};
use crate::mock_server::client::Server;

/// A Python of the future: it says so where its version is asked for, and is the one of this machine in all else.
const FUTURE: &str = "case $2 in *version_info.minor*) echo 99; exit ;; esac\nexec python3 \"$@\"\n";

/// uv on a node that does not reach GitHub's releases, as 0.13.9 says it.
const UV: &str = "exec >&2; echo 'error: Request failed after 3 retries in 5.1s'
echo '  cause: Failed to download `https://github.com/astral-sh/python-build-standalone/releases/download/x.tar.gz`'; exit 2
";

fn program(folder: &Path, name: &str, script: &str) -> String {
    std::fs::create_dir_all(folder).expect("a folder");
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/bash\n{script}")).expect("a file");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a mode");
    path.display().to_string()
}

fn desk() -> Desk {
    let desk = Desk::with(&made_up("client: sums.py").replace("\"3.8\"", "\"3.99\""));
    std::fs::write(desk.at("configs/evals/sums.py"), CLIENT).expect("written");
    desk
}

#[test]
fn a_python_that_nobody_brings_is_said_once_with_the_ways_out() {
    let (desk, server) = (desk(), Server::start(&[]));
    program(&desk.at("bin"), "uv", UV);
    let path = format!(
        "{}:{}",
        desk.at("bin").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let done = desk.eval(&server, ("sums", "small_sums"), &[("PATH", &path)], &[]);
    let said = text(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    let why = "no Python 3.99 is here, and uv brings none: an installation exited with code 2";
    assert_eq!(said.matches("error[").count(), 1, "{said}");
    for part in [
        why,
        "github.com/astral-sh",
        "install Python 3.99 or newer as `python3` or `python3.99`, or name its interpreter in SWEEPCTL_PYTHON",
        "UV_PYTHON_INSTALL_MIRROR",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (passed, judged) = desk.gate();
    assert!(!passed && judged.contains(why), "{judged}");
    assert!(desk.artifact("sums", "setup.log").contains("Failed to download"));
}

#[test]
fn a_python_can_be_named_and_none_replaces_it() {
    let (desk, server) = (desk(), Server::start(&[]));
    let future = program(&desk.at("pythons"), "python", FUTURE);
    let run = |python: &str| desk.eval(&server, ("sums", "small_sums"), &[("SWEEPCTL_PYTHON", python)], &[]);
    let done = run(&future);
    assert!(done.status.success(), "{}", text(&done));
    for (python, why) in [
        (
            "python3",
            "names `python3`, and Python 3.99 or newer is needed: it is Python 3.",
        ),
        (
            "/nowhere/python",
            "names `/nowhere/python`, and Python 3.99 or newer is needed: it does not run: ",
        ),
    ] {
        let done = run(python);
        assert!(
            !done.status.success() && text(&done).contains(why),
            "{python}: {}",
            text(&done)
        );
        assert!(text(&done).contains("or leave SWEEPCTL_PYTHON out"), "{}", text(&done));
        let (passed, judged) = desk.gate();
        assert!(!passed && judged.contains(why), "{judged}");
    }
}
