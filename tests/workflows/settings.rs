//! Settings of jobs on a GPU: how long they may take, and what they check out.

use serde_json::json;

use crate::support::{commit, git, json as read, run, stderr, write};

/// A starter with some text of a file replaced.
pub(super) fn starter(changes: &[(&str, &str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    git(root, &["init", "-q"]);
    commit(root, "Start");
    assert!(run(root, ["init"]).status.success());
    for (path, from, to) in changes {
        let text = std::fs::read_to_string(root.join(path)).expect("a file");
        assert!(text.contains(from), "{path}: {from}");
        write(root, path, text.replace(from, to));
    }
    commit(root, "Adopt sweepctl");
    folder
}

const WORKFLOWS: &str = "configs/workflows.yaml";
const DEFAULT: &str = "timeouts:\n  default: 15\n";

fn with_rules(rules: &str) -> tempfile::TempDir {
    let timeouts = format!("{DEFAULT}  gpu:\n    default: 500\n    rules: {rules}\n");
    starter(&[(WORKFLOWS, DEFAULT, &timeouts)])
}

#[test]
fn the_minutes_of_a_job_travel_in_its_envelope() {
    for (rules, throughput, eval) in [
        ("[]", 500, 500),
        ("[{ labels: [local], minutes: 7200 }]", 7200, 7200),
        (
            "[{ eval: true, minutes: 30 }, { nodes: single, scenario: fixed-seq-len, minutes: 40 }]",
            40,
            30,
        ),
        (
            "[{ nodes: multi, minutes: 30 }, { scenario: agentic-coding, minutes: 40 }]",
            500,
            500,
        ),
    ] {
        let folder = with_rules(rules);
        let root = folder.path();
        assert!(run(root, ["plan", "--latest", "--emit", "plan"]).status.success());
        let mut seen = Vec::new();
        for name in ["single_node_8k1k", "evals"] {
            let shard = read(root, ["shard", "--plan", "plan", "--bucket", name, "--index", "0"]);
            let text = shard.to_string();
            let minutes = text.split("\"timeout-minutes\":").nth(1).expect("minutes");
            seen.push(
                minutes
                    .split([',', '}'])
                    .next()
                    .expect("a number")
                    .parse::<u64>()
                    .expect("a number"),
            );
        }
        assert_eq!(seen, [throughput, eval], "{rules}");
    }
}

#[test]
fn what_names_nothing_is_refused() {
    for (rules, part) in [
        ("[{ labels: [lokal], minutes: 9 }]", "`lokal` is no label and no runner"),
        ("[{ minutes: 7201 }]", "minutes"),
        ("[{ node: multi, minutes: 9 }]", "unknown field `node`"),
        ("[{ scenario: agentic, minutes: 9 }]", "agentic-coding"),
        (
            "[{ nodes: multi, minutes: 9 }, { nodes: multi, eval: true, minutes: 8 }]",
            "never reached",
        ),
    ] {
        let refused = run(with_rules(rules).path(), ["check"]);
        assert_eq!(refused.status.code(), Some(1), "{rules}");
        assert!(stderr(&refused).contains(part), "{rules}: {}", stderr(&refused));
    }
    let parallel = starter(&[(WORKFLOWS, "  default: 32\n", "  default: 32\n  labels: { lokal: 3 }\n")]);
    assert!(stderr(&run(parallel.path(), ["check"])).contains("`lokal` is no label"));
    assert!(
        run(with_rules("[{ labels: [local_0], minutes: 9 }]").path(), ["check"])
            .status
            .success()
    );
}

#[test]
fn a_checkout_brings_submodules_with_a_token_of_its_own() {
    let checkout = "\ncheckout: { submodules: recursive, token-secret: MODULES, whole-history: true }\n";
    let folder = starter(&[(
        WORKFLOWS,
        "launch-secrets: [HF_TOKEN]\n",
        &format!("launch-secrets: [HF_TOKEN]\n{checkout}"),
    )]);
    let root = folder.path();
    assert!(run(root, ["render"]).status.success());
    let output = run(root, ["workflow", "check"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = std::fs::read_to_string(root.join(".github/workflows/benchmark-tmpl.yml")).expect("a file");
    let step = text.split("- name: Check out").nth(1).expect("a step");
    let step = step.split("- name:").next().expect("a step");
    for line in [
        "submodules: recursive",
        "token: ${{ secrets.MODULES }}",
        "fetch-depth: 0",
        "persist-credentials: false",
    ] {
        assert!(step.contains(line), "{line}: {step}");
    }
    // It is the checkout's alone: the launch does not see it.
    let launch = text
        .split("- name: Launch")
        .nth(1)
        .expect("a step")
        .split("- name:")
        .next()
        .expect("a step");
    assert!(launch.contains("HF_TOKEN") && !launch.contains("MODULES"), "{launch}");
    assert_eq!(json!(text.matches("MODULES").count()), json!(2));
}

/// A server may take ten inputs of a form: what is asked of a sweep is then one of them.
#[test]
fn the_form_of_a_dispatch_may_have_few_inputs() {
    let secrets = "launch-secrets: [HF_TOKEN]\n";
    let folder = starter(&[(
        "configs/workflows.yaml",
        secrets,
        &format!("{secrets}dispatch-inputs: 10\n"),
    )]);
    let root = folder.path();
    assert!(run(root, ["render"]).status.success());
    let text = std::fs::read_to_string(root.join(".github/workflows/e2e-tests.yml")).expect("a file");
    let form = &text[..text.find("workflow_call:").expect("both forms")];
    let inputs: Vec<&str> = form
        .lines()
        .filter_map(|line| line.strip_prefix("      ")?.strip_suffix(':'))
        .filter(|name| !name.starts_with(' '))
        .collect();
    assert_eq!(
        inputs,
        [
            "generate-cli-command",
            "test-name",
            "ref",
            "base-ref",
            "head-ref",
            "pr-labels-json",
            "asked"
        ]
    );
    assert!(
        text.contains(r#"${ASKED:+"--asked=$ASKED"}"#) && !text.contains("--trim-conc="),
        "{text}"
    );
    let output = run(root, ["workflow", "check"]);
    assert!(output.status.success(), "{}", stderr(&output));
}
