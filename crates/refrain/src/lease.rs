//! The lease of a worker, for everything that must not outlive it.
//!
//! A command may run while the *lease* of its worker is renewed, not while the worker is merely alive. So the thread that renews
//! the lease passes the new end on, and no job can block that thread. The end is an instant of a clock that all processes of
//! the machine share and that runs while the machine sleeps. A duration would start when it is received: a worker that was
//! suspended while sending it would grant more than it has.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The longest wait for an instant of [`since_boot`] without reading that clock: timers stop while the machine sleeps.
pub(crate) const CLOCK_POLL: Duration = Duration::from_secs(1);

/// How often to check whether a lease was renewed.
const RENEWAL_POLL: Duration = Duration::from_millis(20);

type Listener = Box<dyn FnMut(Duration) + Send>;

/// The lease of a worker.
#[derive(Clone)]
pub(crate) struct Lease(Arc<Mutex<State>>);

struct State {
    /// Its length when it was given.
    length: Duration,
    /// Its end, by [`since_boot`].
    until: Duration,
    listeners: HashMap<u64, Listener>,
    next: u64,
}

impl Lease {
    pub(crate) fn new(until: Duration) -> Lease {
        let length = until.saturating_sub(since_boot());
        Lease(Arc::new(Mutex::new(State { length, until, listeners: HashMap::new(), next: 0 })))
    }

    /// Its end, by [`since_boot`].
    pub(crate) fn until(&self) -> Duration {
        self.state().until
    }

    /// Whether it is valid now.
    pub(crate) fn is_good(&self) -> bool {
        since_boot() < self.until()
    }

    /// Whether something irreversible may begin: the lease is valid for as long as that takes, or for a quarter of its length.
    /// If less is left, this waits for the next renewal; false if the lease expires.
    ///
    /// A quarter is enough for what takes longer, because the lease is renewed meanwhile, and a call may last longer than any
    /// lease. What must not happen is that a call begins after the lease has expired.
    pub(crate) async fn is_good_for(&self, long: Duration) -> bool {
        loop {
            let (length, until) = {
                let state = self.state();
                (state.length, state.until)
            };
            match remaining(since_boot(), until, long.min(length / 4)) {
                Remaining::Enough => return true,
                Remaining::None => return false,
                Remaining::Little(left) => tokio::time::sleep(left.min(RENEWAL_POLL)).await,
            }
        }
    }

    /// Waits until it expires.
    pub(crate) async fn expired(&self) {
        while self.is_good() {
            sleep_until(self.until()).await;
        }
    }

    /// Sets its new end, and calls the listeners in this thread.
    pub(crate) fn renew(&self, until: Duration) {
        let mut state = self.state();
        if std::mem::replace(&mut state.until, until) != until {
            state.listeners.values_mut().for_each(|listener| listener(until));
        }
    }

    /// Calls a listener each time the lease is renewed, and at once if its end is not `known`. The listener must not block.
    pub(crate) fn on_renewal(
        &self,
        known: Duration,
        mut listener: impl FnMut(Duration) + Send + 'static,
    ) -> RenewalListener {
        let mut state = self.state();
        if state.until != known {
            listener(state.until);
        }
        let number = state.next;
        state.next += 1;
        state.listeners.insert(number, Box::new(listener));
        RenewalListener { lease: self.clone(), number }
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

/// How much of a lease is left, compared to what is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remaining {
    Enough,
    /// Too little; it may be renewed within this time.
    Little(Duration),
    None,
}

fn remaining(now: Duration, until: Duration, wanted: Duration) -> Remaining {
    let left = until.saturating_sub(now);
    if left.is_zero() {
        Remaining::None
    } else if left > wanted {
        Remaining::Enough
    } else {
        Remaining::Little(left)
    }
}

/// A listener that is called until this is dropped.
#[derive(Debug)]
pub(crate) struct RenewalListener {
    lease: Lease,
    number: u64,
}

impl Drop for RenewalListener {
    fn drop(&mut self) {
        self.lease.state().listeners.remove(&self.number);
    }
}

/// The time since boot, by a clock that all processes of this machine share.
pub(crate) fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(CLOCK)).unwrap_or_default()
}

/// Waits for an instant of [`since_boot`].
pub(crate) async fn sleep_until(at: Duration) {
    loop {
        let left = at.saturating_sub(since_boot());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(CLOCK_POLL)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn nothing_begins_when_less_of_the_lease_is_left_than_it_takes() {
        let [wanted, until] = [5, 100].map(Duration::from_secs);
        for (now, room) in [
            (0, Remaining::Enough),
            (94, Remaining::Enough),
            (95, Remaining::Little(wanted)),
            (99, Remaining::Little(Duration::from_secs(1))),
            (100, Remaining::None),
            (101, Remaining::None),
        ] {
            assert_eq!(remaining(Duration::from_secs(now), until, wanted), room, "{now}");
        }
    }

    #[test]
    fn a_listener_is_called_for_each_new_end_until_it_is_dropped() {
        let [first, second, third] = [1, 2, 3].map(Duration::from_secs);
        let lease = Lease::new(first);
        let (sender, heard) = channel();
        let also = sender.clone();
        let one = lease.on_renewal(first, move |until| sender.send(('a', until)).unwrap());
        lease.renew(first);
        lease.renew(second);
        let other = lease.on_renewal(first, move |until| also.send(('b', until)).unwrap());
        drop(one);
        lease.renew(third);
        drop(other);
        lease.renew(first);
        assert_eq!(heard.iter().collect::<Vec<_>>(), [('a', second), ('b', second), ('b', third)]);
        assert_eq!(lease.until(), first);
    }
}
