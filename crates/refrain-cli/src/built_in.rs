//! Jobs that do nothing, with which a store, a schedule and an installation can be tried.
//!
//! What makes a run of them last or fail is its payload, `{"until": PATH}` or `{"error": TEXT, "again": true}`: the ends
//! of a command can be seen without work that is worth something.

use std::path::PathBuf;
use std::time::Duration;

use refrain::core::{Dst, Grid, ParseError, Schedule, Timetable, Zone};
use refrain::{CatchUp, Definition, Job, JobError, Run};
use serde::Deserialize;

/// How often to look for the file of `until`.
const LOOK: Duration = Duration::from_millis(20);

struct Noop;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Payload {
    /// It lasts until there is such a file.
    until: Option<PathBuf>,
    /// It fails.
    error: Option<String>,
    /// Another attempt may help.
    again: bool,
}

impl Job for Noop {
    const NAME: &'static str = "noop";

    async fn run(&self, run: &mut Run) -> Result<(), JobError> {
        let payload: Option<Payload> = run.payload().and_then(|payload| serde_json::from_str(payload).ok());
        let Payload { until, error, again } = payload.unwrap_or_default();
        if let Some(file) = until {
            tracing::info!(job = %run.job(), key = run.key(), "waiting for a file");
            while !file.exists() {
                tokio::time::sleep(LOOK).await;
            }
        }
        match error {
            None => Ok(()),
            Some(error) if again => Err(JobError::new(error)),
            Some(error) => Err(JobError::for_good(error)),
        }
    }
}

/// The jobs that every `refrain` knows.
pub(crate) fn jobs() -> Result<[Definition; 2], ParseError> {
    let hourly = Timetable {
        schedule: Schedule::parse("@hourly")?,
        zone: Zone::utc(),
        grid: Grid::parse("hour")?,
        dst: Dst::default(),
        start: None,
    };
    let queued = Definition::of(Noop)?;
    let windowed = queued.clone().named("noop-hourly")?.timetable(hourly).catch_up(CatchUp::All);
    Ok([queued, windowed])
}
