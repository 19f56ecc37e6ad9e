//! Units as rows of a table.

use std::borrow::Cow;
use std::collections::BTreeSet;

use refrain_core::content::{self, Member};
use refrain_core::publish::TablePublish;
use refrain_core::{ContentError, Fingerprint};
use sqlx::Pool;

use super::unit::Unit;
use crate::action::about::About;
use crate::action::environment::name_of;
use crate::job::JobError;
use crate::ledger::{Applying, BatchError};
use crate::project::databases::Database;
use crate::publish::rows::Cell;
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
        let looked = Writer::look(pool, publish, about, &about.values(run), database).await;
        let looked = looked.and_then(|writer| writer.is_ready().map(|()| writer));
        let writer = looked.map_err(|error| error.told(&about.redactor))?;
        Ok(Rows { writer, from: name_of(run) })
    }

    /// Writes units, batch by batch.
    pub(super) async fn apply(&self, mut batches: Applying<'_, DB, Unit>) -> Result<(), JobError> {
        while let Some(mut batch) = batches.next().await? {
            let (connection, due) = batch.parts();
            let went = self.write(connection, &due).await;
            batch.settle(went).await?;
        }
        Ok(())
    }

    /// Writes units, in the transaction of their batch.
    pub(super) async fn write(
        &self,
        connection: &mut DB::Connection,
        units: &[&Unit],
    ) -> Result<(), BatchError> {
        let (columns, mut rows) = table(units)?;
        if self.writer.lands() {
            // What a unit says is its own, whatever the others have beside it.
            for (row, unit) in rows.iter_mut().zip(units) {
                let hash = Fingerprint::of_json(&unit.text)?;
                row.extend([Cell::Text(self.from.clone()), Cell::Text(hash.to_string())]);
            }
        }
        let mut staged = self.writer.make(connection, &columns, 1).await?;
        self.writer.load(connection, &mut staged, &rows).await?;
        self.writer.conclude(connection, &staged).await?;
        self.writer.swap_units(connection, &staged).await?;
        Ok(())
    }
}

/// The fields of all of them, and a row for each: what one lacks is null.
pub(super) fn table(units: &[&Unit]) -> Result<(Vec<String>, Vec<Vec<Cell>>), ContentError> {
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
