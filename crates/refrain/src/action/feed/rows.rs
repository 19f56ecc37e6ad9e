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
        let from = self.writer.lands().then_some(self.from.as_str());
        for (number, (columns, rows)) in (1..).zip(tables(units, from)?) {
            let mut staged = self.writer.make(connection, &columns, number).await?;
            self.writer.load(connection, &mut staged, &rows).await?;
            self.writer.conclude(connection, &staged).await?;
            self.writer.swap_units(connection, &staged).await?;
        }
        Ok(())
    }
}

/// The columns of some rows, and these rows.
type Table = (Vec<String>, Vec<Row>);

/// Units as rows, those of the same fields together. What a unit does not speak of is left as it is, whichever units it comes
/// with: an absent field is not null. Where they are landed, each row ends with where it comes from and what it says.
fn tables(units: &[&Unit], from: Option<&str>) -> Result<Vec<Table>, ContentError> {
    let mut tables: Vec<Table> = Vec::new();
    for unit in units {
        let members = content::members(&unit.text)?;
        let is_same = |(columns, _): &&mut Table| {
            columns.len() == members.len()
                && columns.iter().zip(&members).all(|(column, (name, _))| column == name)
        };
        let mut row = members.iter().map(|(_, value)| cell(value)).collect::<Result<Row, ContentError>>()?;
        if let Some(from) = from {
            let hash = Fingerprint::of_json(&unit.text)?;
            row.extend([Cell::Text(from.to_owned()), Cell::Text(hash.to_string())]);
        }
        match tables.iter_mut().find(is_same) {
            Some((_, rows)) => rows.push(row),
            None => tables.push((members.iter().map(|(name, _)| name.to_string()).collect(), vec![row])),
        }
    }
    Ok(tables)
}

/// A value as it goes into a column: numbers as they are written, what is nested as JSON.
pub(super) fn cell(value: &str) -> Result<Cell, ContentError> {
    Ok(match value.as_bytes().first() {
        Some(b'"') => Cell::Text(content::unquoted(value).map(Cow::into_owned)?),
        Some(b'n') | None => Cell::Null,
        Some(b't') => Cell::Boolean(true),
        Some(b'f') => Cell::Boolean(false),
        Some(b'{' | b'[') => Cell::Text(value.to_owned()),
        Some(_) => Cell::Number(value.to_owned()),
    })
}
