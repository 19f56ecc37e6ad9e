//! Decisions of the operator about effects: it happened, send it again, give it up, send it after all.

use refrain_core::Word as _;
use refrain_core::person::Verb;
use refrain_core::state::{EffectEvent, EffectState};
use serde::Serialize;

use super::{EffectRecord, Refrain};
use crate::error::Error;
use crate::store::effect_decision::{EffectDecision, decide};
use crate::store::effect_reservation::versions;

/// What an operator decides about an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EffectVerb {
    /// It happened.
    Confirm,
    /// It is sent again: one in doubt, or one that was refused.
    Resend,
    /// It is never sent again, whether it happened or not.
    Abandon,
    /// It is sent, although it was suppressed.
    Send,
}

impl EffectVerb {
    fn event(self) -> EffectEvent {
        match self {
            EffectVerb::Confirm => EffectEvent::Confirmed,
            EffectVerb::Resend => EffectEvent::Resent,
            EffectVerb::Abandon => EffectEvent::Abandoned,
            EffectVerb::Send => EffectEvent::Released,
        }
    }

    /// The word for it on the command line.
    pub(super) fn name(self) -> &'static str {
        self.verb().name()
    }

    fn verb(self) -> Verb {
        match self {
            EffectVerb::Confirm => Verb::Confirm,
            EffectVerb::Resend => Verb::Resend,
            EffectVerb::Abandon => Verb::Abandon,
            EffectVerb::Send => Verb::Send,
        }
    }
}

/// An effect about which something was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DecidedEffect {
    /// Its key.
    pub key: String,
    /// Its version.
    pub version: u32,
    /// Its state since the decision.
    pub state: EffectState,
}

impl Refrain {
    /// Records and carries out a decision about an effect: `KEY@VERSION`, or `KEY` for its highest version. Refused if the table of
    /// effects has no such transition, and for a second send as long as the first one may still arrive.
    pub async fn decide_effect(&self, name: &str, verb: EffectVerb) -> Result<DecidedEffect, Error> {
        let (key, version) = self.key_and_version(name).await?;
        let decided = self.decide_version(key, version, verb).await;
        decided.map_err(|error| match error {
            Error::NoEffect(_) => Error::NoEffect(name.to_owned()),
            error => error,
        })
    }

    /// The same for a version, or for the highest one. If its sender has died, it is taken over first.
    pub(super) async fn decide_version(
        &self,
        key: &str,
        version: Option<u32>,
        verb: EffectVerb,
    ) -> Result<DecidedEffect, Error> {
        let version = version.map(|version| i32::try_from(version).map_err(|_| Error::Version(version)));
        let version = version.transpose()?;
        for holder in versions(self.store(), key).await?.into_iter().filter_map(|row| row.holder) {
            self.engine.rescuer().rescue_only(holder).await?;
        }
        let decision = self.decision(verb.verb(), key).of_unit(key);
        let request = EffectDecision { key, version, event: verb.event(), decision: &decision };
        let decided = decide(self.store(), &request).await?;
        let (version, state) = decided.ok_or_else(|| Error::NoEffect(key.to_owned()))?;
        Ok(DecidedEffect { key: key.to_owned(), version: u32::try_from(version).unwrap_or_default(), state })
    }
}

impl Refrain {
    /// The effects that a name means: the version of `KEY@VERSION`, or all versions of `KEY`, the highest first.
    pub async fn effects_named(&self, name: &str) -> Result<Vec<EffectRecord>, Error> {
        let (key, version) = self.key_and_version(name).await?;
        let mut effects = self.effects_of(key).await?;
        effects.retain(|effect| version.is_none_or(|version| version == effect.version));
        if effects.is_empty() { Err(Error::NoEffect(name.to_owned())) } else { Ok(effects) }
    }

    /// A key may end like a version itself: what is recorded decides.
    pub(super) async fn key_and_version<'n>(&self, name: &'n str) -> Result<(&'n str, Option<u32>), Error> {
        match versioned(name) {
            Some((key, version)) if self.effects_of(name).await?.is_empty() => Ok((key, Some(version))),
            _ => Ok((name, None)),
        }
    }
}

/// A key and a version, if a name ends in `@` and digits.
fn versioned(name: &str) -> Option<(&str, u32)> {
    let (key, version) = name.rsplit_once('@')?;
    let is_number = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    Some((key, version.parse().ok().filter(|_| is_number)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_follows_the_last_at_sign() {
        assert_eq!(versioned("mail:ada@example.org"), None);
        assert_eq!(versioned("mail:ada@example.org@2"), Some(("mail:ada@example.org", 2)));
        assert_eq!((versioned("a@"), versioned("a@+1"), versioned("a@99999999999")), (None, None, None));
    }
}
