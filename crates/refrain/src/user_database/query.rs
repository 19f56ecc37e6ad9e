//! A statement of a job with its arguments, and the queries that are alike for both databases.

use refrain_core::project::Dialect;
use refrain_core::publish::quoted;
use refrain_core::publish::text::names::{FOUND, SHOWN};

use super::Timed;

/// A statement with a value for each of its places.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundQuery {
    pub(crate) text: String,
    pub(crate) arguments: Vec<QueryArgument>,
}

/// A value for a place in a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum QueryArgument {
    Text(String),
    Integer(i64),
    Real(f64),
    Boolean(bool),
    Timed(Timed),
}

/// A query with the values of its places.
macro_rules! query {
    ($query:expr, $bound:expr) => {
        $bound.arguments.iter().fold($query, |query, argument| match argument {
            QueryArgument::Text(text) => query.bind(text.as_str()),
            QueryArgument::Integer(number) => query.bind(*number),
            QueryArgument::Real(number) => query.bind(*number),
            QueryArgument::Boolean(value) => query.bind(*value),
            QueryArgument::Timed(value) => query.bind(*value),
        })
    };
}

pub(crate) use query;

/// The methods of [`Backend`](super::Backend) that are alike for both. A macro, because sqlx asks for a dozen bounds of code
/// that is generic over its databases.
macro_rules! alike {
    ($database:ty) => {
        async fn execute_bound(
            connection: &mut Self::Connection,
            bound: &BoundQuery,
        ) -> Result<u64, sqlx::Error> {
            let query = sqlx::query::<$database>(AssertSqlSafe(bound.text.as_str()));
            let query = query!(query, bound);
            Ok(query.execute(connection).await?.rows_affected())
        }

        async fn texts(pool: &Pool<Self>, bound: &BoundQuery) -> Result<Vec<Option<String>>, sqlx::Error> {
            let text = as_texts(&bound.text);
            let query = sqlx::query_scalar::<$database, Option<String>>(AssertSqlSafe(text));
            let query = query!(query, bound);
            query.fetch_all(pool).await
        }

        async fn objects(
            connection: &mut Self::Connection,
            bound: &BoundQuery,
            columns: &[String],
            taker: mpsc::Sender<String>,
        ) -> Result<(), sqlx::Error> {
            let text = as_objects(Self::DIALECT, &bound.text, columns);
            let query = sqlx::query_scalar::<$database, String>(AssertSqlSafe(text));
            let query = query!(query, bound);
            let mut rows = query.fetch(connection);
            while let Some(row) = poll_fn(|context| rows.as_mut().poll_next(context)).await {
                if taker.send(row?).await.is_err() {
                    break;
                }
            }
            Ok(())
        }

        async fn finding(
            connection: &mut Self::Connection,
            bound: &BoundQuery,
        ) -> Result<(i64, Option<String>), sqlx::Error> {
            let text = AssertSqlSafe(bound.text.as_str());
            let query =
                query!(sqlx::query_as::<$database, (i64, Option<String>)>(text).persistent(false), bound);
            query.fetch_one(connection).await
        }

        async fn columns(
            connection: &mut Self::Connection,
            bound: &BoundQuery,
        ) -> Result<(Vec<String>, Vec<String>), sqlx::Error> {
            let statement = connection.prepare(AssertSqlSafe(bound.text.clone()).into_sql_str()).await?;
            let columns = statement.columns().iter();
            Ok(columns.map(|column| (column.name().to_owned(), column.type_info().name().to_owned())).unzip())
        }

        async fn read(
            pool: Pool<Self>,
            bound: BoundQuery,
            kinds: Vec<String>,
            sorts: bool,
            pages: mpsc::Sender<RowPage>,
        ) {
            let text = numbered(&bound.text, kinds.len(), Self::shown, sorts.then_some(Self::sorted));
            let asked = query!(sqlx::query::<$database>(AssertSqlSafe(text)).persistent(false), bound);
            // A connection of its own: the run that writes holds one of the pool already, so that several runs could wait
            // for one another for ever.
            let mut connection = match pool.connect_options().connect().await {
                Ok(connection) => connection,
                Err(error) => return drop(pages.send(Err(error)).await),
            };
            let mut rows = asked.fetch(&mut connection);
            let mut page = RowPages::default();
            while let Some(row) = rows.next().await {
                let row = row.and_then(|row| Self::cells(&row, &kinds));
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
            // An empty page is the end. The receiver may be gone by now.
            let _ = pages.send(Ok(Vec::new())).await;
        }
    };
}

pub(super) use alike;

/// The only column of a query as text, on both databases.
pub(super) fn as_texts(text: &str) -> String {
    format!("with {FOUND}({SHOWN}) as ({text}\n) select cast({SHOWN} as text) from {FOUND}")
}

/// The rows of a query as JSON objects. Both keep numbers exact.
pub(super) fn as_objects(dialect: Dialect, text: &str, columns: &[String]) -> String {
    let object = match dialect {
        Dialect::Postgres => format!("cast(pg_catalog.row_to_json({FOUND}) as pg_catalog.text)"),
        Dialect::Sqlite => {
            let pair =
                |column: &String| format!("'{}', {FOUND}.{}", column.replace('\'', "''"), quoted(column));
            format!("json_object({})", columns.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
    };
    format!("select {object} from ({text}\n) as {FOUND}")
}

/// The query with numbered columns, so that two columns may have one name.
pub(super) fn numbered(
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

/// What a database says of a statement, and what it advises.
pub(crate) fn message_of(error: &sqlx::Error) -> String {
    let sqlx::Error::Database(error) = error else { return error.to_string() };
    let advice = error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>().and_then(|error| error.hint());
    match advice {
        Some(advice) => format!("{}\n  {advice}", error.message()),
        None => error.message().to_owned(),
    }
}
