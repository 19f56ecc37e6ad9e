//! How long a caller waits for a run that it cannot begin, and how it learns what the run waits for.
//!
//! Only time counts in which this process does nothing for the run, at one look and at the next. While it does what is
//! queued before the run, the wait is suspended: giving up then would waste that work. An obstacle is reported when two
//! looks have found the same, so one that is gone at the next look is not reported; and again when it changes.

use std::sync::Arc;
use std::time::Duration;

use refrain_core::why::Cause;

use crate::store::show::QueuePosition;

/// How long to wait for a run that another process has, and a listener for what it waits for.
#[derive(Clone, Default)]
pub struct Patience {
    limit: Option<Duration>,
    listener: Option<Listener>,
}

/// It is called with what the run waits for.
type Listener = Arc<dyn Fn(&Cause) + Send + Sync>;

impl Patience {
    /// As long as it takes.
    pub fn endless() -> Patience {
        Patience::default()
    }

    /// At most this long.
    pub fn of(limit: Duration) -> Patience {
        Patience { limit: Some(limit), listener: None }
    }

    /// Calls `listener` with what the run waits for, and again when that changes.
    #[must_use]
    pub fn telling(self, listener: impl Fn(&Cause) + Send + Sync + 'static) -> Patience {
        Patience { listener: Some(Arc::new(listener)), ..self }
    }

    pub(super) fn tell(&self, cause: &Cause) {
        if let Some(listener) = &self.listener {
            listener(cause);
        }
    }

    pub(super) fn waited(&self) -> Waited {
        Waited { left: self.limit, was_working: true, seen: None, reported: None }
    }
}

/// What a run waits for, as far as two looks can tell it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Obstacle {
    /// The position of the run, and the number of its attempt.
    pub(super) own: (QueuePosition, u64),
    /// The run that holds its lane, and the position of that run.
    pub(super) holder: Option<(i64, Option<QueuePosition>)>,
}

/// What to do after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitStep {
    /// Look again.
    LookAgain,
    /// Report the obstacle, and look again.
    Tell,
    /// The time is up.
    GiveUp,
}

/// The rest of a patience.
#[derive(Debug)]
pub(super) struct Waited {
    left: Option<Duration>,
    /// Whether this process did something for the run at the look before; true at first.
    was_working: bool,
    seen: Option<Obstacle>,
    reported: Option<Obstacle>,
}

impl Waited {
    /// Decides after a look that found this obstacle, `elapsed` after the look before.
    pub(super) fn look(&mut self, obstacle: Obstacle, elapsed: Duration, is_working: bool) -> WaitStep {
        // Work that has just ended here may let the run begin, which only the next look sees.
        if !std::mem::replace(&mut self.was_working, is_working) && !is_working {
            self.left = self.left.map(|left| left.saturating_sub(elapsed));
            if self.left == Some(Duration::ZERO) {
                return WaitStep::GiveUp;
            }
        }
        let stands = self.seen.replace(obstacle) == Some(obstacle);
        if stands && self.reported != Some(obstacle) {
            self.reported = Some(obstacle);
            return WaitStep::Tell;
        }
        WaitStep::LookAgain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(holder: i64, place: QueuePosition) -> Obstacle {
        Obstacle { own: (QueuePosition::BehindItsLane, 1), holder: Some((holder, Some(place))) }
    }

    #[test]
    fn an_obstacle_is_reported_once_and_again_when_it_changes() {
        let mut waited = Patience::endless().waited();
        let (one, other) = (behind(1, QueuePosition::Running), behind(2, QueuePosition::Running));
        let table = [
            (one, WaitStep::LookAgain),
            (one, WaitStep::Tell),
            (one, WaitStep::LookAgain),
            (other, WaitStep::LookAgain),
            (one, WaitStep::LookAgain),
            (one, WaitStep::LookAgain),
            (other, WaitStep::LookAgain),
            (other, WaitStep::Tell),
        ];
        for (obstacle, expected) in table {
            assert_eq!(waited.look(obstacle, Duration::from_hours(1), false), expected, "{obstacle:?}");
        }
    }

    #[test]
    fn only_idle_time_counts() {
        let mut waited = Patience::of(Duration::from_mins(1)).waited();
        let obstacle = behind(1, QueuePosition::Running);
        let second = Duration::from_secs(1);
        for _ in 0..1_000 {
            assert_ne!(waited.look(obstacle, second, true), WaitStep::GiveUp, "this process works");
        }
        for _ in 0..60 {
            assert_ne!(waited.look(obstacle, second, false), WaitStep::GiveUp);
        }
        assert_eq!(waited.look(obstacle, second, false), WaitStep::GiveUp);
        let mut none = Patience::of(Duration::ZERO).waited();
        let looks = [(); 2].map(|()| none.look(obstacle, Duration::ZERO, false));
        assert_eq!(looks, [WaitStep::LookAgain, WaitStep::GiveUp]);
    }
}
