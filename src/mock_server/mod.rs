//! A small server with the OpenAI API, in place of an inference engine: it answers eval questions with a known
//! accuracy, takes the lengths that throughput clients ask for, and fails on demand.
//!
//! A request is read (`protocol`), its question is found and answered (`answer`, with `answers_file`, `truth`,
//! `arithmetic` and `draw`; by a tool where the request has any: `tools`, with `schema`), the answer is put under the request's limits (`reply`), faults strike (`faults`), and the
//! body is sent over time (`events`, `pace`). `traffic` counts, and `routes` joins it all.

pub(crate) mod answer;
mod answers_file;
mod arithmetic;
mod draw;
mod events;
pub(crate) mod faults;
pub(crate) mod pace;
mod protocol;
mod reply;
mod routes;
mod schema;
mod tools;
mod traffic;
mod truth;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;
use clap::Args;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::answer::{Answerer, Skill};
use self::faults::Faults;
use self::pace::Pace;
use crate::config::problem::{Problem, Problems};

/// The largest request body, in bytes (32 MiB).
const MAX_BODY: usize = 32 << 20;

/// How long sent bytes get to leave before a connection or the process is broken on purpose.
const FLUSH: Duration = Duration::from_millis(50);

/// Everything that can be chosen.
#[derive(Debug, Clone, Args)]
pub(crate) struct Settings {
    /// Where and as what it serves.
    #[command(flatten)]
    pub serving: Serving,
    /// How well it answers.
    #[command(flatten)]
    pub skill: Skill,
    /// How fast it answers.
    #[command(flatten)]
    pub pace: Pace,
    /// What goes wrong.
    #[command(flatten)]
    pub faults: Faults,
}

/// Where and as what a server serves.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct Serving {
    /// The address to listen on
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// The port to listen on; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// The name of the served model
    #[arg(long, value_name = "NAME", default_value = "mock")]
    pub model: String,
    /// The most words of prompt and answer together; longer requests get HTTP 400
    #[arg(long, value_name = "N", default_value_t = 32768)]
    pub max_model_len: usize,
    /// Answer HTTP 503 for so long first
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub startup_delay: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    /// A day.
    const MOST: f64 = 86_400.0;
    let seconds = text.parse().ok().filter(|seconds| (0.0..=MOST).contains(seconds));
    let seconds = seconds.map(Duration::from_secs_f64);
    seconds.ok_or_else(|| format!("a number of seconds is from 0 to {MOST}"))
}

/// A server that listens: connections are accepted, and wait for [`Server::run`].
#[derive(Debug)]
pub(crate) struct Server {
    runtime: Runtime,
    listener: tokio::net::TcpListener,
    address: SocketAddr,
    router: Router,
    interrupt: Signal,
    terminate: Signal,
}

impl Server {
    /// Reads the answers and listens. From here on SIGINT and SIGTERM end [`Server::run`].
    ///
    /// # Errors
    /// Everything wrong with the answers files, and an address that cannot be listened on.
    pub(crate) fn bind(settings: Settings) -> Result<Self, Problems> {
        let answerer = Answerer::load(settings.skill.clone())?;
        let listener = listen(&settings.serving)?;
        let app = routes::App::new(settings, answerer);
        Self::new(listener, routes::router(app))
            .map_err(|error| Problem::file("", format!("the server cannot start: {error}")).into())
    }

    fn new(listener: TcpListener, router: Router) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let context = runtime.enter();
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        drop(context);
        Ok(Self {
            runtime,
            listener,
            address,
            router,
            interrupt,
            terminate,
        })
    }

    /// Where it listens.
    #[must_use]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until SIGINT or SIGTERM, then ends at once: requests in flight are dropped.
    ///
    /// # Errors
    /// None of a single connection; a listener that breaks.
    pub(crate) fn run(mut self) -> io::Result<()> {
        // Words are small packets, to be sent as they come.
        let listener = self.listener.tap_io(|connection| {
            let _ = connection.set_nodelay(true);
        });
        self.runtime.block_on(async {
            tokio::select! {
                result = axum::serve(listener, self.router) => result,
                _ = self.interrupt.recv() => Ok(()),
                _ = self.terminate.recv() => Ok(()),
            }
        })
    }
}

fn listen(serving: &Serving) -> Result<TcpListener, Problems> {
    let Serving { host, port, .. } = serving;
    TcpListener::bind((host.as_str(), *port)).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => "another process listens there: choose another --port, or 0 for a free one",
            io::ErrorKind::PermissionDenied => "ports below 1024 are reserved: choose another --port",
            _ => "--host must be an address of this machine, such as 127.0.0.1",
        };
        Problem::file("", format!("cannot listen on {host}:{port}: {error}"))
            .hint(hint)
            .into()
    })
}
