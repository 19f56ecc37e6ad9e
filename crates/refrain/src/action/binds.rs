//! Values as typed parameters of a statement: `:ds` is a date, `:window_start` a moment, on both databases.
//!
//! PostgreSQL is told the type in the statement, `cast($1 as date)`, so that an index on a date column is used and a value
//! of the wrong form is refused; dates and moments have it themselves as well (`action/binds/timed.rs`). SQLite has no such types:
//! moments are bound in the form in which the database holds them, or a comparison of `2026-06-09T00:00:00Z` with `2026-06-09 00:00:00` would quietly find nothing.

mod timed;

use std::borrow::Cow;
use std::str::FromStr;

use jiff::Timestamp;
use refrain_core::Values;
use refrain_core::project::{Dialect, Sql, TimeForm};
use serde_json::Value;

pub(crate) use self::timed::Timed;

/// A statement with a value for each of its places.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    pub(crate) text: String,
    pub(crate) arguments: Vec<Argument>,
}

/// A value for a place in a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    Text(String),
    Integer(i64),
    Real(f64),
    Boolean(bool),
    Timed(Timed),
}

/// Binds the values of a run; `scope` is the type of a scope, as the database calls it.
pub(crate) fn bound(
    sql: &Sql,
    values: &Values,
    dialect: Dialect,
    time: TimeForm,
    scope: Option<&str>,
) -> Result<Bound, String> {
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
    Ok(Bound { text, arguments })
}

fn argument(
    name: &str,
    values: &Values,
    dialect: Dialect,
    time: TimeForm,
    scope: Option<&str>,
) -> Result<(Argument, Cow<'static, str>), String> {
    if let Some(value) = values.payload_at(name) {
        return of_json(name, value).map(|(argument, kind)| (argument, kind.into()));
    }
    let text = values.text(name).ok_or_else(|| {
        format!(
            "`:{name}` has no value in this run\n  a queued run has its payload, a scheduled one its window"
        )
    })?;
    if let ("scope", Dialect::Postgres) = (name, dialect) {
        return Ok((Argument::Text(text), of_scope(scope)));
    }
    let (argument, kind) = match (name, dialect) {
        ("ds", Dialect::Postgres) => (timed(text, Timed::Date), "date"),
        ("window_start" | "window_end" | "watermark", Dialect::Postgres) => {
            (timed(text, Timed::Moment), "timestamptz")
        }
        ("window_start" | "window_end" | "watermark", Dialect::Sqlite) => (moment(&text, time)?, "text"),
        ("version", _) => (Argument::Integer(text.parse().unwrap_or_default()), "bigint"),
        ("scope", Dialect::Sqlite) if scope.is_some_and(is_integer) => match text.parse() {
            Ok(number) => (Argument::Integer(number), "bigint"),
            Err(_) => (Argument::Text(text), "text"),
        },
        _ => (Argument::Text(text), "text"),
    };
    Ok((argument, kind.into()))
}

/// A value with its type; a text that is not of its form is for the server to refuse.
fn timed<T: FromStr>(text: String, of: impl Fn(T) -> Timed) -> Argument {
    text.parse().map_or_else(|_| Argument::Text(text), |value| Argument::Timed(of(value)))
}

/// Whether a type is one of whole numbers, as either driver calls it: the scopes may be in another database.
fn is_integer(kind: &str) -> bool {
    ["INTEGER", "INT2", "INT4", "INT8"].contains(&kind)
}

/// The type of PostgreSQL that a scope has, by what the driver calls it: its own types in capitals, those that somebody made
/// as the server writes them, with quotes and schema where they are needed.
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

fn of_json(name: &str, value: &Value) -> Result<(Argument, &'static str), String> {
    Ok(match value {
        Value::String(text) if text.contains('\0') => {
            return Err(format!("`:{name}` holds a NUL, which no database keeps"));
        }
        Value::String(text) => (Argument::Text(text.clone()), "text"),
        Value::Bool(value) => (Argument::Boolean(*value), "boolean"),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => (Argument::Integer(integer), "bigint"),
            (None, Some(real)) => (Argument::Real(real), "double precision"),
            (None, None) => return Err(format!("`:{name}` is {number}, which no column holds")),
        },
        Value::Null => return Err(format!("`:{name}` is null in this run's payload")),
        other => (Argument::Text(other.to_string()), "jsonb"),
    })
}

/// A moment in the form in which a file holds it.
fn moment(text: &str, time: TimeForm) -> Result<Argument, String> {
    let at: Timestamp = text.parse().map_err(|_| format!("`{text}` is no moment"))?;
    Ok(moment_in(at, time))
}

/// The same of one that was read.
pub(crate) fn moment_in(at: Timestamp, time: TimeForm) -> Argument {
    match time {
        TimeForm::Text => Argument::Text(at.strftime("%Y-%m-%d %H:%M:%S").to_string()),
        TimeForm::Iso => Argument::Text(at.to_string()),
        TimeForm::Unix => Argument::Integer(at.as_second()),
        TimeForm::UnixMs => Argument::Integer(at.as_millisecond()),
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

    fn of(text: &str, dialect: Dialect, time: TimeForm, scope: Option<&str>) -> Result<Bound, String> {
        bound(&Sql::parse(text, dialect).unwrap(), &values(), dialect, time, scope)
    }

    #[test]
    fn postgresql_is_told_the_types() {
        let text = "select * from t where d = :ds and at >= :window_start and v = :version and d = :ds";
        let bound = of(text, Dialect::Postgres, TimeForm::Text, None).unwrap();
        assert_eq!(
            bound.text,
            "select * from t where d = cast($1 as date) and at >= cast($2 as timestamptz) and v = cast($3 as bigint) and d = cast($1 as date)"
        );
        let (day, noon) = ("2026-06-09".parse().unwrap(), "2026-06-09T12:00:00Z".parse().unwrap());
        let expected = [Timed::Date(day), Timed::Moment(noon)].map(Argument::Timed);
        assert_eq!(bound.arguments[..2], expected);
        assert_eq!(bound.arguments[2], Argument::Integer(3));
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
        for (theirs, value) in [("INTEGER", Argument::Integer(7)), ("TEXT", Argument::Text("7".to_owned()))] {
            let bound = of("select :scope", Dialect::Sqlite, TimeForm::Text, Some(theirs)).unwrap();
            assert_eq!((bound.text.as_str(), bound.arguments), ("select $1", vec![value]));
        }
    }

    #[test]
    fn a_file_gets_moments_in_the_form_in_which_it_holds_them() {
        for (time, value) in [
            (TimeForm::Text, Argument::Text("2026-06-09 12:00:00".to_owned())),
            (TimeForm::Iso, Argument::Text("2026-06-09T12:00:00Z".to_owned())),
            (TimeForm::Unix, Argument::Integer(1_781_006_400)),
            (TimeForm::UnixMs, Argument::Integer(1_781_006_400_000)),
        ] {
            let bound = of("select :window_start", Dialect::Sqlite, time, None).unwrap();
            assert_eq!(bound.arguments, [value]);
        }
    }

    #[test]
    fn a_payload_keeps_its_types_and_what_is_missing_is_said() {
        let text = "select :payload.id, :payload.name, :payload.rate, :payload.tags";
        let bound = of(text, Dialect::Postgres, TimeForm::Text, None).unwrap();
        assert_eq!(
            bound.arguments,
            [
                Argument::Integer(42),
                Argument::Text("Ada; drop table x".to_owned()),
                Argument::Real(0.5),
                Argument::Text("[\"a\"]".to_owned())
            ]
        );
        for missing in [":payload.no", ":payload.other", ":window_end"] {
            let error = of(&format!("select {missing}"), Dialect::Sqlite, TimeForm::Text, None).unwrap_err();
            assert!(error.contains(missing), "{error}");
        }
    }
}
