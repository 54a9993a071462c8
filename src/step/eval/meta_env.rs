//! `meta_env.json`: which job a set of eval results belongs to.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::job::{DECODE, Job, PREFILL, Side};
use crate::config::problem::{Problem, Problems};
use crate::matrix::envelope::Envelope;
use crate::step::results::loose::{Cell, List};
use crate::step::results::meta::{self, NAME};

/// What is said of a job beside its results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields are the job's variables of the same names")]
pub struct MetaEnv {
    pub is_multinode: bool,
    pub framework: String,
    pub precision: String,
    pub spec_decoding: String,
    pub eval_suite: String,
    pub recipe_fingerprint: String,
    pub tp: u64,
    pub pp: u64,
    pub dcp_size: u64,
    pub pcp_size: u64,
    /// The concurrency of the eval; of a batch the first.
    pub conc: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
    pub ep: u64,
    pub dp_attention: bool,
    pub prefill_tp: u64,
    pub prefill_pp: u64,
    pub prefill_dcp_size: u64,
    pub prefill_pcp_size: u64,
    pub prefill_ep: u64,
    pub prefill_dp_attention: bool,
    pub prefill_num_workers: u64,
    pub decode_tp: u64,
    pub decode_pp: u64,
    pub decode_dcp_size: u64,
    pub decode_pcp_size: u64,
    pub decode_ep: u64,
    pub decode_dp_attention: bool,
    pub decode_num_workers: u64,
    pub model: String,
    pub infmax_model_prefix: String,
    /// The runner's label.
    pub hw: String,
    /// Input sequence length; `0` where the row has none.
    pub isl: String,
    /// Output sequence length; `0` where the row has none.
    pub osl: String,
    /// The envelope's id.
    pub job_id: String,
    pub run_id: String,
    pub run_attempt: String,
}

/// What became of each concurrency of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Batch {
    /// Those asked for.
    pub eval_concs: Vec<u64>,
    /// Those that succeeded and staged something.
    pub completed_eval_concs: Vec<u64>,
    /// Those that did not.
    pub failed_eval_concs: Vec<u64>,
}

/// Variables read leniently: a bad one is a problem and its default, for this file is written in any case.
struct Reader<'a> {
    job: &'a Job,
    problems: Problems,
}

impl Reader<'_> {
    fn text(&self, name: &str) -> String {
        self.job.text(name).unwrap_or_default().to_owned()
    }

    fn number(&mut self, names: &[&str]) -> u64 {
        self.first(names, |job, name| job.number(name, 0)).unwrap_or(1)
    }

    fn flag(&mut self, names: &[&str]) -> bool {
        self.first(names, Job::flag).unwrap_or(false)
    }

    fn first<T>(&mut self, names: &[&str], get: impl Fn(&Job, &str) -> Result<Option<T>, Problem>) -> Option<T> {
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

impl MetaEnv {
    /// What a job's variables say, without concurrencies. One node counts as its own prefill and decode side; of
    /// a multi-node job the plain sizes are those of the prefill side.
    #[must_use]
    pub fn of(job: &Job) -> (Self, Problems) {
        let mut r = Reader {
            job,
            problems: Problems::default(),
        };
        let seq = |name| job.text(name).unwrap_or("0").to_owned();
        let mut meta = Self {
            is_multinode: r.flag(&["IS_MULTINODE"]),
            framework: r.text("FRAMEWORK"),
            precision: r.text("PRECISION"),
            spec_decoding: job.text("SPEC_DECODING").unwrap_or("none").to_owned(),
            eval_suite: r.text("EVAL_SUITE"),
            recipe_fingerprint: r.text("RECIPE_FINGERPRINT"),
            tp: r.number(&["TP", PREFILL.tp]),
            pp: r.number(&["PP_SIZE", PREFILL.pp]),
            dcp_size: r.number(&["DCP_SIZE", PREFILL.dcp]),
            pcp_size: r.number(&["PCP_SIZE", PREFILL.pcp]),
            ep: r.number(&["EP_SIZE", PREFILL.ep]),
            dp_attention: r.flag(&["DP_ATTENTION", PREFILL.dp_attention, PREFILL.dp_attn]),
            model: r.text("MODEL"),
            infmax_model_prefix: r.text("MODEL_PREFIX"),
            hw: r.text("RUNNER_TYPE"),
            isl: seq("ISL"),
            osl: seq("OSL"),
            job_id: job.id.clone(),
            run_id: r.text("GITHUB_RUN_ID"),
            run_attempt: r.text("GITHUB_RUN_ATTEMPT"),
            ..Self::default()
        };
        meta.fill_prefill(&mut r);
        meta.fill_decode(&mut r);
        (meta, r.problems)
    }

    fn fill_prefill(&mut self, r: &mut Reader<'_>) {
        let Side { workers, tp, pp, .. } = PREFILL;
        self.prefill_num_workers = r.number(&[workers]);
        self.prefill_tp = r.number(&[tp, "TP"]);
        self.prefill_pp = r.number(&[pp, "PP_SIZE"]);
        self.prefill_dcp_size = r.number(&[PREFILL.dcp, "DCP_SIZE"]);
        self.prefill_pcp_size = r.number(&[PREFILL.pcp, "PCP_SIZE"]);
        self.prefill_ep = r.number(&[PREFILL.ep, "EP_SIZE"]);
        self.prefill_dp_attention = r.flag(&[PREFILL.dp_attention, PREFILL.dp_attn, "DP_ATTENTION"]);
    }

    fn fill_decode(&mut self, r: &mut Reader<'_>) {
        let Side { workers, tp, pp, .. } = DECODE;
        self.decode_num_workers = r.number(&[workers]);
        self.decode_tp = r.number(&[tp, "TP"]);
        self.decode_pp = r.number(&[pp, "PP_SIZE"]);
        self.decode_dcp_size = r.number(&[DECODE.dcp, "DCP_SIZE"]);
        self.decode_pcp_size = r.number(&[DECODE.pcp, "PCP_SIZE"]);
        self.decode_ep = r.number(&[DECODE.ep, "EP_SIZE"]);
        self.decode_dp_attention = r.flag(&[DECODE.dp_attention, DECODE.dp_attn, "DP_ATTENTION"]);
    }

    /// Writes it into a folder, whole or not at all.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::other)?;
        file.write_all(format!("{text}\n").as_bytes())?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        file.as_file().set_permissions(mode)?;
        file.persist(folder.join(NAME))?;
        Ok(())
    }

    /// What an envelope says, with the concurrencies of a set that somebody else described.
    #[must_use]
    pub fn anew(envelope: &Envelope, run: (&str, &str), found: &meta::MetaEnv) -> Self {
        let run = [("GITHUB_RUN_ID", run.0), ("GITHUB_RUN_ATTEMPT", run.1)];
        let run = run.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (known, _) = Self::of(&Job::new(Some(envelope), run));
        let concs = |list: &Option<List<Cell>>| -> Vec<u64> {
            list.iter().flat_map(List::items).filter_map(Cell::integer).collect()
        };
        let asked = envelope.row.eval_concs().first().copied().unwrap_or_default();
        Self {
            conc: found.cell("conc").integer().filter(|conc| *conc > 0).unwrap_or(asked),
            batch: found.is_batch().then(|| Batch {
                eval_concs: concs(&found.eval_concs),
                completed_eval_concs: concs(&found.completed_eval_concs),
                failed_eval_concs: concs(&found.failed_eval_concs),
            }),
            ..known
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(vars: &[(&str, &str)]) -> (MetaEnv, Problems) {
        MetaEnv::of(&Job::new(
            None,
            vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())),
        ))
    }

    #[test]
    fn srt_slurms_names_are_bridged() {
        let (meta, _) = of(&[
            ("IS_MULTINODE", "true"),
            ("PREFILL_TP", "4"),
            ("PREFILL_DP_ATTN", "true"),
            ("DECODE_DP_ATTN", "true"),
            ("DECODE_DP_ATTENTION", "false"),
            ("DECODE_NUM_WORKERS", "0"),
        ]);
        assert!(meta.is_multinode && meta.prefill_dp_attention && meta.dp_attention);
        assert!(!meta.decode_dp_attention, "the job's own name comes first");
        assert_eq!((meta.tp, meta.prefill_tp, meta.decode_num_workers), (4, 4, 0));
    }

    #[test]
    fn it_is_written_in_spite_of_bad_variables_and_read_back() {
        let (mut written, problems) = of(&[("TP", "eight"), ("ISL", "8192")]);
        assert_eq!((written.tp, problems.0.is_empty()), (1, false));
        let folder = tempfile::tempdir().expect("a folder");
        for batch in [
            None,
            Some(Batch {
                eval_concs: vec![2, 4],
                completed_eval_concs: vec![4],
                failed_eval_concs: vec![2],
            }),
        ] {
            written.batch = batch;
            written.write(folder.path()).expect("a file");
            let read = meta::MetaEnv::read(&folder.path().join(NAME)).expect("it is read back");
            assert_eq!(
                (read.cell("tp").integer(), read.is_batch()),
                (Some(1), written.batch.is_some())
            );
            assert_eq!(read.cell("isl").integer(), Some(8192));
        }
    }
}
