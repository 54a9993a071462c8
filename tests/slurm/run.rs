//! A plan run locally, whose jobs a real Slurm places.

use serde_json::json;

use super::cluster::cluster;
use crate::eval::support::{multi_node, read_json, write_json};
use crate::launch::backends::without_eval;
use crate::launch::engines::{short, with_engine};
use crate::launch::support::{Host, run};

fn planned(host: &Host, plan: &[serde_json::Value]) -> crate::launch::support::Done {
    write_json(host.at(), "plan.json", &json!(plan));
    let mut command = host.sweepctl(&["run", "--plan", "plan.json", "--out", "out", "--jobs", "2"]);
    run(command.env("SLURM_CONF", &cluster().conf).env("HF_HUB_OFFLINE", "1"))
}

#[test]
fn jobs_of_one_node_are_served_where_slurm_places_them() {
    let host = with_engine("{ backend: slurm, partition: main, extra: [--nodes=1] }");
    let jobs = [2, 4].map(|conc| {
        let mut job = short();
        job["id"] = format!("0000000000c{conc}").into();
        job["name"] = format!("stub c{conc}").into();
        job["row"]["conc"] = conc.into();
        job
    });
    let done = planned(&host, &jobs);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let results = read_json(&host.file("out/agg_bmk.json"));
    let rows = results.as_array().expect("rows");
    let points: Vec<_> = rows.iter().map(|row| row["conc"].as_u64()).collect();
    assert_eq!(points, [Some(2), Some(4)], "{results}");
    let log = host.read("out/jobs/0000000000c2/workspace/launch.log");
    assert!(log.contains("the server is healthy"), "{log}");
    assert!(cluster().alive(crate::launch::support::RUNNER).is_empty());
}

#[test]
fn jobs_of_several_nodes_are_the_workflows() {
    let host = with_engine("{ backend: slurm, partition: main }");
    let done = planned(&host, &[without_eval(multi_node("0000000000d1", &[16]))]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    let wanted = "the cluster `h200-x` of `h200` starts jobs on several nodes by `slurm`";
    assert!(done.stderr.contains(wanted), "{}", done.stderr);
    assert!(!host.file("out").exists(), "nothing was made");
}

#[test]
fn containers_on_the_nodes_of_a_left_job_go_before_it_does() {
    let runner = "h200-x_nodes";
    let host = Host::new("{ backend: script, uses: [slurm, docker] }");
    // The host has none; the node has one of the job's.
    host.tool(
        "docker",
        r#"printf '%s\n' "$*" >> "$HOST/docker.calls"
case "$*" in
*--quiet*) [ -z "$SLURM_JOB_ID" ] || echo aaaaaaaaaaaa ;;
rm*) echo aaaaaaaaaaaa ;;
esac"#,
    );
    let allocated = cluster()
        .command("salloc")
        .args(["--no-shell", "--nodes=1", "--partition=main", "--job-name", runner])
        .output();
    assert!(allocated.expect("Slurm's commands run").status.success());
    let id = cluster().wait_for(runner);
    let mut command = host.sweepctl(&["launch", "--release", "--runner-name", runner]);
    let done = run(command.env("SLURM_CONF", &cluster().conf));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let said = format!("container aaaaaaaaaaaa of Slurm job {id}");
    assert!(done.stdout.contains(&said), "{}", done.stdout);
    let calls = host.read("docker.calls");
    assert!(
        calls.contains(&format!("--filter name=(container|router|client)_.*_{id}$\n")),
        "{calls}"
    );
    assert!(calls.contains("rm --force aaaaaaaaaaaa\n"), "{calls}");
    assert!(cluster().alive(runner).is_empty());
}
