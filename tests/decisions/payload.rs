//! Event payloads as GitHub writes them, as far as anybody here could look at them, from a row of the table.

use serde_json::{Value, json};

use super::history::History;

/// The hash that GitHub writes where there is no commit.
pub const ZERO: &str = "0000000000000000000000000000000000000000";

/// An event's name and payload.
pub struct Payload {
    pub name: String,
    pub body: Value,
}

/// Builds the payload of a row's first three columns.
pub fn payload(event: &str, labels: &str, also: &str, history: &History) -> Payload {
    let (kind, rest) = event.split_once(' ').unwrap_or((event, ""));
    let rest = rest.trim();
    match kind {
        "push" => push(rest, also, history),
        "dispatch" => dispatch(also),
        "merge_group" => merge_group(rest, history),
        "event" => Payload {
            name: rest.to_owned(),
            body: json!({ "repository": repository("acme/bench", "main"), "sender": user() }),
        },
        action => pull_request(action, rest, labels, also, history),
    }
}

/// `name=value` among the words of a column.
pub fn set<'a>(also: &'a str, name: &str) -> Option<&'a str> {
    also.split_whitespace()
        .find_map(|word| word.split_once('=').filter(|(n, _)| *n == name).map(|(_, value)| value))
}

pub fn has(also: &str, word: &str) -> bool {
    also.split_whitespace().any(|w| w == word)
}

fn user() -> Value {
    json!({ "login": "octo", "id": 1, "type": "User", "site_admin": false })
}

fn repository(full_name: &str, default_branch: &str) -> Value {
    let (owner, name) = full_name.split_once('/').expect("an owner and a name");
    json!({
        "id": 42, "name": name, "full_name": full_name, "private": false, "fork": owner != "acme",
        "owner": { "login": owner, "id": 7, "type": "Organization" }, "default_branch": default_branch,
    })
}

fn label(name: &str) -> Value {
    json!({ "id": 9, "node_id": "LA_x", "name": name, "color": "ededed", "default": false, "description": null })
}

fn pull_request(action: &str, moved: &str, labels: &str, also: &str, history: &History) -> Payload {
    let marked = ["marked-in-body", "marked-before", "marked"]
        .into_iter()
        .find(|name| has(also, name));
    let head = history.commit(set(also, "head").or(marked).unwrap_or("topic"));
    let base = history.commit(set(also, "base").unwrap_or("tip"));
    let home = repository("acme/bench", "main");
    let head_repo = match () {
        () if has(also, "fork-gone") => Value::Null,
        () if has(also, "fork") => repository("somebody/bench", "main"),
        () => home.clone(),
    };
    let labels: Vec<Value> = labels.split_whitespace().map(label).collect();
    let merged = has(also, "merged");
    let closed = merged || has(also, "closed");
    let mut body = json!({
        "action": action,
        "number": 12,
        "pull_request": {
            "id": 1234, "number": 12, "title": "Measure it", "body": null, "locked": false, "merged": merged,
            "state": if closed { "closed" } else { "open" },
            "draft": has(also, "draft"),
            "user": user(),
            "labels": labels,
            "head": { "label": "x:topic", "ref": "topic", "sha": head, "user": user(), "repo": head_repo },
            "base": { "label": "acme:main", "ref": "main", "sha": base, "user": user(), "repo": home },
            "author_association": "MEMBER", "commits": 1, "changed_files": 1,
        },
        "repository": home,
        "sender": user(),
    });
    match action {
        "labeled" | "unlabeled" => body["label"] = label(moved),
        "synchronize" => {
            body["before"] = json!(ZERO);
            body["after"] = json!(head);
        }
        _ => {}
    }
    Payload {
        name: "pull_request".to_owned(),
        body,
    }
}

fn push(branch: &str, also: &str, history: &History) -> Payload {
    let hash = |name: &str| match set(also, name).expect("a push has both") {
        "zero" => ZERO.to_owned(),
        commit => history.commit(commit).to_owned(),
    };
    let (before, after) = (hash("before"), hash("after"));
    let full = if branch.starts_with("refs/") {
        branch.to_owned()
    } else {
        format!("refs/heads/{branch}")
    };
    let deleted = has(also, "deleted");
    let body = json!({
        "ref": full, "before": before, "after": after, "base_ref": null,
        "created": before == ZERO, "deleted": deleted, "forced": has(also, "forced"),
        "commits": [], "head_commit": if deleted { Value::Null } else { json!({ "id": after }) },
        "compare": "https://github.example/compare", "pusher": { "name": "octo" },
        "repository": repository("acme/bench", set(also, "default").unwrap_or("main")),
        "sender": user(),
    });
    Payload {
        name: "push".to_owned(),
        body,
    }
}

/// A merge group for a pull request, `gh-readonly-queue/<base>/pr-<number>-<the base's commit>`, or another ref.
fn merge_group(of: &str, history: &History) -> Payload {
    let (base, head) = (history.commit("tip"), history.commit("merged"));
    let r#ref = match of.split_once(' ') {
        Some((base_branch, number)) => {
            format!("refs/heads/gh-readonly-queue/{base_branch}/pr-{}-{base}", number.trim())
        }
        None => of.to_owned(),
    };
    let body = json!({
        "action": "checks_requested",
        "merge_group": {
            "head_sha": head, "head_ref": r#ref, "base_sha": base, "base_ref": "refs/heads/main",
            "head_commit": { "id": head, "message": "Merge pull request #12" },
        },
        "repository": repository("acme/bench", "main"), "sender": user(),
    });
    Payload {
        name: "merge_group".to_owned(),
        body,
    }
}

/// Forms send text.
fn dispatch(also: &str) -> Payload {
    let inputs: serde_json::Map<String, Value> = also
        .split_whitespace()
        .map(|word| word.split_once('=').expect("an input has a value"))
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    let inputs = if inputs.is_empty() {
        Value::Null
    } else {
        Value::Object(inputs)
    };
    let body = json!({
        "inputs": inputs, "ref": "refs/heads/main", "workflow": ".github/workflows/e2e-tests.yml",
        "repository": repository("acme/bench", "main"), "sender": user(),
    });
    Payload {
        name: "workflow_dispatch".to_owned(),
        body,
    }
}
