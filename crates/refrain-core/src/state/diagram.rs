//! Draws a machine from its table, for `docs/STATES.md` and for commands that explain a state.

use std::fmt::Write as _;

use super::{Machine, RunEvent};
use crate::Word;

/// The machine as a Mermaid `stateDiagram-v2`. Events between the same two states share an arrow.
pub fn mermaid<M: Machine>() -> String {
    let mut text = String::from("stateDiagram-v2\n");
    for state in M::ALL.iter().filter(|state| state.name().contains('-')) {
        line(&mut text, format_args!("    state \"{}\" as {}", state.name(), node(*state)));
    }
    for from in M::ALL {
        for to in M::ALL {
            let events: Vec<_> =
                from.edges().filter(|edge| edge.to == *to).map(|edge| edge.event.name()).collect();
            if !events.is_empty() {
                let label = events.join(", ");
                line(&mut text, format_args!("    {} --> {}: {label}", node(*from), node(*to)));
            }
        }
    }
    for state in M::ALL.iter().filter(|state| state.is_final()) {
        line(&mut text, format_args!("    {} --> [*]", node(*state)));
    }
    text
}

/// The states of the machine and their meanings, as a Markdown table.
pub fn states<M: Machine>() -> String {
    let rows = M::ALL.iter().map(|state| [state.name(), state.meaning()]);
    table(["state", "meaning"], rows)
}

/// The edges of the machine as a Markdown table.
pub fn edges<M: Machine>() -> String {
    let rows = M::EDGES.iter().map(|edge| [edge.from.name(), edge.event.name(), edge.to.name(), edge.why]);
    table(["from", "event", "to", "why"], rows)
}

/// The events of the machine and their meanings, as a Markdown table.
pub fn events<M: Machine>() -> String {
    let rows = M::Event::ALL.iter().map(|event| [event.name(), event.meaning()]);
    table(["event", "meaning"], rows)
}

/// What each event does to the attempts of a run, as a Markdown table.
pub fn attempts() -> String {
    let rows = RunEvent::ALL.iter().map(|event| [event.name(), event.attempt().describe()]);
    table(["event", "attempt"], rows)
}

/// In Mermaid `[*]` is the point where a machine begins or ends, and `-` is part of an arrow.
fn node<M: Machine>(state: M) -> String {
    if state == M::START { "[*]".to_owned() } else { state.name().replace('-', "_") }
}

fn table<const COLUMNS: usize>(
    head: [&str; COLUMNS],
    rows: impl Iterator<Item = [&'static str; COLUMNS]>,
) -> String {
    let mut text = String::new();
    line(&mut text, format_args!("| {} |", head.join(" | ")));
    line(&mut text, format_args!("|{}", "---|".repeat(COLUMNS)));
    for row in rows {
        line(&mut text, format_args!("| {} |", row.join(" | ")));
    }
    text
}

fn line(text: &mut String, content: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{content}");
}
