//! What a job runs, one module a step. A step knows one row, and what it finds on disk is not trusted.

pub mod agentic;
pub(crate) mod clean;
pub mod collect;
pub mod compare;
pub mod environment;
pub mod eval;
pub(crate) mod evidence;
pub(crate) mod job_folder;
pub mod launch;
pub(crate) mod library;
pub(crate) mod local_run;
pub(crate) mod logs;
pub(crate) mod markdown;
pub(crate) mod places;
pub(crate) mod power;
pub(crate) mod replay;
pub mod results;
pub(crate) mod serving;
pub mod stage;

pub mod throughput;
pub mod tools;
pub(crate) mod upload;
pub mod validate;
pub(crate) mod watch;
