//! Python tools for tests: pinned, installed once into `.tools` of the checkout, or where SWEEPCTL_TOOLS says.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sweepctl::process::Cancellation;
use sweepctl::step::eval::lm_eval;
use sweepctl::step::tools::{Installer, Venv};

/// The folder of tools.
pub fn folder() -> PathBuf {
    std::env::var_os("SWEEPCTL_TOOLS")
        .filter(|folder| !folder.is_empty())
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".tools"), PathBuf::from)
}

/// The environment of a tool, whole.
pub fn venv(name: &str, requirements: &[&str]) -> Venv {
    let venv = Venv::new(&folder(), name, requirements).expect("python3 runs");
    let installed = venv.ensure(&mut Installer {
        cancel: &Cancellation::never(),
        show: &mut |line| eprintln!("{line}"),
    });
    installed.unwrap_or_else(|problem| panic!("install it with `pip install {}`: {problem}", requirements.join(" ")));
    venv
}

/// lm-eval, as `sweepctl eval run` uses it, so that no test waits for its installation.
pub fn lm_eval() -> &'static Venv {
    static VENV: OnceLock<Venv> = OnceLock::new();
    VENV.get_or_init(|| venv(&format!("lm-eval-{}", lm_eval::VERSION), &[lm_eval::REQUIREMENT]))
}

/// The folder of what takes the waits from lm-eval's retries, for PYTHONPATH.
pub fn no_waits() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/eval/no_waits")
}

#[test]
fn a_tool_is_installed_once_and_anew_where_it_is_not_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let install = |requirement: &str| {
        let venv = Venv::new(folder.path(), "small", &[requirement]).expect("python3 runs");
        let mut said = Vec::new();
        let result = venv.ensure(&mut Installer {
            cancel: &Cancellation::never(),
            show: &mut |line| said.push(line.to_owned()),
        });
        (venv, result, said)
    };
    let both: Vec<_> = std::thread::scope(|scope| {
        let one = scope.spawn(|| install("iniconfig==2.0.0"));
        let other = scope.spawn(|| install("iniconfig==2.0.0"));
        [one, other].map(|thread| thread.join().expect("no panic")).into()
    });
    assert!(both.iter().all(|(_, result, _)| result.is_ok()), "{:?}", both[0].1);
    let waited = both
        .iter()
        .filter(|(_, _, said)| said.iter().any(|line| line.contains("waiting for it")));
    assert_eq!(waited.count(), 1, "one installs and one waits");
    let python = both[0].0.python();
    let import = || {
        std::process::Command::new(&python)
            .args(["-c", "import iniconfig"])
            .status()
    };
    assert!(import().expect("python runs").success());

    // What another version left counts for nothing, and a failure says what pip said.
    let (_, result, _) = install("iniconfig==0.0.0.1");
    let problem = result.expect_err("no such version");
    assert!(problem.message.contains("iniconfig==0.0.0.1"), "{problem}");
    assert!(
        install("iniconfig==2.0.0").1.is_ok(),
        "an unfinished installation is done anew"
    );
    assert!(import().expect("python runs").success());
}
