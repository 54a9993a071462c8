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
