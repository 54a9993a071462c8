//! Whether an event starts a workflow, and what the workflow knows of it.

use globset::GlobBuilder;
use serde_json::Value as Json;

use super::Run;
use super::value::Value;
use crate::config::tree::{self, Node};
use crate::workflow::tree::{File, get, pairs};

/// The actions of a pull request that start a workflow which does not name its own (GitHub: "Events that trigger
/// workflows").
const PULL_REQUEST_TYPES: [&str; 3] = ["opened", "synchronize", "reopened"];

/// Why an event does not start a workflow; `None` where it does. Paths are not looked at: the payload does not say
/// which files changed.
#[must_use]
pub(super) fn why_not(file: &File<'_>, event: &str, payload: &Json) -> Option<String> {
    if !file.triggers().any(|trigger| trigger.text() == event) {
        let known: Vec<&str> = file.triggers().map(Node::text).collect();
        return Some(format!("it starts on {}, not on {event}", known.join(", ")));
    }
    let filter = file.get("on").and_then(|on| get(on, event));
    let listed = |key: &str| filter.and_then(|filter| get(filter, key)).map(texts);
    if let Some(action) = payload["action"].as_str() {
        let default = || (event == "pull_request").then(|| PULL_REQUEST_TYPES.map(str::to_owned).to_vec());
        if let Some(types) = listed("types").or_else(default)
            && !types.iter().any(|known| known == action)
        {
            return Some(format!("it starts on {}, not on {action}", types.join(", ")));
        }
    }
    let branch = match event {
        "push" => branch_of(&payload["ref"]),
        "pull_request" => payload["pull_request"]["base"]["ref"].as_str(),
        "merge_group" => branch_of(&payload["merge_group"]["base_ref"]),
        "schedule" => return other_schedule(filter, payload),
        _ => return None,
    };
    let branches = listed("branches")?;
    let is_one = |branch: &str| branches.iter().any(|pattern| matches(pattern, branch));
    let of_what = match event {
        "push" => "pushes to",
        "merge_group" => "merge groups for",
        _ => "pull requests into",
    };
    (!branch.is_some_and(is_one)).then(|| {
        let found = branch.unwrap_or_else(|| payload["ref"].as_str().unwrap_or("no branch"));
        format!("it starts on {of_what} {}, not {found}", branches.join(", "))
    })
}

fn branch_of(name: &Json) -> Option<&str> {
    name.as_str()?.strip_prefix("refs/heads/")
}

/// Why a schedule does not start a workflow: the payload names the line that it is of.
fn other_schedule(filter: Option<&Node<'_>>, payload: &Json) -> Option<String> {
    let asked = payload["schedule"].as_str()?;
    let tree::Value::Seq(items) = &filter?.value else {
        return None;
    };
    let known: Vec<&str> = items
        .iter()
        .filter_map(|item| Some(get(item, "cron")?.text()))
        .collect();
    (!known.contains(&asked)).then(|| format!("it starts at {}, not at {asked}", known.join(", ")))
}

fn texts(node: &Node<'_>) -> Vec<String> {
    match &node.value {
        tree::Value::Seq(items) => items.iter().map(|item| item.text().to_owned()).collect(),
        _ => vec![node.text().to_owned()],
    }
}

fn matches(pattern: &str, branch: &str) -> bool {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map_or(pattern == branch, |glob| glob.compile_matcher().is_match(branch))
}

/// The inputs of a call or a dispatch: those that were given, as what they are declared, else their defaults.
#[must_use]
pub(super) fn inputs(file: &File<'_>, trigger: &str, given: &Value) -> Value {
    let declared = file
        .get("on")
        .and_then(|on| get(on, trigger))
        .and_then(|on| get(on, "inputs"));
    let one = |(name, how): &(Node<'_>, Node<'_>)| {
        let kind = get(how, "type").map_or("string", Node::text);
        let passed = match given {
            Value::Object(object) => object.get(name.text()).cloned(),
            _ => None,
        };
        let default = || get(how, "default").map(|node| Value::from(node.text()));
        let value = passed.or_else(default).unwrap_or(Value::Null);
        let value = match kind {
            "boolean" => Value::Bool(*value.text() == *"true"),
            "number" => Value::Number(value.number()),
            _ => Value::String(value.text()),
        };
        (name.text().to_owned(), value)
    };
    declared.map_or(&[][..], pairs).iter().map(one).collect()
}

/// The context `github` of an event's run. What a payload does not say is made up.
#[must_use]
pub(super) fn github(workflow: &str, event: &str, payload: &Json, run: Run) -> Value {
    let text = |pointer: &str| payload.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
    let pull = payload.pointer("/pull_request/number").and_then(Json::as_u64);
    let (id, attempt) = (run.id.to_string(), run.attempt.to_string());
    let r#ref = match (text("/ref"), text("/merge_group/head_ref"), pull) {
        ("", "", Some(number)) => format!("refs/pull/{number}/merge"),
        // Every other event runs on the default branch: a schedule, a comment, a dispatch of a repository.
        ("", "", None) => format!("refs/heads/{}", text("/repository/default_branch")),
        ("", name, _) | (name, ..) => name.to_owned(),
    };
    let name = r#ref.split_once('/').and_then(|(_, rest)| rest.split_once('/'));
    let ref_name = name.map_or(r#ref.as_str(), |(_, name)| name).to_owned();
    let sha = [
        text("/after"),
        text("/merge_group/head_sha"),
        text("/pull_request/merge_commit_sha"),
        text("/pull_request/head/sha"),
    ];
    let sha = sha.into_iter().find(|sha| !sha.is_empty()).unwrap_or_default();
    let texts = [
        ("event_name", event),
        ("workflow", workflow),
        ("ref", r#ref.as_str()),
        ("ref_name", ref_name.as_str()),
        ("head_ref", text("/pull_request/head/ref")),
        ("base_ref", text("/pull_request/base/ref")),
        ("sha", sha),
        ("repository", text("/repository/full_name")),
        ("repository_owner", text("/repository/owner/login")),
        ("actor", text("/sender/login")),
        ("triggering_actor", text("/sender/login")),
        ("run_id", id.as_str()),
        ("run_number", "1"),
        ("run_attempt", attempt.as_str()),
        ("server_url", "https://github.com"),
        ("api_url", "https://api.github.com"),
        ("token", ""),
    ];
    let texts = texts.into_iter().map(|(name, text)| (name, Value::from(text)));
    texts.chain([("event", Value::from(payload))]).collect()
}
