//! Whether `meta_env.json` is that of the job, of this run and of this attempt.

use super::Request;
use crate::config::problem::Problem;
use crate::step::results::file;
use crate::step::results::loose::Cell;
use crate::step::results::meta::MetaEnv;

/// Holds metadata against the envelope and the run, where these are known.
pub(super) fn check(request: &Request, meta: &MetaEnv, problems: &mut Vec<Problem>) {
    let Some(envelope) = &request.envelope else { return };
    let name = file::shown(&request.meta_env);
    let mut contradictions = meta.contradictions(envelope);
    contradictions.extend(other("run_id", &meta.run_id, request.run.0.as_deref()));
    contradictions.extend(other("run_attempt", &meta.run_attempt, request.run.1.as_deref()));
    problems.extend(contradictions.into_iter().map(|contradiction| {
        Problem::file(&name, format!("{name}: {contradiction}"))
            .hint("the results may be another job's: look at what was staged")
    }));
}

/// What a field that names a run says of another one.
fn other(field: &str, found: &Cell, wanted: Option<&str>) -> Option<String> {
    let wanted = wanted?;
    let says_nothing = *found == Cell::Null || *found == Cell::Text(String::new());
    let is_this = found.text() == Some(wanted) || (found.integer().is_some() && found.integer() == wanted.parse().ok());
    (!says_nothing && !is_this).then(|| format!("`{field}` is {found}, this one is {wanted}"))
}
