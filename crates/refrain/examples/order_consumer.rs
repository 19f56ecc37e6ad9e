//! A queue that delivers at least once, consumed exactly once.
//!
//! `order_consumer FILE MESSAGES`: one JSON object a line, as a queue would hand them over: some twice, some out of order,
//! some with the same id and other content, which is somebody's mistake. Each order is booked once. An acknowledgement is
//! printed after the commit, never before: a message that is not acknowledged comes again, and finds that it was booked.
#![expect(clippy::print_stdout, reason = "an acknowledgement is a line")]

use refrain::{Claim, Ledger, LedgerError, key};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

#[derive(Serialize, Deserialize)]
struct Order {
    id: String,
    amount: i64,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (file, messages) =
        std::env::args().nth(1).zip(std::env::args().nth(2)).ok_or("usage: order_consumer FILE MESSAGES")?;
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await?;
    sqlx::raw_sql(
        "create table if not exists balance (account text primary key, amount integer not null);
         insert or ignore into balance values ('orders', 0)",
    )
    .execute(&pool)
    .await?;
    let ledger = Ledger::open(&pool, "shop", "orders").await?;

    for line in std::fs::read_to_string(messages)?.lines() {
        let order: Order = serde_json::from_str(line)?;
        match book(&pool, &ledger, &order).await {
            Ok(Claim::Fresh) => println!("ack {} booked", order.id),
            Ok(Claim::Done(_)) => println!("ack {} deduplicated", order.id),
            // The same id with another amount: nothing is booked, and the operator must look at it.
            Err(refused @ LedgerError::Refused { .. }) => println!("reject {refused}"),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Adds the amount and remembers the order, both or neither. `amount = amount + …` is what must not happen twice.
async fn book(pool: &SqlitePool, ledger: &Ledger<sqlx::Sqlite>, order: &Order) -> Result<Claim, LedgerError> {
    let failed = |error: sqlx::Error| LedgerError::Database(error.into());
    let mut tx = pool.begin_with("begin immediate").await.map_err(failed)?;
    let claim = ledger.claim_content(&mut tx, key!("order", order.id)?, order).await?;
    if claim.is_fresh() {
        sqlx::query("update balance set amount = amount + $1 where account = 'orders'")
            .bind(order.amount)
            .execute(&mut *tx)
            .await
            .map_err(failed)?;
    }
    tx.commit().await.map_err(failed)?;
    Ok(claim)
}
