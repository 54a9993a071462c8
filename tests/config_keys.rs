//! The key of the config that a job came from travels beside its row, from the generator to the envelope.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use sweepctl::matrix::envelope::Envelope;

use crate::support::fleet::{edit, entry, folder, log, repository, text};
use crate::support::{json, project, run, stderr, stdout};

/// The envelopes of a plan's folder, the canary first.
fn envelopes(plan: &Path) -> Vec<Envelope> {
    sweepctl::plan_files::envelopes(plan).expect("a plan")
}

/// Ids with the keys that the envelopes have.
fn keys(plan: &Path) -> BTreeMap<String, Option<String>> {
    let pair = |envelope: Envelope| (envelope.id, envelope.config_key);
    envelopes(plan).into_iter().map(pair).collect()
}

#[test]
fn each_job_of_a_sweep_has_the_key_of_its_own_config() {
    let folder = folder();
    let sweep = ["generate", "full-sweep", "--emit", "all", "--canary"];
    json(folder.path(), sweep);
    let all = keys(&folder.path().join("all"));
    let configs = json(folder.path(), ["explain"]);
    let mut known: Vec<&str> = configs
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| text(&row["config-key"]))
        .collect();
    known.dedup();
    assert!(known.len() > 4, "{known:?}");
    // A config alone gives the same jobs, but for the evals, which are picked among all configs.
    let mut found = BTreeMap::new();
    for key in known {
        let emit = [
            "generate",
            "test-config",
            "--no-evals",
            "--config-keys",
            key,
            "--emit",
            key,
        ];
        json(folder.path(), emit);
        let alone = keys(&folder.path().join(key));
        assert!(alone.values().all(|of| of.as_deref() == Some(key)), "{key}: {alone:?}");
        found.extend(alone);
    }
    let throughput: Vec<Envelope> = envelopes(&folder.path().join("all"))
        .into_iter()
        .filter(|envelope| !envelope.row.eval.eval_only)
        .collect();
    assert_eq!(throughput.len(), found.len());
    for envelope in throughput {
        assert_eq!(envelope.config_key, found[&envelope.id], "{}", envelope.name);
    }
    assert!(all.values().all(Option::is_some), "{all:?}");
}

#[test]
fn a_plan_carries_the_key_beside_the_row_and_another_key_makes_no_other_job() {
    let planned = |key: &str| {
        let folder = repository();
        if key != "beta-mi-vllm-fp8" {
            edit(
                folder.path(),
                "configs/amd-master.yaml",
                "beta-mi-vllm-fp8:",
                &format!("{key}:"),
            );
        }
        log(folder.path(), &entry(key, ""));
        json(folder.path(), ["plan", "--latest", "--trim-conc", "--emit", "plan"]);
        let rows = stdout(&run(folder.path(), ["plan", "--latest", "--trim-conc", "--json"]));
        assert!(!rows.contains("config-key\""), "the rows have no key: {rows}");
        let plan = envelopes(&folder.path().join("plan"));
        let rows: Vec<Value> = plan
            .iter()
            .map(|envelope| {
                assert_eq!(envelope.config_key.as_deref(), Some(key));
                serde_json::to_value(&envelope.row).expect("JSON")
            })
            .collect();
        let ids: Vec<String> = plan.into_iter().map(|envelope| envelope.id).collect();
        (ids, rows)
    };
    let (ids, rows) = planned("beta-mi-vllm-fp8");
    assert!(!ids.is_empty() && rows.iter().any(|row| row.get("recipe-fingerprint").is_some()));
    assert_eq!(planned("beta-two"), (ids, rows));
}

#[test]
fn an_envelope_without_a_key_is_read_and_one_that_is_no_text_is_not() {
    let folder = folder();
    let emit = ["generate", "test-config", "--config-keys", "alpha-*", "--emit", "plan"];
    json(folder.path(), emit);
    let shard = std::fs::read(folder.path().join("plan/evals/0.json")).expect("a shard");
    let mut jobs: Vec<Value> = serde_json::from_slice(&shard).expect("JSON");
    let job = jobs[0].as_object_mut().expect("an envelope");
    assert_eq!(job["config-key"], "alpha-mi-vllm-fp8");
    job["config-key"] = Value::from(7);
    assert!(serde_json::from_value::<Envelope>(Value::Object(job.clone())).is_err());
    job.shift_remove("config-key");
    let read: Envelope = serde_json::from_value(Value::Object(job.clone())).expect("an envelope");
    assert_eq!(read.config_key, None);
    assert!(!serde_json::to_string(&read).expect("JSON").contains("config-key"));
}

#[test]
fn jobs_are_chosen_by_their_configs_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan");
    let place = plan.to_str().expect("a path");
    json(
        project(),
        ["generate", "full-sweep", "--max-conc", "1", "--emit", place],
    );
    let envelopes = envelopes(&plan);
    let key = "r1-gb200-dynamo-trt-fp4-disagg".to_owned();
    let of_key = envelopes
        .iter()
        .filter(|job| job.config_key.as_deref() == Some(&key))
        .count();
    assert!(of_key < envelopes.len());
    assert!(of_key > 0);
    // Each is refused by name: srt-slurm starts jobs of a runner's checkout only.
    let out = folder.path().join("out");
    let only = |glob: &str| {
        let args = [
            "run",
            "--plan",
            place,
            "--out",
            out.to_str().expect("a path"),
            "--only",
            glob,
        ];
        let output = run(project(), args);
        assert_eq!(output.status.code(), Some(1), "{glob}");
        stderr(&output)
    };
    let said = only(&key);
    assert_eq!(said.matches("cannot run here").count(), of_key, "{said}");
    let said = only(&format!("{}?", &key[..key.len() - 1]));
    assert!(said.matches("cannot run here").count() >= of_key, "{said}");
    let said = only(&format!("{key}x"));
    assert!(said.contains(&format!("did you mean `{key}`")), "{said}");
}
