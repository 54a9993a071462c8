//! The accuracy benchmarks of srt-slurm: every parameter of each, with its default. docs/accuracy.md lists the same.

/// An accuracy benchmark that srt-slurm runs against the servers of a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Benchmark {
    /// AIME in the NeMo Skills container, a `custom` benchmark
    Aime,
    /// MMLU
    Mmlu,
    /// GPQA diamond
    Gpqa,
    /// LongBench-V2
    #[value(name = "longbenchv2")]
    LongBenchV2,
    /// lm-eval behind the throughput benchmark, or alone
    LmEval,
}

/// Where a parameter stands in a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A field of `benchmark`.
    Field,
    /// A variable of `benchmark.env`.
    Env,
    /// A variable of every role.
    RoleEnv,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A whole number of at least 1.
    Count,
    /// A whole number of at least 0.
    Seed,
    /// A number from the first to the second, both included.
    Number(f64, f64),
    /// A text.
    Text,
    /// One of these.
    Choice(&'static [&'static str]),
    /// Some of these.
    Some(&'static [&'static str]),
    /// Whole numbers of at least 1.
    Counts,
}

/// What a parameter is where nobody says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Default {
    /// This value, as it is written in a recipe without quotes.
    Value(&'static str),
    /// Everything that there is: the field is left out.
    All,
    /// The name that the recipe serves its model under.
    ServedName,
}

impl Default {
    /// As the documentation writes it.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Value(text) => text,
            Self::All => "all",
            Self::ServedName => "the served name",
        }
    }
}

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name in the recipe.
    pub name: &'static str,
    /// Where it stands.
    pub place: Place,
    /// What it may be.
    pub kind: Kind,
    /// What it is unless it is set.
    pub default: Default,
}

/// The categories of LongBench-V2: as srt-slurm documents them, then as the data set and SGLang's client call them.
pub const CATEGORIES: [&str; 12] = [
    "single_doc_qa",
    "multi_doc_qa",
    "summarization",
    "few_shot_learning",
    "code_completion",
    "synthetic",
    "single_document_qa",
    "multi_document_qa",
    "long_in_context_learning",
    "long_dialogue_history",
    "code_repo_understanding",
    "long_structured_data",
];
/// The data sets of AIME.
pub const AIME_SETS: [&str; 3] = ["aime24", "aime25", "aime26"];
/// The variables that make SGLang's servers reason.
pub const THINKING: &str = "SGLANG_ENABLE_THINKING";
/// How much they reason.
pub const EFFORT: &str = "SGLANG_REASONING_EFFORT";
/// Parts of the names of models that reason only where these variables are set.
const NEED_THINKING: [&str; 6] = ["deepseek-v4", "deepseekv4", "dsv4", "dspro", "gpt-oss", "gptoss"];
/// What SGLang's client calls the parts of MMLU.
const MMLU_CATEGORIES: [&str; 4] = ["stem", "humanities", "social_sciences", "other"];
/// The eval framework of rows whose eval is an accuracy benchmark of their recipe.
pub const FRAMEWORK: &str = "benchmark";
/// What runs AIME, in srt-slurm's `configs`, which its containers see as `/configs`.
pub const AIME_COMMAND: &str = "bash /configs/aime/run.sh";

/// What srt-slurm's lm-eval is told by variables of the job: identity, lengths, topology and concurrency.
pub const LM_EVAL_VARIABLES: [&str; 26] = [
    "RUN_EVAL",
    "EVAL_ONLY",
    "IS_MULTINODE",
    "FRAMEWORK",
    "PRECISION",
    "MODEL_PREFIX",
    "RUNNER_TYPE",
    "SPEC_DECODING",
    "ISL",
    "OSL",
    "RESULT_FILENAME",
    "MODEL",
    "MODEL_PATH",
    "MODEL_NAME",
    "MAX_MODEL_LEN",
    "EVAL_MAX_MODEL_LEN",
    "PREFILL_TP",
    "PREFILL_EP",
    "PREFILL_NUM_WORKERS",
    "PREFILL_DP_ATTN",
    "DECODE_TP",
    "DECODE_EP",
    "DECODE_NUM_WORKERS",
    "DECODE_DP_ATTN",
    "EVAL_CONC",
    "EVAL_CONCURRENT_REQUESTS",
];

const fn field(name: &'static str, kind: Kind, default: &'static str) -> Parameter {
    of(name, Place::Field, kind, Default::Value(default))
}

const fn env(name: &'static str, kind: Kind, default: &'static str) -> Parameter {
    of(name, Place::Env, kind, Default::Value(default))
}

const fn of(name: &'static str, place: Place, kind: Kind, default: Default) -> Parameter {
    Parameter {
        name,
        place,
        kind,
        default,
    }
}

const AIME: [Parameter; 14] = [
    field("container_image", Kind::Text, "nemo-skills"),
    field("command", Kind::Text, AIME_COMMAND),
    env("OPENAI_API_KEY", Kind::Text, "EMPTY"),
    env("HF_TOKEN", Kind::Text, "${HF_TOKEN}"),
    of("MODEL", Place::Env, Kind::Text, Default::ServedName),
    env("DATASET", Kind::Choice(&AIME_SETS), "aime25"),
    env("REPEAT", Kind::Count, "16"),
    env("MAX_TOKENS", Kind::Count, "400000"),
    env("NUM_THREADS", Kind::Count, "512"),
    env("TEMPERATURE", Kind::Number(0.0, 2.0), "1.0"),
    env("TOP_P", Kind::Number(0.0, 1.0), "1.0"),
    env("SEED", Kind::Seed, "42"),
    of(THINKING, Place::RoleEnv, Kind::Text, Default::Value("1")),
    of(EFFORT, Place::RoleEnv, Kind::Text, Default::Value("max")),
];

const MMLU: [Parameter; 4] = [
    field("num_examples", Kind::Count, "200"),
    field("max_tokens", Kind::Count, "2048"),
    field("repeat", Kind::Count, "8"),
    field("num_threads", Kind::Count, "512"),
];

const GPQA: [Parameter; 4] = [
    field("num_examples", Kind::Count, "198"),
    field("max_tokens", Kind::Count, "65536"),
    field("repeat", Kind::Count, "8"),
    field("num_threads", Kind::Count, "128"),
];

const LONGBENCH: [Parameter; 5] = [
    field("max_context_length", Kind::Count, "128000"),
    field("num_threads", Kind::Count, "16"),
    field("max_tokens", Kind::Count, "16384"),
    of("num_examples", Place::Field, Kind::Count, Default::All),
    of("categories", Place::Field, Kind::Some(&CATEGORIES), Default::All),
];

/// srt-slurm falls back to the highest of them where the job has no EVAL_CONC, and to 256 where there is none.
const LM_EVAL: [Parameter; 1] = [field("concurrencies", Kind::Counts, "256")];

impl Benchmark {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Aime, Self::Mmlu, Self::Gpqa, Self::LongBenchV2, Self::LmEval];

    /// Those that are suites of [`FRAMEWORK`]: what a recipe's `benchmark` section runs.
    pub const SUITES: [Self; 4] = [Self::Aime, Self::Mmlu, Self::Gpqa, Self::LongBenchV2];

    /// The benchmark of a suite.
    #[must_use]
    pub fn of_suite(suite: &str) -> Option<Self> {
        Self::SUITES.into_iter().find(|benchmark| benchmark.name() == suite)
    }

    /// The tasks of which it can leave one: AIME's data sets, else its own name.
    #[must_use]
    pub fn tasks(self) -> &'static [&'static str] {
        match self {
            Self::Aime => &AIME_SETS,
            Self::Mmlu => &["mmlu"],
            Self::Gpqa => &["gpqa"],
            Self::LongBenchV2 => &["longbenchv2"],
            Self::LmEval => &[],
        }
    }

    /// Every name that a score of it can have: its tasks, and each with the categories that are known.
    #[must_use]
    pub fn scores(self) -> Vec<String> {
        let categories: &[&str] = match self {
            Self::Mmlu => &MMLU_CATEGORIES,
            Self::LongBenchV2 => &CATEGORIES,
            _ => &[],
        };
        let of_task = |task: &&str| {
            let with = |category: &&str| format!("{task}_{category}");
            std::iter::once((*task).to_owned())
                .chain(categories.iter().map(with))
                .collect::<Vec<_>>()
        };
        self.tasks().iter().flat_map(of_task).collect()
    }

    /// Its name, on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Aime => "aime",
            Self::Mmlu => "mmlu",
            Self::Gpqa => "gpqa",
            Self::LongBenchV2 => "longbenchv2",
            Self::LmEval => "lm-eval",
        }
    }

    /// Its `benchmark.type`; none where the recipe keeps that of its throughput.
    #[must_use]
    pub fn type_name(self) -> Option<&'static str> {
        match self {
            Self::Aime => Some("custom"),
            Self::LmEval => None,
            other => Some(other.name()),
        }
    }

    /// Its parameters.
    #[must_use]
    pub fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::Aime => &AIME,
            Self::Mmlu => &MMLU,
            Self::Gpqa => &GPQA,
            Self::LongBenchV2 => &LONGBENCH,
            Self::LmEval => &LM_EVAL,
        }
    }

    /// How many examples its data set has, where `num_examples` counts them.
    #[must_use]
    pub fn examples(self) -> Option<u64> {
        match self {
            Self::Mmlu => Some(14_042),
            Self::Gpqa => Some(198),
            Self::LongBenchV2 => Some(503),
            Self::Aime | Self::LmEval => None,
        }
    }

    /// The model that the script of srt-slurm up to v1.0.68 asks for, whatever is served.
    #[must_use]
    pub fn fixed_model(self) -> Option<&'static str> {
        match self {
            Self::Mmlu => Some("deepseek-ai/DeepSeek-R1"),
            Self::LongBenchV2 => Some("nvidia/DeepSeek-R1-0528-NVFP4-v2"),
            _ => None,
        }
    }
}

impl Kind {
    /// What is wrong with a text of this kind, as the end of a sentence; `None` where nothing is.
    #[must_use]
    pub fn refuses(self, text: &str) -> Option<String> {
        let whole = |least: u64| match text.parse::<u64>() {
            Ok(number) if number >= least && number <= crate::config::decode::MAX_INTEGER => None,
            _ => Some(format!("is no whole number of at least {least}")),
        };
        match self {
            Self::Count => whole(1),
            Self::Seed => whole(0),
            Self::Number(least, most) => match text.parse::<f64>() {
                Ok(number) if (least..=most).contains(&number) => None,
                _ => Some(format!("is no number from {least} to {most}")),
            },
            Self::Text => text.trim().is_empty().then(|| "is empty".to_owned()),
            Self::Choice(all) => (!all.contains(&text)).then(|| format!("is none of {}", all.join(", "))),
            Self::Some(all) => {
                let unknown = text.split(',').find(|item| !all.contains(&item.trim()));
                unknown.map(|item| format!("holds `{item}`, which is none of {}", all.join(", ")))
            }
            Self::Counts => {
                let bad = text.split(',').find_map(|item| Self::Count.refuses(item.trim()));
                bad.map(|_| "is no list of whole numbers of at least 1".to_owned())
            }
        }
    }
}

/// Whether a model answers without reasoning unless [`THINKING`] is set, by one of its names.
#[must_use]
pub fn needs_thinking(model: &str) -> bool {
    let model = model.to_ascii_lowercase().replace(['_', ' '], "-");
    NEED_THINKING.iter().any(|part| model.contains(part))
}
