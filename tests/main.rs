//! The integration tests: one binary, a module a capability.

// The modules of a test binary have no interface to keep small.
#![allow(unreachable_pub)]

mod act;
mod agentic_run;
mod asked;
mod changelog_gate;
mod cli;
mod collect;
mod compare;
mod conditions;
mod config_keys;
mod corpus;
mod decisions;
mod doc_tables;
mod docs;
mod emission;
mod engines;
mod eval;
mod evidence;
mod findings;
mod fixture;
mod fleet;
mod github;
mod hostile;
mod job_env;
mod launch;
mod local_run;
mod mistakes;
mod mock_server;
mod mutations;
mod policy;
mod power;
mod priority;
mod process;
mod properties;
mod publish;
mod recipe;
mod replay;
mod repositories;
mod schemas;
mod screens;
mod serving;
mod shell_library;
mod slurm;
mod suites;
mod support;
mod throughput;
mod validate;
mod workflows;
