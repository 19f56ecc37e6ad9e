//! When failures are not the fault of the units: a missing table or a receiver that is down fails every unit alike.
//!
//! After [`FAILURES_MAX`] failures one after another the attempt fails as a whole. None of those units is recorded as failed
//! and none of their tries is spent; the next attempt finds them as they were.

use super::LedgerError;

/// The most units that may fail one after another.
pub(crate) const FAILURES_MAX: usize = 20;

/// Counts units that failed since the last one that was applied.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker {
    failures: usize,
}

impl CircuitBreaker {
    /// A unit was applied, so the earlier failures were those of their units.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    pub(crate) fn count_failure(&mut self) {
        self.failures += 1;
    }

    /// Whether the attempt fails if there are more units to try.
    pub(crate) fn is_open(&self) -> bool {
        self.failures >= FAILURES_MAX
    }
}

/// The error of an attempt whose units all fail, with the last message.
pub(crate) fn all_fail(message: String) -> LedgerError {
    LedgerError::AllFail { count: FAILURES_MAX, message }
}

/// Bisection: a group that failed as a whole is tried again in halves, the first half first, until the bad unit is alone.
pub(crate) fn halves<T>(group: &[T]) -> [&[T]; 2] {
    let (first, second) = group.split_at(group.len() / 2);
    [first, second]
}
