//! Whether the hub has the model is known before an engine is started for it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::support::{Done, Host, MODEL, NOBODY, run, throughput};

const SERVER: &str = r#"exec "$SWEEPCTL" mock-server --port "$0""#;

/// A hub that answers everything in one way, and remembers what it was asked.
struct Hub {
    url: String,
    asked: Arc<Mutex<String>>,
}

impl Hub {
    fn start(answer: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (asked, seen) = (Arc::<Mutex<String>>::default(), answer.to_owned());
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                let lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
                let head: Vec<String> = lines
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .collect();
                kept.lock()
                    .expect("no panic")
                    .push_str(&format!("{}\n", head.join("\n")));
                let _ = write!(
                    stream,
                    "HTTP/1.1 {seen}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> String {
        self.asked.lock().expect("no panic").clone()
    }
}

/// A host that has never seen the model.
fn without_model(host: Host) -> Host {
    std::fs::remove_dir_all(host.file(MODEL)).expect("a folder");
    host
}

fn local() -> Host {
    without_model(Host::with_server(SERVER, "exit 4", ""))
}

fn launch(host: &Host, hub: &str, more: &[(&str, &str)]) -> Done {
    let mut command = host.launch(&throughput(), &[]);
    run(command
        .env("HF_ENDPOINT", hub)
        .env("HOME", host.at())
        .envs(more.iter().copied()))
}

#[test]
fn a_model_that_the_hub_does_not_give_is_refused_before_anything_starts() {
    for (answer, parts) in [
        (
            "404 Not Found\r\nX-Error-Code: RepoNotFound",
            ["(404): there is none of that name", "correct `model`"],
        ),
        (
            "401 Unauthorized\r\nX-Error-Code: RepoNotFound",
            ["(401): it is unknown, private or gated", "HF_TOKEN"],
        ),
        (
            "403 Forbidden\r\nX-Error-Code: GatedRepo",
            ["(403): it is gated", "accept its terms"],
        ),
    ] {
        let hub = Hub::start(answer);
        let done = launch(&local(), &hub.url, &[("HF_TOKEN", "hf_aVerySecretToken")]);
        assert_eq!(done.code, Some(71), "{}", done.stderr);
        for part in parts {
            assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
        }
        assert!(!done.stderr.contains("starting the server"), "{}", done.stderr);
        let asked = hub.asked();
        assert!(
            asked.starts_with("HEAD /org/stub-7b/resolve/main/config.json "),
            "{asked}"
        );
        let asked = asked.to_ascii_lowercase();
        assert!(asked.contains("authorization: bearer hf_averysecrettoken"), "{asked}");
        assert!(!done.stderr.contains("hf_aVery"), "{}", done.stderr);
    }
}

#[test]
fn a_model_that_the_hub_has_is_started() {
    // What is stored elsewhere is there; and a server's own trouble is no reason to start nothing.
    for (answer, warns) in [
        ("200 OK", false),
        ("302 Found\r\nLocation: http://127.0.0.1:9/", false),
        ("404 Not Found\r\nX-Error-Code: EntryNotFound", false),
        ("503 Service Unavailable", true),
    ] {
        let hub = Hub::start(answer);
        let done = launch(&local(), &hub.url, &[]);
        assert_eq!(done.code, Some(73), "{}", done.stderr);
        assert_eq!(
            done.stderr.contains("launch: warning: "),
            warns,
            "{answer}: {}",
            done.stderr
        );
    }
    let done = launch(&local(), NOBODY, &[]);
    assert_eq!(done.code, Some(73), "{}", done.stderr);
    assert!(
        done.stderr
            .contains("launch: warning: http://127.0.0.1:9 cannot be asked for `org/stub-7b`"),
        "{}",
        done.stderr
    );
}

#[test]
fn the_hub_is_asked_through_the_proxy_unless_its_host_is_excepted() {
    let at = "http://hub.invalid";
    for (excepted, is_asked) in [("localhost", true), (".invalid", false)] {
        let proxy = Hub::start("407 Proxy Authentication Required");
        let variables = [
            ("ALL_PROXY", proxy.url.as_str()),
            ("NO_PROXY", excepted),
            ("HF_TOKEN", "hf_aVerySecretToken"),
        ];
        let done = launch(&local(), at, &variables);
        assert_eq!(done.code, Some(73), "{}", done.stderr);
        let warning = "launch: warning: http://hub.invalid cannot be asked for `org/stub-7b`";
        assert!(done.stderr.contains(warning), "{}", done.stderr);
        let asked = proxy.asked();
        assert_eq!(asked.starts_with("CONNECT hub.invalid:80 "), is_asked, "{asked}");
        assert!(!asked.contains("hf_aVery"), "the proxy is told of no token: {asked}");
    }
}

#[test]
fn a_cached_model_is_enough_and_without_a_network_it_must_be() {
    let offline = [("HF_HUB_OFFLINE", "1")];
    let hub = Hub::start("404 Not Found");
    let done = launch(&local(), &hub.url, &offline);
    assert_eq!(done.code, Some(71), "{}", done.stderr);
    for part in [
        "the model `org/stub-7b` is in no cache of the hub",
        "hf download org/stub-7b",
    ] {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
    let cached = Host::with_server(SERVER, "exit 4", "");
    for more in [&offline[..], &[]] {
        assert_eq!(launch(&cached, &hub.url, more).code, Some(73));
    }
    // A container finds what is mounted.
    let mounted =
        Host::new("{ backend: container, runtime: docker, gpus: none, mounts: [{ host: /HERE, container: /x }] }");
    let text = mounted
        .read("configs/clusters.yaml")
        .replace("/HERE", &mounted.at().display().to_string());
    std::fs::write(mounted.file("configs/clusters.yaml"), text).expect("a file");
    mounted.script("true");
    mounted.tool("docker", "exit 0");
    assert_eq!(launch(&mounted, &hub.url, &offline).code, Some(73));
    let mounted = without_model(mounted);
    assert_eq!(launch(&mounted, &hub.url, &offline).code, Some(71));
    assert_eq!(hub.asked(), "");
    assert_eq!(launch(&mounted, &hub.url, &[]).code, Some(71));
    assert!(hub.asked().starts_with("HEAD /org/stub-7b/"));
}

#[test]
fn nobody_asks_where_no_engine_would() {
    let hub = Hub::start("404 Not Found");
    let folder = local();
    let path = folder.at().display().to_string();
    assert_eq!(launch(&folder, &hub.url, &[("MODEL_PATH", &path)]).code, Some(73));
    let mock = "{ backend: local, server-command: [sweepctl, mock-server, '--port={port}'], throughput-command: [bash, -c, exit 4] }";
    assert_eq!(launch(&without_model(Host::new(mock)), &hub.url, &[]).code, Some(73));
    let script = without_model(Host::with_script("true"));
    assert_eq!(launch(&script, &hub.url, &[]).code, Some(73));
    assert_eq!(hub.asked(), "");
}
