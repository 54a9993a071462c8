//! Rendering every file of the project: under 50 ms, templates parsed included.

use std::sync::Arc;

use divan::{Bencher, black_box};
use sweepctl::config::labels::{BUILT_IN, Labels};
use sweepctl::config::source::Source;
use sweepctl::config::workflows::Workflows;
use sweepctl::workflow::check::check;
use sweepctl::workflow::render::{Rendered, render};
use sweepctl::workflow::templates::Templates;

fn main() {
    divan::main();
}

fn source(name: &str, text: &str) -> Arc<Source> {
    Arc::new(Source::from_bytes(name, text.into()).expect("plain text"))
}

/// From the texts of configs and templates to the texts of files.
fn rendered() -> Vec<Rendered> {
    let settings = Workflows::load(&source("workflows.yaml", include_str!("../configs/workflows.yaml")));
    let labels = Labels::load(&source("labels.yaml", BUILT_IN)).expect("the labels load");
    let settings = Arc::new(settings.expect("the project's settings load"));
    render(&Templates::built_in(), &labels, &settings).expect("it renders")
}

#[divan::bench]
fn render_everything(bencher: Bencher) {
    bencher.bench(rendered);
}

/// Every check over every rendered workflow.
#[divan::bench]
fn check_everything(bencher: Bencher) {
    let sources: Vec<Arc<Source>> = rendered().iter().map(|file| source(&file.path, &file.text)).collect();
    bencher.bench(|| check(black_box(&sources)).expect("nothing is found"));
}
