//! A plan run locally: the whole road with the mock server, the throughput client and the real lm-eval.

mod nodes;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::eval::support::{envelope, names, read_json, root, write_json};
use crate::eval::tools;
use crate::launch::support::{Done, Host, assert_gone, cancel, lives, run, signal, start, wait_for_lines};

/// A host whose server is the mock, with more options for it.
fn host(options: &str) -> Host {
    tools::lm_eval();
    let root = root().display();
    let server = format!(
        "exec \"$SWEEPCTL\" mock-server --port \"$0\" --model \"$MODEL\" --tokens-per-second 2000 --answers {root}/configs/evals/data/gsm8k_smoke.jsonl {options}"
    );
    let client = "exec \"$SWEEPCTL\" throughput --endpoint \"http://127.0.0.1:$0\" --model \"$MODEL\" --isl \"$ISL\" --osl \"$OSL\" --concurrency \"$CONC\" --requests-per-concurrency 2 --save \"$INFMAX_WORKSPACE/$RESULT_FILENAME.json\"";
    Host::with_server(
        &server,
        client,
        &format!(", eval-task: {root}/configs/evals/gsm8k_smoke.yaml"),
    )
}

fn throughput(id: &str, conc: u64) -> Value {
    let mut job = envelope(
        id,
        json!({"run-eval": false, "eval-only": false, "isl": 128, "osl": 64, "max-model-len": 448,
            "exp-name": "stub_128_64", "conc": conc, "tp": 1}),
    );
    job["name"] = format!("stub throughput c{conc}").into();
    job
}

fn eval(id: &str) -> Value {
    let mut job = envelope(id, json!({"tp": 1}));
    job["name"] = "stub eval c4".into();
    job
}

fn command(host: &Host, plan: &[Value], more: &[&str]) -> Command {
    write_json(host.at(), "plan.json", &json!(plan));
    let mut command = host.sweepctl(&["run", "--plan", "plan.json", "--out", "out"]);
    command
        .args(more)
        .env("SWEEPCTL_TOOLS", tools::folder())
        .env("HF_HUB_OFFLINE", "1");
    command
}

fn report(done: &Done) -> Value {
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}\n{}", done.stdout, done.stderr))
}

#[test]
fn a_plan_is_launched_measured_judged_and_collected() {
    let host = host("");
    let plan = [
        throughput("aaaaaaaaaaa1", 2),
        throughput("aaaaaaaaaaa2", 4),
        eval("aaaaaaaaaaa3"),
    ];
    let done = run(&mut command(&host, &plan, &["--jobs", "2"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let said = report(&done);
    assert_eq!(said["passed"], json!(true));
    let verdicts: Vec<&Value> = said["jobs"]
        .as_array()
        .expect("jobs")
        .iter()
        .map(|job| &job["verdict"])
        .collect();
    assert_eq!(verdicts, ["done", "done", "done"]);
    assert!(
        done.stderr.contains("[2/3] stub throughput c4: launching"),
        "{}",
        done.stderr
    );

    let results = read_json(&host.file("out/agg_bmk.json"));
    let concs: Vec<&Value> = results
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| &row["conc"])
        .collect();
    assert_eq!(concs, [2, 4]);
    for row in results.as_array().expect("rows") {
        assert!(row["tput_per_gpu"].as_f64().expect("a number") > 0.0, "{row}");
        // The server says 2,000 tokens a second for each request, and never more.
        let intvty = row["median_intvty"].as_f64().expect("a number");
        assert!((200.0..=4000.0).contains(&intvty), "{row}");
    }
    let evals = read_json(&host.file("out/agg_eval_all.json"));
    assert_eq!(
        (&evals[0]["task"], &evals[0]["score"]),
        (&json!("gsm8k_smoke"), &json!(1.0)),
        "{evals}"
    );

    // What a download of all artifacts would hold, and nothing else.
    let artifacts = names(&host.file("out/artifacts"));
    assert_eq!(
        artifacts,
        [
            "bmk_stub_128_64_aaaaaaaaaaa1",
            "bmk_stub_128_64_aaaaaaaaaaa2",
            "eval_server_logs_stub_8k1k_aaaaaaaaaaa3",
            "eval_stub_8k1k_aaaaaaaaaaa3",
            "server_logs_stub_128_64_aaaaaaaaaaa1",
            "server_logs_stub_128_64_aaaaaaaaaaa2",
        ]
    );
    let logs = names(&host.file("out/artifacts/eval_server_logs_stub_8k1k_aaaaaaaaaaa3"));
    assert_eq!(logs, ["eval.log", "server.log"]);
}

#[test]
fn a_failing_model_fails_the_gate_and_its_job_is_named() {
    let host = host("--accuracy 0.5");
    let plan = [throughput("bbbbbbbbbbb1", 2), eval("bbbbbbbbbbb2")];
    let done = run(&mut command(&host, &plan, &[]));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    let said = report(&done);
    assert_eq!(said["jobs"][0]["verdict"], json!("done"));
    assert_eq!(said["jobs"][1]["verdict"], json!("gate-failed"), "{said}");
    assert!(
        done.stderr.contains("(gate failed: stub eval c4, bbbbbbbbbbb2)"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("0.5"), "the score is said: {}", done.stderr);
    let evals = read_json(&host.file("out/agg_eval_all.json"));
    assert_eq!(evals[0]["score"], json!(0.5), "the bad score is collected: {evals}");
    // A finished job is not repeated: the same verdict, at once.
    let marker = std::fs::metadata(host.file("out/jobs/bbbbbbbbbbb2/done.json")).expect("a marker");
    let again = run(&mut command(&host, &plan, &[]));
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert!(
        again.stderr.contains("stub eval c4: gate failed before"),
        "{}",
        again.stderr
    );
    let later = std::fs::metadata(host.file("out/jobs/bbbbbbbbbbb2/done.json")).expect("a marker");
    assert_eq!(marker.modified().expect("a time"), later.modified().expect("a time"));
}

#[test]
fn an_interrupted_run_goes_on_where_it_ended() {
    let host = host("");
    // The second job's server hangs until it is told not to.
    let gate = host.file("go");
    let slow = format!(
        "[ \"$CONC\" != 3 ] || [ -e {0} ] || {{ echo $$ >> {1}; sleep 100; }}; exec \"$SWEEPCTL\" mock-server --port \"$0\" --model \"$MODEL\" --tokens-per-second 2000",
        gate.display(),
        host.file("pids").display()
    );
    let text = host.read("configs/clusters.yaml");
    let start_of = text.find("exec ").expect("the server's script");
    let end_of = start_of + text[start_of..].find("\",\"{port}\"").expect("its end");
    let quoted = serde_json::to_string(&slow).expect("JSON");
    let text = format!("{}{}{}", &text[..start_of], quoted.trim_matches('"'), &text[end_of..]);
    std::fs::write(host.file("configs/clusters.yaml"), text).expect("a file");

    let plan = [throughput("ccccccccccc1", 2), throughput("ccccccccccc2", 3)];
    let child = start(&command(&host, &plan, &[]));
    let pids = wait_for_lines(&host.file("pids"), 1);
    let (took, done) = cancel(child);
    assert!(took < Duration::from_secs(7), "{took:?}");
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("ended by SIGINT after 1 of 2 jobs"),
        "{}",
        done.stderr
    );
    crate::launch::support::assert_gone(&pids);
    assert!(host.file("out/jobs/ccccccccccc1/done.json").exists());
    assert!(!host.file("out/jobs/ccccccccccc2/done.json").exists());

    std::fs::write(&gate, "").expect("a file");
    let done = run(&mut command(&host, &plan, &[]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(
        done.stderr.contains("stub throughput c2: done before"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("stub throughput c3: done in"), "{}", done.stderr);
    assert_eq!(
        read_json(&host.file("out/agg_bmk.json")).as_array().map(Vec::len),
        Some(2)
    );

    // Another plan does not go on in this folder.
    let other = run(&mut command(&host, &plan[..1], &[]));
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("holds a run of other jobs"), "{}", other.stderr);
}

#[test]
fn jobs_of_other_clusters_are_refused_by_name_unless_left_out() {
    let host = Host::with_script("true");
    let plan = [throughput("ddddddddddd1", 2)];
    let done = run(&mut command(&host, &plan, &[]));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    let wanted = "the job `stub throughput c2` (ddddddddddd1) cannot run here: the cluster `h200-x` of `h200` starts jobs by `script`";
    assert!(done.stderr.contains(wanted), "{}", done.stderr);
    assert!(!Path::new(&host.file("out")).exists(), "nothing was made");
    let done = run(&mut command(&host, &plan, &["--only", "other*"]));
    assert!(
        done.stderr
            .contains("none of the 1 job of the plan is named like `other*`"),
        "{}",
        done.stderr
    );
    // A plan whose jobs do not say which config they came from is told by its other names.
    let done = run(&mut command(&host, &plan, &["--only", "stub-h200-sglang-fp8"]));
    let known = "found by its model prefix, config key, experiment, name or id; known: `stub`, `stub_128_64`";
    assert!(done.stderr.contains(known), "{}", done.stderr);
    let mut keyed = throughput("ddddddddddd2", 2);
    keyed["config-key"] = "stub-h200-sglang-fp8".into();
    let done = run(&mut command(&host, &[keyed], &["--only", "*-sglang-*"]));
    assert!(
        done.stderr.contains("(ddddddddddd2) cannot run here"),
        "{}",
        done.stderr
    );
    let done = run(&mut command(&host, &plan, &["--only", "stub_128_46*"]));
    assert!(done.stderr.contains("did you mean `stub_128_64`?"), "{}", done.stderr);
}

#[test]
fn a_job_that_was_not_measured_says_why_and_is_tried_anew() {
    let host = Host::with_server("echo 'no GPU'; exit 3", "true", "");
    let plan = [throughput("eeeeeeeeeee1", 2)];
    for _ in 0..2 {
        let done = run(&mut command(&host, &plan, &[]));
        assert_eq!(done.code, Some(1), "{}", done.stderr);
        let job = &report(&done)["jobs"][0];
        assert_eq!(job["verdict"], json!("failed"));
        let reason = job["reason"].as_str().expect("a reason");
        assert!(reason.starts_with("engine: the server exited with code 3"), "{reason}");
        assert!(done.stderr.contains("c2: launching"), "{}", done.stderr);
    }
    let log = host.read("out/artifacts/server_logs_stub_128_64_eeeeeeeeeee1/server.log");
    assert_eq!(log, "no GPU\n");
}

#[test]
fn a_run_that_was_killed_is_taken_over_by_the_next_one() {
    let server = "echo $$ >> \"$HOST/pids\"; touch \"$INFMAX_WORKSPACE/live\"; exec sleep 300";
    let host = Host::with_server(server, "true", "");
    let plan = [throughput("000000000001", 1), throughput("000000000002", 2)];
    let mut first = start(&command(&host, &plan, &["--jobs", "2"]));
    let pids = wait_for_lines(&host.file("pids"), 2);
    signal(first.id(), "-KILL");
    first.wait().expect("an end");
    assert!(pids.iter().all(|pid| lives(pid)), "a kill alone leaves them");
    // The next one starts the jobs anew, one after the other, and nothing of both is left when the first begins.
    let second = start(&command(&host, &plan, &[]));
    let all = wait_for_lines(&host.file("pids"), 3);
    assert!(pids.iter().all(|pid| !lives(pid)), "they are gone before a job starts");
    let (_, done) = cancel(second);
    assert_gone(&all);
    assert!(done.stderr.contains("of an earlier run"), "{}", done.stderr);
    assert!(!done.stderr.contains("another launch"), "{}", done.stderr);
}
