//! What may be asked of a sweep has one name everywhere, and a plan is named in one way.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sweepctl::config::asked::{Asked, fields, output_name};
use sweepctl::github::decide::Decision;
use sweepctl::matrix::envelope::Envelope;

use crate::support::fleet::{entry, log, repository};
use crate::support::{self, project, run, stderr, stdout, write};

/// A value that a flag or an input of this name takes.
fn example(name: &str) -> &'static str {
    match name {
        "duration" => "600",
        "eval-limit" => "full",
        _ => "text",
    }
}

#[test]
fn everything_has_one_name_everywhere() {
    let fields = fields();
    let all = serde_json::to_value(Asked::default()).expect("an object");
    let all: BTreeSet<&String> = all.as_object().expect("an object").keys().collect();
    assert_eq!(fields.iter().map(|field| &field.name).collect::<BTreeSet<_>>(), all);
    let form = std::fs::read_to_string(project().join(".github/workflows/e2e-tests.yml")).expect("the file");
    let sweep = std::fs::read_to_string(project().join(".github/workflows/run-sweep.yml")).expect("the file");
    let outputs = Decision::default().outputs();
    let helps: Vec<(&str, String)> = [
        vec!["plan", "--help"],
        vec!["generate", "full-sweep", "--help"],
        vec!["generate", "test-config", "--help"],
        vec!["dispatch", "--help"],
    ]
    .into_iter()
    .map(|args| (args[0], stdout(&run(project(), args))))
    .collect();
    for field in &fields {
        let (name, output) = (&field.name, output_name(&field.name));
        assert!(form.contains(&format!("      {name}:\n")), "the form lacks {name}");
        assert!(outputs.iter().any(|(known, _)| *known == output), "{output}");
        for (command, help) in &helps {
            assert!(help.contains(&format!("--{name}")), "{command} lacks --{name}");
        }
        let read = sweep.contains(&format!("steps.decide.outputs.{output} == 'true' && '--{name}'"));
        assert_eq!(read, field.is_switch, "{name}");
        // What a form sends as text is asked, and asked anew by flags and inputs.
        let text = if field.is_switch { "true" } else { example(name) };
        let asked: Asked = serde_json::from_value(json!({ name: text })).expect("a value");
        assert_eq!(asked.inputs(), [(name.clone(), text.to_owned())]);
        let flag = if field.is_switch {
            format!("--{name}")
        } else {
            format!("--{name}={text}")
        };
        assert_eq!(asked.flags(), [flag]);
        assert_eq!(asked.said().len(), 1, "{name}");
    }
}

#[test]
fn a_plan_keeps_what_was_asked_of_it_and_its_jobs_what_changes_them() {
    let folder = repository();
    log(folder.path(), &entry("beta-mi-vllm-fp8", ""));
    let args = ["plan", "--latest", "--trim-conc", "--fail-fast", "--duration", "60"];
    // What only emitted jobs can be asked for is refused without them.
    let output = run(folder.path(), args);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--fail-fast changes the jobs of a plan"),
        "{}",
        stderr(&output)
    );
    let index = support::json(folder.path(), [&args[..], &["--emit", "plan"]].concat());
    assert_eq!(
        index["asked"],
        json!({ "trim-conc": true, "fail-fast": true, "duration": 60 })
    );
    let jobs = std::fs::read(folder.path().join("plan/single_node_agentic/0.json")).expect("a shard");
    let mut jobs: Vec<Value> = serde_json::from_slice(&jobs).expect("JSON");
    assert_eq!(jobs[0]["overrides"], json!({ "duration": 60 }));
    jobs[0]["overrides"] = json!({ "trim-conc": true });
    assert!(serde_json::from_value::<Envelope>(jobs[0].clone()).is_err());
    jobs[0]["overrides"] = json!({ "unknown": 1 });
    assert!(serde_json::from_value::<Envelope>(jobs[0].clone()).is_err());
}

#[test]
fn a_plan_is_a_folder_its_index_or_a_list() {
    let folder = repository();
    log(folder.path(), &entry("beta-mi-vllm-fp8", ""));
    support::json(folder.path(), ["plan", "--latest", "--emit", "plan"]);
    let shard = |plan: &str| {
        let args = [
            "shard",
            "--plan",
            plan,
            "--bucket",
            "single_node_agentic",
            "--index",
            "0",
        ];
        run(folder.path(), args)
    };
    let list = stdout(&shard("plan"));
    assert_eq!(stdout(&shard("plan/index.json")), list);
    write(folder.path(), "list.json", &list);
    let jobs = serde_json::from_str::<Vec<Value>>(&list).expect("a list").len();
    let output = shard("list.json");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("is no folder of a plan, nor its index"),
        "{}",
        stderr(&output)
    );
    let index = sweepctl::plan_files::index(&folder.path().join("list.json")).expect("an index");
    assert_eq!((index.jobs, index.throughput_jobs, index.eval_jobs), (jobs, jobs, 0));
}
