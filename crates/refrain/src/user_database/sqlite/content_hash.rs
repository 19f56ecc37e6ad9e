//! Computes the content hashes of appended rows where the database cannot.
//!
//! A hash is the surrogate key over all columns of the row, shortened to an integer; PostgreSQL computes the same in its
//! statement. SQLite has no hash functions, so the rows are read and the hashes written back, page by page.

use refrain_core::SurrogateKey;
use refrain_core::publish::text::TableStatements;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use crate::database::statement::Rows;

/// How many rows are read before their hashes are written.
const PAGE_ROWS: usize = 1_000;

/// Writes the content hash into each keyed row.
pub(crate) async fn fill(
    connection: &mut SqliteConnection,
    texts: &TableStatements,
) -> Result<(), sqlx::Error> {
    let ([read, write], names) = (texts.fill_content(), texts.content_column_names());
    let (limit, mut last) = (i64::try_from(PAGE_ROWS).unwrap_or(i64::MAX), String::new());
    loop {
        let page = sqlx::query(AssertSqlSafe(read.as_str())).bind(last.as_str()).bind(limit);
        let rows = page.fetch_all(&mut *connection).await?;
        let keys = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?;
        let hashes = rows.iter().map(|row| hash_of(row, &names)).collect::<Result<Vec<_>, _>>()?;
        let Some(end) = keys.last() else { return Ok(()) };
        last.clone_from(end);
        let made = Rows::default().texts(keys).integers(hashes).json();
        sqlx::query(AssertSqlSafe(write.as_str())).bind(made).execute(&mut *connection).await?;
        if rows.len() < PAGE_ROWS {
            return Ok(());
        }
    }
}

/// The hash of a row. Its first column is the key of the row, and the values follow.
fn hash_of(row: &SqliteRow, names: &str) -> Result<i64, sqlx::Error> {
    let mut parts = vec![Some(names)];
    for at in 1..row.len() {
        parts.push(row.try_get(at)?);
    }
    let id = SurrogateKey::of(&parts).map_err(|error| sqlx::Error::Encode(error.into()))?;
    Ok(id.to_bytes().iter().take(8).fold(0, |number, byte| (number << 8) | i64::from(*byte)))
}
