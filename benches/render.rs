//! Rendering every file of the project: under 50 ms, templates parsed included.

use std::sync::Arc;

use divan::{Bencher, black_box};
use sweepctl::config::labels::{BUILT_IN, Labels};
use sweepctl::config::source::Source;
use sweepctl::config::workflows::Workflows;
use sweepctl::workflow::check::check;
use sweepctl::workflow::render::render;
use sweepctl::workflow::templates::Templates;

fn main() {
    divan::main();
}

fn labels() -> Labels {
    let source = Source {
        name: "labels.yaml".to_owned(),
        text: BUILT_IN.to_owned(),
    };
    Labels::load(&Arc::new(source)).expect("the built-in labels load")
}

/// From the texts of configs and templates to the texts of files.
#[divan::bench]
fn render_everything(bencher: Bencher) {
    bencher.bench(|| {
        let settings = Arc::new(Workflows::built_in());
        render(&Templates::built_in(), &labels(), &settings).expect("it renders")
    });
}

/// Every check over every rendered workflow.
#[divan::bench]
fn check_everything(bencher: Bencher) {
    let settings = Arc::new(Workflows::built_in());
    let rendered = render(&Templates::built_in(), &labels(), &settings).expect("it renders");
    let sources: Vec<Arc<Source>> = rendered
        .into_iter()
        .map(|file| {
            Arc::new(Source {
                name: file.path,
                text: file.text,
            })
        })
        .collect();
    bencher.bench(|| check(black_box(&sources)).expect("nothing is found"));
}
