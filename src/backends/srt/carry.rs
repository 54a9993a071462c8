//! What of a job its recipe carries beside the deployment: the context of an eval, the eval itself, and the settings
//! of a replay. A job that a recipe cannot carry is refused before anything starts.

use super::accuracy;
use super::recipe::Request;
use super::sides::sides;
use super::yaml::Yaml;
use crate::config::master::search_space::Nodes;
use crate::config::problem::{Problem, Problems};
use crate::config::recipe::Schema;
use crate::step::eval::client::given::GIVEN;

/// The job's variables that a replay's client reads from its recipe, whose `benchmark.env` wins over what the job
/// inherits.
const REPLAY: [&str; 12] = [
    "AIPERF_EXPERIMENTAL_FAST",
    "CONC",
    "CONC_LIST",
    "DURATION",
    "FRAMEWORK",
    "KV_OFFLOADING",
    "KV_OFFLOAD_BACKEND",
    "KV_OFFLOAD_BACKEND_METADATA",
    "MODEL_PREFIX",
    "PRECISION",
    "RESULT_FILENAME",
    "TOTAL_CPU_DRAM_GB",
];
/// What a replay's client in srt-slurm's container needs to be told of that container, unless the recipe does: the port
/// of its frontend, its folder of logs, and where the checkout is mounted.
const CONTAINER: [(&str, &str); 3] = [
    ("PORT", "8000"),
    ("RESULT_DIR", "/logs/agentic"),
    ("INFMAX_CONTAINER_WORKSPACE", "/infmax-workspace"),
];
/// Runs the job's eval, whatever its framework: srt-slurm's own runs lm-eval alone. A constant text: what the job asks
/// for is read from its envelope. Schema 2 takes the words of a command, and starts no shell of its own.
const POST_EVAL: &str = "cd /infmax-workspace && exec .sweepctl/bin/sweepctl eval run --endpoint http://localhost:8000 \
                         --envelope .sweepctl/envelope.json --stage-to /logs/eval_results";
/// What an eval is told beside its row, by who starts the launch.
const OF_THE_LAUNCH: [&str; 6] = [
    "EVAL_TASKS_DIR",
    "EVAL_TASKS",
    "EVAL_ENDPOINT_READY_TIMEOUT_SECONDS",
    "HF_ENDPOINT",
    "HF_HUB_OFFLINE",
    "HF_TOKEN",
];
/// The library that evals of schema 1 go through, from the checkout's root.
const LIBRARY: &str = "benchmarks/benchmark_lib.sh";

/// Whether a recipe can carry the job.
///
/// # Errors
/// Every reason why not.
pub(super) fn check(request: &Request<'_>) -> Result<(), Problems> {
    let row = request.row;
    let mut problems = Problems::default();
    let points = row.conc.points();
    if row.seq().is_none() && matches!(row.topology.nodes, Nodes::Multi(_)) && points.len() != 1 {
        let message = format!(
            "a replay on many nodes has exactly one concurrency, the row has {}",
            points.len()
        );
        problems.push(Problem::file("", message).hint("plan it anew: each of its points is a row"));
    }
    if let Err(refused) = accuracy::check_row(row) {
        problems.extend(refused);
    }
    let runs_framework = row.runs_eval() && row.benchmark().is_none();
    if runs_framework && request.schema == Schema::One && !request.workspace.join(LIBRARY).is_file() {
        let message = format!("the job runs an eval, for which this srt-slurm needs `{LIBRARY}` in the checkout");
        let hint = "add the shell library to the repository; its docs are docs/launch.md, under `srt-slurm`";
        problems.push(Problem::file(LIBRARY, message).hint(hint));
    }
    problems.into_result()
}

/// Writes into a recipe what the job asks for.
///
/// # Errors
/// An eval's context, where the recipe names no engine whose flag for it is known.
pub(super) fn carry(recipe: &mut Yaml, request: &Request<'_>) -> Result<(), Problem> {
    let row = request.row;
    let value = |name: &str| request.environment.get(name).unwrap_or_default();
    if let Some(context) = request.environment.get("EVAL_MAX_MODEL_LEN").filter(|v| !v.is_empty())
        && matches!(row.topology.nodes, Nodes::Single(_))
        && row.eval.eval_only
    {
        self::context(recipe, request, context)?;
    }
    if row.seq().is_none() {
        for name in REPLAY {
            recipe.set(&["benchmark", "env", name], value(name));
        }
        for (name, default) in CONTAINER {
            if recipe.get(&["benchmark", "env", name]).is_none() {
                recipe.set(&["benchmark", "env", name], default);
            }
        }
    }
    // Schema 1 has no such block: there the shell library does it, told by the environment that the job inherits.
    if row.runs_eval() && row.benchmark().is_none() && request.schema == Schema::Two {
        if recipe.get(&["post_eval", "command"]).is_none() {
            let words = ["bash", "-c", POST_EVAL].map(Yaml::from);
            recipe.set(&["post_eval", "command"], Yaml::List(words.into()));
        }
        recipe.set(&["post_eval", "passthrough_env"], passed(recipe, request));
    }
    Ok(())
}

/// The names of the variables that the eval sees: what the recipe passes, the job's own, and the launch's.
fn passed(recipe: &Yaml, request: &Request<'_>) -> Yaml {
    let mut names: Vec<&str> = match recipe.get(&["post_eval", "passthrough_env"]) {
        Some(Yaml::List(names)) => names
            .iter()
            .filter_map(|name| match name {
                Yaml::Text(name) => Some(name.as_str()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    // Paths of the host, which mean nothing in the container.
    let of_host = |name: &str| matches!(name, "INFMAX_WORKSPACE" | "SWEEPCTL_ENVELOPE" | "RESULT_DIR");
    let own = request.environment.iter().map(|(name, _)| name);
    for name in own
        .chain([accuracy::EVAL_CONCURRENT_REQUESTS])
        .chain(OF_THE_LAUNCH)
        .chain(GIVEN)
        .filter(|name| !of_host(name))
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Yaml::List(names.into_iter().map(Yaml::from).collect())
}

/// Sets the context of the one worker that an eval runs against.
fn context(recipe: &mut Yaml, request: &Request<'_>, context: &str) -> Result<(), Problem> {
    let engine = match request.schema {
        Schema::One => recipe.get(&["backend", "type"]),
        Schema::Two => recipe.get(&["engine", "type"]).or_else(|| recipe.get(&["engine"])),
    };
    let engine = match engine {
        Some(Yaml::Text(engine)) => engine.clone(),
        // Schema 1 takes a recipe without a backend for one of SGLang.
        _ if request.schema == Schema::One => "sglang".to_owned(),
        _ => String::new(),
    };
    let flags: &[&str] = match engine.as_str() {
        "sglang" => &["context-length"],
        "vllm" => &["max-model-len"],
        "trtllm" => &["max_seq_len", "max_num_tokens"],
        other => {
            let message =
                format!("the eval needs a context of {context} tokens, and the flag of `{other}` is not known");
            return Err(Problem::file("", message).hint("name an engine in the recipe: sglang, vllm or trtllm"));
        }
    };
    let Ok(tokens) = context.parse::<u64>() else {
        let message = format!("EVAL_MAX_MODEL_LEN `{context}` is no number");
        return Err(Problem::file("", message).hint("write tokens, such as 16384"));
    };
    for side in sides(&request.row.topology) {
        let config = format!("{engine}_config");
        let place = match request.schema {
            Schema::One => ["backend", &config, super::schema1::mode(side.name)],
            Schema::Two => ["roles", side.name, "args"],
        };
        for flag in flags {
            // The same option under its other spelling would stand beside it.
            for spelling in [flag.replace('-', "_"), flag.replace('_', "-")] {
                recipe.remove(&[&place[..], &[spelling.as_str()]].concat());
            }
            recipe.set(&[&place[..], &[flag]].concat(), tokens);
        }
    }
    Ok(())
}
