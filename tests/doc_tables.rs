//! The tables of the documentation name what is there: fields, functions, files, variables, labels, inputs, artifacts.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use sweepctl::config::kind::Kind;
use sweepctl::config::source::Source;

use crate::support::{git, json, project, run, stdout, write};

const COMING: &str = "coming-from-inferencex";

fn page(name: &str) -> String {
    std::fs::read_to_string(project().join(format!("docs/{name}.md"))).expect("a page")
}

/// The rows of the table under a heading, or before the first one of a page's own: their cells.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, rest) = page
        .split_once(&format!("{heading}\n"))
        .unwrap_or_else(|| panic!("no `{heading}`"));
    let lines = rest.lines().skip_while(|line| !line.starts_with('|'));
    // The heading may be the table's own.
    let rows = lines
        .take_while(|line| line.starts_with('|'))
        .skip(if heading.starts_with('|') { 1 } else { 2 });
    let cells = |line: &str| -> Vec<String> {
        // A bar that belongs to a cell is escaped.
        let line = line.trim().trim_matches('|').replace("\\|", "\u{1}");
        line.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
    };
    let rows: Vec<Vec<String>> = rows.map(cells).collect();
    assert!(!rows.is_empty(), "{heading}: no table");
    rows
}

/// What a text sets in code.
fn code(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn names(rows: &[Vec<String>]) -> Vec<String> {
    rows.iter().flat_map(|row| code(&row[0])).collect()
}

fn properties(of: &Value) -> BTreeSet<String> {
    of["properties"]
        .as_object()
        .expect("properties")
        .keys()
        .cloned()
        .collect()
}

#[test]
fn the_fields_of_an_engine() {
    let page = page("engines");
    let schema = json(project(), ["schema", "engines"]);
    let definitions = schema.get("$defs").expect("definitions");
    let told: BTreeSet<String> = names(&table(&page, "| Field | What it says |")).into_iter().collect();
    assert_eq!(told, properties(&definitions["Engine"]));
    let (_, rest) = page.split_once("An override has ").expect("a sentence");
    let told: BTreeSet<String> = code(rest.split_once("\n\n").expect("its end").0).into_iter().collect();
    assert_eq!(told, properties(&definitions["Override"]));
}

#[test]
fn the_conditions_and_placeholders_of_an_engine() {
    let page = page("engines");
    let loads = |server: &str| {
        let text = format!("engines:\n  e:\n    server: {server}\n");
        Kind::Engines.check(&Arc::new(Source::new("engines.yaml", &text)))
    };
    let (_, rest) = page.split_once("as `match` of the").expect("a sentence");
    let fields = code(rest.split_once("; a value").expect("its end").0);
    assert_eq!(fields.len(), 4, "{fields:?}");
    for field in fields {
        loads(&format!("[p, {{ when: {{ {field}: [x] }}, args: [a] }}]"))
            .unwrap_or_else(|found| panic!("{field}: {found}"));
    }
    let (_, rest) = page.split_once("## Placeholders\n").expect("a heading");
    let section = rest.split_once("\n## ").expect("its end").0;
    let placeholders: Vec<String> = code(section).into_iter().filter(|text| text.starts_with('{')).collect();
    assert!(placeholders.len() > 12, "{placeholders:?}");
    for placeholder in placeholders {
        loads(&format!("[p, '--a={placeholder}']")).unwrap_or_else(|found| panic!("{placeholder}: {found}"));
    }
    assert!(
        loads("[p, '--a={no-such-thing}']").is_err(),
        "a placeholder that is none"
    );
}

fn library() -> String {
    stdout(&run(project(), ["shell-library"]))
}

/// The functions of a shell script that are called from outside.
fn functions(script: &str) -> BTreeSet<String> {
    let start = |line: &str| -> Option<String> {
        let (name, _) = line.split_once("()")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        (!name.is_empty() && name.chars().all(plain)).then(|| name.to_owned())
    };
    script.lines().filter_map(start).collect()
}

#[test]
fn the_functions_of_the_shell_library() {
    let page = page("shell-library");
    let told: BTreeSet<String> = names(&table(&page, "| Function | What it does |"))
        .iter()
        .filter_map(|call| call.split(' ').next().map(str::to_owned))
        .collect();
    let there = functions(&library());
    // What starts with `_` is a part of another.
    let own: BTreeSet<String> = there.iter().filter(|name| !name.starts_with('_')).cloned().collect();
    assert_eq!(told, own);
    let requirement = stdout(&run(project(), ["library", "replay-requirement"]));
    let version = requirement.trim().replace("==", "` ");
    assert!(page.contains(&version), "{version}");
}

/// A checkout, or a bare clone, of InferenceX; where none is named that is said loudly.
fn reference() -> Option<PathBuf> {
    let folder = std::env::var_os("SWEEPCTL_INFERENCEX").map(PathBuf::from);
    if folder.is_none() {
        eprintln!(
            "\n*** THE REFERENCE IS ABSENT: SWEEPCTL_INFERENCEX names no clone of it; its side of the page is not checked ***\n"
        );
    }
    folder
}

#[test]
fn every_function_that_the_references_scripts_call_is_there() {
    let Some(folder) = reference() else { return };
    let theirs = functions(&git(&folder, &["show", "HEAD:benchmarks/benchmark_lib.sh"]));
    let calls = git(
        &folder,
        &[
            "grep",
            "-hoE",
            "^ *[a-z_]+( |$)",
            "HEAD",
            "--",
            "benchmarks/*.sh",
            "runners/*.sh",
        ],
    );
    let called: BTreeSet<String> = calls.lines().map(|line| line.trim().to_owned()).collect();
    let wanted: Vec<&String> = theirs
        .intersection(&called)
        .filter(|name| !name.starts_with('_'))
        .collect();
    assert!(wanted.len() > 20, "{wanted:?}");
    let there = functions(&library());
    // Parts of its own, which scripts elsewhere do not call.
    let of_its_own = ["run_lm_eval", "run_swebench_eval"];
    let missing: Vec<_> = wanted
        .into_iter()
        .filter(|name| !there.contains(*name) && !of_its_own.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A repository as `init` leaves it.
fn adopted() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(run(folder.path(), ["init"]).status.success());
    folder
}

fn is_path(text: &str) -> bool {
    !text.contains(' ') && (text.contains('/') || [".yaml", ".json", ".py"].iter().any(|end| text.ends_with(end)))
}

#[test]
fn the_files_of_a_fleet_that_comes() {
    let rows = table(&page(COMING), "## Files");
    let adopted = adopted();
    for row in &rows {
        for text in code(&row[1])
            .iter()
            .filter(|text| is_path(text) && !text.starts_with('-'))
        {
            let there = adopted.path().join(text).exists() || project().join(text).exists();
            assert!(there, "`{text}` is nowhere here");
        }
    }
    let Some(folder) = reference() else { return };
    let files = git(&folder, &["ls-tree", "-r", "--name-only", "HEAD"]);
    for text in names(&rows).iter().filter(|text| is_path(text)) {
        let whole = if text.contains('/') {
            text.clone()
        } else {
            format!("**/{text}")
        };
        let glob = globset::Glob::new(&whole.replace("<fleet>", "*"))
            .expect("a glob")
            .compile_matcher();
        let is = |file: &str| glob.is_match(file) || (text.ends_with('/') && file.starts_with(text.as_str()));
        assert!(
            files.lines().any(|file| is(file) || file == text),
            "the reference has no `{text}`"
        );
    }
}

#[test]
fn the_variables_of_a_job_of_a_fleet_that_comes() {
    let rows = table(&page(COMING), "## Variables of a job");
    let known = json(project(), ["job", "env", "--envelope", &one(false), "--json"]);
    let many = json(project(), ["job", "env", "--envelope", &one(true), "--json"]);
    let mut tried = 0;
    for row in rows.iter().filter(|row| !row[1].contains("launch-secrets")) {
        // Workers bring their own.
        let of_workers = row[0].contains("additional-settings");
        for name in row[0]
            .split([',', ' '])
            .filter(|word| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        {
            let found = known.get(name).is_some() || many.get(name).is_some();
            assert!(found || of_workers, "a job has no variable {name}");
            tried += 1;
        }
    }
    assert!(tried > 15, "{tried}");
}

/// The file of a job on one node, or on several.
fn one(many: bool) -> String {
    let folder = tempfile::tempdir().expect("a folder").keep();
    let job = match many {
        true => crate::eval::support::multi_node("0123456789ab", &[4]),
        false => crate::eval::support::envelope("0123456789ab", json!({})),
    };
    write(&folder, "envelope.json", job.to_string()).display().to_string()
}

#[test]
fn the_labels_of_a_fleet_that_comes() {
    let labels = std::fs::read_to_string(project().join("configs/labels.yaml")).expect("a file");
    let rows = table(&page(COMING), "## Labels");
    for name in names(&rows).iter().filter(|name| !name.starts_with('[')) {
        assert!(labels.contains(name.as_str()), "configs/labels.yaml has no {name}");
    }
}

#[test]
fn the_inputs_of_a_dispatch_of_a_fleet_that_comes() {
    let adopted = adopted();
    let read = |name: &str| {
        let text = std::fs::read_to_string(adopted.path().join(".github/workflows").join(name)).expect("a workflow");
        let inputs = text.split_once("    inputs:\n").expect("inputs").1.to_owned();
        let own = |line: &&str| line.starts_with("      ") && !line.starts_with("       ") && line.ends_with(':');
        let lines = inputs
            .lines()
            .take_while(|line| line.is_empty() || line.starts_with("      "));
        lines
            .filter(own)
            .map(|line| line.trim().trim_end_matches(':').to_owned())
            .collect::<BTreeSet<String>>()
    };
    let ours = read("e2e-tests.yml");
    let rows = table(&page(COMING), "## Inputs of a dispatch");
    let mut tried = 0;
    for row in &rows {
        let same = row[1].starts_with("the same");
        let told = code(&row[usize::from(!same)]);
        for name in told.iter().filter(|name| !name.contains(' ')) {
            assert!(ours.contains(name), "e2e-tests.yml has no input `{name}`: {ours:?}");
            tried += 1;
        }
    }
    assert!(tried >= 10, "{tried}");
    for name in ["benchmark-tmpl.yml", "benchmark-multinode-tmpl.yml"] {
        assert!(read(name).contains("envelope"), "{name}");
    }
    let Some(folder) = reference() else { return };
    let theirs = git(&folder, &["show", "HEAD:.github/workflows/e2e-tests.yml"]);
    for name in names(&rows) {
        assert!(
            theirs.contains(&format!("      {name}:\n")),
            "the reference has no input `{name}`"
        );
    }
}

#[test]
fn what_a_fleet_that_comes_had_built_in() {
    let settings = include_str!("../src/workflow/starter/workflows.yaml");
    let mut tried = 0;
    for text in table(&page(COMING), "## What the templates had built in")
        .iter()
        .flat_map(|row| code(&row[1]))
    {
        let Some((field, value)) = text.split_once(": ") else {
            assert!(text == "idle-minutes" || text.starts_with("sweepctl "), "{text}");
            continue;
        };
        let value = value.replace("NAME", "A_TOKEN").replace("[...]", "[]");
        let checked = if ["checkout", "timeouts", "priority"].contains(&field) {
            let text = without(settings, field) + &format!("{field}: {value}\n");
            Kind::Workflows.check(&Arc::new(Source::new("workflows.yaml", &text)))
        } else {
            let uses = if field.starts_with("container") {
                "uses: [docker], "
            } else {
                "uses: [slurm], "
            };
            let uses = if field == "uses" { "" } else { uses };
            let text = format!("clusters:\n  c: {{ backend: script, {uses}{field}: {value} }}\n");
            Kind::Clusters.check(&Arc::new(Source::new("clusters.yaml", &text)))
        };
        checked.unwrap_or_else(|found| panic!("{text}: {found}"));
        tried += 1;
    }
    assert!(tried >= 5, "{tried}");
    let cluster = "clusters:\n  c: { backend: script, idle-minutes: 60 }\n";
    assert!(
        Kind::Clusters
            .check(&Arc::new(Source::new("clusters.yaml", cluster)))
            .is_ok()
    );
}

/// A text of settings without a field of the top level.
fn without(settings: &str, field: &str) -> String {
    let mut out = String::new();
    let mut skips = false;
    for line in settings.lines() {
        if !line.starts_with([' ', '#', '-']) && !line.is_empty() {
            skips = line.starts_with(&format!("{field}:"));
        }
        if !skips {
            out.push_str(&format!("{line}\n"));
        }
    }
    out
}

#[test]
fn the_artifacts_of_a_fleet_that_comes() {
    use sweepctl::matrix::names::ArtifactKind;
    let kinds = [
        ArtifactKind::Bmk,
        ArtifactKind::BmkAgentic,
        ArtifactKind::Agentic,
        ArtifactKind::Eval,
        ArtifactKind::ServerLogs,
        ArtifactKind::GpuMetrics,
    ];
    let known: BTreeSet<String> = kinds
        .iter()
        .flat_map(|kind| [false, true].map(|eval_only| format!("{}_<exp-name>_<id>", kind.prefix(eval_only))))
        .collect();
    let adopted = adopted();
    let workflows = std::fs::read_dir(adopted.path().join(".github/workflows"))
        .expect("a folder")
        .flatten();
    let rendered: String = workflows
        .map(|file| std::fs::read_to_string(file.path()).expect("a workflow"))
        .collect();
    let mut told = BTreeSet::new();
    for row in table(&page(COMING), "## Artifacts") {
        for name in code(&row[1]).into_iter().filter(|name| name.ends_with("_<id>")) {
            assert!(known.contains(&name), "no artifact is called {name}");
            told.insert(name);
        }
        if row[1] == "the same" {
            for name in code(&row[0]) {
                assert!(
                    rendered.contains(&format!("name: {name}\n")),
                    "no step uploads `{name}`"
                );
            }
        }
    }
    assert_eq!(told, known, "every kind is told");
}

#[test]
fn the_policy_that_fits_a_fleet_that_comes_is_there() {
    let page = page(COMING);
    let (_, rest) = page.split_once("`active: ").expect("a policy");
    let name = rest.split_once('`').expect("its end").0;
    let policies = std::fs::read_to_string(project().join("configs/eval-policy.yaml")).expect("a file");
    assert!(
        policies.contains(&format!("  \"{name}\":")),
        "no policy is named {name}"
    );
}
