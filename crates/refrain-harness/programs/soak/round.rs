//! One round on one database: processes are started and killed until there were enough kills; then
//! the remaining work is finished and judged; then refused content is corrected, finished, and
//! judged again.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use refrain::Refrain;
use refrain::core::random::{Random, SeededRandom, duration_up_to};
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::arena::{Arena, Hurt, Kind};
use crate::destination::Rows;
use crate::fault::Fault;
use crate::feeder::Feeder;
use crate::oracle::{Findings, judge};
use crate::report::Report;
use crate::support::children::ChildProcess;
use crate::support::eventually::DEADLINE;
use crate::worker::LEASE;

/// How many processes work at once.
const SEATS: u64 = 3;
/// How many processes finish the remaining work.
const LAST: usize = 2;
const LAST_MAX: usize = 4;
/// How long a process may take to reach the place where it is killed.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// The longest delay of a message when the network is slow.
const SLOW: Duration = Duration::from_millis(40);
const TOLD_EVERY: usize = 100;
/// A line that is never printed: waiting for it means waiting for the end.
const NO_LINE: &str = "\0";
const LOOK: Duration = Duration::from_millis(10);

/// The counts so far.
struct Round {
    arena: Arena,
    seed: u64,
    /// How many kills remain.
    left: AtomicUsize,
    kills: AtomicUsize,
    inside: AtomicUsize,
    zombies: AtomicUsize,
    is_over: AtomicBool,
}

pub(crate) async fn round(kind: Kind, kills: usize, seed: u64) -> Report {
    let begun = Instant::now();
    let arena = Arena::make(kind).await;
    Refrain::migrate(&arena.own.store).await.unwrap();
    let [store, destination] = [arena.store().await, arena.destination().await];
    for rows in [&store, &destination] {
        rows.prepare().await;
    }
    let mut feeder = Feeder::new(&arena, seed).await.unwrap();
    feeder.more().await;

    let count = AtomicUsize::default;
    let (left, is_over) = (AtomicUsize::new(kills), AtomicBool::default());
    let round = Round { arena, seed, left, kills: count(), inside: count(), zombies: count(), is_over };
    let round = Arc::new(round);
    let mut seats = JoinSet::new();
    for number in 0..SEATS {
        seats.spawn(seat(Arc::clone(&round), number));
    }
    let over = Arc::clone(&round);
    let feeding = tokio::spawn(feeder.feed(move || over.is_over.load(Ordering::SeqCst)));
    let hurting = tokio::spawn(hurt(Arc::clone(&round)));
    seats.join_all().await;
    round.is_over.store(true, Ordering::SeqCst);
    let (mut feeder, harm) = (feeding.await.unwrap(), hurting.await.unwrap());

    let mut findings = Findings::default();
    finish(&round.arena, &feeder, &mut findings).await;
    judge(&store, &destination, &feeder, &round.arena, false, &mut findings).await;
    std::fs::write(round.arena.own.directory.join("mended"), "").unwrap();
    for rows in [&store, &destination] {
        rows.unpark_all().await;
    }
    feeder.more().await;
    finish(&round.arena, &feeder, &mut findings).await;
    let units = judge(&store, &destination, &feeder, &round.arena, true, &mut findings).await;

    let lost = |place: &String| place.rsplit('.').next() == Some("reply");
    let replies = round.arena.struck().into_iter().filter(lost).count();
    let cuts = round.arena.hurt.as_ref().map_or(0, |hurt| hurt.proxy.cuts());
    Report {
        kind,
        seed,
        kills: round.kills.load(Ordering::SeqCst),
        inside: round.inside.load(Ordering::SeqCst),
        zombies: round.zombies.load(Ordering::SeqCst),
        harm,
        replies: replies + cuts,
        units,
        findings,
        seconds: begun.elapsed().as_secs(),
    }
}

/// Starts one process after another, each until it is killed.
async fn seat(round: Arc<Round>, number: u64) {
    let mut random = SeededRandom::of_member(round.seed, number);
    let guarded = round.arena.own.directory.join(format!("guarded-{number}"));
    let take = |left: usize| left.checked_sub(1);
    while round.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok() {
        let fault = Fault::draw(&mut random);
        // A store that is down accepts no connection; the next process may find it running.
        while !round.is_killed_by(&fault, &guarded).await {
            sleep(LOOK).await;
        }
    }
}

impl Round {
    /// Starts a process and injects this fault. False: it ended by itself.
    async fn is_killed_by(&self, fault: &Fault, guarded: &PathBuf) -> bool {
        let path = guarded.display().to_string();
        std::fs::write(guarded, [0]).unwrap();
        let variables = [("FAILPOINTS", fault.failpoints()), ("REFRAIN_GUARDED", path.as_str())];
        let mut process = self.arena.start("work", &variables);
        // On a slow machine, or while the store is unreachable, this takes as long as needed; an ended process prints
        // no more.
        let is_serving = matches!(timeout(DEADLINE, process.line_with("serving")).await, Ok(Some(_)));
        // There may be no work left for it.
        if is_serving && matches!(timeout(PATIENCE, process.line_with("begun")).await, Ok(Some(_))) {
            match fault {
                Fault::Kill { after } | Fault::Lose { after, .. } => sleep(*after).await,
                Fault::KillAt { .. } => drop(timeout(PATIENCE, process.line_with(NO_LINE)).await),
                Fault::Stop { after, length } => {
                    sleep(*after).await;
                    self.stop(&process, *length, guarded).await;
                    sleep(*after * 2).await;
                }
            }
        }
        process.signal(Signal::KILL);
        // It may also have ended by itself, at a commit before it serves.
        let is_killed = process.wait().await.signal() == Some(Signal::KILL.as_raw());
        if is_killed {
            let kills = self.kills.fetch_add(1, Ordering::SeqCst) + 1;
            if kills.is_multiple_of(TOLD_EVERY) {
                eprintln!("{}: {kills} kills", self.arena.kind);
            }
            if is_inside(guarded) {
                self.inside.fetch_add(1, Ordering::SeqCst);
            }
        }
        is_killed
    }

    /// Stops a process until its lease has ended, and continues it. A process that holds a SQLite file is
    /// ended by the worker that takes over; so the others pretend to be on another machine, where no worker
    /// can end them.
    async fn stop(&self, process: &ChildProcess, length: Duration, guarded: &Path) {
        process.signal(Signal::STOP);
        if self.arena.kind == Kind::Sqlite && !is_inside(guarded) {
            let elsewhere = format!(
                "update refrain_workers set process = 'elsewhere/1/1/1' where process like '%/{}/%'",
                process.id()
            );
            let _ = self.arena.store().await.execute(&elsewhere).await;
        }
        sleep(length).await;
        process.signal(Signal::CONT);
        self.zombies.fetch_add(1, Ordering::SeqCst);
    }
}

/// Whether a process was in a guarded section at its last report.
fn is_inside(guarded: &Path) -> bool {
    std::fs::read(guarded).unwrap().first().is_some_and(|open| *open > 0)
}

/// The faults of the server and the network before it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Harm {
    /// Connections that the server ended.
    pub(crate) terminations: usize,
    pub(crate) crashes: usize,
    /// How often the network dropped all traffic without an error.
    pub(crate) partitions: usize,
    /// How often the network was slow.
    pub(crate) delays: usize,
}

/// Injects faults into the server and the network in front of it, every few kills.
async fn hurt(round: Arc<Round>) -> Harm {
    let mut harm = Harm::default();
    let Some(Hurt { server, proxy, databases }) = &round.arena.hurt else { return harm };
    let mut random = SeededRandom::of_member(round.seed, SEATS);
    let mut next = 0;
    while !round.is_over.load(Ordering::SeqCst) {
        sleep(LOOK).await;
        if round.kills.load(Ordering::SeqCst) < next {
            continue;
        }
        next += usize::try_from(1 + random.next_u64() % 6).unwrap();
        match random.next_u64() % 24 {
            0..8 => proxy.cut_after_forwarding(b"COMMIT"),
            8..12 => proxy.cut_at_once(b"COMMIT"),
            12..17 => {
                let server = server.lock().await;
                for database in databases {
                    harm.terminations += server.terminate_backends(database).await;
                }
            }
            17..19 => {
                // Shorter than a lease, or longer: a worker gets its answer too late, or never.
                proxy.swallow(true);
                sleep(LEASE / 4 + duration_up_to(LEASE * 3 / 2, &mut random)).await;
                proxy.swallow(false);
                harm.partitions += 1;
            }
            19..21 => {
                proxy.delay(duration_up_to(SLOW, &mut random));
                sleep(duration_up_to(LEASE, &mut random)).await;
                proxy.delay(Duration::ZERO);
                harm.delays += 1;
            }
            _ => {
                server.lock().await.restart().await;
                harm.crashes += 1;
            }
        }
    }
    proxy.cut_no_more();
    harm
}

/// Faults have stopped: every open run is done. Workers relay the last intents when they leave, and the next
/// worker does them.
async fn finish(arena: &Arena, feeder: &Feeder, findings: &mut Findings) {
    for _ in 0..LAST_MAX {
        let mut last: Vec<ChildProcess> = (0..LAST).map(|_| arena.start("finish", &[])).collect();
        for process in &mut last {
            let output = process.finish().await;
            if !output.status.success() {
                let message = String::from_utf8_lossy(&output.stderr).into_owned();
                findings.wrong.push(format!("the finishing process ended with {}: {message}", output.status));
            }
        }
        if feeder.is_idle().await {
            return;
        }
    }
}

impl Rows {
    /// Retries every parked unit.
    async fn unpark_all(&self) {
        let parked = self
            .rows::<2>(
                "select ledgers.job || ' ' || units.key from refrain_units as units
                 join refrain_ledgers as ledgers on ledgers.id = units.ledger where units.status = 'parked'",
            )
            .await;
        for [job, key] in parked {
            assert_eq!(self.unpark(&job, &key).await, 1, "{job} {key}");
        }
    }
}
