//! The fields of a row, once.
//!
//! Everything that names a row's fields reads this table: the row's JSON and what its shape must have, the variables
//! of a job, `meta_env.json`, the names of results, the fields that policies group by, published rows, fingerprints,
//! and what two measurements must share to be compared. The values are [`crate::matrix::row::Row`]'s.
//!
//! A sizing field is a line of [`Size`] (`sizes.rs`); a field that is only passed on, from a config to the programs that read the
//! row, is a line of [`Passed`]. Neither has code of its own.

mod sizes;

pub use sizes::{Parallelism, Role, Size, SizeNames};

macro_rules! passed {
    ($($(#[doc = $doc:literal])+ $field:ident = $variant:ident, $name:literal, $variable:expr;)+) => {
        /// Texts of a search-space entry that a row only passes on.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
        pub struct Passed { $($(#[doc = $doc])+ pub $field: Option<String>,)+ }

        /// One of them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum PassedField { $($(#[doc = $doc])+ $variant),+ }

        impl PassedField {
            /// Every one, in the order of rows.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name in entries and rows.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The job's variable, where programs read one.
            #[must_use]
            pub fn variable(self) -> Option<&'static str> {
                match self { $(Self::$variant => $variable),+ }
            }
        }

        impl Passed {
            /// A text.
            #[must_use]
            pub fn get(&self, field: PassedField) -> Option<&str> {
                match field { $(PassedField::$variant => self.$field.as_deref()),+ }
            }

            /// Sets a text.
            pub fn set(&mut self, field: PassedField, text: Option<String>) {
                match field { $(PassedField::$variant => self.$field = text),+ }
            }
        }
    };
}

passed! {
    /// An srt-slurm recipe.
    srt_recipe = SrtRecipe, "srt-recipe", None;
    /// The recipe of eval-only jobs.
    eval_srt_recipe = EvalSrtRecipe, "eval-srt-recipe", None;
}

/// A side of a multi-node deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The side that reads prompts.
    Prefill,
    /// The side that writes answers.
    Decode,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Prefill, Self::Decode];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        }
    }

    /// What the names of its variables start with.
    #[must_use]
    pub fn variables(self) -> &'static str {
        match self {
            Self::Prefill => "PREFILL_",
            Self::Decode => "DECODE_",
        }
    }
}

/// A part of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SideField {
    /// How many workers.
    NumWorker,
    /// A size of each.
    Size(Size),
    /// Their GPUs.
    Hardware,
}

/// Whether rows of a shape have a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Has {
    /// Each.
    Must,
    /// Some.
    May,
    /// None.
    Not,
}

/// The four shapes of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Whether it spans nodes.
    pub multinode: bool,
    /// Whether it replays traces.
    pub agentic: bool,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nodes = if self.multinode { "multi-node" } else { "single-node" };
        let what = if self.agentic { "agentic" } else { "fixed-sequence" };
        write!(f, "a {nodes} {what} row")
    }
}

/// Which shapes have a field: single-node and multi-node fixed, single-node and multi-node agentic.
type Shapes = [Has; 4];

const ALL: Shapes = [Has::Must; 4];
const SOME: Shapes = [Has::May; 4];
const FIXED: Shapes = [Has::Must, Has::Must, Has::Not, Has::Not];
const FIXED_MAY: Shapes = [Has::May, Has::May, Has::Not, Has::Not];
const AGENTIC: Shapes = [Has::Not, Has::Not, Has::Must, Has::Must];
const AGENTIC_MAY: Shapes = [Has::Not, Has::Not, Has::May, Has::May];
const MULTI: Shapes = [Has::Not, Has::Must, Has::Not, Has::Must];
const MULTI_MAY: Shapes = [Has::Not, Has::May, Has::Not, Has::May];
/// Agentic rows on one node say nothing of disaggregation.
const DISAGG: Shapes = [Has::May, Has::May, Has::Not, Has::May];

/// What the table says of a field.
#[derive(Debug)]
pub struct About {
    /// Its name in a row.
    pub name: &'static str,
    shapes: Shapes,
    /// Whether policies may group and match rows by it.
    pub group_by: bool,
    /// Whether the recipe's fingerprint counts it.
    pub in_fingerprint: bool,
    /// The job's variable that holds it as it is.
    pub variable: Option<&'static str>,
    /// Its name in `meta_env.json`.
    pub meta: Option<&'static str>,
    /// Its name in published rows of throughput, and where it stands in them.
    pub published: Option<(u8, &'static str)>,
    /// The same of published rows of evals, which are made from `meta_env.json`.
    pub in_evals: Option<(u8, &'static str)>,
    /// Whether measurements that differ in it are of two points, and where it stands in a point.
    pub compared: Option<u8>,
}

macro_rules! fields {
    ($($field:ident = $name:literal, $shapes:ident $(, $key:ident $(= $($value:literal)+)?)*;)+) => {
        /// A field of a row by itself, or a part of one that policies can reach.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "each is the row's field of that name")]
        pub enum Field {
            $($field,)+
            /// A size on one node.
            Size(Size),
            /// A part of a side.
            Of(Side, SideField),
            /// What is only passed on.
            Passed(PassedField),
        }

        impl Field {
            /// Every field that has a line of its own.
            const LINES: &'static [Self] = &[$(Self::$field),+];

            fn line(self) -> Option<&'static About> {
                match self {
                    $(Self::$field => {
                        const ABOUT: About = {
                            #[allow(unused_mut, reason = "not every field has more to say")]
                            let mut about = About {
                                name: $name, shapes: $shapes, group_by: false, in_fingerprint: true,
                                variable: None, meta: None, published: None, in_evals: None, compared: None,
                            };
                            $(fields!(@ about $key $($($value)+)?);)*
                            about
                        };
                        Some(&ABOUT)
                    })+
                    _ => None,
                }
            }
        }
    };
    (@ $about:ident group) => { $about.group_by = true };
    (@ $about:ident point) => { $about.in_fingerprint = false };
    (@ $about:ident var $name:literal) => { $about.variable = Some($name) };
    (@ $about:ident meta $name:literal) => { $about.meta = Some($name) };
    (@ $about:ident publish $at:literal $name:literal) => { $about.published = Some(($at, $name)) };
    (@ $about:ident eval $at:literal $name:literal) => { $about.in_evals = Some(($at, $name)) };
    (@ $about:ident compare $at:literal) => { $about.compared = Some($at) };
}

// In the order of a row's JSON. `group`: policies may group by it; `point`: the fingerprint leaves it out; `var`: the
// variable with its value; `meta`: its name in `meta_env.json`; `publish` and `eval`: its place and name in published
// rows of throughput and of evals; `compare`: its place in what two measurements must share.
fields! {
    Image = "image", ALL, group, var = "IMAGE", publish = 1 "image";
    Model = "model", ALL, group, var = "MODEL", meta = "model", eval = 1 "model";
    ModelPrefix = "model-prefix", ALL, group, var = "MODEL_PREFIX", meta = "infmax_model_prefix",
        publish = 2 "infmax_model_prefix", eval = 0 "model_prefix", compare = 0;
    Precision = "precision", ALL, group, var = "PRECISION", meta = "precision", publish = 4 "precision",
        eval = 4 "precision", compare = 3;
    Framework = "framework", ALL, group, var = "FRAMEWORK", meta = "framework", publish = 3 "framework",
        eval = 3 "framework", compare = 2;
    Runner = "runner", ALL, group, var = "RUNNER_TYPE", meta = "hw", publish = 0 "hw", eval = 2 "hw", compare = 1;
    Isl = "isl", FIXED, group, var = "ISL", meta = "isl", publish = 8 "isl", eval = 6 "isl", compare = 6;
    Osl = "osl", FIXED, group, var = "OSL", meta = "osl", publish = 9 "osl", eval = 7 "osl", compare = 7;
    SpecDecoding = "spec-decoding", ALL, group, var = "SPEC_DECODING", meta = "spec_decoding", publish = 5 "spec_decoding",
        eval = 5 "spec_decoding", compare = 4;
    Prefill = "prefill", MULTI;
    Decode = "decode", MULTI;
    Conc = "conc", ALL, point;
    MaxModelLen = "max-model-len", FIXED_MAY, var = "MAX_MODEL_LEN";
    KvOffloading = "kv-offloading", AGENTIC, group, publish = 11 "kv_offloading", compare = 9;
    KvOffloadBackend = "kv-offload-backend", AGENTIC_MAY, publish = 12 "kv_offload_backend", compare = 10;
    TotalCpuDramGb = "total-cpu-dram-gb", AGENTIC, publish = 13 "allocated_cpu_dram_gb";
    Duration = "duration", AGENTIC, var = "DURATION";
    ExpName = "exp-name", ALL, point, var = "EXP_NAME";
    Disagg = "disagg", DISAGG, group, publish = 6 "disagg", compare = 5;
    ScenarioType = "scenario-type", AGENTIC, group, publish = 10 "scenario_type", compare = 8;
    Router = "router", SOME, var = "ROUTER_METADATA", publish = 14 "router";
    KvP2pTransfer = "kv-p2p-transfer", MULTI_MAY, group, var = "KV_P2P_TRANSFER", publish = 15 "kv_p2p_transfer";
    RunEval = "run-eval", SOME;
    EvalOnly = "eval-only", SOME;
    EvalConc = "eval-conc", MULTI_MAY;
    EvalAllConcs = "eval-all-concs", MULTI_MAY;
    EvalFramework = "eval-framework", SOME, var = "EVAL_FRAMEWORK", meta = "eval_framework";
    EvalSuite = "eval-suite", SOME, var = "EVAL_SUITE", meta = "eval_suite";
    RecipeFingerprint = "recipe-fingerprint", SOME, point, var = "RECIPE_FINGERPRINT", meta = "recipe_fingerprint",
        publish = 7 "recipe_fingerprint";
}

impl Field {
    /// Every field of a row's JSON, in its order.
    pub fn of_rows() -> impl Iterator<Item = Self> {
        let sizes = Size::ALL.iter().map(|size| Self::Size(*size));
        let passed = PassedField::ALL.iter().map(|field| Self::Passed(*field));
        let at = |field| Self::LINES.iter().position(|line| *line == field).unwrap_or(0);
        let (before, rest) = Self::LINES.split_at(at(Self::SpecDecoding));
        let (between, after) = rest.split_at(at(Self::RunEval) - before.len());
        let own = |lines: &'static [Self]| lines.iter().copied();
        own(before)
            .chain(sizes)
            .chain(own(between))
            .chain(passed)
            .chain(own(after))
    }

    /// Every field by which policies may group and match, with its name.
    pub fn of_groups() -> impl Iterator<Item = Self> {
        let sides = Side::ALL.into_iter().flat_map(|side| {
            let sizes = Size::ALL.iter().map(|size| SideField::Size(*size));
            let parts = std::iter::once(SideField::NumWorker).chain(sizes);
            parts.chain([SideField::Hardware]).map(move |part| Self::Of(side, part))
        });
        let own = Self::of_rows().filter(|field| match field {
            Self::Size(_) => true,
            field => field.line().is_some_and(|about| about.group_by),
        });
        own.chain(sides)
    }

    /// Its name in a row; `prefill.` and `decode.` reach into a side.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Size(size) => size.names().row.to_owned(),
            Self::Passed(field) => field.name().to_owned(),
            Self::Of(side, part) => {
                let part = match part {
                    SideField::NumWorker => "num-worker",
                    SideField::Size(size) => size.names().row,
                    SideField::Hardware => "hardware",
                };
                format!("{}.{part}", side.name())
            }
            own => own.line().map_or("", |about| about.name).to_owned(),
        }
    }

    /// Whether rows of a shape have it.
    #[must_use]
    pub fn of_shape(self, shape: Shape) -> Has {
        match self {
            Self::Size(_) if shape.multinode => Has::Not,
            Self::Size(size) if size.names().row_required => Has::Must,
            Self::Size(_) => Has::May,
            Self::Passed(_) => Has::May,
            own => {
                let at = usize::from(shape.multinode) + 2 * usize::from(shape.agentic);
                own.line().map_or(Has::Not, |about| about.shapes[at])
            }
        }
    }

    /// Whether every row has it.
    #[must_use]
    pub fn is_of_every_shape(self) -> bool {
        self.line().is_some_and(|about| about.shapes == ALL)
    }

    /// Whether the fingerprint of a recipe counts it.
    #[must_use]
    pub fn in_fingerprint(self) -> bool {
        self.line().is_none_or(|about| about.in_fingerprint)
    }

    /// The variable of a job that holds its value, where one does.
    #[must_use]
    pub fn variable(self) -> Option<&'static str> {
        match self {
            Self::Size(size) => Some(size.names().variable),
            Self::Passed(field) => field.variable(),
            own => own.line().and_then(|about| about.variable),
        }
    }

    /// Every field that `meta_env.json` has under a name of its own; sizes stand there plain and by side.
    pub fn of_meta() -> impl Iterator<Item = (Self, &'static str)> {
        Self::LINES
            .iter()
            .filter_map(|field| Some((*field, field.line()?.meta?)))
    }

    /// Every field that published rows of throughput have, with its name there, in their order; sizes stand there by side.
    pub fn of_published() -> impl Iterator<Item = (Self, &'static str)> {
        Self::in_order(|about| about.published)
    }

    /// Every field that published rows of evals have, in their order, with its name in `meta_env.json` and there; sizes
    /// stand there by side.
    pub fn of_evals() -> impl Iterator<Item = (Self, &'static str, &'static str)> {
        Self::in_order(|about| {
            let (at, name) = about.in_evals?;
            Some((at, (about.meta?, name)))
        })
        .map(|(field, (meta, name))| (field, meta, name))
    }

    /// Its name in published rows of evals, where they have it; sizes stand there by side.
    #[must_use]
    pub fn in_evals(self) -> Option<&'static str> {
        self.line()?.in_evals.map(|(_, name)| name)
    }

    /// Every field that two measurements must share to be comparable, in the order of points, with its names in published
    /// rows: of evals, and of throughput. Sizes are shared too.
    pub fn of_points() -> impl Iterator<Item = (Self, [&'static str; 2])> {
        Self::in_order(|about| {
            let (_, of_evals) = about.in_evals.or(about.published)?;
            let (_, of_throughput) = about.published.or(about.in_evals)?;
            Some((about.compared?, [of_evals, of_throughput]))
        })
    }

    /// The fields of which the table says something with a place, in the order of those.
    fn in_order<T>(said: impl Fn(&'static About) -> Option<(u8, T)>) -> impl Iterator<Item = (Self, T)> {
        let mut all: Vec<_> = Self::of_rows()
            .filter_map(|field| Some((field, said(field.line()?)?)))
            .collect();
        all.sort_by_key(|(_, (at, _))| *at);
        all.into_iter().map(|(field, (_, said))| (field, said))
    }
}
