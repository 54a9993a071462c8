//! The service that the runner keeps artifacts in: `actions/service.py` over the folder of the stand-ins' uploads.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A service that ends with its value.
pub struct Service {
    child: Child,
    /// The variables by which it is found, each `NAME=value`.
    pub variables: Vec<String>,
}

impl Service {
    /// Starts it over the folder of a run's artifacts.
    pub fn start(actions: &Path, store: &Path) -> Self {
        let mut child = Command::new("python3")
            .arg("-IS")
            .arg(actions.join("service.py"))
            .env("ACT_ARTIFACTS", store)
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let printed = BufReader::new(child.stdout.take().expect("a pipe"));
        let variables: Vec<String> = printed.lines().take(2).map(|line| line.expect("a line")).collect();
        assert_eq!(variables.len(), 2, "{variables:?}");
        Self { child, variables }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
