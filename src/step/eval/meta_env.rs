//! `meta_env.json` as a job writes it: what the envelope says, and what variables of the environment say over it.

use crate::config::fields::{Field, Side, SideField, Size};
use crate::config::problem::{Problem, Problems};
use crate::matrix::envelope::Envelope;
use crate::step::environment::side_variables;
use crate::step::results::loose::{Cell, List};
use crate::step::results::meta::{self, MetaEnv};

use super::job::Job;

/// Variables read leniently: a bad one is a problem and its default, for this file is written in any case.
struct Reader<'a> {
    job: &'a Job,
    problems: Problems,
}

impl Reader<'_> {
    /// A size: the first of its variables that says one, else 1, or false.
    fn size(&mut self, size: Size, names: &[String]) -> Cell {
        match size.is_flag() {
            true => self.flag(names),
            false => self.number(names),
        }
    }

    fn number(&mut self, names: &[String]) -> Cell {
        meta::number(self.first(names, |job, name| job.number(name, 0)).unwrap_or(1))
    }

    fn flag(&mut self, names: &[String]) -> Cell {
        Cell::Bool(self.first(names, Job::flag).unwrap_or(false))
    }

    fn first<T>(&mut self, names: &[String], get: impl Fn(&Job, &str) -> Result<Option<T>, Problem>) -> Option<T> {
        for name in names {
            match get(self.job, name) {
                Ok(None) => {}
                Ok(value) => return value,
                Err(problem) => self.problems.push(problem),
            }
        }
        None
    }
}

/// The variables of a part of a side. Of several the job's own name, the last, comes first.
fn of_side(side: Side, part: SideField) -> Vec<String> {
    let names = side_variables().filter(|(_, own)| *own == part);
    let mut names: Vec<String> = names.map(|(name, _)| format!("{}{name}", side.variables())).collect();
    names.reverse();
    names
}

/// What a job's variables say, without concurrencies. One node counts as its own prefill and decode side; of a
/// multi-node job the plain sizes are those of the prefill side.
#[must_use]
pub fn of(job: &Job) -> (MetaEnv, Problems) {
    let mut read = Reader {
        job,
        problems: Problems::default(),
    };
    let mut meta = MetaEnv::default();
    meta.set("is_multinode", read.flag(&["IS_MULTINODE".to_owned()]));
    for (field, name) in Field::of_meta() {
        let said = field.variable().and_then(|variable| job.text(variable));
        let or = match field {
            Field::SpecDecoding => "none",
            Field::Isl | Field::Osl => "0",
            _ => "",
        };
        meta.set(name, Cell::Text(said.unwrap_or(or).to_owned()));
    }
    for size in Size::ALL {
        let names = size.names();
        let mut plain = vec![names.variable.to_owned()];
        plain.extend(of_side(Side::Prefill, SideField::Size(*size)));
        meta.set(names.published, read.size(*size, &plain));
        for side in Side::ALL {
            let mut own = of_side(side, SideField::Size(*size));
            own.push(names.variable.to_owned());
            meta.set(&format!("{}_{}", side.name(), names.published), read.size(*size, &own));
        }
    }
    for side in Side::ALL {
        let workers = read.number(&of_side(side, SideField::NumWorker));
        meta.set(&format!("{}_num_workers", side.name()), workers);
    }
    meta.set("job_id", Cell::Text(job.id.clone()));
    for (name, variable) in [("run_id", "GITHUB_RUN_ID"), ("run_attempt", "GITHUB_RUN_ATTEMPT")] {
        meta.set(name, Cell::Text(job.text(variable).unwrap_or_default().to_owned()));
    }
    (meta, read.problems)
}

/// What an envelope says, with the concurrencies of a set that somebody else described.
#[must_use]
pub fn anew(envelope: &Envelope, run: (&str, &str), found: &MetaEnv) -> MetaEnv {
    let run = [("GITHUB_RUN_ID", run.0), ("GITHUB_RUN_ATTEMPT", run.1)];
    let run = run.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let (mut meta, _) = of(&Job::new(Some(envelope), run));
    let concs = |list: &Option<List<Cell>>| {
        let list = list.as_ref()?.items().filter_map(Cell::integer).map(meta::number);
        Some(List(Some(list.collect())))
    };
    let said = found.cell("conc").integer().filter(|conc| *conc > 0);
    let conc = said.or(envelope.row.eval_concs().first().copied());
    meta.set("conc", meta::number(conc.unwrap_or_default()));
    meta.eval_concs = concs(&found.eval_concs);
    meta.completed_eval_concs = concs(&found.completed_eval_concs);
    meta.failed_eval_concs = concs(&found.failed_eval_concs);
    meta.answers = found.answers.clone();
    meta
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_variables(vars: &[(&str, &str)]) -> (MetaEnv, Problems) {
        of(&Job::new(
            None,
            vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())),
        ))
    }

    #[test]
    fn srt_slurms_names_are_bridged() {
        let (meta, _) = of_variables(&[
            ("IS_MULTINODE", "true"),
            ("PREFILL_TP", "4"),
            ("PREFILL_DP_ATTN", "true"),
            ("DECODE_DP_ATTN", "true"),
            ("DECODE_DP_ATTENTION", "false"),
            ("DECODE_NUM_WORKERS", "0"),
        ]);
        for name in ["is_multinode", "prefill_dp_attention", "dp_attention"] {
            assert_eq!(meta.cell(name), &Cell::Bool(true), "{name}");
        }
        let own = meta.cell("decode_dp_attention");
        assert_eq!(own, &Cell::Bool(false), "the job's own name comes first");
        let number = |name| meta.cell(name).integer();
        assert_eq!(
            ["tp", "prefill_tp", "decode_tp", "decode_num_workers"].map(number),
            [Some(4), Some(4), Some(1), Some(0)]
        );
    }

    #[test]
    fn every_variable_of_the_table_reaches_the_file_by_its_own_name() {
        for size in Size::ALL {
            let names = size.names();
            let (said, wanted) = if size.is_flag() {
                ("true", Cell::Bool(true))
            } else {
                ("7", meta::number(7))
            };
            for side in Side::ALL {
                for variable in names.side_variables {
                    let variable = format!("{}{variable}", side.variables());
                    let (meta, problems) = of_variables(&[(&variable, said)]);
                    assert_eq!(problems.0.len(), 0);
                    let name = format!("{}_{}", side.name(), names.published);
                    assert_eq!(meta.cell(&name), &wanted, "{variable}");
                }
            }
            let (meta, _) = of_variables(&[(names.variable, said)]);
            for start in ["", "prefill_", "decode_"] {
                let name = format!("{start}{}", names.published);
                assert_eq!(meta.cell(&name), &wanted, "{name} of {}", names.variable);
            }
        }
        for (field, name) in Field::of_meta() {
            let variable = field.variable().expect("what the file says has a variable");
            let (meta, _) = of_variables(&[(variable, "17")]);
            assert_eq!(meta.cell(name), &Cell::Text("17".to_owned()));
        }
    }

    #[test]
    fn it_is_written_in_spite_of_bad_variables_and_read_back() {
        let (mut written, problems) = of_variables(&[("TP", "eight"), ("ISL", "8192")]);
        assert!(!problems.0.is_empty());
        let folder = tempfile::tempdir().expect("a folder");
        let concs = List(Some(vec![meta::number(2), meta::number(4)]));
        for batch in [None, Some(concs)] {
            written.eval_concs = batch;
            written.write(folder.path()).expect("a file");
            let read = MetaEnv::read(&folder.path().join(meta::NAME)).expect("it is read back");
            assert_eq!(read, written);
            assert_eq!(read.cell("tp").integer(), Some(1));
            assert_eq!(read.cell("isl"), &Cell::Text("8192".to_owned()));
        }
    }
}
