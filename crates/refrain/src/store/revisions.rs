//! Timetables as rows: which one was in force when.

use std::collections::HashMap;

use refrain_core::{Dst, Grid, ParseError, Revision, Revisions, Schedule, Timetable, Zone, window_name};

use super::queue_line::JobNumber;
use super::{Result, StoreError, catalog, instant};
use crate::database::Transaction;

#[derive(sqlx_macros::FromRow)]
struct OfJob {
    job: JobNumber,
    #[sqlx(flatten)]
    row: Row,
}

#[derive(sqlx_macros::FromRow)]
struct Row {
    number: i32,
    schedule: String,
    zone: String,
    rules: String,
    grid: String,
    gap: String,
    fold: String,
    start: Option<i64>,
    from_at: i64,
    until_at: Option<i64>,
    joins: bool,
    ticks_after: i64,
}

/// The revisions of a job; none if it never had a timetable.
pub(crate) async fn read(transaction: &mut Transaction, job: JobNumber) -> Result<Option<Revisions>> {
    let rows: Vec<Row> = transaction.fetch_all(catalog::REVISION_LIST.bind(job)).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let revisions: Result<Vec<Revision>> = rows.iter().map(revision).collect();
    Revisions::stored(revisions?).map(Some).map_err(|error| StoreError::Broken(format!("job {job}: {error}")))
}

/// The timetables in force of all jobs. One that cannot be read is left out: reading it alone returns the error.
pub(crate) async fn in_force(transaction: &mut Transaction) -> Result<HashMap<JobNumber, Timetable>> {
    let rows: Vec<OfJob> = transaction.fetch_all(catalog::REVISION_CURRENT.bound()).await?;
    Ok(rows.iter().filter_map(|OfJob { job, row }| Some((*job, timetable(row).ok()?))).collect())
}

/// Replaces all stored revisions of a job; a revision that opened no window is gone.
pub(crate) async fn write(
    transaction: &mut Transaction,
    job: JobNumber,
    revisions: &Revisions,
) -> Result<()> {
    transaction.execute(catalog::REVISION_CLEAR.bind(job)).await?;
    for revision in revisions.iter() {
        let Timetable { schedule, zone, grid, dst, start } = &revision.timetable;
        let insert = catalog::REVISION_INSERT
            .bind(job)
            .bind(i64::from(revision.number))
            .bind(schedule.to_string())
            .bind(zone.name())
            .bind(zone.version())
            .bind(grid.to_string())
            .bind(dst.gap.to_string())
            .bind(dst.fold.to_string())
            .bind(start.map(|start| start.timestamp().as_microsecond()))
            .bind(revision.from.as_microsecond())
            .bind(revision.until.map(jiff::Timestamp::as_microsecond))
            .bind(revision.joins)
            .bind(revision.ticks_after.as_microsecond());
        transaction.execute(insert).await?;
    }
    Ok(())
}

fn revision(row: &Row) -> Result<Revision> {
    let timetable = timetable(row)
        .map_err(|error| StoreError::Broken(format!("revision {} cannot be read: {error}", row.number)))?;
    Ok(Revision {
        number: u32::try_from(row.number).unwrap_or(0),
        timetable,
        from: instant(row.from_at)?,
        until: row.until_at.map(instant).transpose()?,
        joins: row.joins,
        ticks_after: instant(row.ticks_after)?,
    })
}

fn timetable(row: &Row) -> std::result::Result<Timetable, ParseError> {
    let start = match row.start.and_then(|start| instant(start).ok()) {
        Some(start) => Some(window_name::parse(&start.to_string(), &Zone::utc())?),
        None => None,
    };
    Ok(Timetable {
        schedule: Schedule::parse(&row.schedule)?,
        zone: Zone::stored(&row.zone, &row.rules)?,
        grid: Grid::parse(&row.grid)?,
        dst: Dst { gap: row.gap.parse()?, fold: row.fold.parse()? },
        start,
    })
}
