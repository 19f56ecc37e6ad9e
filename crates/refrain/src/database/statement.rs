//! A statement: one text for both databases, with its arguments.
//!
//! The text is written for SQLite, which executes it unchanged except for lists of rows. For PostgreSQL it is
//! rewritten in three ways, all of them here: table names move from a prefix to a schema (`refrain_runs`,
//! `refrain.runs`); a lock, or an order that only locks need, is a comment that only PostgreSQL reads (`/*for
//! update skip locked*/`); and a list of rows is one argument,
//!
//! ```sql
//! select r.run from rows(2: run integer, message text) as r
//! ```
//!
//! which is one array per column on PostgreSQL (`unnest`) and one JSON text on SQLite (`jsonb_each`: the
//! output of `json_each` would be parsed again for each column). It is the last argument, because the two
//! databases number it differently.
//!
//! Columns that several statements select are listed once, here: `columns(run)` stands for a list in
//! [`COLUMNS`](columns::COLUMNS). Rejected: a view for each list. A view needs a migration for each new column, and hides which
//! tables a statement locks.
//!
//! Rejected: a file per database. Everything except the source of the rows was the same, and two copies drift
//! apart.

mod columns;
pub(super) mod rows;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::OnceLock;

use self::columns::COLUMNS;
use self::rows::Column;
pub(crate) use self::rows::Rows;
use crate::failpoint;

/// Declares the statements of some folders: a static for each, and `ALL` of them for tests.
macro_rules! catalog {
    ($($name:ident = $path:literal,)+) => {
        $(pub(crate) static $name: crate::database::statement::Statement =
            crate::database::statement::Statement::new($path, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)));)+

        /// All statements of this catalogue.
        #[cfg(feature = "failpoints")]
        pub(crate) static ALL: &[&crate::database::statement::Statement] = &[$(&$name),+];
    };
}
pub(crate) use catalog;

/// A named statement.
pub(crate) struct Statement {
    /// The path of its file, as in `sql/run/open.sql`.
    pub(crate) name: &'static str,
    text: &'static str,
    texts: OnceLock<Texts>,
}

struct Texts {
    sqlite: String,
    postgres: String,
    arguments: Vec<Expected>,
}

/// What a statement expects at one of its positions.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    Value,
    /// A list of rows with columns of these names and types.
    Rows(Vec<(&'static str, &'static str)>),
}

/// An argument of a statement.
#[derive(Debug, Clone)]
pub(crate) enum Argument<'a> {
    Integer(Option<i64>),
    Text(Option<Cow<'a, str>>),
    Boolean(bool),
    Rows(Rows<'a>),
}

/// A statement with its arguments.
#[derive(Clone)]
pub(crate) struct Bound<'a> {
    pub(crate) statement: &'static Statement,
    pub(crate) arguments: Vec<Argument<'a>>,
    /// Whether the server may keep the prepared statement and its plan.
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
            let text = with_columns(failpoint::replacement(self.name).unwrap_or(self.text));
            let arguments = arguments(self.text);
            Texts { sqlite: for_sqlite(&text), postgres: for_postgres(&text), arguments }
        })
    }
}

impl<'a> Bound<'a> {
    pub(crate) fn bind(mut self, argument: impl Into<Argument<'a>>) -> Bound<'a> {
        self.arguments.push(argument.into());
        self
    }

    /// Asserts that the number and the kinds of arguments match the text. SQLite would read a missing one as
    /// null.
    pub(crate) fn has_all_arguments(&self) {
        let expected = &self.statement.texts().arguments;
        let fits = |(argument, expected): (&Argument<'_>, &Expected)| match (argument, expected) {
            (Argument::Rows(rows), Expected::Rows(columns)) => {
                let names = columns.iter().map(|(name, _)| *name);
                rows.columns.iter().map(Column::kind).eq(columns.iter().map(|(_, kind)| *kind))
                    && (rows.names.is_empty() || rows.names.iter().copied().eq(names))
            }
            (Argument::Rows(_), Expected::Value) | (_, Expected::Rows(_)) => false,
            (_, Expected::Value) => true,
        };
        let is_complete = self.arguments.len() == expected.len();
        assert!(
            is_complete && self.arguments.iter().zip(expected).all(fits),
            "{} expects {expected:?}",
            self.statement.name
        );
    }

    /// Makes PostgreSQL plan it each time. A plan that was made while a table was small scans the whole
    /// table, and is kept until the table is analysed.
    pub(crate) fn planned_anew(mut self) -> Bound<'a> {
        self.is_kept = false;
        self
    }
}

/// What a text expects at each of its positions: `$3` is a value, and the list `rows(3: …)` is one argument.
fn arguments(text: &'static str) -> Vec<Expected> {
    let text = without_header(text);
    let values = text.split('$').skip(1);
    let number = |rest: &str| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok();
    let mut expected = vec![Expected::Value; values.filter_map(number).max().unwrap_or(0)];
    for (at, columns) in
        text.split(" rows(").skip(1).filter_map(|rest| rest.split_once(") as ")?.0.split_once(':'))
    {
        let Some(at) = at.trim().parse::<usize>().ok().and_then(|position| position.checked_sub(1)) else {
            continue;
        };
        let columns = columns.split(',').filter_map(|column| column.trim().split_once(' '));
        expected.resize(expected.len().max(at + 1), Expected::Value);
        if let Some(rows) = expected.get_mut(at) {
            *rows = Expected::Rows(columns.collect());
        }
    }
    expected
}

/// The text without its header, and with its lists of columns expanded.
fn with_columns(text: &str) -> String {
    COLUMNS.iter().fold(without_header(text).to_owned(), |text, (name, columns)| text.replace(name, columns))
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

/// Replaces each `rows(2: column type, …) as name` by `expand(first position, columns, name)`.
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
    fn rows_are_arrays_on_postgres_and_one_json_text_on_sqlite() {
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
    fn a_statement_expects_what_its_text_names() {
        let rows = Expected::Rows(vec![("run", "integer"), ("key", "text")]);
        assert_eq!(
            arguments("-- $9 is a header\nselect $2, $1 from rows(3: run integer, key text) as r"),
            [Expected::Value, Expected::Value, rows.clone()]
        );
        assert_eq!(
            arguments("delete from t where (r) in (select r.run from rows(1: run integer, key text) as r)"),
            [rows]
        );
        assert_eq!(arguments("select $10 from refrain_runs where id = $1").len(), 10);
        assert_eq!(arguments("select 1"), []);
    }

    #[test]
    #[should_panic(expected = "a test")]
    fn a_statement_with_an_argument_too_few_is_refused() {
        static STATEMENT: Statement = Statement::new("a test", "select $1, $2");
        STATEMENT.bind(1).has_all_arguments();
    }

    #[test]
    #[should_panic(expected = "a test")]
    fn rows_with_a_column_of_another_type_are_refused() {
        static STATEMENT: Statement =
            Statement::new("a test", "select r.run from rows(1: run integer, lane boolean) as r");
        STATEMENT.bind(Rows::default().integers([1]).integers([0])).has_all_arguments();
    }

    #[test]
    #[should_panic(expected = "a test")]
    fn rows_with_two_columns_swapped_are_refused() {
        static STATEMENT: Statement =
            Statement::new("a test", "select r.run from rows(1: run integer, spent integer) as r");
        let row = |names: [&'static str; 2]| {
            let [one, other] = names;
            Rows::default().integers([1]).named(one).integers([0]).named(other)
        };
        STATEMENT.bind(row(["run", "spent"])).has_all_arguments();
        STATEMENT.bind(row(["spent", "run"])).has_all_arguments();
    }

    #[test]
    fn a_list_of_columns_is_written_once() {
        assert!(
            with_columns("-- A header.\nselect columns(run look) from t")
                .starts_with("select runs.id, runs.job,")
        );
        for (name, columns) in COLUMNS {
            assert!(!with_columns(&format!("select {name}")).contains("columns("), "{name}");
            assert!(!columns.contains("  "), "{name}");
        }
    }

    #[test]
    fn a_lock_is_a_comment_that_only_postgres_reads() {
        let text = "select run from refrain_queue order by run /*for update skip locked*/";
        assert_eq!(for_postgres(text), "select run from refrain.queue order by run for update skip locked");
        assert_eq!(for_sqlite(text), text);
    }
}
