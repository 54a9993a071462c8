//! What jobs leave behind: result files of lm-eval and its like, `meta_env.json`, sample files.
//!
//! All of it was written on other machines, by programs that were killed at any moment, about text that a model
//! wrote. Sizes are bounded, links are not followed, and one strange value does not lose the file around it.

pub mod answers;
pub mod blank;
pub mod duplicates;
pub mod json;
pub mod lm_eval;
pub mod loose;
pub mod meta;
pub mod name;
pub mod samples;
pub mod score;

pub use crate::files as file;
