//! What a job asked for that names no suite, and settings that would swap its task.

use serde_json::{Value, json};

use crate::fixture::multinode_envelope;
use crate::fixture::set::{RESULT, SAMPLES, Set};

/// A good set of a job without a suite: its tasks, and its thresholds.
fn fleet(tasks: &[&str], thresholds: &str) -> Set {
    let mut set = Set::good();
    set.set("envelope.json", "/row/eval-suite", Some(json!("")));
    set.set("meta_env.json", "/eval_suite", None);
    set.0.remove(SAMPLES);
    set.json(RESULT, |root| {
        for part in ["results", "configs", "n-samples", "higher_is_better"] {
            let own = root[part]["gsm8k"].take();
            root[part] = tasks.iter().map(|task| ((*task).to_owned(), own.clone())).collect();
        }
    });
    set.put("thresholds.yaml", thresholds);
    set
}

#[test]
fn a_job_without_a_suite_is_held_to_the_default_task_or_to_what_its_thresholds_name() {
    let whole = "default: { gsm8k: 0.9, arc: 0.9 }";
    let wide = "default: { gsm8k: 0.9, gsm8k_smoke: 0.9, arc: 0.9 }";
    let own = "default: { arc: 0.9 }\nmodels: { m1: { drop: 0.9 }, m2: { gsm8k: 0.9 } }";
    let lacking = "the job asked for `gsm8k`, and `results` has none";
    let cases: [(&[&str], &str, &str); 16] = [
        (&["gsm8k"], whole, ""),
        (&["gsm8k"], wide, ""),
        (&["gsm8k"], "default: {}", ""),
        (&["gsm8k"], "default: { arc: 0.9 }", ""),
        // Every task of the thresholds, or the default one alone.
        (&["gsm8k", "arc"], whole, ""),
        (
            &["gsm8k", "arc"],
            wide,
            "`results` has `arc`, and the job asked for `gsm8k`",
        ),
        (&["gsm8k", "gsm8k_smoke"], wide, "`results` has `gsm8k_smoke`"),
        (&["gsm8k", "drop", "arc"], whole, "`results` has `drop`"),
        (&["gsm8k", "arc"], "default: { arc: 0.9 }", "`results` has `arc`"),
        (&["gsm8k_smoke"], wide, lacking),
        (&["arc"], whole, lacking),
        // A fleet of its own tasks.
        (&["arc"], own, ""),
        (&["arc", "drop"], own, ""),
        (&["arc", "other"], own, "`results` has `other`"),
        (&["other"], own, lacking),
        (&["other"], "default: {}", lacking),
    ];
    let mut misses = Vec::new();
    for (tasks, thresholds, wanted) in cases {
        let (code, said) = fleet(tasks, thresholds).judge();
        if (code == 0) != wanted.is_empty() || !said.contains(wanted) {
            misses.push(format!(
                "{tasks:?} under {thresholds}: exit {code}, not {wanted:?}\n{said}"
            ));
        }
    }
    let beside = fleet(&["GSM8K", "arc"], "default: { arc: 0.9 }").judge();
    if beside.0 != 1 || !beside.1.contains(lacking) {
        misses.push(format!("beside another: {beside:?}"));
    }
    for name in ["GSM8K", "gsm8k ", " gsm8k"] {
        // Not even where a threshold names it so.
        let set = fleet(&[name], &format!("default: {{ '{name}': 0.1 }}"));
        let (code, said) = set.judge();
        if code != 1 || !said.contains(lacking) {
            misses.push(format!("{name:?}: exit {code}\n{said}"));
        }
    }
    assert!(misses.is_empty(), "{}", misses.join("\n"));
}

#[test]
fn a_group_that_the_thresholds_name_brings_its_tasks() {
    let mut set = fleet(&["a", "b", "family"], "default: { family: 0.9 }");
    set.set(RESULT, "/group_subtasks/family", Some(json!(["a", "b"])));
    set.set(RESULT, "/n-samples/family", None);
    assert_eq!(set.judge(), (0, String::new()));
    // The default task is a task, whatever the file calls it.
    let mut set = fleet(&["gsm8k", "easy"], "default: { gsm8k: 0.9 }");
    set.set(RESULT, "/group_subtasks/gsm8k", Some(json!(["easy"])));
    let (code, said) = set.judge();
    assert!(code == 1 && said.contains("`results` has `easy`"), "{said}");
}

/// A good set of a job on several nodes, with settings of its prefill side.
fn with_settings(suite: &str, settings: &Value) -> Set {
    let mut set = Set::good();
    let mut envelope = multinode_envelope("0123456789ab", &[64]);
    envelope["row"]["eval-framework"] = json!("lm-eval");
    envelope["row"]["eval-suite"] = json!(suite);
    envelope["row"]["prefill"]["additional-settings"] = settings.clone();
    set.put("envelope.json", envelope.to_string());
    let meta = json!({"conc": 64, "eval_concs": [64], "completed_eval_concs": [64], "failed_eval_concs": [],
        "job_id": "0123456789ab", "is_multinode": true});
    set.put("meta_env.json", meta.to_string());
    for name in [RESULT, SAMPLES] {
        let text = set.0.remove(name).expect("a file");
        let (stem, end) = name.rsplit_once('.').expect("an extension");
        set.put(&format!("{stem}_conc64.{end}"), text);
    }
    set
}

#[test]
fn settings_that_swap_the_task_are_refused_whatever_the_results_are_called() {
    for suite in ["", "gsm8k"] {
        for setting in [
            "EVAL_TASKS=gsm8k_smoke",
            "EVAL_TASKS= GSM8K ",
            "EVAL_TASKS_DIR=configs/evals/gsm8k_easy.yaml",
            "eval_tasks=easy\u{1b}[2K",
            "EVAL_TASKS=gsm8k,easy",
        ] {
            let (code, said) = with_settings(suite, &json!(["A=1", setting])).judge();
            let name = setting.split_once('=').expect("a name").0;
            let wanted = format!("`additional-settings` of prefill sets `{name}=");
            assert!(code == 1 && said.contains(&wanted), "{setting}: exit {code}\n{said}");
            assert!(
                said.contains("the job asked for `gsm8k`") && !said.contains('\u{1b}'),
                "{said}"
            );
        }
        for harmless in ["EVAL_TASKS=gsm8k", "EVAL_TASKS=", "MY_EVAL_TASKS=easy", "EVAL_TASKS"] {
            let (code, said) = with_settings(suite, &json!([harmless])).judge();
            assert_eq!((code, said.as_str()), (0, ""), "{harmless}");
        }
    }
}
