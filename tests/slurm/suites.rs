//! Vendors' suites, BFCL and SWE-bench by everything that launches a job: from the plan's row to the table's.

use serde_json::json;

use crate::eval::support::{names, read_json};
use crate::eval::tools;
use crate::suites::bfcl;
use crate::suites::road::{By, Road, Way};
use crate::suites::support::{Desk, VENDORS};
use crate::suites::swebench;

const SERVED: Way = Way {
    name: "Slurm, one node, served by the engine",
    cluster: "backend: slurm, partition: main, extra: [--nodes=1]",
    nodes: false,
    by: By::Engine,
};
const SRT_1: Way = Way {
    name: "srt-slurm, schema 1",
    cluster: "backend: srt, schema: 1",
    nodes: true,
    by: By::Srt(1),
};
const SRT_2: Way = Way {
    name: "srt-slurm, schema 2",
    cluster: "backend: srt",
    nodes: true,
    by: By::Srt(2),
};

const WAYS: [Way; 9] = [
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
        cluster: "backend: slurm, partition: main",
        nodes: true,
        by: By::Script,
    },
    SRT_1,
    SRT_2,
];

/// The job's row of the table, after every step passed.
fn passes(way: Way, road: &Road, (framework, suite): (&str, &str), report: &str, more: &[&str]) -> serde_json::Value {
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

#[test]
fn a_vendors_row_goes_every_way_from_its_plan_to_the_table() {
    for (at, way) in WAYS.into_iter().enumerate() {
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

#[test]
fn a_failed_suite_hands_on_its_evidence_and_its_reason_every_way() {
    for (at, way) in WAYS.into_iter().enumerate() {
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

/// Its package is an environment of its own, and its client a script of ours.
#[test]
fn bfcl_goes_to_nodes_and_through_srt_slurm() {
    let shared = tools::folder().display().to_string();
    for way in [SERVED, SRT_1, SRT_2] {
        let desk = Desk::new();
        let answers = bfcl::answers(&desk.at("home"));
        let mut road = Road::new(way, &desk, &[], &format!("--answers {}", answers.display()));
        road.environment.push(("SWEEPCTL_TOOLS", shared.clone()));
        let row = passes(way, &road, ("bfcl", "bfcl_smoke"), "bfcl_report.json", &[]);
        assert_eq!(
            (&row["task"], &row["score"], &row["n_eff"]),
            (&json!("bfcl_smoke"), &json!(1.0), &json!(4))
        );
    }
}

/// It takes a limit, and settings and keys of the launch's own environment.
#[test]
fn swebench_goes_every_way_that_hands_on_no_environment() {
    let container = WAYS[3];
    for way in [container, SERVED, SRT_1, SRT_2] {
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
}
