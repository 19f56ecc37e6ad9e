//! Which run is meant: a name becomes a job, a window and a key, and the run is opened under that key.

use std::sync::Arc;

use jiff::Timestamp;
use refrain_core::{RunKey, RunName, Scope, Window, Zone, window_name};

use super::Refrain;
use super::show::parsed;
use crate::error::Error;
use crate::job::Definition;
use crate::store::enqueue::{Offer, enqueue};
use crate::store::open::{NewRun, open_one};
use crate::store::queue_line::{JobNumber, Line, Priority};
use crate::store::show;

/// A run by name: its job, its key, and its window if it has one.
pub(super) struct Wanted {
    pub(super) number: JobNumber,
    pub(super) definition: Arc<Definition>,
    pub(super) key: RunKey,
    pub(super) window: Option<Window>,
}

impl Refrain {
    /// The name of a job's latest window that is over: what a person means who names only the job.
    pub async fn latest_window(&self, job: &str) -> Result<String, Error> {
        let (number, definition) = self.job(job)?;
        let Some(revisions) = crate::store::schedules::read(self.store(), number).await? else {
            return Err(Error::NoWindows(definition.name.clone()));
        };
        let now = self.store().schedule_time().await?;
        let window = revisions.latest(now).ok_or_else(|| Error::NoWindowYet(definition.name.clone()))?;
        Ok(format!("{job}@{}", revisions.name_of(window)))
    }

    /// Opens the run, or records that it was there. Gives whether it is new.
    pub(super) async fn open_wanted(&self, wanted: &Wanted) -> Result<bool, Error> {
        let is_new = match wanted.window {
            None => {
                let offer = Offer { key: wanted.key.clone(), payload: None };
                let line = Line::of(Priority::Live, wanted.number);
                let news = enqueue(self.store(), wanted.number, line, &[offer], "run").await?;
                news.contains(&true)
            }
            Some(window) => {
                let opening = NewRun {
                    key: wanted.key.clone(),
                    start: window.start().timestamp(),
                    end: window.end().timestamp(),
                    priority: Priority::Live,
                    skipped: None,
                };
                let lanes = wanted.definition.while_running;
                open_one(self.store(), wanted.number, lanes, &opening, "run").await?
            }
        };
        Ok(is_new)
    }

    /// What a run's name means. A window that is not over is refused: run now, it would count as done without the rest.
    pub(super) async fn wanted(&self, run: &str) -> Result<Wanted, Error> {
        let (_, definition) = self.job(parsed(run)?.job().as_str())?;
        let (number, window, key) = self.named(run).await?;
        if let Some(window) = window {
            let end = window.end().timestamp();
            let is_known = show::find(self.store(), number, &key.to_string()).await?.is_some();
            if !is_known && key.to_string().contains('/') {
                return Err(Error::NoScope(run.to_owned()));
            }
            if !is_known && end > self.store().schedule_time().await? {
                return Err(Error::NotOver { window: window.to_string(), end });
            }
            let start = definition.timetable.as_ref().and_then(|timetable| timetable.start);
            if let Some(start) = start.filter(|start| !is_known && window.start() < *start) {
                return Err(Error::BeforeStart { run: run.to_owned(), start: start.timestamp() });
            }
        }
        Ok(Wanted { number, definition, key, window })
    }

    /// The job, window and key of a run's name.
    pub(super) async fn named(&self, run: &str) -> Result<(JobNumber, Option<Window>, RunKey), Error> {
        let name = parsed(run)?;
        let (number, definition) = self.recorded_job(name.job().as_str()).await?;
        match name {
            RunName::Queued { job, key } => {
                let key = RunKey::queued(key);
                let has_windows = definition.is_some_and(|definition| definition.timetable.is_some());
                if has_windows && show::find(self.store(), number, &key.to_string()).await?.is_none() {
                    return Err(Error::NoKeys(job));
                }
                Ok((number, None, key))
            }
            RunName::Windowed { job, window, scope } => {
                let revisions = crate::store::schedules::read(self.store(), number).await?;
                let Some(revisions) = revisions else { return Err(Error::NoWindows(job)) };
                let window = match revisions.find(&window) {
                    Ok(window) => window,
                    Err(error) => self.opened_window(number, &window, &scope).await?.ok_or(error)?,
                };
                Ok((number, Some(window), RunKey::windowed(window.start(), &scope)))
            }
        }
    }

    /// A window that has a row although it is on no grid any more: the rules of its zone have changed since. It is called
    /// by its instant.
    pub(super) async fn opened_window(
        &self,
        number: JobNumber,
        name: &str,
        scope: &Scope,
    ) -> Result<Option<Window>, Error> {
        if name.parse::<Timestamp>().is_err() {
            return Ok(None);
        }
        let Ok(start) = window_name::parse(name, &Zone::utc()) else { return Ok(None) };
        let key = RunKey::windowed(start, scope).to_string();
        let Some(id) = show::find(self.store(), number, &key).await? else { return Ok(None) };
        Ok(self.record(id).await?.and_then(|record| record.window))
    }
}
