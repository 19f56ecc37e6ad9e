//! What a request for an effect finds: the versions of its fact that are recorded, and what follows for the requested one.
//!
//! Versions of one fact are decided together, under a lock on the fact. Only the highest is ever sent, and it waits while a lower one
//! may be on its way: a message about an old rule must not arrive after one about the new rule.

use super::{EffectEvent, EffectState, Hold, NextStep};

/// A recorded version of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactVersion {
    /// The version of the rule that says what is sent.
    pub version: u32,
    /// Its state.
    pub state: EffectState,
    /// Whether a send of it has had no answer. Then it may have been sent, although an operator has it sent again.
    pub is_unanswered: bool,
}

impl FactVersion {
    /// Whether a higher version waits for it: it may have been sent.
    fn is_in_doubt(self) -> bool {
        self.state == EffectState::InDoubt || (self.state == EffectState::Pending && self.is_unanswered)
    }
}

/// What follows from a request for one version of a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// It may be sent.
    Send {
        /// The events that lead from its state to `reserved`.
        events: Vec<EffectEvent>,
        /// Lower versions, which are suppressed.
        superseded: Vec<u32>,
    },
    /// Nothing is sent: this version is settled, or a higher one is recorded.
    Settled(FactVersion),
    /// A sender holds this version or a lower one.
    Held(u32),
    /// This version, or a lower one, is in doubt.
    InDoubt(u32, Hold),
    /// The operator must approve it first.
    NeedsApproval,
    /// The policy ends the doubt without another send.
    GivenUp(EffectEvent),
}

/// Decides about a request for `version`. `policy` is asked only if this version is in doubt.
///
/// ```
/// use refrain_core::state::{Admission, EffectEvent, EffectState, FactVersion, Hold, NextStep, admit};
///
/// let hold = || NextStep::Hold(Hold::Policy);
/// let fresh = Admission::Send { events: vec![EffectEvent::Relayed, EffectEvent::Reserved], superseded: vec![] };
/// assert_eq!(admit(&[], 1, hold), fresh);
///
/// let recorded = [FactVersion { version: 1, state: EffectState::InDoubt, is_unanswered: true }];
/// assert_eq!(admit(&recorded, 1, hold), Admission::InDoubt(1, Hold::Policy));
/// assert_eq!(admit(&recorded, 2, hold), Admission::InDoubt(1, Hold::LowerVersion));
/// ```
pub fn admit(recorded: &[FactVersion], version: u32, policy: impl FnOnce() -> NextStep) -> Admission {
    if let Some(higher) = recorded.iter().filter(|one| one.version > version).max_by_key(|one| one.version) {
        return Admission::Settled(*higher);
    }
    let lower: Vec<&FactVersion> = recorded.iter().filter(|one| one.version < version).collect();
    if let Some(held) = lower.iter().find(|one| one.state == EffectState::Reserved) {
        return Admission::Held(held.version);
    }
    if let Some(doubtful) = lower.iter().find(|one| one.is_in_doubt()) {
        return Admission::InDoubt(doubtful.version, Hold::LowerVersion);
    }
    let own = recorded.iter().find(|one| one.version == version);
    let own = own.map_or(EffectState::Absent, |one| one.state);
    let send = |first: Option<EffectEvent>| Admission::Send {
        events: first.into_iter().chain([EffectEvent::Reserved]).collect(),
        superseded: lower.iter().filter(|one| is_superseded(one.state)).map(|one| one.version).collect(),
    };
    match own {
        EffectState::Absent => send(Some(EffectEvent::Relayed)),
        EffectState::Pending => send(None),
        EffectState::Refused => send(Some(EffectEvent::Retried)),
        EffectState::Waiting => Admission::NeedsApproval,
        EffectState::Reserved => Admission::Held(version),
        EffectState::InDoubt => match policy() {
            NextStep::Apply(EffectEvent::AtMostOnce) => Admission::GivenUp(EffectEvent::AtMostOnce),
            NextStep::Apply(event) => send(Some(event)),
            NextStep::Hold(hold) => Admission::InDoubt(version, hold),
            NextStep::ProbeAfter(_) => Admission::InDoubt(version, Hold::Policy),
        },
        EffectState::Confirmed | EffectState::Undone | EffectState::Abandoned | EffectState::Suppressed => {
            Admission::Settled(FactVersion { version, state: own, is_unanswered: false })
        }
    }
}

/// Whether a version in this state gives way to a higher one: the table says so.
fn is_superseded(state: EffectState) -> bool {
    use super::Machine as _;
    state.apply(EffectEvent::Superseded).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Word as _;
    use crate::state::Machine as _;

    fn recorded<const N: usize>(versions: [(u32, EffectState); N]) -> [FactVersion; N] {
        versions.map(|(version, state)| FactVersion {
            version,
            state,
            is_unanswered: state == EffectState::InDoubt,
        })
    }

    fn held() -> NextStep {
        NextStep::Hold(Hold::Policy)
    }

    #[test]
    fn only_the_highest_version_is_sent_and_it_waits_for_a_lower_one_in_flight() {
        use EffectState::{Confirmed, InDoubt, Pending, Refused, Reserved, Waiting};
        let both = |first| vec![first, EffectEvent::Reserved];
        let fresh = |superseded: &[u32]| Admission::Send {
            events: both(EffectEvent::Relayed),
            superseded: superseded.to_vec(),
        };
        let higher = |version, state| {
            let is_unanswered = state == InDoubt;
            Admission::Settled(FactVersion { version, state, is_unanswered })
        };
        for (versions, expected) in [
            (recorded([(1, Pending), (3, Pending)]), higher(3, Pending)),
            (recorded([(3, InDoubt), (4, Confirmed)]), higher(4, Confirmed)),
            (recorded([(0, Confirmed), (1, Reserved)]), Admission::Held(1)),
            (recorded([(0, InDoubt), (1, Refused)]), Admission::InDoubt(0, Hold::LowerVersion)),
            (recorded([(0, Waiting), (1, Pending)]), fresh(&[0, 1])),
            (recorded([(0, Refused), (1, Confirmed)]), fresh(&[0])),
        ] {
            assert_eq!(admit(&versions, 2, held), expected, "{versions:?}");
        }
    }

    #[test]
    fn a_version_that_is_sent_again_after_a_doubt_is_not_superseded() {
        let again = FactVersion { version: 1, state: EffectState::Pending, is_unanswered: true };
        assert_eq!(admit(&[again], 2, held), Admission::InDoubt(1, Hold::LowerVersion));
        let own = Admission::Send { events: vec![EffectEvent::Reserved], superseded: vec![] };
        assert_eq!(admit(&[again], 1, held), own);
    }

    #[test]
    fn a_doubt_ends_by_the_policy_alone() {
        let doubtful = recorded([(1, EffectState::InDoubt)]);
        let apply = |event| move || NextStep::Apply(event);
        assert_eq!(admit(&doubtful, 1, held), Admission::InDoubt(1, Hold::Policy));
        let given_up = Admission::GivenUp(EffectEvent::AtMostOnce);
        assert_eq!(admit(&doubtful, 1, apply(EffectEvent::AtMostOnce)), given_up);
        for event in [EffectEvent::AtLeastOnce, EffectEvent::ProviderKey] {
            let again = Admission::Send { events: vec![event, EffectEvent::Reserved], superseded: vec![] };
            assert_eq!(admit(&doubtful, 1, apply(event)), again);
        }
    }

    #[test]
    fn each_admission_follows_the_table() {
        for state in EffectState::ALL.iter().copied().filter(|state| *state != EffectState::Absent) {
            let admission = admit(&recorded([(1, state)]), 1, held);
            if let Admission::Send { events, .. } = &admission {
                let end = events.iter().try_fold(state, |state, event| state.apply(*event));
                assert_eq!(end, Ok(EffectState::Reserved), "{state}: {admission:?}");
            }
            let never_sent = [EffectState::Confirmed, EffectState::Abandoned, EffectState::Undone];
            if never_sent.contains(&state) {
                assert!(matches!(admission, Admission::Settled(_)), "{state}: {admission:?}");
            }
        }
    }
}
