//! The `additional-settings` of workers: `NAME=VALUE` texts of a config that become variables of the launch.

use indexmap::IndexMap;

use super::is_own;
use crate::config::environment;
use crate::config::master::search_space::Roles;
use crate::config::problem::{Problem, Problems};

/// The settings of both sides. What may not become a variable is reported, all of it.
pub(super) fn variables(roles: &Roles, problems: &mut Problems) -> IndexMap<String, String> {
    let mut found: IndexMap<String, String> = IndexMap::new();
    for (side, role) in [("prefill", &roles.prefill), ("decode", &roles.decode)] {
        for setting in role.additional_settings.iter().flatten() {
            match variable(setting) {
                Err(reason) => problems.push(refused(side, setting, reason)),
                Ok((name, value)) => match found.get(name) {
                    Some(first) if first != value => {
                        let reason = "an earlier setting of the row gives it another value, and a job has one";
                        problems.push(refused(side, setting, reason));
                    }
                    _ => {
                        found.insert(name.to_owned(), value.to_owned());
                    }
                },
            }
        }
    }
    found
}

/// The name and value of a setting, or why it may not become a variable.
fn variable(setting: &str) -> Result<(&str, &str), &'static str> {
    let (name, value) = setting.split_once('=').ok_or("it is not NAME=VALUE")?;
    if let Some(reason) = environment::refusal(name) {
        return Err(reason);
    }
    let upper = name.to_ascii_uppercase();
    if is_own(&upper) {
        return Err("the row itself sets this variable");
    }
    Ok((name, value))
}

fn refused(side: &str, setting: &str, reason: &str) -> Problem {
    /// How much of a setting a message shows, in characters.
    const SHOWN: usize = 60;
    let shown: String = setting.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    Problem::file(
        "",
        format!("`{shown}` of {side}'s additional-settings cannot be used: {reason}"),
    )
    .hint("correct the config that the row comes from, and plan again")
}
