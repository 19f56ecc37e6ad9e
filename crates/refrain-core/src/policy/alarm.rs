//! What an alarm may be about.
//!
//! An alarm is a fact for a person: it is raised once, stays written down, and stops nothing. Its kind is a word, for it is
//! stored, printed and chosen by.

words! {
    /// What an alarm is about.
    AlarmKind, "alarm kind" {
        /// A job deduplicates far more than it did the day before.
        DedupeSpike = "dedupe-spike",
        /// A transaction that was left open keeps a source from being read any further.
        HorizonPinned = "horizon-pinned",
        /// A window should have been done by now, and is not.
        RunLate = "run-late",
    }
}
