//! The clusters file.

use std::sync::Arc;

use serde_json::Value;
use sweepctl::backends::container::Runtime;
use sweepctl::config::clusters::command::{placeholders, variable};
use sweepctl::config::clusters::{Backend, Clusters, Gpus, fleet, fleet_script};
use sweepctl::config::fields::PassedField;
use sweepctl::config::fleet::{Fleet, FleetFiles};
use sweepctl::config::kind::Kind;
use sweepctl::config::problem::Problems;
use sweepctl::config::runners::Runners;
use sweepctl::config::source::Source;
use sweepctl::step::environment::{Environment, Place};

use super::{envelope, single_agentic, single_fixed};
use crate::support::project;

const LABELS: &str = "labels:\n  a: [a_0, a_1]\n  ab: [a-b_0]\n  local: [local_0]\n";

fn source(name: &str, text: &str) -> Arc<Source> {
    Arc::new(Source::new(name.to_owned(), text.to_owned()))
}

fn load(text: &str) -> Result<Clusters, Problems> {
    let runners = Runners::load(&source("runners.yaml", LABELS)).expect("runners");
    Clusters::load(&source("clusters.yaml", text), Some(&runners))
}

/// A clusters file.
fn with(clusters: &str) -> String {
    format!("clusters:\n{clusters}")
}

fn own() -> Fleet {
    let file = |name: &str| project().join("configs").join(name);
    Fleet::read(&FleetFiles {
        runners: file("runners.yaml"),
        clusters: file("clusters.yaml"),
        engines: None,
    })
    .expect("the project's fleet")
}

#[test]
fn clusters_in_the_runners_file_are_told_where_to_go() {
    let text = format!("{LABELS}clusters:\n  a: {{ backend: script }}\n");
    let problems = Runners::load(&source("runners.yaml", &text)).expect_err("another file");
    assert_eq!(problems.0.len(), 1, "{problems}");
    assert_eq!(problems.0[0].message, "unknown field `clusters` in the runners file");
    assert!(
        problems.0[0]
            .hint
            .as_deref()
            .is_some_and(|hint| hint.contains("configs/clusters.yaml")),
        "{problems}"
    );
}

#[test]
fn a_runner_belongs_to_the_cluster_that_names_it_else_to_its_fleets() {
    let runners = load(&with(
        "  a: { backend: script }\n  \
           one: { runners: [a_1], backend: srt }\n  \
           rest: { fleets: [a-b, local], backend: script, path: runners/x.sh }",
    ))
    .expect("clusters");
    let of = |runner: &str| runners.of(runner).map(|(name, _)| name);
    assert_eq!(of("a_0"), Some("a"));
    assert_eq!(of("a_1"), Some("one"));
    assert_eq!(of("a_99"), Some("a"), "a runner that joined its fleet later");
    assert_eq!(of("a-b_0"), Some("rest"), "no fleet is another's beginning");
    assert_eq!(of("local_0"), Some("rest"));
    assert_eq!(of("b_0"), None);
    assert_eq!((fleet("h200-x_0_1"), fleet("alone")), ("h200-x", "alone"));
}

#[test]
fn a_fleet_has_a_script_that_no_name_leads_elsewhere() {
    assert_eq!(fleet_script("h200-x_07").as_deref(), Some("runners/launch_h200-x.sh"));
    for name in ["../x_0", "a/b_0", "_0", "", "a b_0", "$(x)_0", "cluster:x_0"] {
        assert_eq!(fleet_script(name), None, "{name}");
    }
}

#[test]
fn every_field_is_read() {
    let runners = load(&with(
        "  local:\n    backend: local\n    server-command: [serve, '--port={port}', '{\"a\": {\"b\": 1}}', '{model}']\n    \
               port: 8000\n    throughput-command: [bench, '{conc}']\n  \
           a:\n    backend: container\n    runtime: podman\n    gpus: amd\n    \
               mounts: [{ host: /h, container: /c, read-only: yes }]\n    shm-size: 64g\n    network: host\n  \
           a-b: { backend: slurm, partition: p, account: q, time: 1-00:30:00, extra: [--exclusive, -N2] }",
    ))
    .expect("clusters");
    let Backend::Local(local) = &runners.clusters["local"].backend else {
        panic!("{runners:?}")
    };
    assert_eq!(
        (local.served.port, local.served.ready_timeout_seconds),
        (Some(8000), 1800)
    );
    let value = |name: &str| match name {
        "PORT" => Some("8000".to_owned()),
        "MODEL" => Some("org/a b; rm -rf {port}".to_owned()),
        _ => Some(String::new()),
    };
    let arguments = local
        .server_command
        .as_ref()
        .expect("a server")
        .fill(value)
        .expect("arguments");
    assert_eq!(
        arguments,
        ["serve", "--port=8000", "{\"a\": {\"b\": 1}}", "org/a b; rm -rf {port}"],
        "a value is one argument, and is not read again"
    );
    let missing = local.throughput_command.as_ref().expect("a client").fill(value);
    assert_eq!(
        missing.expect_err("no value").to_string(),
        "this job has no value for `{conc}`"
    );
    let Backend::Container(container) = &runners.clusters["a"].backend else {
        panic!("{runners:?}")
    };
    assert_eq!((container.runtime, container.gpus), (Runtime::Podman, Gpus::Amd));
    assert!(container.mounts[0].read_only);
    let Backend::Slurm(slurm) = &runners.clusters["a-b"].backend else {
        panic!("{runners:?}")
    };
    assert_eq!(slurm.time.as_deref(), Some("1-00:30:00"));
    assert_eq!(slurm.extra, ["--exclusive", "-N2"]);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let cases = [
        ("  a: {}", "the cluster `a` lacks `backend`"),
        ("  a: { backend: shell }", "`shell` is not a value of `backend`"),
        (
            "  a: { backend: script, partition: x }",
            "unknown field `partition` in the cluster `a`",
        ),
        (
            "  a: { backend: script, path: /bin/sh }",
            "`/bin/sh` is not a value of `path`",
        ),
        (
            "  a: { backend: script, path: runners/../../x }",
            "is not a value of `path`",
        ),
        (
            "  a: { backend: local, server-command: serve --port 1 }",
            "`server-command` is a string",
        ),
        (
            "  a: { backend: local, server-command: [] }",
            "`server-command` is an empty list",
        ),
        (
            "  a: { backend: local, server-command: ['{model}'] }",
            "the program of `server-command` depends on the job",
        ),
        (
            "  a: { backend: local, server-command: [x, '{modle}'] }",
            "`{modle}` is no placeholder",
        ),
        (
            "  a: { backend: local, server-command: [x], port: 70000 }",
            "`port` is 70000, the most is 65535",
        ),
        (
            "  a: { backend: local, server-command: [x], port: '80' }",
            "`port` is a string",
        ),
        (
            "  a: { backend: local, server-command: [x], ready-timeout-seconds: 0 }",
            "it must be positive",
        ),
        ("  a: { backend: slurm }", "the cluster `a` lacks `partition`"),
        (
            "  a: { backend: slurm, partition: p, time: soon }",
            "`soon` is not a value of `time`",
        ),
        (
            "  a: { backend: slurm, partition: p, extra: [--nodes, '2'] }",
            "`2` in `extra` is no option",
        ),
        (
            "  a: { backend: slurm, partition: p, extra: [--job-name=x] }",
            "`--job-name` cannot stand in `extra`",
        ),
        (
            "  a: { backend: slurm, partition: p, extra: [--job-n=x] }",
            "`--job-n` cannot stand in `extra`",
        ),
        (
            "  a: { backend: slurm, partition: p, extra: [-Jx] }",
            "`-J` cannot stand in `extra`",
        ),
        ("  a: { backend: container }", "the cluster `a` lacks `runtime`"),
        (
            "  a: { backend: container, runtime: sh }",
            "`sh` is not a value of `runtime`",
        ),
        (
            "  a: { backend: container, runtime: docker, mounts: [/a:/b] }",
            "`a mount` is a string",
        ),
        (
            "  a: { backend: container, runtime: docker, mounts: [{ host: a, container: /b }] }",
            "`a` is not a value of `host`",
        ),
        (
            "  a: { backend: container, runtime: docker, mounts: [{ host: '/a:ro', container: /b }] }",
            "not a value of `host`",
        ),
        (
            "  a: { backend: container, runtime: docker, shm-size: lots }",
            "`lots` is not a value of `shm-size`",
        ),
        (
            "  a: { backend: container, runtime: docker, network: '--privileged' }",
            "not a value of `network`",
        ),
        (
            "  a: { backend: srt, workspace: here }",
            "`here` is not a value of `workspace`",
        ),
        ("  b: { backend: script }", "the fleet `b` stands under no label"),
        (
            "  a: { runners: [a_2], backend: script }",
            "the runner `a_2` stands under no label",
        ),
        (
            "  a: { backend: script }\n  x: { fleets: [a], backend: srt }",
            "the fleet `a` belongs to the cluster `a` already",
        ),
        (
            "  x: { runners: [a_0], backend: srt }\n  y: { runners: [a_0], backend: srt }",
            "the runner `a_0` belongs to the cluster `x`",
        ),
    ];
    for (clusters, said) in cases {
        let problems = load(&with(clusters)).expect_err(clusters);
        assert!(problems.to_string().contains(said), "{clusters}\n{problems}");
        assert!(
            problems.0.iter().all(|p| p.span.is_some_and(|s| s.line > 1)),
            "{clusters}\n{problems}"
        );
        assert_eq!(problems.0.len(), 1, "{clusters}\n{problems}");
    }
}

#[test]
fn every_problem_of_a_cluster_is_said() {
    let problems = load(&with(
        "  a: { backend: slurm, time: soon, extra: ['2'], colour: red }\n  b: { backend: srt, workspace: x }",
    ))
    .expect_err("wrong");
    assert_eq!(problems.0.len(), 6, "{problems}");
}

#[test]
fn the_schema_takes_what_the_loader_takes() {
    let schema = jsonschema::validator_for(&Kind::Clusters.schema()).expect("a schema");
    let valid = |yaml: &str| schema.is_valid(&tree(&format!("{{\"clusters\": {{\"a\": {yaml}}}}}")));
    assert!(valid(r#"{"backend": "script"}"#));
    assert!(valid(
        r#"{"backend": "slurm", "partition": "p", "extra": ["--exclusive"], "fleets": ["a"]}"#
    ));
    assert!(!valid(r#"{"backend": "script", "partition": "p"}"#));
    assert!(!valid(r#"{"backend": "slurm", "partition": "p", "extra": ["2"]}"#));
    assert!(!valid(r#"{"backend": "local", "server-command": "serve"}"#));
    assert!(!valid(
        r#"{"backend": "container", "runtime": "docker", "shm-size": "lots"}"#
    ));
    assert!(!valid(r#"{"backend": "shell"}"#));
    assert!(!valid(r#"{}"#));
}

fn tree(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn every_runner_of_the_project_has_a_cluster() {
    let Fleet { runners, clusters, .. } = own();
    for runner in runners.labels.values().flatten() {
        assert!(clusters.of(runner).is_some(), "{runner}");
    }
    let name = |runner: &str| clusters.of(runner).map(|(_, cluster)| cluster.backend.name());
    assert_eq!(name("local_0"), Some("local"));
    assert_eq!(name("h200-alder_03"), Some("container"));
    assert_eq!(name("h200-alder_04"), Some("slurm"));
    assert_eq!(name("gb200-cedar_01"), Some("srt"));
}

#[test]
fn the_desks_server_is_the_mock_server() {
    let fleet = own();
    let (_, cluster) = fleet.clusters.of("local_0").expect("a cluster");
    let Backend::Local(local) = &cluster.backend else {
        panic!("{cluster:?}")
    };
    let envelope = serde_json::from_value(envelope(single_fixed())).expect("an envelope");
    let environment = Environment::new(&envelope, &Place::default()).expect("an environment");
    let arguments = local
        .server_command
        .as_ref()
        .expect("a server")
        .fill(|name| {
            if name == "PORT" {
                Some("0".to_owned())
            } else {
                environment.get(name).map(str::to_owned)
            }
        })
        .expect("arguments");
    assert_eq!(
        arguments,
        [
            "sweepctl",
            "mock-server",
            "--port=0",
            "--model=org/Model-8B",
            "--max-model-len=9472",
            "--answers=configs/evals/data/gsm8k_smoke.jsonl",
            "--tokens-per-second=1000",
            "--latency-ms=20",
        ]
    );
}

#[test]
fn every_placeholder_is_a_variable_of_a_job() {
    let fill = Place {
        runner_name: "x_0".to_owned(),
        workspace: "/checkout".to_owned(),
        ..Place::default()
    };
    let environments: Vec<Environment> = [single_fixed(), single_agentic()]
        .into_iter()
        .map(|row| {
            let fill = Place {
                model_path: Some("/m".to_owned()),
                ..fill.clone()
            };
            let envelope = serde_json::from_value(envelope(row)).expect("an envelope");
            Environment::new(&envelope, &fill).expect("an environment")
        })
        .collect();
    // What only a launch knows, what follows from a variable, and what such rows leave empty.
    let others = [
        "port",
        "files",
        "context",
        "warmups",
        "dram-gb-per-gpu",
        "total-cpu-dram-bytes",
        "random-range-ratio",
        "result-dir",
        "conc-list",
        "eval-conc",
        "eval-framework",
        "eval-limit",
        "eval-max-model-len",
        "eval-suite",
        "github-run-attempt",
        "github-run-id",
        "kv-offload-backend",
        "kv-offload-backend-metadata",
        "kv-p2p-transfer",
        "recipe-fingerprint",
        "router",
        "router-metadata",
    ];
    let is_passed = |name: &str| {
        PassedField::ALL
            .iter()
            .any(|field| field.variable() == Some(variable(name)))
    };
    for placeholder in placeholders().filter(|name| !others.contains(name) && !is_passed(name)) {
        let has = |e: &Environment| e.get(variable(placeholder)).is_some_and(|value| !value.is_empty());
        assert!(environments.iter().any(has), "{placeholder}");
    }
    // And every variable of a job on one node is a placeholder.
    let known: Vec<&str> = placeholders().map(variable).collect();
    let unknown = ["INFMAX_WORKSPACE", "PYTHONDONTWRITEBYTECODE"];
    for name in environments.iter().flat_map(Environment::names) {
        assert!(
            known.iter().any(|own| **own == *name) || unknown.contains(&name),
            "{name}"
        );
    }
}
