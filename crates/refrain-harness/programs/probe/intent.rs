//! Intents for runs, as an application with rows of its own writes them.

use refrain::Ledger;
use refrain::core::Key;
use refrain::ledger::Backend;

use crate::variable;

/// Writes intents for runs beside rows of its own, in a transaction in the store's database.
pub(crate) async fn write(job: &str, prefix: &str, count: usize) {
    let store = variable("PROBE_STORE").unwrap();
    if store.starts_with("sqlite:") {
        write_over(&sqlx::SqlitePool::connect(&store).await.unwrap(), job, prefix, count).await;
    } else {
        write_over(&sqlx::PgPool::connect(&store).await.unwrap(), job, prefix, count).await;
    }
}

async fn write_over<DB: Backend>(pool: &sqlx::Pool<DB>, job: &str, prefix: &str, count: usize) {
    let ledger = Ledger::open(pool, "crash", "probe").await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    for at in 0..count {
        let key = Key::parse(&format!("{prefix}{at}")).unwrap();
        ledger.enqueue(&mut tx, job, key, &()).await.unwrap();
    }
    tx.commit().await.unwrap();
}
