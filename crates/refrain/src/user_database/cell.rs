//! Rows that come from outside the target database: units, and rows of another database.
//!
//! A value has the type that its source gave it, and the target column converts it, as it does for literals.

use jiff::Timestamp;
use refrain_core::project::TimeForm;

/// One value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    Null,
    Text(String),
    /// With the digits of the source.
    Number(String),
    Boolean(bool),
    /// As hexadecimal digits after `\x`.
    Bytes(String),
    Timestamp(Timestamp),
}

/// A row, in the order of its columns.
pub(crate) type Row = Vec<Cell>;

impl Cell {
    /// A timestamp in the form in which SQLite stores it; none if that form cannot store its fraction.
    pub(crate) fn at(at: Timestamp, time: TimeForm) -> Option<Cell> {
        let beyond = |unit: i32| at.subsec_nanosecond() % unit == 0;
        match time {
            TimeForm::Text => Some(Cell::Text(at.strftime("%Y-%m-%d %H:%M:%S%.f").to_string())),
            // As text, `…:00.5Z` sorts before `…:00Z`, and would fall into the previous window.
            TimeForm::Iso => beyond(1_000_000_000).then(|| Cell::Text(at.to_string())),
            TimeForm::Unix => beyond(1_000_000_000).then(|| Cell::Number(at.as_second().to_string())),
            TimeForm::UnixMs => beyond(1_000_000).then(|| Cell::Number(at.as_millisecond().to_string())),
        }
    }

    /// Its approximate size in bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Cell::Null | Cell::Boolean(_) | Cell::Timestamp(_) => size_of::<Cell>(),
            Cell::Text(text) | Cell::Number(text) | Cell::Bytes(text) => size_of::<Cell>() + text.len(),
        }
    }

    /// Writes it in the text format of `COPY`.
    pub(super) fn write_copy(&self, into: &mut String) {
        match self {
            Cell::Timestamp(at) => into.push_str(&at.to_string()),
            Cell::Bytes(text) => Cell::Text(text.clone()).write_copy(into),
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

    /// Writes it as JSON, a boolean as 1 or 0, because SQLite has no boolean type.
    pub(super) fn json(&self, into: &mut String) {
        match self {
            Cell::Number(text) => into.push_str(text),
            other => other.json_text(into),
        }
    }

    /// Writes it as JSON for a text column: a number becomes a string, because it would be rounded otherwise.
    pub(super) fn json_text(&self, into: &mut String) {
        match self {
            Cell::Null => into.push_str("null"),
            Cell::Boolean(value) => into.push(if *value { '1' } else { '0' }),
            Cell::Text(text) | Cell::Bytes(text) | Cell::Number(text) => {
                into.push_str(&serde_json::Value::from(text.as_str()).to_string());
            }
            Cell::Timestamp(at) => into.push_str(&serde_json::Value::from(at.to_string()).to_string()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_of_columns_are_escaped() {
        let (mut copied, mut json) = (String::new(), String::new());
        let text = Cell::Text("a\tb\\N\n\"".to_owned());
        text.write_copy(&mut copied);
        text.json(&mut json);
        assert_eq!((copied.as_str(), json.as_str()), ("a\\tb\\\\N\\n\"", r#""a\tb\\N\n\"""#));
    }
}
