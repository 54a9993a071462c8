//! `sweepctl launch` on a real Slurm, as a step runs it.

use std::process::Command;

use serde_json::{Value, json};

use super::cluster::cluster;
use super::launcher::envelope as on_h200;
use super::srt::{RECIPE, row as srt_row};
use super::{soon, support};
use crate::eval::support::{envelope, names, read_json};
use crate::launch::backends::{assert_complete, shapes, without_eval};
use crate::launch::engines::{measured, short, with_engine};
use crate::launch::support::{
    Done, Host, Live, RUNNER, benchmark, cancel, run, signal, start, throughput, wait_for_lines,
};

/// Ignores what asks it to end, and so do its children.
const STUBBORN: &str = "trap '' TERM INT; echo $$ >> pids; sleep 120 & sleep 120; sleep 120";

fn host(script: &str) -> Host {
    let host = Host::new("{ backend: slurm, partition: main, extra: [--nodes=1] }");
    host.script(script);
    std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
    host
}

/// The launch of an envelope by a runner, on the tests' cluster.
fn launch(host: &Host, runner: &str, envelope: &Value) -> Command {
    let mut command = host.launch(envelope, &["--runner-name", runner]);
    command.env("SLURM_CONF", &cluster().conf);
    command
}

fn release(host: &Host, runner: &str) -> Done {
    let mut command = host.sweepctl(&["launch", "--release", "--runner-name", runner]);
    run(command.env("SLURM_CONF", &cluster().conf))
}

#[test]
fn a_job_is_shown_while_it_runs_and_leaves_its_result() {
    let host = host(
        "echo first; until [ -e go ]; do sleep 0.05; done; cp saved.json \"$RESULT_FILENAME.json\"; echo \"last $(printf 'hf_%s' aSecretToken)\"",
    );
    let mut command = launch(&host, "h200-x_runs", &throughput());
    let mut job = Live::start(command.env("HF_TOKEN", "hf_aSecretToken"));
    job.wait_for("first");
    std::fs::write(host.file("go"), "").expect("a file");
    let done = job.finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let said: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let result = said["result-filename"].as_str().expect("a name");
    assert!(host.file(&format!("{result}.json")).exists(), "{result}");
    assert_eq!(host.read("launch.log"), "first\nlast ***\n");
}

#[test]
fn a_failing_job_fails_the_step_and_says_what_failed() {
    let jobs = [("exit 9", 73), ("exit 72", 72), ("kill -KILL $$", 73), ("true", 73)].map(|(script, code)| {
        let host = host(script);
        let child = start(&launch(&host, &format!("h200-x_code{code}"), &throughput()));
        (host, child, code)
    });
    let lost = host("echo started; sleep 120");
    let mut stolen = Live::start(&mut launch(&lost, "h200-x_stolen", &throughput()));
    stolen.wait_for("started");
    let id = cluster().wait_for("h200-x_stolen");
    cluster().ask("scancel", &[&id]);
    let done = stolen.finish();
    assert_eq!(done.code, Some(70), "{}", done.stderr);
    assert!(
        done.stderr.contains("was cancelled on n1, and not by this launch"),
        "{}",
        done.stderr
    );
    for (host, child, code) in jobs {
        let done: Done = child.wait_with_output().expect("an end").into();
        assert_eq!(
            done.code,
            Some(code),
            "{}: {}",
            host.read("runners/launch_h200-x.sh"),
            done.stderr
        );
    }
}

#[test]
fn a_cancelled_step_leaves_no_job_behind() {
    let host = host(STUBBORN);
    let child = start(&launch(&host, "h200-x_cancelled", &throughput()));
    wait_for_lines(&host.file("pids"), 1);
    // The runner's last signal kills: its code would be none.
    let (_, done) = cancel(child);
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    assert!(soon(|| cluster().alive("h200-x_cancelled").is_empty()));
    let done = release(&host, "h200-x_cancelled");
    assert!(done.stdout.contains("\"released\":[]"), "{}", done.stdout);
}

#[test]
fn a_release_alone_ends_what_a_killed_step_left_and_no_neighbours_job() {
    let host = host(STUBBORN);
    let runners = ["h200-x_7", "h200-x_70"];
    let ids = runners.map(|runner| {
        let mut child = start(&launch(&host, runner, &throughput()));
        let id = cluster().wait_for(runner);
        // Past the submission, whose id the state folder then holds.
        assert!(soon(
            || cluster().ask("squeue", &["-h", "-j", &id, "-o", "%T"]).trim() == "RUNNING"
        ));
        signal(child.id(), "-KILL");
        child.wait().expect("an end");
        id
    });
    let done = release(&host, runners[0]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(
        done.stdout.contains(&format!("Slurm job {} ", ids[0])),
        "{}",
        done.stdout
    );
    assert!(!done.stdout.contains(&ids[1]), "{}", done.stdout);
    assert!(soon(|| cluster().alive(runners[0]).is_empty()));
    assert_eq!(
        cluster().alive(runners[1]),
        [ids[1].clone()],
        "its neighbour was released"
    );
    // The cleanup step knows the envelope and the runner's name in its environment.
    let mut command = host.sweepctl(&["launch", "--release", "--envelope", "envelope.json"]);
    let done = run(command
        .env("SLURM_CONF", &cluster().conf)
        .env("RUNNER_NAME", runners[1]));
    assert!(
        done.stdout.contains(&format!("Slurm job {} ", ids[1])),
        "{}",
        done.stdout
    );
    assert!(soon(|| cluster().alive(runners[1]).is_empty()));
}

#[test]
fn a_slurm_that_does_not_answer_is_found_before_anything_is_submitted() {
    let host = host("touch started");
    let conf = std::fs::read_to_string(&cluster().conf).expect("a file");
    let silent: String = conf
        .lines()
        .map(|line| match line.starts_with("SlurmctldPort=") {
            true => "SlurmctldPort=9\n".to_owned(),
            false => format!("{line}\n"),
        })
        .collect();
    std::fs::write(host.file("slurm.conf"), silent).expect("a file");
    let mut command = launch(&host, "h200-x_silent", &throughput());
    let done = run(command.env("SLURM_CONF", host.file("slurm.conf")));
    assert_eq!(done.code, Some(71), "{}", done.stderr);
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    for part in [
        format!("node `{}`", name.trim()),
        "Slurmctld(primary) at".to_owned(),
        "DOWN".to_owned(),
    ] {
        assert!(done.stderr.contains(&part), "{part} in {}", done.stderr);
    }
    assert!(!host.file("started").exists());
}

#[test]
fn a_job_of_any_shape_gets_every_variable() {
    let jobs: Vec<_> = shapes()
        .iter()
        .map(|envelope| {
            let host =
                host("env -0 > child.env; for end in '' _conc16; do cp saved.json \"$RESULT_FILENAME$end.json\"; done");
            let child = start(&launch(&host, RUNNER, envelope));
            (host, child)
        })
        .collect();
    for (host, child) in jobs {
        let done: Done = child.wait_with_output().expect("an end").into();
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert_complete(&host, "child.env", "slurm");
        assert!(!host.file("owned").exists());
    }
}

/// What stands for srtctl: it submits `job.sh` of the checkout, whose log lies where the real one puts it.
const SRTCTL: &str = concat!(
    "python3 ",
    env!("CARGO_MANIFEST_DIR"),
    r#"/tests/slurm/srtctl_fields.py "$3" || exit 1
id=$(/usr/bin/sbatch --parsable --hold --job-name="$RUNNER_NAME" --output="$PWD/outputs/%j/logs/sweep_%j.log" job.sh)
mkdir -p "outputs/$id/logs"
/usr/bin/scontrol release "$id"
echo "Job $id submitted!"
"#
);

/// A host that hands its jobs to srt-slurm; the job's script finds its folder of logs in $logs.
fn srt_host(script: &str) -> Host {
    let host = Host::new("{ backend: srt }");
    host.tool("srtctl", SRTCTL);
    support::write(host.at(), "recipes/8k1k.yaml", RECIPE);
    let script = format!("#!/bin/bash\nlogs=outputs/$SLURM_JOB_ID/logs\n{script}\n");
    support::write(host.at(), "job.sh", script);
    std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
    host
}

/// Throughput results of each concurrency, a worker's log with a secret, and what must not leave the job.
const MEASURES: &str = r#"
mkdir -p "$logs/sa-bench_isl_8192_osl_1024" "$logs/workers"
for conc in $CONC_LIST; do
    cp saved.json "$logs/sa-bench_isl_8192_osl_1024/results_concurrency_${conc}_gpus_16_ctx_8_gen_8.json"
done
echo "worker with hf_aSecretToken" > "$logs/workers/n1_prefill_w0.out"
echo other > "$logs/workers/n1_prefill_w0.conf"
ln -s /etc/passwd "$logs/sa-bench_isl_8192_osl_1024/results_concurrency_1_gpus_1.json"
ln -s /etc "$logs/eval_results"
mkfifo "$logs/endless.log"
echo measured
"#;

fn results(host: &Host) -> Vec<String> {
    let mut all = names(host.at());
    all.retain(|name| name.starts_with("model_8k1k"));
    all
}

fn log_of_job(host: &Host) -> String {
    let all = names(host.at());
    let log = all
        .iter()
        .find(|name| name.starts_with("slurm-") && name.ends_with(".log"));
    host.read(log.expect("a log"))
}

#[test]
fn what_srt_slurm_left_comes_to_the_workspace_and_nothing_else() {
    let host = srt_host(MEASURES);
    let envelope = on_h200(srt_row("recipes/8k1k.yaml"));
    let mut command = launch(&host, "h200-x_srt", &envelope);
    let done = run(command.env("HF_TOKEN", "hf_aSecretToken"));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let found = results(&host);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].ends_with("_conc16.json") && found[1].ends_with("_conc64.json"),
        "{found:?}"
    );
    assert_eq!(host.read("n1_prefill_w0.out"), "worker with ***\n");
    assert_eq!(log_of_job(&host), "measured\n");
    assert!(host.read("launch.log").contains("submitted!"));
    for absent in ["n1_prefill_w0.conf", "endless.log", "passwd", "hosts"] {
        assert!(!host.file(absent).exists(), "{absent}");
    }
    for why in ["is a symbolic link", "is a special file"] {
        assert!(done.stderr.contains(why), "{why} in {}", done.stderr);
    }
    // A step later, and a run later: processed, gathered and cleaned as any job's.
    let done = run(&mut host.sweepctl(&[
        "upload",
        "--kind",
        "server_logs",
        "--envelope",
        "envelope.json",
        "--to",
        "up",
    ]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let gathered = names(&host.file(&format!("up/{}", names(&host.file("up"))[0])));
    assert!(gathered.contains(&"n1_prefill_w0.out".to_owned()) && gathered.contains(&"launch.log".to_owned()));
    run(&mut host.sweepctl(&["clean"]));
    assert_eq!(results(&host), Vec::<String>::new());
}

#[test]
fn a_failed_job_of_srt_slurm_leaves_its_logs_too() {
    let broken = "for file in \"$logs\"/sa-bench*/*.json; do [ -L \"$file\" ] || echo '{}' > \"$file\"; done";
    let host = srt_host(&format!("{MEASURES}\n{broken}\nexit 3"));
    let done = run(&mut launch(
        &host,
        "h200-x_srtfail",
        &on_h200(srt_row("recipes/8k1k.yaml")),
    ));
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert!(done.stderr.contains("exited with code 3"), "{}", done.stderr);
    assert_eq!(results(&host).len(), 2);
    assert!(host.file("n1_prefill_w0.out").exists());
}

#[test]
fn results_of_another_job_are_not_this_ones() {
    let host = srt_host(
        r#"mkdir -p "$logs/sa-bench"; cp saved.json "$logs/sa-bench/results_concurrency_16_gpus_16.json"
touch -d '1 hour ago' "$logs/sa-bench/results_concurrency_16_gpus_16.json""#,
    );
    let done = run(&mut launch(
        &host,
        "h200-x_srtold",
        &on_h200(srt_row("recipes/8k1k.yaml")),
    ));
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert!(done.stderr.contains("_*.json` is missing"), "{}", done.stderr);
}

#[test]
fn an_eval_of_srt_slurm_is_staged_with_its_metadata() {
    let mut row = srt_row("recipes/8k1k.yaml");
    row["run-eval"] = true.into();
    row["eval-only"] = true.into();
    row["eval-conc"] = 64.into();
    row["eval-framework"] = "lm-eval".into();
    row["eval-suite"] = "".into();
    let host = srt_host(
        r#"mkdir "$logs/eval_results"; cd "$logs/eval_results" || exit
echo '{"results": {"gsm8k": {"exact_match,strict-match": 0.97}}}' > results_1.json
echo '{}' > samples_gsm8k_1.jsonl
echo '{"is_multinode": true, "framework": "dynamo-sglang", "conc": 64}' > meta_env.json
echo secret > notes.txt"#,
    );
    let done = run(&mut launch(&host, "h200-x_srteval", &on_h200(row)));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    // srt-slurm does not know whose job it is.
    let meta = read_json(&host.file("meta_env.json"));
    assert_eq!((&meta["conc"], &meta["job_id"]), (&json!(64), &json!("0123456789ab")));
    assert_eq!((&meta["prefill_tp"], &meta["decode_pp"]), (&json!(8), &json!(1)));
    assert!(!host.file("notes.txt").exists());
    let done = run(&mut host.sweepctl(&["upload", "--kind", "eval", "--envelope", "envelope.json", "--to", "up"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let gathered = names(&host.file(&format!("up/{}", names(&host.file("up"))[0])));
    assert_eq!(gathered, ["meta_env.json", "results_1.json", "samples_gsm8k_1.jsonl"]);
}

#[test]
fn a_replay_of_srt_slurm_keeps_its_name_and_what_it_recorded() {
    let mut row = srt_row("recipes/8k1k.yaml");
    for name in ["isl", "osl", "max-model-len"] {
        row.as_object_mut().expect("a row").remove(name);
    }
    for (name, value) in json!({"scenario-type": "agentic-coding", "kv-offloading": "none", "total-cpu-dram-gb": 0,
        "duration": 900, "conc": [16]})
    .as_object()
    .expect("fields")
    {
        row[name] = value.clone();
    }
    for name in ["run-eval", "eval-only"] {
        row.as_object_mut().expect("a row").remove(name);
    }
    let host = srt_host(
        r#"mkdir -p "$logs/agentic_agg" "$logs/agentic/conc_16"
cp saved.json "$logs/agentic_agg/${RESULT_FILENAME}_conc16.json"
echo {} > "$logs/agentic/conc_16/summary.json"; echo {} > "$logs/agentic/conc_16/inputs.json""#,
    );
    let done = run(&mut launch(&host, "h200-x_srtreplay", &on_h200(row)));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(names(&host.file("agentic_results/conc_16")), ["summary.json"]);
    // Its client is told the result's name and the row's duration.
    let recipe = read_json(&host.file("state/h200-x_srtreplay/srt/recipe.yaml"));
    let env = &recipe["benchmark"]["env"];
    let name = env["RESULT_FILENAME"].as_str().expect("a name");
    assert!(host.file(&format!("{name}_conc16.json")).exists(), "{name}");
    assert_eq!(
        (&env["DURATION"], &env["KV_OFFLOADING"]),
        (&json!("900"), &json!("none"))
    );
}

#[test]
fn a_job_of_srt_slurm_gets_every_variable_unharmed() {
    let host = srt_host(&format!("env -0 > child.env\n{MEASURES}"));
    let mut row = srt_row("recipes/8k1k.yaml");
    row["prefill"]["additional-settings"] = json!([
        "LINES_OF=one\nEOF\nghadelimiter_x\nTP=9\n",
        "QUOTES=a 'b' $(touch owned)"
    ]);
    let mut envelope = without_eval(envelope("0123456789ab", json!({})));
    envelope["row"] = row;
    let done = run(&mut launch(&host, RUNNER, &envelope));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_complete(&host, "child.env", "srt");
    assert!(!host.file("owned").exists());
}

#[test]
fn a_row_without_a_script_is_served_on_its_node_and_in_its_image() {
    let host = with_engine("{ backend: slurm, partition: main, extra: [--nodes=1] }");
    let result = measured(&host, &run(&mut launch(&host, "h200-x_served", &short())));
    assert_eq!(result["completed"], 20, "{result}");
    assert!(host.read("server.arguments").contains("--model-path=org/stub-7b"));
    assert!(host.read("launch.log").contains("the server is healthy"));

    let host = with_engine(
        "{ backend: slurm, partition: main, extra: [--nodes=1], container: pyxis, mounts: [{ host: /hub, container: /h }] }",
    );
    // This machine has no pyxis: what it would be told is kept, and the command run as it is.
    host.tool(
        "srun",
        "printf '%s\\n' \"$@\" > srun.arguments; while [[ $1 == -* ]]; do shift; done; exec \"$@\"",
    );
    let result = measured(&host, &run(&mut launch(&host, "h200-x_pyxis", &short())));
    assert_eq!(result["completed"], 20, "{result}");
    let asked = host.read("srun.arguments");
    for part in [
        "--container-image=engine:1\n",
        ",/hub:/h\n",
        "--container-workdir=",
        "\npython3\n",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
}

#[test]
fn a_server_that_dies_on_its_node_is_the_engines_failure() {
    let host = with_engine("{ backend: slurm, partition: main, extra: [--nodes=1] }");
    host.tool("python3", "echo out of memory; exit 3");
    let done = run(&mut launch(&host, "h200-x_dies", &short()));
    assert_eq!(done.code, Some(72), "{}", done.stderr);
    assert!(host.read("launch.log").contains("out of memory"), "{}", done.stderr);
}
