//! `sweepctl changelog`: the gate of `perf-changelog.yaml`, and the repairs that pass it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::format::{self, Format, FormatArgs};
use super::inputs::InputArgs;
use super::output;
use super::plan::RefArgs;
use crate::changelog::canonicalize::{OpenLink, filled_in, open_links};
use crate::changelog::gate::{Comparison, Findings};
use crate::changelog::link::{PullRequest, Slug, last_repository};
use crate::changelog::resolve::Stages;
use crate::changelog::text::Text;
use crate::changelog::work_tree;
use crate::config::asked::Asked;
use crate::config::changelog::{Changelog, beyond};
use crate::config::problem::{Problem, Problems};
use crate::config::source::Source;
use crate::findings::changelog as findings;
use crate::matrix::plan::Plan;
use crate::plural;
use crate::repo::{CHANGELOG, Operation, Repo, Revision, display_name};

/// The commands around the changelog.
#[derive(Debug, Subcommand)]
pub(crate) enum ChangelogCommand {
    /// Check the bytes that a change gives the changelog, and that its entries can be planned
    ///
    /// Existing bytes stay as they are, but for the value of a `pr-link` that is set right. New entries stand at the
    /// end, each after exactly one empty line, in UTF-8 without tabs, carriage returns or other control characters,
    /// and the file ends in one line end. The refs are compared as they are given: for a pull request name the merge
    /// base. A change that only sets links right, or only ends the last line, passes without a plan.
    Check(Check),
    /// Fill in the links that were left open until the pull request had a number
    ///
    /// Of the entries in the work tree that the base does not have, a `pr-link` of `XXX`, `TBD` or
    /// `https://github.com/<owner>/<name>/pull/XXX` becomes the pull request's own link. All other bytes stay.
    Canonicalize(Canonicalize),
    /// Settle a merge conflict in the changelog: main's text, then the branch's entries
    ///
    /// Run it while `git merge` or `git rebase` waits with a conflict in perf-changelog.yaml. Main's side is kept byte
    /// for byte, the entries that the branch added follow, and the file is staged. What the work tree's file holds is
    /// replaced; `git checkout -m -- perf-changelog.yaml` brings the conflict back.
    Resolve(Resolve),
}

impl ChangelogCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// Everything wrong with the changelog, and what cannot be read or written.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match self {
            Self::Check(check) => check.run(),
            Self::Canonicalize(canonicalize) => say(canonicalize.json, &canonicalize.fill_in()?),
            Self::Resolve(resolve) => say(resolve.json, &resolve.settle()?),
        }
    }
}

/// Whose repository links lead to.
#[derive(Debug, Args)]
struct RepoArg {
    /// The repository of the pull request [default: GITHUB_REPOSITORY, else that of the changelog's last link]
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<Slug>,
}

impl RepoArg {
    fn pull_request(&self, number: u64, changelogs: &[&[u8]]) -> Result<PullRequest, Problem> {
        let repository = match (&self.repo, std::env::var("GITHUB_REPOSITORY")) {
            (Some(repository), _) => Some(repository.clone()),
            (None, Ok(name)) if !name.is_empty() => Some(name.parse().map_err(|error| {
                Problem::file("", format!("GITHUB_REPOSITORY: {error}")).hint("name the repository with --repo")
            })?),
            _ => changelogs.iter().find_map(|changelog| last_repository(changelog)),
        };
        let repository = repository.ok_or_else(|| {
            Problem::file(
                CHANGELOG,
                "the repository of the pull request is not known: no entry links to one",
            )
            .hint("name it with --repo owner/name")
        })?;
        Ok(PullRequest { repository, number })
    }
}

fn pull_request_number() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..)
}

/// `changelog check`
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    refs: RefArgs,
    /// The pull request that every added entry must link to
    #[arg(long, value_name = "N", value_parser = pull_request_number())]
    pr: Option<u64>,
    #[command(flatten)]
    repo: RepoArg,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    format: FormatArgs,
}

/// What `changelog check` found.
#[derive(Debug, Serialize)]
struct Verdict {
    added: usize,
    corrected_links: usize,
    jobs: Jobs,
}

/// How many rows a plan has in each bucket.
#[derive(Debug, Default, Serialize)]
struct Jobs {
    single_node: usize,
    multi_node: usize,
    evals: usize,
    agentic_evals: usize,
    multinode_evals: usize,
    multinode_agentic_evals: usize,
    total: usize,
}

impl Jobs {
    fn of(plan: &Plan) -> Self {
        let mut jobs = Self {
            single_node: plan.single_node.values().map(Vec::len).sum(),
            multi_node: plan.multi_node.values().map(Vec::len).sum(),
            evals: plan.evals.len(),
            agentic_evals: plan.agentic_evals.len(),
            multinode_evals: plan.multinode_evals.len(),
            multinode_agentic_evals: plan.multinode_agentic_evals.len(),
            total: 0,
        };
        jobs.total = jobs.single_node
            + jobs.multi_node
            + jobs.evals
            + jobs.agentic_evals
            + jobs.multinode_evals
            + jobs.multinode_agentic_evals;
        jobs
    }
}

impl Check {
    fn run(&self) -> anyhow::Result<()> {
        let verdict = self.verdict()?;
        match self.format.chosen() {
            Format::Sarif => format::sarif("changelog-check", &[]),
            Format::Text => output::text(&format!("{verdict}\n")),
            Format::Json => say(self.format.is_asked(), &verdict),
        }
    }

    fn verdict(&self) -> Result<Verdict, Problems> {
        let repo = Repo::open(Path::new("."))?;
        let sides = self.refs.sides(&repo)?;
        let base_bytes = match &sides.base {
            Some(base) => repo.bytes(base, CHANGELOG)?,
            None => None,
        };
        let base_bytes = base_bytes.unwrap_or_default();
        let head_bytes = repo.bytes(&sides.head, CHANGELOG)?.unwrap_or_default();
        let pull_request = match self.pr {
            Some(number) => Some(self.repo.pull_request(number, &[&base_bytes, &head_bytes])?),
            None => None,
        };
        let base_name = sides
            .base
            .as_ref()
            .map_or_else(String::new, |base| display_name(base, CHANGELOG));
        let head_name = display_name(&sides.head, CHANGELOG);
        let comparison = Comparison {
            base: &Text::new(&base_name, &base_bytes),
            head: &Text::new(&head_name, &head_bytes),
            base_commit: &sides.base.as_ref().map_or_else(String::new, Revision::hash),
            pull_request: pull_request.as_ref(),
        };
        let Findings {
            mut problems,
            entries,
            corrected_links,
            ended_last_line,
        } = comparison.judge();
        let added = entries.len();
        if added > 0 && corrected_links > 0 {
            let message = "the change corrects a link of an old entry and adds entries: a plan refuses altered entries";
            let problem = findings::LINKS_AND_ENTRIES.file(&head_name, message);
            problems.push(problem.hint("correct links in a change of its own"));
        }
        let mut jobs = Jobs::default();
        if added > 0 {
            match self
                .refs
                .plan(&repo, &sides, &self.inputs, &Asked::default(), || Ok(entries))
            {
                Ok(plan) => jobs = Jobs::of(&plan),
                Err(more) => problems.extend(more),
            }
        } else if problems.0.is_empty() && corrected_links == 0 && !ended_last_line {
            let problem = findings::NO_ENTRY.file(&head_name, "the head adds no entry to the changelog");
            problems.push(problem.hint("append an entry that says what to measure"));
        }
        problems.into_result()?;
        Ok(Verdict {
            added,
            corrected_links,
            jobs,
        })
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let links = match self.corrected_links {
            0 => String::new(),
            1 => ", 1 existing link set right".to_owned(),
            many => format!(", {many} existing links set right"),
        };
        match self.added {
            0 => write!(f, "{CHANGELOG}: no entry added{links}: nothing to plan"),
            added => write!(
                f,
                "{CHANGELOG}: {} added{links}, {} planned",
                plural::count(added, "entry"),
                plural::count(self.jobs.total, "job")
            ),
        }
    }
}

/// Prints a sentence for people and JSON for machines; a log that is neither gets both.
fn say(asked_json: bool, done: &(impl Serialize + std::fmt::Display)) -> anyhow::Result<()> {
    if !output::wants_json(asked_json) {
        return output::text(&format!("{done}\n"));
    }
    if !asked_json {
        anstream::eprintln!("{done}");
    }
    output::json(done)
}

fn work_tree_of(repo: &Repo) -> Result<PathBuf, Problem> {
    repo.work_tree().ok_or_else(|| {
        Problem::file("", "this repository is bare, and has no work tree").hint("run in a clone with a work tree")
    })
}

/// `changelog canonicalize`
#[derive(Debug, Args)]
pub(crate) struct Canonicalize {
    /// The pull request's number
    #[arg(long, value_name = "N", value_parser = pull_request_number())]
    pr: u64,
    #[command(flatten)]
    repo: RepoArg,
    /// Whose entries stay as they are [default: the merge base of HEAD with origin/main or main, else HEAD]
    #[arg(long, value_name = "REF")]
    base_ref: Option<String>,
    /// Write nothing, and fail where a link is open
    #[arg(long)]
    check: bool,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

/// What `changelog canonicalize` did.
#[derive(Debug, Serialize)]
struct FilledIn {
    pr_link: String,
    replaced: Vec<Replaced>,
}

#[derive(Debug, Serialize)]
struct Replaced {
    line: usize,
    was: String,
}

impl Canonicalize {
    fn fill_in(&self) -> Result<FilledIn, Problems> {
        let repo = Repo::open(Path::new("."))?;
        let root = work_tree_of(&repo)?;
        if repo.conflict(CHANGELOG).is_ok() {
            let problem = Problem::file(CHANGELOG, format!("`{CHANGELOG}` has a merge conflict"));
            let hint = format!(
                "run `sweepctl changelog resolve --pr {}`, which also fills in links",
                self.pr
            );
            return Err(problem.hint(hint).into());
        }
        let source = work_tree::read(&root)?;
        let base = match self.base(&repo)? {
            Some(base) => repo.file(&base, CHANGELOG)?,
            None => None,
        };
        let base = base.unwrap_or_else(|| empty(CHANGELOG));
        let pull_request = self
            .repo
            .pull_request(self.pr, &[base.text.as_bytes(), source.text.as_bytes()])?;
        let (changelog, base) = super::inputs::both(Changelog::parse(&source), Changelog::parse(&base))?;
        let links = open_links(&changelog, &beyond(changelog.items(), base.items()))?;
        if self.check {
            self.report(&source, &links, &pull_request)?;
        }
        if !links.is_empty() {
            work_tree::replace(&root, &filled_in(&source.text, &links, &pull_request))?;
        }
        let replaced = |link: OpenLink| Replaced {
            line: link.span.line,
            was: link.placeholder,
        };
        Ok(FilledIn {
            pr_link: pull_request.to_string(),
            replaced: links.into_iter().map(replaced).collect(),
        })
    }

    fn base(&self, repo: &Repo) -> Result<Option<Revision>, Problem> {
        if let Some(name) = &self.base_ref {
            return repo.revision(name).map(Some);
        }
        // A branch without a commit has no entries to keep.
        let Ok(head) = repo.revision("HEAD") else {
            return Ok(None);
        };
        let main = ["origin/main", "main"].iter().find_map(|name| repo.revision(name).ok());
        match main {
            Some(main) => repo.merge_base(&head, &main).map(Some),
            None => Ok(Some(head)),
        }
    }

    /// Every open link, as a problem.
    fn report(&self, source: &Source, links: &[OpenLink], pull_request: &PullRequest) -> Result<(), Problems> {
        let problem = |link: &OpenLink| {
            findings::OPEN_LINK
                .at(source, link.span, "the link of this entry is still open")
                .hint(format!(
                    "run `sweepctl changelog canonicalize --pr {} --repo {}`, which writes `{pull_request}`",
                    self.pr, pull_request.repository
                ))
        };
        Problems(links.iter().map(problem).collect()).into_result()
    }
}

impl std::fmt::Display for FilledIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.replaced.is_empty() {
            return write!(f, "{CHANGELOG}: no link is open, nothing changed");
        }
        for (index, Replaced { line, was }) in self.replaced.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{CHANGELOG}:{line}: `{was}` is now `{}`", self.pr_link)?;
        }
        Ok(())
    }
}

fn empty(name: &str) -> Arc<Source> {
    Arc::new(Source::new(name.to_owned(), String::new()))
}

/// `changelog resolve`
#[derive(Debug, Args)]
pub(crate) struct Resolve {
    /// The pull request's number, to fill in the links of its entries that were left open
    #[arg(long, value_name = "N", value_parser = pull_request_number())]
    pr: Option<u64>,
    #[command(flatten)]
    repo: RepoArg,
    /// Which side of the conflict is main's [default: `theirs` in a merge, `ours` in a rebase and in a merge on main]
    ///
    /// `git merge main` on a branch has main as theirs; `git rebase main` replays the branch onto main, which is ours.
    #[arg(long, value_name = "SIDE")]
    main_side: Option<MainSide>,
    /// Print JSON, also on a terminal
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum MainSide {
    /// Stage 2: what HEAD has
    Ours,
    /// Stage 3: what is merged or replayed
    Theirs,
}

/// What `changelog resolve` did.
#[derive(Debug, Serialize)]
struct Resolved {
    main_side: MainSide,
    appended: usize,
    already_on_main: usize,
    links_filled_in: usize,
    next: &'static str,
}

impl Resolve {
    fn settle(&self) -> Result<Resolved, Problems> {
        let repo = Repo::open(Path::new("."))?;
        let root = work_tree_of(&repo)?;
        let conflict = repo.conflict(CHANGELOG)?;
        let operation = repo.operation();
        let main_side = self.main_side(&repo, operation)?;
        let ((main_stage, main), (other_stage, other)) = match main_side {
            MainSide::Ours => ((2, conflict.ours), (3, conflict.theirs)),
            MainSide::Theirs => ((3, conflict.theirs), (2, conflict.ours)),
        };
        let stages = crate::repo::all([
            stage(1, Some(conflict.ancestor.unwrap_or_default())),
            stage(main_stage, main),
            stage(other_stage, other),
        ])?;
        let [ancestor, main, other] = <[Arc<Source>; 3]>::try_from(stages).expect("three stages were read");
        let pull_request = match self.pr {
            Some(number) => {
                let texts = [main.text.as_bytes(), other.text.as_bytes()];
                Some(self.repo.pull_request(number, &texts)?)
            }
            None => None,
        };
        let stages = Stages { ancestor, main, other };
        let resolution = stages.resolve(pull_request.as_ref())?;
        work_tree::replace(&root, &resolution.text)?;
        repo.stage(CHANGELOG, resolution.text.as_bytes())?;
        Ok(Resolved {
            main_side,
            appended: resolution.appended,
            already_on_main: resolution.known,
            links_filled_in: resolution.filled_in,
            next: match operation {
                Operation::Merge => "git commit",
                Operation::Rebase => "git rebase --continue",
                Operation::Other => "git status",
            },
        })
    }

    fn main_side(&self, repo: &Repo, operation: Operation) -> Result<MainSide, Problem> {
        match (self.main_side, operation) {
            (Some(side), _) => Ok(side),
            (None, Operation::Rebase) => Ok(MainSide::Ours),
            (None, Operation::Merge) if repo.branch().as_deref() == Some("main") => Ok(MainSide::Ours),
            (None, Operation::Merge) => Ok(MainSide::Theirs),
            (None, Operation::Other) => Err(Problem::file(
                CHANGELOG,
                "neither a merge nor a rebase is in progress, so that main's side is not known",
            )
            .hint("say it: `--main-side ours` where HEAD has main's text, else `--main-side theirs`")),
        }
    }
}

fn stage(number: u8, bytes: Option<Vec<u8>>) -> Result<Arc<Source>, Problem> {
    let name = format!(":{number}:{CHANGELOG}");
    let bytes = bytes.ok_or_else(|| {
        Problem::file(CHANGELOG, format!("one side of the conflict removed `{CHANGELOG}`")).hint(format!(
            "keep it: `git checkout {} -- {CHANGELOG}`, then `git add {CHANGELOG}`",
            if number == 2 { "--theirs" } else { "--ours" }
        ))
    })?;
    Source::from_bytes(&name, bytes).map(Arc::new)
}

impl std::fmt::Display for Resolved {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = match self.main_side {
            MainSide::Ours => "ours",
            MainSide::Theirs => "theirs",
        };
        write!(
            f,
            "{CHANGELOG}: kept main's side ({side}), appended {}",
            plural::count(self.appended, "entry")
        )?;
        if self.already_on_main > 0 {
            write!(f, ", left out {} that main has as well", self.already_on_main)?;
        }
        if self.links_filled_in > 0 {
            write!(f, ", filled in {}", plural::count(self.links_filled_in, "open link"))?;
        }
        write!(f, "; staged: go on with `{}`", self.next)
    }
}
