//! What planning costs: the whole process, and its parts at once, ten and a hundred times the entries.
//!
//! The inputs are the corpus beside the project where it is there, else the project's own fleet. Run with
//! `cargo bench --bench matrix`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};

use sweepctl::config::master::{self, Master};
use sweepctl::config::policy::EvalPolicies;
use sweepctl::config::runners::Runners;
use sweepctl::config::source::Source;
use sweepctl::matrix::evals::{self, EvalMode};
use sweepctl::matrix::expand::Expansion;

fn main() {
    divan::main();
}

/// A repository with configs and a changelog: a clone of the corpus' history, or the project itself.
static REPOSITORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bundle = project.join("../shared/corpus/history.bundle");
    if !bundle.exists() {
        eprintln!("the corpus is absent: measuring the project's own fleet");
        return project.to_path_buf();
    }
    let clone = project.join("target/bench-history");
    if !clone.exists() {
        let status = Command::new("git")
            .args(["clone", "-q"])
            .arg(&bundle)
            .arg(&clone)
            .status();
        assert!(status.is_ok_and(|status| status.success()), "git clones the bundle");
    }
    clone
});

fn sweepctl(args: &[&str]) {
    let status = Command::new(env!("CARGO_BIN_EXE_sweepctl"))
        .current_dir(&*REPOSITORY)
        .args(args)
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "sweepctl {args:?}");
}

#[divan::bench(sample_count = 30)]
fn process_start() {
    sweepctl(&["--version"]);
}

#[divan::bench(sample_count = 30)]
fn process_plan_latest() {
    sweepctl(&["plan", "--latest", "--configs-from", "head", "--json"]);
}

#[divan::bench(sample_count = 30)]
fn process_full_sweep() {
    sweepctl(&["generate", "full-sweep", "--json"]);
}

/// The master files with every entry repeated under other keys.
fn sources(times: usize) -> Vec<Arc<Source>> {
    ["configs/amd-master.yaml", "configs/nvidia-master.yaml"]
        .iter()
        .map(|name| {
            let text = std::fs::read_to_string(REPOSITORY.join(name)).expect("a master file");
            let mut all = String::with_capacity(text.len() * times);
            for copy in 0..times {
                for line in text.lines() {
                    let is_key = line.starts_with(|c: char| c.is_ascii_alphanumeric()) && line.ends_with(':');
                    match (copy, is_key) {
                        (1.., true) => all.push_str(&format!("{}-copy{copy}:\n", line.trim_end_matches(':'))),
                        _ => {
                            all.push_str(line);
                            all.push('\n');
                        }
                    }
                }
            }
            Arc::new(Source::new((*name).to_owned(), all))
        })
        .collect()
}

fn runners() -> Runners {
    let source = Source::read(&REPOSITORY.join("configs/runners.yaml")).expect("a runners file");
    Runners::load(&Arc::new(source)).expect("runners")
}

#[divan::bench(args = [1, 10, 50], sample_count = 10)]
fn load(bencher: divan::Bencher<'_, '_>, times: usize) {
    bencher
        .with_inputs(|| sources(times))
        .bench_values(|sources| master::load(&sources).expect("configs"));
}

fn loaded(times: usize) -> (Master, Runners, EvalPolicies) {
    let master = master::load(&sources(times)).expect("configs");
    (master, runners(), EvalPolicies::built_in().expect("policies"))
}

#[divan::bench(args = [1, 10, 50], sample_count = 10)]
fn full_sweep(bencher: divan::Bencher<'_, '_>, times: usize) {
    let (master, runners, policies) = loaded(times);
    let (_, policy) = policies.named(None).expect("the active policy");
    bencher.bench(|| {
        let rows = Expansion::default().rows(master.values(), &runners).expect("rows");
        evals::apply(rows, policy, EvalMode::Mark, false).len()
    });
}
