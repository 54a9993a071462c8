//! The JSON Schemas: the checked-in copies, the files that name them, and the fields that both they and the loader
//! know.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use sweepctl::config::asked;
use sweepctl::config::kind::Kind;
use sweepctl::config::policy::Field;
use sweepctl::config::scalar::Scalar;
use sweepctl::config::source::Source;
use sweepctl::config::tree::{self, Node};

use crate::support::{project, run, stdout};

const FIRST_LINE: &str = "# yaml-language-server: $schema=";

/// Every YAML file of the project that has a kind.
fn files() -> Vec<PathBuf> {
    let fleet = project().join("tests/fixtures/fleet");
    let folders = [
        project().to_path_buf(),
        project().join("configs"),
        fleet.clone(),
        fleet.join("configs"),
    ];
    let mut files: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    files
}

fn kind(path: &Path) -> Kind {
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    Kind::of(name).unwrap_or_else(|| panic!("{}: no kind of file has such a name", path.display()))
}

/// A YAML node as JSON, scalars by their meaning.
fn to_json(node: &Node<'_>) -> Value {
    match &node.value {
        tree::Value::Seq(items) => items.iter().map(to_json).collect(),
        tree::Value::Map(pairs) => {
            let fields: Map<String, Value> = pairs.iter().map(|(k, v)| (k.text().to_owned(), to_json(v))).collect();
            fields.into()
        }
        tree::Value::Scalar { .. } => match node.scalar() {
            Some(Scalar::Bool(value)) => value.into(),
            Some(Scalar::Int(value)) => i64::try_from(value).expect("a small number").into(),
            Some(Scalar::Float(text)) => text.parse::<f64>().expect("a number").into(),
            Some(Scalar::Str(text)) => text.as_ref().into(),
            Some(Scalar::Null) | None => Value::Null,
        },
    }
}

fn source(text: &str) -> Arc<Source> {
    Arc::new(Source::new("text.yaml".to_owned(), text.to_owned()))
}

fn checked_in(kind: Kind) -> PathBuf {
    project().join(format!("configs/schemas/{}.schema.json", kind.name()))
}

#[test]
fn checked_in_schemas_are_what_the_binary_prints() {
    for kind in Kind::ALL {
        let printed = run(project(), ["schema", kind.name()]);
        assert!(printed.status.success());
        let path = checked_in(kind);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            text == stdout(&printed),
            "{} has drifted: run `cargo run -- schema {1} > configs/schemas/{1}.schema.json`",
            path.display(),
            kind.name(),
        );
    }
}

#[test]
fn every_file_names_its_schema_and_fits_it() {
    let files = files();
    assert!(files.len() >= 10, "{files:?}");
    for path in files {
        let kind = kind(&path);
        let source = Arc::new(Source::read(&path).expect("a readable file"));
        let named = source.line(1).strip_prefix(FIRST_LINE);
        let named = named.unwrap_or_else(|| panic!("{}: the first line names no schema", path.display()));
        let schema_path = path.parent().expect("a folder").join(named);
        assert_eq!(
            schema_path.canonicalize().ok(),
            checked_in(kind).canonicalize().ok(),
            "{} names another schema",
            path.display()
        );
        let schema: Value = serde_json::from_slice(&std::fs::read(schema_path).expect("a schema")).expect("JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema of draft 2020-12");
        let value = to_json(&tree::parse(&source).expect("YAML"));
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
        kind.check(&source).expect("the loader takes it as well");
    }
}

/// Texts that use every field of their kind; `FIELDS` stands for all fields of a row, `SWITCHES` for all that a label
/// may ask for.
const WHOLE: [(Kind, &str); 11] = [
    (
        Kind::Frameworks,
        "frameworks:
  some:
    description: d
    python: \"3.12\"
    packages: [a==1]
    packages-alone: [b==2]
    archive:
      url: u
      ref: r
      paths: [a]
      sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
      git-ids:
        a/b: 0123456789abcdef0123456789abcdef01234567
    client: c.py
    environment:
      KEY: \"{api-key}\"
    most-concurrency: 8
    exit-codes: [0, 1]
    case-file: cases.jsonl
    report:
      file: some_report.json
      checks: [/a]
      passed: [/b]
      of: [/c]
      unserved: [/d]
      unscored: /g
      filter: f
      unserved-rows:
        rows: /rows
        text: /text
        pattern: p
        except: e
      shares:
        share:
          passed: [/e]
          of: [/f]
    suites:
      suite:
        arguments: [\"{model}\"]
        cases: 1
        checks: 2
        deadline-seconds: 900
      other:
        arguments: [\"{limit}\"]
        cases: 1
        checks: 1
        takes-limit: true
",
    ),
    (
        Kind::Master,
        "a:
  image: i
  model: m
  model-prefix: p
  precision: fp8
  framework: f
  runner: cluster:r
  multinode: true
  disagg: true
  router: { name: r, version: v }
  kv-p2p-transfer: t
  scenarios:
    fixed-seq-len:
    - isl: 1
      osl: 1
      search-space:
      - conc-start: 1
        conc-end: 2
        spec-decoding: mtp
        srt-recipe: s
        eval-srt-recipe: e
        prefill: { num-worker: 1, tp: 1, ep: 1, dp-attn: true, hardware: h, additional-settings: [A=1], pp: 1, dcp-size: 1, pcp-size: 1 }
        decode: { num-worker: 0, tp: 1, ep: 1, dp-attn: true, hardware: h }
    agentic-coding:
    - dram-utilization: 0.5
      search-space:
      - conc-list: [1]
        kv-offloading: dram
        kv-offload-backend: { name: b, version: v }
        prefill: { num-worker: 1, tp: 1, ep: 1, dp-attn: true }
        decode: { num-worker: 0, tp: 1, ep: 1, dp-attn: true }
b:
  image: i
  model: m
  model-prefix: p
  precision: fp8
  framework: f
  runner: r
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 1
      osl: 1
      search-space:
      - { tp: 1, pp: 1, dcp-size: 1, pcp-size: 1, ep: 1, dp-attn: true, conc-list: [1], router: { name: r, version: v } }
c:
  image: i
  model: m
  model-prefix: p
  precision: fp8
  framework: f
  runner: r
  multinode: true
  scenarios:
    fixed-seq-len:
    - isl: 1
      osl: 1
      search-space:
      - conc-list: [1]
        kv-p2p-transfer: t
        prefill: { num-worker: 1, tp: 1, ep: 1, dp-attn: true }
        decode: { num-worker: 0, tp: 1, ep: 1, dp-attn: true }
",
    ),
    (
        Kind::Runners,
        "labels:
  l: [a_0, b_0, c_0, d_0, e_0]
hardware:
  l: { available-cpu-dram-mib: 1, gpus-per-node: 1 }
",
    ),
    (
        Kind::Clusters,
        "clusters:
  a: { backend: script, path: runners/a.sh, idle-minutes: 1, uses: [slurm, docker, podman], job-names: ['{runner-name}'], container-names: [b] }
  b:
    fleets: [b]
    backend: local
    server-command: [serve]
    port: 8000
    ready-timeout-seconds: 60
    throughput-command: [measure]
    eval-task: configs/evals/t.yaml
  c:
    runners: [c_0]
    backend: slurm
    partition: p
    account: a
    time: '01:00:00'
    path: runners/c.sh
    extra: [--exclusive]
    container: pyxis
    mounts: [{ host: /h, container: /c }]
    port: 8000
    ready-timeout-seconds: 60
    eval-task: t
    env: { A: b }
    served-model-name: '{model-prefix}'
  d:
    backend: container
    runtime: docker
    gpus: nvidia
    mounts: [{ host: /h, container: /c, read-only: true }]
    shm-size: 1g
    network: host
    path: runners/d.sh
    port: 8000
    ready-timeout-seconds: 60
    eval-task: t
  e: { backend: srt, recipes-dir: r, workspace: /w, schema: 1 }
",
    ),
    (
        Kind::Engines,
        "engines:
  e:
    server: [serve, '{model}', { when: { ep: { above: 1 }, dp-attn: true, spec-decoding: [mtp, none] }, args: ['{ep}'] }]
    health: /ready
    context: ['{context}']
    throughput: [measure]
    replay: [replay]
    served-model-name: '{model-prefix}'
    env: { A: '{tp}', B: 1 }
    files: { o.yaml: ['a: {tp}'] }
    overrides:
    - for: { precision: fp4, eval-only: true, conc: { above: 3 }, kv-offload-backend: native }
      add: [x]
      server: [serve]
      env: { A: b }
      files: { o.yaml: [b] }
      served-model-name: s
",
    ),
    (
        Kind::Changelog,
        "- config-keys: [a]
  description: [d]
  pr-link: p
  evals-only: true
  all-evals: true
  eval-min-prefill-ep: 1
  scenario-type: [agentic-coding]
- config-keys: [a]
  description: [d]
  pr-link: p
  append-only: true
- config-keys: [a]
  description: [d]
  pr-link: p
  no-evals: true
",
    ),
    (
        Kind::EvalPolicy,
        "active: a
policies:
  a:
    description: d
    plan-trim: topology
    eval-context: five-times
    all-evals: { rules: [] }
    selection:
      extra-rows: last
      rules:
      - name: n
        scenario: agentic-coding
        nodes: multi
        sequence-lengths: [8k1k]
        match: { FIELDS }
        when: evals-only
        floor: 1
        group-by: [model]
        pick: [highest]
        take: level
        fallback: { group-by: [model] }
        eval-conc: all
        merge: true
        evaluator: { framework: f, suite: s }
",
    ),
    (
        Kind::Labels,
        "primary:
  a: { SWITCHES, canary: true }
modifiers:
  b: { evals-only: true, reusable: true }
  c: { SWITCHES, reusable: false }
skip-marker: s
require-sweep: true
reuse: { command: /c, author-associations: [OWNER], permissions: [write], unauthorized-merge: sweep }
",
    ),
    (
        Kind::Thresholds,
        "default: { t: 0.5 }
models:
  m:
    t: { min-score: 0.5, max: 0.9, metric: m, max-empty: 0.1, mean: 0.6, spread: 0.1, samples: 10 }
",
    ),
    (
        Kind::CiPriority,
        "version: 1
base-score: 1
adjustments:
  event: { push: 1 }
  multi-node: 1
  agentic: 1
  eval-only: 1
  precision: { fp4: 1 }
  spec-decoding: { mtp: 1 }
  framework-prefix: { f: 1 }
  model-prefix: { p: 1 }
labels:
  skip-queue: { name: n }
  checklist-complete: { names: [n], adjustment: 1 }
  patchwork: { names: [n], score: 1, waived-by: [w] }
",
    ),
    (
        Kind::Workflows,
        "workflows: [a]
unmanaged: [b.yml]
default-branch: main
hosted-runner: h
sweepctl: { from: release, repository: a/b, version: v1 }
actions:
  a/b: { version: v1.2.3, sha: 0123456789abcdef0123456789abcdef01234567 }
permissions:
  j: { contents: read }
timeouts:
  default: 1
  jobs: { j: 1 }
  gpu:
    default: 7200
    rules: [{ labels: [l], nodes: multi, scenario: agentic-coding, eval: true, minutes: 1 }]
max-parallel:
  default: 1
  labels: { l: 1 }
priority: labels
launch-secrets: [S]
max-attempts: 2
dispatch-inputs: 10
checkout: { submodules: recursive, token-secret: T, whole-history: true }
env: { A: b }
publish: recipe
ingest: [{ repository: a/b, event-type: e, secret: S, payload: '{}' }]
extra-steps:
  before-launch:
  - name: s
    if: always()
    uses: a/b
    with: { k: v }
    env: { K: v }
  after-launch:
  - { name: s, run: r }
extra-jobs:
  j:
    name: n
    needs: [setup]
    if: always()
    steps:
    - { name: s, run: r }
",
    ),
];

fn whole() -> Vec<(Kind, String)> {
    let fields: Vec<String> = Field::of_groups()
        .map(|field| format!("{}: [a]", field.name()))
        .collect();
    let switches = asked::fields().into_iter().filter(|field| field.is_switch);
    let switches: Vec<String> = switches.map(|field| format!("{}: true", field.name)).collect();
    let (fields, switches) = (fields.join(", "), switches.join(", "));
    WHOLE
        .iter()
        .map(|(kind, text)| (*kind, text.replace("FIELDS", &fields).replace("SWITCHES", &switches)))
        .collect()
}

/// The names of the fixed fields anywhere in a schema.
fn properties(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                names.extend(properties.keys().cloned());
            }
            fields.values().for_each(|value| properties(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| properties(item, names)),
        _ => {}
    }
}

/// The names of the keys anywhere in a file.
fn keys(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            names.extend(fields.keys().cloned());
            fields.values().for_each(|value| keys(value, names));
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, names)),
        _ => {}
    }
}

#[test]
fn the_loader_and_the_schema_take_every_field_that_the_schema_names() {
    for (kind, text) in whole() {
        let source = source(&text);
        if let Err(problems) = kind.check(&source) {
            panic!("{}: {problems}", kind.name());
        }
        let value = to_json(&tree::parse(&source).expect("YAML"));
        let schema = kind.schema();
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", kind.name());
        let (mut of_schema, mut of_text) = (BTreeSet::new(), BTreeSet::new());
        properties(&schema, &mut of_schema);
        keys(&value, &mut of_text);
        let unused: Vec<_> = of_schema.difference(&of_text).collect();
        assert!(unused.is_empty(), "{}: the text lacks {unused:?}", kind.name());
    }
}

/// The line of a key, where another may be put beside it: block style, or the first one of a flow mapping.
fn with_unknown_field(text: &str, line: usize) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let changed = match lines[line].find("{ ") {
        Some(at) => format!("{}{{ zz-unknown: 1, {}", &lines[line][..at], &lines[line][at + 2..]),
        None => {
            let own = &lines[line];
            let indent = own.find(|c: char| c.is_ascii_alphabetic())?;
            if !own.contains(':') {
                return None;
            }
            format!("{own}\n{}zz-unknown: 1", " ".repeat(indent))
        }
    };
    // A key that opens a block takes the next line's place.
    if lines[line].trim_end().ends_with(':') {
        return None;
    }
    lines[line] = changed;
    Some(lines.join("\n"))
}

#[test]
fn the_loader_and_the_schema_refuse_the_same_unknown_fields() {
    let mut tried = 0;
    for (kind, text) in whole() {
        let validator = jsonschema::validator_for(&kind.schema()).expect("a schema");
        for line in 0..text.lines().count() {
            let Some(text) = with_unknown_field(&text, line) else {
                continue;
            };
            let source = source(&text);
            let Ok(root) = tree::parse(&source) else {
                panic!("{text}")
            };
            let by_schema = !validator.is_valid(&to_json(&root));
            let by_loader = kind.check(&source).is_err();
            assert_eq!(by_loader, by_schema, "{} differs about\n{text}", kind.name());
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
}
