//! Writes rows as CSV or JSON lines: the same rows give the same bytes.
//!
//! CSV is written here and not by a crate, because the `csv` crate cannot write NULL and an empty string differently. Here NULL is an empty
//! field and an empty string is `""`, as in PostgreSQL's `COPY`; the rest is RFC 4180.

use refrain_core::publish::FileFormat;

use super::super::error::WriteError;
use crate::user_database::Cell;

/// Writes rows with certain columns.
pub(crate) struct RowFormat {
    format: FileFormat,
    /// The column names as they are written.
    names: Vec<String>,
}

impl RowFormat {
    /// A format for these columns, whose names must be different.
    pub(crate) fn new(format: FileFormat, columns: &[String]) -> Result<RowFormat, WriteError> {
        for (at, column) in columns.iter().enumerate() {
            if columns.iter().take(at).any(|earlier| earlier == column) {
                let message = format!(
                    "two columns of the query are named `{column}`\n  name them: select a as first, b as second"
                );
                return Err(WriteError::Refused(message));
            }
        }
        let written = |column: &String| match format {
            FileFormat::Csv => field(column),
            FileFormat::JsonLines => text_of_json(column),
        };
        Ok(RowFormat { format, names: columns.iter().map(written).collect() })
    }

    /// The lines before the rows.
    pub(crate) fn head(&self) -> String {
        match self.format {
            FileFormat::Csv => format!("{}\n", self.names.join(",")),
            FileFormat::JsonLines => String::new(),
        }
    }

    /// Writes a row.
    pub(crate) fn row(&self, row: &[Cell], into: &mut String) {
        let is_json = self.format == FileFormat::JsonLines;
        into.push_str(if is_json { "{" } else { "" });
        for (at, (name, cell)) in self.names.iter().zip(row).enumerate() {
            if at > 0 {
                into.push(',');
            }
            if is_json {
                into.push_str(name);
                into.push(':');
                into.push_str(&value_of_json(cell));
            } else {
                into.push_str(&value_of_csv(cell));
            }
        }
        into.push_str(if is_json { "}\n" } else { "\n" });
    }
}

/// A field by RFC 4180, quoted if needed. An empty string is quoted too: an empty field is NULL.
fn field(text: &str) -> String {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

fn value_of_csv(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Number(text) => text.clone(),
        Cell::Text(text) | Cell::Bytes(text) => field(text),
        Cell::Timestamp(at) => at.to_string(),
    }
}

fn value_of_json(cell: &Cell) -> String {
    match cell {
        Cell::Null => "null".to_owned(),
        Cell::Boolean(value) => value.to_string(),
        Cell::Number(text) => text.clone(),
        Cell::Text(text) | Cell::Bytes(text) => text_of_json(text),
        Cell::Timestamp(at) => text_of_json(&at.to_string()),
    }
}

fn text_of_json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: FileFormat, row: &[Cell]) -> String {
        let columns: Vec<String> = (0..row.len()).map(|at| format!("c{at}")).collect();
        let lines = RowFormat::new(format, &columns).unwrap();
        let mut text = lines.head();
        lines.row(row, &mut text);
        text
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    #[test]
    fn separators_of_fields_are_quoted_and_null_is_not_the_empty_string() {
        let row = [Cell::Null, text(""), text("a,b"), text("say \"hi\""), text("two\nlines"), text("größe")];
        assert_eq!(
            written(FileFormat::Csv, &row),
            "c0,c1,c2,c3,c4,c5\n,\"\",\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",größe\n"
        );
        assert_eq!(
            written(FileFormat::JsonLines, &row),
            "{\"c0\":null,\"c1\":\"\",\"c2\":\"a,b\",\"c3\":\"say \\\"hi\\\"\",\"c4\":\"two\\nlines\",\"c5\":\"größe\"}\n"
        );
    }

    #[test]
    fn numbers_are_written_with_all_their_digits() {
        let row = [Cell::Number("12345678901234567890.10".to_owned()), Cell::Boolean(true)];
        assert_eq!(written(FileFormat::Csv, &row), "c0,c1\n12345678901234567890.10,true\n");
        assert_eq!(written(FileFormat::JsonLines, &row), "{\"c0\":12345678901234567890.10,\"c1\":true}\n");
    }

    #[test]
    fn two_columns_of_one_name_are_refused() {
        let columns = ["a", "b", "a"].map(str::to_owned);
        assert!(RowFormat::new(FileFormat::Csv, &columns).is_err());
    }
}
