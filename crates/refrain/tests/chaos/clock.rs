//! The clock that schedules read in these servers, and how the test reads it.

use jiff::{SignedDuration, Timestamp};

use refrain_harness::eventually::{DEADLINE, eventually};

/// How much faster it runs than real time.
const PACE: i32 = 5_400;

pub(crate) struct Clock {
    from: Timestamp,
    origin: Timestamp,
    until: Timestamp,
}

impl Clock {
    pub(crate) fn starting_at(origin: Timestamp, until: Timestamp) -> Clock {
        Clock { from: Timestamp::now(), origin, until }
    }

    /// The form in which a server gets it.
    pub(crate) fn variable(&self) -> String {
        format!("{} {} {PACE} {}", self.from, self.origin, self.until)
    }

    pub(crate) fn now(&self) -> Timestamp {
        let passed: SignedDuration = Timestamp::now().duration_since(self.from);
        (self.origin + passed * PACE).min(self.until)
    }

    /// Waits until the clock shows this time.
    pub(crate) async fn shows(&self, at: Timestamp) {
        eventually(&format!("it is {at}"), DEADLINE, async || self.now() >= at).await;
    }
}
