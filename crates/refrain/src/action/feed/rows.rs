//! Units as rows of a table.

use std::borrow::Cow;
use std::collections::BTreeSet;

use refrain_core::content::{self, Member};
use refrain_core::publish::TablePublish;
use refrain_core::{ContentError, Values};
use sqlx::Pool;

use super::unit::Unit;
use crate::action::about::About;
use crate::job::JobError;
use crate::ledger::BatchError;
use crate::project::databases::{Database, Speaks};
use stand_in::{Cell, Writer};

/// Where the rows of units go.
pub(super) struct Rows {
    writer: Writer,
}

impl Rows {
    pub(super) async fn look<DB: Speaks>(
        pool: &Pool<DB>,
        publish: &TablePublish,
        about: &About,
        values: &Values,
        database: &Database,
    ) -> Result<Rows, JobError> {
        Ok(Rows { writer: Writer::look(pool, publish, about, values, database).await? })
    }

    /// Writes units, in the transaction of their batch.
    pub(super) async fn write<DB: Speaks>(
        &self,
        connection: &mut DB::Connection,
        units: &[&Unit],
    ) -> Result<(), BatchError> {
        let (columns, rows) = table(units)?;
        self.writer.write::<DB>(connection, &columns, rows).await?;
        Ok(())
    }
}

/// The fields of all of them, and a row for each: what one lacks is null.
fn table(units: &[&Unit]) -> Result<(Vec<String>, Vec<Vec<Cell>>), ContentError> {
    let members: Result<Vec<Vec<Member<'_>>>, ContentError> =
        units.iter().map(|unit| content::members(&unit.text)).collect();
    let members = members?;
    let names: BTreeSet<&str> = members.iter().flatten().map(|(name, _)| name.as_ref()).collect();
    let rows = members.iter().map(|members| {
        // Both are in the order of their bytes.
        let mut fields = members.iter().peekable();
        let cells = names.iter().map(|name| match fields.next_if(|(field, _)| field == name) {
            Some((_, value)) => cell(value),
            None => Ok(Cell::Null),
        });
        cells.collect::<Result<Vec<Cell>, ContentError>>()
    });
    let rows: Result<Vec<Vec<Cell>>, ContentError> = rows.collect();
    Ok((names.iter().map(|name| (*name).to_owned()).collect(), rows?))
}

/// A value as it goes into a column: numbers as they are written, what is nested as JSON.
fn cell(value: &str) -> Result<Cell, ContentError> {
    Ok(match value.as_bytes().first() {
        Some(b'"') => Cell::Text(content::unquoted(value).map(Cow::into_owned)?),
        Some(b'n') | None => Cell::Null,
        Some(b't') => Cell::Boolean(true),
        Some(b'f') => Cell::Boolean(false),
        Some(b'{' | b'[') => Cell::Text(value.to_owned()),
        Some(_) => Cell::Number(value.to_owned()),
    })
}

/// A plain upsert by key.
mod stand_in {
    use refrain_core::Values;
    use refrain_core::project::Dialect;
    use refrain_core::publish::{TablePublish, quoted};
    use serde_json::value::RawValue;
    use sqlx::Pool;

    use crate::action::about::About;
    use crate::action::binds::{Argument, Bound};
    use crate::job::JobError;
    use crate::project::databases::{Database, Speaks};

    #[derive(Debug, Clone, PartialEq)]
    pub(super) enum Cell {
        Null,
        Text(String),
        Number(String),
        Boolean(bool),
    }

    pub(super) struct Writer {
        table: String,
        key: Vec<String>,
    }

    impl Writer {
        #[expect(clippy::unused_async, reason = "the look at a table asks its database")]
        pub(super) async fn look<DB: Speaks>(
            _: &Pool<DB>,
            publish: &TablePublish,
            _: &About,
            _: &Values,
            _: &Database,
        ) -> Result<Writer, JobError> {
            Ok(Writer { table: publish.table.quoted(), key: publish.key.clone() })
        }

        pub(super) async fn write<DB: Speaks>(
            &self,
            connection: &mut DB::Connection,
            columns: &[String],
            rows: Vec<Vec<Cell>>,
        ) -> Result<u64, sqlx::Error> {
            let list =
                |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
            let set = |name: &String| format!("{0} = excluded.{0}", quoted(name));
            let set = columns.iter().map(set).collect::<Vec<_>>().join(", ");
            let upsert = format!("on conflict ({}) do update set {set}", list(&self.key));
            let into = format!("insert into {} ({})", self.table, list(columns));
            if DB::DIALECT == Dialect::Postgres {
                let object = |row: &Vec<Cell>| {
                    let pairs = columns.iter().zip(row).map(|(name, cell)| (name.as_str(), raw(cell)));
                    pairs.collect::<std::collections::BTreeMap<&str, Box<RawValue>>>()
                };
                let rows: Vec<_> = rows.iter().map(object).collect();
                let rows = serde_json::to_string(&rows).map_err(|error| sqlx::Error::Encode(error.into()))?;
                let text = format!(
                    "{into} select {} from json_populate_recordset(cast(null as {}), cast($1 as json)) {upsert}",
                    list(columns),
                    self.table
                );
                return DB::execute(connection, &Bound { text, arguments: vec![Argument::Text(rows)] }).await;
            }
            let mut written = 0;
            for row in rows {
                let (mut places, mut arguments) = (Vec::new(), Vec::new());
                for cell in row {
                    let argument = match cell {
                        Cell::Null => {
                            places.push("null".to_owned());
                            continue;
                        }
                        Cell::Text(text) => Argument::Text(text),
                        Cell::Boolean(value) => Argument::Boolean(value),
                        Cell::Number(number) => match (number.parse(), number.parse()) {
                            (Ok(integer), _) => Argument::Integer(integer),
                            (_, Ok(real)) => Argument::Real(real),
                            _ => Argument::Text(number),
                        },
                    };
                    arguments.push(argument);
                    places.push(format!("${}", arguments.len()));
                }
                let text = format!("{into} values ({}) {upsert}", places.join(", "));
                written += DB::execute(connection, &Bound { text, arguments }).await?;
            }
            Ok(written)
        }
    }

    fn raw(cell: &Cell) -> Box<RawValue> {
        let text = match cell {
            Cell::Null => "null".to_owned(),
            Cell::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Cell::Number(number) => number.clone(),
            Cell::Boolean(value) => value.to_string(),
        };
        RawValue::from_string(text).unwrap_or_default()
    }
}
