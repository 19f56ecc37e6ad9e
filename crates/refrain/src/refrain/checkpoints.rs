//! Checkpoints: how far sources were read, and how an operator moves that.
//!
//! An operator may move a checkpoint only while no run of its job and scope is running, and only from the position that
//! was read before. The first is looked up in the store and may be outdated a moment later; the second is compared in the
//! database of the checkpoint, so an attempt that begins in between reads the new position, or finds the old one gone.

use std::cmp::Reverse;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use refrain_core::person::Verb;
use refrain_core::terminal::typed;
use refrain_core::{JobName, Per, Scope};

use super::Refrain;
use crate::error::checkpoint::POSITION_BYTES_MAX;
use crate::error::{CheckpointError, Error};
use crate::ledger::checkpoint_admin::{self, CheckpointRow};
use crate::ledger::destination::Destination;
use crate::ledger::ledger_id::LedgerName;
use crate::ledger::trace;
use crate::store::{audit, instant, show};

/// How many characters of a position are recorded with a decision.
const POSITION_SHOWN: usize = 200;

/// How far a source was read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct CheckpointRecord {
    /// The job.
    pub job: String,
    /// The scope; empty when there is only one.
    pub scope: String,
    /// The start of its window; none if there is one checkpoint for all windows.
    pub window: Option<Timestamp>,
    /// Its name: the source that it is about.
    pub name: String,
    /// The token of a cursor, or the timestamp of a watermark.
    pub position: String,
    /// When it was last moved, by the clock of its database.
    pub at: Timestamp,
    /// The key of the run that moved it; none if an operator did.
    pub run: Option<String>,
    /// The attempt of that run.
    pub attempt: Option<u64>,
}

/// A checkpoint that was moved. It serializes to the object that `refrain checkpoint set --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct CheckpointMove {
    /// The job.
    pub job: String,
    /// The scope; empty when there is only one.
    pub scope: String,
    /// The start of its window; none if there is one checkpoint for all windows.
    pub window: Option<Timestamp>,
    /// Its name.
    pub name: String,
    /// Where it was; none if that was the beginning.
    pub was: Option<String>,
    /// Where it is now.
    pub position: String,
}

/// A checkpoint by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointOf<'a> {
    /// The job.
    pub job: &'a str,
    /// The scope; empty when there is only one.
    pub scope: &'a str,
    /// The start of its window; none if there is one checkpoint for all windows.
    pub window: Option<Timestamp>,
    /// Its name.
    pub name: &'a str,
}

impl<'a> CheckpointOf<'a> {
    /// The checkpoint of a job that is one for all windows and scopes.
    pub fn new(job: &'a str, name: &'a str) -> CheckpointOf<'a> {
        CheckpointOf { job, scope: "", window: None, name }
    }

    /// The one of this scope.
    #[must_use]
    pub fn scope(self, scope: &'a str) -> CheckpointOf<'a> {
        CheckpointOf { scope, ..self }
    }

    /// The one of the window that starts here; none for one that is for all windows.
    #[must_use]
    pub fn window(self, window: Option<Timestamp>) -> CheckpointOf<'a> {
        CheckpointOf { window, ..self }
    }

    /// The job with the window and the scope, written like a run.
    fn whose(&self) -> String {
        let window = self.window.map(|window| format!("@{window}")).unwrap_or_default();
        let scope = if self.scope.is_empty() { String::new() } else { format!("/{}", self.scope) };
        format!("{}{window}{scope}", self.job)
    }

    /// The start of its window as ledgers store it.
    fn window_start(&self) -> String {
        self.window.map(|window| window.to_string()).unwrap_or_default()
    }
}

/// The beginning of a position.
fn shown(position: &str) -> String {
    let mut shown: String = position.chars().take(POSITION_SHOWN).collect();
    if position.chars().nth(POSITION_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// A checkpoint and its database.
struct Found {
    destination: Destination,
    ledger: i64,
    record: CheckpointRecord,
}

impl Refrain {
    /// The checkpoints of a job, or of all, in every database that was named when the store was opened.
    pub async fn checkpoints(&self, job: Option<&str>) -> Result<Vec<CheckpointRecord>, Error> {
        let names = self.first_names().await?;
        let mut records = Vec::new();
        for destination in self.engine.destinations.relayed().iter() {
            let jobs = match job {
                Some(job) => vec![names.first(job).to_owned()],
                None => trace::jobs(&destination.database, &self.engine.project).await?,
            };
            for job in jobs {
                let found = self.found(destination, &job, None).await?.into_iter();
                let name = names.present(&job);
                records.extend(found.map(|found| CheckpointRecord { job: name.to_owned(), ..found.record }));
            }
        }
        let place = |one: &CheckpointRecord| {
            (one.job.clone(), one.scope.clone(), one.name.clone(), one.window.map(Reverse))
        };
        records.sort_by_cached_key(place);
        Ok(records)
    }

    /// The same, with only the latest window of each checkpoint that every window has for itself.
    pub async fn latest_checkpoints(&self, job: Option<&str>) -> Result<Vec<CheckpointRecord>, Error> {
        let mut records = self.checkpoints(job).await?;
        // The latest window of each comes first.
        records.dedup_by(|next, one| {
            one.window.is_some() && (&one.job, &one.scope, &one.name) == (&next.job, &next.scope, &next.name)
        });
        Ok(records)
    }

    /// The checkpoint that an operator means by a name, a scope and a window, which is named as in a run. Refused if each window
    /// has a checkpoint of this name and none is named, or if there is one for all windows and one is named: the cursor in the
    /// job's file says which it is before there is any.
    pub async fn checkpoint_of<'a>(
        &self,
        job: &'a str,
        name: &'a str,
        scope: &'a str,
        window: Option<&str>,
    ) -> Result<CheckpointOf<'a>, Error> {
        let (_, definition) = self.recorded_job(job).await?;
        let cursor = definition.as_ref().and_then(|definition| definition.cursor.as_ref());
        let per = cursor.filter(|cursor| cursor.name == name).map(|cursor| cursor.per);
        let of = CheckpointOf::new(job, name).scope(scope);
        let (job, name) = (job.to_owned(), name.to_owned());
        match (window, per) {
            (None, Some(Per::Window)) => Err(CheckpointError::OfWindows { job, name, latest: None }.into()),
            (Some(_), Some(Per::Ever)) => Err(CheckpointError::ForEver { job, name }.into()),
            (None, _) => Ok(of),
            (Some(window), _) if scope.is_empty() => {
                Ok(of.window(self.window_start(&format!("{job}@{window}")).await?))
            }
            (Some(window), _) => Ok(of.window(self.window_start(&format!("{job}@{window}/{scope}")).await?)),
        }
    }

    /// Where a checkpoint is now, for an operator who moves it from there; none if it has not begun.
    pub async fn checkpoint_position(&self, of: CheckpointOf<'_>) -> Result<Option<String>, Error> {
        let records = self.checkpoints(Some(of.job)).await?;
        let is_meant = |record: &CheckpointRecord| {
            (record.scope.as_str(), record.window, record.name.as_str()) == (of.scope, of.window, of.name)
        };
        Ok(records.into_iter().find(is_meant).map(|record| record.position))
    }

    /// Moves a checkpoint. `seen` is the position that the caller has read; none if there was none. Refused while a run of
    /// the job and scope is running, or queued and not held back by a pause.
    pub async fn set_checkpoint(
        &self,
        of: CheckpointOf<'_>,
        position: &str,
        seen: Option<&str>,
    ) -> Result<CheckpointMove, Error> {
        let CheckpointOf { job, scope, name, .. } = of;
        if !(1..=POSITION_BYTES_MAX).contains(&position.len()) || position.contains('\0') {
            return Err(CheckpointError::Unfit.into());
        }
        self.is_quiet(job, scope).await?;
        let names = self.first_names().await?;
        let first = names.first(job);
        let window = of.window_start();
        let mut all = Vec::new();
        for destination in self.engine.destinations.relayed().iter() {
            all.extend(self.found(destination, first, Some(&window)).await?);
        }
        all.retain(|found| found.record.scope == scope);
        let names: Vec<String> = all.iter().map(|found| found.record.name.clone()).collect();
        all.retain(|found| found.record.name == name);
        if all.is_empty() {
            self.is_kept_so(of, first).await?;
        }
        let ambiguous = || CheckpointError::Ambiguous { job: job.to_owned(), name: name.to_owned() };
        let (destination, ledger) = match (all.as_slice(), seen) {
            ([found], _) => (found.destination.clone(), found.ledger),
            ([], None) => self.place_for_new(first, of).await?.ok_or_else(ambiguous)?,
            ([], Some(_)) => {
                let (job, name) = (of.whose(), name.to_owned());
                return Err(CheckpointError::Unknown { job, name, known: names }.into());
            }
            _ => return Err(ambiguous().into()),
        };
        let decision = self.decision(Verb::SetCheckpoint, format!("{} {name}", of.whose()));
        let detail = format!("from {} to {}", shown(seen.unwrap_or("the beginning")), shown(position));
        audit::record_alone(&self.store().database, &[decision.detailed(detail)]).await?;
        if checkpoint_admin::set(&destination.database, ledger, name, position, seen).await? {
            return Ok(CheckpointMove {
                job: job.to_owned(),
                scope: scope.to_owned(),
                window: of.window,
                name: name.to_owned(),
                was: seen.map(str::to_owned),
                position: position.to_owned(),
            });
        }
        let now = self.found(&destination, first, Some(&window)).await?;
        let now = now.into_iter().find(|found| found.ledger == ledger && found.record.name == name);
        let found =
            now.map_or_else(|| "the beginning".to_owned(), |now| format!("`{}`", now.record.position));
        Err(CheckpointError::Moved { job: job.to_owned(), name: name.to_owned(), found }.into())
    }

    /// Moves a watermark back by a duration, from the position that the caller has read.
    pub async fn rewind_checkpoint(
        &self,
        of: CheckpointOf<'_>,
        by: Duration,
        seen: Option<&str>,
    ) -> Result<CheckpointMove, Error> {
        let Some(seen) = seen else {
            return Err(CheckpointError::NotBegun { job: of.whose(), name: of.name.to_owned() }.into());
        };
        let no_time = || CheckpointError::NoTime { name: of.name.to_owned(), position: seen.to_owned() };
        let mark: Timestamp = seen.parse().map_err(|_| no_time())?;
        let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
        let position = mark.checked_sub(by).unwrap_or(Timestamp::MIN);
        self.set_checkpoint(of, &position.to_string(), Some(seen)).await
    }

    /// The start of the window of a run by its name; none if it has no window.
    pub async fn window_start(&self, run: &str) -> Result<Option<Timestamp>, Error> {
        Ok(self.target(run).await?.window.map(|window| window.start().timestamp()))
    }

    /// Refuses a new checkpoint that is kept per window while others of its name are not, or the reverse.
    async fn is_kept_so(&self, of: CheckpointOf<'_>, first: &str) -> Result<(), Error> {
        let (job, name) = (of.job.to_owned(), of.name.to_owned());
        for destination in self.engine.destinations.relayed().iter() {
            let all = self.found(destination, first, None).await?;
            let mut windows =
                all.iter().filter(|found| found.record.name == name).map(|found| found.record.window);
            return Err(match (of.window, windows.next()) {
                (None, Some(latest @ Some(_))) => CheckpointError::OfWindows { job, name, latest }.into(),
                (Some(_), Some(None)) => CheckpointError::ForEver { job, name }.into(),
                _ => continue,
            });
        }
        Ok(())
    }

    /// Refuses while a run of a job and scope is running, or may begin at any moment.
    async fn is_quiet(&self, job: &str, scope: &str) -> Result<(), Error> {
        let (number, _) = self.recorded_job(job).await?;
        let is_paused = crate::store::jobs::paused_at(self.store(), number).await?.is_some();
        let open = show::open_in_scope(self.store(), number, scope).await?;
        let Some((run, has_begun)) = open.filter(|(_, has_begun)| *has_begun || !is_paused) else {
            return Ok(());
        };
        let Some(record) = self.record(run).await? else { return Ok(()) };
        let run = self.name_of(&record).await?;
        let (standing, advice) = if has_begun {
            ("running", format!("wait for it, or cancel it: refrain cancel {}", typed(&run)))
        } else {
            ("queued", format!("wait for it, or pause the job: refrain pause {job}"))
        };
        Err(CheckpointError::UnderWay { run, standing, advice }.into())
    }

    /// The database of a new checkpoint: that of the units of its job. None if that is unknown.
    async fn place_for_new(
        &self,
        job: &str,
        of: CheckpointOf<'_>,
    ) -> Result<Option<(Destination, i64)>, Error> {
        let (all, project) = (self.engine.destinations.relayed(), &self.engine.project);
        let mut used = Vec::new();
        for destination in all.iter() {
            if trace::jobs(&destination.database, project).await?.iter().any(|known| known == job) {
                used.push(destination);
            }
        }
        let place = match (used.as_slice(), &*all) {
            ([one], _) => *one,
            ([], [one]) => one,
            _ => return Ok(None),
        };
        let (job, scope) = (JobName::parse(job)?, Scope::parse(of.scope)?);
        let book = LedgerName { project: project.clone(), job, scope, window: of.window_start() };
        Ok(Some((place.clone(), place.ledgers.find(&place.database, book).await?)))
    }

    /// The checkpoints of a job in a database, by the first name of the job: those of a window, or all.
    async fn found(
        &self,
        destination: &Destination,
        job: &str,
        window: Option<&str>,
    ) -> Result<Vec<Found>, Error> {
        let rows =
            checkpoint_admin::list(&destination.database, self.engine.project.as_str(), job, window).await?;
        let found = rows.into_iter().map(|row| {
            let CheckpointRow { ledger, scope, window_start, name, position, at, attempt, run } = row;
            let record = CheckpointRecord {
                job: job.to_owned(),
                scope,
                // A ledger of ours has nothing else there.
                window: window_start.parse().ok(),
                name,
                position,
                at: instant(at)?,
                run,
                attempt: attempt.and_then(|attempt| u64::try_from(attempt).ok()),
            };
            Ok(Found { destination: destination.clone(), ledger, record })
        });
        found.collect()
    }
}
