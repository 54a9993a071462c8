//! GPU metrics while a benchmark runs: one CSV with a line a GPU and second, by the vendor's own tool.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Process;
use crate::process::Cancellation;

/// What NVIDIA's tool is asked for.
const QUERY: &str = "--query-gpu=timestamp,index,power.draw,temperature.gpu,clocks.current.sm,clocks.current.memory,\
                     utilization.gpu,utilization.memory";
/// How often the monitor looks whether it is still wanted.
const TICK: Duration = Duration::from_millis(100);
/// How long the vendor's tool may take to end.
const TOOL_GRACE: Duration = Duration::from_secs(1);
/// How long the tool may take to answer once.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a monitor may take to end.
const GRACE: Duration = Duration::from_secs(5);
/// AMD's tool stamps whole seconds: only a sample of a later second closes the benchmark's window.
const AMD_MARGIN: u64 = 2;

/// Whose GPUs they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Vendor {
    /// `nvidia-smi`.
    Nvidia,
    /// `amd-smi`.
    Amd,
}

/// When a snapshot of AMD's energy counters is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum At {
    /// Before the benchmark, with what the GPUs are.
    Start,
    /// After it.
    End,
}

/// Samples until it is told to end, or its parent is gone.
///
/// # Errors
/// The tool cannot be started, or the file cannot be written.
pub(crate) fn run(vendor: Vendor, output: &Path, interval: u64, cancel: &Cancellation) -> io::Result<()> {
    let parent = std::os::unix::process::parent_id();
    let mut file = File::create(output)?;
    let seconds = interval.to_string();
    let mut child = match vendor {
        // Its own file: nothing is lost between the two.
        Vendor::Nvidia => tool("nvidia-smi", &[QUERY, "--format=csv", "-l", &seconds])
            .stdout(file.try_clone()?)
            .spawn()?,
        Vendor::Amd => tool("amd-smi", &["metric", "-p", "-c", "-t", "-u", "-w", &seconds, "--csv"])
            // It is written in Python, which keeps what it prints into a pipe.
            .env("PYTHONUNBUFFERED", "1")
            .stdout(Stdio::piped())
            .spawn()?,
    };
    let reader = child.stdout.take().map(|lines| {
        std::thread::spawn(move || {
            // The rest of a full disk's metrics is lost, and the job is not.
            let _ = one_header(lines, &mut file);
        })
    });
    while child.try_wait()?.is_none() {
        if cancel.signal().is_some() || std::os::unix::process::parent_id() != parent {
            end(&mut child);
            break;
        }
        std::thread::sleep(TICK);
    }
    if let Some(reader) = reader {
        let _ = reader.join();
    }
    Ok(())
}

fn tool(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

fn end(child: &mut Child) {
    let pid = i32::try_from(child.id()).unwrap_or_default();
    let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    let late = Instant::now() + TOOL_GRACE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < late {
        std::thread::sleep(TICK / 4);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Copies whole lines from the first header on; AMD's tool repeats it with every sample.
fn one_header(lines: ChildStdout, file: &mut File) -> io::Result<()> {
    let mut lines = BufReader::new(lines);
    let mut line = Vec::new();
    let mut has_header = false;
    while lines.read_until(b'\n', &mut line)? > 0 {
        let is_header = line.starts_with(b"timestamp,");
        if line.ends_with(b"\n") && is_header != has_header {
            file.write_all(&line)?;
            has_header = true;
        }
        line.clear();
    }
    Ok(())
}

/// Ends a monitor so that its file holds whole lines, and one sample after the benchmark's end.
pub(crate) fn finish(
    vendor: Vendor,
    output: &Path,
    interval: u64,
    pid: i32,
    cancel: &Cancellation,
    show: &mut dyn FnMut(&str),
) {
    if vendor == Vendor::Amd {
        let _ = cancel.sleep(Duration::from_secs(interval + AMD_MARGIN));
    }
    stop(pid);
    match drop_cut_line(output) {
        Ok(false) => {}
        Ok(true) => show("[GPU Monitor] dropped a cut last line"),
        Err(error) => show(&format!(
            "[GPU Monitor] warning: {} is not whole: {error}",
            output.display()
        )),
    }
    match vendor {
        Vendor::Nvidia => {
            if let Err(error) = last_sample(output) {
                show(&format!("[GPU Monitor] warning: there is no last sample: {error}"));
            }
        }
        Vendor::Amd => snapshot(output, At::End, show),
    }
    let lines = std::fs::read(output).map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count());
    let lines = crate::plural::count(lines, "line");
    show(&format!("[GPU Monitor] {lines} in {}", output.display()));
}

fn stop(pid: i32) {
    let Some(process) = Process::find(pid) else { return };
    let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    let late = Instant::now() + GRACE;
    while process.lives() {
        if Instant::now() > late {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        std::thread::sleep(TICK / 4);
    }
}

/// Cuts a file after its last whole line. Whether there was something to cut.
fn drop_cut_line(path: &Path) -> io::Result<bool> {
    let mut file = File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    // No line of a monitor is that long.
    let start = length.saturating_sub(64 << 10);
    file.seek(SeekFrom::Start(start))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    if end.last().is_none_or(|byte| *byte == b'\n') {
        return Ok(false);
    }
    let kept = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    file.set_len(start + kept as u64)?;
    Ok(true)
}

fn last_sample(output: &Path) -> io::Result<()> {
    let sample = answer(tool("nvidia-smi", &[QUERY, "--format=csv,noheader"]))?;
    if !sample.status.success() {
        return Err(io::Error::other(format!("nvidia-smi: {}", sample.status)));
    }
    File::options().append(true).open(output)?.write_all(&sample.stdout)
}

/// What a tool prints; one that hangs, as on a broken GPU, is ended.
fn answer(mut command: Command) -> io::Result<Output> {
    let child = command.stdout(Stdio::piped()).spawn()?;
    let pid = i32::try_from(child.id()).unwrap_or_default();
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if ended.recv_timeout(ANSWER).is_err() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    });
    let output = child.wait_with_output();
    let _ = done.send(());
    let _ = watch.join();
    output
}

/// What AMD's tool says of energy, and at the start of the GPUs, in files beside the metrics. One that fails leaves none.
pub(crate) fn snapshot(output: &Path, at: At, show: &mut dyn FnMut(&str)) {
    let energy = ["metric", "-E", "--csv"];
    let wanted: &[(&str, &[&str])] = match at {
        At::Start => &[
            ("_energy_start.csv", &energy),
            ("_identity.json", &["static", "--json"]),
        ],
        At::End => &[("_energy_end.csv", &energy)],
    };
    for (name, arguments) in wanted {
        let path = beside(output, name);
        let answer = answer(tool("amd-smi", arguments));
        let written = match answer {
            Ok(answer) if answer.status.success() => std::fs::write(&path, answer.stdout),
            Ok(answer) => Err(io::Error::other(answer.status.to_string())),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            let _ = std::fs::remove_file(&path);
            show(&format!(
                "[GPU Monitor] warning: no {}: amd-smi: {error}",
                path.display()
            ));
        }
    }
}

/// `gpu_metrics.csv` with another end.
fn beside(output: &Path, end: &str) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.strip_suffix(".csv").unwrap_or(&name);
    output.with_file_name(format!("{stem}{end}"))
}
