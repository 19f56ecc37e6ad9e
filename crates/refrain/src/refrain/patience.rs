//! How long a caller waits for a run that it cannot begin, and how it hears what it waits for.
//!
//! Only time counts in which this process does nothing for the run, at one look and at the next. While it does what is queued
//! before the run, the wait stands still: giving up then would throw that work away. What is waited for is told when two looks have found the same,
//! so a state that passes within one look is not talked about; and again when it changes.

use std::sync::Arc;
use std::time::Duration;

use refrain_core::why::Cause;

use crate::store::show::QueuePosition;

/// How long to wait, and whom to tell.
#[derive(Clone, Default)]
pub struct Patience {
    limit: Option<Duration>,
    listener: Option<Listener>,
}

/// Who hears what is waited for.
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

    /// Calls `listener` with what is waited for, and again when that changes.
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
        Waited { left: self.limit, was_working: true, seen: None, told: None }
    }
}

/// What a run waits for, as far as a look tells two of them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Obstacle {
    /// Where the run stands, and the number of its attempt.
    pub(super) own: (QueuePosition, u64),
    /// The run that holds its lane, and where that one stands.
    pub(super) holder: Option<(i64, Option<QueuePosition>)>,
}

/// What a look at an obstacle comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Look again.
    LookAgain,
    /// Tell what is waited for, and look again.
    Tell,
    /// The time is up.
    GiveUp,
}

/// What is left of a patience.
#[derive(Debug)]
pub(super) struct Waited {
    left: Option<Duration>,
    /// Whether this process did something for the run at the look before; the first look has none before it.
    was_working: bool,
    seen: Option<Obstacle>,
    told: Option<Obstacle>,
}

impl Waited {
    /// Decides after a look that found this obstacle, `elapsed` after the look before.
    pub(super) fn look(&mut self, obstacle: Obstacle, elapsed: Duration, is_working: bool) -> Step {
        // What has just ended here may let the run begin, which only the next look sees.
        if !std::mem::replace(&mut self.was_working, is_working) && !is_working {
            self.left = self.left.map(|left| left.saturating_sub(elapsed));
            if self.left == Some(Duration::ZERO) {
                return Step::GiveUp;
            }
        }
        let stands = self.seen.replace(obstacle) == Some(obstacle);
        if stands && self.told != Some(obstacle) {
            self.told = Some(obstacle);
            return Step::Tell;
        }
        Step::LookAgain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(holder: i64, place: QueuePosition) -> Obstacle {
        Obstacle { own: (QueuePosition::BehindItsLane, 1), holder: Some((holder, Some(place))) }
    }

    #[test]
    fn what_stands_is_told_once_and_again_when_it_changes() {
        let mut waited = Patience::endless().waited();
        let (one, other) = (behind(1, QueuePosition::Running), behind(2, QueuePosition::Running));
        let table = [
            (one, Step::LookAgain),
            (one, Step::Tell),
            (one, Step::LookAgain),
            (other, Step::LookAgain),
            (one, Step::LookAgain),
            (one, Step::LookAgain),
            (other, Step::LookAgain),
            (other, Step::Tell),
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
            assert_ne!(waited.look(obstacle, second, true), Step::GiveUp, "this process works");
        }
        for _ in 0..60 {
            assert_ne!(waited.look(obstacle, second, false), Step::GiveUp);
        }
        assert_eq!(waited.look(obstacle, second, false), Step::GiveUp);
        let mut none = Patience::of(Duration::ZERO).waited();
        let looks = [(); 2].map(|()| none.look(obstacle, Duration::ZERO, false));
        assert_eq!(looks, [Step::LookAgain, Step::GiveUp]);
    }
}
