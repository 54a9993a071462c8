//! What GitHub says and is asked: events and what they start, the jobs of a run and what becomes of them, earlier runs
//! and what may be taken from them.

pub mod baseline;
pub mod client;
pub mod comment;
pub mod decide;
pub mod dispatch;
pub mod event;
pub mod facts;
pub mod gate;
pub mod ledger;
pub mod needs;
pub mod reuse;
pub mod stats;
pub mod text;
pub mod verdict;
