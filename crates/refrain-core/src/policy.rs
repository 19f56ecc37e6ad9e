//! Policies: the decisions about retries, overlap, alarms and redone work.
//!
//! Each is a value or a pure function that the engine asks. The modules are re-exported at the crate root. Policies that are
//! a word of a closed set are in this file.

pub mod person;
pub mod redo;
pub mod retry;
pub mod search;
pub mod spike;

words! {
    /// The subject of an alarm: a fact for the operator, raised once, that stops nothing.
    AlarmKind, "alarm kind" {
        /// A job deduplicates far more than it did the day before.
        DedupeSpike = "dedupe-spike",
        /// An open transaction keeps a source from being read any further.
        HorizonPinned = "horizon-pinned",
        /// A window is not done although its grace has passed.
        RunLate = "run-late",
    }
}

words! {
    /// What to do with a window while another run of its lane is open.
    ///
    /// ```
    /// use refrain_core::WhileRunning;
    ///
    /// assert_eq!("skip".parse(), Ok(WhileRunning::Skip));
    /// assert_eq!(WhileRunning::default(), WhileRunning::Queue);
    /// ```
    #[derive(Default)]
    WhileRunning, "rule for windows that come while another runs" {
        /// It waits, the oldest window first.
        #[default]
        Queue = "queue",
        /// It is skipped, and its row says why.
        Skip = "skip",
        /// It runs beside the other.
        Allow = "allow",
    }
}
