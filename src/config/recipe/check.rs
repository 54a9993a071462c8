//! `recipe check`: what would fail, or mislead, once the servers of a recipe are up.

use std::sync::Arc;

use super::Schema;
use super::parameters::{Benchmark, EFFORT, Kind, Parameter, Place, THINKING, needs_thinking};
use super::read::{Recipe, Role, field, number, option, text, value};
use crate::config::problem::{Problem, Problems, Span, nearest};
use crate::config::source::Source;
use crate::config::tree::{self, Node, Value};
use crate::findings::{Finding, recipe as findings};

/// What a recipe was found to be.
#[derive(Debug)]
pub struct Checked {
    /// Its schema, 1 or 2.
    pub schema: u8,
    /// Its accuracy benchmark; `None` where it runs another.
    pub benchmark: Option<Benchmark>,
    /// What is wrong and what is worth a look, in the order of the file.
    pub problems: Vec<Problem>,
}

/// Checks a recipe.
///
/// # Errors
/// A text that is no YAML, and what is no recipe of either schema.
pub fn check(source: &Arc<Source>) -> Result<Checked, Problems> {
    let root = tree::parse(source)?;
    let recipe = Recipe::read(source, &root)?;
    let benchmark = recipe.benchmark();
    let mut checker = Checker {
        source,
        recipe: &recipe,
        problems: Vec::new(),
    };
    checker.gpus();
    checker.section();
    if let Some(benchmark) = benchmark {
        checker.parameters(benchmark);
        checker.examples(benchmark);
        checker.context(benchmark);
        checker.fixed_model(benchmark);
        if benchmark == Benchmark::Aime {
            checker.reasoning();
            checker.served_name();
            checker.extraction();
        }
    }
    let mut problems = checker.problems;
    problems.sort_by_key(|problem| problem.span);
    Ok(Checked {
        schema: match recipe.schema {
            Schema::One => 1,
            Schema::Two => 2,
        },
        benchmark,
        problems,
    })
}

struct Checker<'a> {
    source: &'a Source,
    recipe: &'a Recipe<'a, 'a>,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn report(&mut self, finding: &'static Finding, span: Span, message: String, hint: impl Into<String>) {
        self.problems
            .push(finding.at(self.source, span, message).hint(hint.into()));
    }

    /// The section is there, and its type is one of srt-slurm's.
    fn section(&mut self) {
        const TYPES: [&str; 11] = [
            "manual",
            "custom",
            "sa-bench",
            "sglang-bench",
            "router",
            "mooncake-router",
            "trace-replay",
            "mmlu",
            "gpqa",
            "gsm8k",
            "longbenchv2",
        ];
        let root = self.recipe.root;
        let Some(section) = value(root, &["benchmark"]) else {
            let message = "the recipe has no `benchmark`".to_owned();
            self.report(
                &findings::BENCHMARK,
                root.span,
                message,
                "write it with `sweepctl recipe accuracy`",
            );
            return;
        };
        match (field(section, &["type"]), text(section, &["type"])) {
            (_, Some(name)) if TYPES.contains(&name) => {}
            (place, name) => {
                let span = place.map_or(section.span, |(_, value)| value.span);
                let name = name.unwrap_or_default();
                let message = match name {
                    "" => "`benchmark` has no `type`".to_owned(),
                    "aime" => "there is no type `aime`: AIME is a `custom` benchmark".to_owned(),
                    "lm-eval" => "there is no type `lm-eval`: it runs behind the benchmark of a recipe".to_owned(),
                    name => format!("`{name}` is no type of benchmark"),
                };
                let hint = match name {
                    "aime" | "lm-eval" => format!("`sweepctl recipe accuracy {name} FILE` writes it"),
                    name => nearest(name, TYPES),
                };
                self.report(&findings::BENCHMARK, span, message, hint);
            }
        }
    }

    /// Every parameter that is there can be what it is.
    fn parameters(&mut self, benchmark: Benchmark) {
        let root = self.recipe.root;
        for parameter in benchmark.parameters() {
            let path: &[&str] = match parameter.place {
                Place::Field => &["benchmark", parameter.name],
                Place::Env => &["benchmark", "env", parameter.name],
                Place::RoleEnv => continue,
            };
            if let Some(node) = value(root, path) {
                self.parameter(parameter, node);
            }
        }
        let others = Benchmark::ALL.iter().flat_map(|other| other.parameters());
        let mut seen = Vec::new();
        for other in others.filter(|other| other.place == Place::Field && other.name != "concurrencies") {
            let own = benchmark.parameters().iter().any(|own| own.name == other.name);
            if own || seen.contains(&other.name) {
                continue;
            }
            seen.push(other.name);
            if let Some((key, _)) = field(root, &["benchmark", other.name]) {
                let message = format!("{} does not read `{}`", benchmark.name(), other.name);
                self.report(&findings::IGNORED, key.span, message, "remove it");
            }
        }
    }

    fn parameter(&mut self, parameter: &Parameter, node: &Node<'_>) {
        match (parameter.kind, &node.value) {
            (Kind::Some(known), Value::Seq(items)) => {
                if items.is_empty() {
                    let message = format!("`{}` is empty", parameter.name);
                    self.report(
                        &findings::PARAMETER,
                        node.span,
                        message,
                        "remove it: then all are evaluated",
                    );
                }
                for item in items.iter().filter(|item| !known.contains(&item.text())) {
                    let message = format!("`{}` is no category of LongBench-V2", item.text());
                    self.report(
                        &findings::CATEGORY,
                        item.span,
                        message,
                        nearest(item.text(), known.to_vec()),
                    );
                }
            }
            (Kind::Some(_) | Kind::Counts, _) => {
                let message = format!("`{}` is {}, not a list", parameter.name, node.kind());
                self.report(
                    &findings::PARAMETER,
                    node.span,
                    message,
                    "write its items with `- `, one a line",
                );
            }
            (kind, Value::Scalar { plain, .. }) => {
                let is_quoted_number = !plain && parameter.place == Place::Field && matches!(kind, Kind::Count);
                let reason = match is_quoted_number {
                    true => Some("is a string, not a number".to_owned()),
                    false => kind.refuses(node.text()),
                };
                if let Some(reason) = reason {
                    let shown: String = node.text().chars().take(40).collect();
                    let message = format!("`{}` is `{shown}`, which {reason}", parameter.name);
                    let hint = match kind {
                        Kind::Choice(all) => nearest(node.text(), all.to_vec()),
                        _ if is_quoted_number => "remove the quotes".to_owned(),
                        _ => "correct the value".to_owned(),
                    };
                    self.report(&findings::PARAMETER, node.span, message, hint);
                }
            }
            _ => {
                let message = format!("`{}` is {}, not one value", parameter.name, node.kind());
                self.report(&findings::PARAMETER, node.span, message, "write one value on the line");
            }
        }
    }

    fn examples(&mut self, benchmark: Benchmark) {
        let Some(there) = benchmark.examples() else { return };
        if let Some(node) = value(self.recipe.root, &["benchmark", "num_examples"])
            && node.text().parse::<u64>().is_ok_and(|asked| asked > there)
        {
            let message = format!(
                "`num_examples` is {}, and {} has {there}",
                node.text(),
                benchmark.name()
            );
            self.report(
                &findings::EXAMPLES,
                node.span,
                message,
                format!("write at most {there}"),
            );
        }
    }

    /// The context of every role is above what an answer may take, and holds the prompts.
    fn context(&mut self, benchmark: Benchmark) {
        let root = self.recipe.root;
        let said = match benchmark {
            Benchmark::Aime => number(root, &["benchmark", "env", "MAX_TOKENS"]),
            _ => number(root, &["benchmark", "max_tokens"]),
        };
        let is_tokens = |parameter: &&Parameter| matches!(parameter.name, "max_tokens" | "MAX_TOKENS");
        let default = benchmark.parameters().iter().find(is_tokens);
        let default = default.and_then(|parameter| parameter.default.text().parse().ok());
        let Some(tokens) = said.map(|(tokens, _)| tokens).or(default) else {
            return;
        };
        let prompts = (benchmark == Benchmark::LongBenchV2)
            .then(|| number(root, &["benchmark", "max_context_length"]).map_or(128_000, |(length, _)| length));
        let flag = match self.recipe.engine.as_str() {
            "vllm" => "max-model-len",
            "trtllm" => "max_seq_len",
            _ => "context-length",
        };
        for role in &self.recipe.roles {
            let Some((context, span)) = role.args.and_then(|args| option(args, flag)) else {
                let message = format!("the role `{}` says no `{flag}`", role.name);
                let hint = format!("set `{flag}` above the {tokens} tokens of an answer");
                self.report(&findings::NO_CONTEXT, role.span, message, hint);
                continue;
            };
            if context <= tokens {
                let message = format!(
                    "the context of the role `{}` is {context}, and an answer may take {tokens} tokens",
                    role.name
                );
                let hint = format!("make `{flag}` larger than {tokens}, or lower the benchmark's tokens");
                self.report(&findings::CONTEXT, span, message, hint);
            } else if let Some(prompts) = prompts.filter(|prompts| *prompts > context) {
                let message = format!(
                    "the context of the role `{}` is {context}, and `max_context_length` is {prompts}",
                    role.name
                );
                self.report(&findings::CONTEXT, span, message, "lower `max_context_length`");
            }
        }
    }

    /// The nodes of each role hold its workers, and each worker its parallel sizes.
    fn gpus(&mut self) {
        let Some((per_node, _)) = self.recipe.gpus_per_node else {
            return;
        };
        for role in &self.recipe.roles {
            self.role_gpus(role, per_node);
        }
    }

    fn role_gpus(&mut self, role: &Role<'_, '_>, per_node: u64) {
        let name = role.name;
        let (Some((workers, workers_at)), nodes) = (role.workers, role.nodes) else {
            return;
        };
        let there = nodes.map(|(nodes, _)| nodes.saturating_mul(per_node));
        let own = role.gpus.map(|(gpus, _)| gpus);
        if let Some(there) = there {
            let at = role.gpus.map_or(workers_at, |(_, span)| span);
            let asked = workers.saturating_mul(own.unwrap_or(1));
            if asked > there {
                let message = format!(
                    "the {name} workers take {asked} GPUs ({workers} x {}), and their nodes have {there}",
                    own.unwrap_or(1)
                );
                self.report(&findings::GPUS, at, message, "add nodes, or deploy less");
                return;
            }
            if own.is_none() && workers > 0 && there % workers != 0 {
                let message = format!("{there} GPUs are not shared evenly by {workers} {name} workers");
                self.report(&findings::GPUS, workers_at, message, "say `gpus`, or correct the nodes");
                return;
            }
        }
        let shared = || there.and_then(|there| there.checked_div(workers));
        let (Some(gpus), Some(args)) = (own.or_else(shared), role.args) else {
            return;
        };
        let first = |names: &[&str]| names.iter().find_map(|name| option(args, name));
        let tp = first(&["tensor-parallel-size", "tp-size", "tp"]);
        let pp = first(&["pipeline-parallel-size", "pp-size", "pp"]);
        let size = |found: Option<(u64, Span)>| found.map_or(1, |(size, _)| size);
        let needed = size(tp).saturating_mul(size(pp));
        if let Some((_, span)) = tp.or(pp).filter(|_| needed > gpus) {
            let message = format!("a {name} worker needs {needed} GPUs for its parallel sizes, and has {gpus}");
            self.report(
                &findings::GPUS,
                span,
                message,
                "correct the sizes, or give it more GPUs",
            );
        }
    }

    fn fixed_model(&mut self, benchmark: Benchmark) {
        let (Some(fixed), Schema::One) = (benchmark.fixed_model(), self.recipe.schema) else {
            return;
        };
        if let Some(served) = self.recipe.served_name().filter(|served| *served != fixed) {
            let span = value(self.recipe.root, &["benchmark", "type"]).map_or(self.recipe.root.span, |node| node.span);
            let message = format!(
                "{} asks for `{fixed}`, and the recipe serves `{served}`",
                benchmark.name()
            );
            self.report(
                &findings::FIXED_MODEL,
                span,
                message,
                format!("serve it as `{fixed}` too"),
            );
        }
    }

    /// Models that reason only when told to are told to, on every role.
    fn reasoning(&mut self) {
        let Some(model) = self.recipe.model_names().find(|name| needs_thinking(name)) else {
            return;
        };
        if self.recipe.engine != "sglang" {
            return;
        }
        for role in &self.recipe.roles {
            let set = |name: &str| role.env.and_then(|env| text(env, &[name]));
            let is_on = set(THINKING).is_some_and(|set| matches!(set, "1" | "true" | "True"));
            let lacking: Vec<&str> = [(THINKING, is_on), (EFFORT, set(EFFORT).is_some())]
                .into_iter()
                .filter_map(|(name, is_set)| (!is_set).then_some(name))
                .collect();
            if !lacking.is_empty() {
                let message = format!(
                    "`{model}` answers without reasoning: the role `{}` does not set {}",
                    role.name,
                    lacking.join(" and ")
                );
                let hint = format!("set {THINKING} to \"1\" and {EFFORT} to \"max\" in its variables");
                self.report(&findings::REASONING, role.span, message, hint);
            }
        }
    }

    fn served_name(&mut self) {
        let root = self.recipe.root;
        let (asked, span) = match value(root, &["benchmark", "env", "MODEL"]) {
            Some(node) => (node.text(), node.span),
            // What the script asks for where nobody says.
            None => (
                "dspro",
                field(root, &["benchmark", "env"])
                    .or_else(|| field(root, &["benchmark"]))
                    .map_or(root.span, |(key, _)| key.span),
            ),
        };
        let names = match self.recipe.said_names() {
            names if names.is_empty() => self.recipe.served_name().into_iter().collect(),
            names => names,
        };
        if let Some(served) = names.iter().find(|name| **name != asked) {
            let message = format!("AIME asks for `{asked}`, and the recipe serves `{served}`");
            self.report(
                &findings::SERVED_NAME,
                span,
                message,
                format!("set MODEL to \"{served}\""),
            );
        }
    }

    fn extraction(&mut self) {
        if let Some(node) = value(self.recipe.root, &["benchmark", "command"])
            && (node.text().contains("extract_regex") || node.text().contains("extract_from_boxed"))
        {
            let message = "an expression for answers does not reach NeMo Skills through its shell".to_owned();
            let hint = "remove the override; the answer in `\\boxed{}` is graded";
            self.report(&findings::EXTRACTION, node.span, message, hint);
        }
    }
}
