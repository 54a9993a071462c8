use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::proxy::Proxy;
use super::*;

const TIME: Duration = Duration::from_secs(10);

/// A server that gives one answer to each connection, in order; its URL, and what was asked.
fn server(answers: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let thread = std::thread::spawn(move || {
        let answer = |answer: String| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut asked = Vec::new();
            while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
                let mut some = [0; 4096];
                let count = stream.read(&mut some).expect("a request");
                asked.extend_from_slice(&some[..count]);
            }
            stream.write_all(answer.as_bytes()).expect("sent");
            String::from_utf8(asked).expect("text").to_ascii_lowercase()
        };
        answers.into_iter().map(answer).collect()
    });
    (url, thread)
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn moved(status: u16, to: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

#[test]
fn a_body_is_read_up_to_its_bound() {
    let (url, _thread) = server(vec![ok("12345"), ok("123456")]);
    let request = Request::get(&url, TIME).limit(5);
    assert_eq!(request.send().expect("an answer").body, b"12345");
    assert!(matches!(request.send(), Err(Error::TooLarge(5))));
}

#[test]
fn a_server_that_is_not_there_or_says_nothing_is_told_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let started = Instant::now();
    let error = Request::get(&url, Duration::from_millis(200))
        .send()
        .expect_err("silence");
    assert_eq!(error.to_string(), "timeout: global");
    assert!(started.elapsed() < Duration::from_secs(5));
    drop(listener);
    let error = Request::get(&url, TIME).send().expect_err("nobody");
    assert_eq!(error.to_string(), "io: Connection refused (os error 111)");
}

#[test]
fn redirects_are_followed_where_asked_and_without_the_token() {
    let (url, thread) = server(vec![
        moved(302, "/there"),
        ok("x"),
        moved(302, "/there"),
        moved(302, "/there"),
    ]);
    let request = Request::get(&format!("{url}/here"), TIME).bearer(Some("t0ken"));
    assert_eq!(request.clone().redirects(1).send().expect("an answer").body, b"x");
    assert_eq!(request.send().expect("an answer").status, 302);
    let again = Request::post(&url, "x", TIME).redirects(0).send().expect("an answer");
    assert_eq!(again.status, 302);
    let asked = thread.join().expect("ended");
    assert!(asked[0].starts_with("get /here ") && asked[0].contains("bearer t0ken"));
    assert!(asked[1].starts_with("get /there ") && !asked[1].contains("t0ken"));
}

#[test]
fn a_body_is_not_sent_again_and_a_circle_ends() {
    let (url, thread) = server(vec![moved(307, "/"), moved(302, "/"), moved(302, "/")]);
    assert!(matches!(
        Request::post(&url, "x", TIME).redirects(3).send(),
        Err(Error::Redirect)
    ));
    let circle = Request::get(&url, TIME).redirects(1).send();
    assert!(matches!(circle, Err(Error::TooManyRedirects)));
    assert_eq!(thread.join().expect("ended").len(), 3);
}

#[test]
fn a_proxy_is_asked_unless_the_host_is_listed() {
    let choose = |host: &str, proxy: &str, without: &str| {
        Proxy::choose(host, |name| match name {
            "HTTPS_PROXY" => Some(proxy.to_owned()),
            "no_proxy" => Some(without.to_owned()),
            _ => None,
        })
    };
    let proxy = choose("hub.example", "me:p%40ss@proxy:3128", "x.example, .hub.example").expect("a proxy");
    let proxy = proxy.expect("one");
    assert_eq!(proxy.uri, "http://proxy:3128/");
    assert_eq!(proxy.authorization.expect("credentials"), "Basic bWU6cEBzcw==");
    for without in ["*", "a,HUB.example", ".example", "*.example", "hub.*"] {
        let chosen = choose("hub.example", "http://proxy", without).expect("no error");
        assert!(chosen.is_none(), "{without}");
    }
    let error = choose("hub.example", "socks5://me:secret@proxy", "")
        .err()
        .expect("no such proxy");
    assert_eq!(error.to_string(), "HTTPS_PROXY names no proxy of http:// or https://");
}

#[test]
fn tls_with_a_server_that_speaks_none_fails() {
    let (url, _thread) = server(vec![ok("x")]);
    let request = Request::get(&url.replace("http:", "https:"), Duration::from_secs(1));
    assert!(request.send().is_err());
}

/// Reads a request without a body.
fn read_request(stream: &mut TcpStream) {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        let mut some = [0; 4096];
        let count = stream.read(&mut some).expect("a request");
        asked.extend_from_slice(&some[..count]);
    }
}

#[test]
fn a_silent_server_is_not_waited_for_and_a_slow_one_is() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let served = std::thread::spawn(move || {
        for is_slow in [true, false] {
            let (mut stream, _) = listener.accept().expect("a connection");
            // A request that nobody reads resets the connection when it is closed.
            read_request(&mut stream);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n")
                .expect("sent");
            for part in 0..6 {
                std::thread::sleep(Duration::from_millis(if is_slow { 100 } else { 500 + part }));
                // The one that is not waited for is gone.
                let _ = stream.write_all(b"x");
            }
        }
    });
    let session = Session::new().expect("a session");
    let request = Request::get(&url, TIME).idle(Duration::from_millis(300));
    assert_eq!(session.send(&request).expect("an answer").body, b"xxxxxx");
    let session = Session::new().expect("a session");
    let silent = session.send(&request).expect_err("silence");
    assert!(matches!(silent, Error::Idle(_)), "{silent}");
    served.join().expect("a server");
}

#[test]
fn a_session_keeps_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("one connection");
        for _ in 0..3 {
            read_request(&mut stream);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .expect("sent");
        }
    });
    let session = Session::new().expect("a session");
    for _ in 0..3 {
        assert_eq!(session.send(&Request::get(&url, TIME)).expect("an answer").body, b"ok");
    }
    served.join().expect("a server");
}
