//! Rendered workflows run for real, by nektos/act on this host, with stand-ins for the three actions that talk to GitHub, and
//! for the service that the runner keeps artifacts in.
//!
//! act ends a run when a job of a called workflow fails: the error of the inner run is that of the stage, and nothing
//! behind it starts, whatever its `if` says. GitHub gives the calling job the conclusion `failure` and goes on. So the
//! runs here take copies in which a job that calls a workflow is an ordinary job with one step, `actions/call.py`, that
//! runs act on the called workflow. What the copy keeps is what is tested: every `if`, every `needs` with its results and
//! outputs, the matrices, and each step of the called workflows. What it does not show is that GitHub accepts the call,
//! which `workflow check` and GitHub's own parser look at. For a call of a workflow that holds nothing but calls, act gives
//! no result at all: `sweep-shard` is one, where it is handed its envelopes.
//!
//! Another of act's ways is undone in the copies: the outputs of a skipped job are none, not their expressions.
//!
//! act is one runner, and so jobs run one after another. It knows neither `fail-fast` nor cancelled runs.

mod api;
mod artifacts;
mod calls;
mod events;
mod failures;
mod full_size;
mod harness;
mod node;
mod public;
mod service;
mod starter;
mod sweeps;
