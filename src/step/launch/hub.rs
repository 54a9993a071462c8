//! Whether the hub has a model, before an engine is started that would look for it there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::config::problem::Problem;
use crate::http;

/// The hub, unless HF_ENDPOINT says otherwise.
const ENDPOINT: &str = "https://huggingface.co";
/// The file that every model has.
const FILE: &str = "config.json";
/// The header in which the hub says which kind of refusal it is.
const CODE: &str = "x-error-code";
/// The values of HF_HUB_OFFLINE that the hub's own library takes for yes.
const YES: [&str; 4] = ["1", "ON", "TRUE", "YES"];

/// A model of the hub, and what this host knows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Its name, `org/model`.
    name: String,
    /// Folders that hold a cache of the hub.
    caches: Vec<PathBuf>,
    /// The files that may hold a token.
    tokens: Vec<PathBuf>,
}

/// What the hub says of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It has the model.
    There,
    /// It has none for this host.
    Refused(Problem),
    /// Nothing that can be relied on; the engine may still find the model.
    Unknown(String),
}

impl Model {
    /// A model by its name; `None` where that is no name of the hub's. `homes` are folders that stand for the engine's
    /// HF_HOME.
    #[must_use]
    pub fn new(name: &str, homes: &[PathBuf], caches: Vec<PathBuf>) -> Option<Self> {
        let legal = |part: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(plain)
        };
        let is_name = name.split('/').count() <= 2 && name.split('/').all(legal);
        is_name.then(|| Self {
            name: name.to_owned(),
            caches: [caches, homes.iter().map(|home| home.join("hub")).collect()].concat(),
            tokens: homes.iter().map(|home| home.join("token")).collect(),
        })
    }

    /// Whether a cache holds a revision of it.
    #[must_use]
    pub fn is_cached(&self) -> bool {
        let folder = format!("models--{}", self.name.replace('/', "--"));
        let has = |cache: &PathBuf| std::fs::read_dir(cache.join(&folder).join("snapshots")).ok()?.next();
        self.caches.iter().any(|cache| has(cache).is_some())
    }

    /// Asks the hub, within some time. Where HF_HUB_OFFLINE forbids that, the model would have to be cached.
    #[must_use]
    pub fn ask(&self, time: Duration) -> Answer {
        let offline = variable("HF_HUB_OFFLINE").unwrap_or_default().to_ascii_uppercase();
        if YES.contains(&offline.as_str()) {
            let message = format!(
                "the model `{}` is in no cache of the hub, and HF_HUB_OFFLINE is set",
                self.name
            );
            return Answer::Refused(Problem::file("", message).hint(format!(
                "fetch it with `hf download {}`, name its folder by MODEL_PATH, or unset HF_HUB_OFFLINE",
                self.name
            )));
        }
        let endpoint = variable("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned());
        let url = format!("{}/{}/resolve/main/{FILE}", endpoint.trim_end_matches('/'), self.name);
        // A redirect says that the file is there, and the token goes to nobody else.
        let request = http::Request::head(&url, time)
            .bearer(self.token().as_deref())
            .with_proxy();
        match request.send() {
            Err(error) => Answer::Unknown(format!("{endpoint} cannot be asked for `{}`: {error}", self.name)),
            Ok(answer) => {
                let code = answer.headers.get(CODE).and_then(|code| code.to_str().ok());
                self.judge(&endpoint, answer.status.as_u16(), code.unwrap_or_default())
            }
        }
    }

    fn token(&self) -> Option<String> {
        let file = |path: &PathBuf| std::fs::read_to_string(path).ok();
        let found = variable("HF_TOKEN").or_else(|| variable("HUGGING_FACE_HUB_TOKEN"));
        let token = found.or_else(|| self.tokens.iter().find_map(file))?;
        let token = token.trim();
        // A header holds nothing else.
        let plain = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
        plain.then(|| token.to_owned())
    }

    fn judge(&self, endpoint: &str, status: u16, code: &str) -> Answer {
        let name = &self.name;
        let (why, hint) = match (status, code) {
            (200..=399, _) | (404, "EntryNotFound") => return Answer::There,
            (401 | 403, "GatedRepo") => (
                "it is gated, and this runner has no access",
                "accept its terms at the hub, and set HF_TOKEN to a token of that account",
            ),
            (401 | 403, _) => (
                "it is unknown, private or gated",
                "correct `model` in the config, or set HF_TOKEN to a token that may read it",
            ),
            (404, _) => (
                "there is none of that name",
                "correct `model` in the config, or name the folder of its files by MODEL_PATH",
            ),
            _ => return Answer::Unknown(format!("{endpoint} answers {status} for the model `{name}`")),
        };
        let message = format!("{endpoint} refuses the model `{name}` ({status}): {why}");
        Answer::Refused(Problem::file("", message).hint(hint))
    }
}

/// HF_HOME of this host's own processes.
#[must_use]
pub(crate) fn home() -> Option<PathBuf> {
    let own = || variable("HOME").map(|home| Path::new(&home).join(".cache/huggingface"));
    variable("HF_HOME").map(PathBuf::from).or_else(own)
}

/// HF_HUB_CACHE of this host's own processes.
#[must_use]
pub(crate) fn cache() -> Option<PathBuf> {
    variable("HF_HUB_CACHE").map(PathBuf::from)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_hub_are_asked_for() {
        let model = |name: &str| Model::new(name, &[], Vec::new());
        for name in ["gpt2", "org/Model-7B_v1.0"] {
            assert!(model(name).is_some(), "{name}");
        }
        for name in ["", "/models/x", "a/b/c", "../x", "org/..", "a b", "a?b", "a/", "./x"] {
            assert!(model(name).is_none(), "{name}");
        }
    }

    #[test]
    fn an_answer_counts_where_it_says_something_of_the_model() {
        let model = Model::new("org/m", &[], Vec::new()).expect("a name");
        let judge = |status, code| model.judge("https://hub", status, code);
        for (status, code) in [(200, ""), (302, ""), (307, ""), (404, "EntryNotFound")] {
            assert_eq!(judge(status, code), Answer::There, "{status}");
        }
        let refused = |status, code| match judge(status, code) {
            Answer::Refused(problem) => problem.message,
            other => panic!("{status}: {other:?}"),
        };
        assert!(refused(403, "GatedRepo").contains("it is gated"));
        assert!(refused(401, "RepoNotFound").contains("unknown, private or gated"));
        assert!(refused(404, "RepoNotFound").contains("there is none of that name"));
        for status in [429, 500, 503] {
            assert!(matches!(judge(status, ""), Answer::Unknown(_)), "{status}");
        }
    }

    #[test]
    fn a_cache_holds_a_model_where_it_holds_a_revision() {
        let home = tempfile::tempdir().expect("a folder");
        let model = Model::new("org/m", &[home.path().to_owned()], Vec::new()).expect("a name");
        assert!(!model.is_cached());
        std::fs::create_dir_all(home.path().join("hub/models--org--m/snapshots")).expect("folders");
        assert!(!model.is_cached(), "a download that has just begun");
        std::fs::create_dir(home.path().join("hub/models--org--m/snapshots/abc")).expect("a folder");
        assert!(model.is_cached());
    }
}
