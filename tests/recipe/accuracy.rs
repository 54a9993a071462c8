//! `recipe accuracy`.

use sweepctl::config::recipe::Benchmark;
use sweepctl::config::recipe::parameters::LM_EVAL_VARIABLES;

use super::{ONE, TWO, found, written};
use crate::support::{project, run, stderr, stdout, write};

#[test]
fn the_page_lists_every_parameter_with_its_default() {
    let page = std::fs::read_to_string(project().join("docs/accuracy.md")).expect("the page");
    let names: Vec<&str> = Benchmark::ALL.iter().map(|benchmark| benchmark.name()).collect();
    let listed: Vec<String> = page
        .lines()
        .filter(|line| names.iter().any(|name| line.starts_with(&format!("| {name} |"))))
        .map(str::to_owned)
        .collect();
    let wanted: Vec<String> = Benchmark::ALL
        .iter()
        .flat_map(|benchmark| {
            benchmark
                .parameters()
                .iter()
                .map(|one| format!("| {} | `{}` | {} |", benchmark.name(), one.name, one.default.text()))
        })
        .collect();
    assert_eq!(listed, wanted);
    for name in LM_EVAL_VARIABLES {
        assert!(page.contains(&format!("`{name}`")), "{name} is not on the page");
    }
}

#[test]
fn the_page_lists_every_suite_with_its_tasks() {
    let page = std::fs::read_to_string(project().join("docs/accuracy.md")).expect("the page");
    for benchmark in Benchmark::SUITES {
        let start = format!("| `{}` |", benchmark.name());
        let line = page.lines().find(|line| line.starts_with(&start));
        let tasks = line
            .and_then(|line| line.split('|').nth(2))
            .expect("a row of the gate's table");
        for task in benchmark.tasks() {
            assert!(tasks.contains(&format!("`{task}`")), "{}: {task}", benchmark.name());
        }
    }
}

#[test]
fn every_parameter_is_written_and_can_be_set() {
    for benchmark in Benchmark::ALL {
        let text = written(TWO, &[benchmark.name()]);
        for one in benchmark.parameters() {
            let default = one.default.text();
            let is_there = text.contains(&format!("{}:", one.name));
            assert_eq!(is_there, default != "all", "{}: {}", benchmark.name(), one.name);
        }
        let sample = |name: &str| match name {
            "categories" => "single_doc_qa,synthetic".to_owned(),
            "DATASET" => "aime24".to_owned(),
            "TEMPERATURE" | "TOP_P" => "0.5".to_owned(),
            "container_image" | "command" | "OPENAI_API_KEY" | "HF_TOKEN" | "MODEL" => "bash aime/run.sh".to_owned(),
            _ => "7".to_owned(),
        };
        for one in benchmark.parameters() {
            let value = sample(one.name);
            let text = written(TWO, &[benchmark.name(), "--set", &format!("{}={value}", one.name)]);
            let shown = value.split(',').next().expect("a part");
            let lines: Vec<&str> = text
                .lines()
                .filter(|line| line.trim_start().starts_with(&format!("{}:", one.name)))
                .collect();
            assert!(
                !lines.is_empty() && lines.iter().all(|line| line.contains(shown)),
                "{}: {lines:?}",
                one.name
            );
        }
    }
}

#[test]
fn comments_and_order_survive() {
    let text = written(TWO, &["mmlu"]);
    let wanted = TWO
        .replace("type: sa-bench  # throughput", "type: mmlu  # throughput")
        .replace(
            "  concurrencies: [16, 64]\n",
            "  concurrencies: [16, 64]\n  num_examples: 200\n  max_tokens: 2048\n  repeat: 8\n  num_threads: 512\n",
        );
    assert_eq!(text, wanted);
    // What is there stays, and what is asked for changes.
    let own = text.replace("repeat: 8", "repeat: 3   # enough");
    assert_eq!(written(&own, &["mmlu"]), own);
    let set = written(&own, &["mmlu", "--set", "repeat=5"]);
    assert_eq!(set, own.replace("repeat: 3 ", "repeat: 5 "));
    // The data set of another benchmark is smaller.
    let other = written(&own, &["gpqa"]);
    assert!(
        other.contains("num_examples: 198") && other.contains("repeat: 8   # enough"),
        "{other}"
    );
    let third = written(&other, &["longbenchv2"]);
    assert!(!third.contains("repeat") && !third.contains("num_examples"), "{third}");
}

#[test]
fn aime_asks_for_the_served_name_and_makes_every_role_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    for recipe in [ONE, TWO] {
        let text = written(recipe, &["aime"]);
        assert!(
            text.contains("MODEL: dspro\n") && text.contains("container_image: nemo-skills\n"),
            "{text}"
        );
        assert_eq!(text.matches("SGLANG_ENABLE_THINKING: \"1\"\n").count(), 2, "{text}");
        assert_eq!(found(folder.path(), &text), [""; 0], "{text}");
        // A model that needs none of it gets none of it, and one without a name of its own that of its path.
        let other = recipe
            .replace("DeepSeek-V4-Pro", "Plain")
            .replace("      served-model-name: dspro\n", "");
        let text = written(&other, &["aime"]);
        assert!(text.contains("MODEL: Plain\n") && !text.contains("SGLANG_"), "{text}");
    }
    let one = written(ONE, &["aime"]);
    assert!(
        one.contains("  prefill_environment:\n    SGLANG_ENABLE_THINKING: \"1\"\n"),
        "{one}"
    );
}

#[test]
fn lm_eval_keeps_the_benchmark_and_is_told_everything() {
    let text = written(TWO, &["lm-eval"]);
    assert!(
        text.contains("type: sa-bench") && text.contains("concurrencies: [16, 64]"),
        "{text}"
    );
    // Without a command of its own it is srt-slurm's lm-eval.
    assert!(
        text.contains("post_eval:\n  passthrough_env:") && !text.contains("command"),
        "{text}"
    );
    for name in LM_EVAL_VARIABLES {
        assert!(text.contains(name), "{name}");
    }
    assert_eq!(written(&text, &["lm-eval"]), text);
    // Schema 1 has no such block.
    assert_eq!(written(ONE, &["lm-eval"]), ONE);
}

#[test]
fn what_cannot_be_set_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = write(folder.path(), "r.yaml", TWO);
    for (benchmark, setting, id, says) in [
        ("mmlu", "num_exmples=3", "recipe/parameter", "`num_examples`"),
        ("mmlu", "repeat=0", "recipe/parameter", "at least 1"),
        ("mmlu", "repeat=-1", "recipe/parameter", "at least 1"),
        ("gpqa", "num_examples=199", "recipe/examples", "198"),
        (
            "longbenchv2",
            "categories=synthetic,poetry",
            "recipe/category",
            "`poetry`",
        ),
        ("aime", "DATASET=aime23", "recipe/parameter", "aime24"),
        ("aime", "TOP_P=1.5", "recipe/parameter", "from 0 to 1"),
        ("aime", "TEMPERATURE=NaN", "recipe/parameter", "from 0 to 2"),
    ] {
        let output = run(
            folder.path(),
            ["recipe", "accuracy", benchmark, "r.yaml", "--set", setting],
        );
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{setting}: {said}");
        assert!(said.contains(id) && said.contains(says), "{setting}: {said}");
        assert_eq!(std::fs::read_to_string(&path).expect("the recipe"), TWO);
    }
    let flow = TWO.replace(
        "benchmark:\n  type: sa-bench  # throughput\n  isl: 8192\n  osl: 1024\n  concurrencies: [16, 64]\n",
        "benchmark: {type: sa-bench}\n",
    );
    write(folder.path(), "r.yaml", &flow);
    let output = run(folder.path(), ["recipe", "accuracy", "mmlu", "r.yaml"]);
    assert!(stderr(&output).contains("recipe/other-form"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&path).expect("the recipe"), flow);
    let usage = run(
        folder.path(),
        ["recipe", "accuracy", "mmlu", "r.yaml", "--set", "repeat"],
    );
    assert_eq!(usage.status.code(), Some(2));
    std::os::unix::fs::symlink(&path, folder.path().join("link.yaml")).expect("a link");
    let link = run(folder.path(), ["recipe", "accuracy", "mmlu", "link.yaml", "--print"]);
    assert!(stderr(&link).contains("is a link") && stdout(&link).is_empty());
}
