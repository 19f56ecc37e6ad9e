//! Whether a process that serves is ready and alive, without a query.
//!
//! A query would use a connection that happens to work, while the loops hang on others; and every client of the health endpoint
//! could make the process query the store without end. So each loop records its rounds, and the answer is read from that record:
//!
//! - **Ready**: every loop that the process starts with exists, the heartbeat was committed so recently that the lease is valid,
//!   and every loop has ticked when it was due, within two leases. A loop that is added later does not make the process unready
//!   before its first tick is overdue.
//! - **Alive**: no loop has ended by itself, and each has completed a round, with an error or without, within ten leases. A process
//!   whose store is unreachable is alive: a restart would end its attempts and help nothing.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::service::{Next, Phase, Service};
use crate::lease::{Lease, since_boot};

/// How late a tick may be, in leases, before a process does not count as ready.
const LATE: u32 = 2;
/// How late a loop may be, in leases, before it does not count as alive.
const STUCK: u32 = 10;
/// The longest that a loop waits after an error.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// What is wrong with a process that serves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unwell {
    /// It does not serve yet.
    Starting,
    /// No heartbeat was written to the store within the last lease.
    Unwritten,
    /// A loop has not looked for work in time.
    Late(&'static str),
    /// A loop has ended by itself, or hangs.
    Stuck(&'static str),
}

impl fmt::Display for Unwell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unwell::Starting => f.write_str("it does not serve yet"),
            Unwell::Unwritten => f.write_str("nothing was written to the store within the last lease"),
            Unwell::Late(name) => write!(f, "the {name} has not looked for work in time"),
            Unwell::Stuck(name) => write!(f, "the {name} has ended, or hangs"),
        }
    }
}

impl std::error::Error for Unwell {}

/// What the loops of a process have recorded.
#[derive(Clone, Default)]
pub(crate) struct Vitals(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    lease: Option<Lease>,
    loops: Vec<Arc<Loop>>,
    has_started: bool,
}

/// The last round of one loop. Instants are milliseconds of [`since_boot`].
struct Loop {
    name: &'static str,
    /// Until when its last successful tick counts.
    looked_until: AtomicU64,
    /// Until when its last round counts, with an error or without.
    round_until: AtomicU64,
    has_ended: AtomicBool,
}

impl Vitals {
    /// The worker of this process has a lease, which its heartbeat renews.
    pub(crate) fn has_lease(&self, lease: &Lease) {
        self.record().lease = Some(lease.clone());
    }

    /// The process has all the loops that it starts with. Before this, a process whose first loops are quick would count as ready
    /// without the others.
    pub(crate) fn has_started(&self) {
        self.record().has_started = true;
    }

    /// A loop whose rounds are recorded.
    pub(crate) fn watched<S: Service>(&self, service: S, idle: Duration, lease: Duration) -> Watched<S> {
        let mut record = self.record();
        let now = milliseconds(since_boot());
        let late = if record.has_started { now + milliseconds(lease * LATE) } else { now };
        let stuck = now + milliseconds(lease * STUCK);
        let own = Arc::new(Loop {
            name: S::NAME,
            looked_until: AtomicU64::new(late),
            round_until: AtomicU64::new(stuck),
            has_ended: AtomicBool::new(false),
        });
        record.loops.push(Arc::clone(&own));
        let handle = LoopHandle { own, vitals: self.clone() };
        Watched { service, handle, idle, lease, errors_count: false }
    }

    pub(crate) fn ready(&self) -> Result<(), Unwell> {
        let now = since_boot();
        let record = self.record();
        let lease = record.lease.as_ref().ok_or(Unwell::Starting)?;
        if !record.has_started {
            return Err(Unwell::Starting);
        }
        alive(&record.loops, milliseconds(now))?;
        if now >= lease.until() {
            return Err(Unwell::Unwritten);
        }
        late(&record.loops, milliseconds(now))
    }

    pub(crate) fn alive(&self) -> Result<(), Unwell> {
        alive(&self.record().loops, milliseconds(since_boot()))
    }

    fn record(&self) -> std::sync::MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn late(loops: &[Arc<Loop>], now: u64) -> Result<(), Unwell> {
    let late = loops.iter().find(|one| one.looked_until.load(Ordering::Acquire) <= now);
    late.map_or(Ok(()), |one| Err(Unwell::Late(one.name)))
}

fn alive(loops: &[Arc<Loop>], now: u64) -> Result<(), Unwell> {
    let is_stuck = |one: &&Arc<Loop>| {
        one.has_ended.load(Ordering::Acquire) || one.round_until.load(Ordering::Acquire) <= now
    };
    loops.iter().find(is_stuck).map_or(Ok(()), |one| Err(Unwell::Stuck(one.name)))
}

/// A service whose rounds are recorded.
pub(crate) struct Watched<S> {
    pub(crate) service: S,
    handle: LoopHandle,
    idle: Duration,
    lease: Duration,
    /// Whether a round with an error counts as a tick.
    errors_count: bool,
}

impl<S> Watched<S> {
    /// Counts rounds with an error as ticks. For a loop whose errors are those of another database than the store: they do not make
    /// the process unready.
    pub(crate) fn counting_errors(self) -> Watched<S> {
        Watched { errors_count: true, ..self }
    }

    fn note<E>(&self, round: &Result<Next, E>) {
        let (now, wait) = (since_boot(), wait(round.as_ref().ok().copied(), self.idle));
        let until = |leases: u32| milliseconds((now + wait).saturating_add(self.lease * leases));
        self.handle.own.round_until.store(until(STUCK), Ordering::Release);
        if round.is_ok() || self.errors_count {
            self.handle.own.looked_until.store(until(LATE), Ordering::Release);
        }
    }
}

/// How long a loop waits after a round, at most.
fn wait(next: Option<Next>, idle: Duration) -> Duration {
    match next {
        Some(Next::Now) => Duration::ZERO,
        Some(Next::After(wait)) => wait.saturating_mul(2),
        Some(Next::Idle) => idle.saturating_mul(2),
        None => BACKOFF_MAX,
    }
}

/// Keeps a loop in the record. Dropped by a panic, the loop has ended by itself and stays in the record. Dropped otherwise, it was
/// told to end, and is removed; without the last one the record is empty, should the process serve again.
struct LoopHandle {
    own: Arc<Loop>,
    vitals: Vitals,
}

impl Drop for LoopHandle {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(service = self.own.name, "a loop panicked");
            self.own.has_ended.store(true, Ordering::Release);
            return;
        }
        let mut record = self.vitals.record();
        record.loops.retain(|one| !Arc::ptr_eq(one, &self.own));
        if record.loops.is_empty() {
            *record = Record::default();
        }
    }
}

impl<S: Service> Service for &mut Watched<S> {
    const NAME: &'static str = S::NAME;
    const UNTIL: Phase = S::UNTIL;
    type Error = S::Error;

    async fn tick(&mut self) -> Result<Next, S::Error> {
        let round = self.service.tick().await;
        self.note(&round);
        round
    }
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    struct Scripted(Vec<Result<Next, &'static str>>);

    impl Service for Scripted {
        const NAME: &'static str = "scripted";
        type Error = &'static str;

        async fn tick(&mut self) -> Result<Next, &'static str> {
            self.0.remove(0)
        }
    }

    #[tokio::test]
    async fn a_started_process_is_ready_while_its_lease_is_valid_and_its_loops_tick() {
        let vitals = Vitals::default();
        assert_eq!((vitals.ready(), vitals.alive()), (Err(Unwell::Starting), Ok(())));
        let rounds = vec![Err("the store is away"), Ok(Next::Idle)];
        let mut watched = vitals.watched(Scripted(rounds), LEASE, LEASE);
        let lease = Lease::new(since_boot() + LEASE);
        vitals.has_lease(&lease);
        assert_eq!(vitals.ready(), Err(Unwell::Starting), "other loops may still be missing");
        vitals.has_started();
        assert_eq!(vitals.ready(), Err(Unwell::Late("scripted")), "it has not ticked yet");
        let mut service = &mut watched;
        service.tick().await.unwrap_err();
        assert_eq!((vitals.ready(), vitals.alive()), (Err(Unwell::Late("scripted")), Ok(())));
        service.tick().await.unwrap();
        assert_eq!(vitals.ready(), Ok(()));
        let _later = vitals.watched(Scripted(Vec::new()), LEASE, LEASE);
        assert_eq!(vitals.ready(), Ok(()), "a loop that is added later has time for its first tick");
        lease.renew(Duration::ZERO);
        assert_eq!((vitals.ready(), vitals.alive()), (Err(Unwell::Unwritten), Ok(())));
    }

    #[tokio::test]
    async fn a_process_that_serves_again_is_not_judged_by_its_former_loops() {
        let vitals = Vitals::default();
        for _ in 0..2 {
            assert_eq!((vitals.ready(), vitals.alive()), (Err(Unwell::Starting), Ok(())));
            let mut watched = vitals.watched(Scripted(vec![Ok(Next::Idle)]), LEASE, LEASE);
            let other = vitals.watched(Scripted(Vec::new()), LEASE, LEASE);
            vitals.has_lease(&Lease::new(since_boot() + LEASE));
            vitals.has_started();
            (&mut watched).tick().await.unwrap();
            assert_eq!(vitals.ready(), Err(Unwell::Late("scripted")), "the other one has not ticked");
            drop(other);
            assert_eq!(vitals.ready(), Ok(()));
        }
    }

    #[test]
    fn a_loop_is_late_before_it_is_stuck_and_a_panic_ends_it() {
        let with = |looked, round, ended| {
            Arc::new(Loop {
                name: "loop",
                looked_until: AtomicU64::new(looked),
                round_until: AtomicU64::new(round),
                has_ended: AtomicBool::new(ended),
            })
        };
        let (is_late, stuck) = (Err(Unwell::Late("loop")), Err(Unwell::Stuck("loop")));
        for (one, now, expected) in [
            (with(10, 20, false), 9, (Ok(()), Ok(()))),
            (with(10, 20, false), 10, (is_late.clone(), Ok(()))),
            (with(10, 20, false), 20, (is_late, stuck.clone())),
            (with(10, 20, true), 1, (Ok(()), stuck)),
        ] {
            let loops = [one];
            assert_eq!((late(&loops, now), alive(&loops, now)), expected, "at {now}");
        }
        let vitals = Vitals::default();
        let watched = vitals.watched(Scripted(Vec::new()), LEASE, LEASE);
        let panicked = std::thread::spawn(move || {
            let _watched = watched;
            panic!("a test");
        });
        assert!(panicked.join().is_err());
        assert_eq!(vitals.alive(), Err(Unwell::Stuck("scripted")));
    }
}
