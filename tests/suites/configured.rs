//! Suites by configuration alone, and what their file must hold.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use super::support::{Desk, digest, text};
use crate::eval::support::{root, sweepctl};
use crate::mock_server::client::Server;

/// A client that nobody has heard of, with a report of its own form.
pub const CLIENT: &str = r#"
import json, sys, urllib.request
url, model, out = sys.argv[1:]
body = {"model": model, "messages": [{"role": "user", "content": "3 + 4 ="}]}
sent = urllib.request.Request(url + "/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
answer = json.loads(urllib.request.urlopen(sent).read())["choices"][0]["message"]["content"]
good = int(answer.endswith("7"))
json.dump({"asked": {"sums": 1, "products": 1}, "good": [good, {"n": 0}]}, open(out, "w"))
"#;

pub fn made_up(more: &str) -> String {
    format!(
        "frameworks:
  sums:
    description: sums and products
    python: \"3.8\"
    {more}
    report:
      file: sums_report.json
      checks: [/asked/sums, /asked/products]
      passed: [/good/0, /good/1/n]
    suites:
      small_sums:
        cases: 2
        checks: 2
        arguments: [\"{{client}}\", \"{{base-url}}\", \"{{model}}\", \"{{out}}/sums_report.json\"]
"
    )
}

#[test]
fn a_made_up_suite_is_configuration_alone() {
    let desk = Desk::with(&made_up("client: sums.py"));
    std::fs::write(desk.at("configs/evals/sums.py"), CLIENT).expect("written");
    let server = Server::start(&[]);
    let done = desk.eval(&server, ("sums", "small_sums"), &[], &[]);
    assert!(done.status.success(), "{}", text(&done));
    let result = desk.result();
    assert_eq!(result["results"]["small_sums"]["exact_match,none"], 0.5);
    assert_eq!(result["n-samples"]["small_sums"]["effective"], 2);
    let (passed, said) = desk.gate();
    assert!(!passed && said.contains("under 0.85"), "{said}");
}

/// Serves one body once.
fn serve(body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/source.tar.gz", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let _ = stream.read(&mut [0; 4096]);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
    });
    url
}

/// An archive as GitHub makes them, with a file that is not taken and a link that must not be.
fn packed(script: &str) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    let mut append = |name: &str, text: &str| {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("sums-abc/{name}"), text.as_bytes())
            .expect("appended");
    };
    append("src/sums.py", script);
    append("README.md", "not taken");
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, "sums-abc/src/link.py", "/etc/passwd")
        .expect("appended");
    tar.into_inner().and_then(|gzip| gzip.finish()).expect("packed")
}

fn archive(url: &str, sha256: &str) -> String {
    let text = made_up(&format!(
        "archive: {{ url: \"{url}\", ref: abc, paths: [src], sha256: {sha256} }}"
    ));
    text.replace("{client}", "{source}/src/sums.py")
}

#[test]
fn a_source_is_fetched_once_and_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("src")).expect("a folder");
    std::fs::write(folder.path().join("src/sums.py"), CLIENT).expect("written");
    let sum = digest(folder.path(), &["src/sums.py"]);
    let server = Server::start(&[]);
    let desk = Desk::with(&archive(&serve(packed(CLIENT)), &sum));
    for _ in 0..2 {
        let done = desk.eval(&server, ("sums", "small_sums"), &[], &[]);
        assert!(done.status.success(), "{}", text(&done));
    }
    let taken = desk.at(&format!("tools/sums-source-{}", &sum[..12]));
    assert!(taken.join("src/sums.py").is_file());
    assert!(!taken.join("README.md").exists() && !taken.join("src/link.py").exists());

    let desk = Desk::with(&archive(&serve(packed("print()")), &sum));
    let said = text(&desk.eval(&server, ("sums", "small_sums"), &[], &[]));
    assert!(said.contains("is another: the digest of its 1 file is"), "{said}");
    let done = desk.eval(
        &server,
        ("sums", "small_sums"),
        &[],
        &["--source", &shown(folder.path())],
    );
    assert!(done.status.success(), "{}", text(&done));
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn what_a_frameworks_file_must_not_hold_is_named() {
    for (from, to, why) in [
        ("client: sums.py", "packages: [openai]", "pin it"),
        ("client: sums.py", "client: ../sums.py", "a script is a name"),
        ("client: sums.py", "environment: {}", "names nothing that runs"),
        ("{out}/sums", "{outt}/sums", "`{outt}` is no placeholder here"),
        ("sums_report.json\n", "sums.json\n", "ends in _report.json"),
        ("/asked/sums", "asked/sums", "a JSON pointer starts with /"),
        ("checks: 2", "checks: 0", "checks"),
        ("small_sums:", "../small:", "is no name of a suite"),
        ("\"3.8\"", "\"2.7\"", "write the least version"),
    ] {
        let text = made_up("client: sums.py").replacen(from, to, 1);
        assert!(text.contains(to), "{to}");
        let desk = Desk::with(&text);
        let done = sweepctl()
            .arg("check")
            .arg(desk.at("configs/evals/frameworks.yaml"))
            .output();
        let done = done.expect("the binary runs");
        assert!(!done.status.success(), "{to}");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.contains(why), "{why}: {said}");
    }
}

#[test]
fn check_and_plans_refuse_what_nothing_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let configs = folder.path().join("configs");
    std::fs::create_dir_all(configs.join("evals")).expect("a folder");
    for name in [
        "eval-policy.yaml",
        "evals/frameworks.yaml",
        "nvidia-master.yaml",
        "runners.yaml",
    ] {
        std::fs::copy(root().join("configs").join(name), configs.join(name)).expect("copied");
    }
    let run = |args: &[&str]| {
        let done = sweepctl()
            .current_dir(folder.path())
            .args(args)
            .output()
            .expect("the binary runs");
        (
            done.status.success(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    };
    assert!(run(&["check"]).0, "{}", run(&["check"]).1);
    let file = configs.join("evals/frameworks.yaml");
    let text = std::fs::read_to_string(&file).expect("text");
    std::fs::write(&file, text.replace("minimax_m3_full:", "minimax_m4_full:")).expect("written");
    let (passed, said) = run(&["check"]);
    assert!(!passed, "{said}");
    assert!(
        said.contains(
            "rule `minimax-vendor` of policy `2026-10`: the evaluator `minimax-vendor` has no suite `minimax_m3_full`"
        ),
        "{said}"
    );
    assert!(said.contains("did you mean `minimax_m4_full`"), "{said}");
    let emitted = [
        "generate",
        "full-sweep",
        "--emit",
        "plan",
        "--eval-framework",
        "kimi-vendorr",
    ];
    let (passed, said) = run(&emitted);
    assert!(
        !passed && said.contains("nothing runs the evaluator `kimi-vendorr`"),
        "{said}"
    );
    assert!(!folder.path().join("plan").exists());
}
