//! What `recipe check` refuses in recipes of srt-slurm.

super::findings! {
    SCHEMA = Error "recipe/schema"
        "A recipe of no known schema, or of two"
        "srt-slurm reads schema 1 (`backend`, workers in `resources`) or schema 2 (`schema: 2`, `engine`, `roles`)."
        "Write one of the two.";
    BENCHMARK = Error "recipe/benchmark"
        "No accuracy benchmark where one is checked"
        "The section is missing, or its type is none that is known."
        "Write it with `sweepctl recipe accuracy`.";
    OTHER_BENCHMARK = Error "recipe/other-benchmark"
        "A recipe that runs another benchmark than its row asks for"
        "The job would leave another benchmark's results, or throughput, and nothing of what was planned."
        "Write the benchmark with `sweepctl recipe accuracy`, and name that recipe as `eval-srt-recipe`.";
    PARAMETER = Error "recipe/parameter"
        "A parameter with a value that it cannot have"
        "srt-slurm checks names of fields alone, and the benchmark fails when its servers are up."
        "Correct the value; docs/accuracy.md lists them.";
    IGNORED = Warning "recipe/ignored"
        "A parameter that the benchmark does not read"
        "What is set has no effect."
        "Remove it.";
    CONTEXT = Error "recipe/context"
        "A context that does not hold the benchmark's answers"
        "Answers are cut off, or refused, and score as wrong."
        "Make the context of every role larger than `max_tokens`, or lower that.";
    NO_CONTEXT = Warning "recipe/no-context"
        "A role without a context length"
        "It is then that of the model, which may be below `max_tokens`."
        "Set the context of the role.";
    CATEGORY = Error "recipe/category"
        "A category that the data set does not have"
        "Nothing is evaluated under it."
        "Correct the name.";
    EXAMPLES = Error "recipe/examples"
        "More examples than the data set has"
        "The run would report fewer than it was asked for."
        "Lower `num_examples`.";
    GPUS = Error "recipe/gpus"
        "Workers that their nodes cannot hold"
        "The job is queued, and fails when the workers start."
        "Correct the nodes, the workers or their parallel sizes.";
    REASONING = Error "recipe/reasoning"
        "A model that would answer without reasoning"
        "Its score would be some 30 points below what the model can do."
        "Set the variables on every role, as docs/accuracy.md shows.";
    SERVED_NAME = Error "recipe/served-name"
        "A benchmark that asks for another model than is served"
        "Every request is refused by name, or answered under the wrong one."
        "Write the served name.";
    FIXED_MODEL = Warning "recipe/fixed-model"
        "A script that asks for a fixed model"
        "srt-slurm up to v1.0.68 names the model of this benchmark in its script, whatever is served."
        "Serve the model under that name, or use a later srt-slurm.";
    EXTRACTION = Error "recipe/extraction"
        "An expression for answers that cannot reach NeMo Skills"
        "`ns eval` hands overrides through a shell without quotes: the backslashes are lost, every process fails, and the run says that it completed."
        "Keep the `\\boxed{}` extraction, and look for answers in the kept outputs afterwards.";
    OTHER_FORM = Error "recipe/other-form"
        "A recipe that cannot be edited where it stands"
        "It is edited as text, so that comments and order survive, and this part has another form than block style."
        "Write the change by hand.";
}
