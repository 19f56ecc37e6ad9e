//! How an engine behaves; every default is here.

use std::time::Duration;

/// How an engine behaves.
///
/// ```
/// use refrain::Settings;
/// use std::time::Duration;
///
/// let settings = Settings::new().slots(4).lease(Duration::from_secs(10));
/// assert_eq!(settings.grace, Settings::default().grace);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
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
        Settings::new()
    }
}

impl Settings {
    /// The defaults.
    pub const fn new() -> Settings {
        Settings {
            slots: 32,
            lease: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            grace: Duration::from_secs(30),
            keep: Duration::from_hours(90 * 24),
        }
    }

    /// Sets [`slots`](Self::slots).
    #[must_use]
    pub const fn slots(self, slots: usize) -> Settings {
        Settings { slots, ..self }
    }

    /// Sets [`lease`](Self::lease).
    #[must_use]
    pub const fn lease(self, lease: Duration) -> Settings {
        Settings { lease, ..self }
    }

    /// Sets [`poll`](Self::poll).
    #[must_use]
    pub const fn poll(self, poll: Duration) -> Settings {
        Settings { poll, ..self }
    }

    /// Sets [`grace`](Self::grace).
    #[must_use]
    pub const fn grace(self, grace: Duration) -> Settings {
        Settings { grace, ..self }
    }

    /// Sets [`keep`](Self::keep).
    #[must_use]
    pub const fn keep(self, keep: Duration) -> Settings {
        Settings { keep, ..self }
    }

    /// How often a worker sends a heartbeat.
    pub(crate) fn beat(&self) -> Duration {
        self.lease / 3
    }

    /// How long a transaction may be idle before the server ends it: well below the lease.
    pub(crate) fn idle(&self) -> Duration {
        (self.lease / 4).clamp(Duration::from_millis(100), Duration::from_secs(10))
    }
}
