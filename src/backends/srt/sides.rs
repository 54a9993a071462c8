//! What a row deploys, in srt-slurm's words.

use crate::backends::slurm::of_role;
use crate::config::master::search_space::Nodes;
use crate::config::types::Role;
use crate::matrix::row::Topology;

/// Workers of one role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Side {
    /// The role's name in a recipe: `prefill`, `decode` or `agg`.
    pub name: &'static str,
    /// The workers, as a row says it.
    pub role: Role,
}

impl Side {
    /// The nodes that its workers fill.
    #[must_use]
    pub(super) fn nodes(&self, gpus_per_node: u64) -> u64 {
        of_role(&self.role, gpus_per_node)
    }
}

/// The roles of a row. A deployment without decode workers is aggregated: its prefill workers do both.
#[must_use]
pub(super) fn sides(topology: &Topology) -> Vec<Side> {
    let side = |name, role: &Role| Side {
        name,
        role: role.clone(),
    };
    match &topology.nodes {
        Nodes::Multi(roles) if roles.decode.num_worker == 0 => vec![side("agg", &roles.prefill)],
        Nodes::Multi(roles) => vec![side("prefill", &roles.prefill), side("decode", &roles.decode)],
        Nodes::Single(one) => {
            let role = Role {
                num_worker: 1,
                sizes: *one,
                hardware: None,
                additional_settings: None,
            };
            vec![side("agg", &role)]
        }
    }
}
