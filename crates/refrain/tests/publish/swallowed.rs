//! The network swallows all traffic between a worker and the database of a job during an attempt,
//! while the store is fine: the worker gets no error, so the timeout of the job ends the attempt,
//! and the next one does the work.
//!
//! On PostgreSQL only: there is no network in front of a file.

use sqlx::{Connection as _, Executor as _};

use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::project::TestProject;
use refrain_harness::proxy::Proxy;

/// Many tries: on a busy machine an attempt may be too slow as well.
const JOB: &str = r#"
    queue = true
    timeout = "5s"
    retry = { attempts = 100, backoff = "1s..1s" }
    sql = """insert into notes values ('one'); select pg_advisory_xact_lock_shared(77); insert into notes values ('two')"""
"#;

const TIMED_OUT: &str = "select ended from refrain.attempts where reason = 'timed-out'";

#[tokio::test]
async fn f21_a_job_whose_database_falls_silent_is_retried_and_writes_once() {
    let shop = TestProject::of(TestDatabase::postgres().await);
    let direct = shop.database.url();
    let network = Proxy::in_front_of(&direct).await;
    let name = direct.rsplit('/').next().unwrap();
    shop.settings(&direct, &format!("shop = \"{}\"", network.url(name)));
    shop.job("note", JOB);
    shop.execute("create table notes (text text)").await;
    shop.prepare().await;
    let TestDatabase::Postgres { pool, .. } = &shop.database else { panic!("a server") };
    let mut holder = pool.acquire().await.unwrap().detach();
    holder.execute("select pg_advisory_lock(77)").await.unwrap();

    shop.done(&["enqueue", "note", "1", "{}"]).await;
    let mut process = shop.process(&["work"], &[]);
    let waiting =
        "select query from pg_stat_activity where datname = current_database() and wait_event = 'advisory'";
    let under_way = async || !shop.rows(waiting).await.is_empty();
    eventually("the attempt is running", DEADLINE, under_way).await;
    network.swallow(true);
    holder.execute("select pg_advisory_unlock(77)").await.unwrap();
    let before = shop.rows(TIMED_OUT).await.len();
    let has_ended = async || shop.rows(TIMED_OUT).await.len() > before;
    eventually("the attempt has ended", DEADLINE, has_ended).await;
    assert_eq!(shop.rows("select text from notes").await, Vec::<String>::new());

    network.swallow(false);
    let ended = process.finish().await;
    assert!(ended.status.success(), "{ended:?}");
    assert_eq!(shop.rows("select text from notes order by text").await, ["one", "two"]);
    assert_eq!(shop.rows("select outcome from refrain.runs").await, ["done"]);
    holder.close().await.unwrap();
}
