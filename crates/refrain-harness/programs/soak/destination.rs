//! The rows that must be written once: the content from the sources, how often each row was
//! written, and by which run.
//!
//! `items` has the current content; `writes` has a line for every write. A double write, or one in the wrong order,
//! is visible there whatever the ledger says.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, PgPool, Pool, Postgres, Sqlite, SqlitePool};

use refrain::Ledger;
use refrain::core::Key;

use crate::source::Change;
use crate::worker::PROJECT;

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 'a>>;

/// What the harness needs from a database to write to it.
pub(crate) trait Destination: refrain::ledger::Backend {
    fn open(url: &str) -> Answer<'_, Pool<Self>>;
    fn write<'a>(connection: &'a mut Self::Connection, change: &'a Change, who: &'a str) -> Answer<'a, ()>;
}

const UPSERT: &str = "insert into items (source, id, seq, value, writes) values ($1, $2, $3, $4, 1)
    on conflict (source, id) do update set seq = excluded.seq, value = excluded.value, \
    writes = items.writes + 1";
const NOTE: &str = "insert into writes (source, id, seq, who) values ($1, $2, $3, $4)";

macro_rules! written {
    ($database:ty) => {
        fn write<'a>(
            connection: &'a mut Self::Connection,
            change: &'a Change,
            who: &'a str,
        ) -> Answer<'a, ()> {
            Box::pin(async move {
                let Change { source, id, seq, value, .. } = change;
                let upsert = sqlx::query::<$database>(UPSERT).bind(source).bind(id).bind(seq).bind(value);
                upsert.execute(&mut *connection).await?;
                let note = sqlx::query::<$database>(NOTE).bind(source).bind(id).bind(seq).bind(who);
                note.execute(connection).await.map(|_| ())
            })
        }
    };
}

impl Destination for Sqlite {
    fn open(url: &str) -> Answer<'_, SqlitePool> {
        Box::pin(async move {
            let options = SqliteConnectOptions::new()
                .filename(url.trim_start_matches("sqlite:"))
                .journal_mode(SqliteJournalMode::Wal)
                .busy_timeout(Duration::from_secs(10))
                .create_if_missing(true);
            SqlitePoolOptions::new().max_connections(3).connect_with(options).await
        })
    }

    written!(Sqlite);
}

impl Destination for Postgres {
    fn open(url: &str) -> Answer<'_, PgPool> {
        Box::pin(PgPoolOptions::new().max_connections(3).acquire_timeout(Duration::from_secs(5)).connect(url))
    }

    written!(Postgres);
}

/// A connection to a database, for the round and the oracle.
pub(crate) enum Rows {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

impl Rows {
    pub(crate) async fn open(url: &str) -> Rows {
        if url.starts_with("sqlite:") {
            Rows::Sqlite(Sqlite::open(url).await.unwrap())
        } else {
            Rows::Postgres(Postgres::open(url).await.unwrap())
        }
    }

    /// Makes the tables of a destination. A file gets those of the ledger at first use.
    pub(crate) async fn prepare(&self) {
        let number = match self {
            Rows::Sqlite(_) => "integer primary key autoincrement",
            Rows::Postgres(pool) => {
                Ledger::migrate(pool).await.unwrap();
                "bigserial primary key"
            }
        };
        self.execute(&format!(
            "create table items (source text not null, id bigint not null, seq bigint not null,
                value bigint not null, writes bigint not null, primary key (source, id));
            create table writes (number {number}, source text not null, id bigint not null, \
            seq bigint not null,
                who text not null)"
        ))
        .await
        .unwrap();
    }

    pub(crate) async fn execute(&self, statement: &str) -> Result<u64, sqlx::Error> {
        match self {
            Rows::Sqlite(pool) => {
                Ok(sqlx::raw_sql(AssertSqlSafe(statement)).execute(pool).await?.rows_affected())
            }
            Rows::Postgres(pool) => {
                let statement = statement.replace("refrain_", "refrain.");
                Ok(sqlx::raw_sql(AssertSqlSafe(statement)).execute(pool).await?.rows_affected())
            }
        }
    }

    /// Retries the parked units; returns how many there were.
    pub(crate) async fn unpark(&self, job: &str, key: &str) -> u64 {
        let key = Key::parse(key).unwrap();
        match self {
            Rows::Sqlite(pool) => Ledger::open(pool, PROJECT, job).await.unwrap().unpark(&key).await.unwrap(),
            Rows::Postgres(pool) => {
                Ledger::open(pool, PROJECT, job).await.unwrap().unpark(&key).await.unwrap()
            }
        }
    }

    /// The texts of a column; tables of Refrain are named as on SQLite.
    pub(crate) async fn texts(&self, query: &str) -> Vec<String> {
        match self {
            Rows::Sqlite(pool) => sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(pool).await.unwrap(),
            Rows::Postgres(pool) => {
                let query = query.replace("refrain_", "refrain.");
                sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(pool).await.unwrap()
            }
        }
    }

    /// Rows of numbers and texts, each as one text with blanks in between.
    pub(crate) async fn rows<const N: usize>(&self, query: &str) -> Vec<[String; N]> {
        let parse = |text: String| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            words.try_into().unwrap()
        };
        self.texts(query).await.into_iter().map(parse).collect()
    }
}
