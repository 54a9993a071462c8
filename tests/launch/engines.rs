//! Rows without a launch script: the row's engine serves them.

use serde_json::{Value, json};

use super::backends::DOCKER;
use super::support::{Done, Host, run, throughput};
use crate::eval::support::envelope;

/// A server called as SGLang's is: the mock server answers for it.
const SGLANG: &str = r#"
[ "$1 $2" = "-m sglang.launch_server" ] || exit 9
for argument; do
    case $argument in
    --port=*) port=${argument#*=} ;;
    --model-path=*) model=${argument#*=} ;;
    esac
done
# A node of a cluster knows its own folder alone.
env -0 > "${HOST:-$PWD}/server.env"
printf '%s\n' "$@" > "${HOST:-$PWD}/server.arguments"
exec BINARY mock-server --port "$port" --model "$model" --max-model-len 20000 --tokens-per-second 100000
"#;

/// A host whose cluster leaves servers to engines.
pub fn with_engine(cluster: &str) -> Host {
    let host = Host::new(cluster);
    host.tool("python3", &SGLANG.replace("BINARY", env!("CARGO_BIN_EXE_sweepctl")));
    host.tool("docker", DOCKER);
    host
}

/// A throughput job whose requests are short.
pub fn short() -> Value {
    let mut job = throughput();
    for (name, value) in [("isl", 64), ("osl", 16), ("max-model-len", 336), ("conc", 2)] {
        job["row"][name] = value.into();
    }
    job
}

/// What a launch that succeeded measured.
pub fn measured(host: &Host, done: &Done) -> Value {
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let said: Value = serde_json::from_str(&done.stdout).expect("JSON");
    let name = said["result-filename"].as_str().expect("a name");
    serde_json::from_str(&host.read(&format!("{name}.json"))).expect("JSON")
}

#[test]
fn a_host_serves_a_row_by_its_engine() {
    let host = with_engine("{ backend: local }");
    let result = measured(&host, &host.run(&short()));
    assert_eq!(result["completed"], 20, "{result}");
    assert_eq!(result["model_id"], "org/stub-7b");
    let arguments = host.read("server.arguments");
    assert!(arguments.contains("\n--tensor-parallel-size=8\n"), "{arguments}");
    assert!(!arguments.contains("--context-length"), "{arguments}");
    assert!(!arguments.contains("--enable-dp-attention"), "{arguments}");
}

#[test]
fn a_container_of_the_rows_image_serves_it_and_is_removed() {
    let host = with_engine("{ backend: container, runtime: docker, network: host }");
    let result = measured(&host, &host.run(&short()));
    assert_eq!(result["completed"], 20, "{result}");
    let calls = host.read("docker.calls");
    let started = calls
        .lines()
        .find(|line| line.starts_with("run "))
        .expect("a container");
    for part in [
        "--entrypoint=python3",
        " engine:1 -m sglang.launch_server ",
        "--model-path=org/stub-7b",
        "--network=host",
        "--label=sweepctl.runner=",
    ] {
        assert!(started.contains(part), "{part}: {started}");
    }
    let workspace = host.at().canonicalize().expect("a folder");
    assert!(
        started.contains(&format!("--volume={0}:{0}", workspace.display()))
            || started.contains(&format!("--volume={0}:{0}", host.at().display())),
        "{started}"
    );
    assert!(
        calls.lines().last().is_some_and(|line| line.starts_with("ps ")),
        "{calls}"
    );
    // Every variable of the job reaches the server.
    super::backends::assert_complete(&host, "server.env", "container");
}

#[test]
fn a_launch_script_of_the_checkout_wins() {
    let host = with_engine("{ backend: container, runtime: docker, network: host }");
    host.script("exit 9");
    let done = host.run(&short());
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert!(!host.file("server.arguments").exists());
    let gone = with_engine("{ backend: container, runtime: docker, path: runners/gone.sh }");
    let done = gone.run(&short());
    assert_eq!(done.code, Some(71), "{}", done.stderr);
    assert!(done.stderr.contains("there is no launch script"), "{}", done.stderr);
}

fn dry(host: &Host, job: &Value) -> Done {
    run(&mut host.launch(job, &["--dry-run", "--json"]))
}

fn commands(done: &Done) -> Vec<Vec<String>> {
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let said: Value = serde_json::from_str(&done.stdout).expect("JSON");
    serde_json::from_value(said["commands"].clone()).expect("commands")
}

#[test]
fn an_eval_only_job_gets_its_own_context_and_no_client() {
    let host = with_engine("{ backend: local }");
    let commands = commands(&dry(&host, &envelope("0123456789ab", json!({}))));
    assert_eq!(commands.len(), 2, "{commands:?}");
    let contexts: Vec<&String> = commands[0]
        .iter()
        .filter(|a| a.starts_with("--context-length="))
        .collect();
    assert_eq!(contexts.len(), 1, "{commands:?}");
    assert_eq!(commands[1][1..3], ["eval", "run"]);
}

#[test]
fn every_condition_of_a_row_reaches_the_server() {
    let host = with_engine("{ backend: local }");
    let job = |framework: &str, more: Value| {
        let mut job = throughput();
        job["row"]["framework"] = framework.into();
        for (name, value) in more.as_object().expect("an object") {
            job["row"][name] = value.clone();
        }
        job
    };
    let cases = [
        (
            "vllm",
            json!({}),
            vec!["--tensor-parallel-size=8", "--max-model-len=9472"],
        ),
        (
            "vllm",
            json!({"dp-attn": true, "ep": 8}),
            vec!["--data-parallel-size=8", "--enable-expert-parallel"],
        ),
        (
            "vllm",
            json!({"pp": 2, "dcp-size": 4}),
            vec!["--pipeline-parallel-size=2", "--decode-context-parallel-size=4"],
        ),
        (
            "sglang",
            json!({"dp-attn": true, "ep": 4}),
            vec!["--enable-dp-attention", "--expert-parallel-size=4"],
        ),
        (
            "sglang",
            json!({"spec-decoding": "mtp"}),
            vec!["--speculative-algorithm=EAGLE"],
        ),
        ("trt", json!({"ep": 8}), vec!["--ep_size=8", "--max_seq_len=9472"]),
        (
            "atom",
            json!({"spec-decoding": "mtp"}),
            vec!["--method=mtp", "--max-model-len=9472"],
        ),
    ];
    for (framework, more, wanted) in cases {
        let commands = commands(&dry(&host, &job(framework, more.clone())));
        for argument in wanted {
            let has = commands[0].iter().any(|found| found == argument);
            assert!(has, "{framework} {more}: {argument} of {:?}", commands[0]);
        }
        assert_eq!(commands[1][1], "throughput");
    }
    // What would be lost on the way is refused: it would measure another row.
    for (framework, more, lost) in [
        ("sglang", json!({"dcp-size": 2}), "`dcp-size: 2`"),
        (
            "vllm",
            json!({"spec-decoding": "draft_model"}),
            "`spec-decoding: draft_model`",
        ),
        ("mock", json!({}), "there is no engine `mock`"),
    ] {
        let done = dry(&host, &job(framework, more));
        assert_eq!(done.code, Some(1), "{}", done.stderr);
        assert!(done.stderr.contains(lost), "{lost}: {}", done.stderr);
    }
}

#[test]
fn engines_of_the_repository_replace_the_built_in_ones() {
    let host = with_engine("{ backend: local, env: { FROM: cluster, ONLY_CLUSTER: '{tp}' } }");
    let engines = "\
engines:
  sglang:
    server: [serve, '{model}', '--options={files}/o.yaml', when: { conc: { above: 8 } }, args: [--many]]
";
    // A mapping in a list stands in braces.
    let engines = engines.replace(
        "when: { conc: { above: 8 } }, args: [--many]",
        "{ when: { conc: { above: 3 } }, args: [--many] }",
    ) + "    throughput: [measure, '{port}', '{random-range-ratio}']
    served-model-name: '{model-prefix}-served'
    env: { FROM: engine, WORDS: 'of {framework}' }
    files: { o.yaml: ['tp: {tp}', { when: { precision: fp4 }, args: ['never: true'] }] }
    overrides:
    - for: { precision: [fp8, fp4], runner: h200 }
      add: [--more]
      env: { WORDS: override }
    - for: { precision: fp4 }
      server: [other]
";
    std::fs::write(host.file("configs/engines.yaml"), engines).expect("a file");
    std::fs::write(
        host.file("configs/workflows.yaml"),
        include_str!("../../src/workflow/starter/workflows.yaml").to_owned()
            + "\nenv: { FROM: workflows, ALL: 'yes' }\n",
    )
    .expect("a file");
    let done = dry(&host, &throughput());
    let found = commands(&done);
    let said: Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(found[0][..2], ["serve", "org/stub-7b"]);
    assert_eq!(found[0][3..], ["--many", "--more"]);
    assert_eq!(found[1][0], "measure");
    let files = said["files"].as_array().expect("files");
    assert!(files.iter().any(|file| file[1] == "tp: 8\n"), "{files:?}");
    let environment = &said["environment"];
    for (name, value) in [
        ("FROM", "engine"),
        ("WORDS", "override"),
        ("ONLY_CLUSTER", "8"),
        ("ALL", "yes"),
        ("MODEL_NAME", "stub-served"),
        ("MODEL", "org/stub-7b"),
    ] {
        assert_eq!(environment[name], value, "{name}");
    }
    let shown = run(&mut host.sweepctl(&["job", "env", "--envelope", "envelope.json", "--json"]));
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    for (name, value) in environment.as_object().expect("variables") {
        // The checkout is named by the launch.
        if !["INFMAX_WORKSPACE", "SWEEPCTL_ENVELOPE"].contains(&name.as_str()) {
            assert_eq!(&shown[name], value, "{name}");
        }
    }
}

#[test]
fn variables_that_decide_what_runs_or_where_a_job_goes_are_refused() {
    for name in [
        "PATH",
        "LD_PRELOAD",
        "HF_ENDPOINT",
        "https_proxy",
        "PIP_INDEX_URL",
        "EVAL_LIMIT",
        "GITHUB_ENV",
        "SWEEPCTL_STATE",
    ] {
        let host = with_engine(&format!("{{ backend: local, env: {{ {name}: x }} }}"));
        let done = dry(&host, &throughput());
        assert_eq!(done.code, Some(1), "{name}: {}", done.stdout);
        assert!(
            done.stderr.contains(&format!("the variable `{name}`")),
            "{}",
            done.stderr
        );
    }
    let host = with_engine("{ backend: local, env: { MODEL: other, RANDOM_RANGE_RATIO: 0.5 } }");
    let done = dry(&host, &throughput());
    assert_eq!(done.code, Some(1), "{}", done.stdout);
    assert!(done.stderr.contains("MODEL of `env`"), "{}", done.stderr);
    assert!(!done.stderr.contains("RANDOM_RANGE_RATIO"), "{}", done.stderr);
}
