//! An effect happens outside the database, so its states are built around one risk: a lost answer.
//!
//! An effect is reserved, durably, before the first byte is sent. A send that ends without a definite answer is in doubt. From
//! there evidence confirms it, and it is sent again only for a reason in the table: a probe that comes too late to be wrong, a
//! provider that still knows the key, the operator, or the policy that accepts duplicates. A later refusal says nothing about an
//! earlier send without an answer, so it leads back into doubt. A confirmed effect never becomes unconfirmed, and an effect that
//! waits for approval cannot be reserved.

use std::time::Duration;

use super::Machine;

words! {
    /// The state of an effect, under its key and version.
    EffectState, "effect state" {
        /// Nothing is recorded under this key and version.
        Absent = "absent",
        /// It will be sent as soon as a worker is free.
        Pending = "pending",
        /// The operator must approve it first.
        Waiting = "waiting",
        /// One worker holds it and may be sending it now.
        Reserved = "reserved",
        /// It happened; the receipt is kept.
        Confirmed = "confirmed",
        /// The provider refused it.
        Refused = "refused",
        /// It may have happened or not: the answer was lost.
        InDoubt = "in-doubt",
        /// It may have happened, and it is never sent again.
        Abandoned = "abandoned",
        /// It is recorded and not sent; only the operator can have it sent.
        Suppressed = "suppressed",
        /// It happened, and was undone.
        Undone = "undone",
    }
}

words! {
    /// What happens to an effect.
    EffectEvent, "effect event" {
        /// The intent was copied into the effect ledger.
        Relayed = "relayed",
        /// The intent was copied, and needs approval.
        HeldForApproval = "held-for-approval",
        /// The operator approved it.
        Approved = "approved",
        /// The operator rejected it.
        Rejected = "rejected",
        /// The attempt that requested it does not send (`--effects suppress` or `only-new`), or this store is a copy.
        Suppressed = "suppressed",
        /// A higher version of the same fact arrived.
        Superseded = "superseded",
        /// The operator has a suppressed effect sent.
        Released = "released",
        /// A worker reserved it, durably.
        Reserved = "reserved",
        /// It is certain that it happened: by an answer, a probe or the operator.
        Confirmed = "confirmed",
        /// The provider answered with a definite refusal.
        Refused = "refused",
        /// No definite answer came, or the sender is gone.
        Unanswered = "unanswered",
        /// This send was refused or did not leave, but an earlier one had no answer.
        StillUnanswered = "still-unanswered",
        /// It is certain that nothing was sent: no host name, no connection, or the sender stopped before.
        NotSent = "not-sent",
        /// The job's `retry` has tries left for it.
        Retried = "retried",
        /// The operator has it sent again.
        Resent = "resent",
        /// The provider was asked after the horizon, and does not have it.
        ProbeAbsent = "probe-absent",
        /// The provider still remembers the key, and drops a duplicate.
        ProviderKey = "provider-key",
        /// The job prefers two sends to none.
        AtLeastOnce = "at-least-once",
        /// The job prefers no send to two.
        AtMostOnce = "at-most-once",
        /// The operator abandoned it.
        Abandoned = "abandoned",
        /// Its compensation was done.
        Undone = "undone",
    }
}

impl Machine for EffectState {
    type Event = EffectEvent;
    const NOUN: &'static str = "effect";
    const START: Self = Self::Absent;
    const EDGES: &'static [super::Edge<Self, EffectEvent>] = edges! {
        Absent,     Relayed         => Pending:    "copied at least once onto a unique key, it exists once";
        Absent,     HeldForApproval => Waiting:    "the operator sees it before it is sent";
        Absent,     Suppressed      => Suppressed: "the fact is recorded; a later request of it is a dedupe";
        Waiting,    Approved        => Pending:    "from now on it is like any other";
        Waiting,    Rejected        => Suppressed: "rejected by the operator; nothing was sent";
        Waiting,    Superseded      => Suppressed: "only the highest version of a fact is sent";
        Waiting,    Suppressed      => Suppressed: "the store is a copy; the original decides";
        Pending,    Reserved        => Reserved:   "committed durably before the first byte is sent";
        Pending,    Confirmed       => Confirmed:  "a late answer to an earlier send, or the operator knows";
        Pending,    Superseded      => Suppressed: "only the highest version of a fact is sent";
        Pending,    Suppressed      => Suppressed: "the store is a copy; the original sends it";
        Reserved,   Confirmed       => Confirmed:  "the provider accepted it";
        Reserved,   Refused         => Refused:    "the provider refused it";
        Reserved,   Unanswered      => InDoubt:    "it may have arrived";
        Reserved,   StillUnanswered => InDoubt:    "the earlier send may have arrived; the doubt counts from that one";
        Reserved,   NotSent         => Pending:    "nothing left this machine";
        Refused,    Retried         => Pending:    "tries are left";
        Refused,    Resent          => Pending:    "the operator fixed the cause";
        Refused,    Confirmed       => Confirmed:  "the operator knows that it happened another way";
        Refused,    Abandoned       => Abandoned:  "the operator gives it up";
        Refused,    Superseded      => Suppressed: "only the highest version of a fact is sent";
        Refused,    Suppressed      => Suppressed: "the store is a copy; the original decides";
        InDoubt,    Confirmed       => Confirmed:  "evidence: a late answer, a probe, the operator";
        InDoubt,    ProbeAbsent     => Pending:    "no message can still be on its way";
        InDoubt,    ProviderKey     => Pending:    "the same bytes under the same key, within the provider's ttl";
        InDoubt,    AtLeastOnce     => Pending:    "opted in, and marked as a possible duplicate";
        InDoubt,    Resent          => Pending:    "by decision of the operator";
        InDoubt,    AtMostOnce      => Abandoned:  "the job's policy";
        InDoubt,    Abandoned       => Abandoned:  "by decision of the operator";
        Suppressed, Released        => Pending:    "the operator wants it sent after all";
        Confirmed,  Undone          => Undone:     "the compensation, itself an effect, was done";
    };

    fn why_not(self, event: EffectEvent) -> &'static str {
        use EffectEvent as Event;
        match (self, event) {
            (Self::Absent, _) => {
                "nothing is recorded under this key and version; what is recorded of a key: `refrain trace KEY`"
            }
            (_, Event::Relayed | Event::HeldForApproval) => {
                "the effect exists already under this key and version; this is a dedupe"
            }
            (Self::Waiting, _) => "it waits for approval and nothing was sent; approve it or reject it first",
            (Self::Pending, Event::Approved) => {
                "it needs no approval; it goes out as soon as a worker is free"
            }
            (Self::Pending, Event::Resent | Event::Retried | Event::Released) => {
                "it is queued to be sent already"
            }
            (Self::Pending, Event::Rejected) => "it needs no approval, so there is nothing to reject",
            (Self::Pending, Event::Abandoned | Event::Undone) => "it has not been sent; nothing is in doubt",
            (Self::Pending, _) => "no worker has reserved it, so no answer can belong to it",
            (Self::Reserved, Event::Reserved) => {
                "a worker has reserved it and may be sending it; there is one sender at a time"
            }
            (Self::Reserved, _) => "it is being sent now; wait until it is confirmed, refused or in doubt",
            (Self::Confirmed, Event::Confirmed) => "it is confirmed already, and its receipt is kept",
            (Self::Confirmed, _) => "a confirmed effect is never sent again; undo it instead",
            (Self::Refused, Event::Reserved) => {
                "the provider refused it; it must be retried or resent before it is sent"
            }
            (Self::Refused, Event::Undone) => "the provider refused it, so there is nothing to undo",
            (Self::Refused, _) => "the provider refused it, and only another try can change that; resend it",
            (Self::InDoubt, Event::Rejected | Event::Suppressed | Event::Superseded) => {
                "it may have been sent, so it cannot be suppressed; abandon it instead"
            }
            (Self::InDoubt, Event::Undone) => "it is not certain that it happened; confirm it, then undo it",
            (Self::InDoubt, _) => {
                "it may have been sent; check with the provider, then confirm, resend or abandon it"
            }
            (Self::Abandoned, _) => {
                "it may have been sent and was abandoned; raise the effect's version to send it again"
            }
            (Self::Suppressed, _) => {
                "it is suppressed, and nothing of it was sent; send it, or raise the effect's version"
            }
            (Self::Undone, _) => "it happened and was undone; raise the effect's version to send it again",
        }
    }
}

words! {
    /// What is done about an effect in doubt (`in-doubt = "…"`).
    InDoubtPolicy, "in-doubt policy" {
        /// The operator decides.
        Hold = "hold",
        /// Send the same bytes again while the provider remembers the key.
        ProviderKey = "provider-key",
        /// Ask the provider.
        Probe = "probe",
        /// Not at all rather than twice.
        AtMostOnce = "at-most-once",
        /// Twice rather than not at all.
        AtLeastOnce = "at-least-once",
    }
}

words! {
    /// How a send ended. Effects and the calls of units share these meanings.
    SendAnswer, "answer" {
        /// It happened.
        Confirmed = "confirmed",
        /// It is certain that nothing left this machine, or that the receiver did nothing and may be asked again.
        NotSent = "not-sent",
        /// The receiver refused it for good.
        Refused = "refused",
        /// It may have happened.
        Unknown = "unknown",
    }
}

impl SendAnswer {
    /// What the end of a send means for its effect. A "no" to this send proves nothing about an earlier one without an answer.
    ///
    /// ```
    /// use refrain_core::state::{EffectEvent, SendAnswer};
    ///
    /// assert_eq!(SendAnswer::Refused.event(false), EffectEvent::Refused);
    /// assert_eq!(SendAnswer::Refused.event(true), EffectEvent::StillUnanswered);
    /// ```
    pub fn event(self, is_earlier_unanswered: bool) -> EffectEvent {
        match self {
            Self::Confirmed => EffectEvent::Confirmed,
            Self::Unknown => EffectEvent::Unanswered,
            Self::NotSent | Self::Refused if is_earlier_unanswered => EffectEvent::StillUnanswered,
            Self::NotSent => EffectEvent::NotSent,
            Self::Refused => EffectEvent::Refused,
        }
    }
}

/// What a provider answers when it is asked for an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// The provider has the effect.
    Found,
    /// The provider does not have it.
    Absent,
}

/// What is known about an effect in doubt.
///
/// There are two spans because a provider remembers a key from the first time it saw it, whereas a probe must wait for the last
/// message. Both end when the probe was *asked*: an answer from before the horizon does not become proof later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubt {
    /// The time since the first send.
    pub since_first_send: Duration,
    /// The time since the last send.
    pub since_last_send: Duration,
    /// How long a sent message can be on its way: the timeout of the request and the longest delay.
    pub horizon: Duration,
    /// How long the provider remembers a key, if the job says so.
    pub provider_ttl: Option<Duration>,
    /// What the provider answered; none if it was not asked, or could not tell.
    pub probe: Option<ProbeAnswer>,
}

/// What to do next about an effect in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// Record this event: it has happened, or is to happen.
    Apply(EffectEvent),
    /// Ask the provider after this time; if it could not tell, at the caller's own pace.
    ProbeAfter(Duration),
    /// Only the operator can decide.
    Hold(Hold),
}

words! {
    /// Why an effect in doubt is left to the operator.
    Hold, "reason to hold" {
        /// The job says so.
        Policy = "policy",
        /// The provider may have forgotten the key before a second send arrives.
        Forgotten = "forgotten",
        /// The job does not say how long the provider remembers a key.
        NoProviderTtl = "no-provider-ttl",
        /// A lower version of the same fact is in doubt.
        LowerVersion = "lower-version",
    }
}

impl InDoubtPolicy {
    /// The next step for an effect in doubt. Evidence precedes every policy.
    ///
    /// ```
    /// use refrain_core::state::{Doubt, EffectEvent, InDoubtPolicy, NextStep, ProbeAnswer};
    /// use std::time::Duration;
    ///
    /// let doubt = Doubt {
    ///     since_first_send: Duration::from_secs(40),
    ///     since_last_send: Duration::from_secs(40),
    ///     horizon: Duration::from_secs(60),
    ///     provider_ttl: None,
    ///     probe: Some(ProbeAnswer::Absent),
    /// };
    /// let twenty_seconds = Duration::from_secs(20);
    /// assert_eq!(InDoubtPolicy::Probe.next(&doubt), NextStep::ProbeAfter(twenty_seconds), "it may be on its way");
    /// ```
    pub fn next(self, doubt: &Doubt) -> NextStep {
        if doubt.probe == Some(ProbeAnswer::Found) {
            return NextStep::Apply(EffectEvent::Confirmed);
        }
        match self {
            Self::Hold => NextStep::Hold(Hold::Policy),
            Self::AtMostOnce => NextStep::Apply(EffectEvent::AtMostOnce),
            Self::AtLeastOnce => NextStep::Apply(EffectEvent::AtLeastOnce),
            Self::Probe => doubt.after_probe(),
            Self::ProviderKey => doubt.by_provider_key(),
        }
    }
}

impl Doubt {
    fn after_probe(&self) -> NextStep {
        let on_its_way = self.horizon.saturating_sub(self.since_last_send);
        if self.probe.is_some() && on_its_way.is_zero() {
            return NextStep::Apply(EffectEvent::ProbeAbsent);
        }
        NextStep::ProbeAfter(on_its_way)
    }

    /// A second send is safe only if it *arrives* while the provider remembers the key, so the time on its way is added.
    fn by_provider_key(&self) -> NextStep {
        match self.provider_ttl {
            None => NextStep::Hold(Hold::NoProviderTtl),
            Some(ttl) if self.since_first_send.saturating_add(self.horizon) < ttl => {
                NextStep::Apply(EffectEvent::ProviderKey)
            }
            Some(_) => NextStep::Hold(Hold::Forgotten),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Word;

    const MINUTE: Duration = Duration::from_mins(1);
    const DAY: Duration = Duration::from_hours(24);

    /// Sent once, a while ago, with a horizon of five minutes and a provider that remembers for a day.
    fn sent(ago: Duration, probe: Option<ProbeAnswer>) -> Doubt {
        Doubt {
            since_first_send: ago,
            since_last_send: ago,
            horizon: 5 * MINUTE,
            provider_ttl: Some(DAY),
            probe,
        }
    }

    #[test]
    fn each_policy_decides_by_the_known_facts() {
        use NextStep::{Apply, Hold as Held, ProbeAfter};
        let absent = Some(ProbeAnswer::Absent);
        let no_ttl = Doubt { provider_ttl: None, ..sent(MINUTE, None) };
        for (policy, doubt, expected) in [
            (InDoubtPolicy::Hold, sent(MINUTE, None), Held(Hold::Policy)),
            (InDoubtPolicy::Hold, sent(DAY, absent), Held(Hold::Policy)),
            (InDoubtPolicy::AtMostOnce, sent(MINUTE, None), Apply(EffectEvent::AtMostOnce)),
            (InDoubtPolicy::AtLeastOnce, sent(MINUTE, None), Apply(EffectEvent::AtLeastOnce)),
            (InDoubtPolicy::Probe, sent(MINUTE, None), ProbeAfter(4 * MINUTE)),
            (InDoubtPolicy::Probe, sent(MINUTE, absent), ProbeAfter(4 * MINUTE)),
            (InDoubtPolicy::Probe, sent(5 * MINUTE, None), ProbeAfter(Duration::ZERO)),
            (InDoubtPolicy::Probe, sent(5 * MINUTE, absent), Apply(EffectEvent::ProbeAbsent)),
            (InDoubtPolicy::ProviderKey, sent(MINUTE, None), Apply(EffectEvent::ProviderKey)),
            (InDoubtPolicy::ProviderKey, sent(1434 * MINUTE, None), Apply(EffectEvent::ProviderKey)),
            (InDoubtPolicy::ProviderKey, sent(1435 * MINUTE, None), Held(Hold::Forgotten)),
            (InDoubtPolicy::ProviderKey, sent(Duration::MAX, None), Held(Hold::Forgotten)),
            (InDoubtPolicy::ProviderKey, no_ttl, Held(Hold::NoProviderTtl)),
        ] {
            assert_eq!(policy.next(&doubt), expected, "{policy} {doubt:?}");
        }
    }

    #[test]
    fn f12_absence_counts_only_when_the_last_message_cannot_arrive_any_more() {
        let sent_twice = Doubt { since_last_send: MINUTE, ..sent(DAY, Some(ProbeAnswer::Absent)) };
        assert_eq!(InDoubtPolicy::Probe.next(&sent_twice), NextStep::ProbeAfter(4 * MINUTE));
    }

    #[test]
    fn evidence_confirms_under_every_policy_and_each_step_is_legal() {
        for policy in InDoubtPolicy::ALL {
            for probe in [None, Some(ProbeAnswer::Absent), Some(ProbeAnswer::Found)] {
                let next = policy.next(&sent(10 * MINUTE, probe));
                if probe == Some(ProbeAnswer::Found) {
                    assert_eq!(next, NextStep::Apply(EffectEvent::Confirmed), "{policy}");
                }
                if let NextStep::Apply(event) = next {
                    assert!(EffectState::InDoubt.apply(event).is_ok(), "{policy} asks for {event}");
                }
            }
        }
    }
}
