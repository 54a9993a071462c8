//! `meta_env.json`: which job a set of eval results belongs to.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::job::{DECODE, Job, PREFILL, Side};
use crate::config::problem::{Problem, Problems};
use crate::files;
use crate::matrix::envelope::Envelope;
use crate::step::results::answers::Answers;

/// The file's name.
pub const FILE: &str = "meta_env.json";
/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// What is said of a job beside its results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are the job's variables of the same names")]
pub struct MetaEnv {
    pub is_multinode: bool,
    pub framework: String,
    pub precision: String,
    pub spec_decoding: String,
    pub eval_suite: String,
    /// What evaluates; left out where the job says nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub eval_framework: String,
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
    /// What became of the answers, where the framework counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
}

/// What became of each concurrency of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
            eval_framework: r.text("EVAL_FRAMEWORK"),
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

    /// Reads one.
    ///
    /// # Errors
    /// A file that is missing, too large, or of another form.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let failed = |what: String| Problem::file(&path.display().to_string(), format!("{FILE} {what}"));
        let bytes = files::open(path).and_then(|file| files::bounded(file, MAX_BYTES));
        let bytes = bytes.map_err(|e| failed(format!("cannot be read: {e}")))?;
        serde_json::from_slice(&bytes).map_err(|e| failed(format!("is not what an eval writes: {e}")))
    }

    /// Writes it into a folder, whole or not at all.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(std::io::Error::other)?;
        files::write_atomic(&folder.join(FILE), format!("{text}\n").as_bytes())
    }

    /// Where it contradicts an envelope, one sentence each. `run` is the run and its attempt; what either side leaves
    /// empty contradicts nothing.
    #[must_use]
    pub fn contradictions(&self, envelope: &Envelope, run: (&str, &str)) -> Vec<String> {
        let (planned, _) = Self::of(&Job::new(Some(envelope), []));
        let row = &envelope.row;
        let mut found = Vec::new();
        let mut text = |name: &str, planned: &str, found_one: &str| {
            if !planned.is_empty() && !found_one.is_empty() && planned != found_one {
                found.push(format!("`{name}` is `{found_one}`, the job's is `{planned}`"));
            }
        };
        text("job_id", &envelope.id, &self.job_id);
        text("run_id", run.0, &self.run_id);
        text("run_attempt", run.1, &self.run_attempt);
        // Everything else that the row decides; `hw` may be the name of the very runner.
        let skip = ["job_id", "run_id", "run_attempt", "hw", "conc"];
        if let (Ok(serde_json::Value::Object(planned)), Ok(own)) =
            (serde_json::to_value(&planned), serde_json::to_value(self))
        {
            for (name, planned) in planned.iter().filter(|(name, _)| !skip.contains(&name.as_str())) {
                let own = &own[name.as_str()];
                // srt-slurm's own evals say nothing of some sizes, and no size that is said is 0.
                if own.as_u64() != Some(0) {
                    text(name, &plain(planned), &plain(own));
                }
            }
        }
        let mut points = vec![self.conc];
        points.extend(self.batch.iter().flat_map(|batch| &batch.eval_concs));
        points.sort_unstable();
        points.dedup();
        for point in points {
            if point != 0 && !row.conc.points().contains(&point) && row.eval.eval_conc != Some(point) {
                found.push(format!("concurrency {point} is none of the job's"));
            }
        }
        found
    }
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
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
        let (mut meta, problems) = of(&[("TP", "eight"), ("ISL", "8192")]);
        assert_eq!((meta.tp, problems.0.is_empty()), (1, false));
        let folder = tempfile::tempdir().expect("a folder");
        for batch in [
            None,
            Some(Batch {
                eval_concs: vec![2, 4],
                completed_eval_concs: vec![4],
                failed_eval_concs: vec![2],
            }),
        ] {
            meta.batch = batch;
            meta.write(folder.path()).expect("a file");
            assert_eq!(MetaEnv::read(&folder.path().join(FILE)), Ok(meta.clone()));
        }
    }
}
