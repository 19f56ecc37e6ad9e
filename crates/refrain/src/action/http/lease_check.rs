//! The last look at the lease, between a connection and the first byte of a request.
//!
//! A worker may be stopped anywhere, also while it connects, and go on when another one has taken over and a person has decided what
//! becomes of the unit. A look before the connection alone would not see that: it is made again when the connection is there, by
//! the clock that goes on while the process is stopped or the machine sleeps. What is left is the way from here to the socket,
//! in which nothing is waited for.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

use crate::failpoint;
use crate::lease::Lease;

type BoxError = Box<dyn Error + Send + Sync>;

/// Puts a last look behind whatever connects.
#[derive(Debug, Clone)]
pub(super) struct LeaseCheck(pub(super) Lease);

/// Nothing was sent: the lease was over before that.
#[derive(Debug)]
pub(super) struct TooLate;

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lease of this worker was over before anything was sent")
    }
}

impl Error for TooLate {}

impl TooLate {
    /// Whether this is why a request failed.
    pub(super) fn caused(error: &reqwest::Error) -> bool {
        let mut cause = error.source();
        while let Some(one) = cause {
            if one.is::<TooLate>() {
                return true;
            }
            cause = one.source();
        }
        false
    }
}

impl<S> Layer<S> for LeaseCheck {
    type Service = Looking<S>;

    fn layer(&self, inner: S) -> Looking<S> {
        Looking { inner, lease: self.0.clone() }
    }
}

/// Connects, and looks.
#[derive(Debug, Clone)]
pub(super) struct Looking<S> {
    inner: S,
    lease: Lease,
}

impl<R, S> Service<R> for Looking<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
    S::Response: Send,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (connecting, lease) = (self.inner.call(request), self.lease.clone());
        Box::pin(async move {
            let is_weak = failpoint::is_weakened("call.unlooked");
            let connection = tokio::select! {
                connected = connecting => connected?,
                () = lease.over(), if !is_weak => return Err(TooLate.into()),
            };
            failpoint::reach("call.connected");
            if is_weak || lease.is_good() { Ok(connection) } else { Err(TooLate.into()) }
        })
    }
}
