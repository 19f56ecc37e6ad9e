//! An effect happens outside the database, so its life is built around one fear: the answer that got lost.
//!
//! It is reserved, durably, before the first byte leaves; whatever then ends without a definite answer is in
//! doubt. From there evidence confirms it, and it is sent again only for a reason that stands in the table:
//! a probe that comes too late to be wrong, a provider that still knows the key, a person, or the policy that
//! accepts duplicates. Nothing ever un-confirms, and an effect that waits for approval cannot be reserved.

use std::time::Duration;

use super::Machine;

words! {
    /// Where an effect stands, under its key and version.
    EffectState, "effect state" {
        /// Nothing is recorded under this key and version.
        Absent = "absent",
        /// It will be sent as soon as a worker is free.
        Pending = "pending",
        /// A person must approve it first.
        Waiting = "waiting",
        /// One worker has it and may be sending it at this moment.
        Reserved = "reserved",
        /// It happened; the receipt is kept.
        Confirmed = "confirmed",
        /// The other side said no.
        Refused = "refused",
        /// It may have happened or not: the answer was lost.
        InDoubt = "in-doubt",
        /// It may have happened, and it is never sent again.
        Abandoned = "abandoned",
        /// It was held back, and is never sent.
        Suppressed = "suppressed",
        /// It happened, and was taken back.
        Undone = "undone",
    }
}

words! {
    /// What happens to an effect.
    EffectEvent, "effect event" {
        /// The intent was copied into the effect ledger.
        Relayed = "relayed",
        /// The intent was copied, and needs a person's approval.
        HeldForApproval = "held-for-approval",
        /// A person approved it.
        Approved = "approved",
        /// A person does not want it.
        Rejected = "rejected",
        /// A backfill's policy holds it back.
        Suppressed = "suppressed",
        /// A worker put its name to it, durably.
        Reserved = "reserved",
        /// It is certain that it happened: an answer, a probe or a person says so.
        Confirmed = "confirmed",
        /// A definite no was answered.
        Refused = "refused",
        /// No definite answer came, or the sender is gone.
        Unanswered = "unanswered",
        /// It is certain that nothing left: no name, no connection, or the sender stopped before.
        NotSent = "not-sent",
        /// The job's `retry` has tries left for it.
        Retried = "retried",
        /// A person wants it sent again.
        Resent = "resent",
        /// The other side was asked after the horizon, and does not know it.
        ProbeAbsent = "probe-absent",
        /// The other side still remembers the key, and drops a second one.
        ProviderKey = "provider-key",
        /// The job would rather have it twice than not at all.
        AtLeastOnce = "at-least-once",
        /// The job would rather not have it than twice.
        AtMostOnce = "at-most-once",
        /// A person gives it up.
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
        Absent,    Relayed         => Pending:    "a copy at least once onto a unique key is once";
        Absent,    HeldForApproval => Waiting:    "a person sees it before anyone else does";
        Waiting,   Approved        => Pending:    "now it is like any other";
        Waiting,   Rejected        => Suppressed: "a person said no; nothing was sent";
        Waiting,   Suppressed      => Suppressed: "a backfill's policy; nothing was sent";
        Pending,   Rejected        => Suppressed: "a person said no, before it was reserved";
        Pending,   Suppressed      => Suppressed: "a backfill's policy, before it was reserved";
        Pending,   Reserved        => Reserved:   "committed durably before the first byte is sent";
        Reserved,  Confirmed       => Confirmed:  "the other side said yes";
        Reserved,  Refused         => Refused:    "the other side said no";
        Reserved,  Unanswered      => InDoubt:    "it may have arrived";
        Reserved,  NotSent         => Pending:    "nothing left this machine";
        Refused,   Retried         => Pending:    "tries are left";
        Refused,   Resent          => Pending:    "a person mended what was wrong";
        InDoubt,   Confirmed       => Confirmed:  "evidence: a late answer, a probe, a person";
        InDoubt,   ProbeAbsent     => Pending:    "nothing can still be on its way";
        InDoubt,   ProviderKey     => Pending:    "the same bytes under the same key, within its time";
        InDoubt,   AtLeastOnce     => Pending:    "opted in, and marked as a possible duplicate";
        InDoubt,   Resent          => Pending:    "a person looked and answers for it";
        InDoubt,   AtMostOnce      => Abandoned:  "the job's policy";
        InDoubt,   Abandoned       => Abandoned:  "a person decided";
        Confirmed, Undone          => Undone:     "the compensation, itself an effect, was done";
    };

    fn why_not(self, event: EffectEvent) -> &'static str {
        use EffectEvent as Event;
        match (self, event) {
            (Self::Absent, _) => {
                "nothing is recorded under this key and version; see `refrain effects` for those that are"
            }
            (_, Event::Relayed | Event::HeldForApproval) => {
                "the fact has its effect already under this key and version; this is a dedupe"
            }
            (Self::Waiting, _) => "it waits for a person and nothing was sent; approve it or reject it first",
            (Self::Pending, Event::Approved) => {
                "it needs no approval; it goes out as soon as a worker is free"
            }
            (Self::Pending, Event::Resent | Event::Retried) => "it is queued to be sent already",
            (Self::Pending, Event::Abandoned | Event::Undone) => "it is not on its way; reject it instead",
            (Self::Pending, _) => "nobody has reserved it, so no answer can belong to it",
            (Self::Reserved, Event::Reserved) => {
                "a worker has reserved it and may be sending it; there is one sender at a time"
            }
            (Self::Reserved, _) => {
                "it is being sent at this moment; wait until it is confirmed, refused or in doubt"
            }
            (Self::Confirmed, Event::Confirmed) => "it is confirmed already, and its receipt is kept",
            (Self::Confirmed, _) => "a confirmed effect is never sent again; undo it instead",
            (Self::Refused, Event::Reserved) => {
                "the other side said no; it must be retried or resent before it is sent"
            }
            (Self::Refused, Event::Undone) => "the other side said no, so there is nothing to undo",
            (Self::Refused, _) => "the other side said no, and only another try can change that; resend it",
            (Self::InDoubt, Event::Rejected | Event::Suppressed) => {
                "it may have been sent, so it cannot be held back; abandon it instead"
            }
            (Self::InDoubt, Event::Undone) => "it is not certain that it happened; confirm it, then undo it",
            (Self::InDoubt, _) => {
                "it may have been sent; look at the other side, then confirm, resend or abandon it"
            }
            (Self::Abandoned, _) => {
                "it may have been sent and was given up; raise the effect's version to send the fact anew"
            }
            (Self::Suppressed, _) => {
                "it is held back under this version; raise the effect's version to send the fact anew"
            }
            (Self::Undone, _) => {
                "it happened and was undone; raise the effect's version to send the fact anew"
            }
        }
    }
}

words! {
    /// What is done about an effect in doubt (`in-doubt = "…"`).
    InDoubtPolicy, "in-doubt policy" {
        /// A person decides.
        Hold = "hold",
        /// Send the same bytes again while the other side remembers the key.
        ProviderKey = "provider-key",
        /// Ask the other side.
        Probe = "probe",
        /// Rather not at all than twice.
        AtMostOnce = "at-most-once",
        /// Rather twice than not at all.
        AtLeastOnce = "at-least-once",
    }
}

/// What the other side says when it is asked for an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// It is there.
    Found,
    /// It is not there.
    Absent,
}

/// What is known about an effect in doubt.
///
/// There are two spans because a provider counts its memory from the first time it saw the key, whereas a
/// probe must wait for the last message. Both are measured to the moment at which the probe was *asked*: an
/// answer from before the horizon does not become proof by lying around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doubt {
    /// Since it was first sent.
    pub since_first_send: Duration,
    /// Since it was last sent.
    pub since_last_send: Duration,
    /// How long a sent message can still be on its way: the send's own deadline and the longest delay.
    pub horizon: Duration,
    /// How long the provider remembers a key, if the job says so.
    pub provider_ttl: Option<Duration>,
    /// What the other side answered; none if it was not asked, or could not say.
    pub probe: Option<ProbeAnswer>,
}

/// What to do next about an effect in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// This has happened, or is to happen: record it.
    Apply(EffectEvent),
    /// Ask the other side when this much time has passed; if it could not say, at the caller's own pace.
    ProbeAfter(Duration),
    /// Only a person can say.
    Hold(Hold),
}

/// Why an effect in doubt is left to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The job says so.
    Policy,
    /// The other side may have forgotten the key before a second send arrives.
    Forgotten,
    /// The job does not say how long the other side remembers a key.
    NoProviderTtl,
}

impl InDoubtPolicy {
    /// The next step for an effect in doubt. Evidence goes before every policy.
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

    /// A second send counts only if it *arrives* while the provider remembers, so its journey is added.
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
    fn each_policy_decides_by_what_is_known() {
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
