//! The hand-written baseline on PostgreSQL: a list of rows is an array for each column.

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use super::{Ended, Taken};
use crate::Result;

pub(super) async fn enqueue(connection: &mut PgConnection, job: i64, keys: &[String]) -> Result<()> {
    let mut transaction = connection.begin().await?;
    let opened: Vec<(i64,)> = sqlx::query_as(
        "insert into refrain.runs (job, attempt, opened_at, open, key, payload)
         select $1, 1, (select now from refrain.clock), true, r.key, '0' from unnest($2::text[]) as r(key)
         on conflict (job, key) do nothing returning id",
    )
    .bind(job)
    .bind(keys)
    .fetch_all(&mut *transaction)
    .await?;
    sqlx::query(
        "insert into refrain.queue (line, run, attempt, spent, suspicion, lane)
         select $1, r.run, 1, 0, 0, false from unnest($2::bigint[]) as r(run)",
    )
    .bind(job)
    .bind(opened.iter().map(|(run,)| *run).collect::<Vec<_>>())
    .execute(&mut *transaction)
    .await?;
    Ok(transaction.commit().await?)
}

pub(super) async fn claim(
    connection: &mut PgConnection,
    job: i64,
    lease: i64,
    limit: i64,
) -> Result<Vec<Taken>> {
    let mut transaction = connection.begin().await?;
    let taken: Vec<Taken> = sqlx::query_as(
        "select queue.run, runs.key, runs.payload
         from refrain.queue as queue join refrain.runs as runs on runs.id = queue.run
         where queue.line = $1 and queue.lease is null order by queue.run limit $2",
    )
    .bind(job)
    .bind(limit)
    .fetch_all(&mut *transaction)
    .await?;
    let (Some(first), Some(last)) = (taken.first(), taken.last()) else { return Ok(taken) };
    sqlx::query("update refrain.queue set lease = $1 where line = $2 and run = any($3)")
        .bind(lease)
        .bind(job)
        .bind(taken.iter().map(|taken| taken.run).collect::<Vec<_>>())
        .execute(&mut *transaction)
        .await?;
    sqlx::query(
        "insert into refrain.leases (id, worker, line, first_run, last_run, claimed_at)
         values ($1, 1, $2, $3, $4, (select now from refrain.clock))",
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
    connection: &mut PgConnection,
    job: i64,
    lease: i64,
    ended: &[Ended],
) -> Result<()> {
    let runs: Vec<i64> = ended.iter().map(|one| one.run).collect();
    let mut transaction = connection.begin().await?;
    sqlx::query(
        "update refrain.runs as runs
         set open = false, outcome = r.outcome, attempt = 1, version = 1, started_at = r.started_at,
             ended_at = (select now from refrain.clock), worker = 1
         from unnest($1::bigint[], $2::text[], $3::bigint[]) as r(run, outcome, started_at)
         where runs.id = r.run and runs.open",
    )
    .bind(&runs)
    .bind(ended.iter().map(|one| one.outcome).collect::<Vec<_>>())
    .bind(ended.iter().map(|one| one.started_at).collect::<Vec<_>>())
    .execute(&mut *transaction)
    .await?;
    sqlx::query("delete from refrain.queue where line = $1 and run = any($2) and lease = $3")
        .bind(job)
        .bind(&runs)
        .bind(lease)
        .execute(&mut *transaction)
        .await?;
    sqlx::query("delete from refrain.leases where id = $1").bind(lease).execute(&mut *transaction).await?;
    Ok(transaction.commit().await?)
}
