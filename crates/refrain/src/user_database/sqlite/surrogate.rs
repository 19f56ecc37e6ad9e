//! Computes the surrogate keys of rows that are staged in SQLite.
//!
//! SQLite has no hash functions. A function of ours could be registered only with unsafe code, and in [SQL
//! arithmetic](refrain_core::surrogate) an id takes about a millisecond. So natural keys are read and ids written back, page by
//! page: memory holds one page, however many rows there are.

use refrain_core::SurrogateKey;
use refrain_core::project::Dialect;
use refrain_core::publish::text::names::{FOUND, HASH, NUMBER, ROW};
use refrain_core::surrogate::text;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use crate::database::statement::Rows;

/// How many rows are read before their ids are written.
const PAGE_ROWS: usize = 5_000;

/// Writes the id of each row of a stage into a column. The id is made of these parts: names and expressions, already quoted.
/// `number` is the name of the row number: the one of SQLite's three names that no column has.
pub(crate) async fn fill(
    connection: &mut SqliteConnection,
    stage: &str,
    number: &str,
    column: &str,
    parts: &[String],
) -> Result<(), sqlx::Error> {
    let values = parts.iter().map(|part| text(Dialect::Sqlite, part));
    let read = std::iter::once(format!("{ROW}.{number}")).chain(values).collect::<Vec<_>>().join(", ");
    let read = format!(
        "select {read} from {stage} as {ROW} where {ROW}.{number} > $1 order by {ROW}.{number} limit $2"
    );
    let write = format!(
        "update {stage} as {ROW} set {column} = {FOUND}.{HASH} \
        from (select value ->> 0 as {NUMBER}, value ->> 1 as {HASH} from jsonb_each($1)) as {FOUND} \
        where {ROW}.{number} = {FOUND}.{NUMBER}"
    );
    let (limit, mut last) = (i64::try_from(PAGE_ROWS).unwrap_or(i64::MAX), i64::MIN);
    loop {
        let page = sqlx::query(AssertSqlSafe(read.as_str())).bind(last).bind(limit);
        let rows = page.fetch_all(&mut *connection).await?;
        let places = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i64>, _>>()?;
        let ids = rows.iter().map(|row| id_of(row, parts.len())).collect::<Result<Vec<_>, _>>()?;
        let Some(end) = places.last() else { return Ok(()) };
        last = *end;
        let made = Rows::default().integers(places).texts(ids).json();
        sqlx::query(AssertSqlSafe(write.as_str())).bind(made).execute(&mut *connection).await?;
        if rows.len() < PAGE_ROWS {
            return Ok(());
        }
    }
}

/// The id of a row. Its first column is the row number, and the parts follow.
fn id_of(row: &SqliteRow, count: usize) -> Result<String, sqlx::Error> {
    let parts = (1..=count).map(|at| row.try_get(at)).collect::<Result<Vec<Option<&str>>, _>>()?;
    let id = SurrogateKey::of(&parts).map_err(|error| sqlx::Error::Encode(error.into()))?;
    Ok(id.to_string())
}
