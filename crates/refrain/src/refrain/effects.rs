//! Effects, for readers.

use jiff::Timestamp;
use refrain_core::state::EffectState;

use super::Refrain;
use crate::error::Error;
use crate::store::effects::{self, EffectRow};
use crate::store::{StoreError, instant};

/// The most effects that are listed.
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
    /// How often it was intended again, or under a lower version.
    #[serde(rename = "deduplicated")]
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
