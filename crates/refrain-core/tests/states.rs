//! The four state machines, pair by pair: what the tables allow happens, everything else is refused with a reason,
//! and `docs/STATES.md` shows the tables.

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::str::FromStr;

use proptest::prelude::*;
use refrain_core::ParseError;
use refrain_core::Word;
use refrain_core::state::{
    Attempts, BackfillState, EffectEvent, EffectState, Machine, OnChange, Open, Refusal, RunEvent, RunNode,
    RunOutcome, RunStanding, UnitState, diagram,
};

/// Runs a check once for each machine.
macro_rules! for_each_machine {
    ($check:ident) => {
        $check::<RunNode>();
        $check::<UnitState>();
        $check::<EffectState>();
        $check::<BackfillState>();
    };
}

#[test]
fn i20_a_state_and_an_event_have_one_next_state() {
    fn check<M: Machine>() {
        for (state, event) in pairs::<M>() {
            let next = M::EDGES.iter().filter(|edge| edge.from == state && edge.event == event).count();
            assert!(next <= 1, "{} {state:?} {event:?}: {next} edges", M::NOUN);
        }
    }
    for_each_machine!(check);
}

#[test]
fn i20_every_refusal_says_why_in_a_sentence() {
    fn check<M: Machine>() {
        for refusal in pairs::<M>().filter_map(|(state, event)| state.apply(event).err()) {
            assert!(refusal.reason.split(' ').count() >= 5, "too short for a reason: {refusal}");
            assert!(!refusal.reason.ends_with('.'), "more follows: {refusal}");
            assert!(
                !refusal.reason.contains("does not follow"),
                "this pair needs a reason of its own: {refusal}"
            );
            let last = refusal.to_string().lines().last().unwrap_or_default().to_owned();
            assert!(last.starts_with("  possible now: ") && last.len() > 20, "{refusal}");
        }
    }
    for_each_machine!(check);
}

#[test]
fn i20_every_state_can_be_reached_and_every_event_can_happen() {
    fn check<M: Machine + Hash>() {
        let mut reached = HashSet::from([M::START]);
        let mut open = vec![M::START];
        while let Some(state) = open.pop() {
            open.extend(state.edges().map(|edge| edge.to).filter(|to| reached.insert(*to)));
        }
        for state in M::ALL {
            assert!(reached.contains(state), "{} {state:?} is never reached", M::NOUN);
        }
        for event in M::Event::ALL {
            assert!(M::EDGES.iter().any(|edge| edge.event == *event), "{} {event:?} never happens", M::NOUN);
        }
        assert!(M::EDGES.iter().all(|edge| edge.to != M::START), "a {} is never forgotten", M::NOUN);
    }
    for_each_machine!(check);
}

#[test]
fn i19_applied_and_abandoned_are_final_and_nothing_unconfirms() {
    assert!(UnitState::Applied.is_final());
    assert!(EffectState::Abandoned.is_final());
    let after: Vec<_> = EffectState::Confirmed.edges().map(|edge| (edge.event, edge.to)).collect();
    assert_eq!(after, [(EffectEvent::Undone, EffectState::Undone)]);
    assert!(EffectState::Undone.is_final(), "an effect that was undone is never sent");
    let after: Vec<_> = EffectState::Suppressed.edges().map(|edge| (edge.event, edge.to)).collect();
    assert_eq!(after, [(EffectEvent::Released, EffectState::Pending)], "only the operator has it sent");
}

#[test]
fn i19_an_effect_in_doubt_is_sent_again_only_for_a_listed_reason() {
    let reasons: Vec<_> = EffectState::InDoubt
        .edges()
        .filter(|edge| edge.to == EffectState::Pending)
        .map(|edge| edge.event)
        .collect();
    assert_eq!(
        reasons,
        [EffectEvent::ProbeAbsent, EffectEvent::ProviderKey, EffectEvent::AtLeastOnce, EffectEvent::Resent]
    );
}

#[test]
fn an_unapproved_effect_cannot_be_reserved() {
    let to_reserved = EffectState::EDGES.iter().filter(|edge| edge.to == EffectState::Reserved);
    assert!(to_reserved.map(|edge| edge.from).eq([EffectState::Pending]));

    let refusal = EffectState::Waiting.apply(EffectEvent::Reserved).unwrap_err();
    assert!(refusal.reason.contains("approve it"), "{refusal}");
    assert_eq!(EffectState::Waiting.apply(EffectEvent::Approved), Ok(EffectState::Pending));
}

#[test]
fn every_word_is_read_back_and_no_two_are_alike() {
    fn check<W: Word + Display + FromStr<Err = ParseError>>() {
        for word in W::ALL {
            assert_eq!(word.to_string().parse::<W>().as_ref(), Ok(word));
            assert!(word.name().chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{word}");
            assert!(word.meaning().ends_with('.'), "{word} has no meaning: {:?}", word.meaning());
        }
        let names: HashSet<_> = W::ALL.iter().map(|word| word.name()).collect();
        assert_eq!(names.len(), W::ALL.len());
    }
    fn both<M: Machine + Display + FromStr<Err = ParseError>>()
    where
        M::Event: Display + FromStr<Err = ParseError>,
    {
        check::<M>();
        check::<M::Event>();
    }
    for_each_machine!(both);
    check::<RunOutcome>();
    check::<Open>();
    check::<OnChange>();
    check::<refrain_core::state::InDoubtPolicy>();
}

#[test]
fn a_word_that_is_mistyped_is_answered_with_those_that_exist() {
    let error = "in doubt".parse::<EffectState>().unwrap_err();
    assert_eq!(error.reason(), "this is not a valid effect state");
    assert!(error.advice().unwrap().contains("in-doubt, abandoned"), "{error}");
}

#[test]
fn an_outcome_is_called_like_its_node() {
    for outcome in RunOutcome::ALL {
        assert_eq!(outcome.name(), RunNode::from(*outcome).name());
    }
}

#[test]
fn a_done_window_stays_done_while_it_is_computed_again() {
    let mut run = after(&[RunEvent::Opened, RunEvent::Claimed, RunEvent::Succeeded]).unwrap();
    for event in [
        RunEvent::Reopened,
        RunEvent::Claimed,
        RunEvent::Errored,
        RunEvent::Claimed,
        RunEvent::TakenOver,
        RunEvent::Claimed,
        RunEvent::Stopped,
        RunEvent::Claimed,
    ] {
        run = run.apply(event).unwrap().standing();
        assert!(run.is_done() && run.is_open(), "{event}: {run:?}");
    }
    let again = run.apply(RunEvent::Reopened).unwrap_err();
    assert_eq!(again.reason, "an attempt is open already; follow that one");
    assert_eq!(
        run.apply(RunEvent::Failed).unwrap().standing().node(),
        RunNode::Failed,
        "what happened last is what counts"
    );
}

#[test]
fn cancelling_a_queued_attempt_changes_no_outcome() {
    let queued_first = after(&[RunEvent::Opened]).unwrap();
    assert_eq!(queued_first.apply(RunEvent::Cancelled).unwrap().standing().node(), RunNode::Cancelled);

    for outcome in RunOutcome::ALL.iter().copied() {
        let ended = RunStanding { outcome: Some(outcome), open: None };
        let queued = ended.apply(RunEvent::Reopened).unwrap().standing();
        assert_eq!(queued.apply(RunEvent::Cancelled).unwrap().standing(), ended);

        let running = queued.apply(RunEvent::Claimed).unwrap().standing();
        assert_eq!(running.apply(RunEvent::Cancelled).unwrap().standing().node(), RunNode::Cancelled);
    }
}

#[test]
fn effects_settle_also_while_the_run_is_computed_again() {
    let waiting = after(&[RunEvent::Opened, RunEvent::Claimed, RunEvent::Waits]).unwrap();
    assert_eq!(waiting.apply(RunEvent::Settled).unwrap().standing().node(), RunNode::Done);

    let queued = waiting.apply(RunEvent::Reopened).unwrap().standing();
    let settled = queued.apply(RunEvent::Settled).unwrap().standing();
    assert_eq!(settled, RunStanding { outcome: Some(RunOutcome::Done), open: Some(Open::Queued) });
    assert!(after(&[RunEvent::Opened]).unwrap().apply(RunEvent::Settled).is_err());
}

#[test]
fn a_run_with_a_refused_effect_is_partial_until_that_is_settled() {
    let waiting = after(&[RunEvent::Opened, RunEvent::Claimed, RunEvent::Waits]).unwrap();
    let partial = waiting.apply(RunEvent::Refused).unwrap().standing();
    assert_eq!(partial, RunStanding { outcome: Some(RunOutcome::Partial), open: None });
    assert_eq!(partial.apply(RunEvent::Settled).unwrap().standing().node(), RunNode::Done);

    let queued = waiting.apply(RunEvent::Reopened).unwrap().standing();
    let refused = queued.apply(RunEvent::Refused).unwrap().standing();
    assert_eq!(refused, RunStanding { outcome: Some(RunOutcome::Partial), open: Some(Open::Queued) });
}

#[test]
fn only_a_crash_alone_costs_an_attempt() {
    let mut attempts = Attempts::default();
    let mut run = RunStanding::default();
    for (event, number, spent, suspicion) in [
        (RunEvent::Opened, 1, 0, 0),
        (RunEvent::Claimed, 1, 0, 0),
        (RunEvent::Stopped, 2, 0, 0),
        (RunEvent::Claimed, 2, 0, 0),
        (RunEvent::TakenOver, 3, 0, 1),
        (RunEvent::Claimed, 3, 0, 1),
        (RunEvent::CrashedAlone, 4, 1, 2),
        (RunEvent::Claimed, 4, 1, 2),
        (RunEvent::Errored, 5, 2, 0),
        (RunEvent::Claimed, 5, 2, 0),
        (RunEvent::Failed, 5, 2, 0),
        (RunEvent::Reopened, 6, 0, 0),
    ] {
        let step = run.apply(event).unwrap();
        (run, attempts) = (step.standing(), attempts.then(step.attempt()));
        assert_eq!(attempts, Attempts { number, spent, suspicion }, "{event}");
    }
}

proptest! {
    #[test]
    fn i20_no_history_makes_a_run_forget(
        history in prop::collection::vec(prop::sample::select(RunEvent::ALL), 0..200)
    ) {
        let (mut run, mut attempts) = (RunStanding::default(), Attempts::default());
        for event in history {
            let Ok(step) = run.apply(event) else { continue };
            let fence = attempts.number;
            attempts = attempts.then(step.attempt());
            prop_assert!(attempts.number >= fence, "a fence never falls back");

            let (before, now) = (run, step.standing());
            run = now;
            prop_assert_ne!(now, RunStanding::default(), "a record is never lost");
            prop_assert!(before.outcome.is_none() || now.outcome.is_some(), "an outcome is never lost");
            let attempt_ended = before.open == Some(Open::Running) && now.open.is_none();
            if before.outcome.is_some() && before.outcome != now.outcome {
                prop_assert!(attempt_ended || matches!(event, RunEvent::Settled | RunEvent::Refused | RunEvent::Vouched), "{event} changed the outcome");
            }
            if before.is_done() && !now.is_done() {
                prop_assert!(attempt_ended || event == RunEvent::Refused, "{event} made a done window look undone");
            }
            if !before.is_open() && now.is_open() {
                prop_assert!(matches!(event, RunEvent::Opened | RunEvent::Reopened), "{event} queued it");
            }
        }
    }

    #[test]
    fn i19_no_history_sends_a_doubtful_effect_without_a_reason(
        choices in prop::collection::vec(any::<prop::sample::Index>(), 30)
    ) {
        let mut effect = EffectState::START;
        let mut doubtful = false;
        for choice in choices {
            let legal: Vec<_> = effect.edges().collect();
            if legal.is_empty() {
                break;
            }
            let event = choice.get(&legal).event;
            let before = effect;
            effect = effect.apply(event).unwrap();
            match event {
                EffectEvent::Unanswered | EffectEvent::StillUnanswered => doubtful = true,
                EffectEvent::ProbeAbsent
                | EffectEvent::ProviderKey
                | EffectEvent::AtLeastOnce
                | EffectEvent::Resent => doubtful = false,
                _ => {}
            }
            prop_assert!(!(doubtful && effect == EffectState::Reserved), "sent again without a reason");
            let happened = matches!(before, EffectState::Confirmed | EffectState::Undone);
            prop_assert!(!happened || effect == EffectState::Undone, "{event} un-confirms");
        }
    }
}

#[test]
fn the_states_page_shows_the_tables_as_they_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/STATES.md");
    let page = std::fs::read_to_string(path).unwrap();
    let sections = [
        ("run", section::<RunNode>()),
        ("attempts", diagram::attempts()),
        ("unit", section::<UnitState>()),
        ("effect", section::<EffectState>()),
        ("backfill", section::<BackfillState>()),
    ];
    let fresh = sections.iter().try_fold(page.clone(), |page, (name, text)| fill(&page, name, text));
    let fresh = fresh.expect("docs/STATES.md has a pair of markers for each table");
    if std::env::var_os("REFRAIN_BLESS").is_some() {
        std::fs::write(path, fresh).unwrap();
    } else {
        assert!(
            page == fresh,
            "docs/STATES.md is not what the tables in crates/refrain-core/src/state say; to rewrite it: \
             REFRAIN_BLESS=1 cargo test -p refrain-core --test states"
        );
    }
}

fn section<M: Machine>() -> String {
    format!(
        "```mermaid\n{}```\n\n{}\n{}\n{}",
        diagram::mermaid::<M>(),
        diagram::states::<M>(),
        diagram::events::<M>(),
        diagram::edges::<M>(),
    )
}

/// The page with `text` between the markers of `name`; none if a marker is missing.
fn fill(page: &str, name: &str, text: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{text}\n{end}{after}"))
}

fn pairs<M: Machine>() -> impl Iterator<Item = (M, M::Event)> {
    M::ALL.iter().flat_map(|state| M::Event::ALL.iter().map(move |event| (*state, *event)))
}

fn after(history: &[RunEvent]) -> Result<RunStanding, Refusal> {
    history.iter().try_fold(RunStanding::default(), |run, event| Ok(run.apply(*event)?.standing()))
}
