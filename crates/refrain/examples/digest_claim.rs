//! Once per key, inside your own transaction: one digest per hour, however often the program runs.
//!
//! `digest_claim FILE`: a SQLite file with a table of events. You can kill the process at any moment,
//! start it again, or start it twice at once: each hour gets one digest. There is no engine and no
//! second connection; your commit is the record.
#![expect(clippy::print_stdout, reason = "an example talks")]

use refrain::{Claim, Ledger, key};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: digest_claim FILE")?;
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
    let pool = SqlitePool::connect_with(options).await?;
    sqlx::raw_sql(
        "create table if not exists events (hour text, body text);
         create table if not exists digests (hour text, events integer)",
    )
    .execute(&pool)
    .await?;

    let ledger = Ledger::open(&pool, "shop", "digests").await?;
    let hours: Vec<String> =
        sqlx::query_scalar("select distinct hour from events order by hour").fetch_all(&pool).await?;
    for hour in hours {
        // Take the write lock first: a transaction that starts with a read may have to be repeated.
        let mut tx = pool.begin_with("begin immediate").await?;
        match ledger.claim(&mut tx, key!("digest", hour)?).await? {
            Claim::Fresh => {
                sqlx::query(
                    "insert into digests select hour, count(*) from events where hour = $1 group by hour",
                )
                .bind(&hour)
                .execute(&mut *tx)
                .await?;
                tx.commit().await?;
                println!("{hour} done");
            }
            // Neither success nor failure: the digest was made before.
            Claim::Done(past) => println!("{hour} deduplicated, done at {}", past.at),
        }
    }
    Ok(())
}
