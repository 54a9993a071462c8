//! Findings: their ids, their page, and how they are printed.

mod sarif;

use serde_json::Value;
use sweepctl::findings::{all, page, refusals};

use crate::support::fleet::{edit, folder};
use crate::support::{project, run, stderr, stdout};

#[test]
fn the_page_lists_what_the_code_finds() {
    let there = std::fs::read_to_string(project().join("docs/findings.md")).unwrap_or_default();
    assert!(
        there == page(),
        "docs/findings.md differs: run `sweepctl findings --markdown >docs/findings.md`"
    );
}

/// What `check` prints of a fleet with one mistake.
fn broken(args: &[&str]) -> Value {
    let folder = folder();
    edit(folder.path(), "configs/amd-master.yaml", "  model-prefix: alpha\n", "");
    let output = run(folder.path(), [&["check"], args].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).starts_with("error[config/missing-field]: "),
        "{}",
        stderr(&output)
    );
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

#[test]
fn json_says_what_text_says() {
    let found = broken(&["--json"]);
    assert_eq!(found, broken(&["--format", "json"]));
    let [finding] = found["findings"].as_array().expect("a list").as_slice() else {
        panic!("{found}")
    };
    assert_eq!(finding["id"], "config/missing-field");
    assert_eq!(finding["severity"], "error");
    assert_eq!(finding["file"], "configs/amd-master.yaml");
    assert_eq!(finding["remedy"], "add `model-prefix:`");
    assert!(finding["line"].as_u64().is_some_and(|line| line > 0), "{finding}");
}

#[test]
fn sarif_names_rule_and_place() {
    let log = broken(&["--format", "sarif"]);
    let run = &log["runs"][0];
    assert_eq!(log["version"], "2.1.0");
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    assert_eq!(rules.len(), all().count());
    let result = &run["results"][0];
    let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("a small number");
    assert_eq!(rules[index]["id"], "config/missing-field");
    assert_eq!(result["ruleId"], "config/missing-field");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "configs/amd-master.yaml");
    assert!(
        place["region"]["endColumn"].as_u64() > place["region"]["startColumn"].as_u64(),
        "{place}"
    );
}

#[test]
fn the_likeliest_mistakes_have_ids_of_their_own() {
    let areas: Vec<&str> = all().filter(|f| refusals::is_of_area(f)).map(|f| f.id).collect();
    let mut seen = 0;
    for entry in std::fs::read_dir(project().join("snapshots")).expect("snapshots") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a snapshot");
        for line in text.lines().filter(|line| line.starts_with("error[")) {
            let id = line.trim_start_matches("error[").split(']').next().unwrap_or_default();
            let is_check = areas.iter().all(|area| *area != id);
            assert!(is_check || !id.starts_with("config/"), "{}: {line}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen} findings in the snapshots");
}
