//! BFCL's own package, offline.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::support::{Desk, text};
use crate::eval::support::names;
use crate::eval::tools;
use crate::mock_server::client::Server;

/// The first question of each category, with the calls that its data set holds for right.
pub fn answers(folder: &std::path::Path) -> PathBuf {
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let line = |question: &str, calls: Vec<Value>| json!({"question": question, "tool_calls": calls}).to_string();
    let lines = [
        line(
            "Find the area of a triangle with a base of 10 units and height of 5 units.",
            vec![call("calculate_triangle_area", json!({"base": 10, "height": 5}))],
        ),
        line(
            "Can I find the dimensions and properties of a triangle, if I know its three sides are 5 units, 4 units \
             and 3 units long?",
            vec![call(
                "triangle_properties_get",
                json!({"side1": 5, "side2": 4, "side3": 3}),
            )],
        ),
        line(
            "Play songs from the artists Taylor Swift and Maroon 5, with a play time of 20 minutes and 15 minutes \
             respectively, on Spotify.",
            vec![
                call("spotify_play", json!({"artist": "Taylor Swift", "duration": 20})),
                call("spotify_play", json!({"artist": "Maroon 5", "duration": 15})),
            ],
        ),
        line(
            "Find the sum of all the multiples of 3 and 5 between 1 and 1000. Also find the product of the first five \
             prime numbers.",
            vec![
                call(
                    "math_toolkit_sum_of_multiples",
                    json!({"lower_limit": 1, "upper_limit": 1000, "multiples": [3, 5]}),
                ),
                call("math_toolkit_product_of_primes", json!({"count": 5})),
            ],
        ),
    ];
    let file = folder.join("answers.jsonl");
    std::fs::write(&file, lines.join("\n")).expect("written");
    file
}

pub fn run(args: &[&str]) -> (Desk, std::process::Output) {
    let desk = Desk::new();
    let file = answers(&desk.at("home"));
    let server = Server::start(&[&["--answers", file.to_str().expect("UTF-8")], args].concat());
    let shared = tools::folder();
    let shared = [("SWEEPCTL_TOOLS", shared.to_str().expect("UTF-8"))];
    let done = desk.eval(&server, ("bfcl", "bfcl_smoke"), &shared, &[]);
    (desk, done)
}

#[test]
fn right_answers_pass() {
    let (desk, done) = run(&[]);
    assert!(done.status.success(), "{}", text(&done));
    let result = desk.result();
    assert_eq!(
        result["results"]["bfcl_smoke"]["exact_match,none"],
        1.0,
        "{}",
        text(&done)
    );
    assert_eq!(
        result["n-samples"]["bfcl_smoke"],
        json!({"original": 4, "effective": 4})
    );
    let staged = names(&desk.staged());
    for name in ["bfcl_report.json", "bfcl_results.jsonl", "bfcl_artifacts.tar.gz"] {
        assert!(staged.iter().any(|staged| staged == name), "{staged:?}");
    }
    let scores = desk.artifact("bfcl", "bfcl/score/served-model/non_live/BFCL_v4_parallel_score.json");
    assert!(scores.contains("\"accuracy\": 1.0"), "{scores}");
    assert!(desk.gate().0, "{}", desk.gate().1);
}

#[test]
fn wrong_answers_are_a_lower_score() {
    let (desk, done) = run(&["--accuracy", "0.25"]);
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(desk.result()["results"]["bfcl_smoke"]["exact_match,none"], 0.25);
    let (passed, said) = desk.gate();
    assert!(!passed && said.contains("is 0.2500, under 0.5"), "{said}");
}

#[test]
fn rows_with_an_inference_error_are_no_scores() {
    let (desk, done) = run(&["--fail-from", "2"]);
    let why = "4 of 4 requests were not served";
    assert!(!done.status.success() && text(&done).contains(why), "{}", text(&done));
    let (passed, said) = desk.gate();
    assert!(!passed && said.contains(why), "{said}");
    assert!(names(&desk.staged()).iter().any(|name| name == "bfcl_report.json"));
}

#[test]
fn a_program_that_is_ended_or_cannot_start_is_told() {
    let desk = Desk::new();
    let server = Server::start(&["--hang-after", "1"]);
    let shared = tools::folder();
    let shared = [("SWEEPCTL_TOOLS", shared.to_str().expect("UTF-8"))];
    let done = desk.eval(&server, ("bfcl", "bfcl_smoke"), &shared, &["--timeout-seconds", "8"]);
    assert!(text(&done).contains("was ended at its deadline"), "{}", text(&done));
    assert!(!desk.gate().0);
    desk.artifact("bfcl", "client.log");

    let desk = Desk::new();
    std::fs::write(
        desk.at("configs/evals/bfcl_client.py"),
        "import sys; sys.exit('no such package')",
    )
    .expect("written");
    let done = desk.eval(&Server::start(&[]), ("bfcl", "bfcl_smoke"), &shared, &[]);
    assert!(
        text(&done).contains("exited with code 1; the report bfcl_report.json was not written"),
        "{}",
        text(&done)
    );
    assert!(desk.artifact("bfcl", "client.log").contains("no such package"));
    let (passed, said) = desk.gate();
    assert!(!passed && said.contains("exited with code 1"), "{said}");
}
