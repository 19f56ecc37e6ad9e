//! Whatever is done to a worker or a supervisor, nothing of a command survives, and no attempt meets its predecessor.

use rustix::process::{Pid, Signal, kill_process};

use crate::both_databases;
use crate::desk::{Desk, FAMILY, TICKING, is_dead, supervisors};
use crate::support::TestDatabase;
use crate::support::children::ChildProcess;
use crate::support::eventually::{DEADLINE, eventually};

const RUNS: usize = 40;
const ROUNDS: usize = 4;

/// Stops a worker where it does not hold the store.
async fn stop_outside_of_a_transaction(desk: &Desk, worker: &ChildProcess) {
    let TestDatabase::Sqlite { pool, .. } = &desk.database else { return worker.signal(Signal::STOP) };
    loop {
        worker.signal(Signal::STOP);
        if sqlx::raw_sql("pragma busy_timeout = 50; begin immediate; rollback").execute(pool).await.is_ok() {
            return;
        }
        worker.signal(Signal::CONT);
    }
}

/// A worker is killed with a command under way that has a family. Gives who is left when its supervisor is gone.
pub(crate) async fn killed_with_a_family(desk: &Desk, variables: &[(&str, &str)]) -> Vec<String> {
    desk.ask("script", "k", FAMILY).await;
    let worker = desk.worker(&["serve"], variables);
    desk.appears("family").await;
    eventually("the family is there", DEADLINE, async || desk.alive().len() >= 6).await;
    let supervisors = supervisors(worker.id());
    assert_eq!(supervisors.len(), 1);
    worker.end(Signal::KILL);
    eventually("the supervisor is gone", DEADLINE, async || supervisors.iter().all(|pid| is_dead(*pid)))
        .await;
    desk.alive().into_iter().map(|(_, words)| words).collect()
}

/// A worker is stopped for longer than its lease, and another one does the run. Gives whether the two attempts met.
pub(crate) async fn stopped_past_its_lease(desk: &Desk, variables: &[(&str, &str)]) -> bool {
    desk.ask("script", "k", TICKING).await;
    let older = desk.worker(&["serve"], variables);
    desk.ticks(1).await;
    stop_outside_of_a_transaction(desk, &older).await;
    // As if it were on another machine: nobody can end it.
    desk.database.store("update refrain_workers set process = 'elsewhere/1/1/1'").await;
    let mut newer = desk.worker(&["serve"], &[]);
    desk.ticks(2).await;
    let before = desk.lines("ticks").len();
    eventually("both had time to meet", DEADLINE, async || desk.lines("ticks").len() > before + 50).await;
    desk.touch("gate");
    desk.touch(&format!("drain-{}", newer.id()));
    assert!(newer.wait().await.success());
    desk.is_mixed()
}

/// A command takes longer than it may, and does not hear that it is to end. Gives whether the next attempt met it.
pub(crate) async fn timed_out(desk: &Desk, variables: &[(&str, &str)]) -> bool {
    desk.ask("hasty", "k", &format!("trap '' TERM; {TICKING}")).await;
    let mut worker = desk.worker(&["work"], variables);
    desk.ticks(2).await;
    assert!(worker.wait().await.success());
    desk.is_mixed()
}

both_databases! {
    async fn f42_a_worker_is_killed_and_nobody_of_the_family_survives(database) {
        let desk = Desk::of(database);
        assert_eq!(killed_with_a_family(&desk, &[]).await, Vec::<String>::new());
    }

    async fn f42_a_worker_is_stopped_past_its_lease_and_the_next_attempt_is_alone(database) {
        let desk = Desk::of(database);
        assert!(!stopped_past_its_lease(&desk, &[]).await, "{:?}", desk.lines("ticks"));
        assert_eq!(desk.told("script", "k").await.0, "done");
        desk.nobody_is_left().await;
    }
}

#[tokio::test]
async fn f42_a_command_that_timed_out_is_gone_before_the_next_attempt_begins() {
    let desk = Desk::sqlite().await;
    assert!(!timed_out(&desk, &[]).await, "{:?}", desk.lines("ticks"));
    let (outcome, attempt, message) = desk.told("hasty", "k").await;
    assert_eq!((outcome.as_str(), attempt, message.as_str()), ("failed", 2, "timed out after 2s"));
    assert_eq!(desk.alive(), []);
}

#[tokio::test]
async fn f43_a_supervisor_is_killed_and_the_worker_ends_whom_it_stood_over_and_no_stranger() {
    let desk = Desk::sqlite().await;
    desk.ask("script", "k", &format!("[ $REFRAIN_ATTEMPT -gt 1 ] && exit 0; {FAMILY}")).await;
    let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let mut worker = desk.worker(&["work"], &[]);
    desk.appears("family").await;
    for supervisor in supervisors(worker.id()) {
        kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
    }
    assert!(worker.wait().await.success());
    assert_eq!(desk.told("script", "k").await, ("done".to_owned(), 2, String::new()));
    assert_eq!(desk.alive(), []);
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn f39_a_command_outlives_many_leases_because_they_are_renewed_whatever_keeps_the_worker_busy() {
    let desk = Desk::sqlite().await;
    let variables = [("PROBE_LEASE", "4000"), ("PROBE_BUSY", "9000")];
    desk.ask("script", "k", TICKING).await;
    let mut worker = desk.worker(&["work"], &variables);
    desk.ticks(1).await;
    desk.done(&["enqueue", "hog", "h", "1"]).await;
    worker.wait_for_line("ended hog#h0").await;
    desk.touch("gate");
    assert!(worker.wait().await.success());
    assert_eq!(desk.told("script", "k").await, ("done".to_owned(), 1, String::new()));
}

#[tokio::test]
async fn f50_a_stop_ends_the_command_and_gives_the_run_back_with_no_try_spent() {
    let desk = Desk::sqlite().await;
    desk.ask("script", "k", TICKING).await;
    let mut worker = desk.worker(&["serve"], &[]);
    desk.ticks(1).await;
    desk.touch("stop");
    assert!(worker.wait().await.success());
    assert_eq!(desk.alive(), [], "it was recorded when it was over");
    let spent =
        desk.database.store_numbers("select spent + suspicion from refrain_queue where lease is null").await;
    assert_eq!(spent, [0]);
    desk.touch("gate");
    desk.done(&["work"]).await;
    assert_eq!(desk.told("script", "k").await, ("done".to_owned(), 2, String::new()));
}

#[tokio::test]
async fn f50_stops_and_kills_in_turn_and_every_command_is_done_without_meeting_itself() {
    let desk = Desk::sqlite().await;
    let script = r#"tell() { echo "$REFRAIN_RUN $REFRAIN_ATTEMPT" >> told; }
        tell; for _ in 1 2 3 4 5; do sleep 0.02; tell; done; echo "$REFRAIN_RUN" >> ended"#;
    for round in 0..ROUNDS {
        // Of its own: however many the rounds before have ended, some are left for this one.
        for run in 0..RUNS / ROUNDS {
            desk.ask("script", &format!("k{round}-{run}"), script).await;
        }
        let (stop, before) = (desk.path("stop"), desk.lines("ended").len());
        let workers = [desk.worker(&["serve"], &[]), desk.worker(&["serve"], &[])];
        eventually("some have ended", DEADLINE, async || desk.lines("ended").len() > before + 4).await;
        let [mut stopped, killed] = workers;
        killed.end(Signal::KILL);
        desk.touch("stop");
        assert!(stopped.wait().await.success(), "in round {round}");
        std::fs::remove_file(stop).unwrap();
    }
    desk.done(&["work"]).await;
    let mut latest = std::collections::HashMap::new();
    for line in desk.lines("told") {
        let (run, attempt) = line.split_once(' ').unwrap();
        let attempt: u32 = attempt.parse().unwrap();
        let before = latest.insert(run.to_owned(), attempt).unwrap_or_default();
        assert!(before <= attempt, "attempt {before} of {run} was there before attempt {attempt} was over");
    }
    assert_eq!(latest.len(), RUNS);
    for round in 0..ROUNDS {
        for run in 0..RUNS / ROUNDS {
            assert_eq!(desk.told("script", &format!("k{round}-{run}")).await.0, "done");
        }
    }
    desk.nobody_is_left().await;
}
