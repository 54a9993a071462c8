//! What holds for every fleet, tried on made-up ones.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use sweepctl::config::asked::Asked;
use sweepctl::config::changelog::Changelog;
use sweepctl::config::master::{self, Config, Master};
use sweepctl::config::policy::{EvalPolicies, EvalPolicy};
use sweepctl::config::runners::Runners;
use sweepctl::config::source::Source;
use sweepctl::config::workflows::MaxParallel;
use sweepctl::matrix::bucket;
use sweepctl::matrix::envelope::Envelope;
use sweepctl::matrix::evals::{self, EvalMode, Outcome};
use sweepctl::matrix::expand::Expansion;
use sweepctl::matrix::names;
use sweepctl::matrix::row::Row;
use sweepctl::matrix::shard::{self, MAX_SHARD_BYTES, MAX_SHARD_JOBS};
use sweepctl::runner::utf16_bytes;

fn source(text: &str) -> Arc<Source> {
    Arc::new(Source::new("made-up.yaml".to_owned(), text.to_owned()))
}

fn policies() -> EvalPolicies {
    EvalPolicies::built_in().expect("the built-in policies load")
}

fn runners() -> Runners {
    let text = "labels: { r0: [r0-a, r0-b], r1: [r1-a], cluster:c: [c-a] }\nhardware: { cluster:c: { \
                available-cpu-dram-mib: 1_000_000, gpus-per-node: 8 } }";
    Runners::load(&source(text)).expect("runners")
}

fn conc() -> impl Strategy<Value = String> {
    let list = prop::collection::vec(1_u64..300, 1..6).prop_map(|points| format!("conc-list: {points:?}"));
    let range =
        (1_u64..40, 0_u64..200).prop_map(|(start, more)| format!("conc-start: {start}, conc-end: {}", start + more));
    prop_oneof![list, range]
}

fn side() -> impl Strategy<Value = String> {
    (0_u64..3, select(vec![1, 2, 4, 8]), select(vec![1, 4, 8]), any::<bool>())
        .prop_map(|(workers, tp, ep, dpa)| format!("{{ num-worker: {workers}, tp: {tp}, ep: {ep}, dp-attn: {dpa} }}"))
}

fn spec() -> impl Strategy<Value = &'static str> {
    select(vec!["", ", spec-decoding: mtp", ", spec-decoding: none"])
}

fn single_entry() -> impl Strategy<Value = String> {
    let more = select(vec!["", ", ep: 1", ", ep: 4, dp-attn: true", ", dp-attn: false"]);
    (select(vec![1, 2, 4, 8]), more, spec(), conc())
        .prop_map(|(tp, more, spec, conc)| format!("tp: {tp}{more}{spec}, {conc}"))
}

fn multi_entry() -> impl Strategy<Value = String> {
    (side(), side(), spec(), conc())
        .prop_map(|(prefill, decode, spec, conc)| format!("prefill: {prefill}, decode: {decode}{spec}, {conc}"))
}

/// The search space of a scenario, as YAML.
fn space(multi: bool, agentic: bool) -> impl Strategy<Value = String> {
    let entry = if multi {
        multi_entry().boxed()
    } else {
        single_entry().boxed()
    };
    let kv = select(vec![
        "kv-offloading: none",
        "kv-offloading: dram, kv-offload-backend: { name: lmcache }",
    ]);
    prop::collection::vec((entry, kv), 1..4).prop_map(move |entries| {
        let lines = entries.into_iter().map(|(entry, kv)| {
            let kv = if agentic && !multi {
                format!(", {kv}")
            } else {
                String::new()
            };
            format!("      - {{ {entry}{kv} }}\n")
        });
        lines.collect()
    })
}

/// A config without its key.
fn config() -> impl Strategy<Value = String> {
    let kinds = (any::<bool>(), any::<bool>(), any::<bool>());
    let names = (
        select(vec!["alpha", "kimik3", "minimaxm3"]),
        select(vec!["fp4", "fp8"]),
        select(vec!["r0", "r1"]),
    );
    (kinds, names).prop_flat_map(|((multi, fixed, agentic), (prefix, precision, runner))| {
        let fixed = fixed || !agentic;
        let runner = if agentic { "cluster:c" } else { runner };
        let head = format!(
            "  image: i:1\n  model: org/{prefix}\n  model-prefix: {prefix}\n  precision: {precision}\n  framework: \
             vllm\n  runner: {runner}\n  multinode: {multi}\n  scenarios:\n"
        );
        let lengths = subsequence(vec![(1024, 1024), (8192, 1024), (8192, 1024), (2000, 300)], 1..=3);
        let fixed_part = (lengths, prop::collection::vec(space(multi, false), 3));
        (Just(head), fixed_part, space(multi, true)).prop_map(move |(head, (lengths, spaces), traces)| {
            let mut text = head;
            if fixed {
                text.push_str("    fixed-seq-len:\n");
                for ((isl, osl), space) in lengths.iter().zip(spaces) {
                    text.push_str(&format!(
                        "    - isl: {isl}\n      osl: {osl}\n      search-space:\n{space}"
                    ));
                }
            }
            if agentic {
                text.push_str(&format!(
                    "    agentic-coding:\n    - dram-utilization: 0.7\n      search-space:\n{traces}"
                ));
            }
            text
        })
    })
}

fn fleet() -> impl Strategy<Value = Master> {
    prop::collection::vec(config(), 1..5).prop_map(|configs| {
        let text: String = configs
            .iter()
            .enumerate()
            .map(|(n, config)| format!("c-{n}:\n{config}"))
            .collect();
        master::load(&[source(&text)]).unwrap_or_else(|problems| panic!("{problems}\n{text}"))
    })
}

fn rows<'c>(configs: impl IntoIterator<Item = &'c Config>) -> Vec<Row> {
    Expansion::default().rows(configs, &runners()).expect("rows")
}

fn policy_name() -> impl Strategy<Value = &'static str> {
    select(vec!["2026-10", "2026-08", "2026-05", "2026-03"])
}

fn named<'p>(policies: &'p EvalPolicies, name: &str) -> &'p EvalPolicy {
    policies.named(Some(name)).expect("a policy").1
}

/// A row without what marking may change.
fn unmarked(row: &Row) -> Row {
    Row {
        eval: Default::default(),
        ..row.clone()
    }
}

fn config_of_cases() -> ProptestConfig {
    ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config_of_cases())]

    #[test]
    fn picks_stand_at_their_floor_and_every_group_has_one(fleet in fleet(), name in policy_name()) {
        let policies = policies();
        let policy = named(&policies, name);
        let rows = rows(fleet.values());
        for (rules, mode) in [(&policy.selection, EvalMode::EvalsOnly), (&policy.all_evals, EvalMode::AllEvals)] {
            for examined in evals::examine(&rows, rules, mode) {
                let floor = examined.rule.floor.unwrap_or(0);
                let mut taken = HashSet::new();
                for (row, outcome) in rows.iter().zip(&examined.outcomes) {
                    match outcome {
                        Outcome::Taken { group, .. } => {
                            taken.insert(*group);
                            prop_assert!(row.conc.highest() >= floor);
                        }
                        Outcome::Fallback | Outcome::UnderFloor => prop_assert!(row.conc.highest() < floor),
                        Outcome::Passed { .. } | Outcome::Elsewhere => {}
                    }
                }
                prop_assert_eq!(taken.len(), examined.groups.len());
            }
        }
        for row in evals::apply(rows, policy, EvalMode::EvalsOnly, false) {
            if let Some(conc) = row.eval.eval_conc {
                prop_assert!(row.conc.points().contains(&conc));
            }
        }
    }

    #[test]
    fn marking_changes_no_other_field(fleet in fleet(), name in policy_name()) {
        let policies = policies();
        let rows = rows(fleet.values());
        let marked = evals::apply(rows.clone(), named(&policies, name), EvalMode::Mark, false);
        prop_assert!(marked.len() >= rows.len());
        let in_place: Vec<Row> = marked[..rows.len()].iter().map(unmarked).collect();
        prop_assert_eq!(&in_place, &rows);
        prop_assert!(marked[..rows.len()].iter().all(|row| row.eval.run_eval.is_some() && !row.eval.eval_only));
        let known: HashSet<String> = rows.iter().map(|row| format!("{:?}", unmarked(row))).collect();
        for extra in &marked[rows.len()..] {
            prop_assert!(extra.eval.eval_only && extra.runs_eval());
            let copied = known.contains(&format!("{:?}", unmarked(extra)));
            prop_assert!(copied);
        }
        let without = evals::apply(rows.clone(), named(&policies, name), EvalMode::NoEvals, false);
        prop_assert!(without.iter().all(|row| !row.runs_eval()));
    }

    #[test]
    fn the_order_of_rows_decides_ties_alone(fleet in fleet(), name in policy_name(), seed in any::<u64>()) {
        let policies = policies();
        let policy = named(&policies, name);
        let rows = rows(fleet.values());
        let mut shuffled = rows.clone();
        let mut state = seed;
        for end in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(end, (state >> 33) as usize % (end + 1));
        }
        // Which row of a tie is taken may differ; how many, and at which concurrencies, may not.
        let picked = |rows: Vec<Row>| {
            let mut picked = BTreeMap::new();
            for row in evals::apply(rows, policy, EvalMode::EvalsOnly, false) {
                let topology = &row.topology;
                let key = (topology.model.clone(), topology.precision.clone(), topology.runner.clone(), row.conc.highest());
                *picked.entry(key).or_insert(0) += 1;
            }
            picked
        };
        prop_assert_eq!(picked(rows), picked(shuffled));
    }

    #[test]
    fn several_configs_are_each_in_order(fleet in fleet()) {
        let one_by_one: Vec<Row> = fleet.values().flat_map(|config| rows([config])).collect();
        prop_assert_eq!(rows(fleet.values()), one_by_one);
    }

    #[test]
    fn shards_together_are_the_buckets_and_within_limits(
        fleet in fleet(), times in 1_usize..40, default in 1_u64..40, own in 1_u64..40
    ) {
        let mut many = Vec::new();
        for _ in 0..times {
            many.extend(rows(fleet.values()));
        }
        let buckets = bucket::of_rows(&many, &Asked::default()).expect("buckets");
        let jobs: usize = buckets.values().map(Vec::len).sum();
        prop_assert_eq!(jobs, many.len());
        let first = many[0].topology.runner.clone();
        let limits = MaxParallel { default, labels: [(first, own)].into_iter().collect() };
        let shards = shard::cut(&buckets, &limits).expect("shards");
        for (bucket, envelopes) in &buckets {
            let of_bucket = shards.iter().filter(|shard| shard.bucket == *bucket);
            let mut cut: Vec<&Envelope> = of_bucket.flat_map(|shard| shard.jobs.clone()).collect();
            let places: HashMap<&str, usize> = envelopes.iter().enumerate().map(|(at, job)| (&*job.id, at)).collect();
            cut.sort_by_key(|job| places[&*job.id]);
            prop_assert_eq!(cut, envelopes.iter().collect::<Vec<_>>());
        }
        let mut labels: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for shard in &shards {
            prop_assert!(!shard.jobs.is_empty() && shard.jobs.len() <= MAX_SHARD_JOBS);
            prop_assert!(utf16_bytes(&serde_json::to_string(&shard.jobs).expect("JSON")) <= MAX_SHARD_BYTES);
            let label = shard.jobs[0].runs_on.as_str();
            prop_assert!(shard.jobs.iter().all(|job| job.runs_on == label));
            let (parallel, count) = labels.entry(label).or_default();
            *parallel += shard.max_parallel;
            *count += 1;
        }
        // All shards of a label together take its limit, or its jobs, and each at least one.
        for (label, (parallel, count)) in labels {
            let jobs = many.iter().filter(|row| row.topology.runner == label).count() as u64;
            prop_assert_eq!(parallel, limits.of(label).min(jobs).max(count), "{}", label);
        }
    }

    #[test]
    fn ids_are_unique_and_stay_under_any_order(fleet in fleet(), from in any::<Index>()) {
        let rows = rows(fleet.values());
        let mut turned = rows.clone();
        turned.rotate_left(from.index(rows.len()));
        turned.reverse();
        let ids = |rows: &[Row]| {
            let buckets = bucket::of_rows(rows, &Asked::default()).expect("buckets");
            let mut ids: Vec<(String, String)> =
                buckets.into_values().flatten().map(|e| (e.id, serde_json::to_string(&e.row).expect("JSON"))).collect();
            ids.sort();
            ids
        };
        let found = ids(&rows);
        prop_assert_eq!(&found, &ids(&turned));
        let distinct: HashSet<&String> = found.iter().map(|(id, _)| id).collect();
        prop_assert_eq!(distinct.len(), rows.len());
    }

    #[test]
    fn rows_come_back_from_json(fleet in fleet(), name in policy_name()) {
        let policies = policies();
        for mode in [EvalMode::Mark, EvalMode::NoEvals, EvalMode::EvalsOnly, EvalMode::AllEvals] {
            for row in evals::apply(rows(fleet.values()), named(&policies, name), mode, false) {
                let text = serde_json::to_string(&row).expect("JSON");
                let back: Row = serde_json::from_str(&text).expect("a row");
                // The config's key travels beside the row.
                prop_assert!(row.config_key.is_some() && !text.contains("config-key"));
                prop_assert_eq!(back, Row { config_key: None, ..row });
            }
        }
    }

    #[test]
    fn names_of_results_fit_file_names(fleet in fleet(), runner in "\\PC{1,80}") {
        for row in rows(fleet.values()) {
            let name = names::result(&row, &runner);
            prop_assert!(name.len() <= 200 && !name.contains('/'), "{}", name);
        }
    }

    #[test]
    fn trimming_leaves_one_row_a_topology_at_its_lowest(fleet in fleet()) {
        let policies = policies();
        let rows = rows(fleet.values());
        let mut lowest: HashMap<_, u64> = HashMap::new();
        for row in &rows {
            let least = lowest.entry(Arc::clone(&row.topology)).or_insert(u64::MAX);
            *least = (*least).min(row.conc.lowest());
        }
        let trimmed = evals::apply(rows, named(&policies, "2026-10"), EvalMode::NoEvals, true);
        prop_assert_eq!(trimmed.len(), lowest.len());
        for row in trimmed {
            prop_assert_eq!(row.conc.points(), &[lowest[&row.topology]]);
        }
    }

    #[test]
    fn ranges_start_at_their_start_and_rise_to_their_end(start in 1_u64..2_000_000_000, more in 0_u64..100_000_000, step in 2_u64..1_000_000) {
        let end = start + more;
        let text = format!(
            "c:\n  image: i\n  model: m\n  model-prefix: p\n  precision: fp8\n  framework: f\n  runner: r\n  multinode: \
             true\n  scenarios:\n    fixed-seq-len:\n    - isl: 1\n      osl: 1\n      search-space:\n      - \
             conc-start: {start}\n        conc-end: {end}\n        prefill: {{ num-worker: 1, tp: 1, ep: 1, dp-attn: \
             false }}\n        decode: {{ num-worker: 0, tp: 1, ep: 1, dp-attn: false }}\n"
        );
        let fleet = master::load(&[source(&text)]).expect("a fleet");
        let expansion = Expansion { step, ..Expansion::default() };
        let rows = expansion.rows(fleet.values(), &runners()).expect("rows");
        let points = rows[0].conc.points();
        prop_assert_eq!(points.first(), Some(&start));
        prop_assert_eq!(points.last(), Some(&end));
        prop_assert!(points.is_sorted_by(|a, b| a < b), "{:?}", points);
        prop_assert!(points.windows(2).all(|pair| pair[1] == pair[0] * step || pair[1] == end));
    }

    #[test]
    fn what_a_changelog_gains_is_what_was_put_in(
        old in prop::collection::vec(0_u8..4, 0..6), new in prop::collection::vec((0_u8..4, any::<Index>()), 0..4)
    ) {
        let entry = |n: u8| format!("- config-keys: [c{n}]\n  description: [d]\n  pr-link: p\n");
        let text = |all: &[u8]| all.iter().map(|n| entry(*n)).collect::<String>();
        let mut after = old.clone();
        for (n, at) in &new {
            after.insert(at.index(after.len() + 1), *n);
        }
        let (before, after) = (source(&text(&old)), source(&text(&after)));
        let (base, head) = (Changelog::parse(&before).expect("a list"), Changelog::parse(&after).expect("a list"));
        let added = head.added(&base).expect("nothing is lost");
        let mut gained: Vec<String> =
            head.decode(&added).expect("entries").into_iter().flat_map(|(entry, _)| entry.config_keys).collect();
        gained.sort();
        let mut wanted: Vec<String> = new.iter().map(|(n, _)| format!("c{n}")).collect();
        wanted.sort();
        prop_assert_eq!(gained, wanted);
        // The way back is a removal, which is refused, unless nothing was put in.
        prop_assert_eq!(base.added(&head).is_err(), !new.is_empty());
    }

    #[test]
    fn an_unchanged_prefix_says_the_same_as_the_entries(cut in any::<Index>(), spaces in prop::collection::vec("\n{0,2}(# c\n)?", 5)) {
        let mut text = String::new();
        for (n, space) in spaces.iter().enumerate() {
            text.push_str(&format!("{space}- config-keys: [c{n}]\n  description:\n  - d\n  pr-link: p\n"));
        }
        let at = cut.index(text.len() + 1);
        let (before, after) = (source(&text[..at]), source(&text));
        let head = Changelog::parse(&after).expect("a list");
        if let (Some(fast), Ok(base)) = (head.added_to_prefix(&before.text), Changelog::parse(&before)) {
            let lines = |nodes: Vec<&sweepctl::config::tree::Node<'_>>| nodes.iter().map(|n| n.span.line).collect::<Vec<_>>();
            let slow = head.added(&base);
            prop_assert!(slow.is_ok(), "a text that ends inside an entry is no prefix: {:?}", &before.text);
            prop_assert_eq!(lines(fast), lines(slow.expect("checked")));
        }
    }
}
