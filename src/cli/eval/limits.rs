//! Bounds of evaluations.

/// The most seconds of one run, unless `--seconds` says otherwise: a run that takes longer mostly
/// waits for nothing.
pub(super) const SECONDS_MAX: u64 = 300;
/// The most runs of a case: enough to measure a rate of 1 in 1,000.
pub(super) const RUNS_MAX: u32 = 10_000;
/// The most runs at once: each has a thread and a request to a model of its own.
pub(super) const AT_ONCE_MAX: usize = 1_024;
