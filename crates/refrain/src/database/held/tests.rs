//! Which connections are used again: on a server, through a network that is cut or drops every message.

use refrain_harness::proxy::Proxy;
use refrain_harness::{TestDatabase, eventually};
use sqlx::SqlSafeStr as _;
use sqlx::postgres::{PgPool, PgPoolOptions};

use super::*;

type Transactions = <Postgres as sqlx::Database>::TransactionManager;

/// A pool behind a network, and the slot of its last used connection.
struct Far {
    network: Proxy,
    pool: PgPool,
    last_used: LastUsed<Postgres>,
    _database: TestDatabase,
}

impl Far {
    async fn away() -> Far {
        let database = TestDatabase::postgres().await;
        let network = Proxy::in_front_of(&database.url()).await;
        let name = database.texts("select cast(current_database() as text)").await.remove(0);
        let pool = PgPoolOptions::new().test_before_acquire(false).connect_lazy(&network.url(&name)).unwrap();
        Far { network, pool, last_used: LastUsed::default(), _database: database }
    }

    async fn begun(&self) -> PooledTransaction<Postgres> {
        begun(&self.pool, Some(&self.last_used)).await
    }

    /// One of three connections, in a transaction. The second one is kept, and the third one is idle in the
    /// pool.
    async fn one_of_three() -> (Far, PooledTransaction<Postgres>) {
        let far = Far::away().await;
        let one = far.begun().await;
        let (kept, idle) = (Taken::from(&far.pool).await.unwrap(), Taken::from(&far.pool).await.unwrap());
        // The task that returns it never runs, so the connection stays kept.
        let ended = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        assert!(far.last_used.keep(&far.pool, kept, ended.handle()).is_none());
        ended.shutdown_background();
        idle.give_back(&Handle::current());
        while far.pool.num_idle() == 0 {
            tokio::task::yield_now().await;
        }
        (far, one)
    }

    fn has_none(&self) -> bool {
        self.last_used.take().is_none() && self.pool.size() == 0
    }
}

async fn begun(pool: &PgPool, last_used: Option<&LastUsed<Postgres>>) -> PooledTransaction<Postgres> {
    PooledTransaction::begin(pool, last_used, "BEGIN".into_sql_str(), Some(DEADLINE)).await.unwrap()
}

#[tokio::test]
async fn after_an_error_of_the_network_no_connection_is_used_again() {
    let (far, one) = Far::one_of_three().await;
    far.network.cut_all().await;
    assert!(one.commit().await.is_err());
    assert!(far.has_none(), "of a commit");

    let (far, one) = Far::one_of_three().await;
    far.network.cut_all().await;
    assert!(one.rollback().await.is_err());
    assert!(far.has_none(), "of a rollback");

    let (far, mut one) = Far::one_of_three().await;
    one.speak().unwrap();
    assert!(one.heard(Err::<(), _>(DatabaseError::Lost("cut off".to_owned()))).is_err());
    assert!(one.speak().is_err(), "nothing more is said on it");
    drop(one);
    assert!(far.has_none(), "of a statement");
}

#[tokio::test]
async fn nothing_begins_where_a_transaction_is_open() {
    for is_bare in [false, true] {
        let far = Far::away().await;
        let mut open = Taken::from(&far.pool).await.unwrap();
        Transactions::begin(&mut open.connection, None).await.unwrap();
        assert!(far.last_used.keep(&far.pool, open, &Handle::current()).is_none());
        let held = if is_bare {
            PooledTransaction::bare(&far.pool, Some(&far.last_used), DEADLINE).await.unwrap()
        } else {
            far.begun().await
        };
        let depth = Transactions::get_transaction_depth(&held);
        assert_eq!((depth, far.network.connections()), (usize::from(!is_bare), 2), "bare: {is_bare}");
    }
}

/// Its locks are released at once, not when the next transaction begins on its connection.
#[tokio::test]
async fn a_transaction_that_is_dropped_is_rolled_back_at_once_and_its_connection_is_kept() {
    let far = Far::away().await;
    drop(far.begun().await);
    let next = far.begun().await;
    assert_eq!(far.network.connections(), 1);
    far.network.swallow(true);
    // It is kept during this block.
    tokio::time::pause();
    drop(next);
    let dropped = std::time::Instant::now();
    while far.network.swallowed() == 0 {
        assert!(dropped.elapsed() < eventually::DEADLINE, "nothing is said");
        tokio::task::yield_now().await;
    }
    assert!(far.last_used.take().is_some());
}

/// A pool has a fixed number of connections; a silent one would occupy a place for ever.
#[tokio::test]
async fn a_connection_that_goes_back_and_is_silent_is_closed() {
    for is_kept in [false, true] {
        let far = Far::away().await;
        let open = begun(&far.pool, is_kept.then_some(&far.last_used)).await;
        far.network.swallow(true);
        tokio::time::pause();
        drop(open);
        for _ in 0..10 {
            tokio::task::yield_now().await;
            tokio::time::advance(DEADLINE).await;
        }
        assert_eq!(far.pool.size(), 0, "kept before: {is_kept}");
        tokio::time::resume();
    }
}
