//! However a worker or a supervisor ends, no process of a command survives, and attempts do not
//! overlap.

use rustix::process::{Pid, Signal, kill_process};

use crate::workspace::{FAMILY, TICKING, Workspace, is_dead, supervisors};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::children::ChildProcess;
use refrain_harness::eventually::{DEADLINE, eventually};

const RUNS: usize = 40;
const ROUNDS: usize = 4;

/// Stops a worker where it does not hold the store.
async fn stop_outside_of_a_transaction(workspace: &Workspace, worker: &ChildProcess) {
    let TestDatabase::Sqlite { pool, .. } = &workspace.database else { return worker.signal(Signal::STOP) };
    loop {
        worker.signal(Signal::STOP);
        if sqlx::raw_sql("pragma busy_timeout = 50; begin immediate; rollback").execute(pool).await.is_ok() {
            return;
        }
        worker.signal(Signal::CONT);
    }
}

/// A worker is killed while its command runs with descendants. Returns the processes left after its supervisor has
/// ended.
pub(crate) async fn killed_with_a_family(workspace: &Workspace, variables: &[(&str, &str)]) -> Vec<String> {
    workspace.ask("script", "k", FAMILY).await;
    let worker = workspace.worker(&["serve"], variables);
    workspace.appears("family").await;
    eventually("the family is there", DEADLINE, async || workspace.alive().len() >= 6).await;
    let supervisors = supervisors(worker.id());
    assert_eq!(supervisors.len(), 1);
    worker.end(Signal::KILL);
    eventually("the supervisor is gone", DEADLINE, async || supervisors.iter().all(|pid| is_dead(*pid)))
        .await;
    workspace.alive().into_iter().map(|(_, words)| words).collect()
}

/// A worker is stopped for longer than its lease, and another one does the run. Returns whether the two attempts
/// overlapped.
pub(crate) async fn stopped_past_its_lease(workspace: &Workspace, variables: &[(&str, &str)]) -> bool {
    workspace.ask("script", "k", TICKING).await;
    let older = workspace.worker(&["serve"], variables);
    workspace.ticks(1).await;
    stop_outside_of_a_transaction(workspace, &older).await;
    // As if it were on another machine, where no process can end it.
    workspace.database.store("update refrain_workers set process = 'elsewhere/1/1/1'").await;
    let mut newer = workspace.worker(&["serve"], &[]);
    workspace.ticks(2).await;
    let before = workspace.lines("ticks").len();
    eventually("both had time to meet", DEADLINE, async || workspace.lines("ticks").len() > before + 50)
        .await;
    workspace.touch("gate");
    workspace.touch(&format!("drain-{}", newer.id()));
    assert!(newer.wait().await.success());
    workspace.is_mixed()
}

/// A command exceeds its timeout and ignores the request to end. Returns whether the next attempt overlapped with it.
pub(crate) async fn timed_out(workspace: &Workspace, variables: &[(&str, &str)]) -> bool {
    workspace.ask("hasty", "k", &format!("trap '' TERM; {TICKING}")).await;
    let mut worker = workspace.worker(&["work"], variables);
    workspace.ticks(2).await;
    assert!(worker.wait().await.success());
    workspace.is_mixed()
}

#[both_databases]
async fn f42_no_descendant_of_a_command_survives_its_killed_worker(database: TestDatabase) {
    let workspace = Workspace::of(database);
    assert_eq!(killed_with_a_family(&workspace, &[]).await, Vec::<String>::new());
}

#[both_databases]
async fn f42_the_next_attempt_runs_alone_after_a_worker_was_stopped(database: TestDatabase) {
    let workspace = Workspace::of(database);
    assert!(!stopped_past_its_lease(&workspace, &[]).await, "{:?}", workspace.lines("ticks"));
    assert_eq!(workspace.outcome_of("script", "k").await.0, "done");
    workspace.no_process_is_left().await;
}

#[tokio::test]
async fn f42_a_command_that_timed_out_is_gone_before_the_next_attempt_begins() {
    let workspace = Workspace::sqlite().await;
    assert!(!timed_out(&workspace, &[]).await, "{:?}", workspace.lines("ticks"));
    let (outcome, attempt, message) = workspace.outcome_of("hasty", "k").await;
    assert_eq!((outcome.as_str(), attempt, message.as_str()), ("failed", 2, "timed out after 2s"));
    assert_eq!(workspace.alive(), []);
}

#[tokio::test]
async fn f43_the_worker_ends_the_processes_of_a_killed_supervisor_and_no_others() {
    let workspace = Workspace::sqlite().await;
    workspace.ask("script", "k", &format!("[ $REFRAIN_ATTEMPT -gt 1 ] && exit 0; {FAMILY}")).await;
    let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let mut worker = workspace.worker(&["work"], &[]);
    workspace.appears("family").await;
    for supervisor in supervisors(worker.id()) {
        kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
    }
    assert!(worker.wait().await.success());
    assert_eq!(workspace.outcome_of("script", "k").await, ("done".to_owned(), 2, String::new()));
    assert_eq!(workspace.alive(), []);
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn f39_a_busy_worker_renews_the_lease_of_a_long_command() {
    let workspace = Workspace::sqlite().await;
    let variables = [("PROBE_LEASE", "4000"), ("PROBE_BUSY", "9000")];
    workspace.ask("script", "k", TICKING).await;
    let mut worker = workspace.worker(&["work"], &variables);
    workspace.ticks(1).await;
    workspace.done(&["enqueue", "hog", "h", "1"]).await;
    worker.wait_for_line("ended hog#h0").await;
    workspace.touch("gate");
    assert!(worker.wait().await.success());
    assert_eq!(workspace.outcome_of("script", "k").await, ("done".to_owned(), 1, String::new()));
}

#[tokio::test]
async fn f50_a_stop_ends_the_command_and_returns_the_run_at_no_cost() {
    let workspace = Workspace::sqlite().await;
    workspace.ask("script", "k", TICKING).await;
    let mut worker = workspace.worker(&["serve"], &[]);
    workspace.ticks(1).await;
    workspace.touch("stop");
    assert!(worker.wait().await.success());
    assert_eq!(workspace.alive(), [], "it was recorded when it was over");
    let spent = workspace
        .database
        .store_numbers("select spent + suspicion from refrain_queue where lease is null")
        .await;
    assert_eq!(spent, [0]);
    workspace.touch("gate");
    workspace.done(&["work"]).await;
    assert_eq!(workspace.outcome_of("script", "k").await, ("done".to_owned(), 2, String::new()));
}

#[tokio::test]
async fn f50_after_stops_and_kills_every_command_is_done_and_none_overlaps() {
    let workspace = Workspace::sqlite().await;
    let script = r#"tell() { echo "$REFRAIN_RUN $REFRAIN_ATTEMPT" >> log; }
        tell; for _ in 1 2 3 4 5; do sleep 0.02; tell; done; echo "$REFRAIN_RUN" >> ended"#;
    for round in 0..ROUNDS {
        // A descriptor of its own: however many the rounds before have used, some are left for this one.
        for run in 0..RUNS / ROUNDS {
            workspace.ask("script", &format!("k{round}-{run}"), script).await;
        }
        let (stop, before) = (workspace.path("stop"), workspace.lines("ended").len());
        let workers = [workspace.worker(&["serve"], &[]), workspace.worker(&["serve"], &[])];
        eventually("some have ended", DEADLINE, async || workspace.lines("ended").len() > before + 4).await;
        let [mut stopped, killed] = workers;
        killed.end(Signal::KILL);
        workspace.touch("stop");
        assert!(stopped.wait().await.success(), "in round {round}");
        std::fs::remove_file(stop).unwrap();
    }
    workspace.done(&["work"]).await;
    let mut latest = std::collections::HashMap::new();
    for line in workspace.lines("log") {
        let (run, attempt) = line.split_once(' ').unwrap();
        let attempt: u32 = attempt.parse().unwrap();
        let before = latest.insert(run.to_owned(), attempt).unwrap_or_default();
        assert!(before <= attempt, "attempt {before} of {run} was there before attempt {attempt} was over");
    }
    assert_eq!(latest.len(), RUNS);
    for round in 0..ROUNDS {
        for run in 0..RUNS / ROUNDS {
            assert_eq!(workspace.outcome_of("script", &format!("k{round}-{run}")).await.0, "done");
        }
    }
    workspace.no_process_is_left().await;
}
