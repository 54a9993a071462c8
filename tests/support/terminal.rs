//! What a command prints on a terminal of some width.

use std::process::{Command, Stdio};

/// Runs a command on a terminal, `columns` wide, and gives what it shows, with one line end a line.
pub fn shown(command: &Command, columns: u16) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| word.to_str().expect("text"));
    let line = shlex::try_join(words).expect("no NUL");
    // From util-linux, which every Debian has: it gives its command a terminal.
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
    script.current_dir(command.get_current_dir().expect("a folder"));
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    let output = script.env("COLUMNS", columns.to_string()).output();
    let output = output.expect("script runs: it is part of util-linux");
    String::from_utf8_lossy(&output.stdout).replace('\r', "")
}

/// Holds what is shown on 80 and on 120 columns against snapshots, and its lines against that width.
pub fn held(name: &str, command: &Command) {
    for columns in [80, 120] {
        let text = shown(command, columns);
        for line in text.lines() {
            assert!(
                line.chars().count() <= usize::from(columns),
                "{name} at {columns}: {line}"
            );
        }
        let name = format!("{name}_{columns}");
        insta::with_settings!({
            snapshot_path => concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!(name, text);
        });
    }
}
