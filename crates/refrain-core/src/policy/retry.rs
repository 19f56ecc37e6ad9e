//! When a failed attempt is retried: later each time, and never all runs at once.
//!
//! The wait doubles up to a limit and is then drawn from its *whole* range (full jitter). A wait that only varies a little
//! around the doubled value keeps runs that failed together together. The draw depends on the seed and the attempt
//! alone, so the same run gets the same wait in every process.
//!
//! Every result is a span from now, not a time of day: the caller that stores it adds it to the database's clock.

use std::time::Duration;

use crate::random::{SeededRandom, duration_up_to};
use crate::{ParseError, duration};

/// How many attempts a run gets and how long to wait between them (`retry = { attempts = 3, backoff = "30s..1h" }`).
///
/// ```
/// use refrain_core::retry::{Again, AttemptFailure, Retry};
///
/// let retry = Retry::default();
/// let seed = 42;
/// let Again::After(wait) = retry.after(&AttemptFailure::of_attempt(1), seed) else { panic!("two tries are left") };
/// assert!(wait <= retry.backoff.min);
/// assert_eq!(retry.backoff.to_string(), "30s..1h");
/// assert_eq!(retry.after(&AttemptFailure::of_attempt(3), seed).to_string(), "given up: all attempts are used");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How many attempts there are in all, the first included.
    pub attempts: u32,
    /// The bounds of the wait between attempts.
    pub backoff: Backoff,
}

/// The bounds of the wait: it is drawn from nothing up to `min` after the first attempt, up to twice as much
/// after each further one, and never more than `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The longest wait after the first attempt.
    pub min: Duration,
    /// The longest wait after any attempt.
    pub max: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 3, backoff: Backoff::default() }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self { min: Duration::from_secs(30), max: Duration::from_hours(1) }
    }
}

impl std::fmt::Display for Backoff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", duration::format(self.min), duration::format(self.max))
    }
}

/// The facts about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptFailure {
    /// The number of the attempt; the first is 1.
    pub attempt: u32,
    /// Whether a retry could help at all.
    pub retryable: bool,
    /// The receiver asked not to be called before this has passed (`Retry-After`).
    pub not_before: Option<Duration>,
    /// The time that is left until the result is useless.
    pub deadline: Option<Duration>,
}

impl AttemptFailure {
    /// A failure that a retry may fix, without a deadline or a `Retry-After`.
    pub fn of_attempt(attempt: u32) -> Self {
        Self { attempt, retryable: true, not_before: None, deadline: None }
    }
}

/// Whether to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Retry after this wait.
    After(Duration),
    /// Do not retry.
    GiveUp(GiveUp),
}

/// Why there is no further attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUp {
    /// It would fail in the same way.
    NotRetryable,
    /// All attempts that the job allows are used.
    AttemptsUsed,
    /// The retry could not begin before the deadline.
    Deadline,
}

impl std::fmt::Display for Again {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::After(wait) => write!(f, "again in {:.1}s", wait.as_secs_f64()),
            Self::GiveUp(GiveUp::NotRetryable) => f.write_str("given up: a retry would not help"),
            Self::GiveUp(GiveUp::AttemptsUsed) => f.write_str("given up: all attempts are used"),
            Self::GiveUp(GiveUp::Deadline) => f.write_str("given up: a retry would come too late"),
        }
    }
}

impl Retry {
    /// Decides whether, and after what wait, to retry.
    ///
    /// `Retry-After` is a lower bound and the jitter is added to it, because a thousand callers receive the same value. A
    /// wait that would pass the deadline is drawn from the time that is left.
    pub fn after(&self, failure: &AttemptFailure, seed: u64) -> Again {
        if !failure.retryable {
            return Again::GiveUp(GiveUp::NotRetryable);
        }
        if failure.attempt >= self.attempts {
            return Again::GiveUp(GiveUp::AttemptsUsed);
        }
        let earliest = failure.not_before.unwrap_or(Duration::ZERO);
        let mut span = self.backoff.longest_wait(failure.attempt);
        if let Some(deadline) = failure.deadline {
            if deadline <= earliest {
                return Again::GiveUp(GiveUp::Deadline);
            }
            span = span.min(deadline.saturating_sub(earliest));
        }
        let mut random = SeededRandom::of_member(seed, failure.attempt.into());
        Again::After(earliest.saturating_add(duration_up_to(span, &mut random)))
    }
}

impl Backoff {
    /// Reads both bounds, as in `30s..1h`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        duration::parse_range(text).map(|(min, max)| Self { min, max })
    }

    /// The longest wait after `attempt`: `min`, doubled for each attempt after the first, at most `max`.
    pub fn longest_wait(&self, attempt: u32) -> Duration {
        let mut wait = self.min.min(self.max);
        for _ in 1..attempt {
            if wait.is_zero() || wait == self.max {
                break;
            }
            wait = wait.saturating_mul(2).min(self.max);
        }
        wait
    }
}
