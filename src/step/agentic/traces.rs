//! Which recorded conversations are replayed: loaders of the replay client, and the data sets that they read.

use crate::config::problem::{Problem, nearest};

/// Loaders by the end of their names, with the data sets at the hub. Each has a variant whose conversations fit into 256k
/// tokens.
const SOURCES: [(&str, &str); 7] = [
    ("with_subagents", "061526"),
    ("with_subagents_060226", "with-subagents-060226"),
    ("with_subagents_060526", "with-subagents-060526"),
    ("with_subagents_060826", "with-subagents-060826"),
    ("061326", "061326"),
    ("061526", "061526"),
    (DEFAULT, "062126"),
];
/// The source where nothing names one.
const DEFAULT: &str = "062126";
/// Starts of the prefixes of models that hold a million tokens.
const LONG: [&str; 4] = ["dsv4", "glm5.2", "minimaxm3", "kimik3"];
const SHORT: &str = "_256k";

/// A loader, and its data set at the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The loader's name.
    pub loader: String,
    /// The data set's.
    pub dataset: String,
}

/// The source of a model, or the one that is asked for: what names it, and the name.
///
/// # Errors
/// A name that is no loader's, with the nearest.
pub(crate) fn resolve(asked: Option<(&str, &str)>, model_prefix: &str) -> Result<Source, Problem> {
    let all: Vec<Source> = SOURCES
        .iter()
        .flat_map(|(loader, dataset)| {
            [("", ""), (SHORT, "-256k")].map(|(long, short)| Source {
                loader: format!("semianalysis_cc_traces_weka_{loader}{long}"),
                dataset: format!("semianalysisai/cc-traces-weka-{dataset}{short}"),
            })
        })
        .collect();
    let is_long = LONG.iter().any(|start| model_prefix.starts_with(start));
    let default = format!(
        "semianalysis_cc_traces_weka_{DEFAULT}{}",
        if is_long { "" } else { SHORT }
    );
    let (from, name) = asked.unwrap_or(("", &default));
    all.iter().find(|source| source.loader == name).cloned().ok_or_else(|| {
        let message = format!("{from} is `{name}`, which is no loader of the replay client");
        Problem::file("", message).hint(nearest(name, all.iter().map(|source| source.loader.as_str())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_of_long_contexts_get_all_conversations() {
        let loader = |prefix| resolve(None, prefix).expect("a source").loader;
        for prefix in ["dsv4", "dsv4flash", "glm5.2", "minimaxm3", "kimik3"] {
            assert_eq!(loader(prefix), "semianalysis_cc_traces_weka_062126", "{prefix}");
        }
        for prefix in ["", "dsr1", "glm5", "minimaxm2.5", "kimik2.5"] {
            assert_eq!(loader(prefix), "semianalysis_cc_traces_weka_062126_256k", "{prefix}");
        }
    }

    #[test]
    fn a_named_loader_has_its_data_set() {
        let dataset = |name: &str| resolve(Some(("--traces", name)), "dsv4").map(|source| source.dataset);
        let of = |end: &str| dataset(&format!("semianalysis_cc_traces_weka_{end}")).expect("a source");
        assert_eq!(of("with_subagents"), "semianalysisai/cc-traces-weka-061526");
        assert_eq!(
            of("with_subagents_060826_256k"),
            "semianalysisai/cc-traces-weka-with-subagents-060826-256k"
        );
        assert_eq!(of("061326_256k"), "semianalysisai/cc-traces-weka-061326-256k");
        assert!(dataset("semianalysis_cc_traces_weka_062127").is_err());
        assert!(dataset("").is_err());
    }
}
