//! Work of an attempt that must end before the end of the attempt is recorded.
//!
//! A job is a future, which is dropped when it times out or is cancelled. That does not end processes or requests that the job
//! has started; and if the end of the attempt were recorded first, the next attempt would run beside them. So such work is a
//! task of its own: the job awaits it, and if the job is dropped, the executor does.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;

use super::JobError;

/// The result of a task; none if it was cancelled or interrupted before it had one.
pub(crate) type TaskResult = Option<Result<(), JobError>>;

/// The task of an attempt that must be awaited, if there is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct AwaitedTask {
    task: Arc<Mutex<Option<Task>>>,
    is_end_known: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Task {
    cancel: oneshot::Sender<()>,
    handle: JoinHandle<TaskResult>,
}

impl AwaitedTask {
    /// Runs a task that is awaited even if the caller is dropped. The task gets a receiver that fires when it is cancelled.
    pub(crate) async fn run_awaited<F>(
        &self,
        work: impl FnOnce(oneshot::Receiver<()>) -> F,
    ) -> Result<(), JobError>
    where
        F: Future<Output = TaskResult> + Send + 'static,
    {
        let (cancel, cancelled) = oneshot::channel();
        let mut task = self.task.lock().await;
        let begun = task.insert(Task { cancel, handle: tokio::spawn(work(cancelled)) });
        let seen = (&mut begun.handle).await;
        *task = None;
        match seen {
            Ok(Some(result)) => result,
            Ok(None) => Err(JobError::lost()),
            Err(error) => Err(JobError::new(format!("panicked: {error}"))),
        }
    }

    /// Cancels the task that the job has left running, and waits for its end.
    pub(crate) async fn cancel(&self) -> TaskResult {
        let Task { cancel, handle } = self.task.lock().await.take()?;
        // The task may have ended by itself.
        let _ = cancel.send(());
        handle.await.ok().flatten()
    }

    /// The end of the command is known, so a later attempt may execute it again.
    pub(crate) fn mark_end_known(&self) {
        self.is_end_known.store(true, Ordering::Release);
    }

    pub(crate) fn is_end_known(&self) -> bool {
        self.is_end_known.load(Ordering::Acquire)
    }
}
