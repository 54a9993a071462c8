//! What a job runs, one module a step. A step knows one row, and what it finds on disk is not trusted.

pub mod clean;
pub mod collect;
pub mod compare;
pub mod environment;
pub mod eval;
pub mod job_folder;
pub mod launch;
pub mod library;
pub mod local_run;
pub mod logs;
pub mod markdown;
pub mod places;
pub mod power;
pub mod replay;
pub mod results;
pub mod serving;
pub mod stage;

pub mod throughput;
pub mod tools;
pub mod upload;
pub mod validate;
