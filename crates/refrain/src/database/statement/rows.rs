//! A list of rows as one argument of a statement, by columns.

use std::borrow::Cow;

/// A list of rows, by columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows<'a> {
    pub(crate) columns: Vec<Column<'a>>,
    /// The names of its columns, if the caller gives them.
    pub(super) names: Vec<&'static str>,
}

/// The values of one column, in the order of the rows.
#[derive(Debug, Clone)]
pub(crate) enum Column<'a> {
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<Cow<'a, str>>>),
    Booleans(Vec<bool>),
}

/// The text of one row, or null: borrowed or owned.
pub(crate) trait Text<'a> {
    fn text(self) -> Option<Cow<'a, str>>;
}

impl<'a> Text<'a> for &'a str {
    fn text(self) -> Option<Cow<'a, str>> {
        Some(Cow::Borrowed(self))
    }
}

impl<'a> Text<'a> for String {
    fn text(self) -> Option<Cow<'a, str>> {
        Some(Cow::Owned(self))
    }
}

impl<'a, T: Text<'a>> Text<'a> for Option<T> {
    fn text(self) -> Option<Cow<'a, str>> {
        self.and_then(T::text)
    }
}

impl<'a> Rows<'a> {
    pub(crate) fn integers<V: Into<Option<i64>>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        self.columns.push(Column::Integers(values.into_iter().map(Into::into).collect()));
        self
    }

    pub(crate) fn texts<V: Text<'a>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        self.columns.push(Column::Texts(values.into_iter().map(Text::text).collect()));
        self
    }

    /// Names the column that was added last. If one column of a list has a name, all must have those that the statement gives them:
    /// columns of one type that are swapped are found.
    pub(crate) fn named(mut self, name: &'static str) -> Self {
        self.names.push(name);
        self
    }

    pub(crate) fn booleans(mut self, values: impl IntoIterator<Item = bool>) -> Self {
        self.columns.push(Column::Booleans(values.into_iter().collect()));
        self
    }

    /// All rows as one JSON text.
    pub(crate) fn json(&self) -> String {
        let length = self.columns.first().map_or(0, Column::len);
        let mut text = Vec::with_capacity(VALUE_BYTES * self.columns.len() * length);
        text.push(b'[');
        for row in 0..length {
            text.extend_from_slice(if row == 0 { b"[" } else { b",[" });
            for (at, column) in self.columns.iter().enumerate() {
                if at > 0 {
                    text.push(b',');
                }
                column.write(row, &mut text);
            }
            text.push(b']');
        }
        text.push(b']');
        String::from_utf8(text).unwrap_or_default()
    }
}

/// The usual length of a value, for the capacity of the text.
const VALUE_BYTES: usize = 24;

impl Column<'_> {
    fn len(&self) -> usize {
        match self {
            Column::Integers(values) => values.len(),
            Column::Texts(values) => values.len(),
            Column::Booleans(values) => values.len(),
        }
    }

    /// The type of the column, as a statement writes it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Column::Integers(_) => "integer",
            Column::Texts(_) => "text",
            Column::Booleans(_) => "boolean",
        }
    }

    fn write(&self, row: usize, text: &mut Vec<u8>) {
        let written = match self {
            Column::Integers(values) => serde_json::to_writer(text, &values.get(row)),
            Column::Texts(values) => serde_json::to_writer(text, &values.get(row)),
            Column::Booleans(values) => serde_json::to_writer(text, &values.get(row).copied().map(u8::from)),
        };
        debug_assert!(written.is_ok(), "a text in memory takes everything");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_json_with_nothing_lost() {
        let rows =
            Rows::default().integers([Some(1), None]).texts([Some("a\"b\n"), None]).booleans([true, false]);
        assert_eq!(rows.json(), r#"[[1,"a\"b\n",1],[null,null,0]]"#);
        assert_eq!(Rows::default().integers(Vec::<i64>::new()).json(), "[]");
    }
}
