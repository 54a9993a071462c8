//! `sweepctl eval run` with the real lm-eval against a server on loopback.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::{Mode, Server};
use super::support::{envelope, multi_node, names, read_json, root, sweepctl, write_json};
use super::tools;

/// A finished eval.
struct Done {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

impl Done {
    fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The report that is printed as JSON.
    fn report(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }
}

fn eval(server: &Server, folder: &Path) -> Command {
    eval_at(&server.url(), folder)
}

fn eval_at(url: &str, folder: &Path) -> Command {
    let mut command = sweepctl();
    command
        .args(["eval", "run", "--endpoint", url, "--stage-to"])
        .arg(folder.join("staged"))
        .env("SWEEPCTL_TOOLS", tools::folder())
        .env("PYTHONPATH", tools::no_waits())
        .env("HF_HOME", folder.join("hub"))
        .env("HF_HUB_OFFLINE", "1");
    command
}

/// Starts an eval, hands every line of its standard error to `watch`, and waits for its end.
fn run(command: &mut Command, mut watch: impl FnMut(&str, &Child)) -> Done {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let lines = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut stderr = String::new();
    for line in lines.split(b'\n') {
        let line = String::from_utf8_lossy(&line.expect("a line")).into_owned();
        watch(&line, &child);
        stderr.push_str(&line);
        stderr.push('\n');
    }
    let output = child.wait_with_output().expect("an end");
    Done {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr,
    }
}

fn meta(folder: &Path) -> Value {
    read_json(&folder.join("staged/meta_env.json"))
}

/// The staged file of a form.
fn staged(folder: &Path, start: &str, end: &str) -> PathBuf {
    let all = names(&folder.join("staged"));
    let found: Vec<_> = all
        .iter()
        .filter(|n| n.starts_with(start) && n.ends_with(end))
        .collect();
    assert_eq!(found.len(), 1, "{start}*{end} in {all:?}");
    folder.join("staged").join(found[0])
}

/// The lm-eval process that talks to a port.
fn lm_eval_pid(port: u16) -> Option<i32> {
    let needle = format!("base_url=http://127.0.0.1:{port}/");
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&line).contains(&needle).then_some(pid)
    })
}

fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(status.expect("kill runs").success());
}

#[test]
fn one_point_of_a_planned_job() {
    tools::lm_eval();
    let server = Server::start(Mode::Right, &["org/stub-7b"]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    std::fs::create_dir(at.join("staged")).expect("a folder");
    std::fs::write(at.join("staged/results_old.json"), "{}").expect("a file");
    std::os::unix::fs::symlink("/etc/passwd", at.join("staged/samples_old.jsonl")).expect("a link");
    let file = write_json(at, "envelope.json", &envelope("0123456789ab", json!({})));
    let task = root().join("configs/evals/gsm8k_smoke.yaml");
    let mut command = eval(&server, at);
    command
        .current_dir(at)
        .arg("--envelope")
        .arg(&file)
        .arg("--task")
        .arg(task)
        .args(["--limit", "4"]);
    command
        .env("OPENAI_API_KEY", "key-that-no-log-shows")
        .env("GITHUB_RUN_ID", "77");
    let done = run(&mut command, |_, _| {});
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let point = done.report()["points"][0].clone();
    assert_eq!((&point["concurrency"], &point["completed"]), (&json!(4), &json!(true)));

    let results = read_json(&staged(at, "results_", ".json"));
    assert_eq!(results["results"]["gsm8k_smoke"]["exact_match,strict-match"], 1.0);
    assert_eq!(results["results"]["gsm8k_smoke"]["exact_match,flexible-extract"], 1.0);
    assert_eq!(results["n-samples"]["gsm8k_smoke"]["effective"], 4);
    assert_eq!(results["config"]["model_args"]["max_length"], 9472);
    let samples = std::fs::read_to_string(staged(at, "samples_gsm8k_smoke_", ".jsonl")).expect("samples");
    assert_eq!(samples.lines().count(), 8, "four samples under two filters");
    assert_eq!(names(&at.join("staged/stale")), ["results_old.json"]);
    assert_eq!(
        names(&at.join("staged")).len(),
        4,
        "results, samples, meta_env.json and stale"
    );

    let meta = meta(at);
    assert_eq!(meta["conc"], 4);
    assert_eq!(
        (&meta["job_id"], &meta["run_id"]),
        (&json!("0123456789ab"), &json!("77"))
    );
    assert_eq!(
        (&meta["isl"], &meta["tp"], &meta["prefill_tp"]),
        (&json!("8192"), &json!(8), &json!(8))
    );
    assert!(meta.get("eval_concs").is_none());

    let seen = server.seen();
    assert_eq!(seen.len(), 4);
    for request in &seen {
        assert_eq!(request["model"], "org/stub-7b");
        assert_eq!(
            (&request["max_tokens"], &request["temperature"]),
            (&json!(5376), &json!(0))
        );
        let messages = request["messages"].as_array().expect("messages");
        assert_eq!(messages.len(), 11, "five examples and the question");
        assert!(
            messages
                .iter()
                .all(|m| m["content"].is_string() && m.get("type").is_none()),
            "{messages:?}"
        );
    }
    let all = format!("{}{}{results}", done.stdout, done.stderr);
    assert!(!all.contains("key-that-no-log-shows"), "{all}");
}

#[test]
fn a_batch_goes_on_after_a_failed_point() {
    tools::lm_eval();
    let server = Server::start(Mode::Right, &["only-one"]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let file = write_json(at, "envelope.json", &multi_node("00000000000b", &[2, 3, 4]));
    let mut command = eval(&server, at);
    command.args(["--task", "gpqa_diamond_smoke", "--limit", "4", "--concurrency", "2 3 4"]);
    command
        .arg("--envelope")
        .arg(&file)
        .env("MODEL_NAME", "served/name")
        .env("PREFILL_DP_ATTN", "true");
    let done = run(&mut command, |line, _| {
        if line.contains("point 2 of 3") {
            server.set(Mode::Broken);
        } else if line.contains("point 3 of 3") {
            server.set(Mode::Reasoning);
        }
    });
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("lm-eval at concurrency 3 exited with code 1"),
        "{}",
        done.stderr
    );
    let meta = meta(at);
    assert_eq!(meta["eval_concs"], json!([2, 3, 4]));
    assert_eq!(meta["completed_eval_concs"], json!([2, 4]));
    assert_eq!(meta["failed_eval_concs"], json!([3]));
    assert_eq!(
        meta["answers"]["asked"], 8,
        "those of the two points that completed: {meta}"
    );
    assert_eq!((&meta["conc"], &meta["is_multinode"]), (&json!(2), &json!(true)));
    assert_eq!(
        (&meta["prefill_num_workers"], &meta["decode_num_workers"]),
        (&json!(2), &json!(3))
    );
    for conc in ["_conc2", "_conc4"] {
        let results = read_json(&staged(at, "results_", &format!("{conc}.json")));
        let scores = &results["results"]["gpqa_diamond_smoke"];
        assert_eq!(scores["exact_match,strict-match"], 1.0, "{conc}: {scores}");
        assert_eq!(scores["exact_match,flexible-extract"], 1.0, "{conc}: {scores}");
        staged(at, "samples_gpqa_diamond_smoke_", &format!("{conc}.jsonl"));
    }
    assert_eq!(names(&at.join("staged")).len(), 5);
}

#[test]
fn answers_that_end_early_and_a_server_that_dies() {
    tools::lm_eval();
    let mut server = Some(Server::start(Mode::Cut, &["served"]));
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let mut command = eval(server.as_ref().expect("a server"), at);
    command.args(["--task", "gsm8k_smoke", "--limit", "2", "--concurrency", "2 1"]);
    let done = run(&mut command, |line, _| {
        if line.contains("point 2 of 2") {
            server = None;
        }
    });
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    let meta = meta(at);
    assert_eq!(
        (&meta["completed_eval_concs"], &meta["failed_eval_concs"]),
        (&json!([]), &json!([2, 1]))
    );
    assert_eq!(names(&at.join("staged")), ["meta_env.json"]);
}

#[test]
fn a_server_that_hangs_is_left_at_the_deadline() {
    tools::lm_eval();
    let server = Server::start(Mode::Hang, &["served"]);
    let folder = tempfile::tempdir().expect("a folder");
    // The Python that a container would have, with lm-eval in it already.
    let path = format!(
        "{}:{}",
        tools::lm_eval().program("").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut command = eval(&server, folder.path());
    command.args(["--task", "gsm8k_smoke", "--limit", "2", "--concurrency", "2"]);
    command.args(["--point-timeout", "6", "--system-python"]);
    command.env("PATH", path).env("FRAMEWORK", "dynamo-atom");
    let done = run(&mut command, |_, _| {});
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("Skipping torchvision"), "{}", done.stderr);
    assert!(done.stderr.contains("was ended at its deadline"), "{}", done.stderr);
    assert_eq!(meta(folder.path())["conc"], 2);
    assert_eq!(lm_eval_pid(server.port()), None, "the child is gone");
}

#[test]
fn a_cancelled_eval_stages_what_is_there_in_time() {
    tools::lm_eval();
    let server = Server::start(Mode::Right, &["served"]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let mut command = eval(&server, at);
    command.args(["--task", "gsm8k_smoke", "--limit", "2", "--concurrency", "2 4 8"]);
    let mut cancelled = None;
    let done = run(&mut command, |line, child| {
        if line.contains("1 of 3 points done") {
            server.set(Mode::Hang);
            let before = server.seen().len();
            while server.seen().len() == before {
                std::thread::sleep(Duration::from_millis(20));
            }
            kill(child.id(), "-TERM");
            cancelled = Some(Instant::now());
        }
    });
    let took = cancelled.expect("the second point started").elapsed();
    assert!(took < Duration::from_secs(7), "{took:?}");
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    let meta = meta(at);
    assert_eq!(
        (&meta["completed_eval_concs"], &meta["failed_eval_concs"]),
        (&json!([2]), &json!([4, 8]))
    );
    staged(at, "results_", "_conc2.json");
    assert!(done.stderr.contains("ended by SIGTERM"), "{}", done.stderr);
    assert_eq!(lm_eval_pid(server.port()), None, "the child is gone");
}

#[test]
fn a_killed_child_is_told_from_one_that_failed() {
    tools::lm_eval();
    let server = Server::start(Mode::Hang, &["served"]);
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = eval(&server, folder.path());
    command.args(["--task", "gsm8k_smoke", "--limit", "2", "--concurrency", "2"]);
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            server.wait_for_request();
            kill(lm_eval_pid(server.port()).expect("the child").unsigned_abs(), "-KILL");
        });
        run(&mut command, |_, _| {})
    });
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("was killed by SIGKILL"), "{}", done.stderr);
    assert_eq!(names(&folder.path().join("staged")), ["meta_env.json"]);
}

#[test]
fn results_that_do_not_fit_the_disk_are_a_failure_though_lm_eval_says_nothing() {
    tools::lm_eval();
    let server = Server::start(Mode::Right, &["served"]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let eval = eval(&server, at);
    // A limit on file size ends writes as a full disk does: the result file fits, the samples do not.
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -f 48; exec \"$@\"", "sh"])
        .arg(eval.get_program())
        .args(eval.get_args());
    for (name, value) in eval.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .current_dir(root())
        .args(["--task", "gsm8k_smoke", "--limit", "8", "--concurrency", "8"]);
    let done = run(&mut command, |_, _| {});
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("exited with code 0, and"), "{}", done.stderr);
    assert!(done.stderr.contains("is cut off"), "{}", done.stderr);
    staged(at, "results_", ".json");
    assert!(at.join("staged/meta_env.json").exists());
}

#[test]
fn results_that_cannot_be_staged_stay_and_are_named() {
    tools::lm_eval();
    let server = Server::start(Mode::Right, &["served"]);
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let mut command = eval(&server, at);
    command.args(["--task", "gsm8k_smoke", "--limit", "2", "--concurrency", "2"]);
    let staged = at.join("staged");
    let mut seen = 0;
    // Nobody can write to a folder that is none: permissions do not keep root out.
    let done = run(&mut command, |_, _| {
        seen += 1;
        if seen == 3 {
            std::fs::rename(&staged, at.join("away")).expect("a folder");
            std::fs::write(&staged, "").expect("a file");
        }
    });
    assert_eq!(done.code(), Some(1), "{}", done.stderr);
    let raw = done.stderr.split("could not be staged, and stay in ").nth(1);
    let raw = raw
        .unwrap_or_else(|| panic!("{}", done.stderr))
        .lines()
        .next()
        .expect("a folder");
    let kept = PathBuf::from(raw.trim());
    let result = sweepctl::step::stage::find(&kept, &["results_*.json"], true).files;
    assert_eq!(result.len(), 1, "{}", kept.display());
    std::fs::remove_dir_all(kept).expect("a folder");
}

/// Runs Python in lm-eval's environment; what it prints, and whether it succeeded.
fn python(configure: impl FnOnce(&mut Command)) -> (bool, String) {
    let mut command = Command::new(tools::lm_eval().python());
    configure(command.env("PYTHONDONTWRITEBYTECODE", "1"));
    let output = command.output().expect("python runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn lm_eval_is_adapted_and_another_version_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let patch = include_str!("../../src/step/eval/sitecustomize.py");
    std::fs::write(folder.path().join("sitecustomize.py"), patch).expect("a file");
    let import = |version: &str| {
        python(|command| {
            command.args(["-c", "import lm_eval.models.openai_completions as m; print('loaded')"]);
            command
                .env("PYTHONPATH", folder.path())
                .env("SWEEPCTL_LM_EVAL_VERSION", version);
        })
    };
    let (done, said) = import("0.4.12");
    assert!(
        !done && said.contains("0.4.12 is expected") && !said.contains("loaded"),
        "{said}"
    );
    let (done, said) = import(sweepctl::step::eval::lm_eval::VERSION);
    assert!(done && said.contains("loaded"), "{said}");
    // Typed text parts become the string that every server takes.
    let script = "
import json, lm_eval.models.openai_completions as m
client = m.LocalChatCompletion(base_url='http://127.0.0.1:9', model='m')
parts = [{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': 'b'}]
payload = client._create_payload([{'role': 'user', 'type': 'text', 'content': parts}], generate=True, gen_kwargs={})
print(json.dumps(payload['messages']))";
    let (done, said) = python(|command| {
        command.args(["-c", script]).env("PYTHONPATH", folder.path());
        command.env("SWEEPCTL_LM_EVAL_VERSION", sweepctl::step::eval::lm_eval::VERSION);
    });
    let last = said.lines().last().unwrap_or_default();
    assert!(done && last == r#"[{"role": "user", "content": "ab"}]"#, "{said}");
    // Python that never loads lm-eval, such as pip, is left alone.
    let (done, said) = python(|command| {
        command.args(["-c", "print('fine')"]).env("PYTHONPATH", folder.path());
    });
    assert!(done && said == "fine\n", "{said}");
}

#[test]
fn gpqas_choices_stand_in_a_fixed_order_with_the_right_one_anywhere() {
    let script = "
import json, gpqa_choices as g
docs = [{'Question': f' question {n} ', 'Correct Answer': 'right', 'Incorrect Answer 1': 'w1',
         'Incorrect Answer 2': 'w2', 'Incorrect Answer 3': 'w3'} for n in range(40)]
print(json.dumps([g.to_choices(doc) for doc in docs]))";
    let (done, said) = python(|command| {
        command
            .args(["-c", script])
            .env("PYTHONPATH", root().join("configs/evals"));
    });
    assert!(done, "{said}");
    let docs: Vec<Value> = serde_json::from_str(&said).expect("JSON");
    let mut letters = std::collections::BTreeSet::new();
    for doc in &docs {
        let letter = doc["answer"]
            .as_str()
            .and_then(|a| a.strip_prefix("#### "))
            .expect("a letter");
        let at = "ABCD".find(letter).expect("one of four");
        assert_eq!(
            (&doc["choices"][at], doc["choices"].as_array().map(Vec::len)),
            (&json!("right"), Some(4))
        );
        letters.insert(letter);
    }
    assert_eq!(letters.len(), 4);
    assert_eq!(docs[0]["question"], "question 0");
}

/// A port that nothing listens on.
const NOBODY: &str = "http://127.0.0.1:9";

#[test]
fn what_is_refused_before_anything_runs_still_leaves_its_metadata() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let vendor = json!({"eval-framework": "other-vendor", "eval-suite": "kimi_tool_call_schema_full"});
    let file = write_json(at, "envelope.json", &envelope("00000000000c", vendor));
    let mut command = eval_at(NOBODY, at);
    let done = run(command.arg("--envelope").arg(&file), |_, _| {});
    assert_eq!(done.code(), Some(1));
    assert!(
        done.stderr.contains("no eval framework is named `other-vendor`"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("`kimi-vendor`"), "{}", done.stderr);
    assert_eq!(meta(at)["eval_suite"], "kimi_tool_call_schema_full");

    // Every problem at once, with what was meant.
    let mut command = eval_at("localhost:8000", at);
    command
        .args(["--task", "gsm8k_smok", "--limit", "many"])
        .env("MAX_MODEL_LEN", "long");
    let done = run(&mut command, |_, _| {});
    assert_eq!(done.code(), Some(1));
    for part in [
        "`localhost:8000` is no endpoint",
        "`gsm8k_smoke`",
        "`many`",
        "MAX_MODEL_LEN is `long`",
    ] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }
    assert_eq!(meta(at)["conc"], 64);

    let done = run(
        eval_at(NOBODY, at).args(["--task", "configs/evals/none.yaml"]),
        |_, _| {},
    );
    assert_eq!(done.code(), Some(1));
    assert!(
        done.stderr.contains("`configs/evals/none.yaml` does not exist"),
        "{}",
        done.stderr
    );

    let done = run(eval_at(NOBODY, at).args(["--concurrency", "16 0"]), |_, _| {});
    assert_eq!(done.code(), Some(2), "{}", done.stderr);
}

#[test]
fn a_server_that_never_comes_has_its_own_deadline() {
    tools::lm_eval();
    let folder = tempfile::tempdir().expect("a folder");
    let run_with = |more: &[(&str, &str)]| {
        let mut command = eval_at(NOBODY, folder.path());
        command
            .args(["--task", "gsm8k_smoke"])
            .env("EVAL_ENDPOINT_READY_TIMEOUT_SECONDS", "1");
        run(command.envs(more.iter().copied()), |_, _| {})
    };
    let done = run_with(&[]);
    assert_eq!(done.code(), Some(1));
    assert!(
        done.stderr.contains("is not ready after 1 s: /health"),
        "{}",
        done.stderr
    );
    // After throughput an eval decides nothing.
    let done = run_with(&[("RUN_EVAL", "true"), ("EVAL_ONLY", "false")]);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert!(
        done.stderr.contains("the job goes on with its throughput"),
        "{}",
        done.stderr
    );
    assert_eq!(run_with(&[("RUN_EVAL", "true"), ("EVAL_ONLY", "true")]).code(), Some(1));
}

#[test]
fn what_a_server_serves_is_asked_only_where_nothing_names_it() {
    tools::lm_eval();
    let server = Server::start(Mode::Broken, &["a", "b"]);
    let folder = tempfile::tempdir().expect("a folder");
    let run_with = |args: &[&str], model: &str| {
        let mut command = eval(&server, folder.path());
        command.args(["--task", "gsm8k_smoke"]).args(args).env("MODEL", model);
        run(command.env("EVAL_ENDPOINT_READY_TIMEOUT_SECONDS", "1"), |_, _| {})
    };
    let done = run_with(&[], "");
    assert!(done.stderr.contains("/v1/models lists a, b"), "{}", done.stderr);
    let done = run_with(&["--wait-for-chat"], "a");
    assert!(
        done.stderr.contains("not serving `a` on its chat route after 1 s"),
        "{}",
        done.stderr
    );
    let done = run_with(&[], "c");
    assert!(done.stderr.contains("/v1/models lists a, b"), "{}", done.stderr);
    let odd = Server::start(Mode::Broken, &["a, b"]);
    let mut command = eval(&odd, folder.path());
    command.args(["--task", "gsm8k_smoke"]).env("MODEL", "a, b");
    let done = run(command.env("EVAL_ENDPOINT_READY_TIMEOUT_SECONDS", "1"), |_, _| {});
    assert!(
        done.stderr.contains("cannot be told of a model named `a, b`"),
        "{}",
        done.stderr
    );
    assert!(
        server.seen().iter().all(|request| request["model"] == "a"),
        "lm-eval was not started"
    );
}
