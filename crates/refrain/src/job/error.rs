//! Why an attempt failed: in words for a person, and as values for what comes next.
//!
//! Whether it is tried again, when, and whether a person must decide follow from the values alone. The words may quote what a
//! program printed or a server answered, and nothing is decided by them.

use std::fmt;
use std::time::Duration;

use refrain_core::state::FailureReason;

/// Why an attempt failed, and whether another one may help.
///
/// Any error turns into one by `?`, and is tried again; what would fail in the same way is said with
/// [`for_good`](Self::for_good).
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
    lost: bool,
    exhausted: bool,
    reason: Option<FailureReason>,
}

impl JobError {
    /// An error that another attempt may mend.
    pub fn new(message: impl Into<String>) -> JobError {
        JobError {
            message: message.into(),
            retryable: true,
            not_before: None,
            lost: false,
            exhausted: false,
            reason: None,
        }
    }

    /// An error that would come again.
    pub fn for_good(message: impl Into<String>) -> JobError {
        JobError { retryable: false, ..JobError::new(message) }
    }

    /// It took longer than it may.
    pub(crate) fn timed_out(after: Duration) -> JobError {
        let message = format!("timed out after {}", refrain_core::duration::format(after));
        JobError { reason: Some(FailureReason::TimedOut), ..JobError::new(message) }
    }

    /// It was cut off, and nothing goes on before a person has looked.
    pub(crate) fn held(message: String) -> JobError {
        JobError { reason: Some(FailureReason::Held), ..JobError::for_good(message) }
    }

    /// It was ended because its worker could not say in time that it was alive: nobody's fault.
    pub(crate) fn lost() -> JobError {
        JobError { lost: true, ..JobError::new("its lease was not renewed in time") }
    }

    /// Something of the system failed. That this process has no descriptors left is not the fault of the job, and costs it no
    /// try.
    pub(crate) fn of_system(what: &str, error: &std::io::Error) -> JobError {
        let exhausted = is_exhaustion(error.raw_os_error());
        JobError { exhausted, ..JobError::new(format!("{what}: {error}")) }
    }

    /// The same of what a supervisor says.
    pub(crate) fn of_errno(message: String, errno: Option<i32>) -> JobError {
        JobError { exhausted: is_exhaustion(errno), ..JobError::new(message) }
    }

    /// The other side asked not to be called before this has passed.
    #[must_use]
    pub fn not_before(self, wait: Duration) -> JobError {
        JobError { not_before: Some(wait), ..self }
    }

    /// Whether another attempt may help.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    pub(crate) fn reason(&self) -> Option<FailureReason> {
        self.reason
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    pub(crate) fn wish(&self) -> Option<Duration> {
        self.not_before
    }
}

/// Whether there are no file descriptors left, in this process or on this machine. It is said once in the life of a process:
/// every attempt would say it.
fn is_exhaustion(errno: Option<i32>) -> bool {
    use rustix::io::Errno;
    static SAID: std::sync::Once = std::sync::Once::new();
    let exhausted =
        errno.map(Errno::from_raw_os_error).is_some_and(|one| one == Errno::MFILE || one == Errno::NFILE);
    if exhausted {
        SAID.call_once(|| {
            tracing::error!(
                "too many files are open: attempts are put off until there are fewer; raise the limit (ulimit -n), or find \
                 who holds them"
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
