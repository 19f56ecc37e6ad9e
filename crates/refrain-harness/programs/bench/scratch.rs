//! Scratch databases: a new one for each measurement, dropped after it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Row as _};

use crate::Result;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The server or directory in which databases are made.
pub(crate) enum Server {
    Sqlite(tempfile::TempDir),
    Postgres(Box<PgConnectOptions>),
}

/// A database with the tables of a store in it.
pub(crate) struct Scratch {
    pub(crate) address: String,
    name: String,
}

/// A plain connection. Statements are written for SQLite; on PostgreSQL, tables of the store move from a prefix to a
/// schema.
pub(crate) enum Plain {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Server {
    pub(crate) fn sqlite() -> Result<Server> {
        Ok(Server::Sqlite(tempfile::Builder::new().prefix("refrain-bench").tempdir()?))
    }

    pub(crate) fn postgres(url: &str) -> Result<Server> {
        Ok(Server::Postgres(Box::new(url.parse()?)))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Server::Sqlite(_) => "SQLite",
            Server::Postgres(_) => "PostgreSQL",
        }
    }

    /// The settings that decide how much a commit costs.
    pub(crate) async fn settings(&self) -> Result<String> {
        let scratch = self.database().await?;
        let mut plain = self.connect(&scratch).await?;
        let names: &[&str] = match self {
            Server::Sqlite(_) => &["journal_mode", "synchronous", "wal_autocheckpoint", "page_size"],
            Server::Postgres(_) => &[
                "server_version",
                "fsync",
                "synchronous_commit",
                "full_page_writes",
                "wal_sync_method",
                "shared_buffers",
            ],
        };
        let mut settings = Vec::new();
        for name in names {
            settings.push(format!("{name} = {}", plain.setting(name).await?));
        }
        plain.close().await?;
        self.remove(scratch).await?;
        Ok(settings.join(", "))
    }

    /// A new database with empty tables.
    pub(crate) async fn database(&self) -> Result<Scratch> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("refrain_bench_{}_{number}", std::process::id());
        let address = match self {
            Server::Sqlite(directory) => format!("sqlite:{}", directory.path().join(&name).display()),
            Server::Postgres(options) => {
                self.administer(&format!("create database {name}")).await?;
                options.as_ref().clone().database(&name).to_url_lossy().to_string()
            }
        };
        refrain::Refrain::migrate(&address).await?;
        Ok(Scratch { address, name })
    }

    pub(crate) async fn remove(&self, scratch: Scratch) -> Result<()> {
        match self {
            Server::Sqlite(directory) => {
                for ending in ["", "-wal", "-shm"] {
                    // The log is removed already if the last connection has closed.
                    drop(std::fs::remove_file(directory.path().join(format!("{}{ending}", scratch.name))));
                }
                Ok(())
            }
            Server::Postgres(_) => {
                self.administer(&format!("drop database {} with (force)", scratch.name)).await
            }
        }
    }

    /// Vacuums and checkpoints the database, so that it does not do so during a measurement.
    pub(crate) async fn tidy_up(&self, scratch: &Scratch) -> Result<()> {
        let mut plain = self.connect(scratch).await?;
        plain.tidy_up().await?;
        plain.close().await
    }

    async fn administer(&self, text: &str) -> Result<()> {
        if let Server::Postgres(options) = self {
            let mut connection = options.connect().await?;
            connection.execute(AssertSqlSafe(text)).await?;
            connection.close().await?;
        }
        Ok(())
    }

    /// A connection with the settings of Refrain's own. Like Refrain's statements, the baseline finds its rows by an
    /// index, and these settings make PostgreSQL's planner, which has no statistics for a new table, use it.
    pub(crate) async fn connect(&self, scratch: &Scratch) -> Result<Plain> {
        Ok(match self {
            Server::Sqlite(_) => {
                let options: SqliteConnectOptions = scratch.address.parse()?;
                let options =
                    options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
                let options = options.busy_timeout(Duration::from_secs(10)).row_buffer_size(4_000);
                Plain::Sqlite(options.pragma("wal_autocheckpoint", "4000").connect().await?)
            }
            Server::Postgres(options) => {
                let options = options.as_ref().clone().database(&scratch.name);
                let options = options.options([
                    ("enable_seqscan", "off"),
                    ("enable_hashjoin", "off"),
                    ("enable_mergejoin", "off"),
                    ("enable_bitmapscan", "off"),
                    ("jit", "off"),
                ]);
                Plain::Postgres(options.connect().await?)
            }
        })
    }
}

impl Plain {
    /// Runs statements without arguments.
    pub(crate) async fn run(&mut self, text: &str) -> Result<()> {
        match self {
            Plain::Sqlite(inner) => inner.execute(sqlx::raw_sql(AssertSqlSafe(text))).await.map(|_| ())?,
            Plain::Postgres(inner) => {
                inner.execute(sqlx::raw_sql(AssertSqlSafe(in_schema(text)))).await.map(|_| ())?;
            }
        }
        Ok(())
    }

    /// The number that a statement returns.
    pub(crate) async fn number(&mut self, text: &str) -> Result<i64> {
        let (number,) = match self {
            Plain::Sqlite(inner) => sqlx::query_as(AssertSqlSafe(text)).fetch_one(inner).await?,
            Plain::Postgres(inner) => sqlx::query_as(AssertSqlSafe(in_schema(text))).fetch_one(inner).await?,
        };
        Ok(number)
    }

    async fn setting(&mut self, name: &str) -> Result<String> {
        Ok(match self {
            Plain::Sqlite(inner) => {
                let row = sqlx::query(AssertSqlSafe(format!("pragma {name}"))).fetch_one(inner).await?;
                row.try_get_unchecked::<String, _>(0)?
            }
            Plain::Postgres(inner) => {
                sqlx::query_scalar(AssertSqlSafe(format!("show {name}"))).fetch_one(inner).await?
            }
        })
    }

    /// The number of a job, which is inserted if it is missing.
    pub(crate) async fn job(&mut self, name: &str) -> Result<i64> {
        self.run(&format!(
            "insert into refrain_jobs (name, identity) values ('{name}', '{name}') on conflict do nothing"
        ))
        .await?;
        self.number(&format!("select cast(id as bigint) from refrain_jobs where name = '{name}'")).await
    }

    /// Inserts done runs of a job into the store.
    pub(crate) async fn finished(&mut self, job: i64, count: u32) -> Result<()> {
        self.run(&format!(
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < {count})
             insert into refrain_runs
                 (job, attempt, version, opened_at, started_at, ended_at, worker, open, key, outcome, payload)
             select {job}, 1, 1, c.now, c.now, c.now, 1, false, 'a' || (100000000 + i), 'done', '0'
             from n, refrain_clock as c"
        ))
        .await
    }

    /// Inserts queued runs of a job.
    pub(crate) async fn queued(&mut self, job: i64, count: u32) -> Result<()> {
        self.run(&format!(
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < {count})
             insert into refrain_runs (job, attempt, opened_at, open, key, payload)
             select {job}, 1, c.now, true, 'b' || (100000000 + i), '0' from n, refrain_clock as c;
             insert into refrain_queue (line, run, attempt, spent, suspicion, lane)
             select {job}, id, 1, 0, 0, false from refrain_runs where open order by id"
        ))
        .await
    }

    /// Vacuums and checkpoints the database, so that it does not do so during a measurement.
    pub(crate) async fn tidy_up(&mut self) -> Result<()> {
        match self {
            Plain::Sqlite(_) => self.run("pragma wal_checkpoint(truncate)").await,
            Plain::Postgres(_) => {
                self.run("vacuum (analyze)").await?;
                self.run("checkpoint").await
            }
        }
    }

    pub(crate) async fn close(self) -> Result<()> {
        match self {
            Plain::Sqlite(inner) => inner.close().await?,
            Plain::Postgres(inner) => inner.close().await?,
        }
        Ok(())
    }
}

fn in_schema(text: &str) -> String {
    text.replace("refrain_", "refrain.")
}
