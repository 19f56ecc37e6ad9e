//! Named places in the code at which tests kill the process, suspend it, lose a reply or remove a guard.
//!
//! Places are configured by `FAILPOINTS` in the syntax of the `fail` crate, for example
//! `claim.before-commit=3*off->return(kill)`, and exist only with the cargo feature `failpoints`; without it all of this is
//! constants that the compiler removes. The actions are `kill` and `stop` everywhere, `lost` where a reply may be lost, and
//! `weak` where a guard may be removed. An action that has no meaning at its place is a panic, and so is a weakened statement
//! that cannot be read: a test whose fault never happens proves nothing.
//!
//! | variable | meaning |
//! |---|---|
//! | `FAILPOINTS` | `place=action;…` |
//! | `REFRAIN_FAILPOINT_LOG` | a file that gets the name of each place that killed or suspended the process, or lost a reply |
//! | `REFRAIN_WEAKENED` | `statement=path;…`: replaces the text of a statement by that of the file |
//! | `REFRAIN_TEST_CLOCK` | `FROM ORIGIN PACE UNTIL`: for schedules, `FROM` by the database is `ORIGIN`; from there on time runs `PACE` times as fast, and stops at `UNTIL`; everything else reads the real clock |
//! | `REFRAIN_GUARDED` | a file whose first byte is the number of open writing transactions; a test that kills the process reads from it whether the kill hit one |

use std::time::Duration;

use jiff::Timestamp;

#[cfg(feature = "failpoints")]
#[path = "failpoint/armed.rs"]
mod places;

#[cfg(feature = "failpoints")]
mod clock;

#[cfg(not(feature = "failpoints"))]
mod clock {
    use super::{Duration, Timestamp};

    pub(super) const fn schedules(now: Timestamp) -> Timestamp {
        now
    }

    pub(super) const fn wait(length: Duration) -> Duration {
        length
    }

    pub(super) const fn is_set() -> bool {
        false
    }
}

#[cfg(not(feature = "failpoints"))]
mod places {
    pub(super) const fn arm() {}

    pub(super) const fn strike(_place: &str, _word: Option<&str>) -> bool {
        false
    }

    pub(super) const fn replacement(_statement: &str) -> Option<&'static str> {
        None
    }

    pub(super) const fn count(_step: i8) {}
}

/// While this exists, the process is in a guarded section: a writing transaction, from its begin to the answer to its commit.
/// The default value counts nothing.
#[derive(Debug, Default)]
pub struct Guarded(bool);

/// Begins a guarded section.
pub(crate) fn guarded() -> Guarded {
    places::count(1);
    Guarded(true)
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if self.0 {
            places::count(-1);
        }
    }
}

/// Configures the places from the environment of this process. Before this call no place does anything.
///
/// # Panics
///
/// If the environment is not valid.
pub fn arm() {
    places::arm();
}

/// A place at which the process may be killed or suspended.
pub(crate) fn reach(place: &str) {
    places::strike(place, None);
}

/// Whether the reply that was received here is treated as lost.
pub(crate) fn is_lost(place: &str) -> bool {
    places::strike(place, Some("lost"))
}

/// Whether a guard is removed, so that a test can show that it notices.
pub(crate) fn is_weakened(guard: &str) -> bool {
    places::strike(guard, Some("weak"))
}

/// The replacement for the text of a statement, so that a test can show that it notices.
pub(crate) fn replacement(statement: &str) -> Option<&'static str> {
    places::replacement(statement)
}

/// The time for schedules when it is `now` by the database.
pub(crate) fn schedule_time(now: Timestamp) -> Timestamp {
    clock::schedules(now)
}

/// The real duration of a duration by the clock of schedules.
pub(crate) fn real_wait(length: Duration) -> Duration {
    clock::wait(length)
}

/// Whether a test has set the clock of schedules, so that it is believed.
pub(crate) fn is_clock_set() -> bool {
    clock::is_set()
}
