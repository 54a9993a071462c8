//! Whether `meta_env.json` is that of the job, of this run and of this attempt.

use super::Request;
use crate::config::problem::Problem;
use crate::step::results::file;
use crate::step::results::meta::{MetaEnv, Owner};

/// Holds metadata against the envelope and the run, where these are known.
pub(super) fn check(request: &Request, meta: &MetaEnv, problems: &mut Vec<Problem>) {
    let Some(envelope) = &request.envelope else { return };
    let name = file::shown(&request.meta_env);
    let run = (
        request.run.0.as_deref().unwrap_or_default(),
        request.run.1.as_deref().unwrap_or_default(),
    );
    let Owner::Other(found) = meta.owner(envelope, run, None) else {
        return;
    };
    // Concurrencies are held against those that were asked for, with the points that are there: of a batch its list.
    let of_points = |name: &str| name == "eval_concs" || (name == "conc" && !meta.is_batch());
    let found = found.into_iter().filter(|one| !of_points(&one.name));
    problems.extend(found.map(|one| {
        Problem::file(&name, format!("{name}: {}", one.sentence))
            .hint("the results may be another job's: look at what was staged")
    }));
}
