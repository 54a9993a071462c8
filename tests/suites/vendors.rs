//! What becomes of a vendor's suite, good and bad.

use serde_json::json;

use super::support::{Desk, VENDORS, Vendor, text};
use crate::eval::support::{names, read_json};
use crate::mock_server::client::Server;

/// A server whose context holds what MiniMax's verifier asks for.
fn serve(args: &[&str]) -> Server {
    Server::start(&[&["--max-model-len", "65536"], args].concat())
}

fn both(test: impl Fn(Vendor)) {
    VENDORS.into_iter().for_each(test);
}

/// A run that is no measurement: the eval fails, its evidence is staged, and the gate says why.
fn fails(
    desk: &Desk,
    vendor: Vendor,
    suite: &str,
    server: &Server,
    stand_in: &str,
    more: &[&str],
    why: &str,
) -> String {
    let done = desk.eval(server, (vendor.framework, suite), &[("STAND_IN", stand_in)], more);
    let said = text(&done);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains(why), "{why}: {said}");
    let error = desk.result()["integration_error"]["message"]
        .as_str()
        .expect("a reason")
        .to_owned();
    assert!(error.contains(why), "{why}: {error}");
    let meta = read_json(&desk.staged().join("meta_env.json"));
    assert_eq!(
        (&meta["eval_framework"], &meta["eval_suite"]),
        (&json!(vendor.framework), &json!(suite))
    );
    let (passed, judged) = desk.gate();
    assert!(!passed && judged.contains(why), "{why}: {judged}");
    said
}

#[test]
fn a_whole_run_passes_with_its_report_as_it_is() {
    both(|vendor| {
        let (desk, server) = (Desk::new(), serve(&[]));
        let done = desk.eval(&server, (vendor.framework, vendor.full), &[], &[]);
        assert!(done.status.success(), "{}", text(&done));
        let result = desk.result();
        let scores = &result["results"][vendor.full];
        assert_eq!(scores["exact_match,none"], 1.0);
        assert_eq!(
            result["n-samples"][vendor.full],
            json!({"original": vendor.checks, "effective": vendor.checks})
        );
        assert!(result.get("integration_error").is_none(), "{result}");
        let staged = names(&desk.staged());
        for name in [vendor.report, "meta_env.json"] {
            assert!(staged.iter().any(|staged| staged == name), "{staged:?}");
        }
        let rows = staged.iter().any(|name| name == "minimax_vendor_results.jsonl");
        assert_eq!(rows, vendor.framework == "minimax-vendor");
        desk.artifact(vendor.framework, "client.log");
        let (passed, said) = desk.gate();
        assert!(passed, "{said}");
        let meta = read_json(&desk.staged().join("meta_env.json"));
        assert_eq!(meta["eval_suite"], vendor.full);
    });
}

#[test]
fn a_low_score_of_a_whole_run_is_a_diagnosis_in_full_and_a_failure_of_a_smoke() {
    both(|vendor| {
        let server = serve(&["--tool-wrong-rate", "1"]);
        let desk = Desk::new();
        let done = desk.eval(&server, (vendor.framework, vendor.full), &[], &[]);
        assert!(done.status.success(), "{}", text(&done));
        assert_eq!(desk.result()["results"][vendor.full]["exact_match,none"], 0.0);
        let (passed, said) = desk.gate();
        assert!(passed, "{said}");

        let desk = Desk::new();
        let done = desk.eval(&server, (vendor.framework, vendor.smoke), &[], &[]);
        assert!(done.status.success(), "{}", text(&done));
        let (passed, said) = desk.gate();
        assert!(!passed && said.contains("is 0.0000, under 1"), "{said}");
        assert!(names(&desk.staged()).iter().any(|name| name == vendor.report));
    });
}

#[test]
fn requests_that_were_not_served_fail_whatever_the_exit_code_says() {
    both(|vendor| {
        // The first request is that of the wait.
        let server = serve(&["--fail-from", "2"]);
        let desk = Desk::new();
        let checks = vendor.checks;
        let why = format!("{checks} of {checks} requests were not served");
        let said = fails(&desk, vendor, vendor.full, &server, "", &[], &why);
        assert!(!said.contains("exited with code"), "{}: {said}", vendor.exit_tells);
        let some = serve(&["--fail-from", "2", "--fail-count", "5"]);
        let desk = Desk::new();
        let done = desk.eval(&some, (vendor.framework, vendor.full), &[], &[]);
        assert!(
            !done.status.success() && text(&done).contains("requests were not served"),
            "{}",
            text(&done)
        );
        assert!(desk.result()["results"][vendor.full]["exact_match,none"].as_f64() >= Some(0.9));
        assert!(!desk.gate().0);
    });
}

#[test]
fn a_source_that_is_missing_or_another_is_a_setup_failure() {
    both(|vendor| {
        let server = serve(&[]);
        let desk = Desk::new();
        std::fs::remove_dir_all(desk.at("sources")).expect("a folder");
        fails(
            &desk,
            vendor,
            vendor.smoke,
            &server,
            "",
            &[],
            "cannot be had from http://127.0.0.1:9/none",
        );
        let desk = Desk::new();
        let script = desk.at("sources").join(vendor.framework).join(vendor.script);
        let other = std::fs::read_to_string(&script).expect("text") + "# another\n";
        std::fs::write(&script, other).expect("written");
        fails(
            &desk,
            vendor,
            vendor.smoke,
            &server,
            "",
            &[],
            "the digest of its 2 files is",
        );
        assert_eq!(server.metric("requests_total"), 0, "nothing of it ran");
    });
}

#[test]
fn what_a_program_does_wrong_is_told_with_its_evidence() {
    both(|vendor| {
        let server = serve(&[]);
        let seconds = ["--timeout-seconds", "5"];
        let missing = format!("checks are missing: {} of {}", vendor.checks - 1, vendor.checks);
        let code = if vendor.exit_tells {
            "exited with code 4"
        } else {
            "exited with code 1"
        };
        for (stand_in, more, why) in [
            ("crash", &[][..], code),
            ("malformed", &[], "is cut off in line 1"),
            ("missing", &[], &*missing),
            ("silent", &[], "was not written"),
            ("hang", &seconds, "was ended at its deadline"),
        ] {
            let desk = Desk::new();
            fails(&desk, vendor, vendor.full, &server, stand_in, more, why);
            desk.artifact(vendor.framework, "client.log");
            let has_report = names(&desk.staged()).iter().any(|name| name == vendor.report);
            assert_eq!(has_report, ["malformed", "missing"].contains(&stand_in), "{stand_in}");
        }
    });
}

#[test]
fn the_model_has_to_answer_on_the_chat_route_first() {
    let server = serve(&["--fail-from", "1"]);
    let vendor = VENDORS[0];
    let desk = Desk::new();
    let env = [("EVAL_ENDPOINT_READY_TIMEOUT_SECONDS", "1")];
    let done = desk.eval(&server, (vendor.framework, vendor.smoke), &env, &[]);
    let why = "not serving `mock` on its chat route";
    assert!(!done.status.success() && text(&done).contains(why), "{}", text(&done));
    let (passed, said) = desk.gate();
    assert!(!passed && said.contains(why), "{said}");
}

#[test]
fn what_cannot_be_run_is_refused_with_the_nearest() {
    let server = serve(&[]);
    let desk = Desk::new();
    for (names, more, why) in [
        (("kimi-vendr", "x"), &[][..], "did you mean `kimi-vendor`"),
        (
            ("kimi-vendor", "kimi_tool_call_shema"),
            &[],
            "did you mean `kimi_tool_call_schema`",
        ),
        (
            ("kimi-vendor", "minimax_m3_full"),
            &[],
            "`kimi-vendor` has no suite `minimax_m3_full`",
        ),
    ] {
        let said = text(&desk.eval(&server, names, &[], more));
        assert!(said.contains(why), "{why}: {said}");
    }
    let batch = desk.eval(
        &server,
        ("kimi-vendor", "kimi_tool_call_schema"),
        &[],
        &["--limit", "3"],
    );
    assert!(text(&batch).contains("takes no limit"), "{}", text(&batch));
}

#[test]
fn one_table_holds_lm_eval_and_all_suites() {
    let server = serve(&[]);
    let all = tempfile::tempdir().expect("a folder");
    for vendor in VENDORS {
        let desk = Desk::new();
        let done = desk.eval(&server, (vendor.framework, vendor.smoke), &[], &[]);
        assert!(done.status.success(), "{}", text(&done));
        std::fs::rename(desk.staged(), all.path().join(vendor.framework)).expect("moved");
    }
    let (desk, done) = super::bfcl::run(&[]);
    assert!(done.status.success(), "{}", text(&done));
    std::fs::rename(desk.staged(), all.path().join("bfcl")).expect("moved");
    let desk = super::swebench::desk();
    let agent = super::swebench::server(&desk, &super::swebench::fix("+"), &[]);
    let done = super::swebench::run(&desk, &agent, &[]);
    assert!(done.status.success(), "{}", text(&done));
    std::fs::rename(desk.staged(), all.path().join("swebench")).expect("moved");
    // A failed one is listed with its reason, and publishes no score.
    let desk = Desk::new();
    let failed = desk.eval(
        &server,
        ("kimi-vendor", VENDORS[0].full),
        &[("STAND_IN", "missing")],
        &[],
    );
    assert!(!failed.status.success());
    std::fs::rename(desk.staged(), all.path().join("failed")).expect("moved");
    let set = all.path().join("lm-eval");
    std::fs::create_dir(&set).expect("a folder");
    std::fs::copy(all.path().join("kimi-vendor/meta_env.json"), set.join("meta_env.json")).expect("copied");
    let result = json!({"results": {"gsm8k": {"exact_match,strict-match": 0.5}},
        "n-samples": {"gsm8k": {"original": 4, "effective": 4}}});
    std::fs::write(set.join("results_2026-01-01T00-00-00.json"), result.to_string()).expect("written");

    let mut command = crate::eval::support::sweepctl();
    let done = command
        .current_dir(all.path())
        .args(["collect", "evals", ".", "--out", ".", "--json"])
        .output()
        .expect("the binary runs");
    let table = read_json(&all.path().join("agg_eval_all.json"));
    let mut rows: Vec<_> = table
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| {
            (
                row["task"].as_str().expect("a task").to_owned(),
                row["score"].as_f64(),
                row["n_eff"].as_u64(),
            )
        })
        .collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    let row = |task: &str, score, n| (task.to_owned(), Some(score), Some(n));
    let wanted = [
        row("bfcl_smoke", 1.0, 4),
        row("gsm8k", 0.5, 4),
        row("kimi_tool_call_schema", 1.0, 2),
        row("minimax_m3_smoke", 1.0, 1),
        row("swebench_lite", 1.0, 1),
    ];
    assert_eq!(rows, wanted, "{}", text(&done));
    assert!(
        text(&done).contains("checks are missing: 407 of 408"),
        "{}",
        text(&done)
    );
}
