//! The JSON form of a row, with the field names that launch scripts and published results rely on: written from the
//! table of fields, and read back only where it fits the rules of its shape.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::row::{Conc, EvalMark, FieldValue, Offload, Row, Scenario, Topology};
use super::rules;
use crate::config::decode::MAX_INTEGER;
use crate::config::fields::{Field, Has, Parallelism, Passed, PassedField, Role, Shape, Size};
use crate::config::master::search_space::{Nodes, Roles};
use crate::config::policy::Evaluator;
use crate::config::problem::nearest;
use crate::config::types::{Component, KvOffloading, SeqLen, SpecDecoding};

/// How a row is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it was generated.
    Generated,
    /// With what a plan's rows always carry.
    Planned,
}

/// A row as JSON, in the order of the table.
#[must_use]
pub fn to_json(row: &Row, form: Form) -> Map<String, Value> {
    let shape = row.topology.shape();
    let fields = Field::of_rows().filter(|field| field.of_shape(shape) != Has::Not);
    fields
        .filter_map(|field| Some((field.name(), value(row, field, form)?)))
        .collect()
}

fn value(row: &Row, field: Field, form: Form) -> Option<Value> {
    let fixed = row.seq().is_some();
    match (row.field(field), field) {
        (FieldValue::Missing, Field::RunEval | Field::EvalOnly | Field::EvalAllConcs)
            if form == Form::Planned && fixed =>
        {
            Some(false.into())
        }
        (FieldValue::Missing, _) => None,
        (FieldValue::Role(role), _) => Some(role_json(role, form)),
        (value, _) => Some(plain(value)),
    }
}

/// A value as JSON; null where there is none.
#[must_use]
pub fn plain(value: FieldValue<'_>) -> Value {
    match value {
        FieldValue::Missing => Value::Null,
        FieldValue::Text(text) => text.into(),
        FieldValue::Int(number) => number.into(),
        FieldValue::Bool(flag) => flag.into(),
        FieldValue::List(points) => points.into(),
        FieldValue::Component(component) => component_json(component),
        FieldValue::Role(role) => role_json(role, Form::Generated),
    }
}

fn component_json(component: &Component) -> Value {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), component.name.clone().into());
    if let Some(version) = &component.version {
        fields.insert("version".to_owned(), version.clone().into());
    }
    fields.into()
}

fn role_json(role: &Role, form: Form) -> Value {
    let mut fields = Map::new();
    let sizes = |required: bool| {
        let sizes = Size::ALL
            .iter()
            .filter(move |size| size.names().side_required == required);
        sizes.map(|size| {
            let number = role.get(*size);
            let value = match size.is_flag() {
                true => Value::from(number != 0),
                false => Value::from(number),
            };
            (size.names().row.to_owned(), value)
        })
    };
    fields.insert("num-worker".to_owned(), role.num_worker.into());
    fields.extend(sizes(true));
    if let Some(hardware) = &role.hardware {
        fields.insert("hardware".to_owned(), hardware.clone().into());
    }
    match (&role.additional_settings, form) {
        (Some(settings), _) => fields.insert("additional-settings".to_owned(), settings.clone().into()),
        (None, Form::Planned) => fields.insert("additional-settings".to_owned(), json!([])),
        (None, Form::Generated) => None,
    };
    fields.extend(sizes(false));
    fields.into()
}

/// Everything that is wrong with a JSON row, one sentence each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct RowJsonError(pub Vec<String>);

/// Reads a row.
///
/// # Errors
/// Every field that is missing, unknown, of another shape or of another kind, and every rule of its shape that it
/// breaks.
pub fn from_json(fields: Map<String, Value>) -> Result<Row, RowJsonError> {
    let mut read = Reader {
        place: String::new(),
        fields,
        problems: Vec::new(),
    };
    // Who writes null means that there is nothing.
    read.fields.retain(|_, value| !value.is_null());
    let row = row(&mut read);
    let mut problems = read.problems;
    match row {
        Some(row) if problems.is_empty() => {
            problems.extend(rules::broken(&row));
            if problems.is_empty() {
                Ok(row)
            } else {
                Err(RowJsonError(problems))
            }
        }
        _ => Err(RowJsonError(problems)),
    }
}

fn row(read: &mut Reader) -> Option<Row> {
    let shape = shape(read)?;
    read.fits(shape);
    let nodes = if shape.multinode {
        let (prefill, decode) = (read.role(Field::Prefill), read.role(Field::Decode));
        prefill
            .zip(decode)
            .map(|(prefill, decode)| Nodes::Multi(Box::new(Roles { prefill, decode })))
    } else {
        Some(Nodes::Single(read.sizes()))
    };
    let scenario = if shape.agentic {
        Scenario::Agentic(Offload {
            mode: read
                .choice(Field::KvOffloading, &KvOffloading::CHOICES)
                .unwrap_or_default(),
            backend: read.component(Field::KvOffloadBackend),
            total_cpu_dram_gb: read.number(&Field::TotalCpuDramGb.name(), 0).unwrap_or_default(),
            duration: read.number(&Field::Duration.name(), 1).unwrap_or_default(),
        })
    } else {
        let mut length = |field: Field| read.number(&field.name(), 1).unwrap_or_default();
        let (isl, osl) = (length(Field::Isl), length(Field::Osl));
        let seq = SeqLen { isl, osl };
        if let Some(stated) = read.number(&Field::MaxModelLen.name(), 1)
            && read.problems.is_empty()
            && stated != seq.max_model_len()
        {
            let derived = seq.max_model_len();
            read.problem(
                &Field::MaxModelLen.name(),
                format_args!("is {stated}, of these lengths it is {derived}"),
            );
        }
        Scenario::Fixed(seq)
    };
    let mut passed = Passed::default();
    for field in PassedField::ALL {
        passed.set(*field, read.text(Field::Passed(*field)));
    }
    let mut text = |field| read.text(field).unwrap_or_default();
    let topology = Topology {
        image: text(Field::Image),
        model: text(Field::Model),
        model_prefix: text(Field::ModelPrefix),
        precision: text(Field::Precision),
        framework: text(Field::Framework),
        runner: text(Field::Runner),
        spec_decoding: read
            .choice(Field::SpecDecoding, &SpecDecoding::CHOICES)
            .unwrap_or_default(),
        disagg: read.flag(&Field::Disagg.name()).unwrap_or(false),
        router: read.component(Field::Router),
        kv_p2p_transfer: read.text(Field::KvP2pTransfer),
        passed,
        nodes: nodes?,
        scenario,
    };
    let conc = read.conc();
    let exp_name = read.text(Field::ExpName).unwrap_or_default();
    let eval = read.eval();
    let recipe_fingerprint = read.text(Field::RecipeFingerprint);
    // What is missing or of another kind was said.
    if !read.problems.is_empty() {
        return None;
    }
    match Row::new(Arc::new(topology), conc?, exp_name) {
        Ok(row) => Some(Row {
            eval,
            recipe_fingerprint,
            ..row
        }),
        Err(error) => {
            read.problem(&Field::Conc.name(), format_args!("does not fit: {error}"));
            None
        }
    }
}

/// The shape that the fields say.
fn shape(read: &mut Reader) -> Option<Shape> {
    let has = |field: Field| read.fields.contains_key(&field.name());
    let multinode = match (has(Field::Prefill), has(Field::Decode), has(Field::Size(Size::Tp))) {
        (true, true, false) => true,
        (false, false, true) => false,
        _ => {
            let message = "the row has neither `tp` alone nor both `prefill` and `decode`";
            read.problems.push(message.to_owned());
            return None;
        }
    };
    let agentic = has(Field::ScenarioType);
    if agentic {
        read.choice(Field::ScenarioType, &[("agentic-coding", ())])?;
    }
    Some(Shape { multinode, agentic })
}

/// Fields of a JSON object, read with everything that is wrong with them.
struct Reader {
    /// What the names of fields start with: empty, or a side and a point.
    place: String,
    fields: Map<String, Value>,
    problems: Vec<String>,
}

impl Reader {
    fn problem(&mut self, name: &str, what: impl std::fmt::Display) {
        self.problems.push(format!("`{}{name}` {what}", self.place));
    }

    /// Reports fields that rows of a shape lack, do not have, or that none has.
    fn fits(&mut self, shape: Shape) {
        let known: Vec<String> = Field::of_rows().map(Field::name).collect();
        for field in Field::of_rows() {
            let name = field.name();
            match (field.of_shape(shape), self.fields.contains_key(&name)) {
                (Has::Must, false) => self.problems.push(format!("the row lacks `{name}`")),
                (Has::Not, true) => self.problem(&name, format_args!("is no field of {shape}")),
                _ => {}
            }
        }
        self.known(&known);
    }

    /// Reports fields that nothing knows.
    fn known(&mut self, known: &[String]) {
        let unknown: Vec<String> = self
            .fields
            .keys()
            .filter(|name| !known.contains(name))
            .cloned()
            .collect();
        for name in unknown {
            let shown: String = name.chars().take(60).flat_map(char::escape_debug).collect();
            let near = nearest(&name, known.iter().map(String::as_str));
            let place = &self.place;
            self.problems.push(format!("unknown field `{place}{shown}` ({near})"));
        }
    }

    /// A field's value through `get`; a value of another kind is a problem.
    fn value<T>(&mut self, name: &str, wanted: &str, get: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        let found = self.fields.get(name)?;
        let value = get(found);
        if value.is_none() {
            let shown: String = found.to_string().chars().take(60).collect();
            self.problem(name, format_args!("is {shown}, it must be {wanted}"));
        }
        value
    }

    fn text(&mut self, field: Field) -> Option<String> {
        self.value(&field.name(), "a text", |value| value.as_str().map(str::to_owned))
    }

    fn flag(&mut self, name: &str) -> Option<bool> {
        self.value(name, "true or false", Value::as_bool)
    }

    fn number(&mut self, name: &str, least: u64) -> Option<u64> {
        let wanted = format!("a whole number from {least} to {MAX_INTEGER}");
        self.value(name, &wanted, |value| bounded(value, least))
    }

    fn choice<T: Copy>(&mut self, field: Field, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let wanted = format!("`{}`", names.join("` or `"));
        self.value(&field.name(), &wanted, |value| {
            let text = value.as_str()?;
            choices
                .iter()
                .find(|(name, _)| *name == text)
                .map(|(_, choice)| *choice)
        })
    }

    fn component(&mut self, field: Field) -> Option<Component> {
        let wanted = "an object of a `name` and, where it has one, a `version`, both texts";
        self.value(&field.name(), wanted, |value| {
            serde_json::from_value(value.clone()).ok()
        })
    }

    fn conc(&mut self) -> Option<Conc> {
        let wanted = format!("a whole number from 1 to {MAX_INTEGER}, or a list of them");
        self.value(&Field::Conc.name(), &wanted, |value| match value {
            Value::Array(points) => {
                let points: Option<Vec<u64>> = points.iter().map(|point| bounded(point, 1)).collect();
                points.map(Conc::List)
            }
            point => bounded(point, 1).map(Conc::Point),
        })
    }

    /// Sizes; those that are not there are 1, or false.
    fn sizes(&mut self) -> Parallelism {
        let mut sizes = Parallelism::default();
        for size in Size::ALL {
            let name = size.names().row;
            let found = match size.is_flag() {
                true => self.flag(name).map(u64::from),
                false => self.number(name, 1),
            };
            if let Some(number) = found {
                sizes.set(*size, number);
            }
        }
        sizes
    }

    fn role(&mut self, field: Field) -> Option<Role> {
        let name = field.name();
        let fields = self.value(&name, "an object", |value| value.as_object().cloned())?;
        let mut side = Self {
            place: format!("{name}."),
            fields,
            problems: Vec::new(),
        };
        side.fields.retain(|_, value| !value.is_null());
        let sizes = Size::ALL.iter().map(|size| size.names().row.to_owned());
        let other = ["num-worker", "hardware", "additional-settings"].map(str::to_owned);
        let known: Vec<String> = other.into_iter().chain(sizes).collect();
        side.known(&known);
        let required = Size::ALL
            .iter()
            .map(|size| size.names())
            .filter(|names| names.side_required);
        for name in std::iter::once("num-worker").chain(required.map(|names| names.row)) {
            if !side.fields.contains_key(name) {
                side.problems.push(format!("the row lacks `{}{name}`", side.place));
            }
        }
        let role = Role {
            num_worker: side.number("num-worker", 0).unwrap_or_default(),
            sizes: side.sizes(),
            hardware: side.value("hardware", "a text", |value| value.as_str().map(str::to_owned)),
            additional_settings: side.value("additional-settings", "a list of texts", |value| {
                let texts = value.as_array()?.iter();
                texts.map(|text| text.as_str().map(str::to_owned)).collect()
            }),
        };
        self.problems.append(&mut side.problems);
        Some(role)
    }

    fn eval(&mut self) -> EvalMark {
        let suite = self.text(Field::EvalSuite);
        EvalMark {
            run_eval: self.flag(&Field::RunEval.name()),
            eval_only: self.flag(&Field::EvalOnly.name()).unwrap_or(false),
            eval_conc: self.number(&Field::EvalConc.name(), 1),
            eval_all_concs: self.flag(&Field::EvalAllConcs.name()).unwrap_or(false),
            evaluator: self.text(Field::EvalFramework).map(|framework| Evaluator {
                framework,
                suite: suite.unwrap_or_default(),
            }),
        }
    }
}

/// A whole number of at least `least` and at most [`MAX_INTEGER`].
#[must_use]
pub fn bounded(value: &Value, least: u64) -> Option<u64> {
    value.as_u64().filter(|number| (least..=MAX_INTEGER).contains(number))
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        to_json(self, Form::Generated).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = super::unique::object(deserializer)?;
        from_json(fields).map_err(serde::de::Error::custom)
    }
}
