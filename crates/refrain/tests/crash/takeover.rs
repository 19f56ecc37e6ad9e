//! Workers of one machine: the runs of a dead process are taken over at once, however long its
//! lease is, and a process that keeps a file locked is ended.
//!
//! Leases last an hour where no worker may wait for one: a test that waited would miss its
//! deadline.

use std::os::unix::process::ExitStatusExt;

use rustix::process::{Pid, Signal, kill_process};

use crate::weakened::weak;
use crate::world::{World, numbered};
use crate::zombies::the_newer_attempt_has_the_word;
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

const LONG: (&str, &str) = ("PROBE_LEASE", "3600000");

/// The first attempt ignores a request to end and records its supervisor; the second one checks whether the first still runs.
const STUBBORN: &str = r#"
echo "begun $REFRAIN_RUN $REFRAIN_ATTEMPT $$" >> effects
if [ "$REFRAIN_ATTEMPT" = 1 ]; then
    trap "" TERM
    echo $$ > first
    echo $PPID > supervisor.part
    mv supervisor.part supervisor
    while [ ! -e let-go ]; do sleep 0.05; done
    exit
fi
state=$(sed -n "s/^State:[[:space:]]*//p" "/proc/$(cat first)/status" 2> /dev/null)
case "$state" in ""|Z*) ;; *) echo "$state" > overlap ;; esac
echo "ended $REFRAIN_RUN $REFRAIN_ATTEMPT $$" >> effects
"#;

/// A worker is killed while its command runs, and its supervisor is kept from ending the command, by one signal or
/// the other. Returns whether the next attempt still found the command running.
async fn killed_beside_its_command(world: &World, to_supervisor: Signal, failpoints: &str) -> bool {
    world.done(&["enqueue", "script", "c", "1"], &[]).await;
    let payload = serde_json::to_string(&["sh", "-c", STUBBORN]).unwrap().replace('\'', "''");
    world.execute(&format!("update refrain_runs set payload = '{payload}'")).await.unwrap();
    let mut first = world.probe(&["serve"], &[LONG]);
    let supervisor = world.path("supervisor");
    eventually("the command has begun", DEADLINE, async || supervisor.exists()).await;
    let number: i32 = std::fs::read_to_string(&supervisor).unwrap().trim().parse().unwrap();
    let supervisor = Pid::from_raw(number).unwrap();
    // The worker first: a living worker would end what its supervisor has left.
    first.signal(Signal::STOP);
    kill_process(supervisor, to_supervisor).unwrap();
    first.signal(Signal::KILL);
    first.wait().await;

    let mut second = world.probe(&["serve"], &[LONG, ("FAILPOINTS", failpoints)]);
    if failpoints.is_empty() {
        // By now it runs, and has normally checked the first one.
        world.done(&["enqueue", "noop", "n", "1"], &[]).await;
        second.wait_for_line("ended noop#n0").await;
        assert!(!world.effects_text().contains("begun script#c0 2"), "{}", world.effects_text());
        // The process id of a killed process may belong to another one by now.
        if to_supervisor == Signal::STOP {
            kill_process(supervisor, Signal::CONT).unwrap();
        } else {
            world.touch("let-go");
        }
    }
    eventually("the second attempt has ended", DEADLINE, async || {
        world.effects_text().contains("ended script#c0 2")
    })
    .await;
    world.touch("let-go");
    if to_supervisor == Signal::STOP && !failpoints.is_empty() {
        kill_process(supervisor, Signal::CONT).unwrap();
    }
    world.touch("drain");
    assert!(second.wait().await.success());
    world.path("overlap").exists()
}

#[both_databases]
async fn f2_a_worker_killed_on_this_machine_is_replaced_before_its_lease_ends(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "slow", "s", "1"], &[]).await;
    let mut first = world.probe(&["serve"], &[LONG]);
    first.wait_for_line("begun slow#s0 1").await;
    let mut second = world.probe(&["serve"], &[LONG]);
    second.wait_for_line("serving").await;
    first.signal(Signal::KILL);
    second.wait_for_line("begun slow#s0 2").await;
    world.touch("gate-s0");
    second.wait_for_line("ended slow#s0 2").await;
    world.touch("drain");
    assert!(second.wait().await.success());
    assert_eq!(the_newer_attempt_has_the_word(&world, "slow#s0").await, Vec::<String>::new());
}

#[both_databases]
async fn f2_a_caller_does_not_wait_for_the_lease_of_a_killed_worker(database: TestDatabase) {
    let world = World::of(database);
    world.done(&["enqueue", "slow", "s", "1"], &[]).await;
    let mut first = world.probe(&["serve"], &[LONG]);
    first.wait_for_line("begun slow#s0 1").await;
    first.signal(Signal::KILL);
    first.wait().await;
    world.touch("gate-s0");
    let message = world.done(&["run", "slow#s0"], &[LONG]).await;
    assert!(message.contains("did Ran 2"), "{message}");
    assert_eq!(the_newer_attempt_has_the_word(&world, "slow#s0").await, Vec::<String>::new());
}

#[both_databases]
async fn f42_a_killed_worker_is_replaced_when_its_command_has_ended(database: TestDatabase) {
    let hasty = "rescuer.hasty=return(weak)";
    for signal in [Signal::STOP, Signal::KILL] {
        assert!(!killed_beside_its_command(&World::like(&database).await, signal, "").await, "{signal:?}");
        assert!(killed_beside_its_command(&World::like(&database).await, signal, hasty).await, "{signal:?}");
    }
}

/// The store is on a server, and the rows are in a file, which the stopped process keeps locked for all others.
#[tokio::test]
async fn f11_a_worker_stopped_in_a_transaction_of_another_file_is_ended() {
    let world = World::of(TestDatabase::postgres().await);
    let shop = format!("sqlite:{}", world.path("shop.db").display());
    world.touch("mended");
    let variables = [("PROBE_SHOP", shop.as_str()), ("PROBE_LEASE", "3000")];
    world.done(&["enqueue", "sync", "s", "1"], &variables).await;
    let failpoints = ("FAILPOINTS", "unit-apply.before-commit=1*return(stop)");
    let mut older = world.probe(&["serve"], &[&variables[..], &[failpoints]].concat());
    eventually("the older one has stopped", DEADLINE, async || world.struck().len() == 1).await;
    let mut newer = world.probe(&["serve"], &variables);
    assert_eq!(older.wait().await.signal(), Some(Signal::KILL.as_raw()));
    newer.wait_for_line("ended sync#s0").await;
    world.touch("drain");
    assert!(newer.wait().await.success());
    world.assert_settled(numbered("sync#s", 1)).await;
}

/// A worker has expired without knowing it, and there is work to do. Returns how earlier attempts of the run ended.
async fn offered_to_one_that_has_expired(world: &World, weakened: &str) -> Vec<String> {
    let variables = [("PROBE_LEASE", "45000"), ("REFRAIN_WEAKENED", weakened)];
    world.done(&["enqueue", "slow", "s", "0"], &[]).await;
    let mut worker = world.probe(&["serve"], &variables);
    let workers = async || world.texts("select process from refrain_workers").await.len();
    eventually("the worker is registered", DEADLINE, async || workers().await == 1).await;
    world.execute("update refrain_workers set expires_at = 1").await.unwrap();
    world.done(&["enqueue", "slow", "s", "1"], &[]).await;
    let last = if weakened.is_empty() { "begun slow#s0 1" } else { "begun slow#s0 2" };
    worker.wait_for_line(last).await;
    world.touch("gate-s0");
    world.touch("drain");
    assert!(worker.wait().await.success());
    world.assert_settled(numbered("slow#s", 1)).await;
    world.history().await
}

#[both_databases]
async fn an_expired_worker_claims_nothing(database: TestDatabase) {
    let guarded = World::like(&database).await;
    assert_eq!(offered_to_one_that_has_expired(&guarded, "").await, Vec::<String>::new());
    let weak = weak(&[("sql/worker/claims.sql", "worker_claims_expired.sql")]);
    let history = offered_to_one_that_has_expired(&World::of(database), &weak).await;
    assert_eq!(history.len(), 1, "{history:?}");
}
