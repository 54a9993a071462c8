//! The runner's service of artifacts, on loopback: it refuses what GitHub's refuses, and fails as it is told to.
//!
//! GitHub's own client is run against it (`client.rs`), so that it answers in GitHub's forms.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path as Part, RawQuery, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::support::sweepctl;

/// The run and the job that the token is for, as the service calls them.
const RUN: &str = "ce7f54c7-61c7-4aae-887f-30da475f5f1a";
const JOB: &str = "ca395085-040a-526b-2ce8-bdc85f692774";
/// The signature of an address.
const SIGNATURE: &str = "aVerySecretSignature";

/// The token of a job.
pub fn token() -> String {
    let claims =
        json!({ "scp": format!("Actions.GenericRead:0 Actions.Results:{RUN}:{JOB}"), "exp": 4_102_444_800_u64 });
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.c2lnbmF0dXJl", part(&json!({ "alg": "RS256" })), part(&claims))
}

/// How a content is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Given {
    /// As it is.
    #[default]
    Whole,
    /// After a while.
    Late(Duration),
    /// So often with a status, then as it is.
    Refused(usize, u16),
    /// So often cut in half, then as it is.
    Cut(usize),
    /// With one byte changed, each time.
    Changed,
}

/// An artifact.
#[derive(Debug, Clone)]
pub struct Artifact {
    pub id: u64,
    pub name: String,
    pub content: Vec<u8>,
    pub kind: &'static str,
    /// The name that the content is given; `None` of an archive.
    pub file: Option<&'static str>,
    pub given: Given,
    /// Whether the list says its digest.
    pub digest: bool,
    /// The job that made it.
    pub job: String,
}

impl Artifact {
    pub fn new(id: u64, name: &str, content: Vec<u8>) -> Self {
        Self {
            id,
            name: name.to_owned(),
            content,
            kind: "application/zip",
            file: None,
            given: Given::Whole,
            digest: true,
            job: format!("job-of-{id}"),
        }
    }

    pub fn given(mut self, given: Given) -> Self {
        self.given = given;
        self
    }

    pub fn digest(&self) -> String {
        let hash = Sha256::digest(&self.content);
        format!(
            "sha256:{}",
            hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        )
    }
}

#[derive(Default)]
struct Shared {
    artifacts: Vec<Artifact>,
    /// Calls for lists that are still to be refused.
    busy: usize,
    /// The most artifacts of a list without a filter.
    cut: Option<usize>,
    /// Calls, and downloads by the id of their artifact.
    calls: Vec<String>,
    downloads: HashMap<u64, usize>,
    open: usize,
    most: usize,
}

type Server = (SocketAddr, Arc<Mutex<Shared>>);

/// The service; it ends with its value.
pub struct Service {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    pub fn new(artifacts: Vec<Artifact>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Mutex::new(Shared {
            artifacts,
            ..Shared::default()
        }));
        let (stop, stopped) = oneshot::channel();
        let state = (address, Arc::clone(&shared));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let calls = "/twirp/github.actions.results.api.v1.ArtifactService/{call}";
                let router = Router::new()
                    .route(calls, post(call))
                    .route("/content/{id}", get(content))
                    .with_state(state);
                tokio::select! {
                    _ = axum::serve(listener, router) => {}
                    _ = stopped => {}
                }
            });
        });
        Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().expect("no panic")
    }

    /// Refuses so many calls for lists.
    pub fn busy(self, times: usize) -> Self {
        self.shared().busy = times;
        self
    }

    /// Lists without a filter so many at most.
    pub fn cut(self, most: usize) -> Self {
        self.shared().cut = Some(most);
        self
    }

    /// Changes what there is.
    pub fn change(&self, change: impl FnOnce(&mut Vec<Artifact>)) {
        change(&mut self.shared().artifacts);
    }

    /// The calls that were made, with those that were refused.
    pub fn calls(&self) -> Vec<String> {
        self.shared().calls.clone()
    }

    /// How often each artifact's content was asked for, by its id.
    pub fn downloads(&self) -> HashMap<u64, usize> {
        self.shared().downloads.clone()
    }

    /// The most contents that were on their way at a time.
    pub fn most(&self) -> usize {
        self.shared().most
    }

    pub fn url(&self) -> String {
        // The real one has a path, which is not part of a call's address.
        format!("http://{}/some/path/", self.address)
    }

    /// The binary in a folder, with the access that a JavaScript action has.
    pub fn command(&self, folder: &Path) -> Command {
        let mut command = sweepctl(folder);
        for name in ["GITHUB_RUN_ID", "GH_TOKEN", "GITHUB_TOKEN", "GITHUB_REPOSITORY"] {
            command.env_remove(name);
        }
        command
            .env("ACTIONS_RESULTS_URL", self.url())
            .env("ACTIONS_RUNTIME_TOKEN", token());
        command
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(status: u16, body: &Value) -> Response<Body> {
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    response.body(Body::from(body.to_string())).expect("a response")
}

fn refused(status: u16, code: &str, message: &str) -> Response<Body> {
    answer(status, &json!({ "code": code, "msg": message }))
}

async fn call(
    State((address, shared)): State<Server>,
    Part(call): Part<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let mut shared = shared.lock().expect("no panic");
    shared.calls.push(call.clone());
    let header = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    if header("authorization") != format!("Bearer {}", token()) {
        return refused(401, "unauthenticated", "no token of this run");
    }
    if header("content-type") != "application/json" {
        return refused(404, "bad_route", "unexpected content-type");
    }
    let Ok(asked) = serde_json::from_slice::<Value>(&body) else {
        return refused(400, "malformed", "the body is no JSON");
    };
    let text = |field: &str| asked[field].as_str().unwrap_or_default().to_owned();
    if text("workflow_run_backend_id") != RUN {
        return refused(403, "permission_denied", "the token is of another run");
    }
    match call.as_str() {
        "ListArtifacts" if text("workflow_job_run_backend_id") != JOB => {
            refused(400, "invalid_argument", "the job is not that of the token")
        }
        "ListArtifacts" if shared.busy > 0 => {
            shared.busy -= 1;
            refused(503, "unavailable", "try again")
        }
        "ListArtifacts" => listed(&shared, &asked),
        "GetSignedArtifactURL" => {
            let of = |artifact: &&Artifact| {
                artifact.name == text("name") && artifact.job == text("workflow_job_run_backend_id")
            };
            match shared.artifacts.iter().find(of) {
                None => refused(404, "not_found", "artifact not found"),
                Some(artifact) => {
                    let url = format!("http://{address}/content/{}?sig={SIGNATURE}&se=later", artifact.id);
                    answer(200, &json!({ "signed_url": url }))
                }
            }
        }
        _ => refused(404, "bad_route", "no handler"),
    }
}

fn listed(shared: &Shared, asked: &Value) -> Response<Body> {
    let name = asked["name_filter"].as_str();
    let id = asked["id_filter"].as_str().map(str::to_owned);
    let found = shared
        .artifacts
        .iter()
        .filter(|artifact| name.is_none_or(|name| name == artifact.name))
        .filter(|artifact| id.as_ref().is_none_or(|id| *id == artifact.id.to_string()));
    let most = match (name, &id) {
        (None, None) => shared.cut.unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let entry = |artifact: &Artifact| {
        let mut entry = json!({
            "workflow_run_backend_id": RUN, "workflow_job_run_backend_id": artifact.job,
            "database_id": artifact.id.to_string(), "name": artifact.name,
            "size": artifact.content.len().to_string(), "created_at": "2026-10-01T19:00:00Z",
        });
        if artifact.digest {
            entry["digest"] = json!(artifact.digest());
        }
        entry
    };
    let entries: Vec<Value> = found.take(most).map(entry).collect();
    // A list of nothing is left out of the JSON form.
    match entries.is_empty() {
        true => answer(200, &json!({})),
        false => answer(200, &json!({ "artifacts": entries })),
    }
}

/// Counts a content that is on its way.
struct Open(Arc<Mutex<Shared>>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().expect("no panic").open -= 1;
    }
}

async fn content(
    State((_, shared)): State<Server>,
    Part(id): Part<u64>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response<Body> {
    let status = |status: StatusCode| {
        Response::builder()
            .status(status)
            .body(Body::empty())
            .expect("a response")
    };
    // A signed address with a token beside is refused by the storage, and a token must not get there.
    if headers.contains_key("authorization") || query != Some(format!("sig={SIGNATURE}&se=later")) {
        return status(StatusCode::UNAUTHORIZED);
    }
    let (artifact, times) = {
        let mut shared = shared.lock().expect("no panic");
        let Some(artifact) = shared.artifacts.iter().find(|artifact| artifact.id == id).cloned() else {
            return status(StatusCode::NOT_FOUND);
        };
        let times = shared.downloads.entry(id).or_default();
        *times += 1;
        let times = *times;
        shared.open += 1;
        shared.most = shared.most.max(shared.open);
        (artifact, times)
    };
    let _open = Open(Arc::clone(&shared));
    // Side by side shows where none is answered at once.
    tokio::time::sleep(Duration::from_millis(2)).await;
    let mut bytes = artifact.content;
    let length = bytes.len();
    match artifact.given {
        Given::Late(wait) => tokio::time::sleep(wait).await,
        Given::Refused(most, code) if times <= most => {
            return status(StatusCode::from_u16(code).expect("a status"));
        }
        Given::Cut(most) if times <= most => bytes.truncate(length / 2),
        Given::Changed => bytes[length / 2] ^= 1,
        Given::Whole | Given::Refused(..) | Given::Cut(_) => {}
    }
    // A stream, whose length may be another than what is said of it.
    let body = futures_util::stream::once(async move { Ok::<_, std::io::Error>(Bytes::from(bytes)) });
    let mut response = Response::builder()
        .header("content-type", artifact.kind)
        .header("content-length", length);
    if let Some(file) = artifact.file {
        response = response.header("content-disposition", format!("attachment; filename=\"{file}\""));
    }
    response.body(Body::from_stream(body)).expect("a response")
}
