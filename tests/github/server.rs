//! A server on loopback that plays GitHub's API: answers by path, and everything that it was asked.

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Request, Response};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::support::sweepctl;

/// The token that the commands get; no output may hold it.
pub const TOKEN: &str = "ghs_aVerySecretTokenOfTheTests";
/// The repository.
pub const REPOSITORY: &str = "acme/bench";

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Reply {
    pub fn text(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self::text(status, body.to_string())
    }

    pub fn message(status: u16, message: &str) -> Self {
        let body = json!({ "message": message, "documentation_url": "https://docs.github.com/rest", "status": status.to_string() });
        Self::json(status, &body)
    }

    pub fn header(mut self, name: &str, value: impl ToString) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }
}

impl From<Value> for Reply {
    fn from(body: Value) -> Self {
        Self::json(200, &body)
    }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The method and the path with its query.
    pub what: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Asked {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a body of JSON")
    }
}

#[derive(Default)]
struct State {
    /// By method and path, with or without the query; the last answer of a list stays.
    replies: HashMap<String, VecDeque<Reply>>,
    asked: Vec<Asked>,
}

/// The server; it ends when it is dropped.
pub struct GitHub {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl GitHub {
    pub fn new() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State::default()));
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let router = Router::new().fallback(move |request| answer(Arc::clone(&shared), request));
                let serving = axum::serve(listener, router);
                tokio::select! {
                    _ = serving => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            state,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Answers a request, `GET /path`, from now on. Without a query in it, any query is answered so.
    pub fn on(&self, what: &str, reply: impl Into<Reply>) -> &Self {
        let mut state = self.state.lock().expect("no panic");
        state.replies.insert(what.to_owned(), VecDeque::from([reply.into()]));
        self
    }

    /// Answers a request with one after another; the last stays.
    pub fn in_turn(&self, what: &str, replies: Vec<Reply>) -> &Self {
        self.state
            .lock()
            .expect("no panic")
            .replies
            .insert(what.to_owned(), replies.into());
        self
    }

    /// Everything that was asked.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.lock().expect("no panic").asked.clone()
    }

    /// The requests, each its method and path.
    pub fn requests(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.what).collect()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The binary with this server for GitHub.
    pub fn command(&self, folder: &Path) -> Command {
        let mut command = sweepctl(folder);
        for name in [
            "GITHUB_TOKEN",
            "GITHUB_SHA",
            "GITHUB_RUN_ID",
            "GITHUB_RUN_ATTEMPT",
            "GITHUB_EVENT_PATH",
        ] {
            command.env_remove(name);
        }
        command
            .env("GITHUB_API_URL", self.url())
            .env("GITHUB_REPOSITORY", REPOSITORY)
            .env("GITHUB_SERVER_URL", "https://github.com")
            .env("GH_TOKEN", TOKEN);
        command
    }

    /// Runs the binary in an empty folder. The token is in nothing that it says.
    pub fn run(&self, args: &[&str]) -> Output {
        let folder = tempfile::tempdir().expect("a folder");
        let output = self
            .command(folder.path())
            .args(args)
            .output()
            .expect("the binary runs");
        keeps_the_token(&output);
        output
    }
}

/// Fails where the token is in anything that was said.
pub fn keeps_the_token(output: &Output) {
    for said in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(said);
        assert!(!text.contains(TOKEN), "{text}");
    }
}

impl Drop for GitHub {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn answer(state: Arc<Mutex<State>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.expect("a body");
    let path = parts.uri.path();
    let whole = parts.uri.path_and_query().map_or(path, |whole| whole.as_str());
    let (what, without_query) = (format!("{} {whole}", parts.method), format!("{} {path}", parts.method));
    let reply = {
        let mut state = state.lock().expect("no panic");
        state.asked.push(Asked {
            what: what.clone(),
            headers: parts.headers,
            body,
        });
        let key = if state.replies.contains_key(&what) {
            what
        } else {
            without_query
        };
        match state.replies.get_mut(&key) {
            None => Reply::message(404, "Not Found"),
            Some(replies) if replies.len() > 1 => replies.pop_front().expect("two"),
            Some(replies) => replies.front().expect("one").clone(),
        }
    };
    let mut response = Response::builder()
        .status(reply.status)
        .header("content-type", "application/json");
    if !reply.headers.iter().any(|(name, _)| name == "x-ratelimit-remaining") {
        response = response
            .header("x-ratelimit-limit", "1000")
            .header("x-ratelimit-remaining", "900");
    }
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(reply.body)).expect("a response")
}

// -- what GitHub says, shortened to what surrounds the fields that are used

/// A commit's hash: the digit, forty times.
pub fn sha(digit: char) -> String {
    digit.to_string().repeat(40)
}

pub fn user(login: &str) -> Value {
    json!({ "login": login, "id": 1, "type": "User", "site_admin": false })
}

/// Pull request 12 of branch `topic`, merged, with its labels.
pub fn pull(labels: &[&str]) -> Value {
    let labels: Vec<Value> = labels
        .iter()
        .map(
            |name| json!({ "id": 208_045_946, "name": name, "color": "f29513", "default": false, "description": null }),
        )
        .collect();
    let repo = json!({ "id": 1_296_269, "name": "bench", "full_name": REPOSITORY, "private": false, "default_branch": "main" });
    json!({
        "url": "https://api.github.com/repos/acme/bench/pulls/12", "id": 1, "number": 12, "state": "closed",
        "locked": false, "title": "A change", "user": user("bob"), "body": null, "labels": labels,
        "created_at": "2026-10-01T08:00:00Z", "merged_at": "2026-10-02T08:00:00Z",
        "merge_commit_sha": sha('f'), "draft": false,
        "head": { "label": "acme:topic", "ref": "topic", "sha": sha('b'), "user": user("bob"), "repo": repo },
        "base": { "label": "acme:main", "ref": "main", "sha": sha('a'), "user": user("acme"), "repo": repo },
        "author_association": "MEMBER", "auto_merge": null,
    })
}

pub fn comment(id: u64, login: &str, association: &str, body: &str) -> Value {
    json!({
        "id": id, "node_id": "IC_x", "url": format!("https://api.github.com/repos/acme/bench/issues/comments/{id}"),
        "user": user(login), "created_at": "2026-10-02T07:00:00Z", "updated_at": "2026-10-02T07:00:00Z",
        "author_association": association, "body": body, "reactions": { "total_count": 0 },
        "performed_via_github_app": null,
    })
}

/// A run of run-sweep.yml on the newest commit of `topic`.
pub fn run(id: u64, conclusion: &str) -> Value {
    json!({
        "id": id, "name": "Run Sweep", "node_id": "WFR_x", "head_branch": "topic", "head_sha": sha('b'),
        "path": ".github/workflows/run-sweep.yml", "display_title": "A change", "run_number": 562,
        "event": "pull_request", "status": "completed", "conclusion": conclusion, "workflow_id": 159_038,
        "html_url": format!("https://github.com/acme/bench/actions/runs/{id}"), "pull_requests": [],
        "created_at": "2026-10-01T09:00:00Z", "updated_at": "2026-10-01T19:00:00Z", "run_attempt": 1,
        "run_started_at": "2026-10-01T09:00:00Z", "head_repository": { "full_name": REPOSITORY },
    })
}

pub fn runs(runs: Vec<Value>) -> Value {
    json!({ "total_count": runs.len(), "workflow_runs": runs })
}

pub fn artifacts(artifacts: &[(&str, bool)]) -> Value {
    let artifacts: Vec<Value> = artifacts
        .iter()
        .map(|(name, expired)| {
            json!({
                "id": 11, "node_id": "MDg6", "name": name, "size_in_bytes": 556, "expired": expired,
                "created_at": "2026-10-01T19:00:00Z", "expires_at": "2026-12-30T19:00:00Z",
                "workflow_run": { "id": 1, "head_branch": "topic", "head_sha": sha('b') },
            })
        })
        .collect();
    json!({ "total_count": artifacts.len(), "artifacts": artifacts })
}
