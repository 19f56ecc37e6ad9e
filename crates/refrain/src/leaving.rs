//! What must be over before the ending of an attempt is recorded.
//!
//! A job is a future, and is dropped when its time is up or somebody calls it off. What it has started outside of this
//! process does not end by that; and if its ending were recorded first, the next attempt would begin beside it. So
//! whatever must be seen through is a task of its own: the job waits for it, and when the job is dropped, the executor
//! does.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;

use crate::job::JobError;

/// What a task came to by itself; none if it was cut off.
pub(crate) type Seen = Option<Result<(), JobError>>;

/// The task of an attempt that must be seen through, if there is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Leaving {
    task: Arc<Mutex<Option<Task>>>,
    settles: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Task {
    call_off: oneshot::Sender<()>,
    handle: JoinHandle<Seen>,
}

impl Leaving {
    /// Does something that must be seen through whatever becomes of the caller. It is told when it is to end.
    pub(crate) async fn see_through<F>(
        &self,
        work: impl FnOnce(oneshot::Receiver<()>) -> F,
    ) -> Result<(), JobError>
    where
        F: Future<Output = Seen> + Send + 'static,
    {
        let (call_off, called_off) = oneshot::channel();
        let mut task = self.task.lock().await;
        let begun = task.insert(Task { call_off, handle: tokio::spawn(work(called_off)) });
        let seen = (&mut begun.handle).await;
        *task = None;
        match seen {
            Ok(Some(result)) => result,
            Ok(None) => Err(JobError::lost()),
            Err(error) => Err(JobError::new(format!("panicked: {error}"))),
        }
    }

    /// Calls off what the job has left, and waits until it is over.
    pub(crate) async fn leave(&self) -> Seen {
        let Task { call_off, handle } = self.task.lock().await.take()?;
        // Nobody hears it who has ended by itself.
        let _ = call_off.send(());
        handle.await.ok().flatten()
    }

    /// The end of what was begun is known: no later attempt need be afraid of doing it twice.
    pub(crate) fn settle(&self) {
        self.settles.store(true, Ordering::Release);
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settles.load(Ordering::Acquire)
    }
}
