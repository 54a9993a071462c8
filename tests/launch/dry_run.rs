//! What would run, of every row of whole fleets, on every backend that fits.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use indexmap::IndexMap;
use serde_json::{Value, json};
use sweepctl::config::fleet::{Fleet, FleetFiles};
use sweepctl::config::source::Source;
use sweepctl::matrix::envelope::Envelope;
use sweepctl::step::environment::{self, Environment, Place};
use sweepctl::step::launch::backend::{self, Intent, Prepared};

use crate::corpus::corpus;
use crate::support;

const RUNNER: &str = "any_00";

/// Every row of a sweep, as a job.
fn jobs(folder: &Path) -> Vec<Envelope> {
    let masters = ["configs/nvidia-master.yaml", "configs/amd-master.yaml"];
    let args = [
        "generate",
        "full-sweep",
        "--eval-policy",
        "2026-10",
        "--json",
        "--config-files",
    ];
    let rows = support::json(folder, [&args[..], &masters].concat());
    let rows = rows.as_array().expect("rows").iter().enumerate();
    let envelope = |(at, row): (usize, &Value)| {
        let job = json!({"id": format!("{at:012x}"), "name": "a job", "runs-on": row["runner"], "timeout-minutes": 360, "row": row});
        serde_json::from_value(job).expect("an envelope")
    };
    rows.map(envelope).collect()
}

/// A fleet of one cluster, in YAML's flow form, with the engines that are built in.
fn fleet(cluster: &str) -> Fleet {
    let folder = tempfile::tempdir().expect("a folder");
    let files = FleetFiles {
        runners: support::write(
            folder.path(),
            "runners.yaml",
            format!("labels: {{ any: [{RUNNER}] }}\nhardware: {{}}\n"),
        ),
        clusters: support::write(folder.path(), "clusters.yaml", format!("clusters:\n  any: {cluster}\n")),
        engines: None,
    };
    Fleet::read(&files).unwrap_or_else(|problems| panic!("{cluster}: {problems}"))
}

/// What a launch of a job would do, with the variables that it would have.
fn intended(job: &Envelope, fleet: &Fleet, workspace: &Path) -> Result<(Intent, Environment), String> {
    let place = Place {
        runner_name: RUNNER.to_owned(),
        workspace: workspace.display().to_string(),
        ..Place::default()
    };
    let mut environment = Environment::new(job, &place).map_err(|problems| problems.to_string())?;
    environment::add(&mut environment, &IndexMap::new(), fleet, job, RUNNER)
        .map_err(|problems| problems.to_string())?;
    let label = &job.row.topology.runner;
    let backend = backend::of(fleet, Some(job), label, RUNNER, None).map_err(|problem| problem.message)?;
    let prepared = Prepared {
        envelope: job,
        environment: &environment,
        runner: RUNNER,
        workspace,
        state: Path::new("/state"),
    };
    let intent = backend.intend(&prepared);
    let intent = intent.map_err(|problems| {
        problems
            .0
            .iter()
            .map(|p| p.message.as_str())
            .collect::<Vec<_>>()
            .join("; ")
    })?;
    Ok((intent, environment))
}

/// How many jobs a cluster takes, and of those that it refuses the reasons, with the frameworks of their rows.
fn outcomes(jobs: &[Envelope], cluster: &str, workspace: &Path) -> (usize, BTreeMap<String, Vec<String>>) {
    let fleet = fleet(cluster);
    let refused = Mutex::new(BTreeMap::<String, Vec<String>>::new());
    let misses = support::misses(jobs, |job| match intended(job, &fleet, workspace) {
        Ok((intent, _)) if intent.commands.iter().all(|command| !command.is_empty()) && !intent.commands.is_empty() => {
            None
        }
        Ok((intent, _)) => Some(format!("{}: {intent:?}", job.row.exp_name)),
        Err(why) => {
            let framework = job.row.topology.framework.clone();
            let mut refused = refused.lock().expect("no panic");
            refused
                .entry(why.replace(&job.row.exp_name, "E"))
                .or_default()
                .push(framework);
            None
        }
    });
    support::assert_none("launches without a command", jobs.len(), &misses);
    let refused = refused.into_inner().expect("no panic");
    let count: usize = refused.values().map(Vec::len).sum();
    (jobs.len() - count, refused)
}

#[test]
fn every_row_of_a_full_sweep_has_a_launch_on_every_backend_that_fits() {
    let folder = tempfile::tempdir().expect("a folder");
    match corpus() {
        Some(corpus) => {
            let bundle = corpus.join("history.bundle");
            support::git(folder.path(), &["clone", "-q", bundle.to_str().expect("a path"), "."]);
        }
        None => {
            for name in ["amd-master.yaml", "nvidia-master.yaml", "runners.yaml"] {
                let text = std::fs::read(support::project().join("configs").join(name)).expect("a config");
                support::write(folder.path(), &format!("configs/{name}"), text);
            }
        }
    }
    let mut jobs = jobs(folder.path());
    // The smoke test of the project's own fleet has an engine of its own.
    jobs.retain(|job| job.row.topology.framework != "mock");
    assert!(jobs.len() > 180, "{}", jobs.len());
    support::write(folder.path(), "launch.sh", "");
    let is_many = |job: &&Envelope| job.row.topology.roles().is_some();
    let many = jobs.iter().filter(is_many).count();

    // A launch script takes every row.
    for cluster in [
        "{ backend: script }",
        "{ backend: container, runtime: docker, path: launch.sh }",
    ] {
        let (taken, refused) = outcomes(&jobs, cluster, folder.path());
        assert_eq!((taken, refused), (jobs.len(), BTreeMap::new()), "{cluster}");
    }
    // So does a batch job, but for rows whose variables are options of sbatch's own.
    let cluster = "{ backend: slurm, partition: p, path: launch.sh, extra: [--nodes=1] }";
    let (taken, refused) = outcomes(&jobs, cluster, folder.path());
    let told = |why: &String| why.contains("`SLURM_PARTITION` cannot be passed to a Slurm job");
    assert!(refused.keys().all(told), "{refused:?}");
    let has_option = |job: &&Envelope| {
        serde_json::to_string(&job.row)
            .expect("JSON")
            .contains("SLURM_PARTITION=")
    };
    let with_option = jobs.iter().filter(has_option).count();
    assert_eq!(taken, jobs.len() - with_option, "{cluster}");

    // An engine serves every row of one node, but for offloading of which it does not know how.
    for cluster in [
        "{ backend: local }",
        "{ backend: container, runtime: docker }",
        "{ backend: slurm, partition: p, extra: [--nodes=1] }",
        "{ backend: slurm, partition: p, container: pyxis, extra: [--nodes=1] }",
    ] {
        let (taken, refused) = outcomes(&jobs, cluster, folder.path());
        let count = |part: &str| -> usize {
            let own = refused.iter().filter(|(why, _)| why.contains(part));
            own.map(|(_, frameworks)| frameworks.len()).sum()
        };
        let several = count("no engine serves a row of several nodes");
        assert_eq!(several, many, "{cluster}");
        let lost = count("does not say how `kv-offloading: dram` of");
        assert_eq!(taken + several + lost, jobs.len(), "{cluster}: {:?}", refused.keys());
        let offloads = |job: &&Envelope| {
            job.row
                .topology
                .offload()
                .is_some_and(|offload| offload.backend.is_some())
        };
        let of_one = jobs.iter().filter(offloads).filter(|job| !is_many(job)).count();
        assert!(lost < of_one || of_one == 0, "{cluster}: {lost} of {of_one}");
    }
}

/// The command itself, of the project's own fleet: each row on the first runner of its label.
#[test]
fn every_row_of_the_projects_fleet_is_told_by_the_command() {
    let project = support::project();
    let jobs = jobs(project);
    let source = Source::read(&project.join("configs/runners.yaml")).expect("a file");
    let runners = sweepctl::config::runners::Runners::load(&source.into()).expect("the runners");
    let folder = tempfile::tempdir().expect("a folder");
    let misses = support::misses(&jobs, |job| {
        let label = &job.row.topology.runner;
        let runner = runners
            .labels
            .get(label)
            .and_then(|names| names.first())
            .unwrap_or(label);
        let text = serde_json::to_string(job).expect("JSON");
        let file = support::write(folder.path(), &format!("{}.json", job.id), text);
        let mut command = support::sweepctl(project);
        command.args(["launch", "--dry-run", "--json", "--runner-name", runner, "--envelope"]);
        let output = command.arg(file).output().expect("the binary runs");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let commands = said["commands"].as_array().map_or(0, Vec::len);
        let runs = output.status.success() && commands > 0 && said["environment"]["MODEL"] == job.row.topology.model;
        // These name no recipe yet, and what srt-slurm would replay cannot be made up.
        let lacks_recipe = job.row.exp_name.starts_with("coder480b_p");
        let refused = lacks_recipe && support::stderr(&output).contains("recipe");
        (!runs && !refused).then(|| format!("{} on {runner}: {}", job.row.exp_name, support::stderr(&output)))
    });
    support::assert_none("launches of the project's fleet", jobs.len(), &misses);
}
