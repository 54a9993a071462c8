//! The runner's service: what arrives, what is missing, and what fails.

use std::time::{Duration, Instant};

use serde_json::json;

use super::service::{Artifact, Given, Service};
use super::{arrived, fetch, fetched, plan, small, state, zips};
use crate::fixture::read_json;
use crate::support::{run, stderr, stdout, write};

#[test]
fn a_plan_arrives_in_the_layout_that_collect_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let names = plan(at, 3);
    let aggregate = |conc: u64| {
        json!({"hw": "h200", "conc": conc, "infmax_model_prefix": "m1", "framework": "vllm", "precision": "fp8",
               "isl": 8192, "osl": 1024, "is_multinode": false, "tp": 8, "tput_per_gpu": 1.5})
        .to_string()
    };
    let of = |id: u64, name: &str| Artifact::new(id, name, zips::zip(&[("agg_r.json", aggregate(id))]));
    let mut others = vec![
        small(90, "plan"),
        small(91, "server_logs_x"),
        small(92, "bmk_x_ffffffffffff"),
    ];
    others.extend([of(4, &names[0]), of(8, &names[1])]);
    let service = Service::new(others);
    let report = fetched(&service, at, &["--plan", "plan.json", "--out", "results"]);
    for (field, wanted) in [
        ("wanted", 3),
        ("fetched", 2),
        ("missing", 1),
        ("failed", 0),
        ("kept", 0),
    ] {
        assert_eq!(report[field], wanted, "{field}");
    }
    assert_eq!(report["via"], "runner");
    assert_eq!(report, read_json(&at.join("results/fetch.json")));
    assert_eq!(state(&at.join("results"), &names[2]).0, "missing");
    let first = &report["artifacts"][0];
    assert_eq!(first["job"], "000000000001");
    assert_eq!(
        (&first["kind"], &first["id"], &first["files"]),
        (&json!("bmk"), &json!(4), &json!(1))
    );
    assert_eq!(
        arrived(&at.join("results")),
        [format!("{}/agg_r.json", names[0]), format!("{}/agg_r.json", names[1])]
    );
    let collected = run(at, ["collect", "results", "results", "--plan", "plan.json"]);
    let collected: serde_json::Value = serde_json::from_slice(&collected.stdout).expect("JSON");
    let states: Vec<&str> = collected["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| job["state"].as_str().expect("a state"))
        .collect();
    assert_eq!(
        states,
        ["failed", "failed", "missing"],
        "concurrencies of other jobs: {collected}"
    );
    assert_eq!(collected["rows"].as_array().map(Vec::len), Some(2));
}

#[test]
fn five_thousand_artifacts_arrive_side_by_side() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let names = plan(at, 5000);
    let mut artifacts: Vec<Artifact> = (1..).zip(&names).map(|(id, name)| small(id, name)).collect();
    // A few are slow, and a few servers are busy at first.
    for artifact in artifacts.iter_mut().step_by(500) {
        artifact.given = Given::Late(Duration::from_millis(300));
    }
    for artifact in artifacts.iter_mut().skip(7).step_by(700) {
        artifact.given = Given::Refused(1, 503);
    }
    let service = Service::new(artifacts).busy(1);
    let started = Instant::now();
    let report = fetched(&service, at, &["--plan", "plan.json", "--out", "results"]);
    eprintln!("5,000 artifacts in {:.1} s", started.elapsed().as_secs_f64());
    assert_eq!(report["fetched"], 5000);
    assert!((4..=16).contains(&service.most()), "{} at a time", service.most());
    assert_eq!(arrived(&at.join("results")).len(), 5000);
    let lists = service.calls().iter().filter(|call| *call == "ListArtifacts").count();
    assert_eq!(lists, 2, "one was refused");
    let asked: usize = service.downloads().values().sum();
    assert_eq!(asked, 5008);
    // The same again fetches nothing.
    let again = fetched(&service, at, &["--plan", "plan.json", "--out", "results"]);
    assert_eq!((&again["kept"], &again["fetched"]), (&json!(5000), &json!(0)));
    assert_eq!(service.downloads().values().sum::<usize>(), asked);
}

#[test]
fn no_more_are_on_their_way_than_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = plan(folder.path(), 12);
    let late = |(id, name): (u64, &String)| small(id, name).given(Given::Late(Duration::from_millis(30)));
    let service = Service::new((1..).zip(&names).map(late).collect());
    fetched(
        &service,
        folder.path(),
        &["--plan", "plan.json", "--out", "o", "--parallel", "3"],
    );
    assert_eq!(service.most(), 3);
}

#[test]
fn what_is_busy_or_breaks_is_tried_again_and_what_stays_wrong_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let service = Service::new(vec![
        small(1, "fine"),
        small(2, "busy").given(Given::Refused(1, 503)),
        small(3, "cut").given(Given::Cut(1)),
        small(4, "late-sign").given(Given::Refused(1, 403)),
        small(5, "changed").given(Given::Changed),
        small(6, "always-busy").given(Given::Refused(9, 500)),
        small(7, "gone").given(Given::Refused(9, 404)),
        small(8, "expired").given(Given::Refused(9, 410)),
    ]);
    let names = [
        "fine",
        "busy",
        "cut",
        "late-sign",
        "changed",
        "always-busy",
        "gone",
        "expired",
    ];
    let output = fetch(&service, at, &[&names[..], &["--out", "o", "--attempts", "2"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let out = at.join("o");
    let states: Vec<String> = names.iter().map(|name| state(&out, name).0).collect();
    assert_eq!(
        states,
        [
            "fetched", "fetched", "fetched", "fetched", "failed", "failed", "failed", "expired"
        ]
    );
    assert!(state(&out, "changed").1.contains("was uploaded"));
    assert!(state(&out, "always-busy").1.contains("500"));
    assert!(state(&out, "gone").1.contains("404"));
    let said = stderr(&output);
    for name in &names[4..] {
        assert!(said.contains(&format!("`{name}`: ")), "{said}");
    }
    // Each as often as it helps.
    let downloads = service.downloads();
    assert_eq!(
        (1..=8).map(|id| downloads[&id]).collect::<Vec<_>>(),
        [1, 2, 2, 2, 2, 2, 1, 1]
    );
    assert_eq!(
        arrived(&out),
        [
            "busy/agg_r.json",
            "cut/agg_r.json",
            "fine/agg_r.json",
            "late-sign/agg_r.json"
        ],
        "nothing that is half there looks whole"
    );
    // What is repaired arrives, and nothing else is fetched again.
    service.change(|artifacts| artifacts.iter_mut().for_each(|artifact| artifact.given = Given::Whole));
    let report = fetched(&service, at, &[&names[..], &["--out", "o"]].concat());
    assert_eq!((&report["kept"], &report["fetched"]), (&json!(4), &json!(4)));
}

#[test]
fn of_one_name_the_newest_counts_and_a_newer_one_replaces_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    // The second attempt ran the second job again; the first job's artifact is that of the first attempt.
    let service = Service::new(vec![small(12, "b"), small(3, "a"), small(7, "b")]);
    fetched(&service, at, &["a", "b", "--out", "o"]);
    let text = |name: &str| std::fs::read_to_string(at.join(format!("o/{name}/agg_r.json"))).expect("a file");
    assert_eq!(
        (text("a").as_str(), text("b").as_str()),
        ("{\"id\": 3}", "{\"id\": 12}")
    );
    service.change(|artifacts| {
        artifacts.push(Artifact::new(20, "b", zips::zip(&[("other.json", "{}")])));
    });
    let report = fetched(&service, at, &["a", "b", "--out", "o"]);
    assert_eq!((&report["kept"], &report["fetched"]), (&json!(1), &json!(1)));
    assert_eq!(
        arrived(&at.join("o")),
        ["a/agg_r.json", "b/other.json"],
        "nothing of the older one stays"
    );
    // What was lost or changed here is fetched again.
    write(at, "o/a/agg_r.json", "{}");
    std::fs::remove_dir_all(at.join("o/b")).expect("removed");
    let report = fetched(&service, at, &["a", "b", "--out", "o"]);
    assert_eq!(report["fetched"], 2);
    assert_eq!(text("a"), "{\"id\": 3}");
}

#[test]
fn a_name_must_be_there_unless_it_is_optional() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let service = Service::new(vec![small(1, "results_bmk")]);
    let output = fetch(
        &service,
        at,
        &[
            "results_bmk",
            "result_bmk",
            "--optional",
            "eval_results_all",
            "--out",
            "o",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("`result_bmk`: the run has no artifact of this name"),
        "{said}"
    );
    assert!(said.contains("results_bmk"), "the nearest is named: {said}");
    assert!(!said.contains("eval_results_all"), "{said}");
    assert_eq!(
        arrived(&at.join("o")),
        ["results_bmk/agg_r.json"],
        "what is there arrives"
    );
    let report = fetched(
        &service,
        at,
        &["results_bmk", "--optional", "eval_results_all", "--out", "o"],
    );
    assert_eq!((&report["kept"], &report["missing"]), (&json!(1), &json!(1)));
    let nothing = Service::new(Vec::new());
    let report = fetched(&nothing, at, &["--optional", "plan", "--out", "p"]);
    assert_eq!(report["missing"], 1);
}

#[test]
fn a_list_that_is_cut_hides_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = plan(folder.path(), 150);
    let service = Service::new((1..).zip(&names[..140]).map(|(id, name)| small(id, name)).collect()).cut(100);
    let report = fetched(&service, folder.path(), &["--plan", "plan.json", "--out", "o"]);
    assert_eq!((&report["fetched"], &report["missing"]), (&json!(140), &json!(10)));
}

#[test]
fn a_list_that_cannot_be_had_fails_before_anything_is_fetched() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let service = Service::new(vec![small(1, "plan")]);
    let mut command = service.command(at);
    command.args(["fetch", "plan", "--out", "o"]).env(
        "ACTIONS_RUNTIME_TOKEN",
        "e30.eyJzY3AiOiJBY3Rpb25zLlJlc3VsdHM6YTpiIn0.c2ln",
    );
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("cannot be listed: ListArtifacts was answered with 401 no token of this run"),
        "{said}"
    );
    assert_eq!(service.calls().len(), 1, "it is not tried again");
    assert!(arrived(&at.join("o")).is_empty());
}

#[test]
fn a_step_has_its_outputs_its_summary_and_a_readable_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let names = plan(at, 2);
    let service = Service::new(vec![small(1, &names[0])]);
    let mut command = service.command(at);
    command
        .args([
            "fetch",
            "--plan",
            "plan.json",
            "--out",
            "o",
            "--github-output",
            "--report",
            "r/fetch.json",
        ])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_OUTPUT", at.join("outputs"))
        .env("GITHUB_STEP_SUMMARY", at.join("summary"));
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).starts_with("2 artifacts: 1 fetched, 1 missing (1 MiB)\n"),
        "{}",
        stdout(&output)
    );
    let outputs = std::fs::read_to_string(at.join("outputs")).expect("outputs");
    let values: Vec<&str> = outputs.lines().filter(|line| !line.contains("sweepctl_")).collect();
    assert_eq!(values, ["1", "1"], "{outputs}");
    let summary = std::fs::read_to_string(at.join("summary")).expect("a summary");
    assert!(summary.contains(&format!("| {} | missing |", names[1])), "{summary}");
    assert!(at.join("r/fetch.json").is_file() && !at.join("o/fetch.json").exists());
}

#[test]
fn wrong_usage_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    for (args, wanted) in [
        (&["fetch", "--out", "o"][..], "<NAME>"),
        (&["fetch", "--kind", "bmk", "--out", "o"], "--plan"),
        (&["fetch", "plan"], "--out"),
        (&["fetch", "plan", "--out", "o", "--parallel", "0"], "--parallel"),
    ] {
        let output = run(at, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(wanted), "{}", stderr(&output));
    }
    let service = Service::new(Vec::new());
    let output = fetch(&service, at, &["../x", ".fetch", "a/b", "--out", "o"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output).matches("is no name of an artifact").count(),
        3,
        "{}",
        stderr(&output)
    );
}
