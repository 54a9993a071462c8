//! Whether thresholds can work: keys that somebody evaluates, and floors that a good run clears.

use super::problem::{Problem, nearest};
use super::thresholds::{Calibrated, Threshold, Thresholds, is_misspelled};
use crate::findings::config as findings;
use crate::statistics::normal_below;

/// Spreads between a floor and its mean under which good runs fail often.
const NOISE: f64 = 2.0;

/// What somebody evaluates; an empty list says that it is not known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// Model prefixes.
    pub prefixes: Vec<String>,
    /// Tasks.
    pub tasks: Vec<String>,
}

/// What is wrong with thresholds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Review {
    /// Thresholds that cannot work.
    pub errors: Vec<Problem>,
    /// Thresholds that work badly.
    pub warnings: Vec<Problem>,
}

/// Reviews thresholds.
#[must_use]
pub(crate) fn review(thresholds: &Thresholds, known: &Known) -> Review {
    let mut review = Review::default();
    for prefix in thresholds.models.keys() {
        let message = |what: &str| format!("`models.{prefix}`: {what}");
        if let Some(why) = unknown(prefix, &known.prefixes) {
            let problem = thresholds.problem(
                &findings::UNUSED_THRESHOLD,
                Some(prefix),
                None,
                message(&format!("no config has this model prefix{}", why.0)),
            );
            review.errors.push(problem.hint(why.1));
        }
    }
    let default = (None, &thresholds.default);
    let own = thresholds
        .models
        .iter()
        .map(|(prefix, tasks)| (Some(prefix.as_str()), tasks));
    for (prefix, tasks) in std::iter::once(default).chain(own) {
        let within = prefix.map_or_else(|| "default".to_owned(), |prefix| format!("models.{prefix}"));
        for (task, threshold) in tasks {
            let problem = |finding, what: String| {
                thresholds.problem(finding, prefix, Some(task), format!("`{within}.{task}`: {what}"))
            };
            if let Some(why) = unknown(task, &known.tasks) {
                let what = format!("no task file, suite or cluster knows this task{}", why.0);
                review
                    .errors
                    .push(problem(&findings::UNUSED_THRESHOLD, what).hint(why.1));
            }
            match threshold.calibrated().and_then(distance) {
                Some(Distance::Beyond(what)) => {
                    let hint = "a run as good as the mean fails: calibrate anew, or lower the floor";
                    review
                        .errors
                        .push(problem(&findings::FLOOR_BEYOND_MEAN, what).hint(hint));
                }
                Some(Distance::Noise(what)) => {
                    let hint = "lower the floor, or calibrate it at a rate: sweepctl eval calibrate --false-alarm 0.01";
                    review
                        .warnings
                        .push(problem(&findings::FLOOR_IN_NOISE, what).hint(hint));
                }
                None => {}
            }
        }
    }
    review
}

/// Why a key is none of the known: what is said of it, and the way out.
fn unknown(key: &str, known: &[String]) -> Option<(&'static str, String)> {
    if known.is_empty() || known.iter().any(|name| name == key) {
        return None;
    }
    match known.iter().find(|name| is_misspelled(key, name)) {
        Some(name) => Some((", but for its case or a space", format!("did you mean `{name}`?"))),
        None => Some(("", nearest(key, known.iter().map(String::as_str)))),
    }
}

enum Distance {
    Beyond(String),
    Noise(String),
}

/// What is wrong with the distance between a bound and its mean.
fn distance(calibrated: &Calibrated) -> Option<Distance> {
    let (mean, spread) = (calibrated.mean?, calibrated.spread?);
    let floor = calibrated.min_score.filter(|_| calibrated.max.is_none());
    let (bound, gap, side) = match (floor, calibrated.max) {
        (Some(floor), _) => (floor, mean - floor, ("above", "under", "the floor")),
        (None, max) => {
            let max = max?;
            (max, max - mean, ("below", "over", "the ceiling"))
        }
    };
    let (beyond, within, what) = side;
    if gap < 0.0 {
        return Some(Distance::Beyond(format!(
            "{what} {bound} is {beyond} its own mean {mean}"
        )));
    }
    // Decimals that are written are not those that are held.
    if gap >= NOISE * spread - 1e-9 {
        return None;
    }
    let spreads = gap / spread;
    let rate = normal_below(-spreads);
    Some(Distance::Noise(format!(
        "{what} {bound} is {spreads:.1} spreads of {spread} {within} its mean {mean}: a good run fails in {:.1}% of cases",
        rate * 100.0
    )))
}

impl Known {
    /// Adds the tasks that thresholds name.
    pub(crate) fn tasks_of(&mut self, thresholds: &Thresholds) {
        let own = thresholds
            .models
            .values()
            .flat_map(indexmap::IndexMap::<String, Threshold>::keys);
        self.tasks.extend(thresholds.default.keys().chain(own).cloned());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::source::Source;

    fn reviewed(text: &str) -> (Vec<String>, Vec<String>) {
        let source = Arc::new(Source::new("thresholds.yaml".to_owned(), text.to_owned()));
        let thresholds = Thresholds::load(&source).expect("thresholds");
        let known = Known {
            prefixes: vec!["dsr1".to_owned(), "glm5".to_owned()],
            tasks: vec!["gsm8k".to_owned(), "gpqa_diamond".to_owned()],
        };
        let review = review(&thresholds, &known);
        let said = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect();
        (said(review.errors), said(review.warnings))
    }

    #[test]
    fn keys_that_nobody_evaluates_are_named_with_the_nearest() {
        let (errors, warnings) = reviewed(
            "default: { GSM8K: 0.9, gpqa_dimond: 0.3, gsm8k: 0.9 }\nmodels: { DSR1: {}, glm5: { gsm8k: 0.9 } }\n",
        );
        assert_eq!((errors.len(), warnings.len()), (3, 0), "{errors:#?}");
        for (error, parts) in errors.iter().zip([
            [
                "`models.DSR1`: no config has this model prefix, but for its case",
                "did you mean `dsr1`?",
            ],
            ["`default.GSM8K`: no task file", "did you mean `gsm8k`?"],
            ["`default.gpqa_dimond`", "did you mean `gpqa_diamond`?"],
        ]) {
            assert!(
                parts.iter().all(|part| error.contains(part)) && error.contains("--> thresholds.yaml:"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_problem_stands_at_its_own_key() {
        let (errors, _) = reviewed(
            "default:\n  gsm8k: 0.9\nmodels:\n  glm5:\n    gsm8k: 0.9\n    odd: 0.9\n  dsr2:\n    gsm8k: 0.9\n",
        );
        let places = [
            ("`models.dsr2`", "--> thresholds.yaml:7:3"),
            ("`models.glm5.odd`", "--> thresholds.yaml:6:5"),
        ];
        assert_eq!(errors.len(), places.len(), "{errors:#?}");
        for (error, (key, place)) in errors.iter().zip(places) {
            assert!(error.contains(key) && error.contains(place), "{error}");
        }
    }

    #[test]
    fn floors_above_their_mean_are_errors_and_those_in_their_noise_warnings() {
        let calibrated = |bound: &str| {
            reviewed(&format!(
                "default: {{ gsm8k: {{ {bound}, mean: 0.95, spread: 0.01, samples: 1319 }} }}\n"
            ))
        };
        assert_eq!(calibrated("min-score: 0.93"), (vec![], vec![]));
        // A floor on its mean is not above it: it fails every second good run.
        let (errors, warnings) = calibrated("min-score: 0.95");
        assert!(
            errors.is_empty() && warnings[0].contains("fails in 50.0%"),
            "{warnings:?}"
        );
        // Runs that all had one score have no spread.
        let flat = "default: { gsm8k: { min-score: 0.95, mean: 0.95, spread: 0, samples: 1319 } }\n";
        assert_eq!(reviewed(flat), (vec![], vec![]));
        let (errors, _) = calibrated("min-score: 0.96");
        assert!(
            errors[0].contains("the floor 0.96 is above its own mean 0.95"),
            "{errors:?}"
        );
        let (errors, warnings) = calibrated("min-score: 0.94");
        assert!(
            errors.is_empty() && warnings[0].contains("is 1.0 spreads"),
            "{warnings:?}"
        );
        assert!(warnings[0].contains("fails in 15.9% of cases"), "{warnings:?}");
        let (errors, _) = calibrated("max: 0.9");
        assert!(
            errors[0].contains("the ceiling 0.9 is below its own mean 0.95"),
            "{errors:?}"
        );
    }
}
