//! How an engine behaves; every default is here.

use std::time::Duration;

/// How an engine behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How many runs this process executes at once.
    pub slots: usize,
    /// How long a worker may be silent before its runs are taken over. A heartbeat is sent three times as often.
    pub lease: Duration,
    /// How often to look for work without a notification.
    pub poll: Duration,
    /// How long running attempts may go on after the engine was asked to stop.
    pub grace: Duration,
    /// How long payloads, messages, past attempts, dedupes and alarms are kept.
    pub keep: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            slots: 32,
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(30),
            keep: Duration::from_hours(90 * 24),
        }
    }
}

impl Settings {
    /// How often a worker sends a heartbeat.
    pub(crate) fn beat(&self) -> Duration {
        self.lease / 3
    }

    /// How long a transaction may be idle before the server ends it: well below the lease.
    pub(crate) fn idle(&self) -> Duration {
        (self.lease / 4).clamp(Duration::from_millis(100), Duration::from_secs(10))
    }
}
