//! Reads the rows of a query into this process, to write them to another database or to hash them on the way.
//!
//! A task of its own reads the rows in pages, of which a few are buffered at most. So memory does not depend on the number of
//! rows.

use jiff::Timestamp;
use refrain_core::project::{Dialect, Sql, TimeForm};
use refrain_core::{Fingerprint, Values};
use sqlx::Pool;
use tokio::sync::mpsc;

use super::error::{WriteError, of};
use super::writer::{StagedRows, Writer};
use crate::bind::context::About;
use crate::database::begun_in;
use crate::user_database::{Backend, Cell, Row, RowPage, UserDatabase, object, on_pool};

/// How many pages are buffered.
const PAGES: usize = 2;

/// The order in which rows are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowOrder {
    Any,
    /// An order that depends on the rows alone.
    Stable,
}

/// A query that is being read.
pub(crate) struct QueryRows {
    pub(crate) columns: Vec<String>,
    /// How its database stores timestamps.
    time: TimeForm,
    pages: mpsc::Receiver<RowPage>,
}

impl QueryRows {
    /// Begins to read, in any order.
    pub(crate) async fn open(
        database: &UserDatabase,
        about: &About,
        query: &Sql,
        values: &Values,
    ) -> Result<QueryRows, WriteError> {
        QueryRows::begin(database, about, query, values, RowOrder::Any).await
    }

    /// Begins to read in a stable order: the query's own, or the order of the rows' values.
    pub(crate) async fn sorted(
        database: &UserDatabase,
        about: &About,
        query: &Sql,
        values: &Values,
    ) -> Result<QueryRows, WriteError> {
        QueryRows::begin(database, about, query, values, RowOrder::Stable).await
    }

    async fn begin(
        database: &UserDatabase,
        about: &About,
        query: &Sql,
        values: &Values,
        order: RowOrder,
    ) -> Result<QueryRows, WriteError> {
        let connected = database.connect().await.map_err(|error| WriteError::Job(error.into()))?;
        on_pool!(connected, |pool| read(pool, about, query, values, database.time(), order).await)
    }

    /// The next page; none after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Row>>, WriteError> {
        let cut_off = || WriteError::Unfit("the query was not read to its end".to_owned());
        let page = of("the query", self.pages.recv().await.ok_or_else(cut_off)?)?;
        Ok(Some(page).filter(|page| !page.is_empty()))
    }

    /// Stages all rows, and checks them. `from` is the source that `land` records with each row.
    pub(crate) async fn stage<DB: Backend>(
        mut self,
        connection: &mut DB::Connection,
        writer: &Writer<DB>,
        from: &str,
        time: TimeForm,
        number: usize,
    ) -> Result<StagedRows, WriteError> {
        let mut staged = writer.make(connection, &self.columns, number).await?;
        let timestamps: Vec<bool> =
            self.columns.iter().map(|name| writer.kind(name).is_some_and(is_timestamp)).collect();
        while let Some(mut rows) = self.next().await? {
            for row in &mut rows {
                for (cell, is_timestamp) in row.iter_mut().zip(&timestamps) {
                    self.convert(cell, DB::DIALECT, time, *is_timestamp)?;
                }
                if writer.lands() {
                    add_source_and_hash(row, &self.columns, from)?;
                }
            }
            writer.load(connection, &mut staged, &rows).await?;
        }
        writer.conclude(connection, &staged).await?;
        Ok(staged)
    }

    /// Converts a value to the form in which the target stores it.
    fn convert(
        &self,
        cell: &mut Cell,
        into: Dialect,
        time: TimeForm,
        is_timestamp: bool,
    ) -> Result<(), WriteError> {
        match (&*cell, into) {
            (Cell::Timestamp(at), Dialect::Sqlite) => {
                let too_fine = || {
                    let message = format!("`{at}` has a fraction that time = \"{time}\" cannot store");
                    WriteError::Unfit(format!(
                        "{message}\n  truncate it in the query, for example with date_trunc('second', …)"
                    ))
                };
                *cell = Cell::at(*at, time).ok_or_else(too_fine)?;
            }
            (Cell::Timestamp(at), Dialect::Postgres) => *cell = Cell::Text(at.to_string()),
            (Cell::Bytes(_), Dialect::Sqlite) => {
                let message = "bytes cannot be copied to SQLite\n  leave the column out, or select it as text, for example with hex(…)";
                return Err(WriteError::Refused(message.to_owned()));
            }
            (Cell::Number(number), Dialect::Postgres) if is_timestamp => {
                let at = number.parse().ok().and_then(|number: i64| match self.time {
                    TimeForm::Unix => Timestamp::from_second(number).ok(),
                    TimeForm::UnixMs => Timestamp::from_millisecond(number).ok(),
                    TimeForm::Text | TimeForm::Iso => None,
                });
                if let Some(at) = at {
                    *cell = Cell::Text(at.to_string());
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether a column type is a timestamp.
fn is_timestamp(kind: &str) -> bool {
    kind.starts_with("timestamp")
}

/// Adds to a row its source and content hash.
fn add_source_and_hash(row: &mut Row, columns: &[String], from: &str) -> Result<(), WriteError> {
    let hash = Fingerprint::of_json(&object(columns, row));
    let hash = hash.map_err(|error| WriteError::Unfit(format!("a row cannot be hashed: {error}")))?;
    row.extend([Cell::Text(from.to_owned()), Cell::Text(hash.to_string())]);
    Ok(())
}

async fn read<DB: Backend>(
    pool: &Pool<DB>,
    about: &About,
    query: &Sql,
    values: &Values,
    time: TimeForm,
    order: RowOrder,
) -> Result<QueryRows, WriteError> {
    let sorts = order == RowOrder::Stable && !query.is_ordered(DB::DIALECT);
    let bound = about.bound::<DB>([query], values, time).await?;
    let Some(bound) = bound.into_iter().next() else {
        return Err(WriteError::Refused("there is no query".to_owned()));
    };
    let mut transaction = of("the query", begun_in(pool).await)?;
    let (columns, kinds) = of("the query", DB::columns(&mut transaction, &bound).await)?;
    of("the query", transaction.rollback().await)?;
    let (sender, pages) = mpsc::channel(PAGES);
    let receiver = sender.clone();
    let reading = DB::read(pool.clone(), bound, kinds, sorts, sender);
    // A server that does not answer is waited for only as long as the rows are still wanted.
    tokio::spawn(async move {
        tokio::select! {
            () = reading => {}
            () = receiver.closed() => {}
        }
    });
    Ok(QueryRows { columns, time, pages })
}
