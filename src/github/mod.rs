//! What GitHub says and is asked: events and what they start, the jobs of a run and what becomes of them, earlier runs
//! and what may be taken from them.

pub(crate) mod announce;
pub(crate) mod baseline;
pub mod checks;
pub(crate) mod client;
pub(crate) mod comment;
pub mod decide;
pub(crate) mod dispatch;
pub(crate) mod ended;
pub mod event;
pub mod facts;
pub(crate) mod gate;
pub(crate) mod ledger;
pub mod needs;
pub(crate) mod provenance;
pub(crate) mod recover;
pub(crate) mod reuse;
pub(crate) mod run_address;
pub(crate) mod run_jobs;
pub mod standing;
pub(crate) mod stats;
pub(crate) mod text;
pub(crate) mod triage;
pub(crate) mod verdict;
pub(crate) mod watch;
