//! The hand-written baseline on SQLite: a list of rows is one JSON text.

use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;

use super::{Ended, Taken};
use crate::Result;

pub(super) async fn enqueue(connection: &mut SqliteConnection, job: i64, keys: &[String]) -> Result<()> {
    let mut transaction = connection.begin_with("begin immediate").await?;
    let opened: Vec<(i64,)> = sqlx::query_as(
        "insert into refrain_runs (job, attempt, opened_at, open, key, payload)
         select $1, 1, (select now from refrain_clock), true, value, '0' from json_each($2) where true
         on conflict (job, key) do nothing returning id",
    )
    .bind(job)
    .bind(serde_json::to_string(keys)?)
    .fetch_all(&mut *transaction)
    .await?;
    sqlx::query(
        "insert into refrain_queue (line, run, attempt, spent, suspicion, lane)
         select $1, value, 1, 0, 0, false from json_each($2)",
    )
    .bind(job)
    .bind(list(opened.iter().map(|(run,)| *run))?)
    .execute(&mut *transaction)
    .await?;
    Ok(transaction.commit().await?)
}

pub(super) async fn claim(
    connection: &mut SqliteConnection,
    job: i64,
    lease: i64,
    limit: i64,
) -> Result<Vec<Taken>> {
    let mut transaction = connection.begin_with("begin immediate").await?;
    let taken: Vec<Taken> = sqlx::query_as(
        "select queue.run, runs.key, runs.payload
         from refrain_queue as queue join refrain_runs as runs on runs.id = queue.run
         where queue.line = $1 and queue.lease is null order by queue.run limit $2",
    )
    .bind(job)
    .bind(limit)
    .fetch_all(&mut *transaction)
    .await?;
    let (Some(first), Some(last)) = (taken.first(), taken.last()) else { return Ok(taken) };
    sqlx::query(
        "update refrain_queue set lease = $1 where line = $2 and run in (select value from json_each($3))",
    )
    .bind(lease)
    .bind(job)
    .bind(list(taken.iter().map(|taken| taken.run))?)
    .execute(&mut *transaction)
    .await?;
    sqlx::query(
        "insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at)
         values ($1, 1, $2, $3, $4, (select now from refrain_clock))",
    )
    .bind(lease)
    .bind(job)
    .bind(first.run)
    .bind(last.run)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(taken)
}

pub(super) async fn finish(
    connection: &mut SqliteConnection,
    job: i64,
    lease: i64,
    ended: &[Ended],
) -> Result<()> {
    let rows: Vec<_> = ended.iter().map(|one| (one.run, one.outcome, one.started_at)).collect();
    let mut transaction = connection.begin_with("begin immediate").await?;
    sqlx::query(
        "update refrain_runs as runs
         set open = false, outcome = r.outcome, attempt = 1, version = 1, started_at = r.started_at,
             ended_at = (select now from refrain_clock), worker = 1
         from (select value ->> 0 as run, value ->> 1 as outcome, \
         value ->> 2 as started_at from jsonb_each($1)) as r
         where runs.id = r.run and runs.open",
    )
    .bind(serde_json::to_string(&rows)?)
    .execute(&mut *transaction)
    .await?;
    sqlx::query(
        "delete from refrain_queue
         where line = $1 and run in (select value from json_each($2)) and lease = $3",
    )
    .bind(job)
    .bind(list(ended.iter().map(|one| one.run))?)
    .bind(lease)
    .execute(&mut *transaction)
    .await?;
    sqlx::query("delete from refrain_leases where id = $1").bind(lease).execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}

fn list(numbers: impl Iterator<Item = i64>) -> Result<String> {
    Ok(serde_json::to_string(&numbers.collect::<Vec<_>>())?)
}
