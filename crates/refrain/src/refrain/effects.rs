//! What is recorded of effects, for readers.

use jiff::Timestamp;
use refrain_core::state::EffectState;

use super::Refrain;
use crate::error::Error;
use crate::store::effects::{self, EffectRow};
use crate::store::{StoreError, instant};

/// The most effects that are listed.
const LISTED: i64 = 1_000;

/// An effect: something outside the database, by the fact that it is about and the version of its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRecord {
    /// The fact.
    pub key: String,
    /// The version of the rule that says what is sent.
    pub version: u32,
    /// Which effect it is.
    pub name: String,
    /// Where it stands.
    pub state: EffectState,
    /// The job that wished for it, if one did.
    pub job: Option<String>,
    /// The key of the run that wished for it.
    pub run: Option<String>,
    /// What goes with it, as JSON.
    pub payload: Option<String>,
    /// When it arrived in the store.
    pub arrived_at: Timestamp,
    /// How often somebody else wished for it, or for the same fact under a lower version.
    pub dedupes: u64,
}

impl EffectRecord {
    pub(super) fn of(row: EffectRow) -> Result<EffectRecord, StoreError> {
        let state = row.state.parse();
        let state = state.map_err(|error| StoreError::Broken(format!("effect {}: {error}", row.key)))?;
        Ok(EffectRecord {
            version: u32::try_from(row.version).unwrap_or_default(),
            state,
            arrived_at: instant(row.arrived_at)?,
            dedupes: u64::try_from(row.dedupes).unwrap_or_default(),
            key: row.key,
            name: row.name,
            job: row.job,
            run: row.run,
            payload: row.payload,
        })
    }
}

impl Refrain {
    /// The last effects that arrived in the store, the newest first; no more than a thousand.
    pub async fn effects(&self) -> Result<Vec<EffectRecord>, Error> {
        let rows = effects::list(self.store(), LISTED).await?;
        Ok(rows.into_iter().map(EffectRecord::of).collect::<Result<_, _>>()?)
    }
}
