//! What an operator must decide about a run, and how the decision is recorded.
//!
//! Units in doubt, and a command that was cut off: neither is done again by itself. A decision about units is written to
//! the ledgers that hold them, for all of them at once; one attempt of their run follows, however many there are. The run
//! is read first: a run that is done is not tried again, so a decision about its units would have no effect.

use jiff::Timestamp;
use refrain_core::Key;
use refrain_core::person::Verb;
use refrain_core::state::{FailureReason, UnitStatus};
use serde::Serialize;

use super::run::counts_as_there;
use super::{Did, Refrain, RunRecord, RunReport};
use crate::error::Error;
use crate::ledger::destination::Destination;
use crate::ledger::trace::{self, UnitSettlement};
use crate::store::vouch::{Vouching, vouch};
use crate::store::{audit, begun_commands, instant, show};

/// How many units in doubt are read at once.
const PAGE: i64 = 500;

/// A decision about a unit that failed, is parked, or is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Settlement {
    /// The unit gets all its tries again; one that is in doubt is sent again.
    Again,
    /// The unit is in doubt, and was done.
    Done,
}

/// Something that an operator must decide about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DoubtRecord {
    /// The key of the unit that is in doubt; none if it is the command of the run, which was cut off.
    pub unit: Option<String>,
    /// Since when it waits, if that is known.
    pub since: Option<Timestamp>,
    /// The message of the attempt.
    pub message: Option<String>,
}

impl Refrain {
    /// What an operator must decide about a run: its command, if that was cut off, and its units in doubt, in the order of
    /// their keys, in every database that was named when the store was opened.
    pub async fn doubts(&self, run: &RunRecord) -> Result<Vec<DoubtRecord>, Error> {
        let mut doubts = Vec::new();
        if !run.standing.is_open() && !counts_as_there(run) && self.is_held(run).await? {
            doubts.push(DoubtRecord { unit: None, since: run.ended_at, message: run.message.clone() });
        }
        let names = self.first_names().await?;
        let (job, start) = (names.first(&run.job), run.window_start());
        for destination in self.engine.destinations.relayed().iter() {
            let (database, project) = (&destination.database, &self.engine.project);
            let (about, mut after) = ((run.key.as_str(), run.scope(), start.as_str()), String::new());
            loop {
                let page = trace::in_doubt(database, project, job, about, &after, PAGE).await?;
                let Some((last, ..)) = page.last() else { break };
                after.clone_from(last);
                for (key, sent, message) in page {
                    doubts.push(DoubtRecord { unit: Some(key), since: Some(instant(sent)?), message });
                }
            }
        }
        Ok(doubts)
    }

    /// The runs of a job that wait for a decision of an operator, with the doubts of each: the page after the key `after`, in
    /// the order of keys. None if there are no more.
    pub async fn waiting_runs(
        &self,
        job: &str,
        after: &str,
    ) -> Result<Option<(String, Vec<(RunRecord, Vec<DoubtRecord>)>)>, Error> {
        let (number, _) = self.recorded_job(job).await?;
        let page = Self::records(show::waiting(self.store(), number, after, PAGE).await?);
        let Some(last) = page.last().map(|run| run.key.clone()) else { return Ok(None) };
        let mut waiting = Vec::new();
        for run in page {
            let doubts = self.doubts(&run).await?;
            if !doubts.is_empty() {
                waiting.push((run, doubts));
            }
        }
        Ok(Some((last, waiting)))
    }

    /// Whether a command of the run must not be executed twice, and its end is unknown.
    pub(super) async fn is_held(&self, run: &RunRecord) -> Result<bool, Error> {
        let is_marked = begun_commands::find(self.store(), run.id, i32::MAX).await?.is_some();
        // The mark is pruned with old runs; the reason of the failure is not.
        Ok(is_marked || run.reason == Some(FailureReason::Held))
    }

    /// Gives a failed or parked unit of a run all its tries again, in every database that was named when the store was opened;
    /// the next attempt tries it with the failed units, and a job from a file asks its source for it. One that is in doubt
    /// is sent again. Returns how many units had this key.
    pub async fn unpark(&self, run: &str, key: &str) -> Result<u64, Error> {
        Ok(self.settled(run, &[key], Settlement::Again).await?.unwrap_or(0))
    }

    /// Records that a unit in doubt was done. Returns how many units had this key.
    pub async fn confirm_unit(&self, run: &str, key: &str) -> Result<u64, Error> {
        Ok(self.settled(run, &[key], Settlement::Done).await?.unwrap_or(0))
    }

    /// Records a decision about several units, all of them or none: refused if one of them is applied or not in doubt, and if
    /// the run is done. Returns how many units had these keys.
    pub async fn settle_units(&self, run: &str, keys: &[&str], settlement: Settlement) -> Result<u64, Error> {
        self.settled(run, keys, settlement).await?.map_err(|unit| Error::NotParked {
            run: run.to_owned(),
            unit,
            was: if settlement == Settlement::Done { "in doubt" } else { "failed or parked" },
        })
    }

    /// Records a decision about all units of a run that are in doubt. Returns their keys; refused if there are none.
    pub async fn settle_units_in_doubt(
        &self,
        run: &str,
        settlement: Settlement,
    ) -> Result<Vec<String>, Error> {
        let record = self.show(run).await?.ok_or_else(|| Error::NoRun(run.to_owned()))?;
        let units: Vec<String> =
            self.doubts(&record).await?.into_iter().filter_map(|doubt| doubt.unit).collect();
        if units.is_empty() {
            return Err(Error::NothingInDoubt(run.to_owned()));
        }
        let keys: Vec<&str> = units.iter().map(String::as_str).collect();
        self.settle_units(run, &keys, settlement).await?;
        Ok(units)
    }

    /// The number of units, or a key about which nothing can be decided.
    async fn settled(
        &self,
        run: &str,
        keys: &[&str],
        settlement: Settlement,
    ) -> Result<Result<u64, String>, Error> {
        let keys = keys.iter().map(|key| Key::parse(key)).collect::<Result<Vec<Key>, _>>()?;
        let Some(record) = self.show(run).await? else { return Err(Error::NoRun(run.to_owned())) };
        if !record.standing.is_open() && counts_as_there(&record) {
            return Err(Error::Done { run: run.to_owned(), attempt: record.attempt });
        }
        let (verb, word) = match settlement {
            Settlement::Again => (Verb::Unpark, UnitSettlement::Retry),
            Settlement::Done => (Verb::Done, UnitSettlement::Done),
        };
        let (relayed, mut parked) = (self.engine.destinations.relayed(), Vec::new());
        for destination in relayed.iter() {
            parked.push((destination, self.left_at(destination, &record, &keys, word).await?));
        }
        let is_absent = |key: &&Key| parked.iter().all(|(_, parked)| !parked.contains(key));
        if let Some(key) = keys.iter().find(is_absent) {
            return Ok(Err(key.to_string()));
        }
        let decision = |key: &Key| self.decision(verb, run).of_run(record.id).of_unit(key.as_str());
        let decisions: Vec<_> = keys.iter().map(decision).collect();
        audit::record_alone(&self.store().database, &decisions).await?;
        let names = self.first_names().await?;
        let (job, start) = (names.first(&record.job), record.window_start());
        let mut count = 0;
        for (destination, keys) in parked.iter().filter(|(_, keys)| !keys.is_empty()) {
            let (database, project) = (&destination.database, &self.engine.project);
            let run = Some((record.scope(), start.as_str()));
            count += trace::settle(database, project, job, keys, run, word).await?;
        }
        Ok(Ok(count))
    }

    /// The units of a database about which this can be decided.
    async fn left_at(
        &self,
        destination: &Destination,
        run: &RunRecord,
        keys: &[Key],
        word: UnitSettlement,
    ) -> Result<Vec<Key>, Error> {
        let names = self.first_names().await?;
        let (job, start) = (names.first(&run.job), run.window_start());
        let mut parked = Vec::new();
        for key in keys {
            let units = trace::trace(&destination.database, &self.engine.project, job, key).await?;
            let is_meant = units.iter().any(|unit| {
                let is_here = unit.window_start.is_empty() || unit.window_start == start;
                let is_left = unit.status != UnitStatus::Applied;
                let is_in_doubt = unit.in_doubt_since.is_some();
                unit.scope == run.scope()
                    && is_here
                    && is_left
                    && (word == UnitSettlement::Retry || is_in_doubt)
            });
            if is_meant {
                parked.push(key.clone());
            }
        }
        Ok(parked)
    }

    /// Records that the command of a run, which was cut off and is held, has done its work: the run is done, and nothing is
    /// executed. Refused if no command of it is held; of two operators at the same time, one is refused.
    pub async fn settle_held(&self, run: &str) -> Result<RunReport, Error> {
        let missing = || Error::NoRun(run.to_owned());
        let record = self.show(run).await?.ok_or_else(missing)?;
        let decision = self.decision(Verb::Done, run).of_run(record.id);
        let version = self.job(&record.job).ok().and_then(|(_, job)| i32::try_from(job.version).ok());
        let vouching = Vouching { run: record.id, after: record.attempt, version, decision: &decision };
        let is_settled = vouch(self.store(), &vouching).await?;
        let record = self.record(record.id).await?.ok_or_else(missing)?;
        if !is_settled {
            let state = record.standing.node().to_string();
            return Err(Error::NotHeld { run: run.to_owned(), state });
        }
        self.notifier.notify();
        let attempt = record.attempt;
        self.reported(run, (Did::Settled, attempt), record, None).await
    }
}
