//! What GitHub says and asks: events and what they start, the jobs of a run and what becomes of them.

pub mod account;
pub mod decide;
pub mod event;
pub mod facts;
pub mod gate;
pub mod needs;
pub mod text;
pub mod verdict;
