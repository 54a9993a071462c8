//! From the clusters file to checked clusters.

use std::collections::HashMap;
use std::path::{Component, Path};

use indexmap::IndexMap;

use super::command::Template;
use super::{Backend, Cluster, fleet};
use crate::config::decode::{Decoder, Fields};
use crate::config::environment;
use crate::config::problem::{Span, nearest};
use crate::config::tree::Node;
use crate::findings::config;

/// Five days: no job takes longer.
const MAX_MINUTES: u64 = 7200;
/// What was claimed, by which cluster.
type Claims = HashMap<String, String>;

/// Reads the clusters. `labels` are those of the runners file, where it is known: a cluster of runners that no
/// label stands for would never start a job.
pub(super) fn clusters(
    d: &mut Decoder,
    node: &Node<'_>,
    name: &str,
    labels: Option<&IndexMap<String, Vec<String>>>,
) -> IndexMap<String, Cluster> {
    let known: Option<Vec<&str>> = labels.map(|labels| labels.values().flatten().map(String::as_str).collect());
    let known_fleets: Option<Vec<&str>> = known.as_ref().map(|names| names.iter().map(|n| fleet(n)).collect());
    let (mut fleets, mut runners) = (Claims::new(), Claims::new());
    let mut clusters = IndexMap::new();
    for (key, value) in d.entries(node, name) {
        let name = key.text();
        let Some(mut f) = d.fields(value, &format!("the cluster `{name}`")) else {
            continue;
        };
        let own_fleets = names(d, &mut f, "fleets");
        let own_runners = names(d, &mut f, "runners");
        let own_fleets = match (own_fleets, &own_runners) {
            (None, None) => vec![(key.span, name.to_owned())],
            (given, _) => given.unwrap_or_default(),
        };
        let own_runners = own_runners.unwrap_or_default();
        claim(d, name, "fleet", &own_fleets, known_fleets.as_deref(), &mut fleets);
        claim(d, name, "runner", &own_runners, known.as_deref(), &mut runners);
        let idle_minutes = f.optional(d, "idle-minutes", |d, n, name| d.integer_up_to(n, name, MAX_MINUTES));
        let env = f.optional(d, "env", environment::decode);
        let served_model_name = f.optional(d, "served-model-name", Template::decode);
        let backend = Backend::decode(d, &mut f);
        // Without a backend nobody knows which fields there are, but for those of every cluster and a misspelt `backend`.
        let named = f
            .get("backend")
            .is_some_and(|node| Backend::NAMES.contains(&node.text()));
        if backend.is_some() || named {
            f.finish(d);
        }
        if let Some(backend) = backend {
            let texts = |spanned: Vec<(Span, String)>| spanned.into_iter().map(|(_, text)| text).collect();
            let cluster = Cluster {
                env: env.unwrap_or_default(),
                served_model_name,
                fleets: texts(own_fleets),
                runners: texts(own_runners),
                idle_minutes,
                backend,
            };
            clusters.insert(name.to_owned(), cluster);
        }
    }
    clusters
}

/// Names and their places.
fn names(d: &mut Decoder, f: &mut Fields<'_, '_>, field: &'static str) -> Option<Vec<(Span, String)>> {
    let node = f.get(field)?;
    let names = d.list(node, field, 1, |d, item| Some((item.span, d.string(item, field)?)));
    Some(names.unwrap_or_default())
}

/// Reports names that no label stands for, and names that a cluster has claimed already.
fn claim(
    d: &mut Decoder,
    cluster: &str,
    what: &str,
    names: &[(Span, String)],
    known: Option<&[&str]>,
    claims: &mut Claims,
) {
    for (span, name) in names {
        if let Some(known) = known.filter(|known| !known.contains(&name.as_str())) {
            let mut distinct = known.to_vec();
            distinct.sort_unstable();
            distinct.dedup();
            d.refuse(
                &config::UNKNOWN_NAME,
                *span,
                format!("the {what} `{name}` stands under no label"),
                nearest(name, distinct),
            );
        }
        if let Some(first) = claims.insert(name.clone(), cluster.to_owned()) {
            let message = format!("the {what} `{name}` belongs to the cluster `{first}` already");
            d.refuse(&config::NAMED_TWICE, *span, message, "name it once");
        }
    }
}

/// A day.
const MAX_SECONDS: u64 = 86_400;

/// The port of a server.
pub(crate) fn port(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<u16> {
    let port = d.integer_up_to(node, name, u64::from(u16::MAX))?;
    u16::try_from(port).ok()
}

/// Seconds, at most a day.
pub(crate) fn seconds(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<u64> {
    d.integer_up_to(node, name, MAX_SECONDS)
}

/// A string of some form.
pub(crate) fn matching(
    d: &mut Decoder,
    node: &Node<'_>,
    name: &str,
    is: fn(&str) -> bool,
    hint: &str,
) -> Option<String> {
    let text = d.string(node, name)?;
    if !is(&text) {
        let shown: String = text.chars().take(40).collect();
        d.refuse(
            &config::MALFORMED,
            node.span,
            format!("`{shown}` is not a value of `{name}`"),
            hint,
        );
        return None;
    }
    Some(text)
}

/// A path inside the repository.
pub(crate) fn inside(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let is = |text: &str| Path::new(text).components().all(|c| matches!(c, Component::Normal(_)));
    matching(
        d,
        node,
        name,
        is,
        "write a path from the repository's root, without `..`",
    )
}

/// A path that begins at the root and can stand in a mount option.
pub(crate) fn absolute(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let is = |text: &str| {
        let up = Path::new(text).components().any(|c| c == Component::ParentDir);
        text.starts_with('/') && !up && !text.contains([':', ',', '"', '\n'])
    };
    matching(
        d,
        node,
        name,
        is,
        "write an absolute path without `..`, `:`, `,` and quotes",
    )
}
