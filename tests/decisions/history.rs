//! A real repository with commits that have names.
//!
//! ```text
//! root --- fork --- tip          main
//!             \  \      \
//!              \  \      `------ (second parent of merged)
//!               \  replaced
//!                topic --------- merged
//!                marked, marked-in-body, marked-before
//! ```

use std::collections::HashMap;
use std::path::Path;

use tempfile::TempDir;

use crate::support::{commit, git, write};

pub struct History {
    pub folder: TempDir,
    commits: HashMap<&'static str, String>,
}

impl History {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let at = folder.path();
        let mut commits = HashMap::new();
        git(at, &["init", "-q"]);
        let on = |branch: &str, from: &str| git(at, &["checkout", "-q", "-B", branch, from]);
        commits.insert("root", change(at, "root", "Begin"));
        commits.insert("fork", change(at, "fork", "Go on"));
        commits.insert("tip", change(at, "tip", "Go further"));
        let fork = commits["fork"].clone();
        on("replaced", &fork);
        commits.insert("replaced", change(at, "replaced", "Go elsewhere"));
        on("topic", &fork);
        commits.insert("topic", change(at, "topic", "Measure it"));
        git(at, &["merge", "-q", "--no-ff", "-m", "Catch up with main", "main"]);
        commits.insert("merged", git(at, &["rev-parse", "HEAD"]));
        on("marked", &fork);
        commits.insert("marked", change(at, "marked", "Reword a comment [skip-sweep]"));
        on("marked-before", "marked");
        commits.insert("marked-before", change(at, "after", "Measure it after all"));
        on("marked-in-body", &fork);
        let message = "Reword a comment\n\nNothing is measured by it.\n\n[skip-sweep]\n";
        commits.insert("marked-in-body", change(at, "body", message));
        git(at, &["checkout", "-q", "main"]);
        Self { folder, commits }
    }

    pub fn commit(&self, name: &str) -> &str {
        self.commits
            .get(name)
            .unwrap_or_else(|| panic!("no commit is called {name}"))
    }

    /// The name of a commit; other text as it is.
    pub fn name<'a>(&'a self, hash: &'a str) -> &'a str {
        self.commits
            .iter()
            .find(|(_, known)| *known == hash)
            .map_or(hash, |(name, _)| name)
    }
}

fn change(at: &Path, file: &str, message: &str) -> String {
    write(at, file, file);
    commit(at, message)
}
