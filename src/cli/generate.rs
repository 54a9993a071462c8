//! `sweepctl generate`: rows from configs, without a changelog.

use std::path::Path;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum, error::ErrorKind};
use globset::GlobBuilder;

use super::inputs::{Configs, InputArgs};
use super::rows::{self, EmitArgs};
use super::{annotate, output, runnable, usage};
use crate::config::asked::Asked;
use crate::config::master::{Config, Master};
use crate::config::problem::{Problem, Problems, nearest};
use crate::config::runners::Runners;
use crate::config::source::Source;
use crate::config::types::{NodeKind, ScenarioType, SeqLen};
use crate::matrix::bucket;
use crate::matrix::evals::{self, EvalMode};
use crate::matrix::expand::{Bounds, Expansion, RunnerFilter, known_labels};
use crate::matrix::row::Row;
use crate::plural;

/// The two ways to choose configs.
#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Every config that passes the filters
    FullSweep(FullSweep),
    /// The configs of some keys
    TestConfig(TestConfig),
}

/// What both ways share.
#[derive(Debug, Args)]
struct Common {
    #[command(flatten)]
    rows: RowArgs,
    #[command(flatten)]
    emit: EmitArgs,
    /// Throughput only
    #[arg(long, conflicts_with_all = ["evals_only", "all_evals"], help_heading = "How to sweep")]
    no_evals: bool,
    #[command(flatten)]
    asked: Asked,
}

/// Which configs are read, and which of their rows are kept.
#[derive(Debug, Args)]
pub(super) struct RowArgs {
    #[command(flatten)]
    pub(super) inputs: InputArgs,
    /// Keep these scenarios
    #[arg(long, num_args = 1.., value_name = "SCENARIO")]
    scenario_type: Vec<ScenarioArg>,
    /// Keep these fixed sequence lengths; agentic rows stay
    #[arg(long, num_args = 1.., value_name = "LENGTHS")]
    seq_lens: Vec<SeqLenArg>,
    /// Replace each runner label by its runners whose name contains this text
    #[arg(long, value_name = "TEXT")]
    runner_node_filter: Option<String>,
    /// Print JSON, also on a terminal
    #[arg(long)]
    pub(super) json: bool,
}

/// `generate full-sweep`
#[derive(Debug, Args)]
pub(crate) struct FullSweep {
    #[command(flatten)]
    common: Common,
    /// Keep configs whose key, not whose `model-prefix`, starts with one of these
    #[arg(long, num_args = 1.., value_name = "PREFIX")]
    model_prefix: Vec<String>,
    /// Keep these precisions
    #[arg(long, num_args = 1.., value_name = "PRECISION")]
    precision: Vec<String>,
    /// Keep these frameworks
    #[arg(long, num_args = 1.., value_name = "FRAMEWORK")]
    framework: Vec<String>,
    /// Keep these runner labels
    #[arg(long, num_args = 1.., value_name = "LABEL")]
    runner_type: Vec<String>,
    /// The factor between the points of a range
    #[arg(long, value_name = "FACTOR", default_value_t = 2, allow_negative_numbers = true)]
    step_size: i64,
    /// The lowest concurrency
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    min_conc: Option<i64>,
    /// The highest concurrency; a range that goes on above it gets it as its last point
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_conc: Option<i64>,
    /// Skip single-node fixed entries of a larger tensor parallel size
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_tp: Option<i64>,
    /// Cap the expert parallel size of single-node fixed entries
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_ep: Option<i64>,
    /// Keep single-node configs [default: both kinds]
    #[arg(long)]
    single_node: bool,
    /// Keep multi-node configs [default: both kinds]
    #[arg(long)]
    multi_node: bool,
}

/// `generate test-config`
#[derive(Debug, Args)]
pub(crate) struct TestConfig {
    #[command(flatten)]
    common: Common,
    /// Config keys, exact or with `*` and `?`, in order
    #[arg(long, num_args = 1.., required = true, value_name = "KEY")]
    config_keys: Vec<String>,
    /// Keep these concurrencies
    #[arg(long, num_args = 1.., value_name = "N", allow_negative_numbers = true)]
    conc: Vec<i64>,
    /// Keep the rows of these experiment names; each must name one row
    #[arg(long, num_args = 1.., value_name = "NAME")]
    exp_names: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScenarioArg {
    FixedSeqLen,
    AgenticCoding,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SeqLenArg {
    #[value(name = "1k1k")]
    OneKOneK,
    #[value(name = "8k1k")]
    EightKOneK,
}

/// How evals are chosen, by the flags `--no-evals`, `--all-evals` and `--evals-only`.
pub(super) fn mode(no_evals: bool, all_evals: bool, evals_only: bool) -> EvalMode {
    match (no_evals, all_evals, evals_only) {
        (true, ..) => EvalMode::NoEvals,
        (_, true, _) => EvalMode::AllEvals,
        (.., true) => EvalMode::EvalsOnly,
        _ => EvalMode::Mark,
    }
}

impl RowArgs {
    pub(super) fn expansion(&self, label_too: bool) -> Expansion {
        let scenario = |arg: &ScenarioArg| match arg {
            ScenarioArg::FixedSeqLen => ScenarioType::FixedSeqLen,
            ScenarioArg::AgenticCoding => ScenarioType::AgenticCoding,
        };
        let lengths = |arg: &SeqLenArg| match arg {
            SeqLenArg::OneKOneK => SeqLen::ONE_K_ONE_K,
            SeqLenArg::EightKOneK => SeqLen::EIGHT_K_ONE_K,
        };
        let mut expansion = Expansion {
            seq_lens: (!self.seq_lens.is_empty()).then(|| self.seq_lens.iter().map(lengths).collect()),
            runner_filter: self.runner_node_filter.as_ref().map(|text| RunnerFilter {
                text: text.clone(),
                label_too,
            }),
            ..Expansion::default()
        };
        if !self.scenario_type.is_empty() {
            expansion.scenarios = self.scenario_type.iter().map(scenario).collect();
        }
        expansion
    }
}

impl Common {
    /// The rows with their evals, as the flags ask.
    fn evaluated(&self, rows: Vec<Row>, configs: &Configs) -> Result<Vec<Row>, Problems> {
        let policy = self.rows.inputs.policy.chosen(&configs.policies)?;
        let mode = mode(self.no_evals, self.asked.all_evals, self.asked.evals_only);
        Ok(evals::apply(rows, policy, mode, self.asked.trim_conc))
    }

    fn print(&self, rows: &[Row]) -> anyhow::Result<()> {
        if output::wants_json(self.rows.json) && !self.emit.emits() {
            return output::json(&rows);
        }
        // Without a changelog every eval means nothing else.
        let asked = Asked {
            evals_only: self.asked.evals_only || self.asked.all_evals,
            ..self.asked.clone()
        };
        let buckets = bucket::of_rows(rows, &asked)?;
        if self.emit.emits() {
            let runners = Source::read(Path::new(&self.rows.inputs.runner_config)).map_err(Problems::from)?;
            runnable::check(rows, &Runners::load(&Arc::new(runners))?, &runnable::work_tree)?;
            return self.emit.write(&buckets, None, &asked, self.rows.json);
        }
        output::text(&rows::buckets(&buckets))
    }
}

impl Generate {
    /// Generates and prints the rows.
    ///
    /// # Errors
    /// Wrong usage, and everything wrong with the inputs.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (Self::FullSweep(FullSweep { common, .. }) | Self::TestConfig(TestConfig { common, .. })) = &self;
        common.emit.check(&common.asked)?;
        common.print(&self.rows()?)
    }

    /// Generates the rows.
    ///
    /// # Errors
    /// As [`Generate::run`].
    pub(crate) fn rows(&self) -> anyhow::Result<Vec<Row>> {
        match self {
            Self::FullSweep(sweep) => sweep.rows(),
            Self::TestConfig(test) => test.rows(),
        }
    }
}

impl FullSweep {
    fn rows(&self) -> anyhow::Result<Vec<Row>> {
        if self.step_size <= 1 {
            return Err(usage(ErrorKind::ValueValidation, "--step-size must be greater than 1"));
        }
        if self.min_conc.zip(self.max_conc).is_some_and(|(min, max)| min > max) {
            let message = "--min-conc must be less than or equal to --max-conc";
            return Err(usage(ErrorKind::ValueValidation, message));
        }
        let configs = self.common.rows.inputs.files()?.load()?;
        let (master, runners) = (&configs.master, &configs.runners);
        known_labels(self.runner_type.iter().map(String::as_str), runners)?;
        let mut expansion = self.common.rows.expansion(false);
        expansion.step = self.step_size.unsigned_abs();
        expansion.bounds = Bounds {
            min_conc: self.min_conc,
            max_conc: self.max_conc,
            max_tp: self.max_tp,
            max_ep: self.max_ep,
        };
        expansion.node_kinds = match (self.single_node, self.multi_node) {
            (true, false) => vec![NodeKind::Single],
            (false, true) => vec![NodeKind::Multi],
            _ => expansion.node_kinds,
        };
        annotate::warn(&self.idle_filters(master));
        let chosen = master.values().filter(|config| self.keeps(config));
        let rows = expansion.rows(chosen, runners)?;
        Ok(self.common.evaluated(rows, &configs)?)
    }

    /// The values of filters that no config has: they keep nothing, which is no fault but seldom meant.
    fn idle_filters(&self, master: &Master) -> Vec<Problem> {
        let all = |part: fn(&Config) -> &String| master.values().map(part).map(String::as_str).collect::<Vec<_>>();
        let filters = [
            ("--precision", &self.precision, all(|config| &config.precision)),
            ("--framework", &self.framework, all(|config| &config.framework)),
            ("--runner-type", &self.runner_type, all(|config| &config.runner)),
        ];
        let mut idle = Vec::new();
        for (flag, wanted, known) in filters {
            for value in wanted.iter().filter(|value| !known.contains(&value.as_str())) {
                let problem = Problem::file("", format!("{flag} `{value}` keeps no config"));
                idle.push(problem.hint(nearest(value, known.iter().copied())));
            }
        }
        let keys = all(|config| &config.key);
        for prefix in self
            .model_prefix
            .iter()
            .filter(|prefix| !keys.iter().any(|key| key.starts_with(*prefix)))
        {
            let problem = Problem::file("", format!("--model-prefix `{prefix}` keeps no config"));
            idle.push(problem.hint(nearest(prefix, keys.iter().copied())));
        }
        idle
    }

    fn keeps(&self, config: &Config) -> bool {
        let any = |wanted: &[String], value: &String| wanted.is_empty() || wanted.contains(value);
        let prefixes = &self.model_prefix;
        (prefixes.is_empty() || prefixes.iter().any(|prefix| config.key.starts_with(prefix.as_str())))
            && any(&self.precision, &config.precision)
            && any(&self.framework, &config.framework)
            && any(&self.runner_type, &config.runner)
    }
}

impl TestConfig {
    fn rows(&self) -> anyhow::Result<Vec<Row>> {
        let inputs = self.common.rows.inputs.files()?.load()?;
        let configs = matching(&inputs.master, &self.config_keys)?;
        let rows = self.expanded(&configs, &inputs.runners)?;
        Ok(self.common.evaluated(named(rows, &self.exp_names)?, &inputs)?)
    }

    fn expanded(&self, configs: &[&Config], runners: &Runners) -> Result<Vec<Row>, Problems> {
        let mut expansion = self.common.rows.expansion(true);
        if !self.conc.is_empty() {
            expansion.conc = Some(self.conc.iter().filter_map(|c| u64::try_from(*c).ok()).collect());
        }
        expansion.rows(configs.iter().copied(), runners)
    }
}

/// The configs that keys and globs name, in their order, each once; a glob's matches in file order.
pub(super) fn matching<'m>(master: &'m Master, keys: &[String]) -> Result<Vec<&'m Config>, Problems> {
    let mut problems = Problems::default();
    let mut chosen: Vec<&Config> = Vec::new();
    for key in keys {
        let found: Vec<&Config> = if key.contains(['*', '?']) {
            // Only `*` and `?` are special: what else a glob may mean is escaped.
            let pattern: String = key
                .chars()
                .flat_map(|c| {
                    let escape = matches!(c, '[' | ']' | '{' | '}' | '\\' | '!' | ',');
                    escape.then_some('\\').into_iter().chain([c])
                })
                .collect();
            match GlobBuilder::new(&pattern)
                .literal_separator(false)
                .backslash_escape(true)
                .build()
            {
                Ok(glob) => {
                    let matcher = glob.compile_matcher();
                    master.values().filter(|config| matcher.is_match(&config.key)).collect()
                }
                Err(error) => {
                    problems.push(Problem::file("", format!("`{key}` is no pattern: {error}")));
                    continue;
                }
            }
        } else {
            master.get(key).into_iter().collect()
        };
        if found.is_empty() {
            let what = if key.contains(['*', '?']) { "pattern" } else { "key" };
            let known = master.keys().map(String::as_str);
            let literal = key.replace(['*', '?'], "");
            problems.push(
                crate::findings::plan::UNKNOWN_CONFIG
                    .file("", format!("no config matches the {what} `{key}`"))
                    .hint(nearest(&literal, known)),
            );
        }
        for config in found {
            if !chosen.iter().any(|c| c.key == config.key) {
                chosen.push(config);
            }
        }
    }
    problems.into_result()?;
    Ok(chosen)
}

/// The rows of exact experiment names, each of which names one row.
fn named(rows: Vec<Row>, names: &[String]) -> Result<Vec<Row>, Problems> {
    if names.is_empty() {
        return Ok(rows);
    }
    let mut problems = Problems::default();
    for name in names {
        let count = rows.iter().filter(|row| row.exp_name == *name).count();
        if count != 1 {
            let message = format!(
                "--exp-names `{name}` matches {}, it must match one row",
                plural::count(count, "row")
            );
            let hint = match count {
                0 => nearest(name, rows.iter().map(|row| row.exp_name.as_str())),
                _ => "narrow the rows with --conc, --seq-lens or --config-keys".to_owned(),
            };
            problems.push(Problem::file("", message).hint(hint));
        }
    }
    problems.into_result()?;
    Ok(rows.into_iter().filter(|row| names.contains(&row.exp_name)).collect())
}
