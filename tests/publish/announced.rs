//! What other repositories are told: templates, bounds, and several targets.

use std::process::Output;
use std::sync::Arc;

use serde_json::{Value, json};
use sweepctl::config::kind::Kind;
use sweepctl::config::source::Source;

use super::{A64, Run, fingerprint, settings};
use crate::support::{stderr, stdout, sweepctl};

fn announce(run: &Run, more: &[&str]) -> Output {
    let mut command = sweepctl(run.0.path());
    command
        .args(["ingest", "--to", "acme/results", "--event-type", "done", "--dry-run"])
        .args(more)
        .env("GITHUB_REPOSITORY", "acme/bench")
        .env("GITHUB_RUN_ID", "77")
        .env("GITHUB_RUN_ATTEMPT", "2")
        .env("GITHUB_SHA", "0123abc");
    command.output().expect("the binary runs")
}

fn payload(run: &Run, more: &[&str]) -> Value {
    let output = announce(run, more);
    assert!(output.status.success(), "{}", stderr(&output));
    let event: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(event["event_type"], "done");
    event["client_payload"].clone()
}

const LEDGER: [&str; 2] = ["--ledger", "kept/ledger.json"];

#[test]
fn a_payload_says_what_is_published_and_what_is_withheld() {
    let run = Run::new();
    run.without(&format!("bmk_m1_{A64}")).collect(&[]);
    let told = payload(&run, &LEDGER);
    assert_eq!(told["published"][0], fingerprint('b'));
    assert_eq!(told["withheld"][0]["recipe"], fingerprint('a'));
    assert_eq!(told["withheld"][0]["name"], "m1 fp8 vllm h200 8k1k tp8");
    assert!(
        told["withheld"][0]["reason"].to_string().contains("no result arrived"),
        "{told}"
    );
    assert_eq!(
        (
            &told["published_count"],
            &told["withheld_count"],
            &told["whole"],
            &told["publish"]
        ),
        (&json!(2), &json!(1), &json!(true), &json!("recipe"))
    );
    assert!(told.as_object().expect("an object").len() <= 10);
    // Where nothing is published there is nothing to tell.
    run.collect(&["--publish", "run"]);
    let output = announce(&run, &LEDGER);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("Nothing is published") && said.contains("m1 fp8 vllm h200 8k1k tp8"),
        "{said}"
    );
}

#[test]
fn a_template_gives_the_payload_and_no_value_changes_what_surrounds_it() {
    let run = Run::new();
    run.collect(&[]);
    let path = run.0.path().join("kept/ledger.json");
    let mut ledger = crate::fixture::read_json(&path);
    let hostile = "\"}, \"evil\": [= run_id =] {\\u0000";
    ledger["recipes"][0]["published"] = json!(false);
    ledger["recipes"][0]["name"] = json!(hostile);
    run.file("kept/ledger.json", &ledger);
    let template = r#"{ "of": [= repository =], "commit": [= commit =], "reused": [= reused_run_id =],
        "names": [[% for one in withheld %][= one.name =][% if not loop.last %], [% endif %][% endfor %]],
        "count": [= published_count =], "text": [= "run " ~ run_id =] }"#;
    let told = payload(&run, &[&LEDGER[..], &["--payload", template]].concat());
    assert_eq!(
        told,
        json!({
            "of": "acme/bench", "commit": "0123abc", "reused": null, "names": [hostile], "count": 2, "text": "run 77",
        })
    );
    for (template, words) in [
        ("{ \"a\": [= nothing =] }", "undefined value"),
        ("{ \"a\": [= run_id }", "the payload cannot be sent"),
        ("[1]", "it is no JSON object"),
        ("{ \"a\": \"[= run_id =]\" }", "it is no JSON"),
        ("{", "it is no JSON"),
    ] {
        let output = announce(&run, &["--payload", template]);
        assert_eq!(output.status.code(), Some(1), "{template}");
        assert!(stderr(&output).contains(words), "{template}: {}", stderr(&output));
    }
}

#[test]
fn a_payload_stays_within_what_github_takes() {
    let run = Run::new();
    let recipes = |count: usize, reason: &str| {
        let recipe = |n: usize| {
            let published = n.is_multiple_of(2);
            json!({
                "recipe": format!("{n:064}"), "name": format!("recipe {n}"), "published": published, "planned": 1,
                "done": 1, "reason": if published { "" } else { reason },
            })
        };
        let recipes: Vec<Value> = (0..count).map(recipe).collect();
        run.file(
            "kept/ledger.json",
            &json!({ "publish": "recipe", "recipes": recipes, "jobs": [] }),
        );
        payload(&run, &LEDGER)
    };
    // Reasons are cut, then left out, and then lists are cut, which is said.
    let told = recipes(10, &"x".repeat(10_000));
    assert_eq!(told["withheld"][0]["reason"].as_str().map(str::len), Some(300));
    assert_eq!(told["whole"], true);
    let told = recipes(600, &"x".repeat(10_000));
    assert_eq!(
        (&told["withheld"][0]["reason"], &told["whole"]),
        (&json!(""), &json!(true))
    );
    let told = recipes(20_000, "why");
    assert_eq!(
        (&told["whole"], &told["withheld_count"]),
        (&json!(false), &json!(10_000))
    );
    let length = told.to_string().len();
    assert!(length < 65_536 && length > 20_000, "{length}");
    let output = announce(
        &run,
        &["--payload", &format!("{{ \"a\": \"{}\" }}", "x".repeat(70_000))],
    );
    assert!(
        stderr(&output).contains("larger than the 65000 bytes"),
        "{}",
        stderr(&output)
    );
}

fn check(more: &str) -> Result<(), String> {
    let source = Arc::new(Source::new("workflows.yaml".to_owned(), settings(more)));
    Kind::Workflows
        .check(&source)
        .map(drop)
        .map_err(|problems| problems.to_string())
}

#[test]
fn settings_name_one_target_or_several_and_their_templates_are_tried() {
    assert_eq!(check("ingest: { repository: a/b, event-type: e, secret: S }\n"), Ok(()));
    let several = "publish: job\ningest:\n\
                   - { repository: a/b, event-type: e, secret: S }\n\
                   - { repository: a/c, event-type: e, secret: T, payload: '{ \"run\": [= run_id =] }' }\n";
    assert_eq!(check(several), Ok(()));
    let target =
        |payload: &str| format!("ingest: [{{ repository: a/b, event-type: e, secret: S, payload: {payload:?} }}]\n");
    let eleven: Vec<String> = (0..11).map(|n| format!("\"f{n}\": [= run_id =]")).collect();
    for (payload, words) in [
        ("{ \"a\": [= runid =] }", "undefined value"),
        ("{ \"a\": \"[= run_id =]\" }", "it is no JSON"),
        ("[= published =]", "it is no JSON object"),
        ("{ \"a\": [% if %] }", "cannot be sent"),
        ("{ \"a\": ${{ secrets.X }} }", "would be an expression"),
        (
            format!("{{ {} }}", eleven.join(", ")).as_str(),
            "it has 11 fields at its top, GitHub takes 10",
        ),
    ] {
        let refused = check(&target(payload)).expect_err(payload);
        assert!(refused.contains(words), "{payload}: {refused}");
    }
    for (more, words) in [
        ("publish: recipes\n", "recipe"),
        ("ingest: []\n", "ingest"),
        (
            "ingest: [{ repository: a/b, event-type: e, secret: S }, { repository: a/b, event-type: e, secret: T }]\n",
            "`a/b` is told of `e` twice",
        ),
    ] {
        let refused = check(more).expect_err(more);
        assert!(refused.contains(words), "{more}: {refused}");
    }
}
