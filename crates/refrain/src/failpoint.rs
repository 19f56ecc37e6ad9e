//! Named places at which tests hurt us: they kill the process, stop it, lose a reply or take a guard away.
//!
//! Places are configured by `FAILPOINTS` in the syntax of the `fail` crate, as in
//! `claim.before-commit=3*off->return(kill)`, and exist only with the cargo feature `failpoints`; without it
//! all of this is constants that the compiler removes. The words are `kill` and `stop` everywhere, `lost`
//! where a reply may be lost, `weak` where a guard may be taken away. A word that means nothing at its place
//! is a panic, and so is a weakened statement that cannot be read: a test whose fault never happens proves
//! nothing.
//!
//! | variable | meaning |
//! |---|---|
//! | `FAILPOINTS` | `place=action;…` |
//! | `REFRAIN_FAILPOINT_LOG` | a file that gets the name of each place that killed or stopped the process, or lost a reply |
//! | `REFRAIN_WEAKENED` | `statement=path;…`: the text of a statement is that of the file |
//! | `REFRAIN_TEST_CLOCK` | `FROM ORIGIN PACE UNTIL`: at `FROM` by the database it is `ORIGIN` for schedules, from there on their time goes `PACE` times as fast, and at `UNTIL` it stands; everything else reads the real clock |
//! | `REFRAIN_GUARDED` | a file whose first byte says how many transactions that write are open; whoever kills the process reads there whether that struck inside of one |

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

/// While it lives, the process is inside of a guarded section: a transaction that writes, from its beginning to the answer
/// to its commit. One that is made by default counts nothing.
#[derive(Debug, Default)]
pub struct Guarded(bool);

/// A guarded section begins.
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

/// Configures the places from the environment of this process, for all of its life. Before it nothing happens
/// anywhere.
///
/// # Panics
///
/// When the environment cannot be understood.
pub fn arm() {
    places::arm();
}

/// The process is here: where it may be killed or stopped.
pub(crate) fn reach(place: &str) {
    places::strike(place, None);
}

/// Whether the reply that was received here is to be treated as one that never came.
pub(crate) fn is_lost(place: &str) -> bool {
    places::strike(place, Some("lost"))
}

/// Whether a guard is taken away, so that a test can show that it notices.
pub(crate) fn is_weakened(guard: &str) -> bool {
    places::strike(guard, Some("weak"))
}

/// Another text for a statement, so that a test can show that it notices.
pub(crate) fn replacement(statement: &str) -> Option<&'static str> {
    places::replacement(statement)
}

/// The time that schedules read when it is `now` by the database.
pub(crate) fn schedule_time(now: Timestamp) -> Timestamp {
    clock::schedules(now)
}

/// How long to wait in truth for so much of the time that schedules read.
pub(crate) fn real_wait(length: Duration) -> Duration {
    clock::wait(length)
}

/// Whether schedules read another clock, which nobody is to doubt.
pub(crate) fn is_clock_set() -> bool {
    clock::is_set()
}
