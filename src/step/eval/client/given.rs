//! What suites read of the environment that a launch is started with, wherever the job then runs.

use super::SOURCES;
use crate::step::tools;

/// The variables, which a launch hands on by name where a job does not inherit its environment: to a container, a Slurm
/// job, and the eval of srt-slurm. Keys are among them, so no file of ours holds their values. Paths are those of the
/// runner: they lead somewhere in a container that has the folder mounted at its own path, and nowhere in others, which
/// then install anew.
pub(crate) const GIVEN: [&str; 25] = [
    "MODAL_TOKEN_ID",
    "MODAL_TOKEN_SECRET",
    "OPENAI_API_KEY",
    "SWEBENCH_AGENT_CMD_TIMEOUT",
    "SWEBENCH_AGENT_CWD",
    "SWEBENCH_AGENT_ENVIRONMENT",
    "SWEBENCH_AGENT_RUNTIME_TIMEOUT",
    "SWEBENCH_AGENT_SANDBOX_CPU",
    "SWEBENCH_AGENT_STARTUP_TIMEOUT",
    "SWEBENCH_AGENT_STEP_LIMIT",
    "SWEBENCH_AGENT_TIMEOUT",
    "SWEBENCH_AGENT_WORKERS",
    "SWEBENCH_DATASET",
    "SWEBENCH_EVAL_SANDBOX_CPU",
    "SWEBENCH_EVAL_TIMEOUT",
    "SWEBENCH_GEN_MODE",
    "SWEBENCH_MAX_WORKERS",
    "SWEBENCH_MODAL_APP_NAME",
    "SWEBENCH_NAMESPACE",
    "SWEBENCH_SCORE_TIMEOUT",
    "SWEBENCH_SKIP_SCORE",
    "SWEBENCH_TASK_NAME",
    "SWEBENCH_USE_MODAL",
    SOURCES,
    tools::FOLDER,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::GIVEN;

    /// The names in a text that start as SWE-bench's do.
    fn named(text: &str) -> BTreeSet<&str> {
        let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
        let words = text.split(|c: char| !is_part(c));
        words
            .filter(|word| word.starts_with("SWEBENCH_") && word.len() > "SWEBENCH_".len())
            .collect()
    }

    #[test]
    fn every_setting_of_swebench_is_handed_on_and_documented() {
        let given: BTreeSet<&str> = GIVEN.into_iter().filter(|name| name.starts_with("SWEBENCH_")).collect();
        let read = named(include_str!("../../../../configs/evals/swebench_client.py"));
        assert_eq!(
            read.difference(&given).collect::<Vec<_>>(),
            [] as [&&str; 0],
            "not handed on"
        );
        let page = include_str!("../../../../docs/vendor-suites.md");
        assert_eq!(named(page), given, "the page and what is handed on");
        assert!(GIVEN.is_sorted());
    }
}
