//! A statement: one text for both databases, and the arguments that go with it.
//!
//! The text is written for SQLite, where it runs as it stands but for lists of rows, and is turned into PostgreSQL
//! in three ways, all of them here: tables move from a prefix to a schema (`refrain_runs`, `refrain.runs`); a lock, or an
//! order that is there only for locks, is a comment that only PostgreSQL reads (`/*for update skip locked*/`); and a list of rows
//! is one argument,
//!
//! ```sql
//! select r.run from rows(2: run integer, message text) as r
//! ```
//!
//! which is an array per column there (`unnest`) and one JSON text here (`jsonb_each`, for what `json_each` gives would be
//! parsed again for each column). It stands last among the arguments, for the two take a different number of places.
//!
//! Rejected: a file per database. Everything but the source of the rows was the same, and what is written twice drifts.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::OnceLock;

use crate::failpoint;

/// Names the statements of a folder's neighbours: a static for each, and `ALL` of them for tests.
macro_rules! catalog {
    ($($name:ident = $path:literal,)+) => {
        $(pub(crate) static $name: crate::database::statement::Statement =
            crate::database::statement::Statement::new($path, include_str!(concat!("../../", $path)));)+

        /// All of them.
        #[cfg(feature = "failpoints")]
        pub(crate) static ALL: &[&crate::database::statement::Statement] = &[$(&$name),+];
    };
}
pub(crate) use catalog;

/// A named statement.
pub(crate) struct Statement {
    /// Its file, as in `sql/run/open.sql`.
    pub(crate) name: &'static str,
    text: &'static str,
    texts: OnceLock<Texts>,
}

struct Texts {
    sqlite: String,
    postgres: String,
}

/// A value for a place in a statement.
#[derive(Debug, Clone)]
pub(crate) enum Argument<'a> {
    Integer(Option<i64>),
    Text(Option<Cow<'a, str>>),
    Boolean(bool),
    Rows(Rows<'a>),
}

/// A statement with its arguments.
pub(crate) struct Bound<'a> {
    pub(crate) statement: &'static Statement,
    pub(crate) arguments: Vec<Argument<'a>>,
    /// Whether the server may keep what it made of the text.
    pub(crate) is_kept: bool,
}

impl Statement {
    pub(crate) const fn new(name: &'static str, text: &'static str) -> Statement {
        Statement { name, text, texts: OnceLock::new() }
    }

    pub(crate) fn bind<'a>(&'static self, argument: impl Into<Argument<'a>>) -> Bound<'a> {
        self.bound().bind(argument)
    }

    pub(crate) fn bound<'a>(&'static self) -> Bound<'a> {
        Bound { statement: self, arguments: Vec::new(), is_kept: true }
    }

    pub(crate) fn sqlite(&'static self) -> &'static str {
        &self.texts().sqlite
    }

    pub(crate) fn postgres(&'static self) -> &'static str {
        &self.texts().postgres
    }

    fn texts(&self) -> &Texts {
        self.texts.get_or_init(|| {
            let text = without_header(failpoint::replacement(self.name).unwrap_or(self.text));
            Texts { sqlite: for_sqlite(text), postgres: for_postgres(text) }
        })
    }
}

impl<'a> Bound<'a> {
    pub(crate) fn bind(mut self, argument: impl Into<Argument<'a>>) -> Bound<'a> {
        self.arguments.push(argument.into());
        self
    }

    /// Refuses, in builds with debug assertions, a number of arguments that the text does not name.
    pub(crate) fn has_all_arguments(&self) {
        debug_assert_eq!(self.arguments.len(), positions(self.statement.text), "{}", self.statement.name);
    }

    /// Has PostgreSQL plan it each time. A plan that was made while a table was small goes through all of the table, and is
    /// kept until somebody has counted its rows.
    pub(crate) fn planned_anew(mut self) -> Bound<'a> {
        self.is_kept = false;
        self
    }
}

/// The highest position that a text names: `$3`, or the list `rows(3: …)`, which is one argument.
fn positions(text: &str) -> usize {
    let text = without_header(text);
    let numbers = text.split('$').skip(1).chain(text.split("rows(").skip(1));
    let number = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    numbers.filter_map(number).max().unwrap_or(0)
}

/// The header is for readers of the file; the server would parse it every time.
fn without_header(text: &str) -> &str {
    let mut rest = text;
    while let Some((_, after)) = rest.strip_prefix("--").and_then(|line| line.split_once('\n')) {
        rest = after;
    }
    rest.trim_end()
}

fn for_sqlite(text: &str) -> String {
    with_rows(text, |first, columns, name| {
        let mut source = String::from("(select ");
        for (at, (column, _)) in columns.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let _ = write!(source, "{comma}value ->> {at} as {column}");
        }
        let _ = write!(source, " from jsonb_each(${first})) as {name}");
        source
    })
}

fn for_postgres(text: &str) -> String {
    let locking = text.replace("/*", "").replace("*/", "");
    let expanded = with_rows(&locking, |first, columns, name| {
        let mut source = String::from("unnest(");
        for (at, (_, kind)) in columns.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let array = match *kind {
                "integer" => "bigint[]",
                "boolean" => "boolean[]",
                _ => "text[]",
            };
            let _ = write!(source, "{comma}cast(${} as {array})", first + at);
        }
        let names: Vec<&str> = columns.iter().map(|(column, _)| *column).collect();
        let _ = write!(source, ") as {name}({})", names.join(", "));
        source
    });
    expanded.replace("refrain_", "refrain.")
}

/// Puts `expand(first place, columns, name)` in place of each `rows(2: column type, …) as name`.
fn with_rows(text: &str, expand: impl Fn(usize, &[(&str, &str)], &str) -> String) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" rows(") {
        let parsed = after.split_once(") as ").and_then(|(inside, tail)| {
            let (first, columns) = inside.split_once(':')?;
            let columns: Option<Vec<_>> = columns.split(',').map(|one| one.trim().split_once(' ')).collect();
            let end = tail.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(tail.len());
            let (name, tail) = tail.split_at(end);
            Some((expand(first.trim().parse().ok()?, &columns?, name), tail))
        });
        let (source, tail) = parsed.unwrap_or_else(|| (String::from("rows("), after));
        result.push_str(before);
        result.push(' ');
        result.push_str(&source);
        rest = tail;
    }
    result + rest
}

/// A list of rows, by columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows<'a> {
    pub(crate) columns: Vec<Column<'a>>,
}

/// The values of one column, in the order of the rows.
#[derive(Debug, Clone)]
pub(crate) enum Column<'a> {
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<Cow<'a, str>>>),
    Booleans(Vec<bool>),
}

/// A text of a row, if there is one: lent or given.
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

/// How long a value in a row usually is, at most.
const VALUE_BYTES: usize = 24;

impl Column<'_> {
    fn len(&self) -> usize {
        match self {
            Column::Integers(values) => values.len(),
            Column::Texts(values) => values.len(),
            Column::Booleans(values) => values.len(),
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

impl From<i64> for Argument<'_> {
    fn from(value: i64) -> Self {
        Argument::Integer(Some(value))
    }
}

impl From<i32> for Argument<'_> {
    fn from(value: i32) -> Self {
        Argument::Integer(Some(value.into()))
    }
}

impl From<Option<i64>> for Argument<'_> {
    fn from(value: Option<i64>) -> Self {
        Argument::Integer(value)
    }
}

impl From<bool> for Argument<'_> {
    fn from(value: bool) -> Self {
        Argument::Boolean(value)
    }
}

impl<'a> From<&'a str> for Argument<'a> {
    fn from(value: &'a str) -> Self {
        Argument::Text(Some(value.into()))
    }
}

impl From<String> for Argument<'_> {
    fn from(value: String) -> Self {
        Argument::Text(Some(value.into()))
    }
}

impl<'a> From<Option<&'a str>> for Argument<'a> {
    fn from(value: Option<&'a str>) -> Self {
        Argument::Text(value.map(Cow::Borrowed))
    }
}

impl From<Option<String>> for Argument<'_> {
    fn from(value: Option<String>) -> Self {
        Argument::Text(value.map(Into::into))
    }
}

impl<'a> From<Rows<'a>> for Argument<'a> {
    fn from(rows: Rows<'a>) -> Self {
        Argument::Rows(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_arrays_there_and_one_json_text_here() {
        let text = "select r.run from rows(2: run integer, message text) as r where r.run > $1";
        assert_eq!(
            for_postgres(text),
            "select r.run from unnest(cast($2 as bigint[]), cast($3 as text[])) as r(run, message) where r.run > $1"
        );
        assert_eq!(
            for_sqlite(text),
            "select r.run from (select value ->> 0 as run, value ->> 1 as message from jsonb_each($2)) as r where r.run > $1"
        );
    }

    #[test]
    fn the_number_of_arguments_is_the_highest_position_of_the_text() {
        assert_eq!(positions("-- $9 is a header\nselect $2, $1 from rows(3: run integer, key text) as r"), 3);
        assert_eq!(positions("select $10 from refrain_runs where id = $1"), 10);
        assert_eq!(positions("select 1"), 0);
    }

    #[test]
    #[should_panic(expected = "a test")]
    fn a_statement_with_an_argument_too_few_is_refused() {
        static STATEMENT: Statement = Statement::new("a test", "select $1, $2");
        STATEMENT.bind(1).has_all_arguments();
    }

    #[test]
    fn a_lock_is_a_comment_that_only_postgres_reads() {
        let text = "select run from refrain_queue order by run /*for update skip locked*/";
        assert_eq!(for_postgres(text), "select run from refrain.queue order by run for update skip locked");
        assert_eq!(for_sqlite(text), text);
    }

    #[test]
    fn rows_become_json_with_nothing_lost() {
        let rows =
            Rows::default().integers([Some(1), None]).texts([Some("a\"b\n"), None]).booleans([true, false]);
        assert_eq!(rows.json(), r#"[[1,"a\"b\n",1],[null,null,0]]"#);
        assert_eq!(Rows::default().integers(Vec::<i64>::new()).json(), "[]");
    }
}
