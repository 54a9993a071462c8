//! How many nodes a row takes.

use crate::config::clusters::fleet;
use crate::config::master::search_space::Nodes;
use crate::config::problem::Problem;
use crate::config::runners::Runners;
use crate::config::types::Role;
use crate::matrix::row::Topology;

/// The GPUs of one node behind a runner: what its label says, else what any label of its fleet says. The nodes of a
/// fleet are alike.
#[must_use]
pub fn gpus_per_node(runners: &Runners, label: &str, runner: &str) -> Option<u64> {
    let of_fleet = |label: &str| {
        let names = runners.labels.get(label).map(Vec::as_slice).unwrap_or_default();
        names.iter().any(|name| fleet(name) == fleet(runner))
    };
    runners
        .hardware
        .get(label)
        .or_else(|| {
            runners
                .hardware
                .iter()
                .find(|(label, _)| of_fleet(label))
                .map(|(_, facts)| facts)
        })
        .map(|facts| facts.gpus_per_node)
}

/// The nodes of a row. Prefill and decode workers have nodes of their own, as many as their GPUs fill.
///
/// # Errors
/// Many nodes whose size nobody knows.
pub(super) fn nodes(topology: &Topology, gpus_per_node: Option<u64>) -> Result<u64, Problem> {
    let Nodes::Multi(roles) = &topology.nodes else {
        return Ok(1);
    };
    let Some(gpus) = gpus_per_node else {
        let label = &topology.runner;
        let message = format!("nobody knows how many nodes the job takes: `{label}` has no hardware facts");
        let hint = format!(
            "add `{label}` to `hardware` of configs/runners.yaml, or `--nodes=<count>` to the cluster's `extra`"
        );
        return Err(Problem::file("", message).hint(hint));
    };
    Ok((of_role(&roles.prefill, gpus) + of_role(&roles.decode, gpus)).max(1))
}

/// The nodes of one side: several small workers share one, a large one spans several.
#[must_use]
pub fn of_role(role: &Role, gpus_per_node: u64) -> u64 {
    let worker = role.gpus_per_worker().max(1);
    match gpus_per_node / worker {
        0 => role.num_worker * worker.div_ceil(gpus_per_node),
        on_one => role.num_worker.div_ceil(on_one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(num_worker: u64, tp: u64, pp: u64) -> Role {
        let mut role = Role {
            num_worker,
            sizes: Default::default(),
            hardware: None,
            additional_settings: None,
        };
        (role.sizes.tp, role.sizes.pp) = (tp, pp);
        role
    }

    #[test]
    fn workers_share_nodes_or_span_them() {
        assert_eq!(of_role(&role(5, 8, 1), 4), 10);
        assert_eq!(of_role(&role(1, 16, 1), 4), 4);
        assert_eq!(of_role(&role(4, 2, 1), 4), 2);
        assert_eq!(of_role(&role(3, 3, 1), 4), 3, "a worker of 3 leaves a GPU idle");
        assert_eq!(of_role(&role(1, 3, 2), 4), 2);
        assert_eq!(
            of_role(&role(0, 16, 1), 8),
            0,
            "an aggregated deployment decodes where it prefills"
        );
    }
}
