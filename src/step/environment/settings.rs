//! The `additional-settings` of workers: `NAME=VALUE` texts of a config that become variables of the launch.

use indexmap::IndexMap;

use super::is_own;
use crate::config::master::search_space::Roles;
use crate::config::problem::{Problem, Problems};

/// Names that decide what code a process loads or runs, whatever the job is.
const CODE: [&str; 22] = [
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "GLOBIGNORE",
    "HOME",
    "IFS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "SHELL",
    "SHELLOPTS",
];

/// Starts of names that belong to the loader, to exported shell functions, to git, and to the runner.
const KEPT: [&str; 8] = [
    "ACTIONS_",
    "BASH_FUNC_",
    "DYLD_",
    "GIT_",
    "GITHUB_",
    "LD_",
    "RUNNER_",
    "SWEEPCTL_",
];

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
    let legal = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !legal {
        return Err("its name is not made of letters, digits and `_`, or starts with a digit");
    }
    // Letter case does not tell names apart everywhere: to zsh `path` is PATH, and the runner compares without it.
    let upper = name.to_ascii_uppercase();
    if CODE.contains(&upper.as_str()) || KEPT.iter().any(|start| upper.starts_with(start)) {
        return Err("such a variable decides what code runs on the host, or belongs to the runner");
    }
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
