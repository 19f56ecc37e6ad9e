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

/// How often somebody looks who waits for a lease to be renewed.
const GLANCE: Duration = Duration::from_millis(20);

type Tell = Box<dyn FnMut(Duration) + Send>;

/// The lease of a worker, as its runs see it.
#[derive(Clone)]
pub(crate) struct Lease(Arc<Mutex<State>>);

struct State {
    /// How long it was good when it was given.
    length: Duration,
    /// Up to when it is good, by [`since_boot`]; it only moves while the worker is heard.
    until: Duration,
    listeners: HashMap<u64, Tell>,
    next: u64,
}

impl Lease {
    pub(crate) fn new(until: Duration) -> Lease {
        let length = until.saturating_sub(since_boot());
        Lease(Arc::new(Mutex::new(State { length, until, listeners: HashMap::new(), next: 0 })))
    }

    /// Up to when it is good, by [`since_boot`].
    pub(crate) fn until(&self) -> Duration {
        self.state().until
    }

    /// Whether it is good at this moment.
    pub(crate) fn is_good(&self) -> bool {
        since_boot() < self.until()
    }

    /// Whether something that cannot be taken back may be begun: the lease is good for as long as that takes, or for a quarter
    /// of its length. If less is left, the next renewal is waited for; false if there is none.
    ///
    /// Why a quarter is enough for what takes longer: the lease is renewed meanwhile, and a call may last longer than any
    /// lease. What must not happen is that it begins when the lease is over.
    pub(crate) async fn is_good_for(&self, long: Duration) -> bool {
        loop {
            let (length, until) = {
                let state = self.state();
                (state.length, state.until)
            };
            match judged(since_boot(), until, long.min(length / 4)) {
                Room::Enough => return true,
                Room::None => return false,
                Room::Little(left) => tokio::time::sleep(left.min(GLANCE)).await,
            }
        }
    }

    /// Ends when it is over.
    pub(crate) async fn over(&self) {
        while self.is_good() {
            reached(self.until()).await;
        }
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

/// How much of a lease is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Enough,
    /// It may be renewed within so long.
    Little(Duration),
    None,
}

fn judged(now: Duration, until: Duration, wanted: Duration) -> Room {
    let left = until.saturating_sub(now);
    if left.is_zero() {
        Room::None
    } else if left > wanted {
        Room::Enough
    } else {
        Room::Little(left)
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
    fn nothing_begins_when_less_of_the_lease_is_left_than_it_takes() {
        let [wanted, until] = [5, 100].map(Duration::from_secs);
        for (now, room) in [
            (0, Room::Enough),
            (94, Room::Enough),
            (95, Room::Little(wanted)),
            (99, Room::Little(Duration::from_secs(1))),
            (100, Room::None),
            (101, Room::None),
        ] {
            assert_eq!(judged(Duration::from_secs(now), until, wanted), room, "{now}");
        }
    }

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
