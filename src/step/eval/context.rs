//! How much context an eval gets, how much of it an answer may take, and how a server is told.

use std::path::Path;

use serde::Serialize;

use super::job::Job;
use super::model_config::{FALLBACK, MOUNT, native};
use crate::config::policy::EvalContext;
use crate::config::problem::{Problem, Problems};

/// Tokens that are kept for the question where the context is long enough.
const QUESTION: u64 = 4096;
/// The longest answer, in tokens.
const MAX_ANSWER: u64 = 16_384;
/// Tokens of a chat template, where the context follows from the sequence lengths.
const TEMPLATE: u64 = 20;
/// The length that ATOM's recipes start from.
const ATOM_BASE: u64 = 10_240;
/// The factor of [`EvalContext::FiveTimes`].
const FACTOR: u64 = 5;

/// A serving engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Engine {
    /// SGLang.
    Sglang,
    /// vLLM.
    Vllm,
    /// AMD's ATOM.
    Atom,
    /// TensorRT-LLM.
    TrtLlm,
}

impl Engine {
    /// The engine of a framework's name: the name is split at `-`, and the first part that is an engine decides. So
    /// `dynamo-sglang`, `sglang-disagg` and `llmd-vllm` need no table of their own.
    #[must_use]
    pub(crate) fn of(framework: &str) -> Option<Self> {
        framework.to_ascii_lowercase().split('-').find_map(|part| match part {
            "sglang" => Some(Self::Sglang),
            "vllm" => Some(Self::Vllm),
            "atom" => Some(Self::Atom),
            "trt" | "trtllm" | "tensorrt" => Some(Self::TrtLlm),
            _ => None,
        })
    }

    /// The server's arguments for a context.
    #[must_use]
    pub(crate) fn arguments(self, context: u64) -> Vec<String> {
        let names: &[&str] = match self {
            Self::Sglang => &["--context-length"],
            Self::Vllm | Self::Atom => &["--max-model-len"],
            Self::TrtLlm => &["--max_seq_len", "--max_num_tokens"],
        };
        names
            .iter()
            .flat_map(|name| [(*name).to_owned(), context.to_string()])
            .collect()
    }
}

/// The context of an eval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Context {
    /// Question and answer together, in tokens.
    pub context: u64,
    /// The answer alone, in tokens.
    pub output_budget: u64,
    /// The model's own maximum, where its config could be read.
    pub native_max: Option<u64>,
    /// The engine, where the framework's name holds one.
    pub engine: Option<Engine>,
    /// What its server is started with; empty where the recipe keeps its own context.
    pub server_args: Vec<String>,
    /// What could not be found out.
    #[serde(skip)]
    pub warnings: Vec<Problem>,
}

/// The output budget of a context: what a question leaves, or half of a short one; never above 16,384.
#[must_use]
pub(crate) fn output_budget(context: u64) -> u64 {
    let left = if context > QUESTION {
        context - QUESTION
    } else {
        context / 2
    };
    left.min(MAX_ANSWER)
}

/// The context of a job's eval under a policy.
///
/// EVAL_MAX_MODEL_LEN counts as it stands. Otherwise the policy's length is capped at the model's native maximum,
/// for which [`FALLBACK`] stands where it cannot be read. Agentic and multi-node jobs keep their recipe's context:
/// their servers get no argument, and no policy lengthens it.
///
/// # Errors
/// Variables that are no numbers.
pub(crate) fn of(job: &Job, policy: EvalContext) -> Result<Context, Problems> {
    of_mounted(job, policy, Path::new(MOUNT))
}

/// [`of`] with the checkpoint mounted elsewhere.
///
/// # Errors
/// As [`of`].
pub(crate) fn of_mounted(job: &Job, policy: EvalContext, mount: &Path) -> Result<Context, Problems> {
    let mut problems = Problems::default();
    let keeps = keeps_recipe(job).unwrap_or_else(|found| {
        problems.extend(found);
        true
    });
    let mut number = |name| {
        // Jobs without lengths say 0, since scripts take empty for missing.
        if keeps && job.text(name) == Some("0") {
            return None;
        }
        job.number(name, 1).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        })
    };
    let explicit = number("EVAL_MAX_MODEL_LEN");
    let lengths = Lengths {
        max_model_len: number("MAX_MODEL_LEN"),
        isl: number("ISL"),
        osl: number("OSL"),
    };
    problems.into_result()?;

    let framework = job.text("FRAMEWORK").unwrap_or_default();
    let engine = Engine::of(framework);
    let mut warnings = Vec::new();
    let mut native_max = None;
    let context = explicit.unwrap_or_else(|| {
        match native(job, mount) {
            Ok(native) => native_max = Some(native.tokens),
            Err(problem) => warnings.push(problem),
        }
        let policy = if keeps { EvalContext::MaxModelLen } else { policy };
        let cap = native_max.unwrap_or(FALLBACK);
        lengths.wanted(policy, engine).map_or(cap, |wanted| wanted.min(cap))
    });
    if engine.is_none() && !framework.is_empty() && !keeps {
        let message = format!("`{framework}` names no engine whose argument for the context is known");
        let hint = format!("start its server with a context of {context}; known: sglang, vllm, atom, trt");
        warnings.push(Problem::file("", message).hint(hint));
    }
    Ok(Context {
        context,
        output_budget: output_budget(context),
        native_max,
        engine,
        server_args: engine
            .filter(|_| !keeps)
            .map(|e| e.arguments(context))
            .unwrap_or_default(),
        warnings,
    })
}

/// What the job says of lengths, in tokens.
struct Lengths {
    max_model_len: Option<u64>,
    isl: Option<u64>,
    osl: Option<u64>,
}

impl Lengths {
    /// The length before the cap; `None` where nothing but the model bounds it.
    fn wanted(&self, policy: EvalContext, engine: Option<Engine>) -> Option<u64> {
        let with_template = || Some(self.isl?.saturating_add(self.osl?).saturating_add(TEMPLATE));
        let base = match (policy, engine) {
            (EvalContext::MaxModelLen, _) => return self.max_model_len,
            (EvalContext::FiveTimes, Some(Engine::Atom)) => Some(ATOM_BASE),
            (EvalContext::FiveTimes, Some(Engine::Vllm | Engine::TrtLlm)) => self.max_model_len.or_else(with_template),
            (EvalContext::FiveTimes, _) => with_template().or(self.max_model_len),
        };
        base.map(|base| base.saturating_mul(FACTOR))
    }
}

/// Whether the job's recipe keeps its own context.
fn keeps_recipe(job: &Job) -> Result<bool, Problems> {
    let mut problems = Problems::default();
    let mut keeps = job.text("SCENARIO_TYPE") == Some("agentic-coding");
    for name in ["IS_AGENTIC", "IS_MULTINODE"] {
        match job.flag(name) {
            Ok(flag) => keeps |= flag == Some(true),
            Err(problem) => problems.push(problem),
        }
    }
    problems.into_result()?;
    Ok(keeps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(policy: EvalContext, native: Option<u64>, vars: &[(&str, &str)]) -> Context {
        let mount = tempfile::tempdir().expect("a folder");
        if let Some(native) = native {
            let text = format!(r#"{{"max_position_embeddings": {native}}}"#);
            std::fs::write(mount.path().join("config.json"), text).expect("a config");
        }
        let job = Job::new(None, vars.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())));
        of_mounted(&job, policy, mount.path()).expect("a context")
    }

    const FIXED: [(&str, &str); 3] = [("ISL", "8192"), ("OSL", "1024"), ("MAX_MODEL_LEN", "9472")];

    fn fixed<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        [&FIXED[..], more].concat()
    }

    #[test]
    fn the_rows_own_length_is_capped_at_the_models() {
        use EvalContext::MaxModelLen;
        assert_eq!(at(MaxModelLen, Some(131_072), &fixed(&[])).context, 9472);
        assert_eq!(at(MaxModelLen, Some(8192), &fixed(&[])).context, 8192);
        assert_eq!(
            at(MaxModelLen, Some(4096), &fixed(&[("EVAL_MAX_MODEL_LEN", "9000")])).context,
            9000
        );
        let unknown = at(MaxModelLen, None, &fixed(&[]));
        assert_eq!((unknown.context, unknown.warnings.len()), (9472, 1));
        assert_eq!(at(MaxModelLen, None, &[]).context, 16_384);
        assert_eq!(at(MaxModelLen, Some(40_000), &[]).context, 40_000);
        // Replays say that they have no lengths, as scripts want to be told it.
        let replay = [("IS_AGENTIC", "1"), ("ISL", "0"), ("OSL", "0"), ("MAX_MODEL_LEN", "0")];
        assert_eq!(at(MaxModelLen, Some(40_000), &replay).context, 40_000);
    }

    #[test]
    fn five_times_starts_from_the_engines_own_length() {
        use EvalContext::FiveTimes;
        let of = |framework| at(FiveTimes, Some(1_000_000), &fixed(&[("FRAMEWORK", framework)])).context;
        assert_eq!(of("sglang"), (8192 + 1024 + 20) * 5);
        assert_eq!(of("atom"), 51_200);
        assert_eq!(of("vllm"), 47_360);
        assert_eq!(of("trt"), 47_360);
        assert_eq!(at(FiveTimes, Some(40_960), &fixed(&[])).context, 40_960);
        let many = at(FiveTimes, Some(1_000_000), &fixed(&[("IS_MULTINODE", "true")]));
        assert_eq!(many.context, 9472);
    }

    #[test]
    fn budgets() {
        for (context, budget) in [(9472, 5376), (4097, 1), (4096, 2048), (2304, 1152), (1_000_000, 16_384)] {
            assert_eq!(output_budget(context), budget, "{context}");
        }
    }

    #[test]
    fn engines_take_the_context_by_their_own_arguments() {
        let args = |framework, more: &[_]| {
            let vars = [&fixed(&[("FRAMEWORK", framework)])[..], more].concat();
            at(EvalContext::MaxModelLen, Some(100_000), &vars).server_args
        };
        assert_eq!(args("sglang", &[]), ["--context-length", "9472"]);
        assert_eq!(args("dynamo-sglang", &[]), ["--context-length", "9472"]);
        assert_eq!(args("llmd-vllm", &[]), ["--max-model-len", "9472"]);
        assert_eq!(args("atom-disagg", &[]), ["--max-model-len", "9472"]);
        assert_eq!(
            args("dynamo-trt", &[]),
            ["--max_seq_len", "9472", "--max_num_tokens", "9472"]
        );
        assert!(args("sglang", &[("IS_AGENTIC", "1")]).is_empty());
        assert!(args("sglang", &[("IS_MULTINODE", "true")]).is_empty());
        let unknown = at(
            EvalContext::MaxModelLen,
            Some(100_000),
            &fixed(&[("FRAMEWORK", "tilert")]),
        );
        assert_eq!((unknown.engine, unknown.warnings.len()), (None, 1));
    }
}
