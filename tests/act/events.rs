//! Events of the repository under test, as GitHub writes them.

use serde_json::{Value, json};

/// The repository's name.
pub const NAME: &str = "acme/bench";

fn repository() -> Value {
    json!({
        "id": 42, "name": "bench", "full_name": NAME, "private": false, "fork": false, "default_branch": "main",
        "owner": { "login": "acme", "id": 7, "type": "Organization" },
    })
}

/// A push to the default branch.
pub fn push(before: &str, after: &str) -> Value {
    json!({
        "ref": "refs/heads/main", "before": before, "after": after, "base_ref": null, "created": false,
        "deleted": false, "forced": false, "commits": [], "head_commit": { "id": after },
        "repository": repository(), "sender": { "login": "octo" },
    })
}

/// The last of a pull request's labels was added.
pub fn labeled(labels: &[&str], base: &str, head: &str) -> Value {
    let labels: Vec<Value> = labels.iter().map(|name| json!({ "name": name })).collect();
    json!({
        "action": "labeled", "number": 2, "label": labels.last(),
        "pull_request": {
            "number": 2, "title": "Measure it", "body": null, "state": "open", "draft": false, "labels": labels,
            "head": { "ref": "topic", "sha": head, "repo": repository() },
            "base": { "ref": "main", "sha": base, "repo": repository() },
        },
        "repository": repository(), "sender": { "login": "octo" },
    })
}

/// Somebody filled in the form of a workflow.
pub fn dispatch(workflow: &str, inputs: Value) -> Value {
    json!({
        "inputs": inputs, "ref": "refs/heads/main", "workflow": format!(".github/workflows/{workflow}"),
        "repository": repository(), "sender": { "login": "octo" },
    })
}
