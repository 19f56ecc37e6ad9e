//! Catch-up: what happens to windows whose tick was missed.
//!
//! A window that is noticed within five minutes of its tick, or within one interval of the schedule if that is shorter, is
//! on time and runs. Later it is *missed*, and the policy decides. In any case the window gets a row; a skipped one has
//! its reason.
//!
//! Each window is judged alone, against the latest one that is due: the verdict does not depend on how many windows are
//! decided together, so a long outage can be worked off in small transactions.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use crate::tick::DueWindow;
use crate::window::Window;
use crate::{ParseError, duration};

/// A window that is noticed within this time of its tick is on time.
pub const ON_TIME: Duration = Duration::from_mins(5);

/// Which missed windows still run.
///
/// ```
/// use refrain_core::CatchUp;
///
/// assert_eq!(CatchUp::parse("latest")?, CatchUp::Latest);
/// assert!(CatchUp::parse("al").unwrap_err().advice().unwrap().contains("all"));
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatchUp {
    /// All of them, oldest first.
    All,
    /// Only the latest window.
    #[default]
    Latest,
    /// None of them.
    None,
    /// Those whose tick is at most this long ago.
    Within(Duration),
}

/// What happens to a window that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatchUpVerdict {
    /// It runs, on time.
    OnTime,
    /// It was missed, and runs now.
    CaughtUp,
    /// It was missed, and does not run.
    Skipped(SkipReason),
}

/// Why a missed window does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// A later window is due, and only the latest runs.
    Superseded {
        /// The latest window.
        by: Window,
    },
    /// Missed windows do not run.
    NoCatchUp {
        /// How long after its tick it was noticed.
        late: Duration,
    },
    /// It was missed longer ago than the policy allows.
    TooOld {
        /// How long after its tick it was noticed.
        late: Duration,
        /// The limit of the policy.
        within: Duration,
    },
}

impl CatchUp {
    /// Reads `all`, `latest` or `none`. A span is written as a table, `{ within = "3d" }`, by job files.
    pub fn parse(text: &str) -> Result<CatchUp, ParseError> {
        match text {
            "all" => Ok(CatchUp::All),
            "latest" => Ok(CatchUp::Latest),
            "none" => Ok(CatchUp::None),
            _ => Err(ParseError::whole("catch-up policy", text, "it is not one of the allowed values")
                .help("write \"all\", \"latest\", \"none\" or { within = \"3d\" }")),
        }
    }

    /// Decides about one window: `next_tick` is the tick after its own, `latest` the latest window due.
    pub(crate) fn judge(
        self,
        due: &DueWindow,
        next_tick: Option<Timestamp>,
        latest: Option<Window>,
        now: Timestamp,
    ) -> CatchUpVerdict {
        let since = |from: Timestamp, to: Timestamp| to.duration_since(from).unsigned_abs();
        let late = since(due.tick, now);
        let interval = next_tick.map_or(ON_TIME, |next| since(due.tick, next));
        if late <= ON_TIME.min(interval) {
            return CatchUpVerdict::OnTime;
        }
        let superseded_by = latest.filter(|latest| latest.end() > due.window.end());
        match (self, superseded_by) {
            (CatchUp::Latest, Some(by)) => CatchUpVerdict::Skipped(SkipReason::Superseded { by }),
            (CatchUp::None, _) => CatchUpVerdict::Skipped(SkipReason::NoCatchUp { late }),
            (CatchUp::Within(within), _) if late > within => {
                CatchUpVerdict::Skipped(SkipReason::TooOld { late, within })
            }
            _ => CatchUpVerdict::CaughtUp,
        }
    }
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatchUp::All => f.write_str("all"),
            CatchUp::Latest => f.write_str("latest"),
            CatchUp::None => f.write_str("none"),
            CatchUp::Within(span) => write!(f, "{{ within = \"{}\" }}", duration::format(*span)),
        }
    }
}

impl fmt::Display for CatchUpVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatchUpVerdict::OnTime => f.write_str("on time"),
            CatchUpVerdict::CaughtUp => f.write_str("caught up"),
            CatchUpVerdict::Skipped(reason) => write!(f, "skipped: {reason}"),
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Superseded { by } => {
                write!(f, "missed; with catch-up = \"latest\" only the window from {} runs", by.start())
            }
            SkipReason::NoCatchUp { late } => {
                write!(f, "missed by {}; catch-up = \"none\"", duration::format(*late))
            }
            SkipReason::TooOld { late, within } => {
                let (late, within) = (duration::format(*late), duration::format(*within));
                write!(f, "missed by {late}, more than catch-up = {{ within = \"{within}\" }} allows")
            }
        }
    }
}
