//! One good set, changed in one way at a time: what the gate must then say, and that the collector agrees.

mod around;
mod groups;
mod results;

use serde_json::Value;

use crate::fixture::set::{RESULT, Set};
use crate::support;

/// What a change leads to where the gate passes the set.
const PASSES: &str = "";

type Change = Box<dyn Fn(&mut Set) + Sync>;

/// Changes with their names, and a part of what the gate says of each.
struct Table(Vec<(String, String, Change)>);

impl Table {
    fn add(&mut self, name: impl Into<String>, wanted: &str, change: impl Fn(&mut Set) + Sync + 'static) {
        self.0.push((name.into(), wanted.to_owned(), Box::new(change)));
    }

    fn field(&mut self, file: &'static str, pointer: &'static str, value: Value, wanted: &str) {
        let name = format!("{file} {pointer} = {value}");
        self.add(name, wanted, move |set| set.set(file, pointer, Some(value.clone())));
    }

    fn gone(&mut self, file: &'static str, pointer: &'static str, wanted: &str) {
        self.add(format!("{file} without {pointer}"), wanted, move |set| {
            set.set(file, pointer, None)
        });
    }

    fn raw(&mut self, file: &'static str, from: &'static str, to: &'static str, wanted: &str) {
        self.add(format!("{file} with {to} for {from}"), wanted, move |set| {
            set.replace(file, from, to)
        });
    }
}

/// What fills a table.
type Fill = fn(&mut Table);

/// The tables, by what they change.
const TABLES: [(&str, Fill); 8] = [
    ("scores", results::scores),
    ("tasks", results::tasks),
    ("counts", results::counts),
    ("groups", groups::groups),
    ("twice", groups::twice),
    ("metadata", around::metadata),
    ("lines", around::lines),
    ("thresholds", around::thresholds),
];

fn table(name: &str) -> Table {
    let mut table = Table(Vec::new());
    let (_, fill) = TABLES.iter().find(|(known, _)| *known == name).expect("a table");
    fill(&mut table);
    table
}

/// What is wrong with the answers to one changed set.
fn missed((name, wanted, change): &(String, String, Change)) -> Option<String> {
    let mut set = Set::good();
    change(&mut set);
    let (code, said) = set.judge();
    if wanted != PASSES {
        let missed = code != 1 || !said.contains(wanted);
        return missed.then(|| format!("{name}: exit {code}, does not say {wanted:?}\n{said}"));
    }
    if code != 0 {
        return Some(format!("{name}: refused\n{said}"));
    }
    set.rows()
        .is_empty()
        .then(|| format!("{name}: passes, and is not published"))
}

#[track_caller]
fn answers(name: &str) {
    let table = table(name).0;
    support::assert_none(name, table.len(), &support::misses(&table, missed));
}

#[test]
fn a_good_set_passes_and_at_least_150_changed_ones_must_not() {
    let good: (String, String, Change) = ("as it is".to_owned(), PASSES.to_owned(), Box::new(|_| {}));
    assert_eq!(missed(&good), None);
    let tables = TABLES.iter().flat_map(|(name, _)| table(name).0);
    let refused = tables.filter(|(_, wanted, _)| wanted != PASSES).count();
    assert!(refused >= 150, "only {refused} changes are refused");
}

#[test]
fn hostile_scores_are_answered_as_they_should_be() {
    answers("scores");
}

#[test]
fn hostile_tasks_are_answered_as_they_should_be() {
    answers("tasks");
}

#[test]
fn hostile_counts_of_samples_are_answered_as_they_should_be() {
    answers("counts");
}

#[test]
fn hostile_groups_are_answered_as_they_should_be() {
    answers("groups");
}

#[test]
fn hostile_things_told_twice_are_answered_as_they_should_be() {
    answers("twice");
}

#[test]
fn hostile_metadata_are_answered_as_they_should_be() {
    answers("metadata");
}

#[test]
fn hostile_lines_of_samples_are_answered_as_they_should_be() {
    answers("lines");
}

#[test]
fn hostile_thresholds_are_answered_as_they_should_be() {
    answers("thresholds");
}

#[test]
fn neither_the_order_of_keys_nor_that_of_files_changes_an_answer() {
    let cases: Vec<_> = TABLES.iter().flat_map(|(name, _)| table(name).0).step_by(4).collect();
    let turned = |(name, _, change): &(String, String, Change)| {
        let mut set = Set::good();
        change(&mut set);
        let mut other = set.clone();
        for file in ["envelope.json", "meta_env.json", RESULT] {
            if let Some(Ok(value)) = set.0.get(file).map(|text| serde_json::from_str::<Value>(text))
                && !name.contains("twice")
                && !name.contains(" with ")
            {
                let mut text = String::new();
                write_turned(&value, &mut text);
                other.put(file, text);
            }
        }
        let sorted = |(code, said): (i32, String)| {
            let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
            lines.sort();
            (code, lines)
        };
        let (one, two) = (sorted(set.judge()), sorted(other.judge()));
        let same = one == two && set.rows() == other.rows();
        (!same).then(|| format!("{name}: {one:?}, and turned {two:?}"))
    };
    support::assert_none("sets", cases.len(), &support::misses(&cases, turned));
}

/// Writes an object's keys from the last to the first: maps in memory sort theirs.
fn write_turned(value: &Value, out: &mut String) {
    let Value::Object(fields) = value else {
        out.push_str(&value.to_string());
        return;
    };
    out.push('{');
    for (index, (key, value)) in fields.iter().rev().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
        write_turned(value, out);
    }
    out.push('}');
}
