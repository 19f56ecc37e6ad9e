//! Promises about connections: a reported commit is on disk whatever the settings of the server, a
//! server that has become a replica is neither written nor read, no transaction stays open on a
//! returned connection, and a process opens no more connections than it needs.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use refrain::{Ledger, Refrain};
use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::proxy::Proxy;
use refrain_harness::server::PrivateServer;
use refrain_harness::work::nothing;
use sqlx::postgres::{PgPoolOptions, Postgres};

/// Records in which mode each transaction commits that writes a run, its row in the queue or its worker.
const NOTED: &str = "
    create table public.modes (mode text not null, kind text not null);
    create function note_mode() returns trigger language plpgsql as $$
        begin
            insert into public.modes values (current_setting('synchronous_commit'), tg_table_name);
            return null;
        end $$;
    create trigger note after insert or update or delete on refrain.runs execute function note_mode();
    create trigger note after insert or update or delete on refrain.queue execute function note_mode();
    create trigger note after insert or update or delete on refrain.workers execute function note_mode();";

async fn modes_under(setting: &'static str) -> Vec<String> {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let name: String = sqlx::query_scalar("select current_database()").fetch_one(pool).await.unwrap();
    let alter = format!("alter database {name} set synchronous_commit = {setting}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(alter)).execute(pool).await.unwrap();
    Refrain::migrate(&database.url()).await.unwrap();
    sqlx::raw_sql(NOTED).execute(pool).await.unwrap();
    let refrain = Refrain::at(&database.url(), "shop").unwrap().job(nothing("idle")).open().await.unwrap();
    assert!(refrain.enqueue("idle", "1", &()).await.unwrap().is_new());
    assert_eq!(refrain.tick().await.unwrap().ended, 1);
    refrain.close().await;
    let kinds = database.texts("select distinct kind from public.modes order by kind").await;
    assert_eq!(kinds, ["queue", "runs", "workers"], "all of them were written");
    database.texts("select distinct mode from public.modes order by mode").await
}

#[tokio::test]
async fn every_write_is_durable_whatever_the_settings_of_the_database() {
    assert_eq!(modes_under("off").await, ["on"]);
    assert_eq!(modes_under("local").await, ["on"]);
    assert_eq!(modes_under("remote_apply").await, ["remote_apply"], "who asks for more keeps it");
}

#[tokio::test]
async fn f22_a_server_demoted_to_replica_is_neither_read_nor_written() {
    let mut server = PrivateServer::create().await;
    let url = server.url(&server.create_database().await);
    Refrain::migrate(&url).await.unwrap();
    let refrain = Refrain::at(&url, "shop").unwrap().job(nothing("idle")).open().await.unwrap();
    assert_eq!(refrain.open_runs().await.unwrap(), 0);
    server.restart_as_replica().await;
    for _ in 0..2 {
        let read = refrain.open_runs().await.unwrap_err();
        assert!(read.is_transient(), "it may be a primary again: {read}");
    }
    let read = refrain.open_runs().await.unwrap_err().to_string();
    assert!(read.contains("takes no writes") && read.contains("must lead to the primary"), "{read}");
    let written = refrain.enqueue("idle", "1", &()).await.unwrap_err();
    assert!(written.is_transient() && written.to_string().contains("takes no writes"), "{written}");
}

/// The pool belongs to a program that also writes by itself: its writes outside of a transaction are visible at once.
#[tokio::test]
async fn a_dropped_begin_leaves_no_transaction_open() {
    let database = TestDatabase::postgres().await;
    Ledger::<Postgres>::migrate(pool_of(&database)).await.unwrap();
    database.execute("create table notes (note text)", &[]).await.unwrap();
    let network = Proxy::in_front_of(&database.url()).await;
    let name = database.texts("select cast(current_database() as text)").await.remove(0);
    // A connection that is tested before it is handed out would send a message before it begins.
    let pool = PgPoolOptions::new().max_connections(1).test_before_acquire(false);
    let pool = pool.connect(&network.url(&name)).await.unwrap();
    network.swallow(true);
    let beginning = tokio::spawn({
        let pool = pool.clone();
        async move { Ledger::open(&pool, "shop", "sync").await.map(drop) }
    });
    eventually("it has begun, and receives no answer", DEADLINE, async || network.swallowed() == 1).await;
    beginning.abort();
    assert!(beginning.await.unwrap_err().is_cancelled());
    network.swallow(false);
    sqlx::query("insert into notes values ('written')").execute(&pool).await.unwrap();
    assert_eq!(database.texts("select note from notes").await, ["written"]);
}

/// One transaction after another, each begun when the previous one has just ended.
#[tokio::test]
async fn sequential_work_of_a_process_uses_one_connection() {
    let database = TestDatabase::postgres().await;
    Refrain::migrate(&database.url()).await.unwrap();
    let network = Proxy::in_front_of(&database.url()).await;
    let name = database.texts("select cast(current_database() as text)").await.remove(0);
    // A process that is slow in between may open another connection.
    let used_one = async || {
        let before = network.connections();
        let url = network.url(&name);
        let refrain = Refrain::at(&url, "shop").unwrap().job(nothing("idle")).open().await.unwrap();
        assert_eq!(refrain.open_runs().await.unwrap(), 0);
        refrain.close().await;
        network.connections() - before == 1
    };
    eventually("one connection is enough", DEADLINE, used_one).await;
}

fn pool_of(database: &TestDatabase) -> &sqlx::PgPool {
    let TestDatabase::Postgres { pool, .. } = database else { unreachable!() };
    pool
}
