//! `sweepctl eval validate`: each rule of the gate.

mod benchmark;
mod files;
mod fleets;
mod hostile;
mod places;
mod points;
mod properties;
mod scores;
mod shapes;
mod work;

use crate::fixture::{corpus, every_case, read_json, run, sweepctl};

#[test]
fn the_corpus_is_judged_as_it_should_be() {
    every_case("evals/validate", |folder| {
        let case = read_json(&folder.join("case.json"));
        let thresholds = corpus("evals/thresholds.yaml").expect("there are cases, so there is a corpus");
        let mut command = sweepctl(&folder.join("work"));
        command.args(["eval", "validate", "--thresholds"]).arg(thresholds);
        command.args(
            case["args"]
                .as_array()
                .expect("args")
                .iter()
                .map(|arg| arg.as_str().expect("text")),
        );
        let (code, stdout, stderr) = run(&mut command);
        if i64::from(code) != case["expect_exit"] {
            return Some(format!("exit {code}\n{stdout}{stderr}"));
        }
        (code != 0 && !stderr.contains("error[")).then(|| "fails without a reason".to_owned())
    });
}
