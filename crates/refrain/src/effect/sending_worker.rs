//! The worker that holds the effects which a program sends by itself: one for a process, registered when it is first needed.
//!
//! Its row is what tells every other process that this one is alive. If it is not known whether an effect was reserved, or its answer
//! could not be recorded, the worker is forgotten: its row expires when the last send under it has ended, and what it still holds is
//! taken over and in doubt. Otherwise such an effect would stay reserved for as long as the process lives.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::engine::heartbeat::Heartbeat;
use crate::store::workers::{self, WorkerTask};
use crate::store::{Result, Store};

/// The worker of a process, for effects that no loop sends.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendingWorker {
    current: Arc<Mutex<Option<Arc<Heartbeat>>>>,
    /// One registration at a time.
    registering: Arc<tokio::sync::Mutex<()>>,
}

impl SendingWorker {
    /// The worker, registered anew if there is none or its lease is lost.
    pub(crate) async fn registered(&self, store: &Store, lease: Duration) -> Result<Arc<Heartbeat>> {
        let _one_at_a_time = self.registering.lock().await;
        if let Some(heartbeat) = self.current().as_ref().filter(|heartbeat| !heartbeat.is_lost()) {
            return Ok(Arc::clone(heartbeat));
        }
        let heartbeat = Arc::new(Heartbeat::start(store, lease, WorkerTask::Sends).await?);
        *self.current() = Some(Arc::clone(&heartbeat));
        Ok(heartbeat)
    }

    /// Has the next effect sent under another worker.
    pub(crate) fn forget(&self, heartbeat: &Arc<Heartbeat>) {
        let mut current = self.current();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, heartbeat)) {
            *current = None;
        }
    }

    /// Ends its registration. What it still holds is in doubt when another process takes over.
    pub(crate) async fn retire(&self, store: &Store) {
        let heartbeat = self.current().take();
        if let Some(heartbeat) = heartbeat
            && let Err(error) = workers::retire(store, heartbeat.worker).await
        {
            tracing::warn!(%error, "a worker could not be removed; it expires by itself");
        }
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Heartbeat>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
