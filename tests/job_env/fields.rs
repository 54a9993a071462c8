//! Every field of the table stands in every place that must have it. No field is named here but those that rows are
//! told apart by, so that a new line of the table is asked for like the others.

use serde_json::{Map, Value, json};
use sweepctl::config::clusters::command;
use sweepctl::config::fields::{Field, Has, PassedField, Side, Size};
use sweepctl::config::kind::Kind;
use sweepctl::config::thresholds::Thresholds;
use sweepctl::matrix::envelope::Envelope;
use sweepctl::matrix::row::{FieldValue, Row};
use sweepctl::matrix::wire::{self, Form};
use sweepctl::matrix::{fingerprint, names};
use sweepctl::step::collect::evals::{self, Order};
use sweepctl::step::compare::{self, Metrics};
use sweepctl::step::environment::{Environment, Place};
use sweepctl::step::eval::job::Job;
use sweepctl::step::eval::meta_env;
use sweepctl::step::results::meta::MetaEnv;
use sweepctl::step::throughput;

use super::{envelope, multi_agentic, multi_fixed, single_agentic, single_fixed};
use crate::{fixture, support};

fn shapes() -> [Value; 4] {
    [single_fixed(), multi_fixed(), single_agentic(), multi_agentic()]
}

fn read(row: &Value) -> Result<Envelope, String> {
    serde_json::from_value(envelope(row.clone())).map_err(|error| error.to_string())
}

#[track_caller]
fn planned(row: &Value) -> Envelope {
    read(row).unwrap_or_else(|error| panic!("{error}\n{row}"))
}

fn environment(envelope: &Envelope) -> Environment {
    Environment::new(envelope, &Place::default()).expect("an environment")
}

fn described(envelope: &Envelope) -> MetaEnv {
    let (meta, problems) = meta_env::of(&Job::new(Some(envelope), []));
    assert!(problems.0.is_empty(), "{problems}");
    meta
}

/// The published throughput row, as far as it is known before the measurement.
fn published(row: &Row) -> Map<String, Value> {
    let mut fields = throughput::published(row);
    for (name, size) in throughput::topology(&row.topology.nodes) {
        let again = fields.insert(name.clone(), serde_json::to_value(size).expect("JSON"));
        assert_eq!(again, None, "{name} is published twice");
    }
    fields.insert("is_multinode".to_owned(), row.topology.roles().is_some().into());
    fields.insert("conc".to_owned(), row.conc.highest().into());
    fields
}

/// The published row of an eval.
fn graded(envelope: &Envelope) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let meta = serde_json::to_string(&described(envelope)).expect("JSON");
    support::write(folder.path(), "set/meta_env.json", meta);
    let mut result = fixture::result("gsm8k", 0.9);
    result.as_object_mut().expect("an object").remove("model_name");
    support::write(
        folder.path(),
        "set/results_2026-11-01T00-00-00.json",
        result.to_string(),
    );
    let found = evals::collect(folder.path(), None, Order::Model, &Thresholds::default()).expect("evals");
    assert_eq!(found.rows.len(), 1, "{:?}", found.problems);
    serde_json::to_value(&found.rows[0]).expect("JSON")
}

/// Whether two rows are one point to `compare`.
fn is_one_point(before: &Row, after: &Row) -> bool {
    are_one_point(&published(before), &published(after))
}

fn are_one_point(before: &Map<String, Value>, after: &Map<String, Value>) -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    for (side, row) in [("before", before), ("after", after)] {
        let mut row = row.clone();
        row.insert("tput_per_gpu".to_owned(), json!(100.0));
        support::write(folder.path(), &format!("{side}/agg_bmk.json"), json!([row]).to_string());
    }
    let at = |side| folder.path().join(side);
    let found = compare::compare(&at("before"), &at("after"), &Metrics::default()).expect("a comparison");
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    match (found.points.len(), found.only_baseline.len(), found.only_current.len()) {
        (1, 0, 0) => true,
        (0, 1, 1) => false,
        other => panic!("{other:?}"),
    }
}

/// A value of a size that no row of these tests has: the tensor parallel size stays a multiple of what divides it.
fn another(size: Size, number: u64) -> u64 {
    match size.is_flag() {
        true => 1 - number,
        false => number * 3,
    }
}

fn as_json(size: Size, number: u64) -> Value {
    match size.is_flag() {
        true => json!(number != 0),
        false => json!(number),
    }
}

/// A cell of `meta_env.json` as a size's number.
fn number(meta: &MetaEnv, name: &str) -> Option<u64> {
    let cell = meta.cell(name);
    cell.integer().or_else(|| cell.flag().map(u64::from))
}

/// What two rows that differ in a size alone must not share.
fn assert_told_apart(before: &Row, after: &Row, name: &str) {
    let generated = |row: &Row| fingerprint::recipe_fingerprint(row);
    assert_ne!(generated(before), generated(after), "the fingerprint counts {name}");
    assert_ne!(
        names::result(before, "r"),
        names::result(after, "r"),
        "results are named after {name}"
    );
    assert!(
        is_one_point(before, before) && !is_one_point(before, after),
        "points differ by {name}"
    );
}

#[test]
fn every_size_of_one_node_stands_everywhere() {
    // Other sizes are products of 12, so that one alone can grow.
    let mut base = single_fixed();
    base["tp"] = json!(12);
    for size in Size::ALL {
        let (names, before) = (size.names(), planned(&base));
        let number_before = before.row.topology.single().expect("one node").get(*size);
        let wanted = another(*size, number_before);
        let mut row = base.clone();
        row[names.row] = as_json(*size, wanted);
        let after = planned(&row);
        let written = wire::to_json(&after.row, Form::Planned);
        assert_eq!(written[names.row], as_json(*size, wanted), "the row's {}", names.row);
        let said = size.text(wanted);
        assert_eq!(
            environment(&after).get(names.variable),
            Some(said.as_str()),
            "{}",
            names.variable
        );
        for start in ["", "prefill_", "decode_"] {
            let name = format!("{start}{}", names.published);
            assert_eq!(
                number(&described(&after), &name),
                Some(wanted),
                "meta_env.json's {name}"
            );
        }
        if names.in_evals {
            for start in ["", "prefill_", "decode_"] {
                let name = format!("{start}{}", names.published);
                let shown = graded(&after)[&name].to_string();
                assert_eq!(shown.trim_matches('"'), said, "{name} of evals");
            }
        }
        let shown = match &published(&after.row)[names.published] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        assert_eq!(shown, said, "published {}", names.published);
        assert_eq!(
            after.row.topology.gpus() > before.row.topology.gpus(),
            names.gpus,
            "{}",
            names.row
        );
        assert_told_apart(&before.row, &after.row, names.row);
        assert!(
            Field::of_groups().any(|field| field == Field::Size(*size)),
            "policies group by {}",
            names.row
        );
    }
}

#[test]
fn every_size_of_a_side_stands_everywhere() {
    let mut base = multi_fixed();
    for side in Side::ALL {
        base[side.name()]["tp"] = json!(12);
    }
    for (side, size) in Side::ALL
        .into_iter()
        .flat_map(|side| Size::ALL.iter().map(move |size| (side, *size)))
    {
        let (names, before) = (size.names(), planned(&base));
        let wanted = another(size, before.row.topology.roles().expect("sides").side(side).get(size));
        let mut row = base.clone();
        row[side.name()][names.row] = as_json(size, wanted);
        let after = planned(&row);
        let name = format!("{}.{}", side.name(), names.row);
        let written = wire::to_json(&after.row, Form::Planned);
        assert_eq!(
            written[side.name()][names.row],
            as_json(size, wanted),
            "the row's {name}"
        );
        assert!(!names.side_variables.is_empty(), "{name} has a variable");
        for variable in names.side_variables {
            let variable = format!("{}{variable}", side.variables());
            assert_eq!(
                environment(&after).get(&variable),
                Some(size.text(wanted).as_str()),
                "{variable}"
            );
        }
        let flat = format!("{}_{}", side.name(), names.published);
        assert_eq!(
            number(&described(&after), &flat),
            Some(wanted),
            "meta_env.json's {flat}"
        );
        assert!(published(&after.row).contains_key(&flat), "published {flat}");
        assert_ne!(
            published(&before.row)[&flat],
            published(&after.row)[&flat],
            "published {flat}"
        );
        if names.in_evals {
            let shown = graded(&after)[&flat].to_string();
            assert_eq!(shown.trim_matches('"'), size.text(wanted), "{flat} of evals");
        }
        assert_told_apart(&before.row, &after.row, &name);
        let reached = Field::of_groups().find(|field| field.name() == name);
        let value = after
            .row
            .field(reached.unwrap_or_else(|| panic!("policies group by {name}")));
        assert_eq!(wire::plain(value), as_json(size, wanted), "{name} as policies see it");
    }
}

#[test]
fn every_field_that_is_only_passed_on_stands_in_rows_of_all_shapes() {
    for (base, field) in shapes()
        .into_iter()
        .flat_map(|base| PassedField::ALL.iter().map(move |f| (base.clone(), *f)))
    {
        let before = planned(&base);
        let mut row = base;
        row[field.name()] = json!("some text of its own");
        let after = planned(&row);
        let name = field.name();
        assert_eq!(wire::to_json(&after.row, Form::Planned)[name], "some text of its own");
        assert_eq!(
            after.row.field(Field::Passed(field)),
            FieldValue::Text("some text of its own")
        );
        if let Some(variable) = field.variable() {
            assert_eq!(
                environment(&after).get(variable),
                Some("some text of its own"),
                "{variable}"
            );
            assert_eq!(command::variable(name), variable, "a command's placeholder");
        }
        let generated = |envelope: &Envelope| fingerprint::recipe_fingerprint(&envelope.row);
        assert_ne!(generated(&before), generated(&after), "the fingerprint counts {name}");
        row[name] = json!(7);
        let refused = read(&row).expect_err("a number");
        assert!(refused.contains(&format!("`{name}`")), "{refused}");
    }
}

/// How many kinds of entry may have a property, by a schema.
fn offered(schema: &Value, name: &str) -> usize {
    match schema {
        Value::Object(fields) => {
            let own = fields.get("properties").and_then(|properties| properties.get(name));
            let below: usize = fields.values().map(|value| offered(value, name)).sum();
            below + usize::from(own.is_some())
        }
        Value::Array(items) => items.iter().map(|item| offered(item, name)).sum(),
        _ => 0,
    }
}

#[test]
fn editors_are_offered_every_size_and_every_field_that_is_passed_on() {
    let schema = Kind::Master.schema();
    for size in Size::ALL {
        let name = size.names().row;
        assert!(offered(&schema, name) >= 2, "an entry and a side may have {name}");
    }
    for field in PassedField::ALL {
        assert!(
            offered(&schema, field.name()) >= 1,
            "an entry may have {}",
            field.name()
        );
    }
    assert_eq!(offered(&schema, "no-such-field"), 0);
}

#[test]
fn every_field_stands_where_its_line_says() {
    for base in shapes() {
        let job = planned(&base);
        let (shape, variables, meta) = (job.row.topology.shape(), environment(&job), described(&job));
        let (written, published) = (wire::to_json(&job.row, Form::Planned), published(&job.row));
        for field in Field::of_rows() {
            let name = field.name();
            match field.of_shape(shape) {
                Has::Must => {
                    assert!(written.contains_key(&name), "{shape} has {name}");
                    let mut row = base.clone();
                    row.as_object_mut().expect("a row").remove(&name);
                    let refused = read(&row).expect_err("a field is gone");
                    // Without its scenario, a row is one of another shape, which has other fields.
                    let named = field == Field::ScenarioType || refused.contains(&format!("`{name}`"));
                    assert!(named, "{name}: {refused}");
                }
                Has::Not => assert!(!written.contains_key(&name), "{shape} has no {name}"),
                Has::May => {}
            }
            let value = job.row.field(field);
            let said = match value {
                FieldValue::Missing => String::new(),
                value => value.to_string(),
            };
            if let Some(variable) = field.variable() {
                assert_eq!(variables.get(variable), Some(said.as_str()), "{variable} of {shape}");
            }
        }
        for (field, name) in Field::of_meta() {
            let said = meta.cell(name).text().unwrap_or_default();
            match job.row.field(field) {
                FieldValue::Missing => assert!(matches!(said, "" | "0"), "{name} of {shape}: {said:?}"),
                value => assert_eq!(said, value.to_string(), "{name} of {shape}"),
            }
        }
        let graded = graded(&job);
        for (field, _, name) in Field::of_evals() {
            let said = match job.row.field(field) {
                FieldValue::Missing => "0".to_owned(),
                value => value.to_string(),
            };
            let shown = graded[name].to_string();
            assert!(
                shown.trim_matches('"').eq_ignore_ascii_case(&said),
                "{name} of {shape}: {shown}"
            );
        }
        for (field, name) in Field::of_published() {
            match (job.row.field(field), field.of_shape(shape)) {
                (FieldValue::Missing, _) | (_, Has::Not) => {}
                (value, _) => assert_eq!(published.get(name), Some(&wire::plain(value)), "{name} of {shape}"),
            }
        }
    }
}

#[test]
fn measurements_are_of_one_point_where_the_table_says_so() {
    for base in shapes() {
        let before = published(&planned(&base).row);
        for (field, name) in Field::of_published() {
            // Without its scenario a row without lengths is none.
            let Some(value) = before.get(name).filter(|_| field != Field::ScenarioType) else {
                continue;
            };
            let other = match value {
                Value::Bool(flag) => json!(!flag),
                Value::Number(number) => json!(number.as_u64().map(|number| number + 1)),
                _ => json!("another"),
            };
            let mut after = before.clone();
            after.insert(name.to_owned(), other);
            let is_compared = Field::of_points().any(|(own, _)| own == field);
            assert_eq!(are_one_point(&before, &after), !is_compared, "{name}");
        }
        let of_points = Field::of_points().map(|(field, names)| (field, names[1]));
        for (field, name) in of_points {
            let known = Field::of_published().any(|(own, known)| (own, known) == (field, name));
            assert!(known, "rows of throughput have {name}");
        }
    }
}
