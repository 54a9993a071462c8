//! `recipe check`: one refused recipe for each rule.

use super::{ONE, TWO, found, written};

/// A recipe of schema 2 with a benchmark, changed.
fn changed(benchmark: &str, from: &str, to: &str) -> String {
    let text = written(TWO, &[benchmark]);
    assert!(text.contains(from), "no `{from}` in {text}");
    text.replacen(from, to, 1)
}

#[track_caller]
fn is(recipe: &str, ids: &[&str]) {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(found(folder.path(), recipe), ids, "{recipe}");
}

#[test]
fn what_is_written_is_accepted_in_both_schemas() {
    for benchmark in ["aime", "gpqa", "lm-eval"] {
        is(&written(TWO, &[benchmark]), &[]);
        is(&written(ONE, &[benchmark]), &[]);
    }
    is(&written(TWO, &["mmlu"]), &[]);
    // The scripts of schema 1 name a model of their own.
    for benchmark in ["mmlu", "longbenchv2"] {
        is(&written(ONE, &[benchmark]), &["recipe/fixed-model"]);
    }
    is(&written(TWO, &["longbenchv2"]), &[]);
}

#[test]
fn the_context_of_every_role_is_above_the_tokens() {
    let short =
        |recipe: &str, tokens: &str| recipe.replace("context-length: 409600", &format!("context-length: {tokens}"));
    let gpqa = written(TWO, &["gpqa"]);
    is(&short(&gpqa, "65536"), &["recipe/context", "recipe/context"]);
    is(&short(&gpqa, "65537"), &[]);
    is(&gpqa.replacen("409600", "4096", 1), &["recipe/context"]);
    is(
        &short(&written(ONE, &["gpqa"]), "65536"),
        &["recipe/context", "recipe/context"],
    );
    is(
        &short(&written(TWO, &["aime"]), "400000"),
        &["recipe/context", "recipe/context"],
    );
    // Without `max_tokens` the default counts.
    is(
        &short(&gpqa.replace("  max_tokens: 65536\n", ""), "65536"),
        &["recipe/context", "recipe/context"],
    );
    is(
        &short(&written(TWO, &["longbenchv2"]), "127999"),
        &["recipe/context", "recipe/context"],
    );
    is(
        &gpqa.replacen("      context-length: 409600\n", "", 1),
        &["recipe/no-context"],
    );
    let vllm = gpqa
        .replace("engine: sglang", "engine:\n  type: vllm")
        .replace("context-length", "max_model_len");
    is(&vllm, &[]);
    is(&vllm.replacen("409600", "1", 1), &["recipe/context"]);
}

#[test]
fn parameters_have_values_that_they_can_have() {
    is(
        &changed("mmlu", "num_examples: 200", "num_examples: 14043"),
        &["recipe/examples"],
    );
    is(
        &changed("gpqa", "num_examples: 198", "num_examples: 199"),
        &["recipe/examples"],
    );
    for value in ["-5", "0", "many", "\"5\"", "1.5", "[1]"] {
        is(
            &changed("mmlu", "repeat: 8", &format!("repeat: {value}")),
            &["recipe/parameter"],
        );
    }
    let categories = "max_tokens: 16384\n  categories:\n    - synthetic\n    - single_doc_aq";
    is(
        &changed("longbenchv2", "max_tokens: 16384", categories),
        &["recipe/category"],
    );
    is(
        &changed(
            "longbenchv2",
            "max_tokens: 16384",
            "max_tokens: 16384\n  categories: synthetic",
        ),
        &["recipe/parameter"],
    );
    is(
        &changed("longbenchv2", "num_threads: 16", "num_threads: 16\n  repeat: 2"),
        &["recipe/ignored"],
    );
    is(
        &changed("aime", "DATASET: aime25", "DATASET: aime2025"),
        &["recipe/parameter"],
    );
}

#[test]
fn nodes_hold_their_workers() {
    let mmlu = written(TWO, &["mmlu"]);
    is(
        &mmlu.replacen("tensor-parallel-size: 4", "tensor-parallel-size: 8", 1),
        &["recipe/gpus"],
    );
    is(&mmlu.replacen("workers: 2", "workers: 3", 1), &["recipe/gpus"]);
    is(
        &mmlu.replacen("workers: 2", "workers: 2\n    gpus: 8", 1),
        &["recipe/gpus"],
    );
    is(&mmlu.replacen("nodes: 2", "nodes: 0", 1), &["recipe/gpus"]);
    is(
        &written(ONE, &["gpqa"]).replace("decode_nodes: 4", "decode_nodes: 2"),
        &["recipe/gpus"],
    );
}

#[test]
fn aime_reasons_asks_the_right_model_and_is_graded() {
    is(
        &changed("aime", "      SGLANG_ENABLE_THINKING: \"1\"\n", ""),
        &["recipe/reasoning"],
    );
    is(
        &changed("aime", "SGLANG_ENABLE_THINKING: \"1\"", "SGLANG_ENABLE_THINKING: \"0\""),
        &["recipe/reasoning"],
    );
    is(
        &changed("aime", "    MODEL: dspro\n", "    MODEL: other\n"),
        &["recipe/served-name"],
    );
    // The script asks for `dspro` where nobody says.
    let served = changed("aime", "    MODEL: dspro\n", "").replace("name: dspro", "name: v4");
    is(&served, &["recipe/served-name"]);
    let command = "bash /configs/aime/run.sh ++eval_config.extract_from_boxed=False";
    is(
        &changed("aime", "bash /configs/aime/run.sh", command),
        &["recipe/extraction"],
    );
}

#[test]
fn schemas_and_types_are_known() {
    let type_is = |name: &str| TWO.replace("type: sa-bench", &format!("type: {name}"));
    for name in ["aime", "lm-eval", "mmul"] {
        is(&type_is(name), &["recipe/benchmark"]);
    }
    is(TWO.split("benchmark:").next().expect("a part"), &["recipe/benchmark"]);
    is(&TWO.replace("schema: 2\n", ""), &["recipe/schema"]);
    is(&TWO.replace("schema: 2", "schema: 3"), &["recipe/schema"]);
    is(&format!("schema: 2\n{ONE}"), &["recipe/schema"]);
    is("name: x\n", &["recipe/schema"]);
}
