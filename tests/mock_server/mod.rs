//! `sweepctl mock-server`: the real binary over real HTTP.

pub mod client;
mod tools;

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use client::{PATIENCE, Reply, Server, refused};

/// Sums, and a file of their answers.
struct Sums {
    folder: TempDir,
    list: Vec<(String, String)>,
}

impl Sums {
    fn new(count: usize) -> Self {
        let folder = TempDir::new().expect("a folder");
        let sum = |n: usize| {
            let question = format!("Ida has {n} pears and picks {}. How many has she now?", n + 3);
            (question, (2 * n + 3).to_string())
        };
        let list: Vec<_> = (0..count).map(sum).collect();
        let line = |(question, answer): &(String, String)| {
            json!({"question": question, "answer": format!("She adds.\n#### {answer}")}).to_string()
        };
        let lines: Vec<String> = list.iter().map(line).collect();
        std::fs::write(folder.path().join("answers.jsonl"), lines.join("\n")).expect("written");
        Self { folder, list }
    }

    fn file(&self) -> String {
        self.folder.path().join("answers.jsonl").display().to_string()
    }

    fn right(&self, server: &Server) -> Vec<bool> {
        let right =
            |(question, answer): &(String, String)| server.ask(question).content().ends_with(&format!("#### {answer}"));
        self.list.iter().map(right).collect()
    }
}

#[test]
fn it_serves_its_model_under_its_name() {
    let server = Server::start(&["--model", "some/model", "--max-model-len", "64"]);
    assert_eq!(server.get("/health").status, 200);
    let models = server.get("/v1/models").json();
    assert_eq!(models["data"][0]["id"], "some/model");
    assert_eq!(models["data"][0]["max_model_len"], 64);
    let messages = json!([{"role": "user", "content": "What is 6 * 7?"}]);
    let answer = server.chat(json!({"model": "some/model", "messages": messages}));
    assert_eq!(answer.content(), "The answer is 42.\n#### 42");
    let answer = answer.json();
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        answer["usage"],
        json!({"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11})
    );
    let other = server.chat(json!({"model": "other", "messages": messages}));
    assert_eq!(
        (other.status, &other.json()["error"]["code"]),
        (404, &json!("model_not_found"))
    );
}

#[test]
fn requests_of_lm_eval_are_answered_from_the_file() {
    let sums = Sums::new(3);
    let server = Server::start(&["--answers", &sums.file()]);
    let turn = |n: usize| format!("Question: {}\nformatted as: #### [number]\nAnswer:", sums.list[n].0);
    let few_shot = json!({
        "model": "mock", "max_tokens": 200, "temperature": 0, "seed": 1234, "top_p": 1,
        "stop": ["Question:", "</s>", "<|im_end|>"],
        "messages": [
            {"role": "user", "content": turn(0)},
            {"role": "assistant", "content": "#### 3"},
            {"type": "message", "role": "user", "content": [{"type": "text", "text": turn(2)}]},
        ],
    });
    assert_eq!(server.chat(few_shot).content(), "The answer is 7.\n#### 7");
    let prompt = format!("{} #### 3\n\n{}", turn(0), turn(1));
    let texts = server.completion(json!({"prompt": [prompt, turn(0)], "n": 2})).json();
    let texts = texts["choices"].as_array().expect("choices").iter();
    let texts: Vec<_> = texts
        .map(|choice| (choice["index"].as_u64(), choice["text"].as_str().expect("text")))
        .collect();
    let (first, second) = ("The answer is 5.\n#### 5", "The answer is 3.\n#### 3");
    assert_eq!(
        texts,
        [(Some(0), first), (Some(1), first), (Some(2), second), (Some(3), second)]
    );
}

#[test]
fn the_asked_share_is_right_in_every_run() {
    let sums = Sums::new(30);
    let run = |seed: &str| {
        sums.right(&Server::start(&[
            "--answers",
            &sums.file(),
            "--accuracy",
            "0.7",
            "--seed",
            seed,
        ]))
    };
    let first = run("1");
    assert_eq!(first.iter().filter(|right| **right).count(), 21);
    assert_eq!(first, run("1"));
    let other = run("2");
    assert_eq!(other.iter().filter(|right| **right).count(), 21);
    assert_ne!(first, other);
}

#[test]
fn throughput_clients_get_the_lengths_they_ask_for() {
    let server = Server::start(&[]);
    let ids: Vec<u32> = (0..1024).collect();
    let body = json!({
        "model": "mock", "prompt": ids, "max_tokens": 128, "ignore_eos": true, "temperature": 0.0,
        "repetition_penalty": 1.0, "logprobs": null, "stream": true, "stream_options": {"include_usage": true},
    });
    let reply = server.completion(body);
    let mut events = reply.events();
    assert_eq!(events.pop().as_deref(), Some("[DONE]"));
    let chunks: Vec<Value> = events
        .iter()
        .map(|event| serde_json::from_str(event).expect("JSON"))
        .collect();
    let (usage, chunks) = chunks.split_last().expect("chunks");
    assert_eq!(
        usage["usage"],
        json!({"prompt_tokens": 1024, "completion_tokens": 128, "total_tokens": 1152})
    );
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(chunks.len(), 128);
    let text: String = chunks
        .iter()
        .map(|chunk| chunk["choices"][0]["text"].as_str().expect("text"))
        .collect();
    assert_eq!(text.split_whitespace().count(), 128);
    let reasons = chunks.iter().map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
    let reasons: Vec<_> = reasons.flatten().collect();
    assert_eq!(reasons, ["length"]);
    assert_eq!(chunks[0]["usage"], Value::Null);
}

#[test]
fn a_streamed_chat_says_the_same_as_a_whole_one() {
    let sums = Sums::new(4);
    for rate in ["0", "1"] {
        let server = Server::start(&["--answers", &sums.file(), "--reasoning-only-rate", rate]);
        let body =
            |stream| json!({"messages": [{"role": "user", "content": sums.list[3].0}], "stream": stream, "n": 2});
        let whole = server.chat(body(false)).json();
        let reply = server.chat(body(true));
        assert!(reply.complete);
        let mut texts = [(String::new(), String::new()), (String::new(), String::new())];
        let events = reply.events();
        for event in events.iter().take(events.len() - 1) {
            let choice = &serde_json::from_str::<Value>(event).expect("JSON")["choices"][0];
            let at = usize::try_from(choice["index"].as_u64().expect("an index")).expect("small");
            texts[at]
                .0
                .push_str(choice["delta"]["content"].as_str().unwrap_or_default());
            texts[at]
                .1
                .push_str(choice["delta"]["reasoning_content"].as_str().unwrap_or_default());
        }
        for (at, (content, reasoning)) in texts.iter().enumerate() {
            let message = &whole["choices"][at]["message"];
            assert_eq!(message["content"], *content);
            assert_eq!(message["reasoning_content"].as_str().unwrap_or_default(), reasoning);
        }
        let (spoken, silent) = if rate == "0" {
            (&texts[0].0, &texts[0].1)
        } else {
            (&texts[0].1, &texts[0].0)
        };
        assert_eq!((spoken.as_str(), silent.as_str()), ("The answer is 9.\n#### 9", ""));
    }
}

#[test]
fn the_asked_share_of_answers_is_cut_half_way() {
    let sums = Sums::new(20);
    let server = Server::start(&[
        "--answers",
        &sums.file(),
        "--cut-rate",
        "0.25",
        "--reasoning-only-rate",
        "0.5",
    ]);
    let (mut cut, mut whole) = (0, 0);
    for (question, _) in &sums.list {
        let choice = server.ask(question).json()["choices"][0].take();
        let text = |part: &str| choice["message"][part].as_str().unwrap_or_default().to_owned();
        let text = text("content") + &text("reasoning_content");
        let ends = (choice["finish_reason"].as_str(), text.contains("####"));
        match ends {
            (Some("length"), false) => cut += 1,
            (Some("stop"), true) => whole += 1,
            other => panic!("{other:?}: {text}"),
        }
        assert!(text.starts_with("The answer is"), "{text}");
    }
    assert_eq!((cut, whole), (5, 15));
}

#[test]
fn limits_and_stop_texts_end_an_answer() {
    let server = Server::start(&["--max-model-len", "20"]);
    let chat = |field: &str, value: Value| {
        let mut body = json!({"messages": [{"role": "user", "content": "What is 1 + 1?"}]});
        body[field] = value;
        let reply = server.chat(body).json();
        let choice = &reply["choices"][0];
        let text = choice["message"]["content"].as_str().unwrap_or_default().to_owned();
        (text, choice["finish_reason"].as_str().unwrap_or_default().to_owned())
    };
    let expect = |text: &str, reason: &str| (text.to_owned(), reason.to_owned());
    assert_eq!(chat("max_tokens", json!(2)), expect("The answer", "length"));
    assert_eq!(
        chat("max_completion_tokens", json!(3)),
        expect("The answer is", "length")
    );
    assert_eq!(chat("stop", json!("\n")), expect("The answer is 2.", "stop"));
    assert_eq!(chat("stop", json!(["is", null])), expect("The answer ", "stop"));
    let (text, _) = chat("min_tokens", json!(10));
    assert_eq!(text.split_whitespace().count(), 10);
    assert!(text.ends_with("#### 2"));
}

#[test]
fn bad_requests_are_refused_in_the_shape_of_openai() {
    let server = Server::start(&["--max-model-len", "20"]);
    let hello = json!([{"role": "user", "content": "hello"}]);
    for (body, expected) in [
        (json!("text"), "no valid request"),
        (json!({"messages": 5}), "no valid request"),
        (json!({}), "`messages` is missing"),
        (json!({"messages": []}), "`messages` is missing"),
        (json!({"messages": hello, "n": 0}), "`n` must be"),
        (json!({"messages": hello, "max_tokens": 0}), "`max_tokens` must be"),
        (
            json!({"messages": hello, "max_tokens": 20}),
            "maximum context length is 20",
        ),
        (
            json!({"messages": [{"role": "user", "content": "w ".repeat(20)}]}),
            "maximum context length is 20",
        ),
        (json!({"messages": hello, "stop": 5}), "`stop` must be"),
    ] {
        let reply = server.chat(body.clone());
        let error = &reply.json()["error"];
        assert_eq!(reply.status, 400, "{body}");
        assert!(
            error["message"].as_str().expect("a message").contains(expected),
            "{error}"
        );
        assert_eq!(error["type"], "invalid_request_error");
    }
    let torn = Reply::read(server.send("POST", "/v1/completions", b"{\"prompt\": "));
    assert_eq!(torn.status, 400);
    assert_eq!(server.get("/v2").status, 404);
    assert_eq!(server.get("/v1/completions").status, 405);
    assert_eq!(
        server.get("/v1/completions").json()["error"]["type"],
        "invalid_request_error"
    );
    assert_eq!(server.metric("requests_total"), 0);
}

#[test]
fn an_oversized_body_is_refused() {
    let server = Server::start(&[]);
    let body = vec![b' '; (32 << 20) + 1];
    let reply = Reply::read(server.send("POST", "/v1/completions", &body));
    assert_eq!(
        (reply.status, &reply.json()["error"]["type"]),
        (413, &json!("invalid_request_error"))
    );
}

#[test]
fn silent_and_failing_shares_are_met() {
    let sums = Sums::new(20);
    let server = Server::start(&["--answers", &sums.file(), "--empty-rate", "0.15", "--fail-rate", "0.5"]);
    let mut failed = 0;
    let mut empty = 0;
    for (question, _) in &sums.list {
        let mut reply = server.ask(question);
        for _ in 0..50 {
            if reply.status == 200 {
                break;
            }
            assert_eq!(
                (reply.status, &reply.json()["error"]["type"]),
                (500, &json!("server_error"))
            );
            failed += 1;
            reply = server.ask(question);
        }
        empty += usize::from(reply.content().is_empty());
        assert_eq!(reply.json()["choices"][0]["finish_reason"], "stop");
    }
    assert_eq!(empty, 3);
    assert!((5..60).contains(&failed), "{failed}");
    let counts = ["requests_total", "completions_total", "failures_total"].map(|name| server.metric(name));
    assert_eq!(counts, [20 + failed, 20, failed]);
}

#[test]
fn a_window_of_requests_fails() {
    let server = Server::start(&["--fail-from", "2", "--fail-count", "2"]);
    let statuses = [(); 5].map(|()| server.ask("1 + 1").status);
    assert_eq!(statuses, [200, 500, 500, 200, 200]);
}

#[test]
fn too_many_at_once_fail() {
    let server = Server::start(&["--fail-above-concurrency", "2", "--latency-ms", "300"]);
    let body = json!({"prompt": "1 + 1"}).to_string();
    let streams: Vec<_> = (0..5)
        .map(|_| server.send("POST", "/v1/completions", body.as_bytes()))
        .collect();
    let mut statuses: Vec<u16> = streams.into_iter().map(|stream| Reply::read(stream).status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 500, 500, 500]);
    assert_eq!(server.completion(json!({"prompt": "1 + 1"})).status, 200);
    assert_eq!(server.metric("in_flight_peak"), 3);
}

#[test]
fn connections_close_amid_the_answer() {
    let server = Server::start(&["--close-early-rate", "1"]);
    let whole = server.completion(json!({"prompt": "1 + 1"}));
    assert!(!whole.complete);
    assert!(!whole.body.is_empty());
    let stream = server.completion(json!({"prompt": "1 + 1", "stream": true}));
    assert!(!stream.complete);
    assert!(!stream.events().is_empty() && !stream.body.contains("[DONE]"));
    assert_eq!(
        ["completions_total", "failures_total", "in_flight"].map(|name| server.metric(name)),
        [0, 2, 0]
    );
}

#[test]
fn a_hanging_request_holds_up_nobody_else_and_no_signal() {
    let mut server = Server::start(&["--hang-after", "1"]);
    assert_eq!(server.ask("1 + 1").status, 200);
    let body = json!({"prompt": "1 + 1"}).to_string();
    let mut hanging = server.send("POST", "/v1/completions", body.as_bytes());
    hanging
        .set_read_timeout(Some(Duration::from_millis(300)))
        .expect("a timeout");
    assert!(hanging.read(&mut [0; 1]).is_err(), "nothing comes");
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(server.metric("in_flight"), 1);
    drop(hanging);
    let start = Instant::now();
    while server.metric("in_flight") > 0 {
        assert!(start.elapsed() < PATIENCE, "a client that leaves is forgotten");
        std::thread::sleep(Duration::from_millis(5));
    }
    let _hanging = server.send("POST", "/v1/completions", body.as_bytes());
    let start = Instant::now();
    server.signal(Signal::SIGTERM);
    assert_eq!(server.exit_code(), Some(0));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn it_dies_after_its_last_answer() {
    let mut server = Server::start(&["--die-after", "2"]);
    assert!(server.ask("1 + 1").complete);
    assert!(server.ask("1 + 2").complete);
    assert_eq!(server.exit_code(), Some(134));
}

#[test]
fn an_interrupt_ends_it() {
    let mut server = Server::start(&[]);
    server.signal(Signal::SIGINT);
    assert_eq!(server.exit_code(), Some(0));
}

#[test]
fn words_come_at_their_pace() {
    let server = Server::start(&["--latency-ms", "100", "--tokens-per-second", "50"]);
    for stream in [false, true] {
        let start = Instant::now();
        let reply = server.completion(json!({"prompt": "1", "max_tokens": 20, "ignore_eos": true, "stream": stream}));
        assert!(reply.complete);
        let took = start.elapsed();
        assert!(
            (Duration::from_millis(500)..Duration::from_secs(5)).contains(&took),
            "{took:?}"
        );
    }
    let stream = json!({"prompt": "1", "max_tokens": 200, "ignore_eos": true, "stream": true}).to_string();
    let start = Instant::now();
    let mut first = BufReader::new(server.send("POST", "/v1/completions", stream.as_bytes())).lines();
    assert!(first.any(|line| line.expect("a line").starts_with("data: ")));
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "the first word comes long before the last"
    );
}

#[test]
fn it_is_unavailable_until_started() {
    let server = Server::start(&["--startup-delay", "0.5"]);
    assert_eq!(server.get("/health").status, 503);
    assert_eq!(server.get("/v1/models").status, 503);
    assert_eq!(server.get("/metrics").status, 200);
    let start = Instant::now();
    while server.get("/health").status != 200 {
        assert!(start.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.ask("1 + 1").status, 200);
}

#[test]
fn scripts_learn_the_port_from_a_file() {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("port");
    let server = Server::start(&["--port-file", file.to_str().expect("a path")]);
    let port = std::fs::read_to_string(&file).expect("a port file");
    assert_eq!(port, format!("{}\n", server.address.port()));
    let entries = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(entries, 1, "nothing but the port file is left");
}

#[test]
fn what_cannot_be_served_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    let folder = TempDir::new().expect("a folder");
    let answers = folder.path().join("answers.jsonl");
    std::fs::write(&answers, "{\"question\": \"a\", \"answer\": \"blue\"}\nnone\n").expect("written");
    let answers = answers.to_str().expect("a path");
    let missing = Path::new("no-such-folder").join("port");
    for (args, code, expected) in [
        (
            ["--port", &port],
            1,
            vec!["cannot listen on 127.0.0.1:", "choose another --port"],
        ),
        (["--answers", answers], 1, vec!["`blue`", ":1:1", ":2:", "2 problems"]),
        (
            ["--port-file", missing.to_str().expect("a path")],
            1,
            vec!["no-such-folder/port"],
        ),
        (["--accuracy", "1.5"], 2, vec!["from 0.0 to 1.0"]),
        (["--fail-rate", "NaN"], 2, vec!["from 0.0 to 1.0"]),
        (["--fail-count", "2"], 2, vec!["--fail-from"]),
        (["--fail-above-concurrency", "2"], 2, vec!["--latency-ms"]),
        (["--tokens-per-second", "0"], 2, vec!["a rate"]),
        (["--startup-delay", "soon"], 2, vec!["seconds"]),
    ] {
        let output = refused(&args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        for text in expected {
            assert!(error.contains(text), "{args:?} says no `{text}`: {error}");
        }
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn help_is_grouped() {
    let help = String::from_utf8(refused(&["--help"]).stdout).expect("text");
    let at = |heading: &str| {
        help.find(&format!("\n{heading}:\n"))
            .unwrap_or_else(|| panic!("no {heading}: {help}"))
    };
    assert!(at("Serving") < at("Answers") && at("Answers") < at("Faults"));
    assert!(at("Faults") < help.find("--latency-ms").expect("the option"));
}
