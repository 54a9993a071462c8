//! The replay client: agentx-harness, pinned, in an environment of its own.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::config::problem::Problem;
use crate::matrix::fingerprint::hex;
use crate::step::tools::{self, Installer, Venv};

/// The pinned version. Another one measures something else: raise it on purpose.
pub const VERSION: &str = "1.0.12";
/// What it is installed as.
pub const REQUIREMENT: &str = "agentx-harness==1.0.12";
/// The least Python that it runs on.
const PYTHON: &str = "3.11";
/// Wheels that are installed besides, with spaces between: each an exact URL with its SHA-256.
const WHEELS: &str = "AIPERF_EXTRA_WHEELS";

/// The installed client.
#[derive(Debug, Clone)]
pub struct Installed {
    venv: Venv,
}

impl Installed {
    /// Installs it, unless it is there.
    ///
    /// # Errors
    /// A wheel that is not pinned, no Python, or a failed installation.
    pub fn ensure(installer: &mut Installer<'_>) -> Result<Self, Problem> {
        let wheels = std::env::var(WHEELS).unwrap_or_default();
        let wheels: Vec<&str> = wheels.split_whitespace().collect();
        for wheel in &wheels {
            pinned(wheel)?;
        }
        let tools = tools::folder()?;
        let base = tools::python(PYTHON, &tools, installer)?;
        let requirements = [&[REQUIREMENT][..], &wheels].concat();
        let name = match wheels.is_empty() {
            true => format!("agentx-harness-{VERSION}"),
            false => format!(
                "agentx-harness-{VERSION}-{}",
                &hex(&Sha256::digest(wheels.join(" ").as_bytes()))[..12]
            ),
        };
        let venv = Venv::on(base, &tools, &name, &requirements)?;
        venv.ensure(installer)?;
        Ok(Self { venv })
    }

    /// The folder of its environment.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.venv.folder()
    }

    /// A program of its environment.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.venv.program(name)
    }
}

/// Whether a wheel that is not from an index is one of this content and no other: `https://HOST/NAME.whl#sha256=DIGEST`.
///
/// # Errors
/// Anything else.
pub fn pinned(wheel: &str) -> Result<(), Problem> {
    let refused = |why: &str| {
        let problem = Problem::file("", format!("{WHEELS}: the wheel `{}` {why}", wheel.escape_debug()));
        problem.hint("write it as https://HOST/NAME.whl#sha256=64 hexadecimal digits")
    };
    let Some((url, digest)) = wheel.split_once("#sha256=") else {
        return Err(refused("has no SHA-256"));
    };
    if digest.len() != 64 || !digest.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')) {
        return Err(refused("has no SHA-256 of 64 lower-case hexadecimal digits"));
    }
    let uri: hyper::Uri = url.parse().map_err(|_| refused("is no URL"))?;
    if uri.scheme_str() != Some("https") || uri.authority().is_none_or(|host| host.as_str().contains('@')) {
        return Err(refused("is not at an address of https://, without credentials"));
    }
    if !uri.path().ends_with(".whl") || uri.query().is_some() {
        return Err(refused("names no .whl file"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wheels_of_one_content_are_installed() {
        let digest = "0123456789abcdef".repeat(4);
        assert_eq!(
            pinned(&format!("https://h/a-1+local-py3-none-any.whl#sha256={digest}")),
            Ok(())
        );
        for bad in [
            "https://h/a.whl".to_owned(),
            format!("https://h/a.whl#sha256={}", &digest[1..]),
            format!("https://h/a.whl#sha256={}", digest.to_uppercase()),
            format!("http://h/a.whl#sha256={digest}"),
            format!("https://u:p@h/a.whl#sha256={digest}"),
            format!("https://h/a.tar.gz#sha256={digest}"),
            format!("--index-url=https://h/a.whl#sha256={digest}"),
            "agentx-harness".to_owned(),
        ] {
            assert!(pinned(&bad).is_err(), "{bad}");
        }
    }
}
