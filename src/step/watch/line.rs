//! What a line of a log says.
//!
//! Forms are taken from: agentx-harness 1.0.12 (`aiperf/timing/phase/runner.py`, `aiperf/records/records_manager.py`),
//! vLLM (`vllm/v1/metrics/loggers.py` at 005a810b), SGLang (`Decode batch` and `Prefill batch` of its scheduler),
//! TensorRT-LLM (iteration log of `_torch/pyexecutor/py_executor.py`), srt-slurm (`src/srtctl/core/health.py` at
//! 39f4ec51), Slurm (`slurmstepd`) and the runner of GitHub Actions.

use std::sync::LazyLock;

use jiff::civil::DateTime;
use regex::{Captures, Regex};

/// What one line says, as far as it is of use.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    /// The client started a phase, which takes so many seconds where it is bounded in time.
    Started { phase: String, seconds: Option<f64> },
    /// The client's heartbeat of a phase.
    Progress(Progress),
    /// A phase ended.
    Complete {
        phase: String,
        completed: u64,
        errors: u64,
        elapsed: f64,
    },
    /// The client's own count while it measures.
    Totals { done: u64, errors: u64 },
    /// What an engine, or the client of its server, says of load.
    Load(Load),
    /// How many workers have registered, and how many have not.
    Workers { missing: u64, text: String },
    /// Something that ends the run.
    End(End),
    /// Something after which no result of this run counts.
    Fault(&'static str),
}

/// A heartbeat.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Progress {
    pub phase: String,
    pub returned: u64,
    pub target: Option<u64>,
    pub sent: u64,
    pub errors: u64,
    pub elapsed: f64,
}

/// Load at one moment; what is not said is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub(crate) struct Load {
    /// Requests that run.
    pub running: Option<f64>,
    /// Requests that wait.
    pub waiting: Option<f64>,
    /// How full the cache of keys and values is, 0 to 1.
    pub kv: Option<f64>,
    /// Output tokens a second.
    pub output: Option<f64>,
}

/// Whose end was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum End {
    /// The benchmark's own.
    Benchmark,
    /// Slurm ended the job or its step.
    Slurm,
    /// GitHub ended the job.
    Github,
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern")
}

const COUNT: &str = r"([0-9][0-9,]*)";
static STARTED: LazyLock<Regex> = LazyLock::new(|| pattern(r"Phase (\w+)(?: \(\w+\))? started"));
static DURATION: LazyLock<Regex> = LazyLock::new(|| pattern(r"([0-9.]+)s duration"));
static PROGRESS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"Phase (\w+) progress \| returned={COUNT}(?:/{COUNT})? \| sent={COUNT} \| in_flight={COUNT} \| errors={COUNT} \| elapsed=([0-9.]+)s"
    ))
});
static COMPLETE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"Phase (\w+)(?: \(\w+\))? complete \| completed={COUNT}, cancelled={COUNT}, errors={COUNT}.*elapsed=([0-9.]+)s"
    ))
});
static TOTALS: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"\bdone={COUNT} ok={COUNT} err={COUNT}")));
static CLIENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&format!(
        r"\bsrv\b.*?(?:kv_usage=([0-9.]+)%)?.*?queue={COUNT}r/{COUNT}w(?:.*tput_out_srv={COUNT}/s)?"
    ))
});
static CLIENT_KV: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bkv_usage=([0-9.]+)%"));
static VLLM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"Avg generation throughput: ([0-9.]+) tokens/s, Running: ([0-9]+) reqs, Waiting: ([0-9]+) reqs,(?: Preemptions: [0-9]+,)? GPU KV cache usage: ([0-9.]+)%",
    )
});
static SGLANG: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:Decode|Prefill) batch\b"));
static SGLANG_RUNNING: LazyLock<Regex> = LazyLock::new(|| pattern(r"#running-req: ([0-9]+)"));
static SGLANG_QUEUE: LazyLock<Regex> = LazyLock::new(|| pattern(r"#queue-req: ([0-9]+)"));
static SGLANG_KV: LazyLock<Regex> = LazyLock::new(|| pattern(r"token usage: ([0-9.]+)"));
static SGLANG_OUTPUT: LazyLock<Regex> = LazyLock::new(|| pattern(r"gen throughput \(token/s\): ([0-9.]+)"));
static TRT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"iter = [0-9]+,.*host_step_time = .*num_scheduled_requests: ([0-9]+)"));
static WORKERS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"Model is (?:not ready, waiting for ([0-9]+) prefills and ([0-9]+) decodes\. |ready\. )Have [0-9]+ prefills and [0-9]+ decodes",
    )
});
static SLURM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"slurmstepd: error: \*\*\* (?:JOB|STEP) |has exceeded its time limit|srun: Job step aborted|srun: forcing job termination",
    )
});
static GITHUB: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"##\[error\](?:The operation was canceled|The runner has received a shutdown signal|The job running on runner .* has exceeded)",
    )
});
static BENCHMARK: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"Phase profiling(?: \(\w+\))? complete|Exporting all records|process_agentic_result|replay_rc=")
});

/// What disqualifies, and how its lines are known.
static FAULTS: LazyLock<[(&str, Regex); 4]> = LazyLock::new(|| {
    [
        (
            "out of memory",
            pattern(
                r"OutOfMemoryError|(?:CUDA|HIP) out of memory|HSA_STATUS_ERROR_OUT_OF_RESOURCES|\boom[_-]kill|Out Of Memory|out-of-memory handler",
            ),
        ),
        (
            "a collective failed (NCCL or RCCL)",
            pattern(
                r"\b[NR]CCL (?:error|failure)|nccl(?:System|Internal|UnhandledCuda|Remote)Error|Watchdog caught collective operation timeout|ncclUnhandledCudaError|DistBackendError",
            ),
        ),
        (
            "a worker died",
            pattern(
                r"EngineDeadError|EngineCore encountered a fatal error|(?:Worker|Scheduler|worker) .*(?:died|exited unexpectedly|hit an exception)|Fatal Python error|Segmentation fault",
            ),
        ),
        (
            "the answers of the server cannot be parsed",
            pattern(
                r"JSONDecodeError|(?:reasoning|tool)[ _]?(?:call )?parser.*(?:Traceback|Error|exception)|Error in (?:extracting|parsing) tool call",
            ),
        ),
    ]
});

/// Reads a line.
pub(super) fn read(line: &str) -> Option<Said> {
    if let Some(fault) = FAULTS.iter().find(|(_, pattern)| pattern.is_match(line)) {
        return Some(Said::Fault(fault.0));
    }
    phase(line)
        .or_else(|| load(line).map(Said::Load))
        .or_else(|| around(line))
}

/// What the client says of its phases.
fn phase(line: &str) -> Option<Said> {
    if let Some(found) = PROGRESS.captures(line) {
        return Some(Said::Progress(Progress {
            phase: found[1].to_owned(),
            returned: whole(&found, 2)?,
            target: whole(&found, 3),
            sent: whole(&found, 4)?,
            errors: whole(&found, 6)?,
            elapsed: number(&found, 7)?,
        }));
    }
    if let Some(found) = COMPLETE.captures(line) {
        return Some(Said::Complete {
            phase: found[1].to_owned(),
            completed: whole(&found, 2)?,
            errors: whole(&found, 4)?,
            elapsed: number(&found, 5)?,
        });
    }
    if let Some(found) = STARTED.captures(line) {
        let seconds = DURATION.captures(line).and_then(|found| number(&found, 1));
        return Some(Said::Started {
            phase: found[1].to_owned(),
            seconds,
        });
    }
    let found = TOTALS.captures(line)?;
    Some(Said::Totals {
        done: whole(&found, 1)?,
        errors: whole(&found, 3)?,
    })
}

fn load(line: &str) -> Option<Load> {
    if let Some(found) = VLLM.captures(line) {
        return Some(Load {
            output: number(&found, 1),
            running: number(&found, 2),
            waiting: number(&found, 3),
            kv: number(&found, 4).map(|percent| percent / 100.0),
        });
    }
    if SGLANG.is_match(line) {
        let one = |pattern: &Regex| pattern.captures(line).and_then(|found| number(&found, 1));
        return Some(Load {
            running: one(&SGLANG_RUNNING),
            waiting: one(&SGLANG_QUEUE),
            kv: one(&SGLANG_KV),
            output: one(&SGLANG_OUTPUT),
        });
    }
    if let Some(found) = TRT.captures(line) {
        return Some(Load {
            running: number(&found, 1),
            ..Load::default()
        });
    }
    let found = CLIENT.captures(line)?;
    let kv = CLIENT_KV.captures(line).and_then(|found| number(&found, 1));
    Some(Load {
        running: number(&found, 2),
        waiting: number(&found, 3),
        kv: kv.map(|percent| percent / 100.0),
        output: number(&found, 4),
    })
}

/// What those around the benchmark say.
fn around(line: &str) -> Option<Said> {
    if let Some(found) = WORKERS.captures(line) {
        let missing = |group: usize| whole(&found, group).unwrap_or(0);
        return Some(Said::Workers {
            missing: missing(1) + missing(2),
            text: found[0].to_owned(),
        });
    }
    let ends = [
        (&GITHUB, End::Github),
        (&SLURM, End::Slurm),
        (&BENCHMARK, End::Benchmark),
    ];
    let end = ends.into_iter().find(|(pattern, _)| pattern.is_match(line));
    end.map(|(_, end)| Said::End(end))
}

fn whole(found: &Captures<'_>, group: usize) -> Option<u64> {
    found.get(group)?.as_str().replace(',', "").parse().ok()
}

fn number(found: &Captures<'_>, group: usize) -> Option<f64> {
    found.get(group)?.as_str().replace(',', "").parse().ok()
}

static DATE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})"));
static DATE_OF_TRT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\[([0-9]{2})/([0-9]{2})/([0-9]{4})-([0-9]{2}:[0-9]{2}:[0-9]{2})\]"));

/// When a line was written, by the clock of its writer: of use within one log only.
pub(super) fn time(line: &str) -> Option<DateTime> {
    // Times stand at the start of lines; what a model wrote may hold others.
    let end = line.char_indices().nth(80).map_or(line.len(), |(end, _)| end);
    let start = &line[..end];
    let text = match (DATE.captures(start), DATE_OF_TRT.captures(start)) {
        (Some(found), _) => format!("{}T{}", &found[1], &found[2]),
        (None, Some(found)) => format!("{}-{}-{}T{}", &found[3], &found[1], &found[2], &found[4]),
        (None, None) => return None,
    };
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_client_are_read() {
        let started = "2026-11-30 21:34:31.551 - PhaseRunner - NOTICE - Phase profiling (profiling) started | \
                       phase_index=0 | profiling_index=0 | target: 3600.0s duration";
        let phase = "profiling".to_owned();
        assert_eq!(
            read(started),
            Some(Said::Started {
                phase: phase.clone(),
                seconds: Some(3600.0)
            })
        );
        assert_eq!(
            time(started).map(|time| time.to_string()),
            Some("2026-11-30T21:34:31".to_owned())
        );
        let progress =
            "Phase warmup progress | returned=1,032/2,050 | sent=1,040 | in_flight=8 | errors=1 | elapsed=30.5s";
        let Some(Said::Progress(progress)) = read(progress) else {
            panic!("a heartbeat");
        };
        assert_eq!(
            (progress.returned, progress.target, progress.sent),
            (1032, Some(2050), 1040)
        );
        let complete = "Phase profiling (profiling) complete | completed=40, cancelled=0, errors=3 | sessions: \
                        completed=4, cancelled=0 | elapsed=15.00s";
        assert_eq!(
            read(complete),
            Some(Said::Complete {
                phase,
                completed: 40,
                errors: 3,
                elapsed: 15.0
            })
        );
        let totals = "   rps=2.0 (avg 2.1)  tput_in=9/s  tput_out=1,200/s  done=1,200 ok=1,190 err=10";
        assert_eq!(read(totals), Some(Said::Totals { done: 1200, errors: 10 }));
        let server = "   srv    prefix_cache_hit=50.0% kv_usage=98.5% queue=64r/12w tput_out_srv=1,234/s";
        assert_eq!(
            read(server),
            Some(Said::Load(Load {
                running: Some(64.0),
                waiting: Some(12.0),
                kv: Some(0.985),
                output: Some(1234.0)
            }))
        );
    }

    #[test]
    fn lines_of_engines_are_read() {
        let vllm = "(APIServer pid=1) INFO 11-30 21:00:00 [loggers.py:127] Engine 000: Avg prompt throughput: 300.0 \
                    tokens/s, Avg generation throughput: 40.0 tokens/s, Running: 3 reqs, Waiting: 1 reqs, GPU KV cache \
                    usage: 25.0%, Prefix cache hit rate: 90.0%";
        let wanted = Load {
            running: Some(3.0),
            waiting: Some(1.0),
            kv: Some(0.25),
            output: Some(40.0),
        };
        assert_eq!(read(vllm), Some(Said::Load(wanted)));
        let sglang = "[2026-11-06 03:00:00 DP0 TP0] Decode batch, #running-req: 3, #token: 9, token usage: 0.25, cuda \
                      graph: True, gen throughput (token/s): 40.0, #queue-req: 1";
        assert_eq!(read(sglang), Some(Said::Load(wanted)));
        let trt = "[01/16/2026-06:20:17] [TRT-LLM] [RANK 0] [I] iter = 5559, host_step_time = 50.5ms, \
                   num_scheduled_requests: 3, states = {'num_ctx_requests': 2}";
        assert_eq!(
            read(trt),
            Some(Said::Load(Load {
                running: Some(3.0),
                ..Load::default()
            }))
        );
        assert_eq!(
            time(trt).map(|time| time.to_string()),
            Some("2026-01-16T06:20:17".to_owned())
        );
    }

    #[test]
    fn ends_and_faults_are_told_apart() {
        for (line, wanted) in [
            (
                "slurmstepd: error: *** JOB 68475 ON n1 CANCELLED AT 2026-11-07T02:09:10 DUE TO TIME LIMIT ***",
                Said::End(End::Slurm),
            ),
            (
                "2026-11-30T20:36:48.3343455Z ##[error]The operation was canceled.",
                Said::End(End::Github),
            ),
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
                Said::Fault("out of memory"),
            ),
            (
                "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error",
                Said::Fault("a collective failed (NCCL or RCCL)"),
            ),
            (
                "Model is not ready, waiting for 1 prefills and 2 decodes. Have 1 prefills and 0 decodes.",
                Said::Workers {
                    missing: 3,
                    text: "Model is not ready, waiting for 1 prefills and 2 decodes. Have 1 prefills and 0 decodes"
                        .to_owned(),
                },
            ),
        ] {
            assert_eq!(read(line), Some(wanted), "{line}");
        }
        assert_eq!(read("INFO Loading weights took 80 seconds"), None);
    }
}
