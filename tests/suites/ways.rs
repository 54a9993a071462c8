//! The ways of a suite's row: one table of everything that launches a job, and what is asked of each.

use serde_json::json;

pub use super::road::Way;
use super::road::{By, Road};
use super::support::{Desk, VENDORS};
use super::swebench;
use crate::eval::support::{names, read_json};
use crate::eval::tools;

pub const SERVED: Way = Way {
    name: "Slurm, one node, served by the engine",
    cluster: "backend: slurm, partition: main, extra: [--nodes=1]",
    nodes: false,
    by: By::Engine,
};
pub const SRT_1: Way = Way {
    name: "srt-slurm, schema 1",
    cluster: "backend: srt, schema: 1",
    nodes: true,
    by: By::Srt(1),
};
pub const SRT_2: Way = Way {
    name: "srt-slurm, schema 2",
    cluster: "backend: srt",
    nodes: true,
    by: By::Srt(2),
};

/// Everything that launches a job.
pub const WAYS: [Way; 9] = [
    Way {
        name: "a host, served by the engine",
        cluster: "backend: local",
        nodes: false,
        by: By::Engine,
    },
    Way {
        name: "a host's script",
        cluster: "backend: script",
        nodes: false,
        by: By::Script,
    },
    Way {
        name: "a container, served by the engine",
        cluster: "backend: container, runtime: docker, gpus: none, network: host",
        nodes: false,
        by: By::Engine,
    },
    Way {
        name: "a container's script",
        cluster: "backend: container, runtime: docker, gpus: none, network: host",
        nodes: false,
        by: By::Script,
    },
    SERVED,
    Way {
        name: "Slurm, a script on one node",
        cluster: "backend: slurm, partition: main, extra: [--nodes=1]",
        nodes: false,
        by: By::Script,
    },
    Way {
        name: "Slurm, a script on several nodes",
        // The tests' cluster has one node, which stands for all.
        cluster: "backend: slurm, partition: main, extra: [--nodes=1]",
        nodes: true,
        by: By::Script,
    },
    SRT_1,
    SRT_2,
];

impl Way {
    /// Whether Slurm places its jobs.
    pub fn is_of_slurm(&self) -> bool {
        self.cluster.contains("backend: s") && !self.cluster.contains("backend: script")
    }
}

/// The job's row of the table, after every step passed.
pub fn passes(
    way: Way,
    road: &Road,
    (framework, suite): (&str, &str),
    report: &str,
    more: &[&str],
) -> serde_json::Value {
    let job = road.planned(way, framework, suite, more);
    let done = road.launch(&job);
    let say = || format!("{}, {suite}: {}\n{}", way.name, done.stderr, road.logs());
    assert_eq!(done.code, Some(0), "{}", say());
    let meta = read_json(&road.host.file("meta_env.json"));
    assert_eq!(
        [
            &meta["job_id"],
            &meta["eval_framework"],
            &meta["eval_suite"],
            &meta["is_multinode"],
            &meta["conc"]
        ],
        [
            &job["id"],
            &json!(framework),
            &json!(suite),
            &json!(way.nodes),
            &json!(16)
        ],
        "{}",
        way.name
    );
    let uploaded = road.uploaded();
    let artifacts = format!("{}_artifacts.tar.gz", framework.replace('-', "_"));
    for name in ["meta_env.json", report, &artifacts] {
        assert!(
            uploaded.iter().any(|found| found == name),
            "{name}: {uploaded:?} {}",
            say()
        );
    }
    let (passed, said) = road.gate();
    assert!(passed, "{}: {said}", way.name);
    let (mut rows, said) = road.collected();
    assert_eq!(rows.len(), 1, "{}: {said}", way.name);
    rows.remove(0)
}

/// A vendor's row goes these ways from its plan to the table, by turns of either vendor.
pub fn all_pass(ways: impl Fn(&Way) -> bool) {
    for (at, way) in WAYS.into_iter().enumerate().filter(|(_, way)| ways(way)) {
        let vendor = VENDORS[at % 2];
        let desk = Desk::new();
        let road = Road::new(way, &desk, &[], "");
        let row = passes(way, &road, (vendor.framework, vendor.smoke), vendor.report, &[]);
        assert_eq!(
            [&row["task"], &row["score"], &row["conc"], &row["is_multinode"]],
            [&json!(vendor.smoke), &json!(1.0), &json!(16), &json!(way.nodes)],
            "{}",
            way.name
        );
    }
}

/// A failed suite hands on its evidence and its reason these ways.
pub fn all_fail(ways: impl Fn(&Way) -> bool) {
    for (at, way) in WAYS.into_iter().enumerate().filter(|(_, way)| ways(way)) {
        // The way above had the other one.
        let vendor = VENDORS[(at + 1) % 2];
        let desk = Desk::new();
        let road = Road::new(way, &desk, &[("STAND_IN", "missing")], "");
        let job = road.planned(way, vendor.framework, vendor.smoke, &[]);
        let done = road.launch(&job);
        let say = || format!("{}: {}\n{}", way.name, done.stderr, road.logs());
        assert!(done.code.is_some_and(|code| code != 0), "{}", say());
        let uploaded = road.uploaded();
        for name in ["meta_env.json", vendor.report] {
            assert!(
                uploaded.iter().any(|found| found == name),
                "{name}: {uploaded:?} {}",
                say()
            );
        }
        let (passed, said) = road.gate();
        let why = "checks are missing: ";
        assert!(!passed && said.contains(why), "{}: {said}", way.name);
        let (rows, said) = road.collected();
        assert_eq!(rows, Vec::<serde_json::Value>::new(), "{}", way.name);
        assert!(said.contains(why), "{}: {said}", way.name);
    }
}

/// SWE-bench takes a limit, and settings and keys of the launch's own environment.
pub fn swebench_passes(way: Way) {
    let desk = swebench::desk();
    let answers = swebench::answers(&desk, &swebench::fix("+"));
    let shown = |path: std::path::PathBuf| path.display().to_string();
    let (shared, cache) = (shown(tools::folder()), shown(desk.at("hub")));
    let of_cluster = [
        ("HF_HOME", cache.as_str()),
        ("MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT", "1"),
    ];
    let mut road = Road::new(way, &desk, &of_cluster, &format!("--answers {}", shown(answers)));
    road.environment.extend([
        ("SWEEPCTL_TOOLS", shared),
        ("SWEBENCH_AGENT_ENVIRONMENT", "local".to_owned()),
        ("SWEBENCH_AGENT_CWD", shown(desk.at("testbed"))),
        ("MODAL_TOKEN_ID", "ak-aSecretId".to_owned()),
        ("MODAL_TOKEN_SECRET", "as-aSecretKey".to_owned()),
    ]);
    let row = passes(
        way,
        &road,
        swebench::SUITE,
        "swebench_report.json",
        &["--eval-limit", "1"],
    );
    assert_eq!(
        [&row["task"], &row["score"], &row["n_eff"]],
        [&json!("swebench_lite"), &json!(1.0), &json!(1)],
        "{}",
        way.name
    );
    let staged = names(road.host.at());
    for name in ["predictions.jsonl", "agent_preds.json", "sums__calc-1.traj.json"] {
        // srt-slurm's script of schema 1 evaluates in the checkout.
        assert!(
            staged.iter().any(|found| found == name),
            "{}, {name}: {staged:?}",
            way.name
        );
    }
    let everything = road.everything();
    for secret in ["aSecretId", "aSecretKey"] {
        assert!(!everything.contains(secret), "{}", way.name);
    }
}

#[test]
fn swebench_goes_into_a_container() {
    swebench_passes(WAYS[3]);
}

#[test]
fn a_row_goes_to_hosts_and_containers() {
    all_pass(|way| !way.is_of_slurm());
}

#[test]
fn a_failed_suite_of_hosts_and_containers_hands_on_its_evidence_and_its_reason() {
    all_fail(|way| !way.is_of_slurm());
}
