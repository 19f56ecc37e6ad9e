//! The inbox: everything that waits for an operator has a name, and every decision takes each name.
//!
//! A decision that makes no sense for a kind is refused in words. About a unit it is recorded in the ledger that holds the unit, and no
//! attempt is made: the next attempt of its run counts it.

use refrain_core::state::EffectState;
use refrain_core::terminal::typed;
use serde::Serialize;

use super::{EffectVerb, Refrain, Settlement};
use crate::error::Error;

/// Something that waits for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InboxEntry {
    /// An effect.
    Effect {
        /// The key of the fact.
        key: String,
        /// Its version; none for the highest one.
        version: Option<u32>,
    },
    /// A unit of a run.
    Unit {
        /// The run.
        run: String,
        /// The key of the unit.
        key: String,
    },
    /// The command of a run, which was cut off.
    Command(String),
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DecidedEntry {
    /// An effect has a new state.
    Effect {
        /// Its key.
        key: String,
        /// Its version.
        version: u32,
        /// Its state.
        state: EffectState,
    },
    /// A unit is recorded as done, or is tried again by the next attempt of its run.
    Unit {
        /// The run.
        run: String,
        /// The key of the unit.
        key: String,
        /// Whether it is recorded as done.
        done: bool,
    },
    /// The command of a run is recorded as done.
    Command {
        /// The run.
        run: String,
    },
}

impl Refrain {
    /// What a name means: an effect, else the command of a run.
    pub async fn inbox_entry(&self, name: &str) -> Result<InboxEntry, Error> {
        let unknown = match self.effects_named(name).await {
            Ok(_) => {
                let (key, version) = self.key_and_version(name).await?;
                return Ok(InboxEntry::Effect { key: key.to_owned(), version });
            }
            Err(unknown @ Error::NoEffect(_)) => unknown,
            Err(error) => return Err(error),
        };
        let is_run = name.contains(['@', '#']);
        match self.show(name).await {
            Ok(Some(_)) if is_run => Ok(InboxEntry::Command(name.to_owned())),
            Ok(_) => Err(unknown),
            // The name is not that of a run either.
            Err(error) if error.is_usage() => Err(unknown),
            Err(error) => Err(error),
        }
    }

    /// Records and carries out a decision about an entry of the inbox.
    pub async fn decide(&self, entry: &InboxEntry, verb: EffectVerb) -> Result<DecidedEntry, Error> {
        match entry {
            InboxEntry::Effect { key, version } => {
                let decided = self.decide_version(key, *version, verb).await?;
                Ok(DecidedEntry::Effect { key: decided.key, version: decided.version, state: decided.state })
            }
            InboxEntry::Unit { run, key } => {
                let settlement = match verb {
                    EffectVerb::Confirm => Settlement::Done,
                    EffectVerb::Resend => Settlement::Again,
                    EffectVerb::Abandon | EffectVerb::Send => return Err(senseless(entry, verb)),
                };
                self.settle_units(run, &[key], settlement).await?;
                let done = settlement == Settlement::Done;
                Ok(DecidedEntry::Unit { run: run.clone(), key: key.clone(), done })
            }
            InboxEntry::Command(run) if verb == EffectVerb::Confirm => {
                self.settle_held(run).await?;
                Ok(DecidedEntry::Command { run: run.clone() })
            }
            InboxEntry::Command(_) => Err(senseless(entry, verb)),
        }
    }
}

/// Why a decision cannot be made about an entry.
fn senseless(entry: &InboxEntry, verb: EffectVerb) -> Error {
    let (what, instead) = match entry {
        InboxEntry::Effect { key, .. } => (format!("the effect `{key}`"), "look: refrain effects".to_owned()),
        InboxEntry::Unit { run, .. } => (
            "a unit".to_owned(),
            format!("confirm it, or have it sent again; to give up its run: refrain cancel {}", typed(run)),
        ),
        InboxEntry::Command(run) => (
            "the command of a run".to_owned(),
            format!("confirm it, or execute it again: refrain retry {}", typed(run)),
        ),
    };
    Error::Senseless { what, verb: verb.name(), instead }
}
