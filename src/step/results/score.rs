//! Which number is the score of a task: one choice for the gate, the collector, the comparison and the reports.
//!
//! A score is one metric under one filter. The first of these that stands in the file and is not null:
//!
//! 1. what the task's threshold names; where the file lacks it, nothing is taken in its place;
//! 2. `exact_match` under a strict or `resolved` filter;
//! 3. `acc`;
//! 4. `acc_norm`;
//! 5. `exact_match` under a flexible or extracting filter;
//! 6. the first metric that the task declares;
//! 7. the first metric of the task's line.
//!
//! A metric that stands under several filters is taken under the one that its rule names, else under the first of the
//! task's `filter_list`, else under the first of its line.

use super::lm_eval::{self, Metrics, ResultFile, SEPARATOR};
use super::loose::Cell;

/// The metric of a graded answer.
const EXACT_MATCH: &str = "exact_match";
const ACC: &str = "acc";
const ACC_NORM: &str = "acc_norm";
/// The filter of metrics that need none.
const NO_FILTER: &str = "none";

/// A metric under one filter, as a task's line has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line<'m> {
    /// Metric and filter, as in the file.
    pub key: &'m str,
    /// The metric.
    pub metric: &'m str,
    /// The filter.
    pub filter: &'m str,
    /// The value.
    pub value: &'m Cell,
    /// Everything that the task's line has.
    of: &'m Metrics,
}

impl<'m> Line<'m> {
    /// The standard error under the same filter; null where there is none.
    #[must_use]
    pub(crate) fn stderr(&self) -> &'m Cell {
        lm_eval::stderr(self.of, self.key)
    }

    /// Whether its filter takes an answer only in the form that was asked for.
    fn is_strict(&self) -> bool {
        self.filter.contains("strict") || self.filter.contains("resolved")
    }

    /// Whether its filter looks for an answer anywhere in the text.
    fn is_flexible(&self) -> bool {
        !self.is_strict() && (self.filter.contains("flexible") || self.filter.contains("extract"))
    }

    /// `em_strict`, `accuracy`, `em_flexible`, else the metric with its filter.
    #[must_use]
    pub(crate) fn name(&self) -> String {
        match self.metric {
            EXACT_MATCH if self.is_strict() || self.filter == NO_FILTER => "em_strict".to_owned(),
            EXACT_MATCH if self.is_flexible() => "em_flexible".to_owned(),
            ACC => "accuracy".to_owned(),
            _ => self.key.to_owned(),
        }
    }
}

/// The score of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Score<'m> {
    /// The number, and where it stands.
    pub line: Line<'m>,
    /// Whether less is better.
    pub less_is_better: bool,
    /// Every filter that its metric stands under; where a threshold names the filter too, that one alone.
    pub judged: Vec<Line<'m>>,
}

impl Score<'_> {
    /// Its number, if it is one: finite, and from 0 to 1 unless less is better.
    #[must_use]
    pub(crate) fn number(&self) -> Option<f64> {
        number(self.line.value, self.less_is_better)
    }
}

/// A score's number: finite, and from 0 to 1 unless less is better.
#[must_use]
pub(crate) fn number(value: &Cell, less_is_better: bool) -> Option<f64> {
    match less_is_better {
        true => value.number(),
        false => lm_eval::score(value),
    }
}

/// Why a task has no score, as the end of a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoScore {
    /// Its threshold names what the file lacks.
    #[error("has no `{named}`, which its threshold names; it has {there}")]
    Lacking {
        /// What the threshold names.
        named: String,
        /// What the file has.
        there: String,
    },
    /// The file has no metric of it.
    #[error("has no metric")]
    Nothing,
}

/// The metrics of a line with their filters: no names and aliases, and no standard errors.
pub(crate) fn lines(metrics: &Metrics) -> impl Iterator<Item = Line<'_>> {
    metrics.iter().filter_map(|(key, value)| {
        let (metric, filter) = key.split_once(SEPARATOR)?;
        let line = Line {
            key,
            metric,
            filter,
            value,
            of: metrics,
        };
        (!lm_eval::is_stderr(key)).then_some(line)
    })
}

/// The score of a task; `named` is the metric of its threshold, with or without a filter.
///
/// # Errors
/// A task without a metric, or without the one that is named.
pub(crate) fn choose<'m>(
    result: &'m ResultFile,
    task: &str,
    metrics: &'m Metrics,
    named: Option<&str>,
) -> Result<Score<'m>, NoScore> {
    let all: Vec<Line<'m>> = lines(metrics).collect();
    let there: Vec<Line<'m>> = all.iter().copied().filter(|line| *line.value != Cell::Null).collect();
    let filters = result.declared_filters(task);
    let line = match named {
        Some(named) => by_name(&there, named, &filters).ok_or_else(|| NoScore::Lacking {
            named: named.to_owned(),
            there: listed(&all),
        })?,
        None => by_rules(&there, &filters, result.declared_metrics(task).first().copied()).ok_or(NoScore::Nothing)?,
    };
    let judged = match named {
        Some(named) if named.contains(SEPARATOR) => vec![line],
        _ => all.into_iter().filter(|other| other.metric == line.metric).collect(),
    };
    Ok(Score {
        line,
        less_is_better: result.is_more_better(task, line.metric) == Some(false),
        judged,
    })
}

fn by_name<'m>(there: &[Line<'m>], named: &str, filters: &[&str]) -> Option<Line<'m>> {
    if named.contains(SEPARATOR) {
        return there.iter().copied().find(|line| line.key == named);
    }
    first(there, named, Line::is_strict, filters).or_else(|| first(there, named, |_| true, filters))
}

fn by_rules<'m>(there: &[Line<'m>], filters: &[&str], declared: Option<&str>) -> Option<Line<'m>> {
    let unfiltered = |line: &Line<'_>| line.filter == NO_FILTER;
    first(there, EXACT_MATCH, Line::is_strict, filters)
        .or_else(|| first(there, ACC, unfiltered, filters))
        .or_else(|| first(there, ACC, |_| true, filters))
        .or_else(|| first(there, ACC_NORM, unfiltered, filters))
        .or_else(|| first(there, ACC_NORM, |_| true, filters))
        .or_else(|| first(there, EXACT_MATCH, Line::is_flexible, filters))
        .or_else(|| first(there, declared?, |_| true, filters))
        .or_else(|| first(there, there.first()?.metric, |_| true, filters))
}

/// A metric under the first fitting filter: in the order in which the task declares them, then in that of the line.
fn first<'m>(there: &[Line<'m>], metric: &str, fits: impl Fn(&Line<'m>) -> bool, filters: &[&str]) -> Option<Line<'m>> {
    let place = |line: &Line<'_>| filters.iter().position(|filter| *filter == line.filter);
    there
        .iter()
        .copied()
        .filter(|line| line.metric == metric && fits(line))
        .min_by_key(|line| place(line).unwrap_or(usize::MAX))
}

/// What `em_strict` and `em_flexible` of a published row are: each a metric under its own filters, scored or not.
#[must_use]
pub(crate) fn exact_matches<'m>(result: &ResultFile, task: &str, metrics: &'m Metrics) -> [Option<Line<'m>>; 2] {
    let there: Vec<Line<'m>> = lines(metrics).filter(|line| *line.value != Cell::Null).collect();
    let filters = result.declared_filters(task);
    let strict = first(&there, EXACT_MATCH, Line::is_strict, &filters)
        .or_else(|| first(&there, EXACT_MATCH, |line| line.filter == NO_FILTER, &filters));
    [strict, first(&there, EXACT_MATCH, Line::is_flexible, &filters)]
}

/// The most metrics that a message lists.
const LISTED: usize = 8;

fn listed(lines: &[Line<'_>]) -> String {
    let mut names: Vec<&str> = lines.iter().map(|line| line.key).collect();
    names.sort_unstable();
    names.truncate(LISTED);
    match names.as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::results::json;

    /// The score's key and name, of a line with metrics and a config.
    fn chosen(line: &str, config: &str, named: Option<&str>) -> Result<(String, String, bool), String> {
        let text = format!(r#"{{"results": {{"t": {line}}}, "configs": {{"t": {config}}}}}"#);
        let file: ResultFile = json::parse(text.as_bytes()).expect("a result file");
        let (_, metrics) = file.tasks().next().expect("a task");
        let score = choose(&file, "t", metrics.expect("a line"), named).map_err(|why| why.to_string())?;
        Ok((score.line.key.to_owned(), score.line.name(), score.less_is_better))
    }

    #[track_caller]
    fn is(line: &str, config: &str, named: Option<&str>, wanted: (&str, &str)) {
        let found = chosen(line, config, named).expect("a score");
        assert_eq!((found.0.as_str(), found.1.as_str()), wanted);
    }

    #[test]
    fn the_known_metrics_come_in_their_order() {
        let all = [
            (
                r#""exact_match,x-resolved": 0.1"#,
                ("exact_match,x-resolved", "em_strict"),
            ),
            (r#""acc,none": 0.1"#, ("acc,none", "accuracy")),
            (r#""acc_norm,none": 0.1"#, ("acc_norm,none", "acc_norm,none")),
            (
                r#""exact_match,extract_abcd": 0.1"#,
                ("exact_match,extract_abcd", "em_flexible"),
            ),
            (r#""f1,none": 0.1"#, ("f1,none", "f1,none")),
            (r#""exact_match,none": 0.1"#, ("exact_match,none", "em_strict")),
        ];
        // The line lists them the wrong way round: their place says nothing.
        for from in 0..all.len() {
            let line: Vec<&str> = all[from..].iter().rev().map(|(text, _)| *text).collect();
            let declared = r#"{"metric_list": [{"metric": "f1"}]}"#;
            is(&format!("{{{}}}", line.join(", ")), declared, None, all[from].1);
        }
    }

    #[test]
    fn what_is_null_or_no_metric_is_passed_over() {
        let line = r#"{"alias": "t", "name": "t", "sample_len": 4, " ": " ", "acc,none": null,
                       "acc_stderr,none": 0.1, "f1_stderr,none": 0.2, "f1,none": 0.3, "em,none": 0.4}"#;
        is(line, "{}", None, ("f1,none", "f1,none"));
        is(
            line,
            r#"{"metric_list": [{"metric": "em"}]}"#,
            None,
            ("em,none", "em,none"),
        );
        is(
            line,
            r#"{"metric_list": [{"metric": "def f():"}]}"#,
            None,
            ("f1,none", "f1,none"),
        );
        let nothing = chosen(r#"{"alias": "t", "acc,none": null}"#, "{}", None);
        assert_eq!(nothing, Err("has no metric".to_owned()));
    }

    #[test]
    fn a_named_metric_is_taken_or_nothing() {
        let line = r#"{"exact_match,flexible-extract": 0.4, "exact_match,strict-match": 0.1, "f1,none": 0.5}"#;
        let flexible = "exact_match,flexible-extract";
        is(line, "{}", Some(flexible), (flexible, "em_flexible"));
        is(
            line,
            "{}",
            Some("exact_match"),
            ("exact_match,strict-match", "em_strict"),
        );
        is(line, "{}", Some("f1"), ("f1,none", "f1,none"));
        for named in ["rouge1", "f1,strict", "exact", "f1_stderr", ""] {
            let why = chosen(line, "{}", Some(named)).expect_err("not there");
            assert!(why.contains(&format!("`{named}`")) && why.contains(flexible), "{why}");
        }
    }

    #[test]
    fn an_accuracy_counts_under_any_filter_where_none_is_unfiltered() {
        for metric in ["acc", "acc_norm"] {
            let key = format!("{metric},own");
            let line = format!(r#"{{"exact_match,flexible-extract": 0.1, "f1,none": 0.2, "{key}": 0.3}}"#);
            let found = chosen(&line, "{}", None).expect("a score");
            assert_eq!(found.0, key);
            let both = line.replace('}', &format!(r#", "{metric},none": 0.4}}"#));
            assert_eq!(chosen(&both, "{}", None).expect("a score").0, format!("{metric},none"));
        }
    }

    #[test]
    fn a_message_lists_the_first_metrics_by_name() {
        let metrics: Vec<String> = (0..12).rev().map(|at| format!(r#""m{at:02},none": 0.1"#)).collect();
        let why = chosen(&format!("{{{}}}", metrics.join(", ")), "{}", Some("f1")).expect_err("not there");
        let listed: Vec<String> = (0..LISTED).map(|at| format!("m{at:02},none")).collect();
        assert!(why.ends_with(&format!("; it has {}", listed.join(", "))), "{why}");
        let why = chosen(r#"{"alias": "t"}"#, "{}", Some("f1")).expect_err("not there");
        assert!(why.ends_with("; it has none"), "{why}");
    }

    #[test]
    fn the_order_of_keys_does_not_choose_among_declared_filters() {
        let config = r#"{"metric_list": [{"metric": "exact_match"}],
                         "filter_list": [{"name": "get-answer"}, {"name": "other"}]}"#;
        for line in [
            r#"{"exact_match,other": 0.1, "exact_match,get-answer": 0.2}"#,
            r#"{"exact_match,get-answer": 0.2, "exact_match,other": 0.1}"#,
        ] {
            is(line, config, None, ("exact_match,get-answer", "exact_match,get-answer"));
        }
    }

    #[test]
    fn the_direction_is_the_files_then_the_tasks() {
        let config = r#"{"metric_list": [{"metric": "word_perplexity", "higher_is_better": false}]}"#;
        let line = r#"{"word_perplexity,none": 9.8}"#;
        assert!(chosen(line, config, None).expect("a score").2);
        assert!(!chosen(line, "{}", None).expect("a score").2);
        let both = format!(
            r#"{{"results": {{"t": {line}}}, "configs": {{"t": {config}}},
                "higher_is_better": {{"t": {{"word_perplexity": true}}}}}}"#
        );
        let file: ResultFile = json::parse(both.as_bytes()).expect("a result file");
        assert_eq!(file.is_more_better("t", "word_perplexity"), Some(true));
        assert_eq!(
            (number(&Cell::Number(9.8), true), number(&Cell::Number(9.8), false)),
            (Some(9.8), None)
        );
        assert_eq!(number(&Cell::Text("NaN".to_owned()), true), None);
    }
}
