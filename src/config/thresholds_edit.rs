//! Writes thresholds into their file, and leaves every comment where it is.

use std::sync::Arc;

use super::problem::Problems;
use super::source::Source;
use super::thresholds::{Calibrated, Threshold, Thresholds};
use crate::findings::config as findings;

/// The text of a thresholds file with one threshold of a model set; its `metric` and `max-empty` are kept.
///
/// The file is written by lines, one a threshold: what stands in another form is refused, and not rewritten.
///
/// # Errors
/// A text that is no thresholds file, and a place whose form is another one.
pub(crate) fn set(source: &Arc<Source>, prefix: &str, task: &str, found: &Calibrated) -> Result<String, Problems> {
    let thresholds = Thresholds::load(source)?;
    let old = thresholds.models.get(prefix).and_then(|tasks| tasks.get(task));
    let old = old.and_then(Threshold::calibrated).cloned().unwrap_or_default();
    let wanted = Calibrated {
        metric: old.metric,
        max_empty: old.max_empty,
        ..found.clone()
    };
    let line = |of: Option<&str>| {
        let is_it =
            |key: &&super::thresholds::KeyPlace| key.prefix.as_deref() == Some(prefix) && key.task.as_deref() == of;
        let key = thresholds.places.iter().find(is_it)?;
        Some(key.place.line() - 1)
    };
    let mut lines: Vec<String> = source.text.lines().map(str::to_owned).collect();
    let entry = format!("{}: {}", quoted(task), flow(&wanted));
    match (line(Some(task)), line(None)) {
        (Some(at), _) => replace(&mut lines, at, &entry),
        (None, Some(at)) => insert(&mut lines, at, &entry),
        (None, None) => append(&mut lines, &format!("  {}:\n    {entry}", quoted(prefix))),
    }
    let text = lines.join("\n") + "\n";
    // Whatever the form of the file, what is written is what was meant, and nothing else changed.
    let edited = Arc::new(Source::new(source.name.clone(), text.clone()));
    let mut meant = thresholds.clone();
    let tasks = meant.models.entry(prefix.to_owned()).or_default();
    tasks.insert(task.to_owned(), Threshold::Calibrated(wanted));
    match Thresholds::load(&edited) {
        Ok(read) if read.default == meant.default && read.models == meant.models => Ok(text),
        _ => {
            let message = format!("the threshold of `{prefix}` `{task}` cannot be set where it stands");
            let hint = format!("write it by hand: under `models`, `{prefix}`, in a line of its own: {entry}");
            Err(findings::OTHER_FORM.file(&source.name, message).hint(hint).into())
        }
    }
}

/// Replaces the value of a line's key, and keeps the comment behind it.
fn replace(lines: &mut [String], at: usize, entry: &str) {
    let line = &lines[at];
    let indent = &line[..line.len() - line.trim_start().len()];
    let comment = line.find(" #").map_or("", |comment| &line[comment..]);
    lines[at] = format!("{indent}{entry}{comment}");
}

/// Adds a line below a key, as deep as what stands there.
fn insert(lines: &mut Vec<String>, at: usize, entry: &str) {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let own = depth(&lines[at]);
    let below = lines[at + 1..]
        .iter()
        .find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let indent = below
        .map(|line| depth(line))
        .filter(|depth| *depth > own)
        .unwrap_or(own + 2);
    if let Some(empty) = lines[at].find(": {}") {
        let rest = lines[at][empty + 4..].to_owned();
        lines[at] = format!("{}:{rest}", &lines[at][..empty]);
    }
    lines.insert(at + 1, format!("{}{entry}", " ".repeat(indent)));
}

/// Adds a model behind the last one.
fn append(lines: &mut Vec<String>, block: &str) {
    let Some(models) = lines.iter().position(|line| line.starts_with("models:")) else {
        lines.push("models:".to_owned());
        lines.push(block.to_owned());
        return;
    };
    if let Some(rest) = lines[models].strip_prefix("models: {}") {
        lines[models] = format!("models:{rest}");
    }
    lines.insert(models + 1, block.to_owned());
}

fn quoted(key: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    match key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.chars().all(is_plain) {
        true => key.to_owned(),
        false => serde_json::Value::from(key).to_string(),
    }
}

fn flow(threshold: &Calibrated) -> String {
    let number = |name: &str, value: Option<f64>| value.map(|value| format!("{name}: {value}"));
    let parts = [
        number("min-score", threshold.min_score),
        number("max", threshold.max),
        threshold
            .metric
            .as_ref()
            .map(|metric| format!("metric: '{}'", metric.replace('\'', "''"))),
        number("max-empty", threshold.max_empty),
        number("mean", threshold.mean),
        number("spread", threshold.spread),
        threshold.samples.map(|samples| format!("samples: {samples}")),
    ];
    format!("{{ {} }}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, prefix: &str, task: &str) -> Result<String, String> {
        let source = Arc::new(Source::new("thresholds.yaml".to_owned(), text.to_owned()));
        let found = Calibrated {
            min_score: Some(0.92),
            mean: Some(0.95),
            spread: Some(0.007),
            samples: Some(1319),
            ..Calibrated::default()
        };
        set(&source, prefix, task, &found).map_err(|problems| problems.to_string())
    }

    const NEW: &str = "gsm8k: { min-score: 0.92, mean: 0.95, spread: 0.007, samples: 1319 }";

    #[test]
    fn comments_and_other_lines_stay() {
        let text = "# top\ndefault:\n  gsm8k: 0.9 # all\nmodels:\n  # one\n  m1:\n    # a\n    gsm8k: 0.91 # why\n    other: 0.5\n";
        let wanted = text.replace("    gsm8k: 0.91", &format!("    {NEW}"));
        assert_eq!(edited(text, "m1", "gsm8k"), Ok(wanted));
        let other = text.replace("gsm8k: 0.91", "fresh: 0.91");
        assert_eq!(
            edited(&other, "m1", "gsm8k"),
            Ok(other.replace("  m1:\n", &format!("  m1:\n    {NEW}\n")))
        );
        let added = edited(text, "m2", "gsm8k").expect("added");
        assert_eq!(
            added,
            text.replace("models:\n", &format!("models:\n  m2:\n    {NEW}\n"))
        );
        let none = edited("default: {}\nmodels: {} # none yet\n", "m2", "gsm8k").expect("added");
        assert_eq!(none, format!("default: {{}}\nmodels: # none yet\n  m2:\n    {NEW}\n"));
        assert!(
            edited("default: {}\n", "m2", "gsm8k")
                .expect("added")
                .ends_with(&format!("models:\n  m2:\n    {NEW}\n"))
        );
    }

    #[test]
    fn a_metric_is_kept_and_another_form_is_refused() {
        let text = "models:\n  m1:\n    gsm8k: { min-score: 0.9, metric: 'exact_match,x', max-empty: 0.1 }\n";
        let kept = edited(text, "m1", "gsm8k").expect("set");
        assert!(
            kept.contains("min-score: 0.92, metric: 'exact_match,x', max-empty: 0.1, mean: 0.95"),
            "{kept}"
        );
        for text in [
            "models: { m1: { gsm8k: 0.9 } }\n",
            "models:\n  m1:\n    gsm8k:\n      min-score: 0.9\n",
        ] {
            let why = edited(text, "m1", "gsm8k").expect_err("refused");
            assert!(
                why.contains("cannot be set where it stands") && why.contains(NEW),
                "{why}"
            );
        }
    }
}
