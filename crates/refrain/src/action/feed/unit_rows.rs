//! Writes units as rows of a table.

use std::borrow::Cow;

use refrain_core::content;
use refrain_core::publish::TablePublish;
use refrain_core::{ContentError, Fingerprint};
use sqlx::Pool;

use super::unit::Unit;
use crate::bind::context::About;
use crate::ledger::{BatchError, Batches};
use crate::publish::error::WriteError;
use crate::publish::writer::Writer;
use crate::run::{JobError, Run};
use crate::user_database::{Backend, Cell, Row, UserDatabase};

/// The table that units are written to.
pub(super) struct UnitRows<DB> {
    writer: Writer<DB>,
    /// The source that `land` records with each row.
    from: String,
}

impl<DB: Backend> UnitRows<DB> {
    pub(super) async fn open(
        pool: &Pool<DB>,
        publish: &TablePublish,
        about: &About,
        run: &Run,
        database: &UserDatabase,
    ) -> Result<UnitRows<DB>, JobError> {
        let failed = |error: WriteError| error.into_job_error(&about.redactor);
        let writer =
            Writer::open(pool, publish, about, &about.values(run), database).await.map_err(failed)?;
        writer.is_ready().map_err(failed)?;
        Ok(UnitRows { writer, from: run.name() })
    }

    /// Writes the units of these batches, each in its own transaction.
    pub(super) async fn apply(&self, mut batches: Batches<'_, DB, Unit>) -> Result<(), JobError> {
        while let Some(mut batch) = batches.next().await? {
            let (connection, due) = batch.parts();
            let went = self.write(connection, &due).await;
            batch.settle_at_once(went).await?;
        }
        Ok(())
    }

    /// Writes units in a transaction.
    pub(super) async fn write(
        &self,
        connection: &mut DB::Connection,
        units: &[&Unit],
    ) -> Result<(), BatchError> {
        for (number, RowGroup { columns, units }) in (1..).zip(group_by_columns(units.iter().copied())?) {
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

/// Units with the same fields.
pub(super) struct RowGroup<'u> {
    pub(super) columns: Vec<String>,
    /// Each unit with its index in the part, and its row.
    pub(super) units: Vec<(u64, &'u Unit, Row)>,
}

/// Groups units by their fields. An absent field is not null: a column that a unit does not have stays unchanged, whichever
/// other units are in the part.
pub(super) fn group_by_columns<'u>(
    units: impl IntoIterator<Item = &'u Unit>,
) -> Result<Vec<RowGroup<'u>>, ContentError> {
    let mut all: Vec<RowGroup<'u>> = Vec::new();
    for (place, unit) in (0..).zip(units) {
        let members = content::members(&unit.text)?;
        let is_same = |RowGroup { columns, .. }: &&mut RowGroup<'u>| {
            columns.len() == members.len()
                && columns.iter().zip(&members).all(|(column, (name, _))| column == name)
        };
        let row = members.iter().map(|(_, value)| cell(value)).collect::<Result<Row, ContentError>>()?;
        match all.iter_mut().find(is_same) {
            Some(same) => same.units.push((place, unit, row)),
            None => all.push(RowGroup {
                columns: members.iter().map(|(name, _)| name.to_string()).collect(),
                units: vec![(place, unit, row)],
            }),
        }
    }
    Ok(all)
}

/// A JSON value as a column value: numbers as they are written, nested values as JSON text.
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
