//! `sweepctl eval validate`: the gate of an eval.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use globset::GlobBuilder;
use serde::Serialize;

use super::inputs::both;
use super::{Told, envelope_file, output};
use crate::backends::slurm;
use crate::config::clusters::{Backend, Clusters};
use crate::config::problem::{Problem, Problems};
use crate::config::recipe::asked;
use crate::config::source::Source;
use crate::config::thresholds::Thresholds;
use crate::matrix::envelope::Envelope;
use crate::runner;
use crate::step::launch;
use crate::step::places::{LAUNCHED, Places, launched};
use crate::step::results::answers::Answers;
use crate::step::results::{file, meta};
use crate::step::stage;
use crate::step::validate::{self, Asked, Check, Report, Request, Silence};

/// The names of result files.
const RESULTS: &str = "results*.json";

/// `eval validate`
#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The thresholds [default: configs/thresholds.yaml, else the built-in ones]
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
    /// The metadata of the results [default: meta_env.json where the results lie]
    #[arg(long, value_name = "FILE")]
    meta_env: Option<PathBuf>,
    /// The result files; `*` and `?` in the file name [default: results*.json here, with --envelope else where an upload
    /// finds them]
    #[arg(long, value_name = "GLOB")]
    results_glob: Option<String>,
    /// The model's short name [default: the envelope's, else that of the metadata, else $MODEL_PREFIX]
    #[arg(long, value_name = "PREFIX")]
    model_prefix: Option<String>,
    /// The score that passes where no threshold names the task, 0 to 1
    #[arg(long, value_name = "SCORE", default_value_t = validate::MIN_SCORE, value_parser = share)]
    min_score: f64,
    /// Check the metrics whose name starts so, instead of the score's
    #[arg(long, value_name = "METRIC")]
    metric_prefix: Option<String>,
    /// The concurrencies that were asked for, with spaces between [default: the envelope's]
    #[arg(long, value_name = "CONCS")]
    expected_concs: Option<String>,
    /// The envelope of the job
    #[arg(long, value_name = "FILE")]
    envelope: Option<PathBuf>,
    /// The clusters file, which may name the task of its runners' evals
    #[arg(long, value_name = "FILE", default_value = "configs/clusters.yaml")]
    cluster_config: PathBuf,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(format!("{value} is not from 0 to 1"))
    }
}

/// The judgement as JSON.
#[derive(Serialize)]
struct Judgement<'r> {
    passed: bool,
    model_prefix: Option<&'r str>,
    diagnostic: bool,
    answers: Option<Answers>,
    checks: &'r [Check],
    silence: &'r [Silence],
    problems: Vec<&'r str>,
}

impl Validate {
    /// Judges.
    ///
    /// # Errors
    /// Every problem.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let request = self.request()?;
        let recipe = request
            .envelope
            .as_ref()
            .map(|envelope| self.recipe(envelope))
            .transpose();
        let (recipe, problems) = match recipe {
            Ok(recipe) => (recipe.flatten(), Problems::default()),
            Err(problems) => (None, problems),
        };
        let mut report = validate::against(&request, recipe.as_ref());
        report.problems.extend(problems.0);
        runner::summarize(&report.markdown())?;
        self.print(&report)?;
        Problems(report.problems).into_result().map_err(Told)?;
        Ok(())
    }

    fn request(&self) -> Result<Request, Problems> {
        let expected = self.expected_concs.as_deref().map(validate::parse_concs).transpose();
        let envelope = self.envelope.as_deref().map(envelope_file::read).transpose();
        let read = both(Thresholds::here(self.thresholds.as_deref()), envelope);
        let ((thresholds, envelope), expected_concs) = both(read, expected.map_err(Problems::from))?;
        let folder = self.folder(envelope.as_ref());
        let glob = self.results_glob.clone();
        let pattern = glob.unwrap_or_else(|| folder.join(RESULTS).to_string_lossy().into_owned());
        let results = matching(&pattern)?;
        let asked = envelope
            .as_ref()
            .map(|envelope| self.asked(envelope))
            .unwrap_or_default();
        let variable = |name| {
            std::env::var(name)
                .ok()
                .filter(|value| !value.is_empty() && value != meta::UNKNOWN)
        };
        Ok(Request {
            thresholds,
            min_score: self.min_score,
            model_prefix: self.model_prefix.clone().filter(|prefix| !prefix.is_empty()),
            fallback_prefix: variable("MODEL_PREFIX"),
            metric_prefix: self.metric_prefix.clone(),
            expected_concs,
            limited: variable("EVAL_LIMIT").is_some_and(|limit| validate::is_limit(&limit)),
            envelope,
            asked,
            run: (variable("GITHUB_RUN_ID"), variable("GITHUB_RUN_ATTEMPT")),
            meta_env: self.metadata(&folder, &results),
            results,
            pattern,
        })
    }

    /// The metadata: what is named, else what lies beside the results, else what must lie in the job's folder.
    fn metadata(&self, folder: &Path, results: &[PathBuf]) -> PathBuf {
        let beside = || {
            let beside = results.first()?.with_file_name(meta::NAME);
            beside.exists().then_some(beside)
        };
        let named = self.meta_env.clone().or_else(beside);
        named.unwrap_or_else(|| folder.join(meta::NAME))
    }

    /// The folder of the results where none is named: the first of the job's that holds its set, as an upload takes it.
    fn folder(&self, envelope: Option<&Envelope>) -> PathBuf {
        let here = PathBuf::new();
        let Some(envelope) = envelope.filter(|_| self.meta_env.is_none() && self.results_glob.is_none()) else {
            return here;
        };
        let launched = launched(&std::env::var(LAUNCHED).unwrap_or_default());
        let places = Places::of(&here).evals(launched);
        let own = |folder: &PathBuf| {
            let meta = meta::MetaEnv::read(&folder.join(meta::NAME));
            meta.is_ok_and(|meta| !matches!(meta.owner(envelope, ("", ""), None), meta::Owner::Other(_)))
        };
        // What is wrong with a set is said of the one that is there.
        let there = |folder: &PathBuf| {
            folder.join(meta::NAME).exists() || !stage::find(folder, &[RESULTS], false).files.is_empty()
        };
        let found = places
            .iter()
            .find(|folder| own(folder))
            .or_else(|| places.iter().find(|folder| there(folder)));
        found.cloned().unwrap_or(here)
    }

    /// The tasks of a job, as its launch chose them: what EVAL_TASKS_DIR or EVAL_TASKS names, else its suite's, else those
    /// of its cluster, by the clusters file.
    fn asked(&self, envelope: &Envelope) -> Asked {
        let given = launch::given_task(envelope, &Clusters::or_none(&self.cluster_config), &runner(envelope));
        Asked::of(envelope, given.as_deref(), &[PathBuf::from(".")])
    }

    /// What the recipe of a job asks of its accuracy benchmark; `None` for every other eval.
    ///
    /// # Errors
    /// A recipe that cannot be read or runs something else: nothing then says what has to be there.
    fn recipe(&self, envelope: &Envelope) -> Result<Option<asked::Asked>, Problems> {
        let row = &envelope.row;
        let Some(suite) = row.benchmark() else { return Ok(None) };
        let suite = asked::suite(suite)?;
        let Some(name) = row.srt_recipe() else {
            let message = "the row names no recipe, so nothing says what its benchmark has to leave";
            return Err(Problem::file("", message).hint("name one as `eval-srt-recipe`").into());
        };
        let clusters = Clusters::or_none(&self.cluster_config);
        let path = match clusters.of(&runner(envelope)).map(|(_, cluster)| &cluster.backend) {
            Some(Backend::Srt(srt)) => srt.recipe(&name),
            _ => name.into_owned(),
        };
        let file = slurm::plain_file(Path::new(""), Path::new(&path))?;
        let source = Arc::new(Source::read_as(&file, &path)?);
        let asked = asked::asked(&source, suite)?;
        let limit = envelope.overrides.asked.eval_limit.as_deref().unwrap_or("");
        Ok(Some(match limit.parse::<u64>() {
            Ok(limit) if limit > 0 => asked.limited(limit),
            _ => asked,
        }))
    }

    fn print(&self, report: &Report) -> anyhow::Result<()> {
        if output::wants_json(self.json) {
            return output::json(&Judgement {
                passed: report.passed(),
                model_prefix: report.model_prefix.as_deref(),
                diagnostic: report.diagnostic,
                answers: report.answers,
                checks: &report.checks,
                silence: &report.silence,
                problems: report.problems.iter().map(|problem| problem.message.as_str()).collect(),
            });
        }
        // A table without a row says nothing.
        if !report.checks.is_empty() {
            output::text(&output::table(&Report::HEADER, &report.rows()))?;
        }
        if let Some(answers) = report.answers {
            output::text(&format!("{answers}\n"))?;
        }
        match report.diagnostic {
            true => output::text("diagnostic: a limit on samples was set, so this run measures no model\n"),
            false => Ok(()),
        }
    }
}

/// The runner that the job ran on.
fn runner(envelope: &Envelope) -> String {
    let runner = std::env::var("RUNNER_NAME").ok().filter(|name| !name.is_empty());
    runner.unwrap_or_else(|| envelope.runs_on.clone())
}

/// The files that a pattern names, sorted; only the last part of a pattern may hold `*` and `?`.
fn matching(pattern: &str) -> Result<Vec<PathBuf>, Problem> {
    let path = Path::new(pattern);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let refused = |why: String| Problem::file("", format!("--results-glob `{pattern}`: {why}"));
    let name = path.file_name().map(|name| name.to_string_lossy());
    let name = name.ok_or_else(|| refused("it names no file".to_owned()))?;
    let glob = GlobBuilder::new(&name)
        .build()
        .map_err(|error| refused(error.to_string()))?
        .compile_matcher();
    let listed = file::walk(folder.unwrap_or(Path::new(".")), 0)
        .map_err(|error| refused(error.to_string()).hint("the pattern may stand for files, not for folders"))?;
    let names = listed
        .into_iter()
        .flat_map(|folder| folder.names)
        .filter(|name| glob.is_match(name));
    Ok(names
        .map(|name| folder.map_or_else(|| PathBuf::from(&name), |folder| folder.join(&name)))
        .collect())
}
