//! What a plan refuses: of entries, modifiers and rows.

super::findings! {
    UNKNOWN_CONFIG = Error "plan/unknown-config"
        "A pattern or key that no config matches"
        "An entry that measures nothing is most often misspelt."
        "Correct the key.";
    APPEND_ONLY = Error "plan/append-only"
        "An append-only entry that does more than append"
        "Such an entry promises that existing curves only gain points, so that old points need not be measured again."
        "Put the other change in a change of its own.";
    MODIFIERS = Error "plan/modifiers"
        "Modifiers that an entry rules out"
        "The entry says what is evaluated, and the modifier says something else."
        "Remove one of the two.";
    ROW = Error "plan/row"
        "A row that breaks its shape"
        "A row that could not run is not planned."
        "Correct the config that it comes from.";
    BENCHMARK_ROW = Error "plan/benchmark-row"
        "A row that cannot run an accuracy benchmark"
        "srt-slurm runs these benchmarks, in the place of throughput, against the servers of a multi-node row: in any other job nothing would be evaluated."
        "Let a rule with `nodes: multi` select rows of a cluster with the backend `srt` that name a recipe; elsewhere evaluate with `lm-eval`.";
    DUPLICATE = Error "plan/duplicate"
        "Two jobs of one id, or two artifacts of one name"
        "Results are told apart by them."
        "Rename the config's model-prefix or backend, or split the plan.";
    ARTIFACT_NAME = Error "plan/artifact-name"
        "A job whose artifacts would have no legal name"
        "GitHub refuses such an upload, after the job has run."
        "Rename the config's model-prefix or backend.";
}
