//! Workflow and action files as located trees, with the few questions that checks ask.

use std::sync::Arc;

use indexmap::IndexSet;

use crate::config::problem::{Problem, Problems, Span};
use crate::config::source::Source;
use crate::config::tree::{self, Node, Value};
use crate::config::workflows::permissions::{Access, Permissions};
use crate::findings::Finding;

/// What a checked file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A file of `.github/workflows`.
    Workflow,
    /// The `action.yml` of a composite action.
    Action,
}

/// A file and its tree.
#[derive(Debug)]
pub struct File<'s> {
    /// The text.
    pub source: &'s Source,
    /// What it is.
    pub kind: FileKind,
    root: Node<'s>,
}

impl<'s> File<'s> {
    /// Parses a file.
    ///
    /// # Errors
    /// A text that is no YAML.
    pub fn parse(source: &'s Arc<Source>, kind: FileKind) -> Result<Self, Problems> {
        Ok(Self {
            source,
            kind,
            root: tree::parse(source)?,
        })
    }

    /// The name of the file in its folder.
    #[must_use]
    pub fn file_name(&self) -> &str {
        self.source.name.rsplit('/').next().unwrap_or_default()
    }

    /// A finding at a place of this file.
    #[must_use]
    pub fn finding(&self, finding: &'static Finding, span: Span, message: impl Into<String>) -> Problem {
        finding.at(self.source, span, message)
    }

    /// A key of the file.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node<'s>> {
        get(&self.root, key)
    }

    /// The place of the first key.
    #[must_use]
    pub fn start(&self) -> Span {
        pairs(&self.root).first().map_or(self.root.span, |(key, _)| key.span)
    }

    /// Its jobs; an action has none.
    pub fn jobs(&self) -> impl Iterator<Item = Job<'_, 's>> {
        let jobs = self.get("jobs").filter(|_| self.kind == FileKind::Workflow);
        jobs.into_iter().flat_map(pairs).map(|(id, node)| Job { id, node })
    }

    /// The jobs that a job waits for, directly or not, nearest first.
    #[must_use]
    pub fn ancestors(&self, id: &str) -> IndexSet<&str> {
        let needs = |id: &str| {
            let job = self.jobs().find(|job| job.id.text() == id);
            job.map(|job| job.needs()).unwrap_or_default()
        };
        let mut all = IndexSet::new();
        let mut open = needs(id);
        while !open.is_empty() {
            let new: Vec<&str> = open.into_iter().filter(|id| all.insert(*id)).collect();
            open = new.into_iter().flat_map(needs).collect();
        }
        all
    }

    /// The steps of all jobs, or of an action.
    pub fn steps(&self) -> impl Iterator<Item = &Node<'s>> {
        let of_action = self.get("runs").filter(|_| self.kind == FileKind::Action);
        let of_jobs = self.jobs().flat_map(|job| job.steps());
        of_action
            .into_iter()
            .flat_map(|runs| items(runs, "steps"))
            .chain(of_jobs)
    }

    /// What a caller declares: `inputs` or `secrets` of `workflow_call`.
    #[must_use]
    pub fn declared(&self, what: &str) -> &[(Node<'s>, Node<'s>)] {
        let call = self.get("on").and_then(|on| get(on, "workflow_call"));
        call.and_then(|call| get(call, what)).map_or(&[], pairs)
    }

    /// Whether other workflows call it.
    #[must_use]
    pub fn is_callable(&self) -> bool {
        self.triggers().any(|trigger| trigger.text() == "workflow_call")
    }

    /// The events that start it.
    pub fn triggers(&self) -> impl Iterator<Item = &Node<'s>> {
        let nodes: Vec<&Node<'s>> = match self.get("on").map(|on| (&on.value, on)) {
            Some((Value::Map(pairs), _)) => pairs.iter().map(|(key, _)| key).collect(),
            Some((Value::Seq(items), _)) => items.iter().collect(),
            Some((Value::Scalar { .. }, on)) => vec![on],
            None => Vec::new(),
        };
        nodes.into_iter()
    }

    /// Every scalar of the file with its text.
    #[must_use]
    pub fn scalars(&self) -> Vec<&Node<'s>> {
        let mut all = Vec::new();
        scalars(&self.root, &mut all);
        all
    }
}

/// One job of a workflow.
#[derive(Debug, Clone, Copy)]
pub struct Job<'f, 's> {
    /// Its id, where it begins.
    pub id: &'f Node<'s>,
    node: &'f Node<'s>,
}

impl<'f, 's> Job<'f, 's> {
    /// A key of the job.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&'f Node<'s>> {
        get(self.node, key)
    }

    /// The place of a key.
    #[must_use]
    pub fn key(&self, key: &str) -> Option<Span> {
        let found = pairs(self.node).iter().find(|(name, _)| name.text() == key);
        found.map(|(name, _)| name.span)
    }

    /// Its steps.
    #[must_use]
    pub fn steps(&self) -> &'f [Node<'s>] {
        items(self.node, "steps")
    }

    /// Every scalar of it with its text.
    #[must_use]
    pub fn scalars(&self) -> Vec<&'f Node<'s>> {
        let mut all = Vec::new();
        scalars(self.node, &mut all);
        all
    }

    /// The file name of the workflow of this repository that it calls.
    #[must_use]
    pub fn callee(&self) -> Option<(&'f str, Span)> {
        let uses = self.get("uses")?;
        let name = uses.text().strip_prefix("./.github/workflows/")?;
        Some((name, uses.span))
    }

    /// The jobs that it waits for.
    #[must_use]
    pub fn needs(&self) -> Vec<&'f str> {
        match self.get("needs").map(|node| (&node.value, node)) {
            Some((Value::Seq(items), _)) => items.iter().map(Node::text).collect(),
            Some((Value::Scalar { .. }, node)) => vec![node.text()],
            _ => Vec::new(),
        }
    }

    /// What its token may do, where it says so.
    #[must_use]
    pub fn permissions(&self) -> Option<Permissions> {
        self.get("permissions").map(permissions)
    }

    /// Its condition; empty where it has none.
    #[must_use]
    pub fn condition(&self) -> &'f str {
        self.get("if").map_or("", |node| node.text())
    }
}

/// `{ scope: access }`, `read-all` or `write-all` as scopes.
#[must_use]
pub fn permissions(node: &Node<'_>) -> Permissions {
    let all = |access| {
        crate::config::workflows::permissions::SCOPES
            .iter()
            .map(|s| ((*s).to_owned(), access))
            .collect()
    };
    match node.text() {
        "read-all" => return all(Access::Read),
        "write-all" => return all(Access::Write),
        _ => {}
    }
    let access = |text: &str| {
        Access::NAMES
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, access)| *access)
    };
    pairs(node)
        .iter()
        .filter_map(|(scope, value)| Some((scope.text().to_owned(), access(value.text())?)))
        .collect()
}

/// Whether a step runs this binary with these words first.
#[must_use]
pub fn calls(step: &Node<'_>, words: &[&str]) -> bool {
    let script = self::words(step);
    script
        .iter()
        .enumerate()
        .any(|(at, word)| *word == "sweepctl" && script[at + 1..].starts_with(words))
}

/// The words of a step's script.
#[must_use]
pub fn words<'n>(step: &'n Node<'_>) -> Vec<&'n str> {
    get(step, "run").map_or("", Node::text).split_whitespace().collect()
}

/// Whether a step uses an action, of whatever version.
#[must_use]
pub fn uses(step: &Node<'_>, action: &str) -> bool {
    let of_step = get(step, "uses").map_or("", Node::text);
    of_step.strip_prefix(action).is_some_and(|rest| rest.starts_with('@'))
}

/// A key of a mapping.
#[must_use]
pub fn get<'n, 's>(node: &'n Node<'s>, key: &str) -> Option<&'n Node<'s>> {
    pairs(node)
        .iter()
        .find(|(name, _)| name.text() == key)
        .map(|(_, value)| value)
}

/// Whether two names of inputs, secrets or jobs are one to GitHub, which does not look at their case.
#[must_use]
pub fn is_same(one: &Node<'_>, other: &Node<'_>) -> bool {
    one.text().eq_ignore_ascii_case(other.text())
}

/// The pairs of a mapping; of anything else none.
#[must_use]
pub fn pairs<'n, 's>(node: &'n Node<'s>) -> &'n [(Node<'s>, Node<'s>)] {
    match &node.value {
        Value::Map(pairs) => pairs,
        _ => &[],
    }
}

/// The items of a list under a key.
#[must_use]
pub fn items<'n, 's>(node: &'n Node<'s>, key: &str) -> &'n [Node<'s>] {
    match get(node, key).map(|node| &node.value) {
        Some(Value::Seq(items)) => items,
        _ => &[],
    }
}

fn scalars<'n, 's>(node: &'n Node<'s>, all: &mut Vec<&'n Node<'s>>) {
    match &node.value {
        Value::Scalar { .. } => all.push(node),
        Value::Seq(items) => items.iter().for_each(|item| scalars(item, all)),
        Value::Map(pairs) => pairs.iter().for_each(|(_, value)| scalars(value, all)),
    }
}
