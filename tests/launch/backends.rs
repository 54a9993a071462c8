//! What each backend's child gets, and how each is called.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::support::{Host, RUNNER, benchmark, run, throughput};
use crate::eval::support::{envelope, multi_node};

/// A container command that records its arguments and runs what it is asked to, with nothing but the variables that
/// its arguments give.
pub const DOCKER: &str = r#"
record=$HOST/docker.calls
printf '%s\n' "$(printf '%q ' "$@")" >> "$record"
case $1 in
image) exit "${DOCKER_IMAGE_CODE:-0}" ;;
manifest) exit 1 ;;
ps) cat "$HOST/containers" 2>/dev/null; exit 0 ;;
rm) rm -f "$HOST/containers"; exit 0 ;;
esac
shift
vars=("PATH=$PATH" "HOST=$HOST")
while (($#)); do
    case $1 in
    --env-file=*) while IFS= read -r line; do vars+=("$line"); done < "${1#*=}" ;;
    --env) vars+=("$2=${!2}"); shift ;;
    --entrypoint=*) entry=${1#*=} ;;
    --workdir=*) cd "${1#*=}" || exit 125 ;;
    -*) ;;
    *) break ;;
    esac
    shift
done
shift
exec env -i "${vars[@]}" "$entry" "$@"
"#;

/// A script that shows its environment and leaves whatever a job of any shape must leave.
const SHOWS: &str = r#"
env -0 > "$HOST/child.env"
for name in "$RESULT_FILENAME" "${RESULT_FILENAME}_conc16" "${RESULT_FILENAME}_all"; do
    [ "$EVAL_ONLY" = true ] || cp "$HOST/saved.json" "$name.json"
done
"#;

pub fn agentic(many: bool) -> Value {
    let mut envelope = if many {
        multi_node("0123456789ab", &[16])
    } else {
        envelope("0123456789ab", json!({"dp-attn": false}))
    };
    let row = envelope["row"].as_object_mut().expect("a row");
    for name in [
        "isl",
        "osl",
        "max-model-len",
        "eval-framework",
        "eval-suite",
        "eval-all-concs",
    ] {
        row.remove(name);
    }
    if !many {
        row.remove("disagg");
    }
    for (name, value) in json!({"scenario-type": "agentic-coding", "kv-offloading": "dram", "total-cpu-dram-gb": 12,
        "kv-offload-backend": {"name": "native"}, "duration": 3600, "exp-name": "stub_agentic"})
    .as_object()
    .expect("an object")
    {
        row.insert(name.clone(), value.clone());
    }
    without_eval(envelope)
}

pub fn without_eval(mut envelope: Value) -> Value {
    let row = envelope["row"].as_object_mut().expect("a row");
    for name in ["eval-framework", "eval-suite", "eval-all-concs", "eval-conc"] {
        row.remove(name);
    }
    row.insert("run-eval".to_owned(), false.into());
    row.insert("eval-only".to_owned(), false.into());
    envelope
}

/// Every shape, the last with values that a shell, an env-file and the runner's heredocs would stumble over.
pub fn shapes() -> Vec<Value> {
    let mut hostile = without_eval(multi_node("0123456789ab", &[16, 32]));
    hostile["row"]["prefill"]["additional-settings"] = json!([
        "LINES_OF=one\nEOF\nghadelimiter_x\nTP=9\n",
        "QUOTES=a 'b' \"c\" $(touch owned) `id` \\ #",
        "SPACES=  kept  ",
        "EMPTY_ONE=",
    ]);
    vec![
        throughput(),
        without_eval(multi_node("0123456789ab", &[16, 32])),
        agentic(false),
        agentic(true),
        hostile,
    ]
}

/// The variables that `job env` promises.
fn promised(host: &Host) -> BTreeMap<String, String> {
    let done = run(&mut host.sweepctl(&["job", "env", "--envelope", "envelope.json", "--json"]));
    serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.stderr))
}

/// Asserts that a child's environment, as `env -0` shows it, holds every promised variable.
pub fn assert_complete(host: &Host, file: &str, backend: &str) {
    let text = host.read(file);
    let found: BTreeMap<&str, &str> = text.split('\0').filter_map(|pair| pair.split_once('=')).collect();
    let promised = promised(host);
    assert!(promised.len() > 40, "{}", promised.len());
    for (name, value) in &promised {
        assert_eq!(found.get(name.as_str()), Some(&value.as_str()), "{name} of {backend}");
    }
}

#[test]
fn a_script_gets_every_variable_of_every_shape() {
    for envelope in shapes() {
        let host = Host::with_script(SHOWS);
        std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
        let done = host.run(&envelope);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert_complete(&host, "child.env", "script");
        assert!(!host.file("owned").exists());
    }
}

#[test]
fn a_container_gets_every_variable_of_every_shape() {
    for envelope in shapes() {
        let host = Host::new(
            "{ backend: container, runtime: docker, gpus: none, shm-size: 64g, network: host, mounts: [{ host: /raid, container: /hub, read-only: true }] }",
        );
        host.script(SHOWS);
        host.tool("docker", DOCKER);
        std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
        let done = host.run(&envelope);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        assert_complete(&host, "child.env", "container");
        let calls = host.read("docker.calls");
        let call = calls.lines().find(|call| call.starts_with("run ")).expect("a run");
        let checkout = host.at().display();
        for part in [
            "run --rm --init ",
            &format!(" --name=sweepctl-{RUNNER} "),
            &format!(" --label=sweepctl.runner={RUNNER} "),
            " --shm-size=64g ",
            " --network=host ",
            " --volume=/raid:/hub:ro ",
            &format!(" --volume={checkout}:{checkout} "),
            &format!(" --entrypoint=bash engine:1 {checkout}/runners/launch_h200-x.sh "),
        ] {
            assert!(call.contains(part), "{part} in {call}");
        }
        assert!(
            !host.file(&format!("state/{RUNNER}/container.env")).exists(),
            "it is removed afterwards"
        );
    }
}

#[test]
fn gpus_reach_a_container_as_its_cluster_says() {
    let idle = "echo '0, 4'; echo '1, 4'";
    for (gpus, options) in [
        ("nvidia", &["--gpus=all"][..]),
        ("amd", &["--device=/dev/kfd", "--device=/dev/dri", "--group-add=video"]),
    ] {
        let host = Host::new(&format!("{{ backend: container, runtime: podman, gpus: {gpus} }}"));
        host.script(SHOWS);
        host.tool("podman", DOCKER);
        host.tool("nvidia-smi", idle);
        host.tool(
            "amd-smi",
            r#"echo '[{"gpu": 0, "mem_usage": {"used_vram": {"value": 9, "unit": "MB"}}}]'"#,
        );
        std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
        let mut envelope = throughput();
        envelope["row"]["tp"] = 1.into();
        let done = host.run(&envelope);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let calls = host.read("docker.calls");
        for option in options {
            assert!(calls.contains(option), "{option} in {calls}");
        }
    }
}

#[test]
fn a_container_that_an_earlier_launch_left_is_removed_and_only_this_runners() {
    let host = Host::new("{ backend: container, runtime: docker, gpus: none }");
    host.tool("docker", DOCKER);
    std::fs::write(host.file("containers"), "0123456789ab\nWARNING: no swap limit\n").expect("a file");
    let done = host.release(&["--runner-name", RUNNER]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("container 0123456789ab"), "{}", done.stdout);
    let calls = host.read("docker.calls");
    let filter = format!("--filter label=sweepctl.runner={RUNNER}");
    assert!(calls.contains(&filter), "{calls}");
    assert!(
        calls.lines().any(|call| call.trim() == "rm --force 0123456789ab"),
        "{calls}"
    );
    // podman would wait for it, longer than a step that is cancelled may.
    let host = Host::new("{ backend: container, runtime: podman, gpus: none }");
    host.tool("podman", DOCKER);
    std::fs::write(host.file("containers"), "0123456789ab\n").expect("a file");
    assert_eq!(host.release(&["--runner-name", RUNNER]).code, Some(0));
    assert!(host.read("docker.calls").contains("rm --force --time=0 0123456789ab"));
}

#[test]
fn the_local_server_and_client_get_every_variable() {
    let host = Host::with_server(
        r#"env -0 > server.env; exec "$SWEEPCTL" mock-server --port "$0""#,
        r#"env -0 > client.env; cp saved.json "$INFMAX_WORKSPACE/$RESULT_FILENAME.json""#,
        "",
    );
    std::fs::write(host.file("saved.json"), benchmark(json!({})).to_string()).expect("a file");
    let done = host.run(&throughput());
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_complete(&host, "server.env", "the server");
    assert_complete(&host, "client.env", "the client");
    assert!(host.read("server.log").contains("listening on"));
}

#[test]
fn a_dry_run_says_everything_and_does_nothing() {
    let host = Host::new("{ backend: container, runtime: podman, gpus: nvidia }");
    let done = run(&mut host.launch(&throughput(), &["--dry-run"]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let plan: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(
        (plan["backend"].as_str(), plan["runner"].as_str()),
        (Some("container"), Some(RUNNER))
    );
    let command = plan["commands"][0].as_array().expect("a command");
    assert_eq!(
        (command[0].as_str(), command[1].as_str()),
        (Some("podman"), Some("run"))
    );
    let [path, text] = [0, 1].map(|at| plan["files"][0][at].as_str().expect("a file"));
    assert!(text.contains("CONC=4\n"), "{text}");
    assert!(!std::path::Path::new(path).exists());
    let environment: BTreeMap<String, String> = serde_json::from_value(plan["environment"].clone()).expect("variables");
    assert_eq!(environment, promised(&host));
}

#[test]
fn an_image_cannot_pass_for_an_option() {
    let host = Host::new("{ backend: container, runtime: docker, gpus: none }");
    host.script(SHOWS);
    host.tool("docker", DOCKER);
    let mut envelope = throughput();
    envelope["row"]["image"] = "--privileged".into();
    let done = host.run(&envelope);
    assert_eq!(done.code, Some(71), "{}", done.stderr);
    assert!(
        done.stderr.contains("`--privileged` is no name of a container image"),
        "{}",
        done.stderr
    );
}

#[test]
fn later_steps_learn_the_results_name_before_anything_starts() {
    let host = Host::with_script(r#"cp "$HOST/github.env" "$HOST/seen.env"; exit 9"#);
    let file = host.file("github.env");
    std::fs::write(&file, "").expect("a file");
    let done = run(host.launch(&throughput(), &[]).env("GITHUB_ENV", &file));
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert!(done.stderr.contains("exited with code 9"), "{}", done.stderr);
    let seen = host.read("seen.env");
    assert!(seen.starts_with("RESULT_FILENAME<<"), "{seen}");
    assert!(seen.contains("\nstub_8k1k_fp8_sglang_tp8-"), "{seen}");
}

#[test]
fn a_script_says_by_its_code_what_failed() {
    for (code, wanted) in [(70, 70), (72, 72), (74, 74), (1, 73), (2, 73)] {
        let host = Host::with_script(&format!("exit {code}"));
        assert_eq!(host.run(&throughput()).code, Some(wanted), "{code}");
    }
}
