//! The four state machines of Refrain: run, unit, effect, backfill.
//!
//! Each is one table of edges (from, event, to, why). Whether an event is allowed, why it is refused, what is possible instead and
//! the drawing in `docs/STATES.md` are all read from that table, so a rule can neither be forgotten in one place nor be written
//! twice. The store writes the state of a run only as the table says (`store/run_state.rs` of the library), and the ledger the status
//! of a unit (`ledger/unit_state.rs`).
//!
//! Rejected: a type for each state (`Effect<Reserved>`). A state is read from a database row, so its type is known only at run
//! time; and such types have no table that could be printed.

use crate::Word;

/// The table of a machine, one edge a line: `From, Event => To: "why";`.
macro_rules! edges {
    ($($from:ident, $event:ident => $to:ident: $why:literal;)+) => {
        &[$($crate::state::Edge {
            from: Self::$from,
            event: Self::Event::$event,
            to: Self::$to,
            why: $why,
        }),+]
    };
}

mod backfill;
pub mod diagram;
mod effect;
mod fact;
mod run;
mod unit;

pub use backfill::{BackfillEvent, BackfillState};
pub use effect::{Doubt, EffectEvent, EffectState, Hold, InDoubtPolicy, NextStep, ProbeAnswer, SendAnswer};
pub use fact::{Admission, FactVersion, admit};
pub use run::{
    AttemptChange, Attempts, FailureReason, Open, RunEvent, RunNode, RunOutcome, RunStanding, RunTransition,
};
pub use unit::{
    Applied, Arriving, DedupeReason, OnChange, Recorded, RefusedUnit, UnitDecision, UnitEvent, UnitState,
    UnitStatus,
};

/// The reason for pairs that no caller asks for. A test makes sure that no pair is left with it.
const NOT_LISTED: &str = "this does not follow from its state";

/// One transition that a machine allows. Only the tables have edges: the type cannot be built elsewhere.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge<S, E> {
    /// The state before.
    pub from: S,
    /// What happens.
    pub event: E,
    /// The state after.
    pub to: S,
    /// Why, in a few words.
    pub why: &'static str,
}

/// A state machine: its states are the implementing words, its rules are [`Machine::EDGES`].
///
/// ```
/// use refrain_core::state::{EffectEvent, EffectState, Machine};
///
/// let effect = EffectState::Reserved;
/// assert_eq!(effect.apply(EffectEvent::Unanswered), Ok(EffectState::InDoubt));
///
/// let refusal = EffectState::Confirmed.apply(EffectEvent::Resent).unwrap_err();
/// assert_eq!(
///     refusal.to_string(),
///     "the effect is confirmed, so `resent` is refused: \
///      a confirmed effect is never sent again; undo it instead\n  possible now: undone"
/// );
/// ```
pub trait Machine: Word {
    /// What can happen to it.
    type Event: Word;
    /// The noun: run, unit, effect or backfill.
    const NOUN: &'static str;
    /// The state before anything is recorded.
    const START: Self;
    /// Every transition that is allowed; all others are refused.
    const EDGES: &'static [Edge<Self, Self::Event>];

    /// Why `event` is refused in this state, as a sentence; called only for pairs that are not listed.
    fn why_not(self, event: Self::Event) -> &'static str;

    /// The transitions from this state.
    fn edges(self) -> impl Iterator<Item = &'static Edge<Self, Self::Event>> {
        Self::EDGES.iter().filter(move |edge| edge.from == self)
    }

    /// Whether no transition leaves this state.
    fn is_final(self) -> bool {
        self.edges().next().is_none()
    }

    /// The state after `event`, or why there is none.
    fn apply(self, event: Self::Event) -> Result<Self, Refusal> {
        match self.edges().find(|edge| edge.event == event) {
            Some(edge) => Ok(edge.to),
            None => Err(Refusal {
                noun: Self::NOUN,
                state: self.name(),
                event: event.name(),
                reason: self.why_not(event),
                possible: self.edges().map(|edge| edge.event.name()).collect(),
            }),
        }
    }
}

/// A transition that is not in the table: what was asked, why it is refused, and what is possible instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {noun} is {state}, so `{event}` is refused: {reason}\n  possible now: {}", self.instead())]
pub struct Refusal {
    /// Run, unit, effect or backfill.
    pub noun: &'static str,
    /// The state it is in.
    pub state: &'static str,
    /// The event that was refused.
    pub event: &'static str,
    /// Why, as a sentence.
    pub reason: &'static str,
    /// The events that are possible in this state.
    pub possible: Vec<&'static str>,
}

impl Refusal {
    fn instead(&self) -> String {
        if self.possible.is_empty() {
            return "nothing; this state is final".to_owned();
        }
        self.possible.join(", ")
    }
}
