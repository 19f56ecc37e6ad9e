//! What of a run waits for a person, and the person's word on it.
//!
//! Units in doubt, and a command that was cut off. Neither is done again by itself. A word on units is said in the ledgers where
//! they are remembered, for all of them at once; one attempt of their run follows it, however many they were. The run is looked
//! at first: a run that is done is not tried again, so a word on its units would change them and come to nothing.

use jiff::Timestamp;
use refrain_core::Key;
use refrain_core::person::Verb;
use refrain_core::state::{FailureReason, UnitStatus};

use super::run::counts_as_there;
use super::{Did, Refrain, RunRecord, RunReport};
use crate::error::Error;
use crate::ledger::destination::Destination;
use crate::ledger::trace::{self, Word};
use crate::store::vouch::{Vouching, vouch};
use crate::store::{audit, begun_commands, instant, show};

/// How many units in doubt are read at once.
const PAGE: i64 = 500;

/// What a person says of a unit that failed, is parked, or is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// It gets all its tries again; one that is in doubt is sent again.
    Again,
    /// It is in doubt, and it was done.
    Done,
}

/// Something of a run that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoubtRecord {
    /// The key of the unit that is in doubt; none if it is the command of the run, which was cut off.
    pub unit: Option<String>,
    /// Since when, if it is known.
    pub since: Option<Timestamp>,
    /// What is said of it.
    pub message: Option<String>,
}

impl Refrain {
    /// Everything of a run that waits for a person: its command, if that was cut off, and its units in doubt, in the order of
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

    /// The runs of a job of which something waits for a person, a page after `after`, in the order of their keys; and with each what
    /// that is. None: there are no more.
    pub async fn waiting_runs(
        &self,
        job: &str,
        after: &str,
    ) -> Result<Option<(String, Vec<(RunRecord, Vec<DoubtRecord>)>)>, Error> {
        let (number, _) = self.recorded_job(job).await?;
        let page = self.records(show::waiting(self.store(), number, after, PAGE).await?).await?;
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

    /// Whether it is not known how a command of it ended that must not be executed twice.
    pub(super) async fn is_held(&self, run: &RunRecord) -> Result<bool, Error> {
        let is_marked = begun_commands::find(self.store(), run.id, i32::MAX).await?.is_some();
        // A mark is forgotten with the bodies of old runs; why it failed is not.
        Ok(is_marked || run.reason == Some(FailureReason::Held))
    }

    /// Gives a unit of a run that failed or is parked all its tries again, in every database that was named when the store was
    /// opened; the next attempt finds it among those that failed, and a job from a file asks its source for it. One that is in
    /// doubt is sent again. Gives how many there were under this key.
    pub async fn unpark(&self, run: &str, key: &str) -> Result<u64, Error> {
        Ok(self.settled(run, &[key], Settlement::Again).await?.unwrap_or(0))
    }

    /// Records that what was done with a unit of a run that is in doubt has happened. Gives how many there were under this key.
    pub async fn confirm_unit(&self, run: &str, key: &str) -> Result<u64, Error> {
        Ok(self.settled(run, &[key], Settlement::Done).await?.unwrap_or(0))
    }

    /// The same for several units, all of them or none: refused if one of them is applied, or not in doubt, and if the run is
    /// done. Gives how many there were under these keys.
    pub async fn settle_units(&self, run: &str, keys: &[&str], settlement: Settlement) -> Result<u64, Error> {
        self.settled(run, keys, settlement).await?.map_err(|unit| Error::NotParked {
            run: run.to_owned(),
            unit,
            was: if settlement == Settlement::Done { "in doubt" } else { "failed or parked" },
        })
    }

    /// The same, or a key of which such a word cannot be said.
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
            Settlement::Again => (Verb::Unpark, Word::Again),
            Settlement::Done => (Verb::Done, Word::Done),
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

    /// Those of these units in a database of which such a word can be said: nothing is decided about any other.
    async fn left_at(
        &self,
        destination: &Destination,
        run: &RunRecord,
        keys: &[Key],
        word: Word,
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
                unit.scope == run.scope() && is_here && is_left && (word == Word::Again || is_in_doubt)
            });
            if is_meant {
                parked.push(key.clone());
            }
        }
        Ok(parked)
    }

    /// A person says of a run whose command was cut off, and is held, that it has done its work: the run is done, and nothing is
    /// executed. Refused if no command of it is held; of two people who say so at once, one is refused.
    pub async fn settle_held(&self, run: &str) -> Result<RunReport, Error> {
        let missing = || Error::NoRun(run.to_owned());
        let record = self.show(run).await?.ok_or_else(missing)?;
        let decision = self.decision(Verb::Done, run).of_run(record.id);
        let version = self.job(&record.job).ok().and_then(|(_, job)| i32::try_from(job.version).ok());
        let wish = Vouching { run: record.id, after: record.attempt, version, decision: &decision };
        let is_settled = vouch(self.store(), &wish).await?;
        let record = self.record(record.id).await?.ok_or_else(missing)?;
        if !is_settled {
            let state = record.standing.node().to_string();
            return Err(Error::NotHeld { run: run.to_owned(), state });
        }
        self.bell.ring();
        Ok(RunReport::of(Did::Settled, record))
    }
}
