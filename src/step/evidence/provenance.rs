//! Whether it is known what was replayed, and how.

use std::path::Path;

use serde_json::Value;

use super::line::{Line, Look};
use super::material::{Material, RECORD};
use crate::matrix::envelope::Envelope;
use crate::matrix::names::ArtifactKind;

/// The exact command, which launch scripts write before they replay.
pub(super) const COMMAND: &str = "benchmark_command.txt";

/// What a record of `sweepctl agentic run` must say.
const RECORDED: [&str; 5] = ["client", "command", "corpus", "replay_mode", "started"];

/// Corpus, mode, command, fast mode and overrides of every replay are on record.
pub(super) fn look(material: &Material) -> Line {
    let mut look = Look::new(
        material,
        "replay-provenance",
        "of every replay the corpus, the mode, the exact command and what was overridden are on record",
    );
    for job in material.replays() {
        look.applies();
        for conc in job.row.conc.points() {
            match (material.record(job, *conc), material.replay(job, *conc)) {
                (Some((path, record)), _) => recorded(&mut look, &path, &record),
                (None, Some(folder)) => of_script(material, &mut look, job, *conc, &folder),
                (None, None) => {
                    let place = material.expected(ArtifactKind::Agentic, job);
                    look.fail(&place, format!("the raw replay of {} is missing", job.name));
                }
            }
        }
    }
    look.line("the plan has no replay")
}

fn recorded(look: &mut Look<'_>, path: &Path, record: &Value) {
    let lacking: Vec<String> = RECORDED
        .iter()
        .filter(|name| record.get(**name).is_none_or(is_blank))
        .map(|name| format!("`{name}`"))
        .collect();
    match lacking.is_empty() {
        true => look.saw(path),
        false => look.fail(path, format!("it does not say {}", lacking.join(", "))),
    }
    let said = |pointer: &str| record.pointer(pointer).is_some_and(|value| !is_blank(value));
    if said("/corpus") && !said("/corpus/sha256") {
        look.fail(path, "the corpus has no digest");
    }
    if record.get("fast").and_then(Value::as_bool).is_none() || !record.get("overrides").is_some_and(Value::is_array) {
        look.fail(
            path,
            "it does not say whether this was the fast mode and what was overridden",
        );
    }
}

/// A replay that a launch script ran: the client's command, and the data set as its summary says it.
fn of_script(material: &Material, look: &mut Look<'_>, job: &Envelope, conc: u64, folder: &Path) {
    let command = folder.join(COMMAND);
    match crate::files::read(&command) {
        Ok(text) if !text.trim_ascii().is_empty() => look.saw(&command),
        Ok(_) => look.fail(&command, "the command is empty"),
        Err(_) => look.fail(
            &command,
            format!("the exact command is missing, and so is a record of the replay (`{RECORD}`)"),
        ),
    }
    let aggregates = material.aggregates(job);
    for (path, _, aggregate) in aggregates.iter().filter(|(_, of, _)| *of == conc) {
        let dataset = aggregate.get("dataset").and_then(Value::as_object);
        let Some(dataset) = dataset else {
            look.fail(
                path,
                "the aggregate does not say which data set was replayed (`dataset`)",
            );
            continue;
        };
        let names = ["source_type", "loader", "hf_dataset_name", "num_dataset_entries"];
        let lacking: Vec<&str> = names
            .into_iter()
            .filter(|name| dataset.get(*name).is_none_or(is_blank))
            .collect();
        match lacking.is_empty() {
            true => look.saw(path),
            false => look.fail(path, format!("`dataset` does not say {}", lacking.join(", "))),
        }
    }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
