//! A small OpenAI-compatible server on loopback that knows the smoke tasks' answers and can misbehave.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What it does with chat requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Answers rightly.
    Right,
    /// Leaves the content empty and puts the answer into the reasoning.
    Reasoning,
    /// Status 500.
    Broken,
    /// Never answers.
    Hang,
    /// Ends the connection in the middle of an answer.
    Cut,
}

struct State {
    mode: Mode,
    /// The bodies of chat requests.
    seen: Vec<Value>,
}

/// A running server; it stops listening when dropped.
pub struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Starts one that serves some models.
    pub fn start(mode: Mode, models: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State { mode, seen: Vec::new() }));
        let stop = Arc::new(AtomicBool::new(false));
        let answers = Arc::new(answers());
        let (shared, stopped) = (Arc::clone(&state), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (state, answers) = (Arc::clone(&shared), Arc::clone(&answers));
                std::thread::spawn(move || serve(stream, &state, &answers, models));
            }
        });
        Self { address, state, stop }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn set(&self, mode: Mode) {
        self.state.lock().expect("a lock").mode = mode;
    }

    /// The chat requests so far.
    pub fn seen(&self) -> Vec<Value> {
        self.state.lock().expect("a lock").seen.clone()
    }

    /// Waits for the first chat request.
    pub fn wait_for_request(&self) {
        let end = Instant::now() + Duration::from_secs(120);
        while self.seen().is_empty() {
            assert!(Instant::now() < end, "no request came");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the listener up, so that it is closed.
        let _ = TcpStream::connect(self.address);
    }
}

fn answers() -> HashMap<String, String> {
    ["gsm8k_smoke", "gpqa_diamond_smoke"]
        .iter()
        .flat_map(|name| {
            let file = super::support::root().join(format!("configs/evals/data/{name}.jsonl"));
            let text = std::fs::read_to_string(file).expect("smoke data");
            let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
            lines
        })
        .map(|line| {
            (
                line["question"].as_str().expect("text").into(),
                line["answer"].as_str().expect("text").into(),
            )
        })
        .collect()
}

fn serve(stream: TcpStream, state: &Mutex<State>, answers: &HashMap<String, String>, models: &[&str]) {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.trim().is_empty() => break,
            Ok(_) => head.push(line.trim().to_owned()),
        }
    }
    let Some(first) = head.first().cloned() else { return };
    let length = head.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let mut stream = reader.into_inner();
    let path = first.split(' ').nth(1).unwrap_or("");
    match path {
        "/v1/models" => {
            let data: Vec<Value> = models.iter().map(|id| json!({"id": id, "object": "model"})).collect();
            reply(
                &mut stream,
                "200 OK",
                &json!({"object": "list", "data": data}).to_string(),
            );
        }
        "/v1/chat/completions" => chat(&mut stream, &body, state, answers),
        _ => reply(&mut stream, "404 Not Found", "{}"),
    }
}

fn chat(stream: &mut TcpStream, body: &[u8], state: &Mutex<State>, answers: &HashMap<String, String>) {
    let request: Value = serde_json::from_slice(body).expect("JSON");
    let mode = {
        let mut state = state.lock().expect("a lock");
        state.seen.push(request.clone());
        state.mode
    };
    let asked = request["messages"]
        .as_array()
        .and_then(|m| m.last())
        .map(|m| m["content"].to_string());
    let asked = asked.unwrap_or_default();
    let answer = answers.iter().find(|(question, _)| asked.contains(question.trim()));
    let answer = answer.map_or("#### 0", |(_, answer)| answer.as_str());
    let message = match mode {
        Mode::Hang => {
            // Until the client gives up.
            let _ = stream.read(&mut [0; 1]);
            return;
        }
        Mode::Broken => return reply(stream, "500 Internal Server Error", "{\"error\": \"out of memory\"}"),
        Mode::Reasoning => json!({"role": "assistant", "content": "", "reasoning_content": answer}),
        Mode::Right | Mode::Cut => json!({"role": "assistant", "content": answer}),
    };
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    let text = json!({"object": "chat.completion", "model": request["model"], "choices": [choice]}).to_string();
    if mode == Mode::Cut {
        let length = text.len();
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{}",
            &text[..length / 2]
        );
        return;
    }
    reply(stream, "200 OK", &text);
}

fn reply(stream: &mut TcpStream, status: &str, body: &str) {
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
}
