//! A queue that delivers at least once, consumed exactly once.
//!
//! `order_consumer FILE MESSAGES`: one JSON object per line, as a queue delivers them: some twice,
//! some out of order, some with a known id and other content, which is an error of the sender. Each
//! order is booked once. A message is acknowledged after the commit, never before: without the
//! acknowledgement it is delivered again and deduplicated.
#![expect(clippy::print_stdout, reason = "an acknowledgement is a line")]

use refrain::ledger::LedgerError;
use refrain::{Claim, Ledger, key};
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

/// Adds the amount and records the order in one transaction, because `amount = amount + …` must not happen twice.
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
