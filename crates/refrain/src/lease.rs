//! How long a worker's word is good, for those who must not outlive it.
//!
//! A command goes on while the *lease* of its worker is renewed, not while the worker merely breathes. So the moment is
//! passed on by the thread that renews it, which no job can keep busy; and it is said by a clock that all processes of the
//! machine share and that goes on while it sleeps: a span would begin to count when it is heard, and a worker that was
//! stopped in the middle of saying it would give more than it has.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The longest that anybody waits for an instant of [`since_boot`] without looking at that clock: the clocks by which one can
/// wait stand still while the machine sleeps.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

type Tell = Box<dyn FnMut(Duration) + Send>;

/// The lease of a worker, as its runs see it.
#[derive(Clone)]
pub(crate) struct Lease(Arc<Mutex<State>>);

struct State {
    /// Up to when it is good, by [`since_boot`]; it only moves while the worker is heard.
    until: Duration,
    listeners: HashMap<u64, Tell>,
    next: u64,
}

impl Lease {
    pub(crate) fn new(until: Duration) -> Lease {
        Lease(Arc::new(Mutex::new(State { until, listeners: HashMap::new(), next: 0 })))
    }

    /// Up to when it is good, by [`since_boot`].
    pub(crate) fn until(&self) -> Duration {
        self.state().until
    }

    /// It was renewed: everybody who listens is told, in the calling thread.
    pub(crate) fn renew(&self, until: Duration) {
        let mut state = self.state();
        if std::mem::replace(&mut state.until, until) != until {
            state.listeners.values_mut().for_each(|tell| tell(until));
        }
    }

    /// Tells it each time that the lease was renewed, and at once if that was after `known`. It must not wait for anything.
    pub(crate) fn told(&self, known: Duration, mut tell: impl FnMut(Duration) + Send + 'static) -> Telling {
        let mut state = self.state();
        if state.until != known {
            tell(state.until);
        }
        let number = state.next;
        state.next += 1;
        state.listeners.insert(number, Box::new(tell));
        Telling { lease: self.clone(), number }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").field("until", &self.until()).finish_non_exhaustive()
    }
}

/// Once it is dropped, nobody is told any more, nor is being told.
#[derive(Debug)]
pub(crate) struct Telling {
    lease: Lease,
    number: u64,
}

impl Drop for Telling {
    fn drop(&mut self) {
        self.lease.state().listeners.remove(&self.number);
    }
}

/// The time by a clock that all processes of this machine share.
pub(crate) fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(CLOCK)).unwrap_or_default()
}

/// Ends when it is that time by [`since_boot`].
pub(crate) async fn reached(at: Duration) {
    loop {
        let left = at.saturating_sub(since_boot());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn whoever_listens_hears_what_it_does_not_know_and_nothing_once_it_has_gone() {
        let [first, second, third] = [1, 2, 3].map(Duration::from_secs);
        let lease = Lease::new(first);
        let (sender, heard) = channel();
        let also = sender.clone();
        let one = lease.told(first, move |until| sender.send(('a', until)).unwrap());
        lease.renew(first);
        lease.renew(second);
        let other = lease.told(first, move |until| also.send(('b', until)).unwrap());
        drop(one);
        lease.renew(third);
        drop(other);
        lease.renew(first);
        assert_eq!(heard.iter().collect::<Vec<_>>(), [('a', second), ('b', second), ('b', third)]);
        assert_eq!(lease.until(), first);
    }
}
