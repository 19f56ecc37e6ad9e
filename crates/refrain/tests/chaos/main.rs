//! A weekend of chaos in half a minute: two servers on one store are killed and told to end again and again, while
//! the clock of the schedules runs five thousand times as fast and changes with its zones, and job files are edited
//! and renamed. In the end every window that should exist has a row with its outcome, and every command ran as often
//! as is recorded.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "in a test a panic is the failure report"
)]

mod clock;
mod files;
mod servers;
mod verdict;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use refrain::core::random::duration_up_to;
use refrain::core::{Random as _, SeededRandom};
use rustix::process::Signal;

use clock::Clock;
use files::Weekend;
use refrain_harness::TestDatabase;
use servers::Servers;
use verdict::Verdict;

/// How far the clock advances between two faults, at least, and how much more at most.
const QUIET: (Duration, Duration) = (Duration::from_mins(20), Duration::from_mins(80));
/// Every how many faults both servers are killed, and no server runs for a while.
const BLACKOUT_EVERY: usize = 8;
const BLACKOUT: SignedDuration = SignedDuration::from_hours(4);

fn seed() -> u64 {
    std::env::var("REFRAIN_CHAOS_SEED").map_or(20_260_328, |text| text.parse().unwrap())
}

/// Injects faults into the servers until the clock stops.
async fn hit(servers: &mut Servers, clock: &Clock, random: &mut SeededRandom, until: Timestamp) {
    for number in 1.. {
        let quiet = QUIET.0 + duration_up_to(QUIET.1, random);
        clock.shows((clock.now() + quiet).min(until)).await;
        if clock.now() >= until {
            return;
        }
        let which = usize::try_from(random.next_u64() % 2).unwrap();
        match random.next_u64() % 4 {
            _ if number % BLACKOUT_EVERY == 0 => {
                servers.end(0, Signal::KILL).await;
                servers.end(1, Signal::KILL).await;
                clock.shows((clock.now() + BLACKOUT).min(until)).await;
                servers.start(0).await;
                servers.start(1).await;
            }
            0 | 1 => {
                servers.is_at_work(which, clock).await;
                servers.end(which, Signal::KILL).await;
                servers.start(which).await;
            }
            2 => {
                servers.end(which, Signal::TERM).await;
                servers.start(which).await;
            }
            _ => {
                servers.signal(which, Signal::TERM);
                servers.end(which, Signal::KILL).await;
                servers.start(which).await;
            }
        }
    }
}

async fn chaos(database: TestDatabase, weekend: Weekend) {
    let (seed, began) = (seed(), std::time::Instant::now());
    let mut random = SeededRandom::new(seed);
    let clock = Clock::starting_at(weekend.from, weekend.until());
    let files = files::write(&database, &weekend).await;
    let mut servers = Servers::new(files.path(), &clock);
    servers.start(0).await;
    servers.start(1).await;
    hit(&mut servers, &clock, &mut random, weekend.at(1, 3)).await;
    files::edit(files.path(), &weekend);
    servers.reload().await;
    hit(&mut servers, &clock, &mut random, weekend.at(2, 3)).await;
    files::rename(files.path(), &weekend);
    servers.reload().await;
    hit(&mut servers, &clock, &mut random, weekend.until()).await;

    let refrain = files::look(files.path(), &database).await;
    servers.drain(&refrain, weekend.until()).await;
    let verdict = Verdict::of(&refrain, files.path(), &weekend).await;
    println!(
        "seed {seed}: {}; {}; {:.0?}",
        servers.summary(),
        verdict.summary(),
        Duration::from_secs(began.elapsed().as_secs())
    );
    let rows = files::rows(&database).await;
    verdict.holds(&rows);
    refrain_harness::work::is_sound(&refrain).await;
    servers.were_hit();
    verdict::notices(&refrain, files.path(), weekend).await;
}

fn is_full() -> bool {
    std::env::var_os("REFRAIN_FULL").is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x1_after_a_weekend_of_kills_every_window_in_a_file_is_accounted_for() {
    chaos(TestDatabase::sqlite().await, files::gap()).await;
    if is_full() {
        chaos(TestDatabase::sqlite().await, files::fold()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x1_after_a_weekend_of_kills_every_window_on_a_server_is_accounted_for() {
    chaos(TestDatabase::postgres().await, files::fold()).await;
    if is_full() {
        chaos(TestDatabase::postgres().await, files::gap()).await;
    }
}
