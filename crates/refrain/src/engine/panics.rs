//! Panics of jobs, as values.
//!
//! A job that panics must not end its worker: the panic is an error of that job alone.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

use crate::run::JobError;

/// Turns a panic of a job into an error of that job.
pub(super) async fn caught(work: impl Future<Output = Result<(), JobError>>) -> Result<(), JobError> {
    unwound(work).await.unwrap_or_else(|text| Err(JobError::panicked(format!("panicked: {text}"))))
}

/// The output of a future, or the message with which it panicked.
pub(super) async fn unwound<T>(work: impl Future<Output = T>) -> Result<T, String> {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.map_or_else(
            |panic| {
                let text = panic.downcast_ref::<&str>().map(ToString::to_string);
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
                std::task::Poll::Ready(Err(text))
            },
            |polled| polled.map(Ok),
        )
    })
    .await
}
