//! Rendered workflows, prepared so that a failure in a called one does not end act: each call is a step.

/// What stands in a job for a call.
pub struct Step {
    /// The command, which finds the call's inputs as WITH_0, WITH_1, ..., each `name=value`.
    pub run: String,
    /// The outputs of the called workflow.
    pub outputs: Vec<String>,
}

/// A workflow's text in which every job that calls a workflow is an ordinary job with one step.
pub fn apart(text: &str, step: impl Fn(&str) -> Step) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(called) = line.strip_prefix("    uses: ./.github/workflows/") else {
            out.push_str(&format!("{line}\n"));
            continue;
        };
        let Step { run, outputs } = step(called);
        out.push_str("    runs-on: ubuntu-24.04\n");
        if !outputs.is_empty() {
            out.push_str("    outputs:\n");
        }
        for name in &outputs {
            out.push_str(&format!("      {name}: ${{{{ steps.call.outputs.{name} }}}}\n"));
        }
        out.push_str(&format!(
            "    steps:\n    - id: call\n      shell: bash\n      run: {run}\n"
        ));
        let mut number = 0;
        let mut inputs = false;
        while let Some(rest) = lines.next_if(|line| line.starts_with("      ") || is_section(line)) {
            if is_section(rest) {
                inputs = rest == "    with:";
                out.push_str(if inputs { "      env:\n" } else { "" });
            } else if inputs {
                let (name, value) = rest.trim_start().split_once(": ").expect("an input has a value");
                out.push_str(&format!("        WITH_{number}: {name}={value}\n"));
                number += 1;
            }
        }
    }
    out
}

fn is_section(line: &str) -> bool {
    matches!(line, "    with:" | "    secrets:")
}

/// A step that runs act on the called workflow.
pub fn run(called: &str, text: &str) -> Step {
    let outputs = outputs(text);
    let names = outputs.join(" ");
    Step {
        run: format!("exec python3 -IS \"$ACT_ACTIONS/call.py\" {called} {names}"),
        outputs,
    }
}

/// The names of a rendered workflow's outputs.
fn outputs(text: &str) -> Vec<String> {
    let called = text.split_once("  workflow_call:\n").map_or("", |(_, rest)| rest);
    let called = called.split_once("\npermissions:").map_or("", |(called, _)| called);
    let outputs = called.split_once("\n    outputs:\n").map_or("", |(_, rest)| rest);
    let names = outputs.lines().take_while(|line| line.starts_with("      "));
    let names = names.filter_map(|line| line.strip_prefix("      ")?.strip_suffix(':'));
    names.filter(|name| !name.starts_with(' ')).map(str::to_owned).collect()
}

/// A text in which a skipped job has no outputs, as on GitHub: act gives their expressions as they are written.
pub fn outputs_of_jobs_that_ran(text: &str) -> String {
    let output = regex::Regex::new(r"needs\.([a-z0-9-]+)\.outputs\.([a-z0-9_]+)").expect("a pattern");
    let guarded = "(needs.$1.result != 'skipped' && needs.$1.outputs.$2 || '')";
    output.replace_all(text, guarded).into_owned()
}
