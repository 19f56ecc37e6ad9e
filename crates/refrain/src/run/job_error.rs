//! Why an attempt failed: as a message for the operator, and as values for decisions.
//!
//! Whether and when to retry, and whether the operator must decide, follow from the values alone. The message may quote the
//! output of a program or the response of a server, and decides nothing.

use std::fmt;
use std::time::Duration;

use refrain_core::state::FailureReason;

/// Why an attempt failed, and whether a retry may help.
///
/// `?` turns any error into a `JobError` that is retried; use [`for_good`](Self::for_good) for an error that a retry would
/// meet again.
///
/// ```
/// use refrain::JobError;
///
/// fn parse(text: &str) -> Result<u32, JobError> {
///     text.parse().map_err(|error: std::num::ParseIntError| JobError::for_good(error.to_string()))
/// }
/// assert!(!parse("x").unwrap_err().is_retryable());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobError {
    message: String,
    retryable: bool,
    not_before: Option<Duration>,
    reason: FailureReason,
}

impl JobError {
    /// An error that is retried.
    pub fn new(message: impl Into<String>) -> JobError {
        JobError { message: message.into(), retryable: true, not_before: None, reason: FailureReason::Error }
    }

    /// An error that is not retried, because every attempt would meet it.
    pub fn for_good(message: impl Into<String>) -> JobError {
        JobError { retryable: false, ..JobError::new(message) }
    }

    /// The attempt took longer than the job's timeout.
    pub(crate) fn timed_out(after: Duration) -> JobError {
        let message = format!("timed out after {}", refrain_core::duration::format(after));
        JobError { reason: FailureReason::TimedOut, ..JobError::new(message) }
    }

    /// The attempt was interrupted, and the run waits for the operator.
    pub(crate) fn held(message: String) -> JobError {
        JobError { reason: FailureReason::Held, ..JobError::for_good(message) }
    }

    /// The job panicked.
    pub(crate) fn panicked(message: String) -> JobError {
        JobError { reason: FailureReason::Panicked, ..JobError::new(message) }
    }

    /// The attempt was ended because its worker could not renew its lease in time. It costs no try.
    pub(crate) fn lost() -> JobError {
        JobError { reason: FailureReason::Lost, ..JobError::new("its lease was not renewed in time") }
    }

    /// A system call failed. If this process has run out of file descriptors, the attempt costs no try.
    pub(crate) fn of_system(what: &str, error: &std::io::Error) -> JobError {
        JobError::of_errno(format!("{what}: {error}"), error.raw_os_error())
    }

    /// A system call of the supervisor failed.
    pub(crate) fn of_errno(message: String, errno: Option<i32>) -> JobError {
        let reason = if is_exhaustion(errno) { FailureReason::Exhausted } else { FailureReason::Error };
        JobError { reason, ..JobError::new(message) }
    }

    /// The earliest time for a retry, for example because a server asked for it.
    #[must_use]
    pub fn not_before(self, wait: Duration) -> JobError {
        JobError { not_before: Some(wait), ..self }
    }

    /// Whether a retry may help.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    pub(crate) fn reason(&self) -> FailureReason {
        self.reason
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.reason == FailureReason::Lost
    }

    pub(crate) fn wait_at_least(&self) -> Option<Duration> {
        self.not_before
    }
}

/// Whether there are no file descriptors left, in this process or on this machine. Logged once per process, because every
/// attempt would log it.
fn is_exhaustion(errno: Option<i32>) -> bool {
    use rustix::io::Errno;
    static SAID: std::sync::Once = std::sync::Once::new();
    let exhausted =
        errno.map(Errno::from_raw_os_error).is_some_and(|one| one == Errno::MFILE || one == Errno::NFILE);
    if exhausted {
        SAID.call_once(|| {
            tracing::error!(
                "too many open files: attempts are postponed until there are fewer; raise the limit (ulimit -n), or find the \
                 process that holds them"
            );
        });
    }
    exhausted
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: std::error::Error> From<E> for JobError {
    fn from(error: E) -> JobError {
        JobError::new(error.to_string())
    }
}
