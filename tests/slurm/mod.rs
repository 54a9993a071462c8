//! Launches through a real Slurm.

mod accuracy;
mod carried;
pub mod cluster;
mod command;
mod launcher;
mod recipes;
mod run;
pub mod srt;
mod suites;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support;
use cluster::cluster;
use launcher::{Launch, Order, envelope, row};

/// Ignores what asks it to end, and so do its children.
const STUBBORN: &str = "trap '' TERM INT; echo started; sleep 120 & sleep 120; sleep 120";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Whether something becomes true within moments.
fn soon(is: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while !is() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

/// The files in a folder that have some extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    entries.map(|entry| entry.path()).filter(is).collect()
}

/// A program that stands before Slurm's own on PATH.
fn stand_in(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = support::write(folder, &format!("bin/{name}"), format!("#!/bin/bash\n{script}"));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a mode");
    path.parent().expect("a folder").to_owned()
}

/// PATH with a folder before it.
fn path_with(folder: &Path) -> String {
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}

/// Starts a launch that finds the programs of a folder before Slurm's own.
fn behind(bin: &Path, order: &Order) -> Launch {
    order.start_with(|command| {
        command.env("PATH", path_with(bin));
    })
}

/// Ends a launch by a signal, and gives how it ended, which takes it less than some seconds.
#[track_caller]
fn ended(launch: &mut Launch, signal: Signal, seconds: u64) -> String {
    let asked = Instant::now();
    launch.signal(signal);
    let end = launch.finish();
    assert!(asked.elapsed() < Duration::from_secs(seconds), "{:?}", asked.elapsed());
    end
}

#[test]
fn a_job_runs_and_its_log_is_shown_while_it_runs() {
    let folder = folder();
    let order = Order::new(
        folder.path(),
        "runs_0",
        "echo first; pwd; until [ -e go ]; do sleep 0.05; done; echo last >&2",
    );
    let mut launch = order.start();
    launch.wait_for("first");
    launch.wait_for("runs on n1");
    support::write(&order.workspace, "go", "");
    assert_eq!(launch.finish(), "exited with code 0", "{:?}", launch.shown);
    let shown = launch.shown.join("\n");
    assert!(shown.contains("is submitted to main"), "{shown}");
    assert!(shown.ends_with("last"), "{shown}");
    assert!(launch.shown.contains(&order.workspace.display().to_string()), "{shown}");
    // The log is kept, and nothing is left to release.
    let kept = std::fs::read_to_string(order.workspace.join("launch.log")).expect("a log");
    assert_eq!(kept, format!("first\n{}\nlast\n", order.workspace.display()));
    assert!(files(&order.state.join("slurm"), "raw").is_empty());
    assert_eq!(
        std::fs::read_dir(order.state.join("jobs")).expect("a folder").count(),
        0
    );
}

#[test]
fn codes_and_signals_are_told_apart() {
    let folder = folder();
    let mut launches = [
        ("code_0", "exit 7"),
        ("signal_0", "kill -KILL $$"),
        ("missing_0", "exec no-such-program"),
    ]
    .map(|(runner, script)| Order::new(folder.path(), runner, script).start());
    let ends = launches.each_mut().map(Launch::finish);
    assert_eq!(
        ends,
        ["exited with code 7", "was killed by SIGKILL", "exited with code 127"]
    );
}

#[test]
fn a_cancelled_step_leaves_no_job_behind() {
    let folder = folder();
    let order = Order::new(folder.path(), "cancelled_0", STUBBORN);
    let mut launch = order.start();
    launch.wait_for("started");
    let end = ended(&mut launch, Signal::SIGINT, 7);
    assert!(end.starts_with("was ended by SIGINT"), "{end}: {:?}", launch.shown);
    assert!(soon(|| cluster().alive("cancelled_0").is_empty()));
    assert_eq!(order.release(), Vec::<String>::new());
}

#[test]
fn a_job_that_heeds_is_gone_at_once_and_its_last_words_are_shown() {
    let folder = folder();
    let script = "trap 'echo saved; exit 0' TERM; echo started; while :; do sleep 0.1; done";
    let mut launch = Order::new(folder.path(), "heeds_0", script).start();
    launch.wait_for("started");
    assert!(ended(&mut launch, Signal::SIGTERM, 3).starts_with("was ended by SIGTERM"));
    assert!(launch.shown.iter().any(|line| line == "saved"), "{:?}", launch.shown);
}

#[test]
fn a_release_ends_what_a_killed_step_left() {
    let folder = folder();
    let order = Order::new(folder.path(), "killed_0", STUBBORN);
    let mut launch = order.start();
    launch.wait_for("started");
    let id = cluster().wait_for("killed_0");
    launch.kill();
    assert_eq!(
        cluster().alive("killed_0"),
        std::slice::from_ref(&id),
        "nobody has ended it yet"
    );
    let said = order.release();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains(&format!("Slurm job {id} ")), "{said:?}");
    assert!(soon(|| cluster().alive("killed_0").is_empty()));
    assert_eq!(order.release(), Vec::<String>::new(), "once is enough");
}

#[test]
fn runners_whose_names_are_prefixes_of_each_other_never_touch_each_others_jobs() {
    let folder = folder();
    let orders = ["prefix_1", "prefix_10"].map(|runner| Order::new(folder.path(), runner, STUBBORN));
    let mut launches = orders.each_ref().map(Order::start);
    launches.iter_mut().for_each(|launch| launch.wait_for("started"));
    let long = cluster().alive("prefix_10");
    launches.into_iter().for_each(Launch::kill);
    assert_eq!(orders[0].release().len(), 1);
    assert!(soon(|| cluster().alive("prefix_1").is_empty()));
    assert_eq!(cluster().alive("prefix_10"), long, "its neighbour was released");

    // Even with the other's state at hand a runner ends its own jobs alone.
    let stranger = Order {
        runner: "prefix_1".to_owned(),
        ..orders[1].clone()
    };
    let copy = folder.path().join("copy");
    std::fs::create_dir_all(copy.join("jobs")).expect("a folder");
    for file in std::fs::read_dir(orders[1].state.join("jobs"))
        .expect("a folder")
        .flatten()
    {
        std::fs::copy(file.path(), copy.join("jobs").join(file.file_name())).expect("a copy");
    }
    let said = Order {
        state: copy,
        ..stranger
    }
    .release();
    assert!(
        said[0].contains("is called `prefix_10`, not `prefix_1`: left alone"),
        "{said:?}"
    );
    assert_eq!(cluster().alive("prefix_10"), long);

    assert_eq!(orders[1].release().len(), 1);
    assert!(soon(|| cluster().alive("prefix_10").is_empty()));
}

#[test]
fn the_job_sees_its_whole_environment_and_no_token_of_the_runner() {
    let folder = folder();
    let mut order = Order::new(
        folder.path(),
        "env_0",
        "env -0 > seen; printf '%s' \"${BASH_SOURCE[0]}\" > script",
    );
    let odd = "a,b=c\nsecond 'line' \"quoted\" ${{ secrets.X }} $(id) \\ \u{20ac}";
    let side = |workers: u64, settings: Vec<String>| {
        json!({"num-worker": workers, "tp": 1, "ep": 1, "dp-attn": false, "pp": 1, "dcp-size": 1, "pcp-size": 1,
            "additional-settings": settings})
    };
    order.envelope = envelope(json!({
        "image": "a:b", "model": "org/Model", "model-prefix": "model", "precision": "bf16", "framework": "vllm",
        "runner": "h200", "isl": 1024, "osl": 1024, "spec-decoding": "none", "conc": [4, 8], "max-model-len": 2304,
        "prefill": side(1, vec![format!("ODD={odd}"), "EMPTY=".to_owned()]), "decode": side(0, vec![]),
        "exp-name": "model_1k1k", "disagg": false, "run-eval": false, "eval-only": false,
    }));
    let mut launch = order.start_with(|command| {
        command
            .env("GITHUB_TOKEN", "ghs_x")
            .env("ACTIONS_RUNTIME_TOKEN", "t")
            .env("GITHUB_RUN_ID", "77")
            .env("SBATCH_PARTITION", "empty")
            .env("SQUEUE_FORMAT", "%u");
    });
    assert_eq!(launch.finish(), "exited with code 0", "{:?}", launch.shown);
    let seen = std::fs::read(order.workspace.join("seen")).expect("a file");
    let seen: BTreeMap<String, String> = String::from_utf8(seen)
        .expect("UTF-8")
        .split_terminator('\0')
        .filter_map(|variable| variable.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let environment = order.environment();
    assert_eq!(environment.get("ODD"), Some(odd));
    for (name, value) in environment.iter() {
        assert_eq!(seen.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert_eq!(seen.get("GITHUB_RUN_ID").map(String::as_str), Some("77"));
    for name in [
        "GITHUB_TOKEN",
        "ACTIONS_RUNTIME_TOKEN",
        "SWEEPCTL_TEST_LAUNCH",
        "SBATCH_PARTITION",
    ] {
        assert!(!seen.contains_key(name), "{name}");
    }
    // The script runs where it lies, and not as a copy in Slurm's spool.
    let script = std::fs::read_to_string(order.workspace.join("script")).expect("a file");
    assert_eq!(script, "runners/launch_env.sh");
}

#[test]
fn no_output_harms_the_log() {
    let folder = folder();
    let mut order = Order::new(
        folder.path(),
        "output_0",
        "head -c 6000000 /dev/zero | tr '\\0' x; echo; printf 'bad \\377 byte\\n'; echo '::set-output name=a::b'; \
         echo \"token $(printf 'hub-%s' token-123).\"; printf '1%%\\r2%%\\n'; printf 'no line end'",
    );
    order.secrets = vec!["hub-token-123".to_owned()];
    let mut launch = order.start_with(|command| {
        command.env("GITHUB_ACTIONS", "true");
    });
    assert_eq!(launch.finish(), "exited with code 0");
    // What Slurm says of the job may come between any two of its lines.
    let mut shown = launch.shown.clone();
    shown.retain(|line| !line.starts_with("Slurm job "));
    assert!(shown[0].starts_with("xxx") && shown[0].ends_with("bytes more]"));
    assert!(shown[0].len() < 70_000, "{}", shown[0].len());
    assert_eq!(
        shown[1..],
        [
            "bad \u{fffd} byte",
            ": :set-output name=a::b",
            "token ***.",
            "1%",
            "2%",
            "no line end"
        ]
    );
    let kept = std::fs::read_to_string(order.workspace.join("launch.log")).expect("a log");
    assert!(kept.contains("\n::set-output name=a::b\ntoken ***.\n"));
}

#[test]
fn a_job_that_waits_for_nodes_says_so_and_can_be_cancelled() {
    let folder = folder();
    let mut order = Order::new(folder.path(), "waits_0", "echo never");
    order.partition = "empty".to_owned();
    let mut launch = order.start();
    launch.wait_for("waits: ");
    assert!(ended(&mut launch, Signal::SIGTERM, 3).starts_with("was ended by SIGTERM"));
    assert!(soon(|| cluster().alive("waits_0").is_empty()));
    assert!(!launch.shown.iter().any(|line| line == "never"));
}

#[test]
fn a_time_limit_is_told_apart() {
    let folder = folder();
    let mut order = Order::new(folder.path(), "limit_0", "echo started; sleep 120");
    order.time = Some("1".to_owned());
    let mut launch = order.start();
    launch.wait_for("started");
    let id = cluster().wait_for("limit_0");
    // The shortest limit is a minute; Slurm looks at limits twice a minute.
    let moved = soon(|| {
        let arguments = ["update", &format!("JobId={id}"), "EndTime=now"];
        cluster()
            .command("scontrol")
            .args(arguments)
            .output()
            .is_ok_and(|output| output.status.success())
    });
    assert!(moved, "the end of job {id} cannot be moved");
    let end = launch.finish_within(Duration::from_secs(60));
    assert!(
        end.starts_with("was ended at its deadline"),
        "{end}: {:?}",
        launch.shown
    );
}

#[test]
fn a_job_that_someone_else_cancels_is_lost() {
    let folder = folder();
    let mut launch = Order::new(folder.path(), "stolen_0", "echo started; sleep 120").start();
    launch.wait_for("started");
    let id = cluster().wait_for("stolen_0");
    cluster().ask("scancel", &[&id]);
    let end = launch.finish();
    assert!(
        end.contains(&format!("Slurm job {id} was cancelled on n1, and not by this launch")),
        "{end}"
    );
}

#[test]
fn what_sbatch_refuses_is_said() {
    let folder = folder();
    let mut order = Order::new(folder.path(), "refused_0", "true");
    order.partition = "nowhere".to_owned();
    let mut launch = order.start();
    let end = launch.finish();
    assert!(
        end.starts_with("problem: `sbatch` failed") && end.contains("invalid partition"),
        "{end}"
    );
}

#[test]
fn a_controller_that_is_away_for_a_while_loses_no_job() {
    let folder = folder();
    // Each command of the launch finds nobody at its first call, and then Slurm itself.
    let mut bin = PathBuf::new();
    for name in ["sbatch", "scontrol"] {
        let script = format!(
            "count={dir}/{name}.count\necho >> $count\nif [ $(wc -l < $count) -lt 3 ]; then\n  \
             echo '{name}: error: Unable to contact slurm controller (connect failure)' >&2; exit 1\nfi\n\
             exec /usr/bin/{name} \"$@\"",
            dir = folder.path().display()
        );
        bin = stand_in(folder.path(), name, &script);
    }
    let order = Order::new(folder.path(), "away_0", "echo started; sleep 1; exit 3");
    let mut launch = behind(&bin, &order);
    assert_eq!(launch.finish(), "exited with code 3", "{:?}", launch.shown);
    let shown = launch.shown.join("\n");
    assert!(shown.contains("the job is submitted again in 1 s"), "{shown}");
    assert!(shown.contains("Slurm does not answer"), "{shown}");
    assert!(shown.contains("Slurm answers again"), "{shown}");
}

#[test]
fn a_job_whose_id_was_lost_on_its_way_is_found_and_not_doubled() {
    let folder = folder();
    let bin = stand_in(
        folder.path(),
        "sbatch",
        "/usr/bin/sbatch \"$@\" >/dev/null\necho 'sbatch: error: Socket timed out on send/recv operation' >&2\nexit 1",
    );
    let order = Order::new(folder.path(), "lost_0", "echo run >> runs; exit 4");
    let mut launch = behind(&bin, &order);
    assert_eq!(launch.finish(), "exited with code 4", "{:?}", launch.shown);
    let runs = std::fs::read_to_string(order.workspace.join("runs")).expect("a file");
    assert_eq!(runs, "run\n");
}

#[test]
fn a_step_that_is_killed_while_it_submits_leaves_a_job_that_release_finds() {
    let folder = folder();
    let bin = stand_in(
        folder.path(),
        "sbatch",
        "/usr/bin/sbatch \"$@\" >/dev/null; touch submitted; sleep 5",
    );
    let order = Order::new(folder.path(), "between_0", STUBBORN);
    let launch = behind(&bin, &order);
    let id = cluster().wait_for("between_0");
    launch.kill();
    let said = order.release();
    assert!(said[0].contains(&format!("Slurm job {id} ")), "{said:?}");
    assert!(soon(|| cluster().alive("between_0").is_empty()));
}

#[test]
fn what_would_be_done_is_told_without_slurm() {
    let folder = folder();
    let mut order = Order::new(folder.path(), "intent_0", "true");
    order.time = Some("06:00:00".to_owned());
    let intent = order.with(|backend, job| backend.intend(job)).expect("an intent");
    let state = order.state.display();
    let wanted = [
        "sbatch",
        "--parsable",
        "--no-requeue",
        "--export=ALL",
        "--job-name=intent_0",
        "--comment=<a token of this launch>",
        "--partition=main",
        "--time=06:00:00",
        &format!("--chdir={}", order.workspace.display()),
        &format!("--output={state}/slurm/job-%j.raw"),
        "--nodes=1",
        &format!("{state}/slurm/batch.sh"),
        "bash",
        "runners/launch_intent.sh",
    ];
    assert_eq!(intent.commands, [wanted.map(str::to_owned).to_vec()]);
    assert_eq!(intent.files.len(), 1);
    assert!(!order.state.exists(), "nothing was written");
}

#[test]
fn all_that_does_not_fit_is_refused_at_once() {
    let folder = folder();
    let mut order = Order::new(folder.path(), "fit_0", "true");
    let mut many = row();
    let side = json!({"num-worker": 1, "tp": 8, "ep": 1, "dp-attn": false, "pp": 1, "dcp-size": 1, "pcp-size": 1,
        "additional-settings": ["SBATCH_RESERVATION=x", "SLURM_CONF=/tmp/x"]});
    support::spread(&mut many, [side.clone(), side], &[4]);
    order.envelope = envelope(many);
    order.state = folder.path().join("back\\slash");
    std::fs::remove_file(order.workspace.join("runners/launch_fit.sh")).expect("a file");
    let problems = order.start().finish();
    for text in [
        "`SBATCH_RESERVATION` cannot be passed",
        "`SLURM_CONF` cannot be passed",
        "logs cannot be kept in",
        "there is no launch script `runners/launch_fit.sh`",
    ] {
        assert!(problems.contains(text), "{text}: {problems}");
    }
    assert!(!order.state.exists(), "nothing was written");

    // A launch script that is a link runs nothing.
    let order = Order::new(folder.path(), "link_0", "true");
    let script = order.workspace.join("runners/launch_link.sh");
    std::fs::remove_file(&script).expect("a file");
    std::os::unix::fs::symlink("/bin/true", &script).expect("a link");
    let end = order.start().finish();
    assert!(end.contains("is or crosses a link"), "{end}");
}
