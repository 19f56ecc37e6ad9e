//! Which run a name means: a job, a window and a key; and the insert of a run that does not exist yet.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use refrain_core::{JobName, RunKey, RunName, Scope, Window, Zone, window_name};

use super::Refrain;
use super::show::RunRecord;
use crate::error::Error;
use crate::job::Definition;
use crate::store::enqueue::{Offer, enqueue};
use crate::store::open::{NewRun, open_one};
use crate::store::queue_line::{JobNumber, Line, Priority};
use crate::store::show::{self, OpenAttempt};

/// The way by which `run` asks for a run, as dedupes record it.
pub(super) const BY_RUN: &str = "run";

/// A run by name, whether or not it exists.
pub(super) struct RunTarget {
    pub(super) job: JobName,
    pub(super) number: JobNumber,
    /// None if only the store knows the job.
    pub(super) definition: Option<Arc<Definition>>,
    pub(super) window: Option<Window>,
    pub(super) key: RunKey,
}

/// A run, and its open attempt if it has one.
pub(super) type RunLookUp = (RunRecord, Option<OpenAttempt>);

impl Refrain {
    /// The name of a job's latest window that is over.
    pub async fn latest_window(&self, job: &str) -> Result<String, Error> {
        let (number, definition) = self.job(job)?;
        let Some(revisions) = crate::store::schedules::read(self.store(), number).await? else {
            return Err(Error::NoWindows(definition.name.clone()));
        };
        let now = self.store().schedule_time().await?;
        let window = revisions.latest(now).ok_or_else(|| Error::NoWindowYet(definition.name.clone()))?;
        Ok(format!("{job}@{}", revisions.name_of(window)))
    }

    /// The full name of a run: a job alone means its latest window that is over.
    pub(super) async fn full_name<'r>(&self, run: &'r str) -> Result<Cow<'r, str>, Error> {
        if run.contains(['@', '#']) {
            Ok(Cow::Borrowed(run))
        } else {
            Ok(Cow::Owned(self.latest_window(run).await?))
        }
    }

    /// The job, window and key of a run's name.
    pub(super) async fn target(&self, run: &str) -> Result<RunTarget, Error> {
        let name: RunName = run.parse()?;
        let (number, definition) = self.recorded_job(name.job().as_str()).await?;
        match name {
            RunName::Queued { job, key } => {
                let key = RunKey::queued(key);
                let has_windows = definition.as_ref().is_some_and(|known| known.timetable.is_some());
                if has_windows && show::find(self.store(), number, &key.to_string()).await?.is_none() {
                    return Err(Error::NoKeys(job));
                }
                Ok(RunTarget { job, number, definition, window: None, key })
            }
            RunName::Windowed { job, window, scope } => {
                let revisions = crate::store::schedules::read(self.store(), number).await?;
                let Some(revisions) = revisions else { return Err(Error::NoWindows(job)) };
                let window = match revisions.find(&window) {
                    Ok(window) => window,
                    Err(error) => self.opened_window(number, &window, &scope).await?.ok_or(error)?,
                };
                let key = RunKey::windowed(window.start(), &scope);
                Ok(RunTarget { job, number, definition, window: Some(window), key })
            }
        }
    }

    /// A window that has a row although it is on no grid any more, because the rules of its zone have changed. Its name
    /// is its instant.
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
        let Some((row, open)) = show::of_job(self.store(), number, &key).await? else { return Ok(None) };
        Ok(RunRecord::of(row, open)?.window)
    }

    /// What is recorded of a target; none if there is no such run yet.
    pub(super) async fn recorded(&self, target: &RunTarget) -> Result<Option<RunRecord>, Error> {
        Ok(self.looked_up(target).await?.map(|(run, _)| run))
    }

    /// The same with its open attempt, both of one instant.
    pub(super) async fn looked_up(&self, target: &RunTarget) -> Result<Option<RunLookUp>, Error> {
        let found = show::of_job(self.store(), target.number, &target.key.to_string()).await?;
        Ok(found.map(|(row, open)| RunRecord::of(row, open).map(|run| (run, open))).transpose()?)
    }

    /// Refuses a window that must not be opened. One that is not over would count as done without the rest of it.
    pub(super) async fn may_open(&self, run: &str, target: &RunTarget) -> Result<(), Error> {
        let Some(window) = target.window else { return Ok(()) };
        if target.key.to_string().contains('/') {
            return Err(Error::NoScope(run.to_owned()));
        }
        let end = window.end().timestamp();
        if end > self.store().schedule_time().await? {
            return Err(Error::NotOver { window: window.to_string(), end });
        }
        let timetable = target.definition.as_ref().and_then(|definition| definition.timetable.as_ref());
        match timetable.and_then(|timetable| timetable.start) {
            Some(start) if window.start() < start => {
                Err(Error::BeforeStart { run: run.to_owned(), start: start.timestamp() })
            }
            _ => Ok(()),
        }
    }

    /// Inserts the run and queues it. Returns false if another process has inserted it meanwhile.
    pub(super) async fn insert(&self, target: &RunTarget, definition: &Definition) -> Result<bool, Error> {
        let Some(window) = target.window else {
            if definition.needs_payload {
                let (job, key) = (target.job.clone(), target.key.to_string());
                return Err(Error::NeedsPayload { job, key });
            }
            let offer = Offer { key: target.key.clone(), payload: None };
            let line = Line::of(Priority::Live, target.number);
            return Ok(enqueue(self.store(), target.number, line, &[offer], BY_RUN).await?.contains(&true));
        };
        let new_run = NewRun {
            key: target.key.clone(),
            start: window.start().timestamp(),
            end: window.end().timestamp(),
            priority: Priority::Live,
            skipped: None,
        };
        Ok(open_one(self.store(), target.number, definition.while_running, &new_run, BY_RUN).await?)
    }
}
