//! `sweepctl eval context`.

use std::process::Output;

use serde_json::{Value, json};

use super::support::{envelope, multi_node, sweepctl, write_json};

fn context(envelope: &Value, args: &[&str], env: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("hub/models--org--stub-7b/snapshots/abc");
    std::fs::create_dir_all(&model).expect("folders");
    std::fs::write(model.join("config.json"), r#"{"max_position_embeddings": 40960}"#).expect("a config");
    let file = write_json(folder.path(), "envelope.json", envelope);
    let mut command = sweepctl();
    command.args(["eval", "context", "--envelope"]).arg(file).args(args);
    command
        .env("HF_HUB_CACHE", folder.path().join("hub"))
        .envs(env.iter().copied());
    command.output().expect("the binary runs")
}

fn json_of(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

#[test]
fn a_planned_job_gets_its_rows_length() {
    let one = envelope("0123456789ab", json!({}));
    let got = json_of(&context(&one, &[], &[]));
    let expected = json!({
        "context": 9472, "output-budget": 5376, "native-max": 40960, "engine": "sglang",
        "server-args": ["--context-length", "9472"]
    });
    assert_eq!(got, expected);
    let got = json_of(&context(&one, &[], &[("FRAMEWORK", "trt"), ("MAX_MODEL_LEN", "50000")]));
    assert_eq!(
        got["server-args"],
        json!(["--max_seq_len", "40960", "--max_num_tokens", "40960"])
    );
    let many = json_of(&context(&multi_node("0123456789ab", &[16]), &[], &[]));
    assert_eq!((&many["context"], &many["server-args"]), (&json!(9472), &json!([])));
}

#[test]
fn the_policy_decides_how_much() {
    let one = envelope("0123456789ab", json!({"isl": 1024, "max-model-len": 2304}));
    let got = json_of(&context(&one, &["--eval-policy", "2026-03"], &[]));
    assert_eq!(got["context"], (1024 + 1024 + 20) * 5);
    let got = json_of(&context(&one, &["--eval-policy", "2026-03"], &[("FRAMEWORK", "atom")]));
    assert_eq!(got["context"], 40960, "51200, capped");
    let refused = context(&one, &["--eval-policy", "2026-04"], &[]);
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn an_unreadable_model_is_a_warning_that_names_what_is_taken() {
    let one = envelope("0123456789ab", json!({}));
    let output = context(&one, &[], &[("MODEL", "org/other"), ("MAX_MODEL_LEN", "99999")]);
    assert!(output.status.success());
    assert_eq!(json_of(&output)["context"], 16384);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("`org/other` is unknown, 16384 is taken"), "{stderr}");
}

#[test]
fn later_steps_get_it_where_their_server_takes_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("env");
    let path = file.display().to_string();
    let one = envelope("0123456789ab", json!({}));
    let github = [("GITHUB_ENV", path.as_str())];
    let many = context(&multi_node("0123456789ab", &[16]), &["--github-env"], &github);
    assert!(
        many.status.success() && !file.exists(),
        "a recipe keeps its own context"
    );
    assert!(context(&one, &["--github-env"], &github).status.success());
    let text = std::fs::read_to_string(file).expect("the file");
    assert!(
        text.starts_with("EVAL_MAX_MODEL_LEN<<") && text.contains("\n9472\n"),
        "{text}"
    );
}
