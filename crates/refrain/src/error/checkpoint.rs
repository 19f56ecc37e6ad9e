//! Why a checkpoint was not moved, and what to do about it.

use jiff::Timestamp;

/// The longest position that an operator may set, in bytes.
pub const POSITION_BYTES_MAX: usize = 65_536;

/// Why a checkpoint was not moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// An attempt of the job is running, or may begin at any moment.
    #[error("{run} is {standing}, and goes on from where the checkpoint stands\n  {advice}")]
    UnderWay {
        /// The run.
        run: String,
        /// Running or queued.
        standing: &'static str,
        /// What to do first.
        advice: String,
    },
    /// There is none of this name.
    #[error("there is no checkpoint `{name}` of {job}{}", listed(.known))]
    Unknown {
        /// The job, with its scope.
        job: String,
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// It has not begun, so it cannot be put back.
    #[error("there is no checkpoint `{name}` of {job}\n  all checkpoints: refrain checkpoint show")]
    NotBegun {
        /// The job, with its scope.
        job: String,
        /// What was asked for.
        name: String,
    },
    /// Each window has its own.
    #[error(
        "each window of {job} has a checkpoint `{name}` of its own\n  say which is meant: --window {}", latest_of(.latest.as_ref())
    )]
    OfWindows {
        /// The job.
        job: String,
        /// What was asked for.
        name: String,
        /// The latest window that has one, if that is known.
        latest: Option<Timestamp>,
    },
    /// There is one for all windows.
    #[error("the checkpoint `{name}` of {job} is one for all windows\n  leave --window out")]
    ForEver {
        /// The job.
        job: String,
        /// What was asked for.
        name: String,
    },
    /// It was begun or moved since it was seen.
    #[error(
        "the checkpoint `{name}` is not where it was seen: it is at {found}\n  look again, then say it again: refrain checkpoint show {job}"
    )]
    Moved {
        /// The job.
        job: String,
        /// Which checkpoint.
        name: String,
        /// Where it is now.
        found: String,
    },
    /// There are several of this name, in several databases, or several databases for a new one.
    #[error(
        "several databases may have the checkpoint `{name}` of {job}, so the name is ambiguous\n  run the job once, or leave out all databases but one"
    )]
    Ambiguous {
        /// The job.
        job: String,
        /// Which checkpoint.
        name: String,
    },
    /// Only a time can be put back by a length of time.
    #[error(
        "the checkpoint `{name}` is at {position}, which is not a time, so it cannot be moved back by one\n  set it to a position that its source understands: refrain checkpoint set"
    )]
    NoTime {
        /// Which checkpoint.
        name: String,
        /// Where it is.
        position: String,
    },
    /// The position cannot be stored.
    #[error("a position has 1 to {POSITION_BYTES_MAX} bytes, and no NUL among them")]
    Unfit,
}

impl CheckpointError {
    /// Whether the caller must name another checkpoint or position; otherwise it depends on what is recorded.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NotBegun { .. } | Self::OfWindows { .. } | Self::ForEver { .. })
    }
}

fn latest_of(window: Option<&Timestamp>) -> String {
    window.map_or_else(|| "W".to_owned(), |latest| format!("{latest} is the latest that has one"))
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "\n  a job makes its checkpoints when it reads its sources for the first time".to_owned(),
        names => format!("\n  there are: {}", names.join(", ")),
    }
}
