//! Python tools, each in a virtual environment of its own, installed once.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::config::problem::Problem;
use crate::matrix::fingerprint::hex;
use crate::process::{self, Cancellation, Watch};

/// The file that says that an environment is whole; it holds what was installed.
const MARKER: &str = "sweepctl-complete";
/// The version of uv that is installed where there is none.
const UV_VERSION: &str = "0.13.9";
/// The variable that names the folder of tools.
pub(crate) const FOLDER: &str = "SWEEPCTL_TOOLS";
/// The variable that names the interpreter of evals' and replays' clients.
pub(crate) const PYTHON: &str = "SWEEPCTL_PYTHON";
/// How often a waiting process looks whether another one has finished installing.
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// The folder of tools: SWEEPCTL_TOOLS, else `sweepctl/tools` in the user's cache.
///
/// # Errors
/// No SWEEPCTL_TOOLS and no home.
pub fn folder() -> Result<PathBuf, Problem> {
    let var = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = || var("XDG_CACHE_HOME").or_else(|| Some(var("HOME")?.join(".cache")));
    var(FOLDER)
        .or_else(|| Some(cache()?.join("sweepctl/tools")))
        .ok_or_else(|| {
            Problem::file("", "there is no folder for tools: HOME is not set").hint("set SWEEPCTL_TOOLS to a folder")
        })
}

/// Runs one step of an installation and shows what it prints.
pub struct Installer<'a> {
    /// What ends it early.
    pub cancel: &'a Cancellation,
    /// Where its output goes.
    pub show: &'a mut dyn FnMut(&str),
}

/// A tool's virtual environment.
///
/// A virtual environment cannot be moved, so it is built in place: a lock keeps others away, and a marker written
/// last says that it is whole. An interrupted build has no marker and is done anew.
#[derive(Debug, Clone)]
pub struct Venv {
    folder: PathBuf,
    requirements: Vec<String>,
    alone: Vec<String>,
    base: Base,
}

/// What a virtual environment is made from.
#[derive(Debug, Clone)]
pub enum Base {
    /// An interpreter.
    Python(PathBuf),
    /// The program uv, which brings this version of Python.
    Uv(PathBuf, String),
}

impl Venv {
    /// The environment of a tool under a folder of tools. `requirements` are pinned, such as `lm-eval[api]==0.4.13`;
    /// the name holds the version, so that versions stand side by side. So do the Pythons of different containers
    /// that share a cache.
    ///
    /// # Errors
    /// No `python3` that runs.
    pub fn new(tools: &Path, name: &str, requirements: &[&str]) -> Result<Self, Problem> {
        Self::on(Base::Python(PathBuf::from("python3")), tools, name, requirements)
    }

    /// The same on another interpreter.
    ///
    /// # Errors
    /// An interpreter that does not run.
    pub fn on(base: Base, tools: &Path, name: &str, requirements: &[&str]) -> Result<Self, Problem> {
        let script = "import platform, sys; print(sys.implementation.cache_tag, platform.machine(), sys.base_prefix)";
        let about = match &base {
            Base::Python(python) => ask(python, script).map_err(|why| no_python(&why))?,
            Base::Uv(_, version) => format!("uv-{version} {} python", std::env::consts::ARCH),
        };
        let tag = about.split(' ').take(2).collect::<Vec<_>>().join("-");
        let digest = &hex(&Sha256::digest(about.as_bytes()))[..8];
        Ok(Self {
            folder: tools.join(format!("{name}-{tag}-{digest}")),
            requirements: requirements.iter().map(|r| (*r).to_owned()).collect(),
            alone: Vec::new(),
            base,
        })
    }

    /// The same with more requirements, which are installed without what they ask for.
    #[must_use]
    pub fn with_alone(mut self, requirements: &[String]) -> Self {
        self.alone = requirements.to_vec();
        self
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its interpreter.
    #[must_use]
    pub fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// A program that it installs.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// Installs it, unless it is whole. Of several processes one installs and the others wait.
    ///
    /// # Errors
    /// A folder that cannot be written, a failed installation (with its last lines), or a cancelled one.
    pub fn ensure(&self, installer: &mut Installer<'_>) -> Result<(), Problem> {
        let is_there = || self.python().exists();
        build_once(&self.folder, &self.marker(), &is_there, installer, |installer| {
            self.install(installer)
        })
    }

    fn marker(&self) -> String {
        let alone: Vec<String> = self.alone.iter().map(|pin| format!("{pin} alone")).collect();
        [self.requirements.as_slice(), &alone].concat().join("\n") + "\n"
    }

    fn install(&self, installer: &mut Installer<'_>) -> Result<(), Problem> {
        let uv = match &self.base {
            Base::Uv(uv, _) => Some(uv.clone()),
            Base::Python(_) => has_uv().then(|| PathBuf::from("uv")),
        };
        self.create(uv.as_deref(), installer)?;
        for (packages, alone) in [(&self.alone, true), (&self.requirements, false)] {
            if packages.is_empty() {
                continue;
            }
            let mut pip = match &uv {
                Some(uv) => {
                    let mut pip = Command::new(uv);
                    // Children write no bytecode: without it here each of them would compile everything anew.
                    pip.args([
                        "--no-config",
                        "pip",
                        "install",
                        "--quiet",
                        "--compile-bytecode",
                        "--python",
                    ])
                    .arg(self.python());
                    pip
                }
                None => {
                    let mut pip = Command::new(self.python());
                    pip.args(["-m", "pip", "install", "--quiet"]);
                    pip
                }
            };
            pip.args(alone.then_some("--no-deps")).args(packages);
            step(pip, installer)?;
        }
        Ok(())
    }

    fn create(&self, uv: Option<&Path>, installer: &mut Installer<'_>) -> Result<(), Problem> {
        let python = match &self.base {
            Base::Python(python) => python.as_os_str(),
            Base::Uv(_, version) => version.as_ref(),
        };
        if let Some(uv) = uv {
            let mut venv = Command::new(uv);
            venv.args(["--no-config", "venv", "--quiet", "--python"])
                .arg(python)
                .arg(&self.folder);
            return step(venv, installer).map_err(|problem| match &self.base {
                Base::Uv(_, version) => not_brought(version, problem),
                Base::Python(_) => problem,
            });
        }
        let mut venv = Command::new(python);
        venv.args(["-m", "venv"]).arg(&self.folder);
        step(venv, installer).map_err(|problem| problem.hint("install uv, or Debian's python3-venv"))
    }
}

/// Builds a folder of tools once: of several processes one builds and the others wait, and an interrupted build is done
/// anew. `marker` says what is built.
///
/// # Errors
/// A folder that cannot be written, a failed build, or a cancelled one.
pub fn build_once(
    folder: &Path,
    marker: &str,
    is_there: &dyn Fn() -> bool,
    installer: &mut Installer<'_>,
    build: impl FnOnce(&mut Installer<'_>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let is_whole = || std::fs::read_to_string(folder.join(MARKER)).is_ok_and(|text| text == marker) && is_there();
    if is_whole() {
        return Ok(());
    }
    let failed = |error: std::io::Error| {
        Problem::file(
            &folder.display().to_string(),
            format!("the tool cannot be installed: {error}"),
        )
        .hint("set SWEEPCTL_TOOLS to a folder that can be written")
    };
    let parent = folder.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(failed)?;
    let lock = File::create(format!("{}.lock", folder.display())).map_err(failed)?;
    let mut said = false;
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        if !said {
            (installer.show)("another process installs this tool; waiting for it");
            said = true;
        }
        if !installer.cancel.sleep(LOCK_PAUSE) {
            return Err(Problem::file("", "the wait for another installation was cancelled"));
        }
    }
    if is_whole() {
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(failed)?;
    }
    build(installer)?;
    std::fs::write(folder.join(MARKER), marker).map_err(failed)
}

/// An interpreter of at least a version such as `3.12`: the one that SWEEPCTL_PYTHON names, else the `python3` that is
/// there, one named by its version, else the one that uv brings; uv itself is installed beside the tools where it is
/// missing.
///
/// # Errors
/// A named interpreter that does not run or is older, no `python3` at all, and uv that cannot be installed.
pub fn python(least: &str, tools: &Path, installer: &mut Installer<'_>) -> Result<Base, Problem> {
    /// How many versions above the least are looked for by name.
    const NEWER: u32 = 3;
    let minor: u32 = least
        .rsplit('.')
        .next()
        .and_then(|minor| minor.parse().ok())
        .unwrap_or(0);
    if let Some(python) = std::env::var_os(PYTHON).filter(|python| !python.is_empty()) {
        return named(PathBuf::from(python), least, minor);
    }
    let of_a_version = (minor..=minor + NEWER).map(|minor| format!("python3.{minor}"));
    for name in std::iter::once("python3".to_owned()).chain(of_a_version) {
        if minor_of(Path::new(&name)).is_ok_and(|found| found >= minor) {
            return Ok(Base::Python(PathBuf::from(name)));
        }
    }
    (installer.show)(&format!("no Python {least} is here: uv brings one"));
    if has_uv() {
        return Ok(Base::Uv(PathBuf::from("uv"), least.to_owned()));
    }
    let uv = Venv::new(tools, &format!("uv-{UV_VERSION}"), &[&format!("uv=={UV_VERSION}")])?;
    uv.ensure(installer).map_err(|problem| not_brought(least, problem))?;
    Ok(Base::Uv(uv.program("uv"), least.to_owned()))
}

/// The interpreter that SWEEPCTL_PYTHON names, which no other replaces.
fn named(python: PathBuf, least: &str, minor: u32) -> Result<Base, Problem> {
    let shown = python.display();
    let why = match minor_of(&python) {
        Ok(found) if found >= minor => return Ok(Base::Python(python)),
        Ok(found) => format!("it is Python 3.{found}"),
        Err(why) => format!("it does not run: {}", why.trim()),
    };
    let message = format!("{PYTHON} names `{shown}`, and Python {least} or newer is needed: {why}");
    Err(Problem::file("", message).hint(format!(
        "name another interpreter, or leave {PYTHON} out, and one is looked for"
    )))
}

/// The minor version of an interpreter of Python 3, or why it has none.
fn minor_of(python: &Path) -> Result<u32, String> {
    let minor = ask(python, "import sys; print(sys.version_info.minor)")?;
    minor
        .parse()
        .map_err(|_| format!("it says `{minor}` where its version is asked for"))
}

/// Says that there is no interpreter, and that uv did not bring one: it fetches Python from GitHub's releases, which a
/// node may not reach.
fn not_brought(least: &str, mut problem: Problem) -> Problem {
    problem.message = format!("no Python {least} is here, and uv brings none: {}", problem.message);
    problem.hint(format!(
        "install Python {least} or newer as `python3` or `python{least}`, or name its interpreter in {PYTHON}; uv can \
         also take it from a mirror that UV_PYTHON_INSTALL_MIRROR names"
    ))
}

/// What an interpreter prints for a script, or why it does not.
fn ask(python: &Path, script: &str) -> Result<String, String> {
    let output = Command::new(python).args(["-c", script]).output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Installs requirements into the `python3` that is there, as in a container whose engine the tool has to see.
///
/// # Errors
/// A failed installation, with its last lines.
pub fn install_into_system(requirements: &[&str], installer: &mut Installer<'_>) -> Result<(), Problem> {
    let mut command = if has_uv() {
        let mut uv = Command::new("uv");
        uv.args(["--no-config", "pip", "install", "--quiet", "--system"]);
        uv
    } else {
        pip(&["install", "--quiet"])
    };
    command.args(requirements);
    step(command, installer)
}

/// Uninstalls a package from the `python3` that is there; one that is not installed is no error.
///
/// # Errors
/// pip fails, with its last lines.
pub fn uninstall_from_system(package: &str, installer: &mut Installer<'_>) -> Result<(), Problem> {
    let mut command = pip(&["uninstall", "--yes"]);
    command.arg(package);
    step(command, installer)
}

fn pip(args: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.args(["-m", "pip"]).args(args);
    command
}

fn has_uv() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join("uv").is_file())
}

fn no_python(why: &str) -> Problem {
    Problem::file("", format!("`python3` does not run: {}", why.trim())).hint("install Python 3.10 or newer")
}

/// Runs a command; its output is shown, and the end of it is in the error.
fn step(mut command: Command, installer: &mut Installer<'_>) -> Result<(), Problem> {
    /// Lines of the output that an error repeats.
    const SHOWN: usize = 12;
    command
        .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
        .env("PIP_NO_INPUT", "1")
        .env("PIP_ROOT_USER_ACTION", "ignore")
        // Containers mark their own Python as managed by the distribution, and are thrown away afterwards.
        .env("PIP_BREAK_SYSTEM_PACKAGES", "1")
        .env("UV_BREAK_SYSTEM_PACKAGES", "1");
    let text = format!("{command:?}");
    let mut last: Vec<String> = Vec::new();
    let outcome = process::run(command, &Watch::default(), installer.cancel, &mut |line| {
        if last.len() == SHOWN {
            last.remove(0);
        }
        last.push(line.to_owned());
        (installer.show)(line);
    })
    .map_err(|error| Problem::file("", error.to_string()))?;
    if outcome.is_success() {
        return Ok(());
    }
    Err(Problem::file("", format!("an installation {outcome}: {text}"))
        .log(last)
        .hint("check that the package index can be reached from here"))
}
