//! How a model is split over GPUs: the sizes of a row, once.

/// What a size's value may be made of.
trait Value: Copy {
    /// Whether it is true or false.
    const FLAG: bool;
    /// The value as a number.
    fn number(self) -> u64;
    /// The value that a number stands for.
    fn of(number: u64) -> Self;
}

impl Value for u64 {
    const FLAG: bool = false;

    fn number(self) -> u64 {
        self
    }

    fn of(number: u64) -> Self {
        number
    }
}

impl Value for bool {
    const FLAG: bool = true;

    fn number(self) -> u64 {
        self.into()
    }

    fn of(number: u64) -> Self {
        number != 0
    }
}

/// How a size is called, and where it must be given.
#[derive(Debug)]
pub struct SizeNames {
    /// In configs and rows.
    pub row: &'static str,
    /// In `meta_env.json` and published rows; after `prefill_` and `decode_` of a side.
    pub published: &'static str,
    /// In names of results and in tables.
    pub short: &'static str,
    /// In names of results of multi-node jobs.
    pub side_short: &'static str,
    /// The variable on one node.
    pub variable: &'static str,
    /// The variables of a side, after `PREFILL_` or `DECODE_`: all of one value. The first is srt-slurm's.
    pub side_variables: &'static [&'static str],
    /// Whether an entry on one node must give it; else it is 1, or false.
    pub required: bool,
    /// Whether a row of one node must say it; readers of the others take it for 1, or false.
    pub row_required: bool,
    /// Whether a side must give it.
    pub side_required: bool,
    /// Whether a server takes that many times more GPUs.
    pub gpus: bool,
    /// Whether published rows of evals have it; those of throughput have every size.
    pub in_evals: bool,
}

macro_rules! sizes {
    ($($(#[doc = $doc:literal])+ $field:ident: $type:ty = $size:ident, $names:expr;)+) => {
        /// How a model is split over the GPUs of one server.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct Parallelism {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        /// One size.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(clippy::enum_variant_names, reason = "the fields' own names")]
        pub enum Size { $($(#[doc = $doc])+ $size),+ }

        impl Size {
            /// Every size, in the order of tables and names.
            pub const ALL: &'static [Self] = &[$(Self::$size),+];

            /// How it is called.
            #[must_use]
            pub fn names(self) -> &'static SizeNames {
                match self { $(Self::$size => { const NAMES: SizeNames = $names; &NAMES })+ }
            }

            /// Whether it is true or false, and no number.
            #[must_use]
            pub fn is_flag(self) -> bool {
                match self { $(Self::$size => <$type as Value>::FLAG),+ }
            }
        }

        impl Parallelism {
            /// A size; a flag that is set is 1.
            #[must_use]
            pub fn get(&self, size: Size) -> u64 {
                match size { $(Size::$size => Value::number(self.$field)),+ }
            }

            /// Sets a size; a flag is set by anything but 0.
            pub fn set(&mut self, size: Size, number: u64) {
                match size { $(Size::$size => self.$field = Value::of(number)),+ }
            }
        }

        impl Default for Parallelism {
            /// Nothing is split.
            fn default() -> Self {
                Self { $($field: Value::of(u64::from(!<$type as Value>::FLAG))),+ }
            }
        }
    };
}

sizes! {
    /// Tensor parallel size.
    tp: u64 = Tp, SizeNames {
        row: "tp", published: "tp", short: "tp", side_short: "tp", variable: "TP", side_variables: &["TP"],
        required: true, row_required: true, side_required: true, gpus: true, in_evals: true,
    };
    /// Pipeline parallel size.
    pp: u64 = Pp, SizeNames {
        row: "pp", published: "pp", short: "pp", side_short: "pp", variable: "PP_SIZE", side_variables: &["PP_SIZE"],
        required: false, row_required: true, side_required: false, gpus: true,
        in_evals: false,
    };
    /// Decode context parallel size; divides `tp`.
    dcp_size: u64 = DcpSize, SizeNames {
        row: "dcp-size", published: "dcp_size", short: "dcp", side_short: "dcp", variable: "DCP_SIZE",
        side_variables: &["DCP_SIZE"], required: false, row_required: true, side_required: false, gpus: false,
        in_evals: false,
    };
    /// Prefill context parallel size.
    pcp_size: u64 = PcpSize, SizeNames {
        row: "pcp-size", published: "pcp_size", short: "pcp", side_short: "pcp", variable: "PCP_SIZE",
        side_variables: &["PCP_SIZE"], required: false, row_required: true, side_required: false, gpus: true,
        in_evals: false,
    };
    /// Expert parallel size.
    ep: u64 = Ep, SizeNames {
        row: "ep", published: "ep", short: "ep", side_short: "ep", variable: "EP_SIZE", side_variables: &["EP"],
        required: false, row_required: false, side_required: true, gpus: false,
        in_evals: true,
    };
    /// Data parallel attention.
    dp_attn: bool = DpAttn, SizeNames {
        row: "dp-attn", published: "dp_attention", short: "dpa", side_short: "dp", variable: "DP_ATTENTION",
        side_variables: &["DP_ATTN", "DP_ATTENTION"], required: false, row_required: false,
        side_required: true, gpus: false, in_evals: true,
    };
}

impl Size {
    /// The size's value as text: a number, or `true` and `false`.
    #[must_use]
    pub fn text(self, number: u64) -> String {
        match self.is_flag() {
            true => (number != 0).to_string(),
            false => number.to_string(),
        }
    }
}

impl Parallelism {
    /// Every size with its value as text.
    pub fn texts(&self) -> impl Iterator<Item = (Size, String)> {
        Size::ALL.iter().map(|size| (*size, size.text(self.get(*size))))
    }

    /// GPUs of one server, or of one worker.
    #[must_use]
    pub fn gpus(&self) -> u64 {
        self.checked_gpus().unwrap_or(u64::MAX)
    }

    /// The same; `None` where they cannot be counted.
    #[must_use]
    pub fn checked_gpus(&self) -> Option<u64> {
        let counted = Size::ALL.iter().filter(|size| size.names().gpus);
        counted.map(|size| self.get(*size)).try_fold(1_u64, u64::checked_mul)
    }

    /// For people: the tensor parallel size, then what else is split.
    #[must_use]
    pub fn shown(&self) -> String {
        let split = |size: &Size| match (size, self.get(*size)) {
            (Size::Tp, tp) => Some(format!("tp{tp}")),
            (_, 0) => None,
            (size, _) if size.is_flag() => Some(size.names().short.to_owned()),
            (_, 1) => None,
            (size, number) => Some(format!("{}{number}", size.names().short)),
        };
        Size::ALL.iter().filter_map(split).collect::<Vec<_>>().join(" ")
    }
}

/// One side of a multi-node deployment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Role {
    /// Workers; 0 for the decode side of an aggregated deployment.
    pub num_worker: u64,
    /// The sizes of one worker.
    pub sizes: Parallelism,
    /// The GPUs of this side, where the two differ.
    pub hardware: Option<String>,
    /// `NAME=VALUE` pairs for the launch.
    pub additional_settings: Option<Vec<String>>,
}

impl std::ops::Deref for Role {
    type Target = Parallelism;

    fn deref(&self) -> &Parallelism {
        &self.sizes
    }
}

impl Role {
    /// GPUs of one worker.
    #[must_use]
    pub fn gpus_per_worker(&self) -> u64 {
        self.sizes.gpus()
    }

    /// GPUs of all workers.
    #[must_use]
    pub fn gpus(&self) -> u64 {
        self.num_worker * self.gpus_per_worker()
    }
}
