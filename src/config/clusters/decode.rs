//! From the runners file to checked clusters.

use std::collections::HashMap;
use std::path::{Component, Path};

use indexmap::IndexMap;

use super::{
    Backend, Cluster, Command, Container, Gpus, Local, Mount, Runtime, Schema, Script, Slurm, Srt, Uses, fleet,
};
use crate::config::decode::{Decoder, Fields};
use crate::config::problem::{Span, nearest};
use crate::config::tree::Node;
use crate::findings::config;

/// A day.
const MAX_SECONDS: u64 = 86_400;
/// Five days: no job takes longer.
const MAX_MINUTES: u64 = 7200;
/// Options of sbatch that a cluster's own fields or the launch give.
const OWN_OPTIONS: [&str; 24] = [
    "--account",
    "-A",
    "--array",
    "-a",
    "--chdir",
    "-D",
    "--comment",
    "--error",
    "-e",
    "--export",
    "--job-name",
    "-J",
    "--output",
    "-o",
    "--parsable",
    "--no-requeue",
    "--partition",
    "-p",
    "--requeue",
    "--time",
    "-t",
    "--wait",
    "-W",
    "--wrap",
];

/// What was claimed, by which cluster.
type Claims = HashMap<String, String>;

/// Reads the clusters. `labels` are those of the same file, where they could be read: a cluster of runners that no
/// label stands for would never start a job.
pub(in crate::config) fn clusters(
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
        let backend = backend(d, &mut f);
        // Without a backend nobody knows which fields there are.
        if backend.is_some() || f.has("backend") {
            f.finish(d);
        }
        if let Some(backend) = backend {
            let texts = |spanned: Vec<(Span, String)>| spanned.into_iter().map(|(_, text)| text).collect();
            let cluster = Cluster {
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

fn backend(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Backend> {
    let choices = Backend::NAMES.map(|name| (name, name));
    let backend = f.required(d, "backend", |d, n, name| d.choice(n, name, &choices))?;
    match backend {
        "script" => Some(Backend::Script(Script {
            path: f.optional(d, "path", inside),
            uses: Uses::decode(d, f),
        })),
        "local" => local(d, f).map(Backend::Local),
        "slurm" => slurm(d, f).map(Backend::Slurm),
        "container" => container(d, f).map(Backend::Container),
        _ => Some(Backend::Srt(Srt {
            recipes_dir: f.optional(d, "recipes-dir", inside),
            workspace: f.optional(d, "workspace", absolute),
            schema: f.optional(d, "schema", Schema::decode).unwrap_or_default(),
        })),
    }
}

fn local(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Local> {
    let server_command = f.required(d, "server-command", Command::decode);
    let port = f.optional(d, "port", |d, n, name| {
        let port = d.integer_up_to(n, name, u64::from(u16::MAX))?;
        u16::try_from(port).ok()
    });
    let ready = f.optional(d, "ready-timeout-seconds", |d, n, name| {
        d.integer_up_to(n, name, MAX_SECONDS)
    });
    let throughput_command = f.optional(d, "throughput-command", Command::decode);
    let eval_task = f.optional(d, "eval-task", Decoder::string);
    Some(Local {
        server_command: server_command?,
        port,
        ready_timeout_seconds: ready.unwrap_or_else(super::ready_timeout),
        throughput_command,
        eval_task,
    })
}

fn slurm(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Slurm> {
    let partition = f.required(d, "partition", Decoder::string);
    let account = f.optional(d, "account", Decoder::string);
    let time = f.optional(d, "time", |d, n, name| {
        let hint = "write minutes, `HH:MM:SS` or `D-HH:MM:SS`";
        matching(d, n, name, is_slurm_time, hint)
    });
    let path = f.optional(d, "path", inside);
    let extra = f.optional(d, "extra", |d, n, name| {
        d.list(n, name, 1, |d, item| option(d, item, name))
    });
    Some(Slurm {
        partition: partition?,
        account,
        time,
        path,
        extra: extra.unwrap_or_default(),
    })
}

fn container(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Container> {
    let runtime = f.required(d, "runtime", |d, n, name| d.choice(n, name, &Runtime::CHOICES));
    let gpus = f.optional(d, "gpus", |d, n, name| d.choice(n, name, &Gpus::CHOICES));
    let mounts = f.optional(d, "mounts", |d, n, name| d.list(n, name, 1, mount));
    let shm_size = f.optional(d, "shm-size", |d, n, name| {
        matching(d, n, name, is_size, "write it as `64g`")
    });
    let network = f.optional(d, "network", |d, n, name| {
        matching(d, n, name, is_network, "write `host`, or a network's name")
    });
    let path = f.optional(d, "path", inside);
    Some(Container {
        runtime: runtime?,
        gpus: gpus.unwrap_or_default(),
        mounts: mounts.unwrap_or_default(),
        shm_size,
        network,
        path,
    })
}

fn mount(d: &mut Decoder, node: &Node<'_>) -> Option<Mount> {
    let mut f = d.fields(node, "a mount")?;
    let host = f.required(d, "host", absolute);
    let container = f.required(d, "container", absolute);
    let read_only = f.optional(d, "read-only", Decoder::boolean);
    f.finish(d);
    Some(Mount {
        host: host?,
        container: container?,
        read_only: read_only.unwrap_or(false),
    })
}

/// A string of some form.
fn matching(d: &mut Decoder, node: &Node<'_>, name: &str, is: fn(&str) -> bool, hint: &str) -> Option<String> {
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
fn inside(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
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
fn absolute(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
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

/// One option of sbatch in one argument: an argument of its own would pass for the script.
fn option(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    if !text.starts_with('-') || text.trim_start_matches('-').is_empty() {
        let hint = "write an option and its value as one item, such as `--nodelist=n1`";
        d.refuse(
            &config::MALFORMED,
            node.span,
            format!("`{text}` in `{name}` is no option"),
            hint,
        );
        return None;
    }
    let stem = match text.split_once('=') {
        Some((stem, _)) => stem,
        // A short option has its value in the same argument: `-Jname`.
        None if !text.starts_with("--") => text.get(..2).unwrap_or(&text),
        None => &text,
    };
    // sbatch takes any beginning of a long option that is not ambiguous.
    let own = OWN_OPTIONS
        .iter()
        .any(|own| *own == stem || (stem.len() > 4 && own.starts_with(stem)));
    if own {
        let hint = "use the cluster's own fields; names, logs and waiting are the launch's";
        d.refuse(
            &config::CONFLICT,
            node.span,
            format!("`{stem}` cannot stand in `{name}`: the launch gives it itself"),
            hint,
        );
        return None;
    }
    Some(text)
}

/// `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours`, `days-hours:minutes`,
/// `days-hours:minutes:seconds`: the forms of sbatch's `--time`.
fn is_slurm_time(text: &str) -> bool {
    let number = |text: &str| (1..=6).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(days), clock),
        None => (None, text),
    };
    let fields: Vec<&str> = clock.split(':').collect();
    days.is_none_or(number) && fields.len() <= 3 && fields.iter().all(|field| number(field))
}

fn is_size(text: &str) -> bool {
    text.strip_suffix(['b', 'k', 'm', 'g'])
        .is_some_and(|digits| !digits.starts_with('0') && digits.parse::<u32>().is_ok_and(|n| n > 0))
}

fn is_network(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}
