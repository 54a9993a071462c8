//! Every row of a fleet has a command on the cluster that runs it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use sweepctl::config::fleet::{Fleet, FleetFiles};
use sweepctl::matrix::envelope::Envelope;
use sweepctl::step::environment::{self, Environment, Place};
use sweepctl::step::launch::backend::{self, Intent, Prepared};

use crate::corpus::corpus;
use crate::support::{commit, git, project, run, stderr, write};

/// What a launch of a row would do on a runner, in a checkout.
fn intend(fleet: &Fleet, row: &Value, runner: &str, checkout: &Path) -> Result<Intent, String> {
    let job =
        json!({"id": "0123456789ab", "name": "a row", "runs-on": row["runner"], "timeout-minutes": 360, "row": row});
    let envelope: Envelope = serde_json::from_value(job).map_err(|error| error.to_string())?;
    let place = Place {
        runner_name: runner.to_owned(),
        workspace: checkout.display().to_string(),
        eval_max_model_len: sweepctl::step::environment::eval_max_model_len(&envelope.row),
        ..Place::default()
    };
    let mut environment = Environment::new(&envelope, &place).map_err(|error| error.to_string())?;
    let none = indexmap::IndexMap::new();
    environment::add(&mut environment, &none, fleet, &envelope, runner).map_err(|error| error.to_string())?;
    let label = &envelope.row.topology.runner;
    let backend = backend::of(fleet, Some(&envelope), label, runner, None).map_err(|error| error.message)?;
    let job = Prepared {
        envelope: &envelope,
        environment: &environment,
        runner,
        workspace: checkout,
        state: Path::new("/state"),
    };
    backend.intend(&job).map_err(|error| error.to_string())
}

fn rows(folder: &Path, args: &[&str]) -> Vec<Value> {
    let mut all = vec!["generate", "full-sweep", "--json"];
    all.extend(args);
    let output = run(folder, all);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("rows")
}

#[test]
fn every_row_of_the_project_has_a_command_on_every_runner_of_its_label() {
    let file = |name: &str| project().join("configs").join(name);
    let fleet = Fleet::read(&FleetFiles {
        runners: file("runners.yaml"),
        clusters: file("clusters.yaml"),
        engines: Some(file("engines.yaml")),
    })
    .expect("the project's fleet");
    let mut tried: BTreeMap<&str, usize> = BTreeMap::new();
    for policy in [&[][..], &["--evals-only"]] {
        for row in rows(project(), policy) {
            let label = row["runner"].as_str().expect("a label");
            for runner in &fleet.runners.labels[label] {
                let intent = intend(&fleet, &row, runner, project());
                if label == "cluster:gb200-cedar" {
                    // A replay behind srt-slurm needs a recipe of its own; these rows name none yet.
                    let why = intent.expect_err("no recipe");
                    assert!(why.contains("the row names no `srt-recipe`"), "{why}");
                    continue;
                }
                let intent = intent.unwrap_or_else(|why| panic!("{runner}: {row}\n{why}"));
                assert!(!intent.commands.is_empty(), "{row}");
                *tried.entry(intent.backend).or_default() += 1;
            }
        }
    }
    for backend in ["container", "local", "srt"] {
        assert!(
            tried.get(backend).is_some_and(|count| *count > 0),
            "{backend}: {tried:?}"
        );
    }
}

/// A cluster of each backend that engines serve.
const CLUSTERS: [(&str, &str); 4] = [
    ("local", "{ backend: local }"),
    (
        "docker",
        "{ backend: container, runtime: docker, gpus: nvidia, network: host }",
    ),
    ("slurm", "{ backend: slurm, partition: p }"),
    (
        "pyxis",
        "{ backend: slurm, partition: p, container: pyxis, mounts: [{ host: /hub, container: /hub }] }",
    ),
];

#[test]
fn rows_of_a_real_fleet_have_commands_or_are_refused_for_a_reason() {
    let Some(corpus) = corpus() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let bundle = corpus.join("history.bundle");
    git(folder.path(), &["clone", "-q", bundle.to_str().expect("a path"), "."]);
    let rows: Vec<Value> = rows(folder.path(), &["--single-node"]);
    assert!(rows.len() > 500, "{}", rows.len());
    let text: String = CLUSTERS
        .map(|(name, cluster)| format!("  {name}: {cluster}\n"))
        .concat();
    let labels: String = CLUSTERS.map(|(name, _)| format!("  {name}: [{name}_0]\n")).concat();
    let home = tempfile::tempdir().expect("a folder");
    write(home.path(), "runners.yaml", format!("labels:\n{labels}"));
    write(home.path(), "clusters.yaml", format!("clusters:\n{text}"));
    let fleet = Fleet::read(&FleetFiles {
        runners: home.path().join("runners.yaml"),
        clusters: home.path().join("clusters.yaml"),
        engines: None,
    })
    .expect("a fleet");
    let mut refused: BTreeMap<String, usize> = BTreeMap::new();
    for row in &rows {
        let answers = CLUSTERS.map(|(name, _)| intend(&fleet, row, &format!("{name}_0"), home.path()));
        let fine = answers.iter().filter(|answer| answer.is_ok()).count();
        assert!(fine == 0 || fine == CLUSTERS.len(), "{row}: {answers:?}");
        if let Err(why) = &answers[0] {
            let lost = why.split(" of `").next().unwrap_or(why).replace("error: ", "");
            *refused.entry(lost).or_default() += 1;
        }
    }
    let all: usize = refused.values().sum();
    // What a model's own draft or a store of the cluster's needs, no default can know.
    let known = ["spec-decoding: draft_model", "kv-offloading: dram"];
    let unknown: Vec<&String> = refused
        .keys()
        .filter(|why| !known.iter().any(|known| why.contains(known)))
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?} of {refused:#?}");
    assert!(
        all * 10 < rows.len() * 3,
        "{all} of {} are refused: {refused:#?}",
        rows.len()
    );
}

/// A repository with one config, whose runner and framework are given, and clusters.
fn repository(runner: &str, framework: &str, clusters: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let config = format!(
        "c:\n  image: i\n  model: m\n  model-prefix: m\n  precision: fp8\n  framework: {framework}\n  runner: {runner}\n  \
         multinode: false\n  scenarios:\n    fixed-seq-len:\n    - isl: 1024\n      osl: 1024\n      search-space:\n      \
         - {{ tp: 2, conc-list: [4] }}\n"
    );
    write(folder.path(), "configs/nvidia-master.yaml", config);
    write(
        folder.path(),
        "configs/runners.yaml",
        "labels:\n  h200: [h200-x_00]\n  h100: [h100-y_00]\n",
    );
    if !clusters.is_empty() {
        write(
            folder.path(),
            "configs/clusters.yaml",
            format!("clusters:\n  {clusters}\n"),
        );
    }
    folder
}

#[test]
fn what_cannot_run_is_found_before_a_runner_takes_it() {
    let local = "h200-x: { backend: local }";
    let cases = [
        ("h200", "vllm", local, None),
        ("h200", "vllm", "", None),
        ("h200-x_00", "vllm", local, None),
        (
            "h2000",
            "vllm",
            local,
            Some(("config/no-such-runner", "did you mean `h200`")),
        ),
        (
            "h100",
            "vllm",
            local,
            Some(("config/no-cluster", "`h100-y_00` of `h100`")),
        ),
        (
            "h200",
            "vlm",
            local,
            Some(("config/no-command", "there is no engine `vlm`")),
        ),
        (
            "h200",
            "vllm",
            "h200-x: { backend: script }",
            Some((
                "config/no-command",
                "there is no launch script `runners/launch_h200-x.sh`",
            )),
        ),
    ];
    for (runner, framework, clusters, found) in cases {
        let folder = repository(runner, framework, clusters);
        let output = run(folder.path(), ["check"]);
        let said = stderr(&output);
        let Some((id, text)) = found else {
            assert!(output.status.success(), "{runner} {framework} {clusters}: {said}");
            continue;
        };
        assert_eq!(output.status.code(), Some(1), "{runner}: {said}");
        assert!(
            said.contains(&format!("error[{id}]")) && said.contains(text),
            "{text}: {said}"
        );
        if id == "config/no-such-runner" {
            continue;
        }
        // A matrix of such rows is refused; the rows themselves may be looked at.
        let emitted = run(folder.path(), ["generate", "full-sweep", "--emit", "out"]);
        assert_eq!(emitted.status.code(), Some(1), "{}", stderr(&emitted));
        assert!(stderr(&emitted).contains(text), "{}", stderr(&emitted));
        let looked_at = run(folder.path(), ["generate", "full-sweep", "--json"]);
        assert!(looked_at.status.success(), "{}", stderr(&looked_at));
        // So is a plan.
        let entry = "- config-keys: [c]\n  description: [d]\n  pr-link: https://example.com/1\n";
        git(folder.path(), &["init", "-q"]);
        write(folder.path(), "perf-changelog.yaml", "[]\n");
        commit(folder.path(), "none");
        write(folder.path(), "perf-changelog.yaml", entry);
        commit(folder.path(), "one");
        let plan = run(folder.path(), ["plan", "--base-ref", "HEAD~1", "--head-ref", "HEAD"]);
        assert_eq!(plan.status.code(), Some(1), "{}", stderr(&plan));
        assert!(stderr(&plan).contains(text), "{}", stderr(&plan));
    }
}
