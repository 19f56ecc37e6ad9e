//! Effects, for readers: what is recorded, and what waits for the operator.

use jiff::Timestamp;
use refrain_core::state::EffectState;

use super::Refrain;
use crate::error::Error;
use crate::process::{Process, ProcessState};
use crate::store::effects::{self, EffectRow};
use crate::store::{StoreError, instant};

/// The most effects that are listed at once.
const LISTED: i64 = 1_000;

/// An effect: something outside the database, identified by a key, a version and a name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct EffectRecord {
    /// The key of the fact that it is about.
    pub key: String,
    /// The version of the rule that says what is sent.
    pub version: u32,
    /// Its name, such as `mail`.
    pub name: String,
    /// Its state.
    pub state: EffectState,
    /// The job that intended it, if one did.
    pub job: Option<String>,
    /// The key of the run that intended it.
    pub run: Option<String>,
    /// Its payload, as JSON.
    pub payload: Option<String>,
    /// When it arrived in the store.
    pub arrived_at: Timestamp,
    /// When it got its state.
    pub since: Timestamp,
    /// How often it was reserved for a send.
    pub sends: u32,
    /// When it was reserved for its first send.
    pub first_sent_at: Option<Timestamp>,
    /// When it was reserved for its last send.
    pub last_sent_at: Option<Timestamp>,
    /// When it was reserved for the first send that has had no answer.
    pub unanswered_at: Option<Timestamp>,
    /// What the receiver answered.
    pub receipt: Option<String>,
    /// Why it is refused, in doubt or suppressed.
    pub message: Option<String>,
    /// How often it was intended again, or under a lower version.
    #[serde(rename = "deduplicated")]
    pub dedupes: u64,
    /// Its place in the order of arrival.
    #[serde(skip)]
    pub(super) id: i64,
}

impl EffectRecord {
    pub(super) fn of(row: EffectRow) -> Result<EffectRecord, StoreError> {
        let state = row.state.parse();
        let state = state.map_err(|error| StoreError::Broken(format!("effect {}: {error}", row.key)))?;
        let at = |at: Option<i64>| at.map(instant).transpose();
        Ok(EffectRecord {
            id: row.id,
            version: u32::try_from(row.version).unwrap_or_default(),
            state,
            arrived_at: instant(row.arrived_at)?,
            since: instant(row.changed_at.unwrap_or(row.arrived_at))?,
            sends: u32::try_from(row.sends).unwrap_or_default(),
            first_sent_at: at(row.first_sent_at)?,
            last_sent_at: at(row.last_sent_at)?,
            unanswered_at: at(row.unanswered_at)?,
            dedupes: u64::try_from(row.dedupes).unwrap_or_default(),
            key: row.key,
            name: row.name,
            job: row.job,
            run: row.run,
            payload: row.payload,
            receipt: row.receipt,
            message: row.message,
        })
    }
}

impl Refrain {
    /// The last effects that arrived in the store, the newest first; no more than a thousand.
    pub async fn effects(&self) -> Result<Vec<EffectRecord>, Error> {
        let rows = effects::list(self.store(), LISTED).await?;
        Ok(rows.into_iter().map(EffectRecord::of).collect::<Result<_, _>>()?)
    }

    /// The effects in a state that an operator may look for (waiting, refused, in doubt, suppressed), in the order of their arrival:
    /// a page of a thousand at most, after the last one of the page before.
    pub async fn effects_in(
        &self,
        state: EffectState,
        after: Option<&EffectRecord>,
    ) -> Result<Vec<EffectRecord>, Error> {
        let after = after.map_or(0, |last| last.id);
        let rows = effects::in_state(self.store(), state, after, LISTED).await?;
        Ok(rows.into_iter().map(EffectRecord::of).collect::<Result<_, _>>()?)
    }

    /// Reserved effects whose sender is gone or silent: no other process has taken over yet. They are in doubt from then on.
    pub async fn effects_without_sender(&self) -> Result<Vec<EffectRecord>, Error> {
        let is_gone = |process: &Option<String>| {
            let process = process.as_deref().and_then(|process| process.parse::<Process>().ok());
            process.is_some_and(|process| process.state() == ProcessState::Gone)
        };
        let rows = effects::reserved(self.store(), LISTED).await?;
        let left = rows.into_iter().filter(|row| row.is_silent != 0 || is_gone(&row.process));
        Ok(left.map(|row| EffectRecord::of(row.effect)).collect::<Result<_, _>>()?)
    }

    /// The versions of a fact, the highest first.
    pub async fn effects_of(&self, key: &str) -> Result<Vec<EffectRecord>, Error> {
        let rows = effects::of_key(self.store(), key, LISTED).await?;
        Ok(rows.into_iter().map(EffectRecord::of).collect::<Result<_, _>>()?)
    }
}
