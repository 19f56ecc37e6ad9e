//! Intents: requests for effects and runs, written next to the rows that caused them, in one transaction.
//!
//! A mail that is sent before the commit may be about rows that never existed; one that is sent after it may never be sent.
//! So the intent is a row like the others, committed together with them, and a relay copies it to the store, with retries,
//! under a key that exists once. Programs only insert into the table, so any language can write intents; nothing here
//! needs the store.

use refrain_core::{JobName, Key, ParseError};
use serde::Serialize;

use super::batch::Batch;
use super::claim::Ledger;
use super::{LedgerError, Result, catalog};
use crate::database::connection::Connection;
use crate::database::statement::Rows;
use crate::store::payload::json_of;
use crate::user_database::Backend;

/// The most intents in one statement.
const TOGETHER: usize = 1_000;

/// The kind of an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Effect,
    Run,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Effect => "effect",
            Kind::Run => "run",
        }
    }
}

/// A request for an effect, or for a run of a job, written in the transaction of the rows that caused it: by
/// [`Batch::intend`] in a run, by [`Ledger::intend`] and [`Ledger::enqueue`] in a transaction of your own.
///
/// ```
/// use refrain::ledger::Intent;
/// use refrain::key;
///
/// let mail = Intent::effect("notify-new", key!("notify", "new-invoice", "INV-7")?, 2)?;
/// let mail = mail.payload(&serde_json::json!({ "to": "ada@example.org" }))?;
/// let welcome = Intent::run("welcome-email", key!(42)?)?;
/// # Ok::<(), refrain::ledger::LedgerError>(())
/// ```
///
/// An effect is identified by its fact. Without a key it would be a new one each time:
///
/// ```compile_fail,E0061
/// refrain::ledger::Intent::effect("notify-new", 2);
/// ```
///
/// # From any language
///
/// An intent is a row, and a plain insert does the same, in a transaction of any program:
///
/// ```sql
/// insert into refrain.intents (project, kind, name, key, payload)
/// values ('shop', 'run', 'welcome-email', '42', '{}')
/// ```
///
/// In SQLite the table is `refrain_intents`. `kind` is `run` or `effect`, `name` is the job or the effect; an effect may
/// have a `version`, which defaults to 1; `payload` is JSON and optional.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    kind: Kind,
    name: String,
    key: Key,
    version: i32,
    payload: Option<String>,
}

impl Intent {
    /// Requests an effect. The key names the fact, never the run or the hour; the version is that of the rule that decides what
    /// is sent. A fact has its effect once under each version, and never again under a lower one.
    pub fn effect(name: &str, key: Key, version: u32) -> Result<Intent> {
        let number = i32::try_from(version).map_err(|_| {
            let text = version.to_string();
            ParseError::whole("version", &text, format!("{} is the highest", i32::MAX))
        })?;
        Ok(Intent { kind: Kind::Effect, name: named(name)?, key, version: number, payload: None })
    }

    /// Requests a run of a job whose runs are enqueued by key. A key that was ever enqueued for the job is a dedupe.
    pub fn run(job: &str, key: Key) -> Result<Intent> {
        Ok(Intent { kind: Kind::Run, name: named(job)?, key, version: 1, payload: None })
    }

    /// Adds a payload: JSON of at most [`PAYLOAD_BYTES_MAX`](crate::admin::PAYLOAD_BYTES_MAX) bytes. `null` means no payload.
    pub fn payload(self, payload: &impl Serialize) -> Result<Intent> {
        match json_of(payload) {
            Ok(payload) => Ok(Intent { payload, ..self }),
            Err(reason) => Err(LedgerError::Payload { key: self.key.to_string(), reason }),
        }
    }
}

fn named(name: &str) -> Result<String> {
    Ok(JobName::parse(name)?.to_string())
}

/// The writer of intents.
struct Author<'a> {
    project: &'a str,
    store: Option<String>,
    fence: Option<i64>,
    attempt: Option<i64>,
}

async fn write(connection: &mut Connection<'_>, author: &Author<'_>, intents: &[Intent]) -> Result<()> {
    for intents in intents.chunks(TOGETHER) {
        let rows = Rows::default()
            .texts(intents.iter().map(|intent| intent.kind.name().to_owned()))
            .texts(intents.iter().map(|intent| intent.name.clone()))
            .texts(intents.iter().map(|intent| intent.key.to_string()))
            .integers(intents.iter().map(|intent| i64::from(intent.version)))
            .texts(intents.iter().map(|intent| intent.payload.clone()));
        let insert = catalog::INTENT_INSERT.bind(author.project).bind(author.store.clone());
        connection.execute(insert.bind(author.fence).bind(author.attempt).bind(rows)).await?;
    }
    Ok(())
}

impl<DB: Backend, T> Batch<'_, '_, DB, T> {
    /// Requests effects and runs in the transaction of this batch: they are committed together with its rows, or not at all. A
    /// database that is not relayed is refused, because its intents would never be carried out.
    pub async fn intend(&mut self, intents: impl IntoIterator<Item = Intent>) -> Result<()> {
        let raised = &self.applying.units.fence.raised;
        if !raised.relayed {
            return Err(LedgerError::NoRelay);
        }
        let author = Author {
            project: raised.facts.project.as_str(),
            store: Some(raised.store.id.to_string()),
            fence: Some(raised.id),
            attempt: Some(raised.facts.attempt.into()),
        };
        let intents: Vec<Intent> = intents.into_iter().collect();
        write(&mut self.opened.transaction.connection(), &author, &intents).await
    }
}

impl<DB: Backend> Ledger<DB> {
    /// Requests a run of a job inside a transaction of your own: a rollback takes the request back. The relay opens the run;
    /// `&()` means no payload.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use refrain::{Ledger, key};
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let file = sqlx::sqlite::SqliteConnectOptions::new().filename(directory.path().join("shop.db"));
    /// # let pool = sqlx::SqlitePool::connect_with(file.create_if_missing(true)).await?;
    /// # sqlx::query("create table users (id integer primary key)").execute(&pool).await?;
    /// let ledger = Ledger::open(&pool, "shop", "sign-up").await?;
    ///
    /// let mut tx = pool.begin().await?;
    /// sqlx::query("insert into users (id) values (42)").execute(&mut *tx).await?;
    /// ledger.enqueue(&mut tx, "welcome-email", key!(42)?, &()).await?;
    /// tx.commit().await?; // the user and the mail, or neither
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Outside a transaction it would be committed before the rows, or without them:
    ///
    /// ```compile_fail,E0308
    /// # async fn example(ledger: refrain::Ledger<sqlx::Sqlite>, mut pool: sqlx::SqlitePool) {
    /// ledger.enqueue(&mut pool, "welcome-email", refrain::key!(42).unwrap(), &()).await;
    /// # }
    /// ```
    /// ```compile_fail,E0308
    /// # async fn example(ledger: refrain::Ledger<sqlx::Sqlite>, mut connection: sqlx::SqliteConnection) {
    /// ledger.enqueue(&mut connection, "welcome-email", refrain::key!(42).unwrap(), &()).await;
    /// # }
    /// ```
    pub async fn enqueue(
        &self,
        tx: &mut sqlx::Transaction<'_, DB>,
        job: &str,
        key: Key,
        payload: &(impl Serialize + Sync),
    ) -> Result<()> {
        let intent = Intent::run(job, key)?.payload(payload)?;
        self.intend(tx, [intent]).await
    }

    /// Requests effects and runs inside a transaction of your own.
    pub async fn intend(
        &self,
        tx: &mut sqlx::Transaction<'_, DB>,
        intents: impl IntoIterator<Item = Intent>,
    ) -> Result<()> {
        let author = Author { project: self.project.as_str(), store: None, fence: None, attempt: None };
        let intents: Vec<Intent> = intents.into_iter().collect();
        let persistent = self.destination.database.is_persistent();
        write(&mut DB::widened(tx, persistent), &author, &intents).await
    }
}
