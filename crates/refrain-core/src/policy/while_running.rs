//! What a window does while an earlier run of the same job and scope is still queued or running.

words! {
    /// What to do with a window while another run of its lane is under way.
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
