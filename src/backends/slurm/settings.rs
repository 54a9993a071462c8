//! The `slurm` backend: batch jobs.

use schemars::JsonSchema;

use crate::config::clusters::decode::{inside, matching};
use crate::config::clusters::{Mount, Needs, Served, Settings};
use crate::config::decode::{Decoder, Fields};
use crate::config::tree::Node;
use crate::config::types::NodeKind;
use crate::findings::config;

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

/// A batch job of Slurm.
#[derive(Debug, Clone, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub struct Slurm {
    /// The partition that jobs are submitted to.
    #[schemars(length(min = 1))]
    pub partition: String,
    /// The account that they are counted on.
    #[schemars(length(min = 1))]
    pub account: Option<String>,
    /// Their time limit, as sbatch takes it: minutes, `HH:MM:SS` or `D-HH:MM:SS`; that of the job unless given.
    pub time: Option<String>,
    /// The script that is submitted, from the repository's root; unless given, `runners/launch_<fleet>.sh` where that is
    /// there, else what serves the row by its engine.
    pub path: Option<String>,
    /// More options of sbatch, one an item, such as `--exclusive` or `--nodelist=n1`.
    #[schemars(default, inner(pattern("^-")))]
    pub extra: Vec<String>,
    /// What puts a server without a launch script into the row's image; without it the server is the node's own.
    pub container: Option<InContainer>,
    /// Folders of the nodes that it sees there.
    #[schemars(default)]
    pub mounts: Vec<Mount>,
    /// How rows without a launch script are served.
    #[schemars(flatten)]
    pub served: Served,
}

/// What puts a server into an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum InContainer {
    /// pyxis, NVIDIA's plugin of srun: `--container-image`.
    Pyxis,
}

impl InContainer {
    /// Every value with its text form.
    pub const CHOICES: [(&'static str, Self); 1] = [("pyxis", Self::Pyxis)];
}

impl Settings for Slurm {
    fn decode(d: &mut Decoder, f: &mut Fields<'_, '_>) -> Option<Self> {
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
        let container = f.optional(d, "container", |d, n, name| d.choice(n, name, &InContainer::CHOICES));
        let mounts = f.optional(d, "mounts", Mount::decode_all);
        let served = Served::decode(d, f);
        Some(Slurm {
            partition: partition?,
            account,
            time,
            path,
            extra: extra.unwrap_or_default(),
            container,
            mounts: mounts.unwrap_or_default(),
            served,
        })
    }

    fn needs(&self) -> Needs<'_> {
        Needs::ScriptOrEngine(self.path.as_deref())
    }

    fn runs_locally(&self, nodes: NodeKind) -> bool {
        nodes == NodeKind::Single
    }

    fn served(&self) -> Option<&Served> {
        Some(&self.served)
    }
}

/// One option of sbatch in one argument: an argument of its own would pass for the script.
fn option(d: &mut Decoder, node: &Node<'_>, name: &str) -> Option<String> {
    let text = d.string(node, name)?;
    if !text.starts_with('-') || text.trim_start_matches('-').is_empty() {
        let hint = "write an option and its value as one item, such as `--nodelist=n1`";
        let message = format!("`{text}` in `{name}` is no option");
        d.refuse(&config::MALFORMED, node.span, message, hint);
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
