//! The recipe of a job: the file that its row names, checked against the row, with what the row decides.
//!
//! The form is that of the cluster's srtctl: schema 2 (`schema, name, model, resources, engine, roles, benchmark`) or
//! [schema 1](super::schema1). What a recipe says of the cluster, the engine and the workers stays as it is; a recipe
//! that deploys something else than its row would be measured under the wrong name, and is refused.

use std::path::Path;
use std::sync::Arc;

use super::accuracy;
use super::carry;
use super::schema1;
use super::sides::{Side, sides};
use super::write;
use super::yaml::Yaml;
use crate::backends::slurm;
use crate::config::decode::{Decoder, Fields};
use crate::config::problem::{Problem, Problems};
use crate::config::recipe::{Schema, asked};
use crate::config::source::Source;
use crate::config::tree::Node;
use crate::matrix::row::Row;
use crate::step::environment::Environment;

/// What a recipe is made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    /// The job.
    pub row: &'a Row,
    /// Its variables.
    pub environment: &'a Environment,
    /// The runner's name, under which the job runs.
    pub runner: &'a str,
    /// The checkout.
    pub workspace: &'a Path,
    /// The folder of recipes, from the checkout's root.
    pub folder: Option<&'a str>,
    /// GPUs of one node, where known.
    pub gpus_per_node: Option<u64>,
    /// The form that the cluster's srtctl reads.
    pub schema: Schema,
}

/// The text of the job's recipe. `token` becomes the Slurm job's comment.
///
/// # Errors
/// Every problem of the recipe, and every point where it is not the row's.
pub(super) fn text(request: &Request<'_>, token: &str) -> Result<String, Problems> {
    let row = request.row;
    carry::check(request)?;
    let named = row.srt_recipe();
    let mut recipe = match named.as_deref() {
        Some(name) => read(request, name)?,
        None => write::recipe(row, request.gpus_per_node, request.schema)?,
    };
    let topology = &row.topology;
    // srt-slurm calls the Slurm job by RUNNER_NAME, and by the recipe's name where there is none.
    recipe.set(&["name"], request.runner);
    let path = request.environment.get("MODEL_PATH").unwrap_or(&topology.model);
    recipe.set(&["model", "path"], path);
    recipe.set(&["model", "container"], topology.image.as_str());
    recipe.set(&["model", "precision"], topology.precision.as_str());
    let points = row.conc.points().iter().map(|point| (*point).into());
    recipe.set(&["benchmark", "concurrencies"], Yaml::List(points.collect()));
    carry::carry(&mut recipe, request)?;
    recipe.set(&["sbatch_directives", "comment"], token);
    let text = recipe.to_text();
    text.map_err(|error| Problem::file(named.as_deref().unwrap_or_default(), error.to_string()).into())
}

fn read(request: &Request<'_>, name: &str) -> Result<Yaml, Problems> {
    let relative = Path::new(request.folder.unwrap_or_default()).join(name);
    let yaml = relative
        .extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml");
    if Path::new(name).is_absolute() || !yaml {
        let problem = Problem::file(
            name,
            format!("`{name}` is no recipe: it is not a YAML file of the repository"),
        );
        return Err(problem
            .hint("write its path from the repository's root, such as `recipes/r1/1k1k.yaml`")
            .into());
    }
    let path = slurm::plain_file(request.workspace, &relative)?;
    let source = Arc::new(Source::read_as(&path, &relative.display().to_string())?);
    let asked = request.row.benchmark().map(asked::suite).transpose()?;
    let asked = asked.map(|suite| asked::asked(&source, suite)).transpose()?;
    let mut recipe = crate::config::load(&source, |d, node| {
        check(d, node, request);
        Some(Yaml::from(node))
    })?;
    if let Some(asked) = asked {
        accuracy::limit(&mut recipe, asked, request.environment)?;
    }
    Ok(recipe)
}

/// Reports what is no recipe of this row.
fn check(d: &mut Decoder, node: &Node<'_>, request: &Request<'_>) {
    let (row, gpus_per_node) = (request.row, request.gpus_per_node);
    let Some(mut f) = d.fields(node, "the recipe") else {
        return;
    };
    for name in ["base", "sweep"] {
        if f.has(name) {
            let message = format!("`{name}` makes several jobs of one recipe, and a row is one job");
            d.report(
                f.at(name),
                message,
                "write one recipe for each row, with the workers that it deploys",
            );
            return;
        }
    }
    if request.schema == Schema::One {
        schema1::forbid(d, &mut f);
    } else {
        let schema = f.required(d, "schema", |d, n, name| d.integer(n, name, 1));
        if schema.is_some_and(|schema| schema != 2) {
            let hint = "`srtctl migrate -f <recipe> --in-place` rewrites an older recipe; a cluster whose srtctl \
                        reads schema 1 says `schema: 1`";
            d.report(f.at("schema"), "the cluster's srtctl reads recipes of schema 2", hint);
        }
    }
    let resources = f.required(d, "resources", |d, n, _| d.fields(n, "`resources`"));
    let mut gpus = None;
    if let Some(mut resources) = resources {
        let found = resources.required(d, "gpus_per_node", size);
        if let (Some(found), Some(facts)) = (found, gpus_per_node)
            && found != facts
        {
            let message = format!(
                "the runner's nodes have {} each, the recipe's have {found}",
                crate::plural::count(facts, "GPU")
            );
            let hint = "correct the recipe, or `hardware` of configs/runners.yaml";
            d.report(resources.at("gpus_per_node"), message, hint);
        }
        gpus = found;
        if request.schema == Schema::One {
            schema1::workers(d, &mut resources, row, gpus);
        }
    }
    if request.schema == Schema::Two {
        f.required(d, "roles", |d, n, _| {
            let mut f = d.fields(n, "`roles`")?;
            roles(d, &mut f, row, gpus);
            Some(())
        });
    }
    f.required(d, "benchmark", |d, n, _| {
        let mut f = d.fields(n, "`benchmark`")?;
        lengths(d, &mut f, row);
        f.forbidden(d, "sweep", "it makes several jobs of one recipe, and a row is one job");
        Some(())
    });
}

/// A number of nodes, workers or GPUs.
pub(super) fn size(d: &mut Decoder, node: &Node<'_>, name: &'static str) -> Option<u64> {
    d.integer(node, name, 0)
}

/// The workers are the row's, in number and in GPUs.
fn roles(d: &mut Decoder, f: &mut Fields<'_, '_>, row: &Row, gpus_per_node: Option<u64>) {
    let sides = sides(&row.topology);
    for name in ["prefill", "decode", "agg"] {
        let Some(side) = sides.iter().find(|side| side.name == name) else {
            let names: Vec<&str> = sides.iter().map(|side| side.name).collect();
            f.forbidden(
                d,
                name,
                &format!("the row deploys {} workers alone", names.join(" and ")),
            );
            continue;
        };
        f.required(d, name, |d, node, name| {
            let mut f = d.fields(node, &format!("the role `{name}`"))?;
            workers(d, &mut f, side, gpus_per_node);
            Some(())
        });
    }
}

fn workers(d: &mut Decoder, f: &mut Fields<'_, '_>, side: &Side, gpus_per_node: Option<u64>) {
    let Side { name, role } = side;
    let workers = f.required(d, "workers", size);
    if workers.is_some_and(|workers| workers != role.num_worker) {
        let message = format!(
            "the row deploys {} {name} workers, the recipe another number",
            role.num_worker
        );
        d.report(f.at("workers"), message, "correct the recipe or the config");
        return;
    }
    // `colocate` is no number: such a role gives its GPUs itself.
    let nodes = f.get("nodes").and_then(|node| node.text().parse::<u64>().ok());
    let shared = || Some(nodes? * gpus_per_node? / workers.filter(|workers| *workers > 0)?);
    let (field, gpus) = match f.optional(d, "gpus", size) {
        Some(gpus) => ("gpus", Some(gpus)),
        None => ("nodes", shared()),
    };
    let wanted = role.gpus_per_worker();
    if let Some(gpus) = gpus.filter(|gpus| *gpus != wanted) {
        let message = format!("a {name} worker of the row has {wanted} GPUs, the recipe's has {gpus}");
        d.report(f.at(field), message, "correct the recipe or the config");
    }
}

/// The requests are as long as the row says.
fn lengths(d: &mut Decoder, f: &mut Fields<'_, '_>, row: &Row) {
    let Some(seq) = row.seq() else { return };
    for (name, wanted) in [("isl", seq.isl), ("osl", seq.osl)] {
        let found = f.optional(d, name, size);
        if found.is_some_and(|found| found != wanted) {
            let message = format!("the row's `{name}` is {wanted}");
            d.report(
                f.at(name),
                message,
                "name the recipe of these lengths in the config's `srt-recipe`",
            );
        }
    }
}
