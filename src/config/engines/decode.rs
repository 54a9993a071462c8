//! From the engines file to checked engines.

use indexmap::IndexMap;

use super::{Conditional, Conditions, Engine, Engines, HEALTH, Item, Override};
use crate::config::clusters::command::{Command, Template, program};
use crate::config::decode::{Decoder, Fields};
use crate::config::environment;
use crate::config::tree::{Node, Value};
use crate::findings::config;

pub(super) fn engines(d: &mut Decoder, node: &Node<'_>) -> Option<Engines> {
    let mut fields = d.fields(node, "the engines file")?;
    let engines = fields.required(d, "engines", |d, node, name| {
        let mut engines = IndexMap::new();
        for (key, value) in d.entries(node, name) {
            if let Some(engine) = engine(d, value, key.text()) {
                engines.insert(key.text().to_owned(), engine);
            }
        }
        Some(engines)
    });
    fields.finish(d);
    Some(Engines { engines: engines? })
}

fn engine(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Engine> {
    let mut f = d.fields(node, &format!("the engine `{name}`"))?;
    let server = f.required(d, "server", server);
    let health = f.optional(d, "health", path);
    let context = f.optional(d, "context", |d, n, name| {
        d.list(n, name, 1, |d, item| Template::decode(d, item, name))
    });
    let throughput = f.optional(d, "throughput", Command::decode);
    let replay = f.optional(d, "replay", Command::decode);
    let served_model_name = f.optional(d, "served-model-name", Template::decode);
    let env = f.optional(d, "env", environment::decode);
    let files = f.optional(d, "files", files);
    let overrides = f.optional(d, "overrides", |d, n, name| d.list(n, name, 1, overriding));
    f.finish(d);
    Some(Engine {
        server: server?,
        health: health.unwrap_or_else(|| HEALTH.to_owned()),
        context: context.unwrap_or_default(),
        throughput,
        replay,
        served_model_name,
        env: env.unwrap_or_default(),
        files: files.unwrap_or_default(),
        overrides: overrides.unwrap_or_default(),
    })
}

fn overriding(d: &mut Decoder, node: &Node<'_>) -> Option<Override> {
    let mut f: Fields<'_, '_> = d.fields(node, "an override")?;
    let of = f.required(d, "for", Conditions::decode);
    let add = f.optional(d, "add", items);
    let server = f.optional(d, "server", server);
    let env = f.optional(d, "env", environment::decode);
    let files = f.optional(d, "files", files);
    let served_model_name = f.optional(d, "served-model-name", Template::decode);
    f.finish(d);
    Some(Override {
        r#for: of?,
        add: add.unwrap_or_default(),
        server,
        env: env.unwrap_or_default(),
        files: files.unwrap_or_default(),
        served_model_name,
    })
}

/// The arguments of a server: the program does not depend on the row.
fn server(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Vec<Item>> {
    let items = items(d, node, name)?;
    let first = items.first()?;
    let fixed = matches!(first, Item::Always(text) if program(std::slice::from_ref(text)).is_some());
    if !fixed {
        let message = format!("the program of `{name}` depends on the job");
        d.refuse(
            &config::MALFORMED,
            node.span,
            message,
            "write the first item without placeholders and conditions",
        );
        return None;
    }
    Some(items)
}

fn items(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Vec<Item>> {
    d.list(node, name, 1, |d, item| match &item.value {
        Value::Map(_) => conditional(d, item, name).map(Item::When),
        _ => Template::decode(d, item, name).map(Item::Always),
    })
}

fn conditional(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<Conditional> {
    let mut f = d.fields(node, &format!("an item of `{name}`"))?;
    let when = f.required(d, "when", Conditions::decode);
    let args = f.required(d, "args", |d, n, name| {
        d.list(n, name, 1, |d, item| Template::decode(d, item, name))
    });
    f.finish(d);
    Some(Conditional {
        when: when?,
        args: args?,
    })
}

fn files(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<IndexMap<String, Vec<Item>>> {
    let mut files = IndexMap::new();
    for (key, value) in d.entries(node, name) {
        let file = key.text();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if file.starts_with('.') || file.is_empty() || !file.chars().all(plain) {
            let message = format!("`{file}` cannot be a file of `{name}`");
            d.refuse(
                &config::MALFORMED,
                key.span,
                message,
                "write a plain name such as `options.yaml`",
            );
            continue;
        }
        if let Some(lines) = items(d, value, file) {
            files.insert(file.to_owned(), lines);
        }
    }
    Some(files)
}

fn path(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if !text.starts_with('/') || !text.chars().all(plain) {
        d.refuse(
            &config::MALFORMED,
            node.span,
            format!("`{name}` is no path of a server"),
            "write it as `/health`",
        );
        return None;
    }
    Some(text)
}
