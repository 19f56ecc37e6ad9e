//! Many writers at once: on one file, and on a server that rejects or orders their transactions.

use refrain::Refrain;
use sqlx::{Executor, PgConnection};

use crate::world::{World, numbered};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{SETTINGS, Seen};

const WRITERS: usize = 24;
const WORKERS: usize = 8;
const OFFERS: usize = 10;

fn offered() -> impl Iterator<Item = String> {
    (0..WRITERS).flat_map(|writer| numbered(&format!("noop#w{writer}-"), OFFERS).collect::<Vec<_>>())
}

/// Processes that all write at once; none of them gets an error.
async fn all_write_at_once(world: &World) {
    let variables = [("PROBE_LEASE", "600000")];
    let (count, prefixes) = (OFFERS.to_string(), numbered("w", WRITERS).map(|prefix| prefix + "-"));
    let mut processes: Vec<_> =
        prefixes.map(|prefix| world.probe(&["offer", "noop", &prefix, &count], &variables)).collect();
    processes.extend((0..WORKERS).map(|_| world.probe(&["work"], &variables)));
    for process in &mut processes {
        let output = process.finish().await;
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && message.is_empty(), "{} {message}", output.status);
    }
    world.done(&["work"], &variables).await;
    world.assert_settled(offered()).await;
    assert_eq!(world.history().await, Vec::<String>::new());
}

#[both_databases]
async fn f27_thirty_two_processes_write_at_once_without_a_busy_error(database: TestDatabase) {
    all_write_at_once(&World::of(database)).await;
}

/// Refrain sets the isolation level that it relies on; otherwise every second transaction would be refused.
#[tokio::test]
async fn f47_a_server_that_is_serializable_by_default_makes_no_difference() {
    let database = TestDatabase::postgres().await;
    let strict =
        "do $$ begin execute format('alter database %I set default_transaction_isolation = serializable',
        current_database()); end $$";
    database.execute(strict, &[]).await.unwrap();
    all_write_at_once(&World::of(database)).await;
}

/// Such a server refuses a key that another transaction has committed meanwhile; the second request is also
/// recorded.
#[tokio::test]
async fn f47_two_simultaneous_offers_under_repeatable_read_are_both_recorded() {
    let database = TestDatabase::postgres().await;
    let strict =
        "do $$ begin execute format('alter database %I set default_transaction_isolation = \"repeatable \
         read\"',
        current_database()); end $$";
    database.execute(strict, &[]).await.unwrap();
    let world = World::of(database);
    world.done(&["enqueue", "noop", "before", "1"], &[]).await;
    let first = world
        .locked(
            "with opened as (
                 insert into refrain.runs (job, attempt, opened_at, open, key)
                 select job, 1, 0, true, 'n0' from refrain.runs returning id
             )
             insert into refrain.queue (line, run, attempt, spent, suspicion, lane)
             select queue.line, opened.id, 1, 0, 0, false from opened, refrain.queue",
        )
        .await;
    let mut second = world.probe(&["enqueue", "noop", "n", "1"], &[]);
    eventually("the second waits", DEADLINE, async || world.is_waiting("with settings as").await).await;
    first.commit().await.unwrap();
    assert!(second.wait().await.success());
    assert_eq!(world.dedupes().await, 1);
    world.done(&["work"], &[]).await;
    world.assert_settled(["noop#before0".to_owned(), "noop#n0".to_owned()]).await;
}

/// While a table is rewritten, enqueues wait. One that is given up leaves its backend waiting; the next ones must not
/// add theirs.
#[tokio::test]
async fn f28_many_offers_to_a_locked_table_occupy_one_backend() {
    let database = TestDatabase::postgres().await;
    Refrain::migrate(&database.url()).await.unwrap();
    let options = Refrain::at(&database.url(), "crash").unwrap().job(Seen::default().job("idle"));
    let refrain = options.settings(SETTINGS).open().await.unwrap();
    let world = World::of(database);
    let rewritten = world.locked("lock table refrain.runs in access exclusive mode").await;
    let first = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.enqueue("idle", "1", &()).await }
    });
    let is_given_up = async || world.is_waiting("insert into refrain.runs").await;
    eventually("the first is given up, and asks once more", DEADLINE, is_given_up).await;
    let others = (2..5).map(|key| {
        let refrain = refrain.clone();
        tokio::spawn(async move { refrain.enqueue("idle", &key.to_string(), &()).await })
    });
    let others: Vec<_> = others.collect();
    let count =
        "select query from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
        and query like 'insert into refrain.runs%'";
    eventually("others wait too", DEADLINE, async || world.texts(count).await.len() > 1).await;
    let abandoned = "select query from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and query like 'with settings as%'";
    assert_eq!(world.texts(abandoned).await.len(), 1);
    rewritten.rollback().await.unwrap();
    for offer in others.into_iter().chain([first]) {
        // An enqueue that was given up may have been written; repeating it tells.
        drop(offer.await.unwrap());
    }
    for key in 1..5 {
        refrain.enqueue("idle", &key.to_string(), &()).await.unwrap();
    }
    assert_eq!(world.texts("select key from refrain_runs order by key").await, ["1", "2", "3", "4"]);
    refrain.close().await;
}

/// Another program locks the two rows that an ending needs, in the other order.
#[tokio::test]
async fn f47_an_ending_caught_in_a_deadlock_is_retried() {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { pool, .. } = &database else { panic!("it is PostgreSQL") };
    let pool = pool.clone();
    let world = World::of(database);
    // The database may have served tests before this one, and the server has counted theirs.
    let deadlocks = async || {
        let count = "select cast(deadlocks as text) from pg_stat_database where datname = current_database()";
        world.texts(count).await[0].parse::<u32>().unwrap()
    };
    let before = deadlocks().await;
    world.done(&["enqueue", "slow", "s", "1"], &[]).await;
    let mut worker = world.probe(&["serve"], &[("PROBE_LEASE", "20000")]);
    worker.wait_for_line("begun slow#s0").await;

    // The server looks for a deadlock once for each wait, a second after it began, and cancels the transaction that
    // looked. So the ending is made to wait once more when the cycle is closed, and the other program does not look.
    let mut brief: PgConnection = pool.acquire().await.unwrap().detach();
    brief.execute("begin; select run from refrain.queue for share").await.unwrap();
    let mut stranger: PgConnection = pool.acquire().await.unwrap().detach();
    let second = "begin; set local deadlock_timeout = '1h'; select run from refrain.queue for share";
    stranger.execute(second).await.unwrap();
    world.touch("gate-s0");
    eventually("the ending waits", DEADLINE, async || world.is_waiting("delete from refrain.queue").await)
        .await;
    let closing = tokio::spawn(async move {
        stranger.execute("select id from refrain.runs for update").await.unwrap();
        stranger.execute("commit").await.unwrap();
    });
    eventually("the stranger waits", DEADLINE, async || {
        world.is_waiting("select id from refrain.runs").await
    })
    .await;
    brief.execute("commit").await.unwrap();
    closing.await.unwrap();

    eventually("the server has counted a deadlock", DEADLINE, async || deadlocks().await > before).await;
    world.touch("drain");
    assert!(worker.wait().await.success());
    world.assert_settled(["slow#s0".to_owned()]).await;
    assert_eq!(world.history().await, Vec::<String>::new());
}
