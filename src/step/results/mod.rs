//! What jobs leave behind: result files of lm-eval and its like, `meta_env.json`, sample files.
//!
//! All of it was written on other machines, by programs that were killed at any moment, about text that a model
//! wrote. Sizes are bounded, links are not followed, and one strange value does not lose the file around it.

pub mod accuracy;
pub(crate) mod answers;
pub(crate) mod blank;
pub(crate) mod duplicates;
pub(crate) mod json;
pub(crate) mod lm_eval;
pub(crate) mod loose;
pub mod meta;
pub(crate) mod name;
pub mod samples;
pub(crate) mod score;

pub use crate::files as file;
