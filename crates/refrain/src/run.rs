//! What a job sees of the attempt it is doing.

use refrain_core::{JobName, RunId, Scope, Window};

/// One attempt of a run: what it is about, and who it is.
///
/// There is no clock in here. What a run is about comes from its window or its key, so an attempt next week is
/// about the same.
#[derive(Debug, Clone)]
pub struct Run {
    pub(crate) id: RunId,
    pub(crate) job: JobName,
    pub(crate) key: String,
    pub(crate) window: Option<Window>,
    pub(crate) scope: Scope,
    pub(crate) attempt: u64,
    pub(crate) payload: Option<String>,
}

impl Run {
    /// The id of the run: the same on every machine, for ever.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// The job.
    pub fn job(&self) -> &JobName {
        &self.job
    }

    /// The key under which the run exists once: the caller's, or the window's start and the scope.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The window it is about; none for an enqueued key.
    pub fn window(&self) -> Option<Window> {
        self.window
    }

    /// Which part of the world it is about; empty when there is only one.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The number of this attempt. It only grows, and fences off those before.
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// What the caller gave with the key, as JSON.
    pub fn payload(&self) -> Option<&str> {
        self.payload.as_deref()
    }
}
