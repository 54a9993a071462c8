//! Buckets: the jobs of one workflow job.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::envelope::{self, Envelope};
use super::names::{self, ArtifactKind};
use super::plan::Plan;
use super::row::{EvalMark, Row};
use crate::config::asked::Asked;
use crate::config::problem::Problems;
use crate::config::types::{NodeKind, ScenarioType, SeqLen};
use crate::findings::plan as findings;

macro_rules! buckets {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),+ $(,)?) => {
        /// What goes to one job of the workflow.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum)]
        pub enum Bucket {
            $($(#[$doc])* #[value(name = $name)] $variant),+
        }
        impl Bucket {
            /// Every bucket, in the order of a plan.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// Its name in files and outputs.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

buckets! {
    /// Throughput, one node, 1024 in and 1024 out.
    SingleNode1k1k = "single_node_1k1k",
    /// Throughput, one node, 8192 in and 1024 out.
    SingleNode8k1k = "single_node_8k1k",
    /// Throughput, one node, other lengths.
    SingleNodeOther = "single_node_other",
    /// Throughput, one node, agentic.
    SingleNodeAgentic = "single_node_agentic",
    /// Throughput, multi-node, 1024 in and 1024 out.
    MultiNode1k1k = "multi_node_1k1k",
    /// Throughput, multi-node, 8192 in and 1024 out.
    MultiNode8k1k = "multi_node_8k1k",
    /// Throughput, multi-node, other lengths.
    MultiNodeOther = "multi_node_other",
    /// Throughput, multi-node, agentic.
    MultiNodeAgentic = "multi_node_agentic",
    /// Evals, one node, fixed lengths.
    Evals = "evals",
    /// Evals, one node, agentic.
    AgenticEvals = "agentic_evals",
    /// Evals, multi-node, fixed lengths.
    MultinodeEvals = "multinode_evals",
    /// Evals, multi-node, agentic.
    MultinodeAgenticEvals = "multinode_agentic_evals",
}

impl Bucket {
    /// Whether its jobs evaluate.
    #[must_use]
    pub fn is_eval(self) -> bool {
        self >= Self::Evals
    }

    /// The bucket of a row: by its eval if it runs nothing else, else by its throughput.
    #[must_use]
    pub fn of(row: &Row) -> Self {
        let lengths = row.seq();
        match (row.eval.eval_only, row.node_kind(), row.scenario_type()) {
            (true, NodeKind::Single, ScenarioType::FixedSeqLen) => Self::Evals,
            (true, NodeKind::Single, ScenarioType::AgenticCoding) => Self::AgenticEvals,
            (true, NodeKind::Multi, ScenarioType::FixedSeqLen) => Self::MultinodeEvals,
            (true, NodeKind::Multi, ScenarioType::AgenticCoding) => Self::MultinodeAgenticEvals,
            (false, NodeKind::Single, _) => match lengths {
                Some(SeqLen::ONE_K_ONE_K) => Self::SingleNode1k1k,
                Some(SeqLen::EIGHT_K_ONE_K) => Self::SingleNode8k1k,
                Some(_) => Self::SingleNodeOther,
                None => Self::SingleNodeAgentic,
            },
            (false, NodeKind::Multi, _) => match lengths {
                Some(SeqLen::ONE_K_ONE_K) => Self::MultiNode1k1k,
                Some(SeqLen::EIGHT_K_ONE_K) => Self::MultiNode8k1k,
                Some(_) => Self::MultiNodeOther,
                None => Self::MultiNodeAgentic,
            },
        }
    }
}

/// Envelopes by bucket, in the order of [`Bucket::ALL`]; only buckets that have some.
pub type Buckets = IndexMap<Bucket, Vec<Envelope>>;

/// The buckets of a plan.
///
/// # Errors
/// Ids or artifact names that are not unique and legal.
pub fn of_plan(plan: &Plan, asked: &Asked) -> Result<Buckets, Problems> {
    let throughput = plan.single_node.values().chain(plan.multi_node.values()).flatten();
    let evals = [
        &plan.evals,
        &plan.agentic_evals,
        &plan.multinode_evals,
        &plan.multinode_agentic_evals,
    ];
    wrap(throughput.chain(evals.into_iter().flatten()).cloned(), asked)
}

/// The buckets of generated rows: each row's throughput, unless it is eval-only or evals only are asked for, and its eval,
/// if it runs one.
///
/// # Errors
/// As [`of_plan`].
pub fn of_rows(rows: &[Row], asked: &Asked) -> Result<Buckets, Problems> {
    let throughput = rows
        .iter()
        .filter(|row| !asked.evals_only && !row.eval.eval_only)
        .map(|row| Row {
            eval: EvalMark {
                run_eval: Some(false),
                ..EvalMark::default()
            },
            ..row.clone()
        });
    let evals = rows.iter().filter(|row| row.runs_eval()).map(|row| {
        let mut row = row.clone();
        row.eval.eval_only = true;
        row
    });
    wrap(throughput.chain(evals), asked)
}

fn wrap(rows: impl Iterator<Item = Row>, asked: &Asked) -> Result<Buckets, Problems> {
    let mut by_bucket: HashMap<Bucket, Vec<Row>> = HashMap::new();
    for row in rows {
        by_bucket.entry(Bucket::of(&row)).or_default().push(row);
    }
    let mut seen = HashMap::new();
    let mut buckets = Buckets::new();
    for bucket in Bucket::ALL {
        let Some(rows) = by_bucket.remove(bucket) else { continue };
        let envelopes = envelope::wrap(&rows, asked, &mut seen)
            .map_err(|error| findings::ROW.file("", format!("a row cannot be written: {error}")))?;
        buckets.insert(*bucket, envelopes);
    }
    prove(&buckets)?;
    Ok(buckets)
}

/// Proves, before any GPU is asked for, that no two jobs share an id or an artifact's name.
fn prove(buckets: &Buckets) -> Result<(), Problems> {
    let mut ids = HashSet::new();
    let mut artifacts = HashSet::new();
    let mut problems = Problems::default();
    for envelope in buckets.values().flatten() {
        if !ids.insert(&envelope.id) {
            let message = format!("two jobs have the id {}: {}", envelope.id, envelope.name);
            problems.push(
                findings::DUPLICATE
                    .file("", message)
                    .hint("split the plan: two rows have the same hash"),
            );
        }
        for kind in ArtifactKind::of(&envelope.row) {
            let name = names::artifact(kind, envelope);
            if !names::is_legal_artifact(&name) {
                let message = format!("no artifact may be called `{name}`");
                problems.push(
                    findings::ARTIFACT_NAME
                        .file("", message)
                        .hint("rename the config's model-prefix or backend"),
                );
            }
            if !artifacts.insert(name) {
                let message = format!("two jobs upload the same artifact: {}", envelope.name);
                problems.push(findings::DUPLICATE.file("", message));
            }
        }
    }
    problems.into_result()
}

/// Takes the canary out of the buckets: the job with the lowest concurrency among one node's fixed sequences that runs
/// no eval, the first of equals. `None` where there is no such job.
pub fn take_canary(buckets: &mut Buckets) -> Option<Envelope> {
    let fixed = [Bucket::SingleNode1k1k, Bucket::SingleNode8k1k, Bucket::SingleNodeOther];
    let candidates = buckets
        .iter()
        .filter(|(bucket, _)| fixed.contains(bucket))
        .flat_map(|(bucket, jobs)| jobs.iter().enumerate().map(|(index, job)| (*bucket, index, &job.row)))
        .filter(|(_, _, row)| !row.runs_eval());
    let (bucket, index, _) = candidates.min_by_key(|(_, _, row)| row.conc.lowest())?;
    let jobs = buckets.get_mut(&bucket)?;
    let canary = jobs.remove(index);
    if jobs.is_empty() {
        buckets.shift_remove(&bucket);
    }
    Some(canary)
}
