//! What holds for every set of lm-eval's files, tried on made-up ones: what the gate passes is published, what it
//! refuses has a reason with file and field, and no order of keys or files changes anything.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use sweepctl::config::source::Source;
use sweepctl::config::thresholds::Thresholds;
use sweepctl::matrix::envelope::Envelope;
use sweepctl::step::collect::evals::{self, Evals, Order};
use sweepctl::step::validate::{self, Asked, Report, Request};

use crate::fixture::set::{ID, RESULT, SAMPLES, samples};
use crate::fixture::{batch, envelope, meta, result, write};

/// JSON as Python writes it, with the order of its keys.
#[derive(Debug, Clone)]
enum Json {
    /// Anything but an object, as it is written.
    Raw(String),
    /// An object whose keys may stand in any order.
    Object(Vec<(String, Json)>),
    /// An object whose order says something.
    Ordered(Vec<(String, Json)>),
}

impl Json {
    fn raw(text: impl Into<String>) -> Self {
        Self::Raw(text.into())
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Raw(text) => out.push_str(text),
            Self::Object(fields) | Self::Ordered(fields) => {
                out.push('{');
                for (index, (key, value)) in fields.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    out.push_str(&serde_json::Value::from(key.as_str()).to_string());
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    /// With its keys in another order: turned, and begun at another place.
    fn permuted(&self, by: usize) -> Self {
        match self {
            Self::Raw(text) => Self::Raw(text.clone()),
            Self::Ordered(fields) => Self::Ordered(fields.clone()),
            Self::Object(fields) => {
                let inner = fields.iter().map(|(key, value)| (key.clone(), value.permuted(by)));
                let mut fields: Vec<_> = inner.rev().collect();
                let length = fields.len().max(1);
                fields.rotate_left(by % length);
                Self::Object(fields)
            }
        }
    }
}

fn object(fields: impl IntoIterator<Item = (String, Json)>) -> Json {
    Json::Object(fields.into_iter().collect())
}

/// The metrics that lines hold, in the order in which they are drawn.
const METRICS: [&str; 8] = [
    "exact_match,strict-match",
    "exact_match,flexible-extract",
    "exact_match,none",
    "acc,none",
    "acc_norm,none",
    "f1,none",
    "word_perplexity,none",
    "pass@1,create_test",
];

/// One task of a set.
#[derive(Debug, Clone)]
struct Task {
    name: &'static str,
    /// Metrics with their values and standard errors.
    line: Vec<(&'static str, &'static str, &'static str)>,
    /// The metrics that it declares.
    declared: Vec<&'static str>,
    /// `n-samples`, as JSON.
    count: Option<&'static str>,
    /// As YAML.
    threshold: Option<&'static str>,
}

/// Mostly the first.
fn mostly<T: Clone + std::fmt::Debug + 'static>(usual: Vec<T>, odd: Vec<T>) -> impl Strategy<Value = T> {
    prop_oneof![9 => select(usual), 1 => select(odd)]
}

fn task(name: &'static str) -> impl Strategy<Value = Task> {
    let value = mostly(
        vec!["0.95", "0.9", "1", "1.0"],
        vec![
            "0.3", "NaN", "null", "1.5", "-0.1", "\"0.9\"", "true", "[1]", "9.5", "0",
        ],
    );
    let stderr = select(vec!["0.02", "\"N/A\"", "NaN", "null"]);
    let values = prop::collection::vec((value, stderr), METRICS.len());
    let line = (subsequence(METRICS.to_vec(), 1..=3), values)
        .prop_map(|(metrics, values)| metrics.into_iter().zip(values).map(|(m, (v, e))| (m, v, e)).collect());
    let declared = subsequence(
        vec!["exact_match", "acc", "f1", "word_perplexity", "def pass_at_k():"],
        0..=3,
    );
    let count = mostly(
        vec![Some(r#"{"original": 20, "effective": 20}"#)],
        vec![
            None,
            Some(r#"{"original": 20, "effective": 19}"#),
            Some(r#"{"original": 20, "effective": 0}"#),
            Some(r#"{"original": 20, "effective": "20"}"#),
            Some("[]"),
        ],
    );
    let threshold = mostly(
        vec![Some("0.8"), Some("0.8"), Some("{ min-score: 0.8, max: 10 }")],
        vec![
            None,
            Some("0.99"),
            Some("{ max: 10 }"),
            Some("{ min-score: 0.5, metric: f1 }"),
            Some("{ min-score: 0.5, metric: 'exact_match,flexible-extract' }"),
        ],
    );
    (line, declared, count, threshold).prop_map(move |(line, declared, count, threshold)| Task {
        name,
        line,
        declared,
        count,
        threshold,
    })
}

/// A whole set.
#[derive(Debug, Clone)]
struct Set {
    tasks: Vec<Task>,
    /// A group of every task but the first, and whether it has a line of its own.
    group: Option<bool>,
    suite: &'static str,
    /// Fields of `meta_env.json` that are set anew, or removed.
    meta: Option<(&'static str, Option<&'static str>)>,
    /// How many questions the first task's samples have, and how many of them are silent.
    samples: Option<(usize, usize)>,
    order: usize,
}

fn set() -> impl Strategy<Value = Set> {
    let tasks = (task("gsm8k"), task("arc"), task("drop"), select(vec![1, 1, 1, 2, 3]));
    let tasks = tasks.prop_map(|(first, second, third, count)| {
        let mut tasks = vec![first, second, third];
        tasks.truncate(count);
        tasks
    });
    let meta = mostly(
        vec![None],
        vec![
            Some(("conc", Some("32"))),
            Some(("conc", None)),
            Some(("precision", Some("\"fp4\""))),
            Some(("job_id", Some("\"ffffffffffff\""))),
            Some(("hw", Some("\"unknown\""))),
            Some(("infmax_model_prefix", None)),
        ],
    );
    let samples = mostly(
        vec![None, Some((20, 0)), Some((20, 1))],
        vec![Some((19, 0)), Some((20, 9))],
    );
    let suite = mostly(vec!["", "gsm8k"], vec!["arc", "family"]);
    let group = mostly(vec![None], vec![Some(false), Some(true)]);
    (tasks, group, suite, meta, samples, 0..1000_usize).prop_map(|(tasks, group, suite, meta, samples, order)| Set {
        tasks,
        group,
        suite,
        meta,
        samples,
        order,
    })
}

impl Set {
    fn envelope(&self) -> Envelope {
        let mut job = envelope(ID, 64);
        job["row"]["eval-framework"] = json!("lm-eval");
        job["row"]["eval-suite"] = json!(self.suite);
        serde_json::from_value(job).expect("an envelope")
    }

    fn meta(&self) -> Json {
        let mut all = meta(64);
        all["job_id"] = json!(ID);
        let mut fields: Vec<(String, Json)> = all
            .as_object()
            .expect("an object")
            .iter()
            .map(|(name, value)| (name.clone(), Json::raw(value.to_string())))
            .collect();
        if let Some((name, value)) = self.meta {
            fields.retain(|(known, _)| known != name);
            fields.extend(value.map(|value| (name.to_owned(), Json::raw(value))));
        }
        object(fields)
    }

    fn result(&self) -> Json {
        let each = |of: &dyn Fn(&Task) -> Option<Json>| {
            object(
                self.tasks
                    .iter()
                    .filter_map(|task| Some((task.name.to_owned(), of(task)?))),
            )
        };
        let mut results: Vec<(String, Json)> = self
            .tasks
            .iter()
            .map(|task| (task.name.to_owned(), line(task)))
            .collect();
        let members: Vec<&str> = self.tasks.iter().skip(1).map(|task| task.name).collect();
        let mut groups = Vec::new();
        if let Some(has_line) = self.group {
            groups.push(("family".to_owned(), Json::raw(json!(members).to_string())));
            let own = match has_line {
                true => r#"{"acc,none": 0.95}"#,
                false => r#"{"alias": "family"}"#,
            };
            results.push(("family".to_owned(), Json::raw(own)));
        }
        let config = |task: &Task| {
            let metrics: Vec<_> = task.declared.iter().map(|metric| json!({"metric": metric})).collect();
            Some(object([(
                "metric_list".to_owned(),
                Json::raw(json!(metrics).to_string()),
            )]))
        };
        let direction = |_: &Task| Some(Json::raw(r#"{"word_perplexity": false, "acc": true}"#));
        let parts = [
            ("results", object(results)),
            ("group_subtasks", object(groups)),
            ("configs", each(&config)),
            ("n-samples", each(&|task| task.count.map(Json::raw))),
            ("higher_is_better", each(&direction)),
            ("config", Json::raw(r#"{"limit": null}"#)),
            ("model_name", Json::raw("\"org/model\"")),
        ];
        object(parts.map(|(name, part)| (name.to_owned(), part)))
    }

    fn thresholds(&self) -> Thresholds {
        let lines = self
            .tasks
            .iter()
            .filter_map(|task| Some(format!("  {}: {}\n", task.name, task.threshold?)));
        let lines: String = lines.collect();
        let text = if lines.is_empty() {
            "{}".to_owned()
        } else {
            format!("default:\n{lines}")
        };
        Thresholds::load(&Arc::new(Source::new("thresholds.yaml".to_owned(), text))).expect("thresholds")
    }

    /// Writes it, with its keys in the order `by`.
    fn lay(&self, folder: &Path, by: Option<usize>) {
        let ordered = |json: Json| by.map_or_else(|| json.text(), |by| json.permuted(by).text());
        write(folder.join("meta_env.json"), ordered(self.meta()));
        write(folder.join(RESULT), ordered(self.result()));
        if let Some((questions, silent)) = self.samples {
            let answer = |id: usize| if id < silent { String::new() } else { "4".to_owned() };
            write(folder.join(SAMPLES), samples(questions, answer));
        }
    }

    fn judge(&self, folder: &Path) -> Report {
        let envelope = self.envelope();
        validate::validate(&Request {
            asked: Asked::of(&envelope, None, &[]),
            envelope: Some(envelope),
            ..request(folder, vec![folder.join(RESULT)], self.thresholds())
        })
    }

    fn collect(&self, folder: &Path) -> Evals {
        let plan = [self.envelope()];
        evals::collect(folder, Some(&plan), Order::Model, &self.thresholds()).expect("gathered")
    }
}

/// A task's line. Where no rule but the last chooses the score, the order of its keys is what chooses.
fn line(task: &Task) -> Json {
    let mut fields = vec![("alias".to_owned(), Json::raw("\"x\""))];
    for (key, value, stderr) in &task.line {
        let (metric, filter) = key.split_once(',').expect("a filter");
        fields.push(((*key).to_owned(), Json::raw(*value)));
        fields.push((format!("{metric}_stderr,{filter}"), Json::raw(*stderr)));
    }
    let is_known = |key: &str| ["exact_match,strict-match", "acc,none", "acc_norm,none"].contains(&key);
    match task
        .line
        .iter()
        .any(|(key, value, _)| is_known(key) && *value != "null")
    {
        true => Json::Object(fields),
        false => Json::Ordered(fields),
    }
}

fn request(folder: &Path, results: Vec<std::path::PathBuf>, thresholds: Thresholds) -> Request {
    Request {
        thresholds,
        min_score: validate::MIN_SCORE,
        model_prefix: None,
        fallback_prefix: None,
        metric_prefix: None,
        expected_concs: None,
        limited: false,
        envelope: None,
        asked: Asked::Anything,
        run: (None, None),
        meta_env: folder.join("meta_env.json"),
        results,
        pattern: "results*.json".to_owned(),
    }
}

fn messages(report: &Report) -> Vec<String> {
    let mut messages: Vec<String> = report.problems.iter().map(|problem| problem.message.clone()).collect();
    messages.sort();
    messages
}

/// Runs a property over many sets; at least some of them must pass the gate, and some be refused.
fn over_sets(property: impl Fn(&Set, &Path, &Report) -> Result<(), TestCaseError>) {
    let (passed, refused) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config::with_cases(400));
    let outcome = runner.run(&set(), |set| {
        let folder = tempfile::tempdir().expect("a folder");
        set.lay(folder.path(), None);
        let report = set.judge(folder.path());
        let count = if report.passed() { &passed } else { &refused };
        count.set(count.get() + 1);
        property(&set, folder.path(), &report)
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let counts = (passed.get(), refused.get());
    assert!(counts.0 >= 40 && counts.1 >= 40, "passed and refused: {counts:?}");
}

#[test]
fn what_the_gate_passes_has_a_published_row() {
    over_sets(|set, folder, report| {
        if !report.passed() {
            return Ok(());
        }
        let found = set.collect(folder);
        prop_assert!(found.problems.is_empty(), "{:?}", found.problems);
        for task in &set.tasks {
            let rows: Vec<_> = found.rows.iter().filter(|row| row.task == task.name).collect();
            prop_assert_eq!(rows.len(), 1, "of {}", task.name);
            let judged = |check: &&validate::Check| check.task == task.name && check.score == Some(rows[0].score);
            let check = report.checks.iter().find(judged);
            prop_assert!(
                check.is_some_and(|check| check.passed),
                "{} is another score",
                task.name
            );
        }
        Ok(())
    });
}

#[test]
fn what_the_gate_refuses_has_a_reason_with_file_and_field() {
    let files = [RESULT, SAMPLES, "meta_env.json", "thresholds.yaml"];
    over_sets(|_, _, report| {
        for problem in &report.problems {
            let text = format!("{} {}", problem.file, problem.message);
            let names_file = files.iter().any(|file| text.contains(file));
            let names_field = problem.message.split('`').nth(1).is_some_and(|field| !field.is_empty());
            prop_assert!(names_file && names_field, "{}", text);
        }
        Ok(())
    });
}

#[test]
fn no_order_of_keys_changes_an_answer() {
    over_sets(|set, folder, report| {
        let rows = set.collect(folder).rows;
        set.lay(folder, Some(set.order));
        let again = set.judge(folder);
        // Whole paths stand in no message: both lie in one folder.
        prop_assert_eq!(messages(report), messages(&again));
        prop_assert_eq!(rows, set.collect(folder).rows);
        Ok(())
    });
}

proptest! {
    #![proptest_config(Config::with_cases(100))]

    /// Points of a batch: there, twice, broken or missing, given in any order.
    #[test]
    fn no_order_of_a_batchs_files_changes_an_answer(
        files in subsequence((0..8_usize).collect::<Vec<_>>(), 0..=8),
        broken in select(vec![0_usize, 1, 9]),
        order in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let meta = batch(&json!([16, 32, 64]), &json!([16, 32, 64]), &json!([]));
        write(folder.path().join("meta_env.json"), meta.to_string());
        let names = ["_conc16", "_conc32", "_conc64", "_conc16_2", "_conc16_3", "_conc8", "", "_conc32_2"];
        let mut results = Vec::new();
        for at in files {
            let path = folder.path().join(format!("results_2026-11-01T00-00-00{}.json", names[at]));
            let text = result("plain", if at % 2 == 0 { 0.95 } else { 0.5 }).to_string();
            write(&path, if at == broken { "{" } else { &text });
            results.push(path);
        }
        let judge = |results: Vec<_>| {
            let report = validate::validate(&request(folder.path(), results, Thresholds::default()));
            (messages(&report), report.checks.len())
        };
        let wanted = judge(results.clone());
        let start = order.index(results.len().max(1));
        results.rotate_left(start);
        prop_assert_eq!(&judge(results.clone()), &wanted);
        results.reverse();
        prop_assert_eq!(&judge(results), &wanted);
    }

    /// Attempts at two jobs: whole, empty, cut off or another job's, in folders of any name.
    #[test]
    fn no_order_of_folders_changes_what_is_collected(
        attempts in prop::collection::vec((0..2_usize, 0..5_usize), 1..7),
        order in any::<prop::sample::Index>(),
    ) {
        let jobs = [ID, "ba9876543210"];
        let plan: Vec<Envelope> =
            jobs.map(|id| serde_json::from_value(envelope(id, 64)).expect("an envelope")).into();
        let collected = |start: usize| {
            let root = tempfile::tempdir().expect("a folder");
            for (at, (job, kind)) in attempts.iter().enumerate() {
                let folder = root.path().join(format!("s{}", (at + start) % attempts.len()));
                let mut meta = meta(64);
                meta["job_id"] = json!(jobs[*job]);
                meta["run_id"] = json!("7");
                meta["run_attempt"] = json!(at + 1);
                if *kind == 1 {
                    meta["precision"] = json!("fp4");
                }
                write(folder.join("meta_env.json"), meta.to_string());
                let score = 0.9 + f64::from(u32::try_from(at).expect("small")) / 100.0;
                match kind {
                    2 => {}
                    3 => write(folder.join(RESULT), "{\"results\":"),
                    _ => write(folder.join(RESULT), result("gsm8k", score).to_string()),
                }
            }
            let found = evals::collect(root.path(), Some(&plan), Order::Model, &Thresholds::default());
            let found = found.expect("gathered");
            let mut states: Vec<String> =
                found.jobs.iter().map(|job| format!("{} {:?}", job.id, job.state)).collect();
            states.sort();
            // Two jobs at one point stand in the order of their folders.
            let mut scores: Vec<f64> = found.rows.iter().map(|row| row.score).collect();
            scores.sort_by(f64::total_cmp);
            (scores, states, found.problems.len())
        };
        let wanted = collected(0);
        // Of each job the last attempt that is whole and its own.
        for (job, id) in jobs.iter().enumerate() {
            let good = attempts.iter().enumerate().filter(|(_, (of, kind))| *of == job && ![1, 2, 3].contains(kind));
            let last = good.map(|(at, _)| 0.9 + f64::from(u32::try_from(at).expect("small")) / 100.0).next_back();
            prop_assert_eq!(wanted.1.contains(&format!("{id} Done")), last.is_some());
            prop_assert!(last.is_none_or(|score| wanted.0.contains(&score)), "{:?} lacks {:?}", wanted.0, last);
        }
        prop_assert_eq!(collected(order.index(attempts.len())), wanted);
    }
}
