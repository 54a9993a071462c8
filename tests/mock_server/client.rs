//! The server as a child process, and HTTP to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// How long anything may take that should happen at once.
pub const PATIENCE: Duration = Duration::from_secs(20);

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweepctl"));
    command.arg("mock-server").args(args).stdin(Stdio::null());
    command
}

/// What a server says that does not start.
pub fn refused(args: &[&str]) -> Output {
    command(args).output().expect("the binary runs")
}

/// A running server, killed when dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

impl Server {
    pub fn start(args: &[&str]) -> Self {
        let mut child = command(args).stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line.strip_prefix("listening on http://").expect("the address");
        Self {
            address: address.trim().parse().expect("an address"),
            child,
        }
    }

    /// Sends a request; the answer is read through its reader.
    pub fn send(&self, method: &str, path: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: mock\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        // A server may answer and close before it read all.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        stream
    }

    pub fn get(&self, path: &str) -> Reply {
        Reply::read(self.send("GET", path, b""))
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        Reply::read(self.send("POST", path, body.to_string().as_bytes()))
    }

    pub fn chat(&self, body: Value) -> Reply {
        self.post("/v1/chat/completions", &body)
    }

    pub fn completion(&self, body: Value) -> Reply {
        self.post("/v1/completions", &body)
    }

    pub fn ask(&self, question: &str) -> Reply {
        self.chat(json!({"messages": [{"role": "user", "content": question}]}))
    }

    /// The value of a metric.
    pub fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").body;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("sweepctl_mock_{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {text}"))
            .parse()
            .expect("a count")
    }

    pub fn signal(&self, signal: Signal) {
        let id = self.child.id().try_into().expect("a process id");
        kill(Pid::from_raw(id), signal).expect("it runs");
    }

    /// The exit code once the process has ended.
    pub fn exit_code(&mut self) -> Option<i32> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server did not end");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A whole answer, or as much of it as came.
pub struct Reply {
    pub status: u16,
    pub body: String,
    /// Whether the body came to its end.
    pub complete: bool,
}

impl Reply {
    pub fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8(bytes).expect("text");
        let (head, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
        let head = head.to_ascii_lowercase();
        let (body, complete) = match head.split("content-length: ").nth(1) {
            None => unchunk(body),
            Some(rest) => {
                let length: usize = rest.lines().next().expect("a length").parse().expect("a number");
                (body.to_owned(), body.len() == length)
            }
        };
        Self { status, body, complete }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub fn content(&self) -> String {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()["choices"][0]["message"]["content"]
            .as_str()
            .expect("a text")
            .to_owned()
    }

    /// The data of an event stream.
    pub fn events(&self) -> Vec<String> {
        let blocks = self.body.split_terminator("\n\n");
        blocks
            .map(|block| block.strip_prefix("data: ").expect("data").to_owned())
            .collect()
    }
}

fn unchunk(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = after.get(..size) else { break };
        body.push_str(chunk);
        rest = after.get(size + 2..).unwrap_or_default();
    }
    (body, false)
}
