//! `sweepctl evidence`: the checklist that results pass before they are compared or published.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{Told, output};
use crate::config::problem::{Problem, Problems};
use crate::config::thresholds::Thresholds;
use crate::step::evidence::{self, Line, PROVENANCE, Request};

const AFTER_HELP: &str = "\
A check passes, fails, or does not apply to what was planned; every line names the files that show it.

Examples:
  sweepctl evidence results-of-the-run
      the checklist of the artifacts in a folder
  sweepctl evidence 1234567890
      the same of ./run-1234567890, and of that run only
  sweepctl evidence results-of-the-run --badge
      one line of Markdown for a README";

/// Check whether what a run left is evidence
///
/// The artifacts are those of one run, each in a folder of its name, with the plan in `plan` and what GitHub says of the
/// run in `run-provenance.json`. Nothing is downloaded.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Evidence {
    /// The folder that the artifacts were downloaded to, or the run's number: then the folder run-<RUN> here
    #[arg(value_name = "DIR|RUN")]
    what: PathBuf,
    /// The plan: its folder, its index, or a list of envelopes [default: DIR/plan]
    #[arg(long, value_name = "FILE|DIR")]
    plan: Option<PathBuf>,
    /// The thresholds [default: configs/thresholds.yaml, else the built-in ones]
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
    /// Print one line of Markdown instead
    #[arg(long, conflicts_with = "json")]
    badge: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

impl Evidence {
    /// Goes through the checklist.
    ///
    /// # Errors
    /// A folder that is not there, and every check that fails.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let (dir, run) = self.place().map_err(Problems::from)?;
        let evidence = evidence::look(&Request {
            dir,
            plan: self.plan.clone(),
            run,
            thresholds: Thresholds::here(self.thresholds.as_deref())?,
        })?;
        if self.badge {
            output::text(&format!("{}\n", evidence.badge()))?;
        } else if output::wants_json(self.json) {
            output::json(&evidence)?;
        } else {
            output::text(&output::table(&evidence::Evidence::HEAD, &evidence.rows()))?;
        }
        let problems: Vec<Problem> = evidence.failing().map(problem).collect();
        Problems(problems).into_result().map_err(Told)?;
        Ok(())
    }

    /// The folder, and the run where one was named.
    fn place(&self) -> Result<(PathBuf, Option<u64>), Problem> {
        if self.what.is_dir() {
            return Ok((self.what.clone(), None));
        }
        let name = self.what.display().to_string();
        let Some(run) = name.parse::<u64>().ok().filter(|run| *run > 0) else {
            let problem = Problem::file(&name, format!("the folder `{name}` is not found"));
            return Err(problem.hint("name the folder that the artifacts of a run were downloaded to"));
        };
        let folder = format!("run-{run}");
        if Path::new(&folder).is_dir() {
            return Ok((PathBuf::from(folder), Some(run)));
        }
        let message = format!("the artifacts of the run {run} are not here: there is no folder `{folder}`");
        Err(Problem::file(&folder, message).hint(how(run)))
    }
}

/// How a run's artifacts are brought here.
fn how(run: u64) -> String {
    let folder = format!("run-{run}");
    format!(
        "fetch them: `sweepctl fetch plan --out {folder} --run-id {run}`, then `sweepctl fetch --plan {folder}/plan \
         --kind bmk,bmk_agentic,agentic,eval,server_logs --optional results_bmk --optional eval_results_all --optional \
         ledger --out {folder} --run-id {run}`; and `gh run view {run} --json \
         url,databaseId,attempt,headSha,event,status,conclusion,jobs > {folder}/{PROVENANCE}`"
    )
}

fn problem(line: &Line) -> Problem {
    let file = line
        .findings
        .first()
        .map(|finding| finding.file.as_str())
        .unwrap_or_default();
    let message = format!("{}: {}", line.check, line.why);
    Problem::file(file, message).hint(format!("what is asked: {}", line.asks))
}
