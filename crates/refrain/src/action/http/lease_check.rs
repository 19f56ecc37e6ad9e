//! Checks the lease between connecting and the first byte of a request.
//!
//! A worker may be suspended anywhere, also while it connects, and resume after another worker has taken over and the operator
//! has decided about the unit. A check before connecting alone would miss that. So the lease is checked again on the open
//! connection, by a clock that runs while the process is suspended or the machine sleeps. What remains is the way from here to
//! the socket, on which nothing is awaited.

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

/// Checks the lease after a connector has connected.
#[derive(Debug, Clone)]
pub(super) struct LeaseCheck(pub(super) Lease);

/// Nothing was sent, because the lease had expired.
#[derive(Debug)]
pub(super) struct LeaseExpired;

impl fmt::Display for LeaseExpired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lease of this worker expired before anything was sent")
    }
}

impl Error for LeaseExpired {}

impl LeaseExpired {
    /// Whether this is why a request failed.
    pub(super) fn caused(error: &reqwest::Error) -> bool {
        let mut cause = error.source();
        while let Some(one) = cause {
            if one.is::<LeaseExpired>() {
                return true;
            }
            cause = one.source();
        }
        false
    }
}

impl<S> Layer<S> for LeaseCheck {
    type Service = LeaseChecking<S>;

    fn layer(&self, inner: S) -> LeaseChecking<S> {
        LeaseChecking { inner, lease: self.0.clone() }
    }
}

/// A connector that checks the lease.
#[derive(Debug, Clone)]
pub(super) struct LeaseChecking<S> {
    inner: S,
    lease: Lease,
}

impl<R, S> Service<R> for LeaseChecking<S>
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
                () = lease.expired(), if !is_weak => return Err(LeaseExpired.into()),
            };
            failpoint::reach("call.connected");
            if is_weak || lease.is_good() { Ok(connection) } else { Err(LeaseExpired.into()) }
        })
    }
}
