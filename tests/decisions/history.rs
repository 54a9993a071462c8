//! A real repository with commits that have names. Each adds a file, and an entry to the changelog unless it is said
//! otherwise.
//!
//! ```text
//! root --- fork --- tip          main
//!             \  \      \
//!              \  \      `------ (second parent of merged)
//!               \  replaced
//!                topic --------- merged
//!                marked, marked-in-body, marked-before
//!                untouched (the changelog stays), relinked (a link is set right), altered (an entry is),
//!                commented (a comment is added), unended (the last line lacks its end) - ended (and gets it)
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
        // Both sides appended to the changelog: main's text, then the branch's entry.
        git(at, &["merge", "-q", "--no-ff", "--no-commit", "-s", "ours", "main"]);
        let text = entries(&["root", "fork", "tip", "topic"]);
        write(at, CHANGELOG, &text);
        write(at, "tip", "tip");
        commits.insert("merged", commit(at, "Catch up with main"));
        on("marked", &fork);
        commits.insert("marked", change(at, "marked", "Reword a comment [skip-sweep]"));
        on("marked-before", "marked");
        commits.insert("marked-before", change(at, "after", "Measure it after all"));
        on("marked-in-body", &fork);
        let message = "Reword a comment\n\nNothing is measured by it.\n\n[skip-sweep]\n";
        commits.insert("marked-in-body", change(at, "body", message));
        let text = entries(&["root", "fork"]);
        let changed: [(&'static str, String); 4] = [
            ("untouched", text.clone()),
            ("relinked", text.replacen("/pull/1\n", "/pull/3\n", 1)),
            ("altered", text.replacen("Measure root", "Measure all", 1)),
            ("commented", format!("{text}# the end\n")),
        ];
        for (name, text) in changed {
            on(name, &fork);
            write(at, name, name);
            write(at, CHANGELOG, &text);
            commits.insert(name, commit(at, name));
        }
        on("unended", &fork);
        write(at, CHANGELOG, text.trim_end());
        commits.insert("unended", commit(at, "unended"));
        write(at, CHANGELOG, &text);
        commits.insert("ended", commit(at, "ended"));
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

/// The changelog's file.
const CHANGELOG: &str = "perf-changelog.yaml";

/// A changelog with an entry for each name.
fn entries(names: &[&str]) -> String {
    let entry = |name: &&str| {
        let link = "https://github.com/acme/bench/pull/1";
        format!("- config-keys: ['{name}-*']\n  description: ['Measure {name}']\n  pr-link: {link}\n")
    };
    names.iter().map(entry).collect::<Vec<_>>().join("\n")
}

/// A commit that adds a file and an entry.
fn change(at: &Path, file: &str, message: &str) -> String {
    write(at, file, file);
    let before = std::fs::read_to_string(at.join(CHANGELOG)).unwrap_or_default();
    let text = if before.is_empty() {
        entries(&[file])
    } else {
        format!("{before}\n{}", entries(&[file]))
    };
    write(at, CHANGELOG, text);
    commit(at, message)
}
