//! Rows that come from outside of a database: lines of a script, rows of another one.
//!
//! A value keeps what its source knows of its type and no more; the column that it goes into has the last word, as it has
//! for everything that is typed in.

use jiff::Timestamp;
use refrain_core::project::TimeForm;
use refrain_core::publish::quoted;
use sqlx::{AssertSqlSafe, PgConnection, SqliteConnection};

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    Text(String),
    /// As it was written, to the last digit.
    Number(String),
    Boolean(bool),
    /// As hexadecimal digits after `\x`.
    Bytes(String),
    Moment(Timestamp),
}

/// A row, in the order of its columns.
pub(crate) type Row = Vec<Cell>;

impl Cell {
    /// A moment in the form in which a file holds it; none if that cannot hold all of it.
    pub(crate) fn at(at: Timestamp, time: TimeForm) -> Option<Cell> {
        let beyond = |unit: i32| at.subsec_nanosecond() % unit == 0;
        match time {
            TimeForm::Text => Some(Cell::Text(at.strftime("%Y-%m-%d %H:%M:%S%.f").to_string())),
            // As texts, `…:00.5Z` comes before `…:00Z`, and would fall into the window before.
            TimeForm::Iso => beyond(1_000_000_000).then(|| Cell::Text(at.to_string())),
            TimeForm::Unix => beyond(1_000_000_000).then(|| Cell::Number(at.as_second().to_string())),
            TimeForm::UnixMs => beyond(1_000_000).then(|| Cell::Number(at.as_millisecond().to_string())),
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Cell::Null | Cell::Boolean(_) | Cell::Moment(_) => size_of::<Cell>(),
            Cell::Text(text) | Cell::Number(text) | Cell::Bytes(text) => size_of::<Cell>() + text.len(),
        }
    }

    /// Writes it as `COPY` reads it.
    fn copied(&self, into: &mut String) {
        match self {
            Cell::Moment(at) => into.push_str(&at.to_string()),
            Cell::Bytes(text) => Cell::Text(text.clone()).copied(into),
            Cell::Null => into.push_str("\\N"),
            Cell::Boolean(value) => into.push(if *value { 't' } else { 'f' }),
            Cell::Number(text) => into.push_str(text),
            Cell::Text(text) => {
                for character in text.chars() {
                    match character {
                        '\\' => into.push_str("\\\\"),
                        '\n' => into.push_str("\\n"),
                        '\r' => into.push_str("\\r"),
                        '\t' => into.push_str("\\t"),
                        other => into.push(other),
                    }
                }
            }
        }
    }

    /// Writes it as JSON. SQLite has no type for truth.
    fn json(&self, into: &mut String) {
        match self {
            Cell::Number(text) => into.push_str(text),
            other => other.json_text(into),
        }
    }

    /// The same for a column of text: a number keeps its digits there, and would be rounded on its way.
    fn json_text(&self, into: &mut String) {
        match self {
            Cell::Null => into.push_str("null"),
            Cell::Boolean(value) => into.push(if *value { '1' } else { '0' }),
            Cell::Text(text) | Cell::Bytes(text) | Cell::Number(text) => {
                into.push_str(&serde_json::Value::from(text.as_str()).to_string());
            }
            Cell::Moment(at) => into.push_str(&serde_json::Value::from(at.to_string()).to_string()),
        }
    }
}

/// A row as a JSON object.
pub(crate) fn object(columns: &[String], row: &[Cell]) -> String {
    let mut text = String::from("{");
    for (at, (column, cell)) in columns.iter().zip(row).enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&serde_json::Value::from(column.as_str()).to_string());
        text.push(':');
        cell.json(&mut text);
    }
    text.push('}');
    text
}

/// Loads rows into a staged table of PostgreSQL.
pub(crate) async fn copy(
    connection: &mut PgConnection,
    stage: &str,
    columns: &[String],
    rows: &[Row],
) -> Result<u64, sqlx::Error> {
    let mut text = String::new();
    for row in rows {
        for (at, cell) in row.iter().enumerate() {
            if at > 0 {
                text.push('\t');
            }
            cell.copied(&mut text);
        }
        text.push('\n');
    }
    let names: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let statement = format!("copy {} ({}) from stdin", quoted(stage), names.join(", "));
    let mut copying = connection.copy_in_raw(&statement).await?;
    copying.send(text.into_bytes()).await?;
    copying.finish().await
}

/// Loads rows into a staged table of SQLite.
pub(crate) async fn insert(
    connection: &mut SqliteConnection,
    stage: &str,
    columns: &[String],
    rows: &[Row],
) -> Result<u64, sqlx::Error> {
    let texts = sqlx::query_scalar(include_str!("../../sql/target/texts.sqlite.sql"));
    let texts: Vec<String> = texts.bind(stage).fetch_all(&mut *connection).await?;
    let is_text: Vec<bool> = columns.iter().map(|column| texts.contains(column)).collect();
    let mut text = String::from("[");
    for (number, row) in rows.iter().enumerate() {
        text.push_str(if number == 0 { "[" } else { ",[" });
        for (at, (cell, is_text)) in row.iter().zip(&is_text).enumerate() {
            if at > 0 {
                text.push(',');
            }
            if *is_text { cell.json_text(&mut text) } else { cell.json(&mut text) }
        }
        text.push(']');
    }
    text.push(']');
    let names: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let values: Vec<String> = (0..columns.len()).map(|at| format!("value ->> {at}")).collect();
    let statement = format!(
        "insert into {} ({}) select {} from jsonb_each($1)",
        quoted(stage),
        names.join(", "),
        values.join(", ")
    );
    let inserted = sqlx::query(AssertSqlSafe(statement)).bind(text).execute(connection).await?;
    Ok(inserted.rows_affected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_separates_columns_is_escaped() {
        let (mut copied, mut json) = (String::new(), String::new());
        let text = Cell::Text("a\tb\\N\n\"".to_owned());
        text.copied(&mut copied);
        text.json(&mut json);
        assert_eq!((copied.as_str(), json.as_str()), ("a\\tb\\\\N\\n\"", r#""a\tb\\N\n\"""#));
    }
}
