//! Power and energy of the GPUs of one node while a benchmark ran: from the samples that `nvidia-smi` or `amd-smi`
//! wrote, integrated over the benchmark's own window.
//!
//! Nothing here fails: whatever keeps a figure from being sound is a reason in the account, and a figure with a reason
//! is not published.

mod counters;
mod integrate;
mod telemetry;
mod time;
mod window;

use std::path::Path;

use indexmap::IndexMap;
use serde::Serialize;

use self::counters::CrossCheck;
pub(crate) use self::window::Reported;
use self::window::Window;

/// The form of the account.
const ACCOUNT_VERSION: u64 = 1;
/// The form of the published fields.
const METRICS_VERSION: u64 = 2;

/// Everything that was found, valid or not: `power_validation_<RESULT_FILENAME>.json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Account {
    /// The form of the file; 1.
    pub schema_version: u64,
    /// Whether there is no reason against the figures.
    pub power_valid: bool,
    /// What is wrong with them, each once.
    pub reasons: Vec<&'static str>,
    /// When the benchmark ran and what it did; null where it does not say.
    pub benchmark_window: Option<Window>,
    /// GPUs of the row.
    pub expected_gpu_count: u64,
    /// GPUs of the samples.
    pub observed_gpu_count: usize,
    /// Their names: numbers by value, then texts.
    pub observed_gpu_ids: Vec<String>,
    /// Samples of each, those of one time as one.
    pub per_gpu_sample_counts: IndexMap<String, usize>,
    /// The longest time between two samples over the window, in seconds.
    pub per_gpu_max_sample_gap_s: IndexMap<String, f64>,
    /// Energy over the window, in joules.
    pub per_gpu_energy_j: IndexMap<String, f64>,
    /// The reasons that are of one GPU.
    pub device_issues: IndexMap<String, Vec<&'static str>>,
    /// The figures, to 6 places; empty where they are not valid.
    pub metrics: Metrics,
    /// The same by the counters of energy, where there are snapshots of them.
    pub accumulator_check: Option<CrossCheck>,
}

/// The figures of a valid account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "named as published, units included")]
pub(crate) struct Metrics {
    #[serde(flatten)]
    figures: Option<Figures>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Figures {
    avg_power_w: f64,
    avg_total_gpu_power_w: f64,
    total_gpu_energy_j: f64,
    joules_per_successful_query: f64,
    joules_per_input_token: f64,
    joules_per_output_token: f64,
    joules_per_total_token: f64,
}

/// What the aggregate of a job says of power.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Published {
    power_metric_schema_version: u64,
    power_valid: u8,
    #[serde(flatten)]
    figures: Option<Figures>,
}

/// Reads the samples of a benchmark's GPUs, and the snapshots of energy counters beside them.
#[must_use]
pub(crate) fn measure(reported: &Reported, gpus: u64, samples: &Path) -> Account {
    let mut account = Account {
        schema_version: ACCOUNT_VERSION,
        power_valid: false,
        reasons: Vec::new(),
        benchmark_window: reported.window(),
        expected_gpu_count: gpus,
        observed_gpu_count: 0,
        observed_gpu_ids: Vec::new(),
        per_gpu_sample_counts: IndexMap::new(),
        per_gpu_max_sample_gap_s: IndexMap::new(),
        per_gpu_energy_j: IndexMap::new(),
        device_issues: IndexMap::new(),
        metrics: Metrics::default(),
        accumulator_check: counters::check(samples),
    };
    match account.benchmark_window.clone() {
        None => account.blame("invalid_benchmark_window"),
        Some(window) => {
            window.issues().for_each(|reason| account.blame(reason));
            account.integrate(&window, samples);
            account.power_valid = account.reasons.is_empty();
            if account.power_valid {
                account.metrics.figures = Figures::new(&account, &window);
            }
        }
    }
    account
}

impl Account {
    /// What the aggregate says.
    #[must_use]
    pub(crate) fn published(&self) -> Published {
        Published {
            power_metric_schema_version: METRICS_VERSION,
            power_valid: u8::from(self.power_valid),
            figures: self.metrics.figures.map(Figures::rounded),
        }
    }

    fn blame(&mut self, reason: &'static str) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    fn integrate(&mut self, window: &Window, samples: &Path) {
        let rows = match telemetry::read(samples) {
            Ok(rows) => rows,
            Err(reasons) => return reasons.into_iter().for_each(|reason| self.blame(reason)),
        };
        let usable = rows.within(window);
        usable.reasons.iter().copied().for_each(|reason| self.blame(reason));
        if usable.samples.is_empty() {
            return self.blame("no_usable_power_samples");
        }
        self.observed_gpu_count = usable.samples.len();
        if usable.samples.len() as u64 != self.expected_gpu_count {
            self.blame("expected_gpu_count_mismatch");
        }
        for (gpu, samples) in usable.samples {
            let samples = integrate::merged(samples);
            self.per_gpu_sample_counts.insert(gpu.clone(), samples.len());
            let found = integrate::over(&samples, window.start_time_unix, window.end_time_unix);
            if let Some((gap, energy)) = found.measured {
                self.per_gpu_max_sample_gap_s.insert(gpu.clone(), gap);
                self.per_gpu_energy_j.insert(gpu.clone(), energy);
            }
            if let Some(issue) = found.issue {
                self.blame(issue);
                self.device_issues.insert(gpu.clone(), vec![issue]);
            }
            self.observed_gpu_ids.push(gpu);
        }
    }
}

impl Figures {
    /// To the account's places; `None` where there is nothing to divide by.
    #[allow(clippy::cast_precision_loss, reason = "no run has 2^53 tokens")]
    fn new(account: &Account, window: &Window) -> Option<Self> {
        let energy: f64 = account.per_gpu_energy_j.values().sum();
        let power = energy / window.integration_duration_s;
        let [queries, input, output] = window.counts()?;
        let per = |count: u64| round(energy / count as f64, 6);
        Some(Self {
            avg_power_w: round(power / account.observed_gpu_count as f64, 6),
            avg_total_gpu_power_w: round(power, 6),
            total_gpu_energy_j: round(energy, 6),
            joules_per_successful_query: per(queries),
            joules_per_input_token: per(input),
            joules_per_output_token: per(output),
            joules_per_total_token: per(input + output),
        })
    }

    /// To the aggregate's places.
    fn rounded(self) -> Self {
        Self {
            avg_power_w: round(self.avg_power_w, 3),
            avg_total_gpu_power_w: round(self.avg_total_gpu_power_w, 3),
            total_gpu_energy_j: round(self.total_gpu_energy_j, 3),
            ..self
        }
    }
}

fn round(value: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    (value * scale).round() / scale
}

/// Whether REQUIRE_POWER asks for valid figures.
#[must_use]
pub(crate) fn is_required(text: Option<&str>) -> bool {
    let text = text.unwrap_or_default().trim().to_ascii_lowercase();
    ["1", "true", "yes"].contains(&text.as_str())
}
