//! A script's throughput client: the one that its checkout brings, else this tool's own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Process;
use crate::config::problem::Problem;
use crate::http;
use crate::process::{self, Cancellation, Watch};
use crate::step::eval::endpoint::Endpoint;
use crate::step::serving::{self, Request, Route};

/// The client that a checkout may bring.
const OWN_CLIENT: &str = "utils/bench_serving/benchmark_serving.py";
/// Seconds that one request may take.
const TIMEOUT: Duration = Duration::from_secs(6 * 3600);
/// How long a server may take to start or stop profiling: it writes what it has found.
const PROFILE_TIMEOUT: Duration = Duration::from_secs(600);
/// How many redirects of those requests are followed.
const REDIRECTS: u32 = 10;
/// How often the server is looked at.
const TICK: Duration = Duration::from_millis(200);

/// What a script asks for.
#[derive(Debug, Clone, clap::Args)]
#[command(args_override_self = true)]
pub(crate) struct Bench {
    /// The model, as the script knows it
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    model: String,
    /// The server's port on this host
    #[arg(long)]
    port: u16,
    /// What the result says of the engine
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    backend: String,
    /// The route, such as /v1/chat/completions
    #[arg(long, default_value = "")]
    endpoint: String,
    /// The most tokens of a prompt
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    input_len: u64,
    /// The most tokens of an answer
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    output_len: u64,
    /// Lengths lie between this share of the most and the most
    #[arg(long)]
    random_range_ratio: f64,
    /// Requests in all
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    num_prompts: u64,
    /// Requests at a time
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    max_concurrency: u64,
    /// The result's name, without .json; a path of its own wins over the folder
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    result_filename: String,
    /// The folder of the result
    #[arg(long)]
    result_dir: PathBuf,
    /// The checkout that may bring a client [default: the working directory]
    #[arg(long)]
    bench_serving_dir: Option<PathBuf>,
    /// Ask under the model's chat template
    #[arg(long)]
    use_chat_template: bool,
    /// The same with DeepSeek-V4's own
    #[arg(long)]
    dsv4: bool,
    /// For clients that load the model's tokenizer
    #[arg(long)]
    trust_remote_code: bool,
    /// End when this process is gone
    #[arg(long)]
    server_pid: Option<i32>,
    /// As --trust-remote-code
    #[arg(long)]
    tokenizer: Option<String>,
    /// As --trust-remote-code
    #[arg(long)]
    tokenizer_mode: Option<String>,
}

impl Bench {
    /// Measures, and saves `<folder>/<name>.json`.
    ///
    /// # Errors
    /// A server that died, too many failed requests, and everything else that the client fails for.
    pub(crate) fn run(mut self, cancel: &Cancellation, show: &mut dyn FnMut(&str)) -> Result<(), Problem> {
        let profile = std::env::var_os("PROFILE").is_some_and(|value| value == "1");
        if profile {
            self.num_prompts = self.max_concurrency;
        }
        let watched = Watched::start(self.server_pid, cancel);
        let folder = self.bench_serving_dir.as_deref().unwrap_or(Path::new("."));
        let script = std::path::absolute(folder).map(|folder| folder.join(OWN_CLIENT));
        let measured = match script {
            Ok(script) if script.is_file() && is_on_path("python3") => {
                self.with_script(&script, profile, &watched.cancel, show)
            }
            _ => self.with_own(profile, &watched.cancel, show),
        };
        if watched.has_died(measured.is_err()) {
            let pid = self.server_pid.unwrap_or_default();
            let message = format!("the server (process {pid}) died while throughput was measured");
            return Err(Problem::file("", message).hint("its log says why"));
        }
        measured
    }

    /// Where the result goes.
    fn save(&self) -> PathBuf {
        self.result_dir.join(format!("{}.json", self.result_filename))
    }

    fn with_script(
        &self,
        script: &Path,
        profile: bool,
        cancel: &Cancellation,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), Problem> {
        let mut command = Command::new("python3");
        let numbers = [
            ("--random-input-len", self.input_len),
            ("--random-output-len", self.output_len),
            ("--num-prompts", self.num_prompts),
            ("--max-concurrency", self.max_concurrency),
            ("--num-warmups", self.max_concurrency * 2),
        ];
        command
            .arg(script)
            .args(["--model", &self.model, "--backend", &self.backend]);
        command.args([
            "--base-url",
            &format!("http://0.0.0.0:{}", self.port),
            "--dataset-name",
            "random",
        ]);
        command.args(["--random-range-ratio", &self.random_range_ratio.to_string()]);
        for (name, value) in numbers {
            command.args([name, &value.to_string()]);
        }
        command.args(["--request-rate", "inf", "--ignore-eos", "--save-result"]);
        command
            .args(["--percentile-metrics", "ttft,tpot,itl,e2el", "--result-dir"])
            .arg(&self.result_dir);
        command.args(["--result-filename", &format!("{}.json", self.result_filename)]);
        let flags = [
            (profile, "--profile"),
            (self.use_chat_template || self.dsv4, "--use-chat-template"),
            (self.dsv4, "--dsv4"),
            (self.trust_remote_code, "--trust-remote-code"),
        ];
        command.args(flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag));
        let texts = [
            ("--endpoint", Some(&self.endpoint)),
            ("--tokenizer", self.tokenizer.as_ref()),
            ("--tokenizer-mode", self.tokenizer_mode.as_ref()),
        ];
        for (name, value) in texts {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                command.args([name, value]);
            }
        }
        show(&format!("throughput: {} of the checkout measures", script.display()));
        let outcome = process::run(command, &Watch::default(), cancel, show)
            .map_err(|error| Problem::file("", error.to_string()))?;
        if outcome.is_success() {
            return Ok(());
        }
        Err(Problem::file("", format!("the throughput client {outcome}")).hint("its output above says why"))
    }

    fn with_own(&self, profile: bool, cancel: &Cancellation, show: &mut dyn FnMut(&str)) -> Result<(), Problem> {
        let url = format!("http://127.0.0.1:{}", self.port);
        let served = Endpoint::parse(&url, None)?.served(&[&self.model], &mut *show)?;
        let request = Request {
            endpoint: url.clone(),
            route: self.route()?,
            model: self.model.clone(),
            served: Some(served),
            isl: self.input_len,
            osl: self.output_len,
            range_ratio: self.random_range_ratio.clamp(0.0, 1.0),
            concurrency: self.max_concurrency,
            requests: self.num_prompts,
            warmups: self.max_concurrency * 2,
            seed: 0,
            timeout: TIMEOUT,
            backend: self.backend.clone(),
            save: self.save(),
        };
        if profile {
            ask(&url, "/start_profile", show);
        }
        let measured = serving::measure(&request, cancel, show);
        if profile {
            ask(&url, "/stop_profile", show);
        }
        let done = measured?;
        show(&format!(
            "throughput: {}, {:.1} output tokens a second, in {}",
            crate::plural::count(done.completed, "request"),
            done.output_throughput,
            request.save.display()
        ));
        Ok(())
    }

    fn route(&self) -> Result<Route, Problem> {
        match self.endpoint.trim_end_matches('/') {
            "" if self.use_chat_template || self.dsv4 || self.backend.contains("chat") => Ok(Route::Chat),
            "" => Ok(Route::Completions),
            // A template is only applied on the one, whatever the script's client does for itself.
            "/v1/completions" if !self.use_chat_template && !self.dsv4 => Ok(Route::Completions),
            "/v1/completions" | "/v1/chat/completions" => Ok(Route::Chat),
            other => Err(Problem::file("", format!("`{other}` is no route that is measured"))
                .hint("give /v1/completions or /v1/chat/completions")),
        }
    }
}

/// A server that is watched beside a measurement.
struct Watched {
    cancel: Cancellation,
    died: Arc<AtomicBool>,
    done: Arc<AtomicBool>,
    watched: bool,
    process: Option<Process>,
}

impl Watched {
    fn start(pid: Option<i32>, cancel: &Cancellation) -> Self {
        let watched = Self {
            cancel: cancel.part(None),
            died: Arc::default(),
            done: Arc::default(),
            watched: pid.is_some(),
            process: pid.and_then(Process::find),
        };
        if watched.watched {
            let process = watched.process;
            let (died, done, part) = (watched.died.clone(), watched.done.clone(), watched.cancel.clone());
            std::thread::spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    if !process.is_some_and(|process| process.lives()) {
                        died.store(true, Ordering::SeqCst);
                        return part.cancel();
                    }
                    std::thread::sleep(TICK);
                }
            });
        }
        watched
    }

    /// Whether the server died. Of a measurement that failed it may be the reason before the watch has seen it.
    fn has_died(&self, failed: bool) -> bool {
        self.done.store(true, Ordering::SeqCst);
        let gone = self.watched && !self.process.is_some_and(|process| process.lives());
        self.died.load(Ordering::SeqCst) || (failed && gone)
    }
}

fn is_on_path(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Tells the server to start or stop profiling. One that cannot is measured all the same.
fn ask(url: &str, path: &str, show: &mut dyn FnMut(&str)) {
    let request = http::Request::post(&format!("{url}{path}"), "", PROFILE_TIMEOUT).redirects(REDIRECTS);
    let failed = match request.send() {
        Err(error) => error.to_string(),
        Ok(answer) if answer.status.as_u16() >= 400 => format!("http status: {}", answer.status.as_u16()),
        Ok(_) => return,
    };
    show(&format!("throughput: warning: {path}: {failed}"));
}
