//! Units as rows of a table.

use std::borrow::Cow;

use refrain_core::content;
use refrain_core::publish::TablePublish;
use refrain_core::{ContentError, Fingerprint};
use sqlx::Pool;

use super::unit::Unit;
use crate::action::about::About;
use crate::action::environment::name_of;
use crate::job::JobError;
use crate::ledger::{Applying, BatchError};
use crate::project::databases::Database;
use crate::publish::error::WriteError;
use crate::publish::rows::{Cell, Row};
use crate::publish::table::Publishes;
use crate::publish::writer::Writer;
use crate::run::Run;

/// Where the rows of units go.
pub(super) struct Rows<DB> {
    writer: Writer<DB>,
    /// What `land` calls their source.
    from: String,
}

impl<DB: Publishes> Rows<DB> {
    pub(super) async fn look(
        pool: &Pool<DB>,
        publish: &TablePublish,
        about: &About,
        run: &Run,
        database: &Database,
    ) -> Result<Rows<DB>, JobError> {
        let told = |error: WriteError| error.told(&about.redactor);
        let writer = Writer::look(pool, publish, about, &about.values(run), database).await.map_err(told)?;
        writer.is_ready().map_err(told)?;
        writer.show(pool).await.map_err(told)?;
        Ok(Rows { writer, from: name_of(run) })
    }

    /// Writes units, batch by batch.
    pub(super) async fn apply(&self, mut batches: Applying<'_, DB, Unit>) -> Result<(), JobError> {
        while let Some(mut batch) = batches.next().await? {
            let (connection, due) = batch.parts();
            let went = self.write(connection, &due).await;
            batch.settle_at_once(went).await?;
        }
        Ok(())
    }

    /// Writes units, in the transaction of their batch.
    pub(super) async fn write(
        &self,
        connection: &mut DB::Connection,
        units: &[&Unit],
    ) -> Result<(), BatchError> {
        for (number, Alike { columns, units }) in (1..).zip(alike(units.iter().copied())?) {
            let mut rows = Vec::with_capacity(units.len());
            for (_, unit, mut row) in units {
                if self.writer.lands() {
                    let hash = Fingerprint::of_json(&unit.text)?;
                    row.extend([Cell::Text(self.from.clone()), Cell::Text(hash.to_string())]);
                }
                rows.push(row);
            }
            let mut staged = self.writer.make(connection, &columns, number).await?;
            self.writer.load(connection, &mut staged, &rows).await?;
            self.writer.conclude(connection, &staged).await?;
            self.writer.swap_units(connection, &staged).await?;
        }
        Ok(())
    }
}

/// Units of the same fields.
pub(super) struct Alike<'u> {
    pub(super) columns: Vec<String>,
    /// Each with its place among all of them, and its row.
    pub(super) units: Vec<(u64, &'u Unit, Row)>,
}

/// Units as rows, those of the same fields together. What a unit does not speak of is left as it is, whichever units it comes
/// with: an absent field is not null.
pub(super) fn alike<'u>(units: impl IntoIterator<Item = &'u Unit>) -> Result<Vec<Alike<'u>>, ContentError> {
    let mut all: Vec<Alike<'u>> = Vec::new();
    for (place, unit) in (0..).zip(units) {
        let members = content::members(&unit.text)?;
        let is_same = |Alike { columns, .. }: &&mut Alike<'u>| {
            columns.len() == members.len()
                && columns.iter().zip(&members).all(|(column, (name, _))| column == name)
        };
        let row = members.iter().map(|(_, value)| cell(value)).collect::<Result<Row, ContentError>>()?;
        match all.iter_mut().find(is_same) {
            Some(same) => same.units.push((place, unit, row)),
            None => all.push(Alike {
                columns: members.iter().map(|(name, _)| name.to_string()).collect(),
                units: vec![(place, unit, row)],
            }),
        }
    }
    Ok(all)
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
