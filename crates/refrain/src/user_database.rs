//! The databases that jobs read and write, opened at their first use.
//!
//! They belong to the user: Refrain creates no file, leaves no pragma and changes no mode. The store's own database is the
//! module `database`. What Refrain asks of a user's database is the trait [`Backend`].

mod backend;
mod cell;
mod pages;
mod postgres;
mod query;
mod sqlite;
mod timed;
mod unavailable;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use refrain_core::project::{self as files, TimeForm};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool, SqlitePoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use tokio::sync::OnceCell;

use crate::database::held::close;
use crate::database::read_only;
use crate::database::{Address, DatabaseError};

pub use backend::Backend;
pub(crate) use backend::Identity;
pub(crate) use cell::{Cell, Row, object};
pub(crate) use pages::RowPage;
pub(crate) use query::{BoundQuery, QueryArgument, message_of};
#[cfg(feature = "failpoints")]
pub(crate) use sqlite::surrogate;
pub(crate) use timed::Timed;
pub use unavailable::DatabaseUnavailable;

/// Connections to one server; a file has one writer anyway.
const CONNECTIONS: u32 = 8;
/// How long a statement waits for another process's lock on a file.
const BUSY: Duration = Duration::from_secs(10);
/// How long to wait for a server to answer at all.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for a connection that is free.
const CONNECT: Duration = Duration::from_secs(30);

/// A role that is called like our schema finds our tables before its own by the usual search path: its `jobs` would be ours. On
/// a connection for statements of a job, the schema is the last of the path. It stays in it, for such a role may have made
/// tables of its own there.
const OWN_TABLES_FIRST: &str = r#"select set_config('search_path',
        trim(leading ', ' from regexp_replace(current_setting('search_path'), '"\$user",?\s*', '') || ', refrain'), false)
    where current_user = 'refrain' and current_setting('search_path') like '%"$user"%'"#;

/// A database of a project.
pub(crate) struct UserDatabase {
    /// What the project calls it.
    pub(crate) name: String,
    address: Address,
    time: TimeForm,
    only_looks: bool,
    connected: OnceCell<UserPool>,
}

/// Its pool, once it is open.
#[derive(Debug, Clone)]
pub(crate) enum UserPool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// The one place where a pool of either kind becomes a pool of its type: `on_pool!(pool, |pool| …)` is written once and
/// compiled for both.
macro_rules! on_pool {
    ($pool:expr, |$typed:ident| $body:expr) => {
        match $pool {
            $crate::user_database::UserPool::Sqlite($typed) => $body,
            $crate::user_database::UserPool::Postgres($typed) => $body,
        }
    };
}
pub(crate) use on_pool;

impl fmt::Debug for UserDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("name", &self.name).finish_non_exhaustive()
    }
}

impl UserDatabase {
    pub(crate) fn new(name: &str, address: Address, file: &files::DatabaseConfig) -> Arc<UserDatabase> {
        let connected = OnceCell::new();
        Arc::new(UserDatabase {
            name: name.to_owned(),
            address,
            time: file.time,
            only_looks: false,
            connected,
        })
    }

    /// The same, not yet opened, to be looked at.
    pub(crate) fn only_looking(&self) -> Arc<UserDatabase> {
        let (name, address) = (self.name.clone(), self.address.clone());
        let connected = OnceCell::new();
        Arc::new(UserDatabase { name, address, time: self.time, only_looks: true, connected })
    }

    pub(crate) fn time(&self) -> TimeForm {
        self.time
    }

    /// Where it is, for people.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.address, Address::Postgres { .. })
    }

    /// Its pool, opened at the first call.
    pub(crate) async fn connect(&self) -> Result<&UserPool, DatabaseUnavailable> {
        let opened = async || match &self.address {
            Address::Sqlite { path } if !path.exists() => {
                Err(DatabaseUnavailable::missing(&self.name, &self.address))
            }
            address => open(address, self.only_looks)
                .await
                .map_err(|error| DatabaseUnavailable::of(&self.name, address, error)),
        };
        self.connected.get_or_try_init(opened).await
    }

    pub(crate) async fn close(&self) {
        match self.connected.get() {
            Some(UserPool::Sqlite(pool)) => pool.close().await,
            Some(UserPool::Postgres(pool)) => close(pool, None).await,
            None => {}
        }
    }
}

/// One that answers. A pool would ask a server that is down again and again, and then not say why.
async fn open(address: &Address, only_looks: bool) -> Result<UserPool, DatabaseError> {
    match address {
        Address::Sqlite { path } => {
            let options = if only_looks {
                read_only::options(path).await?
            } else {
                SqliteConnectOptions::new().filename(path)
            };
            let options = options.busy_timeout(BUSY);
            let pool = SqlitePoolOptions::new().max_connections(4).acquire_timeout(CONNECT);
            let pool = pool.connect_with(options).await?;
            pool.execute("select name from sqlite_schema limit 1").await?;
            Ok(UserPool::Sqlite(pool))
        }
        Address::Postgres { options, .. } => {
            let answer = tokio::time::timeout(PATIENCE, options.connect()).await;
            answer.map_err(|_| sqlx::Error::from(unanswered()))??.close().await?;
            let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(CONNECT);
            let pool = pool.after_connect(|connection, _| {
                Box::pin(async move { connection.execute(OWN_TABLES_FIRST).await.map(drop) })
            });
            Ok(UserPool::Postgres(pool.connect_lazy_with((**options).clone())))
        }
    }
}

fn unanswered() -> std::io::Error {
    let said = format!("no answer within {} seconds", PATIENCE.as_secs());
    std::io::Error::new(std::io::ErrorKind::ConnectionRefused, said)
}
