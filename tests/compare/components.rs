//! Parts of a point that have a name and a version: they are told apart by their name.

use serde_json::{Value, json};

use super::{Sides, column, row, with};

#[test]
fn an_offloading_backend_is_the_same_in_another_version_and_another_one_under_another_name() {
    let agentic = |backend: Value| {
        let fields = json!({"isl": null, "osl": null, "scenario_type": "agentic-coding", "kv_offloading": "dram",
                            "kv_offload_backend": backend});
        json!([with(row(8, 10.0), &fields)])
    };
    let sides = Sides::new();
    sides.throughput("before", &agentic(json!({"name": "cache", "version": "1"})));
    for same in [
        json!({"name": "cache", "version": "2"}),
        json!({"version": "1", "name": "cache"}),
        json!("cache"),
    ] {
        sides.throughput("after", &agentic(same.clone()));
        assert_eq!(column(&sides.compared(), "points", "conc"), [8], "{same}");
    }
    sides.throughput("after", &agentic(json!({"name": "other", "version": "1"})));
    let printed = sides.compared();
    assert_eq!(printed["points"], json!([]));
    assert_eq!(column(&printed, "only_current", "conc"), [8]);
}
