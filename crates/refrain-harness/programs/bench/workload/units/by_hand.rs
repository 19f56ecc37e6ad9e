//! The hand-written baseline for units: a table of keys beside the rows, written in one transaction with them.
//!
//! It has two forms. The yardstick is what a careful programmer writes: each key has the hash of the unit's content,
//! by the same hash function and stored as the same eight bytes as in the ledger, so that other content under a known
//! key is noticed. The other form stores only keys, which is less work and notices no change: context, not a
//! yardstick.

use std::time::{Duration, Instant};

use refrain::ledger::Backend;
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Pool, Postgres, Sqlite};

use crate::Result;

const BATCH: usize = 1_000;
const CONNECTIONS: u32 = 8;

#[derive(Serialize)]
pub(super) struct Row {
    pub(super) id: String,
    amount: i64,
}

pub(super) fn rows(from: u32, count: u32) -> Vec<Row> {
    (from..from + count).map(|at| Row { id: format!("{at:010}"), amount: i64::from(at) }).collect()
}

impl Row {
    fn hash(&self) -> Result<i64> {
        let hash: [u8; 32] = Sha256::digest(serde_json::to_vec(self)?).into();
        Ok(i64::from_be_bytes(*hash.first_chunk().ok_or("a hash has eight bytes")?))
    }
}

type Answer<T> = std::result::Result<T, sqlx::Error>;

/// The tables of the baseline, and the one that a job writes beside the ledger.
pub(super) trait Rows: Backend {
    const BEGIN: &'static str;
    async fn pool(address: &str) -> Answer<Pool<Self>>;
    fn upsert(connection: &mut Self::Connection, rows: &[&Row]) -> impl Future<Output = Answer<()>> + Send;
    /// Returns the keys that were missing, or had other content.
    fn contents(
        connection: &mut Self::Connection,
        keys: &[&str],
        hashes: &[i64],
    ) -> impl Future<Output = Answer<Vec<String>>> + Send;
    /// Returns the keys that were missing.
    fn keys(
        connection: &mut Self::Connection,
        keys: &[&str],
    ) -> impl Future<Output = Answer<Vec<String>>> + Send;
}

pub(super) const TABLES: [&str; 3] = [
    "create table by_hand (key text primary key, hash bigint not null, at bigint not null)",
    "create table keys_only (key text primary key, at bigint not null)",
    "create table rows_here (id text primary key, amount bigint not null, note text not null)",
];
const NOTE: &str = "some payload of a row of ordinary length, eighty bytes or so, nothing more";

impl Rows for Postgres {
    const BEGIN: &'static str = "begin";

    async fn pool(address: &str) -> Answer<Pool<Postgres>> {
        PgPoolOptions::new().max_connections(CONNECTIONS).connect(address).await
    }

    async fn upsert(connection: &mut Self::Connection, rows: &[&Row]) -> Answer<()> {
        let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let amounts: Vec<i64> = rows.iter().map(|row| row.amount).collect();
        let upsert = "insert into rows_here (id, amount, note)
            select r.id, r.amount, $3 from unnest($1::text[], $2::bigint[]) as r (id, amount)
            on conflict (id) do update set amount = excluded.amount, note = excluded.note";
        sqlx::query(upsert).bind(ids).bind(amounts).bind(NOTE).execute(connection).await.map(|_| ())
    }

    async fn contents(
        connection: &mut Self::Connection,
        keys: &[&str],
        hashes: &[i64],
    ) -> Answer<Vec<String>> {
        let insert = "insert into by_hand (key, hash, at)
            select r.key, r.hash, 0 from unnest($1::text[], $2::bigint[]) as r (key, hash)
            on conflict (key) do update set hash = excluded.hash where by_hand.hash <> excluded.hash
            returning key";
        sqlx::query_scalar(insert).bind(keys).bind(hashes).fetch_all(connection).await
    }

    async fn keys(connection: &mut Self::Connection, keys: &[&str]) -> Answer<Vec<String>> {
        let insert = "insert into keys_only (key, at) select k, 0 from unnest($1::text[]) as k
            on conflict do nothing returning key";
        sqlx::query_scalar(insert).bind(keys).fetch_all(connection).await
    }
}

impl Rows for Sqlite {
    const BEGIN: &'static str = "begin immediate";

    async fn pool(address: &str) -> Answer<Pool<Sqlite>> {
        let options: SqliteConnectOptions = address.parse()?;
        let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
        let options = options.busy_timeout(Duration::from_mins(1)).row_buffer_size(4_000);
        let options = options.pragma("wal_autocheckpoint", "4000");
        SqlitePoolOptions::new().max_connections(1).connect_with(options).await
    }

    async fn upsert(connection: &mut Self::Connection, rows: &[&Row]) -> Answer<()> {
        let text = serde_json::to_string(&rows.iter().map(|row| (&row.id, row.amount)).collect::<Vec<_>>());
        let upsert = "insert into rows_here (id, amount, note)
            select value ->> 0, value ->> 1, $2 from jsonb_each($1) where true
            on conflict (id) do update set amount = excluded.amount, note = excluded.note";
        sqlx::query(upsert).bind(text.unwrap_or_default()).bind(NOTE).execute(connection).await.map(|_| ())
    }

    async fn contents(
        connection: &mut Self::Connection,
        keys: &[&str],
        hashes: &[i64],
    ) -> Answer<Vec<String>> {
        let text = serde_json::to_string(&keys.iter().zip(hashes).collect::<Vec<_>>()).unwrap_or_default();
        let insert = "insert into by_hand (key, hash, at)
            select value ->> 0, value ->> 1, 0 from jsonb_each($1) where true
            on conflict (key) do update set hash = excluded.hash where by_hand.hash <> excluded.hash
            returning key";
        sqlx::query_scalar(insert).bind(text).fetch_all(connection).await
    }

    async fn keys(connection: &mut Self::Connection, keys: &[&str]) -> Answer<Vec<String>> {
        let text = serde_json::to_string(keys).unwrap_or_default();
        let insert = "insert into keys_only (key, at) select value, 0 from json_each($1) where true
            on conflict do nothing returning key";
        sqlx::query_scalar(insert).bind(text).fetch_all(connection).await
    }
}

/// The record of a unit in the baseline.
#[derive(Clone, Copy)]
pub(super) enum Kept {
    KeyAndHash,
    Key,
}

pub(super) async fn by_hand<DB: Rows>(pool: &Pool<DB>, rows: &[Row], kept: Kept) -> Result<Duration> {
    let begun = Instant::now();
    for chunk in rows.chunks(BATCH) {
        let keys: Vec<&str> = chunk.iter().map(|row| row.id.as_str()).collect();
        let mut transaction = pool.begin_with(DB::BEGIN).await?;
        let fresh = match kept {
            Kept::KeyAndHash => {
                let hashes: Result<Vec<i64>> = chunk.iter().map(Row::hash).collect();
                DB::contents(&mut *transaction, &keys, &hashes?).await?
            }
            Kept::Key => DB::keys(&mut *transaction, &keys).await?,
        };
        if !fresh.is_empty() {
            DB::upsert(&mut *transaction, &chunk.iter().collect::<Vec<_>>()).await?;
        }
        transaction.commit().await?;
    }
    Ok(begun.elapsed())
}
