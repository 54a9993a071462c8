//! `sweepctl plan`: the jobs that a change of the changelog asks for.

use std::path::Path;
use std::sync::Arc;

use clap::{ArgGroup, Args, FromArgMatches, ValueEnum};

use super::inputs::{Configs, InputArgs, both};
use super::rows::{self, EmitArgs};
use super::runnable;
use super::{annotate, output};
use crate::config::asked::{Asked, Refs};
use crate::config::changelog::{Changelog, Entry};
use crate::config::problem::{Place, Problem, Problems};
use crate::config::source::Source;
use crate::matrix::append_only::Base;
use crate::matrix::bucket;
use crate::matrix::plan::{self, Inputs, Plan};
use crate::repo::{self, CHANGELOG, Repo, Revision};

/// `sweepctl plan`
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    refs: RefArgs,
    #[command(flatten)]
    pub inputs: InputArgs,
    #[command(flatten)]
    pub asked: Asked,
    /// Print what it costs: jobs and GPUs by runner label and bucket
    #[arg(long, conflicts_with = "emit")]
    summary: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    emit: EmitArgs,
}

/// Which change is planned.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).args(["base_ref", "latest"]))]
pub(crate) struct RefArgs {
    #[command(flatten)]
    refs: Refs,
    /// The newest commit that added entries, instead of two refs
    #[arg(long)]
    latest: bool,
    /// Where configs are read from
    #[arg(long, value_name = "WHERE", default_value = "worktree")]
    configs_from: ConfigsFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ConfigsFrom {
    /// The files as they are now
    Worktree,
    /// The files at the head ref, through git
    Head,
}

/// The two sides of a comparison.
pub(super) struct Sides {
    /// `None` before a first commit.
    pub(super) base: Option<Revision>,
    pub(super) head: Revision,
    base_ref: String,
    head_ref: String,
}

impl PlanArgs {
    /// What `sweepctl plan` reads from these arguments.
    ///
    /// # Errors
    /// Wrong usage.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        let args = ["plan".to_owned()].into_iter().chain(args);
        let matches = Self::augment_args(clap::Command::new("plan")).try_get_matches_from(args)?;
        Self::from_arg_matches(&matches)
    }

    /// Plans and prints.
    ///
    /// # Errors
    /// Everything wrong with the refs, the changelog or the configs.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.emit.check(&self.asked)?;
        let plan = self.plan()?;
        let json = output::wants_json(self.json);
        if json && !self.emit.emits() && !self.summary {
            return output::json(&plan);
        }
        let buckets = bucket::of_plan(&plan, &self.asked)?;
        if self.emit.emits() {
            let changelog = Some(&plan.changelog_metadata);
            return self.emit.write(&buckets, changelog, &self.asked, self.json);
        }
        if self.summary {
            let costs = rows::costs(&buckets);
            return match json {
                true => output::json(&costs),
                false => output::text(&rows::cost_table(&costs)),
            };
        }
        output::text(&rows::buckets(&buckets))
    }

    /// The plan.
    ///
    /// # Errors
    /// Everything wrong with the refs, the changelog or the configs.
    pub(crate) fn plan(&self) -> Result<Plan, Problems> {
        let repo = Repo::open(Path::new("."))?;
        let sides = self.refs.sides(&repo)?;
        if self.refs.latest {
            annotate::notice(&uncommitted(&repo)?);
        }
        let head_changelog = repo.required_file(&sides.head, CHANGELOG)?;
        let base_changelog = match &sides.base {
            Some(base) => repo.file(base, CHANGELOG)?,
            None => None,
        };
        let entries = || added_entries(base_changelog.as_deref(), &head_changelog);
        self.refs.plan(&repo, &sides, &self.inputs, &self.asked, entries)
    }
}

/// Entries of the work tree that are not committed: a plan is of commits, and does not hold them.
fn uncommitted(repo: &Repo) -> Result<Vec<Problem>, Problems> {
    let path = repo.work_tree().map(|folder| folder.join(CHANGELOG));
    let Some(here) = path.filter(|path| path.is_file()) else {
        return Ok(Vec::new());
    };
    let committed = repo.file(&repo.revision("HEAD")?, CHANGELOG)?;
    // A file that cannot be read now is no part of the plan; `check` says what is wrong with it.
    let Ok(here) = Source::read(&here) else {
        return Ok(Vec::new());
    };
    if !adds_entries(committed.as_ref(), &Arc::new(here)) {
        return Ok(Vec::new());
    }
    let message = format!("`{CHANGELOG}` has entries that are not committed: they are not planned");
    Ok(vec![Problem::file(CHANGELOG, message).hint("commit them to plan them")])
}

impl RefArgs {
    /// Plans entries with the configs of the comparison.
    ///
    /// # Errors
    /// Everything wrong with the entries or the configs.
    pub(super) fn plan(
        &self,
        repo: &Repo,
        sides: &Sides,
        input_args: &InputArgs,
        asked: &Asked,
        entries: impl FnOnce() -> Result<Vec<(Entry, Place)>, Problems>,
    ) -> Result<Plan, Problems> {
        let from_head = self.configs_from == ConfigsFrom::Head || repo.work_tree().is_none();
        let files = match from_head {
            true => input_args.files_at(repo, &sides.head)?,
            false => input_args.files()?,
        };
        let (entries, configs) = std::thread::scope(|scope| {
            let configs = scope.spawn(|| files.load());
            let entries = entries();
            (entries, configs.join().expect("a decoder does not panic"))
        });
        let (entries, configs) = both(entries, configs)?;
        let policy = input_args.policy.chosen(&configs.policies)?;
        let base = || match &sides.base {
            Some(base) => {
                let Configs { master, runners, .. } = input_args.files_at(repo, base)?.load()?;
                Ok(Base { master, runners })
            }
            None => Err(Problem::file("", "an append-only entry needs a base commit").into()),
        };
        let inputs = Inputs {
            entries: &entries,
            master: &configs.master,
            runners: &configs.runners,
            policy,
            base: &base,
        };
        let mut plan = plan::plan(&inputs, asked)?;
        let read = |name: &str| match from_head {
            true => repo.file(&sides.head, name),
            false => runnable::work_tree(name),
        };
        runnable::check(&plan.rows(), &configs.runners, &read)?;
        plan.changelog_metadata.base_ref.clone_from(&sides.base_ref);
        plan.changelog_metadata.head_ref.clone_from(&sides.head_ref);
        Ok(plan)
    }

    /// The two sides.
    ///
    /// # Errors
    /// Refs that are not known here, and a history without an added entry.
    pub(super) fn sides(&self, repo: &Repo) -> Result<Sides, Problems> {
        if let Some((base_ref, head_ref)) = self.refs.pair() {
            let base = (!base_ref.is_empty()).then_some(base_ref);
            let asked = [head_ref].into_iter().chain(base).map(|name| repo.revision(name));
            let mut found = repo::all(asked)?.into_iter();
            let head = found.next().expect("the head was asked for");
            return Ok(Sides {
                base: found.next(),
                head,
                base_ref: base_ref.to_owned(),
                head_ref: head_ref.to_owned(),
            });
        }
        let tip = repo.revision("HEAD")?;
        for change in repo.changelog_changes(&tip) {
            let change = change?;
            let head = repo.required_file(&change.head, CHANGELOG)?;
            let base = match &change.base {
                Some(base) => repo.file(base, CHANGELOG)?,
                None => None,
            };
            if adds_entries(base.as_ref(), &head) {
                return Ok(Sides {
                    base_ref: change.base.as_ref().map_or_else(String::new, Revision::hash),
                    head_ref: change.head.hash(),
                    base: change.base,
                    head: change.head,
                });
            }
        }
        let problem = Problem::file(
            CHANGELOG,
            format!("no commit of this branch added an entry to `{CHANGELOG}`"),
        );
        Err(problem
            .hint("append an entry and commit it, or name --base-ref and --head-ref")
            .into())
    }
}

/// Whether a head's changelog has an entry that the base's has not; one that cannot be read adds none.
fn adds_entries(base: Option<&Arc<Source>>, head: &Arc<Source>) -> bool {
    let Ok(head) = Changelog::parse(head) else { return false };
    let Some(base) = base else { return !head.is_empty() };
    let Ok(base) = Changelog::parse(base) else { return false };
    head.added(&base).is_ok_and(|added| !added.is_empty())
}

/// The entries that the head has beyond the base.
///
/// # Errors
/// Texts that are no changelogs, entries that are missing or altered, no addition, and added entries that break the
/// schema.
fn added_entries(base: Option<&Source>, head: &Arc<Source>) -> Result<Vec<(Entry, Place)>, Problems> {
    let changelog = Changelog::parse(head)?;
    let base_text = base.map_or("", |base| base.text.as_str());
    let base_source;
    let base_changelog;
    let added = match changelog.added_to_prefix(base_text) {
        Some(added) => added,
        None => {
            base_source = Arc::new(
                base.cloned()
                    .unwrap_or_else(|| Source::new(String::new(), String::new())),
            );
            base_changelog = Changelog::parse(&base_source)?;
            changelog.added(&base_changelog)?
        }
    };
    if added.is_empty() {
        let problem = Problem::file(&head.name, "the head adds no entry to the changelog");
        return Err(problem.hint("append an entry that says what to measure").into());
    }
    let entries = changelog.decode(&added)?;
    Ok(entries
        .into_iter()
        .map(|(entry, span)| (entry, Place::new(head, span)))
        .collect())
}
