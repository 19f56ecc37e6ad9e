//! Binds values as typed parameters of a statement: `:ds` is a date, `:window_start` a timestamp, on both databases.
//!
//! For PostgreSQL the statement contains the type, as in `cast($1 as date)`, so that an index on a date column is used and a
//! malformed value is refused; dates and timestamps are also sent with their type (`user_database/timed.rs`). SQLite has no
//! such types: timestamps are bound in the form in which the database stores them, because `2026-06-09T00:00:00Z` and
//! `2026-06-09 00:00:00` are different texts.

use std::borrow::Cow;
use std::str::FromStr;

use jiff::Timestamp;
use refrain_core::Values;
use refrain_core::project::{Dialect, Sql, TimeForm};
use serde_json::Value;

use crate::user_database::{BoundQuery, QueryArgument, Timed};

/// Binds the values of a run. `scope` is the type of the scope column, as the database names it.
pub(crate) fn bound(
    sql: &Sql,
    values: &Values,
    dialect: Dialect,
    time: TimeForm,
    scope: Option<&str>,
) -> Result<BoundQuery, String> {
    let mut arguments = Vec::new();
    let mut kinds = Vec::new();
    for name in sql.names() {
        let (argument, kind) = argument(name, values, dialect, time, scope)?;
        arguments.push(argument);
        kinds.push(kind);
    }
    let text = sql.rewrite(|_, position| match kinds.get(position - 1) {
        Some(kind) if dialect == Dialect::Postgres => format!("cast(${position} as {kind})"),
        _ => format!("${position}"),
    });
    Ok(BoundQuery { text, arguments })
}

fn argument(
    name: &str,
    values: &Values,
    dialect: Dialect,
    time: TimeForm,
    scope: Option<&str>,
) -> Result<(QueryArgument, Cow<'static, str>), String> {
    if let Some(value) = values.payload_at(name) {
        return of_json(name, value).map(|(argument, kind)| (argument, kind.into()));
    }
    let text = values.text(name).ok_or_else(|| {
        format!(
            "`:{name}` has no value in this run\n  a queued run has its payload, a scheduled one its window"
        )
    })?;
    if let ("scope", Dialect::Postgres) = (name, dialect) {
        return Ok((QueryArgument::Text(text), of_scope(scope)));
    }
    let (argument, kind) = match (name, dialect) {
        ("ds", Dialect::Postgres) => (timed(text, Timed::Date), "date"),
        ("window_start" | "window_end" | "watermark", Dialect::Postgres) => {
            (timed(text, Timed::Moment), "timestamptz")
        }
        ("window_start" | "window_end" | "watermark", Dialect::Sqlite) => (timestamp(&text, time)?, "text"),
        ("version", _) => (QueryArgument::Integer(text.parse().unwrap_or_default()), "bigint"),
        ("scope", Dialect::Sqlite) if scope.is_some_and(is_integer) => match text.parse() {
            Ok(number) => (QueryArgument::Integer(number), "bigint"),
            Err(_) => (QueryArgument::Text(text), "text"),
        },
        _ => (QueryArgument::Text(text), "text"),
    };
    Ok((argument, kind.into()))
}

/// A value with its type. A malformed text is sent as it is, and the server refuses it.
fn timed<T: FromStr>(text: String, of: impl Fn(T) -> Timed) -> QueryArgument {
    text.parse().map_or_else(|_| QueryArgument::Text(text), |value| QueryArgument::Timed(of(value)))
}

/// Whether a type is an integer, as either driver names it: the scopes may come from the other kind of database.
fn is_integer(kind: &str) -> bool {
    ["INTEGER", "INT2", "INT4", "INT8"].contains(&kind)
}

/// The PostgreSQL type of a scope, from the driver's name for it: built-in types are in capitals, user-defined ones as the
/// server writes them, with quotes and schema if needed.
fn of_scope(theirs: Option<&str>) -> Cow<'static, str> {
    match theirs {
        None | Some("" | "UNKNOWN") => "text".into(),
        Some("\"CHAR\"") => "\"char\"".into(),
        Some(name) if name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) => {
            name.to_ascii_lowercase().into()
        }
        Some(name) => name.to_owned().into(),
    }
}

fn of_json(name: &str, value: &Value) -> Result<(QueryArgument, &'static str), String> {
    Ok(match value {
        Value::String(text) if text.contains('\0') => {
            return Err(format!("`:{name}` contains NUL, which databases cannot store"));
        }
        Value::String(text) => (QueryArgument::Text(text.clone()), "text"),
        Value::Bool(value) => (QueryArgument::Boolean(*value), "boolean"),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => (QueryArgument::Integer(integer), "bigint"),
            (None, Some(real)) => (QueryArgument::Real(real), "double precision"),
            (None, None) => return Err(format!("`:{name}` is {number}, which no column can store")),
        },
        Value::Null => return Err(format!("`:{name}` is null in this run's payload")),
        other => (QueryArgument::Text(other.to_string()), "jsonb"),
    })
}

/// A timestamp in the form in which SQLite stores it.
fn timestamp(text: &str, time: TimeForm) -> Result<QueryArgument, String> {
    let at: Timestamp = text.parse().map_err(|_| format!("`{text}` is not a timestamp"))?;
    Ok(timestamp_in(at, time))
}

/// A timestamp as an argument, in the form in which SQLite stores it.
pub(crate) fn timestamp_in(at: Timestamp, time: TimeForm) -> QueryArgument {
    match time {
        TimeForm::Text => QueryArgument::Text(at.strftime("%Y-%m-%d %H:%M:%S").to_string()),
        TimeForm::Iso => QueryArgument::Text(at.to_string()),
        TimeForm::Unix => QueryArgument::Integer(at.as_second()),
        TimeForm::UnixMs => QueryArgument::Integer(at.as_millisecond()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        Values {
            ds: Some("2026-06-09".to_owned()),
            window_start: Some("2026-06-09T12:00:00Z".to_owned()),
            scope: Some("7".to_owned()),
            version: Some(3),
            payload: Some(
                serde_json::json!({"id": 42, "name": "Ada; drop table x", "rate": 0.5, "tags": ["a"], "no": null}),
            ),
            ..Values::default()
        }
    }

    fn of(text: &str, dialect: Dialect, time: TimeForm, scope: Option<&str>) -> Result<BoundQuery, String> {
        bound(&Sql::parse(text, dialect).unwrap(), &values(), dialect, time, scope)
    }

    #[test]
    fn statements_for_postgres_contain_the_types() {
        let text = "select * from t where d = :ds and at >= :window_start and v = :version and d = :ds";
        let bound = of(text, Dialect::Postgres, TimeForm::Text, None).unwrap();
        assert_eq!(
            bound.text,
            "select * from t where d = cast($1 as date) and at >= cast($2 as timestamptz) and v = cast($3 as bigint) and d = cast($1 as date)"
        );
        let (day, noon) = ("2026-06-09".parse().unwrap(), "2026-06-09T12:00:00Z".parse().unwrap());
        let expected = [Timed::Date(day), Timed::Moment(noon)].map(QueryArgument::Timed);
        assert_eq!(bound.arguments[..2], expected);
        assert_eq!(bound.arguments[2], QueryArgument::Integer(3));
    }

    #[test]
    fn a_scope_has_the_type_of_its_column() {
        for (theirs, ours) in [
            (Some("INT8"), "int8"),
            (Some("UUID"), "uuid"),
            (Some("\"Region\""), "\"Region\""),
            (None, "text"),
        ] {
            let bound = of("select :scope", Dialect::Postgres, TimeForm::Text, theirs).unwrap();
            assert_eq!(bound.text, format!("select cast($1 as {ours})"));
        }
        for (theirs, value) in
            [("INTEGER", QueryArgument::Integer(7)), ("TEXT", QueryArgument::Text("7".to_owned()))]
        {
            let bound = of("select :scope", Dialect::Sqlite, TimeForm::Text, Some(theirs)).unwrap();
            assert_eq!((bound.text.as_str(), bound.arguments), ("select $1", vec![value]));
        }
    }

    #[test]
    fn timestamps_for_sqlite_have_the_form_of_its_database() {
        for (time, value) in [
            (TimeForm::Text, QueryArgument::Text("2026-06-09 12:00:00".to_owned())),
            (TimeForm::Iso, QueryArgument::Text("2026-06-09T12:00:00Z".to_owned())),
            (TimeForm::Unix, QueryArgument::Integer(1_781_006_400)),
            (TimeForm::UnixMs, QueryArgument::Integer(1_781_006_400_000)),
        ] {
            let bound = of("select :window_start", Dialect::Sqlite, time, None).unwrap();
            assert_eq!(bound.arguments, [value]);
        }
    }

    #[test]
    fn payload_fields_keep_their_types_and_a_missing_one_is_an_error() {
        let text = "select :payload.id, :payload.name, :payload.rate, :payload.tags";
        let bound = of(text, Dialect::Postgres, TimeForm::Text, None).unwrap();
        assert_eq!(
            bound.arguments,
            [
                QueryArgument::Integer(42),
                QueryArgument::Text("Ada; drop table x".to_owned()),
                QueryArgument::Real(0.5),
                QueryArgument::Text("[\"a\"]".to_owned())
            ]
        );
        for missing in [":payload.no", ":payload.other", ":window_end"] {
            let error = of(&format!("select {missing}"), Dialect::Sqlite, TimeForm::Text, None).unwrap_err();
            assert!(error.contains(missing), "{error}");
        }
    }
}
