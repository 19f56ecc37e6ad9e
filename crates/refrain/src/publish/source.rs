//! Rows of a query that go through us: into another database, or to be hashed on the way.
//!
//! They are read by a task of their own and come in pages, of which a few wait at most: whoever reads faster than the other
//! side writes is kept waiting, and what is in memory does not depend on how many rows there are.

use futures_util::StreamExt as _;
use jiff::Timestamp;
use jiff::civil::DateTime;
use refrain_core::project::{Dialect, Sql, TimeForm};
use refrain_core::publish::text::names::FOUND;
use refrain_core::{Fingerprint, Values, surrogate};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Pool, Row as _};
use tokio::sync::mpsc;

use super::error::{WriteError, of};
use super::rows::{Cell, Row, object};
use super::table::{Publishes, query};
use super::writer::{Staged, Writer};
use crate::action::about::About;
use crate::action::binds::{Argument, Bound};
use crate::database::begun_in;
use crate::project::databases::{Connected, Database};

/// How many rows a page has.
const PAGE_ROWS: usize = 5_000;
/// After how many bytes a page is full, whatever its rows.
const PAGE_BYTES: usize = 4 * 1_024 * 1_024;
/// How many pages may wait.
const PAGES: usize = 2;

/// In which order rows come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Any,
    /// The same whenever they are the same rows.
    Steady,
}

type Page = Result<Vec<Row>, sqlx::Error>;

/// A query that is being read.
pub(crate) struct Source {
    pub(crate) columns: Vec<String>,
    /// How its database holds moments.
    time: TimeForm,
    pages: mpsc::Receiver<Page>,
}

impl Source {
    /// Begins to read.
    pub(crate) async fn open(
        database: &Database,
        about: &About,
        query: &Sql,
        values: &Values,
    ) -> Result<Source, WriteError> {
        Source::begin(database, about, query, values, Order::Any).await
    }

    /// The same in an order that does not change: the query's own, or that of what its rows say.
    pub(crate) async fn sorted(
        database: &Database,
        about: &About,
        query: &Sql,
        values: &Values,
    ) -> Result<Source, WriteError> {
        Source::begin(database, about, query, values, Order::Steady).await
    }

    async fn begin(
        database: &Database,
        about: &About,
        query: &Sql,
        values: &Values,
        order: Order,
    ) -> Result<Source, WriteError> {
        let connected = database.connect().await.map_err(|error| WriteError::Job(error.into()))?;
        match connected {
            Connected::Sqlite(pool) => read(pool, about, query, values, database.time(), order).await,
            Connected::Postgres(pool) => read(pool, about, query, values, database.time(), order).await,
        }
    }

    /// The next page; none after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Row>>, WriteError> {
        let cut_off = || WriteError::Unfit("the query was not read to its end".to_owned());
        let page = of("the query", self.pages.recv().await.ok_or_else(cut_off)?)?;
        Ok(Some(page).filter(|page| !page.is_empty()))
    }

    /// Stages all of it, and checks it. `from` is what `land` calls the source.
    pub(crate) async fn stage<DB: Publishes>(
        mut self,
        connection: &mut DB::Connection,
        writer: &Writer<DB>,
        from: &str,
        time: TimeForm,
        number: usize,
    ) -> Result<Staged, WriteError> {
        let mut staged = writer.make(connection, &self.columns, number).await?;
        let moments: Vec<bool> =
            self.columns.iter().map(|name| writer.kind(name).is_some_and(is_moment)).collect();
        while let Some(mut rows) = self.next().await? {
            for row in &mut rows {
                for (cell, is_moment) in row.iter_mut().zip(&moments) {
                    self.converted(cell, DB::DIALECT, time, *is_moment)?;
                }
                if writer.lands() {
                    landed(row, &self.columns, from)?;
                }
            }
            writer.load(connection, &mut staged, &rows).await?;
        }
        writer.conclude(connection, &staged).await?;
        Ok(staged)
    }

    /// A moment in the form in which the other side holds it.
    fn converted(
        &self,
        cell: &mut Cell,
        into: Dialect,
        time: TimeForm,
        is_moment: bool,
    ) -> Result<(), WriteError> {
        match (&*cell, into) {
            (Cell::Moment(at), Dialect::Sqlite) => {
                let broken = || {
                    let told = format!("`{at}` has a fraction that time = \"{time}\" does not hold");
                    WriteError::Unfit(format!(
                        "{told}\n  cut it off in the query, as in date_trunc('second', …)"
                    ))
                };
                *cell = Cell::at(*at, time).ok_or_else(broken)?;
            }
            (Cell::Moment(at), Dialect::Postgres) => *cell = Cell::Text(at.to_string()),
            (Cell::Bytes(_), Dialect::Sqlite) => {
                let told = "a value is bytes, which cannot be moved into a file\n  leave it out, or write it as text: hex(…)";
                return Err(WriteError::Refused(told.to_owned()));
            }
            (Cell::Number(number), Dialect::Postgres) if is_moment => {
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

/// Whether a type is one of moments.
fn is_moment(kind: &str) -> bool {
    kind.starts_with("timestamp")
}

/// Adds to a row where it comes from and what it says.
fn landed(row: &mut Row, columns: &[String], from: &str) -> Result<(), WriteError> {
    let hash = Fingerprint::of_json(&object(columns, row));
    let hash = hash.map_err(|error| WriteError::Unfit(format!("a row cannot be hashed: {error}")))?;
    row.extend([Cell::Text(from.to_owned()), Cell::Text(hash.to_string())]);
    Ok(())
}

async fn read<DB: Reads>(
    pool: &Pool<DB>,
    about: &About,
    query: &Sql,
    values: &Values,
    time: TimeForm,
    order: Order,
) -> Result<Source, WriteError> {
    let sorts = order == Order::Steady && !query.is_ordered(DB::DIALECT);
    let bound = about.bound::<DB>([query], values, time).await?;
    let Some(bound) = bound.into_iter().next() else {
        return Err(WriteError::Refused("there is no query".to_owned()));
    };
    let mut transaction = of("the query", begun_in(pool).await)?;
    let (columns, kinds) = of("the query", DB::columns(&mut transaction, &bound).await)?;
    of("the query", transaction.rollback().await)?;
    let (sender, pages) = mpsc::channel(PAGES);
    let gone = sender.clone();
    let reading = DB::read(pool.clone(), bound, kinds, sorts, sender);
    // A server that has gone away is waited for only as long as somebody waits for the rows.
    tokio::spawn(async move {
        tokio::select! {
            () = reading => {}
            () = gone.closed() => {}
        }
    });
    Ok(Source { columns, time, pages })
}

/// A query whose columns are numbered, so that two of one name are two.
fn numbered(
    text: &str,
    columns: usize,
    shown: impl Fn(&str) -> String,
    sorts: Option<impl Fn(&str) -> String>,
) -> String {
    let names: Vec<String> = (0..columns).map(|at| format!("\"refrain:{at}\"")).collect();
    let all = |of: &dyn Fn(&str) -> String| names.iter().map(|name| of(name)).collect::<Vec<_>>().join(", ");
    let order = sorts.map(|sorts| format!(" order by {}", all(&sorts))).unwrap_or_default();
    let (names, values) = (names.join(", "), all(&shown));
    format!("with {FOUND}({names}) as ({text}\n) select {values} from {FOUND}{order}")
}

/// Collects rows into pages.
#[derive(Default)]
struct Pages {
    rows: Vec<Row>,
    bytes: usize,
}

impl Pages {
    /// Adds a row; gives a page if it is full.
    fn push(&mut self, row: Row) -> Option<Vec<Row>> {
        self.bytes += row.iter().map(Cell::size).sum::<usize>();
        self.rows.push(row);
        (self.rows.len() >= PAGE_ROWS || self.bytes >= PAGE_BYTES).then(|| self.take())
    }

    fn take(&mut self) -> Vec<Row> {
        self.bytes = 0;
        std::mem::take(&mut self.rows)
    }
}

/// Reads a query to its end, page by page.
pub(crate) trait Reads: Publishes {
    fn read(
        pool: Pool<Self>,
        bound: Bound,
        kinds: Vec<String>,
        sorts: bool,
        pages: mpsc::Sender<Page>,
    ) -> impl Future<Output = ()> + Send;
}

macro_rules! reads {
    ($database:ty, $shown:expr, $sorted:expr, $cells:expr) => {
        impl Reads for $database {
            async fn read(
                pool: Pool<Self>,
                bound: Bound,
                kinds: Vec<String>,
                sorts: bool,
                pages: mpsc::Sender<Page>,
            ) {
                let text = numbered(&bound.text, kinds.len(), $shown, sorts.then_some($sorted));
                let asked = query!(sqlx::query::<$database>(AssertSqlSafe(text)).persistent(false), bound);
                // A connection of its own: whoever writes holds one of the pool already, and all of them at once would wait for
                // one another.
                let mut connection = match pool.connect_options().connect().await {
                    Ok(connection) => connection,
                    Err(error) => return drop(pages.send(Err(error)).await),
                };
                let mut rows = asked.fetch(&mut connection);
                let mut page = Pages::default();
                while let Some(row) = rows.next().await {
                    let row = row.and_then(|row| $cells(&row, &kinds));
                    let full = match row {
                        Ok(row) => page.push(row).map(Ok),
                        Err(error) => Some(Err(error)),
                    };
                    let is_over = matches!(full, Some(Err(_)));
                    if let Some(full) = full
                        && (pages.send(full).await.is_err() || is_over)
                    {
                        return;
                    }
                }
                let last = page.take();
                if !last.is_empty() && pages.send(Ok(last)).await.is_err() {
                    return;
                }
                // An empty page says that there are no more. Nobody may be there to hear it.
                let _ = pages.send(Ok(Vec::new())).await;
            }
        }
    };
}

reads!(sqlx::Sqlite, typed, typed, of_file);
// The order of a language may change with the system; that of the bytes does not.
reads!(
    sqlx::Postgres,
    |name| format!("cast({name} as pg_catalog.text)"),
    |name: &str| format!("cast({name} as pg_catalog.text) collate pg_catalog.\"C\""),
    of_server
);

/// A real as it is: SQLite's own text of one is not always that of the same number.
fn typed(name: &str) -> String {
    let text = surrogate::text(Dialect::Sqlite, name);
    format!("typeof({name}), case typeof({name}) when 'real' then {name} else {text} end")
}

fn of_file(row: &sqlx::sqlite::SqliteRow, kinds: &[String]) -> Result<Row, sqlx::Error> {
    let cell = |at: usize| {
        let (kind, at) = (row.try_get::<&str, _>(2 * at)?, 2 * at + 1);
        Ok(match kind {
            "null" => Cell::Null,
            "real" => real(row.try_get_unchecked(at)?),
            "integer" => Cell::Number(row.try_get_unchecked(at)?),
            "blob" => Cell::Bytes(row.try_get_unchecked(at)?),
            _ => Cell::Text(row.try_get_unchecked(at)?),
        })
    };
    (0..kinds.len()).map(cell).collect()
}

/// A number as the shortest text that is read back as the same one. Neither JSON nor a server's number is infinite.
fn real(number: f64) -> Cell {
    if number.is_finite() { Cell::Number(format!("{number:?}")) } else { Cell::Text(number.to_string()) }
}

fn of_server(row: &sqlx::postgres::PgRow, kinds: &[String]) -> Result<Row, sqlx::Error> {
    let cell = |(at, kind): (usize, &String)| {
        let Some(text) = row.try_get::<Option<String>, _>(at)? else { return Ok(Cell::Null) };
        Ok(match kind.as_str() {
            "BOOL" => Cell::Boolean(text == "true"),
            "INT2" | "INT4" | "INT8" | "OID" => Cell::Number(text),
            // Neither JSON nor a file knows a number that is none.
            "FLOAT4" | "FLOAT8" | "NUMERIC" if text.bytes().any(|byte| byte.is_ascii_digit()) => {
                Cell::Number(text)
            }
            "BYTEA" => Cell::Bytes(text),
            "TIMESTAMPTZ" | "TIMESTAMP" => moment(&text).map_or(Cell::Text(text), Cell::Moment),
            _ => Cell::Text(text),
        })
    };
    kinds.iter().enumerate().map(cell).collect()
}

/// A moment as a server writes it: `2026-06-09 12:00:00+00`, without an offset in UTC.
fn moment(text: &str) -> Option<Timestamp> {
    let civil: Option<DateTime> = text.parse().ok();
    let with_offset = || text.parse().ok();
    let utc = |civil: DateTime| civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    with_offset().or_else(|| civil.and_then(utc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_a_server_writes_it() {
        for (text, expected) in [
            ("2026-06-09 12:00:00+00", Some("2026-06-09T12:00:00Z")),
            ("2026-06-09 12:00:00.25+02", Some("2026-06-09T10:00:00.25Z")),
            ("2026-06-09 12:00:00", Some("2026-06-09T12:00:00Z")),
            ("infinity", None),
        ] {
            assert_eq!(moment(text).map(|at| at.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_real_is_as_short_as_it_can_be() {
        for (number, expected) in [
            (0.1, Cell::Number("0.1".to_owned())),
            (3.0, Cell::Number("3.0".to_owned())),
            (1e300, Cell::Number("1e300".to_owned())),
            (f64::INFINITY, Cell::Text("inf".to_owned())),
        ] {
            assert_eq!(real(number), expected);
        }
    }

    #[test]
    fn a_page_is_full_by_rows_or_by_bytes() {
        let mut pages = Pages::default();
        let small = vec![Cell::Number("1".to_owned())];
        assert!((1..PAGE_ROWS).all(|_| pages.push(small.clone()).is_none()));
        assert_eq!(pages.push(small).map(|page| page.len()), Some(PAGE_ROWS));
        assert!(pages.push(vec![Cell::Text("x".repeat(PAGE_BYTES))]).is_some());
    }
}
