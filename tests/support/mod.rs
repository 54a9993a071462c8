//! What the tests share: running the binary, making repositories, comparing JSON.

pub mod fleet;
pub mod terminal;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use serde_json::Value;
use sweepctl::config::fields::Size;

/// The project's folder.
pub fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The binary, in a folder, with nothing of GitHub Actions or of a job in its environment.
pub fn sweepctl(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweepctl"));
    command.current_dir(folder).env("NO_COLOR", "1");
    let github = ["GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_STEP_SUMMARY"];
    let of_run = ["GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_RUN_ID"];
    for name in github.into_iter().chain(of_run).chain([
        "MODEL_PREFIX",
        "EVAL_LIMIT",
        "RESULT_FILENAME",
        "RANDOM_RANGE_RATIO",
        "REQUIRE_POWER",
        "COLUMNS",
    ]) {
        command.env_remove(name);
    }
    command
}

/// Runs the binary with arguments in a folder.
pub fn run<S: AsRef<std::ffi::OsStr>>(folder: &Path, args: impl IntoIterator<Item = S>) -> Output {
    sweepctl(folder).args(args).output().expect("the binary runs")
}

/// Runs the binary, expects success, and reads its JSON.
pub fn json<S: AsRef<std::ffi::OsStr>>(folder: &Path, args: impl IntoIterator<Item = S>) -> Value {
    let output = run(folder, args);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("the output is JSON")
}

/// Runs a command with a text as its standard input.
pub fn fed(command: &mut Command, text: &str) -> Output {
    let pipes = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes.spawn().expect("it starts");
    let (mut stdin, text) = (child.stdin.take().expect("a pipe"), text.to_owned());
    // Beside the reading: neither pipe holds everything.
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("a writer").expect("it reads everything");
    output
}

/// What the command said.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What the command printed.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs git in a folder, without the user's configuration, and gives its output.
pub fn git(folder: &Path, args: &[&str]) -> String {
    let output = git_command(folder, args)
        .output()
        .expect("git runs: install it with `apt-get install git`");
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A git command of a made-up person at a fixed time.
pub fn git_command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .args([
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for (name, value) in [
        ("GIT_AUTHOR_NAME", "A Tester"),
        ("GIT_AUTHOR_EMAIL", "tester@example.com"),
        ("GIT_COMMITTER_NAME", "A Tester"),
        ("GIT_COMMITTER_EMAIL", "tester@example.com"),
        ("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"),
        ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z"),
    ] {
        command.env(name, value);
    }
    command
}

/// Writes a file, with its folders.
pub fn write(folder: &Path, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
    std::fs::write(&path, text).expect("a file");
    path
}

/// Commits everything in a work tree and gives the commit's hash.
pub fn commit(folder: &Path, message: &str) -> String {
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "--allow-empty", "-m", message]);
    git(folder, &["rev-parse", "HEAD"])
}

/// Runs a check over many cases on both cores and gives every miss, in the order of the cases.
pub fn misses<T: Sync>(cases: &[T], check: impl Fn(&T) -> Option<String> + Sync) -> Vec<String> {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { break };
                    if let Some(miss) = check(case) {
                        found.lock().expect("no check panics").push((index, miss));
                    }
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no check panics");
    found.sort();
    found.into_iter().map(|(_, miss)| miss).collect()
}

/// The misses of cases in their order, until one says some words; without words all, on both cores.
pub fn misses_until<T: Sync>(
    cases: &[T],
    words: Option<&str>,
    check: impl Fn(&T) -> Option<String> + Sync,
) -> Vec<String> {
    let Some(words) = words else {
        return misses(cases, check);
    };
    let mut found = Vec::new();
    for miss in cases.iter().filter_map(check) {
        let is_it = miss.contains(words);
        found.push(miss);
        if is_it {
            break;
        }
    }
    found
}

/// Fails with all misses, the first of them in full.
pub fn assert_none(what: &str, cases: usize, misses: &[String]) {
    assert!(cases > 0, "{what}: no case was read");
    assert!(
        misses.is_empty(),
        "{what}: {} of {cases} cases missed\n\n{}",
        misses.len(),
        misses.iter().take(20).cloned().collect::<Vec<_>>().join("\n\n")
    );
}

/// The first differing lines of two JSON values; `None` when they mean the same.
pub fn difference(found: &Value, wanted: &Value) -> Option<String> {
    if found == wanted {
        return None;
    }
    let pretty = |value: &Value| serde_json::to_string_pretty(&sorted(value)).expect("JSON");
    let (found, wanted) = (pretty(found), pretty(wanted));
    let diff = similar::TextDiff::from_lines(&wanted, &found);
    let text = diff
        .unified_diff()
        .context_radius(2)
        .header("wanted", "found")
        .to_string();
    Some(text.lines().take(24).collect::<Vec<_>>().join("\n"))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            Value::Object(
                fields
                    .into_iter()
                    .map(|(name, value)| (name.clone(), sorted(value)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

/// Makes a row of one node one of several: its sizes are those of prefill and decode.
pub fn spread(row: &mut Value, [prefill, decode]: [Value; 2], concs: &[u64]) {
    let fields = row.as_object_mut().expect("a row");
    for size in Size::ALL {
        fields.remove(size.names().row);
    }
    row["prefill"] = prefill;
    row["decode"] = decode;
    row["conc"] = concs.into();
}

/// The lines of a table written by hand that are no comment: their number, their text, and its columns, parted by `|`.
pub fn lines_of_table(text: &'static str) -> impl Iterator<Item = (usize, &'static str, Vec<&'static str>)> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(index, line)| (index + 1, line, line.split('|').map(str::trim).collect()))
}
