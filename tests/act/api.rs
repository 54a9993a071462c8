//! GitHub's API, as far as a sweep asks it: of a repository without pull requests, earlier runs and comments.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// A server that ends with its value.
pub struct Api {
    pub address: SocketAddr,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Api {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let thread = std::thread::spawn(move || {
            // A connection that asks nothing is the end.
            while listener.accept().is_ok_and(|(stream, _)| answer(stream).is_some()) {}
        });
        let thread = Some(thread);
        Self { address, thread }
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        drop(TcpStream::connect(self.address));
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// Answers one request; `None` where there is none.
fn answer(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let request = line().filter(|request| !request.is_empty())?;
    let mut length = 0;
    while let Some(header) = line().filter(|header| !header.is_empty()) {
        if let Some((name, value)) = header.split_once(": ")
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, body) = reply(request.starts_with("POST "), path.split('?').next().unwrap_or_default());
    let size = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\nConnection: close");
    let _ = write!(reader.into_inner(), "{head}\r\n\r\n{body}");
    Some(())
}

/// The run itself, as far as its statistics read it.
const RUN: &str = r#"{"id": 1, "run_attempt": 1, "path": ".github/workflows/run-sweep.yml", "event": "push",
    "status": "in_progress", "conclusion": null, "head_sha": "1111111111111111111111111111111111111111",
    "html_url": "https://github.com/acme/bench/actions/runs/1", "created_at": "2026-11-01T08:00:00Z"}"#;

fn reply(posts: bool, path: &str) -> (&'static str, &'static str) {
    match path.rsplit('/').next() {
        _ if posts => (
            "201 Created",
            r#"{"id": 1, "html_url": "https://github.com/acme/bench/pull/2#issuecomment-1"}"#,
        ),
        Some("pulls" | "comments" | "commits" | "reviews") => ("200 OK", "[]"),
        Some("jobs") => ("200 OK", r#"{"total_count": 0, "jobs": []}"#),
        Some("runs") => ("200 OK", r#"{"total_count": 0, "workflow_runs": []}"#),
        Some("artifacts") => ("200 OK", r#"{"total_count": 0, "artifacts": []}"#),
        Some("bench") => ("200 OK", r#"{"default_branch": "main"}"#),
        _ if path.rsplit('/').nth(1) == Some("runs") => ("200 OK", RUN),
        _ => ("404 Not Found", r#"{"message": "Not Found"}"#),
    }
}
