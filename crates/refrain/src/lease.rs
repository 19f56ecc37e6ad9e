//! How long a worker's word is good, for those who must not outlive it.
//!
//! A command goes on while the *lease* of its worker is renewed, not while the worker merely breathes. So the moment is
//! passed on by the thread that renews it, which no job can keep busy; and it is said by a clock that all processes of the
//! machine share and that goes on while it sleeps: a span would begin to count when it is heard, and a worker that was
//! stopped in the middle of saying it would give more than it has.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The lease of a worker, as its runs see it.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    /// Up to when it is good; it only moves while the worker is heard.
    deadline: watch::Receiver<Instant>,
    /// The thread that renews it.
    thread: Handle,
}

impl Lease {
    pub(crate) fn new(deadline: watch::Receiver<Instant>, thread: Handle) -> Lease {
        Lease { deadline, thread }
    }

    /// Up to when it is good, by [`since_boot`].
    pub(crate) fn until(&self) -> Duration {
        until(*self.deadline.borrow())
    }

    /// Tells it each time that the lease was renewed.
    pub(crate) fn told(&self, mut tell: impl FnMut(Duration) + Send + 'static) -> Telling {
        let mut deadline = self.deadline.clone();
        let task = self.thread.spawn(async move {
            while deadline.changed().await.is_ok() {
                let moved = *deadline.borrow_and_update();
                tell(until(moved));
            }
        });
        Telling(task.abort_handle())
    }
}

/// Dropped, nobody is told any more.
#[derive(Debug)]
pub(crate) struct Telling(AbortHandle);

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The shared clock is read first: whoever is stopped between the two says too little, never too much.
fn until(deadline: Instant) -> Duration {
    let now = since_boot();
    now + deadline.saturating_duration_since(Instant::now())
}

/// The time by a clock that all processes of this machine share.
pub(crate) fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(CLOCK)).unwrap_or_default()
}
