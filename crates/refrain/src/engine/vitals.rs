//! Whether a process that serves lives and can work, known without asking the store.
//!
//! A question to the store would be answered by a connection that happens to work, while the loops hang on others; and
//! whoever may ask the process could make it ask the store without end. So the loops leave word of what they have done, and
//! an answer is a look at that word:
//!
//! - **Ready**: every loop that the process starts with is there, the heartbeat was written and committed so recently that the
//!   lease is good, and every loop has looked when it was due, give or take two leases. A loop that is added later does not make
//!   the process unready before its first look is overdue.
//! - **Alive**: no loop has ended by itself, and each has come round, with an error or without, give or take ten leases. A store
//!   that is away leaves a process alive: to start it again would end what it runs and help nobody.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::service::{Next, Phase, Service};
use crate::lease::{Lease, since_boot};

/// How late a look may be, in leases, before a process does not count as ready.
const LATE: u32 = 2;
/// How late a loop may be, in leases, before it does not count as alive.
const STUCK: u32 = 10;
/// The longest that a loop waits after an error.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// What is wrong with a process that serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwell {
    /// It does not serve yet.
    Starting,
    /// Nothing was written to the store within the last lease.
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

/// What the loops of a process have said of themselves.
#[derive(Clone, Default)]
pub(crate) struct Vitals(Arc<Mutex<Said>>);

#[derive(Default)]
struct Said {
    lease: Option<Lease>,
    loops: Vec<Arc<Loop>>,
    has_started: bool,
}

/// The last word of one loop. Instants are milliseconds of [`since_boot`].
struct Loop {
    name: &'static str,
    /// Up to when its last look that went well counts.
    looked_until: AtomicU64,
    /// Up to when its last round counts, however it went.
    round_until: AtomicU64,
    has_ended: AtomicBool,
}

impl Vitals {
    /// The worker of this process has a lease, which its heartbeat renews.
    pub(crate) fn lives_by(&self, lease: &Lease) {
        self.said().lease = Some(lease.clone());
    }

    /// The process has all the loops that it starts with. Before, a process whose first loops are quick would count as ready
    /// while the others are still to come.
    pub(crate) fn has_started(&self) {
        self.said().has_started = true;
    }

    /// A loop that leaves word of each round.
    pub(crate) fn watched<S: Service>(&self, service: S, idle: Duration, lease: Duration) -> Watched<S> {
        let mut said = self.said();
        let now = milliseconds(since_boot());
        let late = if said.has_started { now + milliseconds(lease * LATE) } else { now };
        let stuck = now + milliseconds(lease * STUCK);
        let own = Arc::new(Loop {
            name: S::NAME,
            looked_until: AtomicU64::new(late),
            round_until: AtomicU64::new(stuck),
            has_ended: AtomicBool::new(false),
        });
        said.loops.push(Arc::clone(&own));
        let word = Word { own, vitals: self.clone() };
        Watched { service, word, idle, lease, errors_count: false }
    }

    pub(crate) fn ready(&self) -> Result<(), Unwell> {
        let now = since_boot();
        let said = self.said();
        let lease = said.lease.as_ref().ok_or(Unwell::Starting)?;
        if !said.has_started {
            return Err(Unwell::Starting);
        }
        alive(&said.loops, milliseconds(now))?;
        if now >= lease.until() {
            return Err(Unwell::Unwritten);
        }
        late(&said.loops, milliseconds(now))
    }

    pub(crate) fn alive(&self) -> Result<(), Unwell> {
        alive(&self.said().loops, milliseconds(since_boot()))
    }

    fn said(&self) -> std::sync::MutexGuard<'_, Said> {
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

/// A service whose rounds are known.
pub(crate) struct Watched<S> {
    pub(crate) service: S,
    word: Word,
    idle: Duration,
    lease: Duration,
    /// Whether a round that failed is a look all the same.
    errors_count: bool,
}

impl<S> Watched<S> {
    /// The same for a loop whose errors are those of a database beside the store: that one does not keep the process from
    /// its other work.
    pub(crate) fn whatever_it_finds(self) -> Watched<S> {
        Watched { errors_count: true, ..self }
    }

    fn note<E>(&self, round: &Result<Next, E>) {
        let (now, wait) = (since_boot(), wait(round.as_ref().ok().copied(), self.idle));
        let until = |leases: u32| milliseconds((now + wait).saturating_add(self.lease * leases));
        self.word.own.round_until.store(until(STUCK), Ordering::Release);
        if round.is_ok() || self.errors_count {
            self.word.own.looked_until.store(until(LATE), Ordering::Release);
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

/// The word of a loop that goes on. Dropped by a panic, the loop has ended by itself and stays in the list. Dropped otherwise, it was
/// told to end, and nothing more is expected of it; after the last one a process starts anew, should it serve again.
struct Word {
    own: Arc<Loop>,
    vitals: Vitals,
}

impl Drop for Word {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(service = self.own.name, "a loop has ended by a panic");
            self.own.has_ended.store(true, Ordering::Release);
            return;
        }
        let mut said = self.vitals.said();
        said.loops.retain(|one| !Arc::ptr_eq(one, &self.own));
        if said.loops.is_empty() {
            *said = Said::default();
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
    async fn a_process_is_ready_when_it_has_started_while_its_lease_is_good_and_its_loops_look() {
        let vitals = Vitals::default();
        assert_eq!((vitals.ready(), vitals.alive()), (Err(Unwell::Starting), Ok(())));
        let rounds = vec![Err("the store is away"), Ok(Next::Idle)];
        let mut watched = vitals.watched(Scripted(rounds), LEASE, LEASE);
        let lease = Lease::new(since_boot() + LEASE);
        vitals.lives_by(&lease);
        assert_eq!(vitals.ready(), Err(Unwell::Starting), "other loops may be still to come");
        vitals.has_started();
        assert_eq!(vitals.ready(), Err(Unwell::Late("scripted")), "it has not looked yet");
        let mut service = &mut watched;
        service.tick().await.unwrap_err();
        assert_eq!((vitals.ready(), vitals.alive()), (Err(Unwell::Late("scripted")), Ok(())));
        service.tick().await.unwrap();
        assert_eq!(vitals.ready(), Ok(()));
        let _later = vitals.watched(Scripted(Vec::new()), LEASE, LEASE);
        assert_eq!(vitals.ready(), Ok(()), "a loop that is added later has time for its first look");
        lease.renew(Duration::ZERO);
        assert_eq!((vitals.ready(), vitals.alive()), (Err(Unwell::Unwritten), Ok(())));
    }

    #[tokio::test]
    async fn a_process_that_has_served_and_serves_again_is_not_judged_by_the_loops_it_had() {
        let vitals = Vitals::default();
        for _ in 0..2 {
            assert_eq!((vitals.ready(), vitals.alive()), (Err(Unwell::Starting), Ok(())));
            let mut watched = vitals.watched(Scripted(vec![Ok(Next::Idle)]), LEASE, LEASE);
            let other = vitals.watched(Scripted(Vec::new()), LEASE, LEASE);
            vitals.lives_by(&Lease::new(since_boot() + LEASE));
            vitals.has_started();
            (&mut watched).tick().await.unwrap();
            assert_eq!(vitals.ready(), Err(Unwell::Late("scripted")), "the other one has not looked");
            drop(other);
            assert_eq!(vitals.ready(), Ok(()));
        }
    }

    #[test]
    fn a_loop_is_late_before_it_is_stuck_and_a_panic_is_the_end_of_it() {
        let word = |looked, round, ended| {
            Arc::new(Loop {
                name: "loop",
                looked_until: AtomicU64::new(looked),
                round_until: AtomicU64::new(round),
                has_ended: AtomicBool::new(ended),
            })
        };
        let (late_word, stuck) = (Err(Unwell::Late("loop")), Err(Unwell::Stuck("loop")));
        for (said, now, expected) in [
            (word(10, 20, false), 9, (Ok(()), Ok(()))),
            (word(10, 20, false), 10, (late_word.clone(), Ok(()))),
            (word(10, 20, false), 20, (late_word, stuck.clone())),
            (word(10, 20, true), 1, (Ok(()), stuck)),
        ] {
            let loops = [said];
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
