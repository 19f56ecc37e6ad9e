//! What an operator must decide about a run: a line for each decision, and the commands that settle it.

use std::fmt;

use refrain::admin::DoubtRecord;
use refrain::core::terminal::typed;

use crate::output::harmless;

/// The most units that one piece of advice names.
const NAMED: usize = 5;

/// A line about something that waits for an operator.
pub(crate) struct DoubtLine<'d>(pub(crate) &'d DoubtRecord);

impl fmt::Display for DoubtLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DoubtRecord { unit, since, message, .. } = self.0;
        match unit {
            Some(unit) => write!(f, "unit {} is in doubt", harmless(unit))?,
            None => write!(f, "its command was cut off")?,
        }
        if let Some(since) = since {
            write!(f, " since {since:.0}")?;
        }
        // The message of a command is printed with the run already.
        match (unit, message) {
            (Some(_), Some(message)) => write!(f, ": {}", harmless(message)),
            _ => Ok(()),
        }
    }
}

/// What to type, for an operator who must decide about a run.
pub(crate) fn advice(run: &str, doubts: &[DoubtRecord]) -> String {
    let units: Vec<&str> = doubts.iter().filter_map(|doubt| doubt.unit.as_deref()).collect();
    advice_on(run, &units)
}

fn advice_on(run: &str, units: &[&str]) -> String {
    let run = typed(run);
    match units {
        [] => format!(
            "an operator must decide. What it printed: refrain logs {run}; if it was done: refrain retry {run} --done; \
             to execute it again: refrain retry {run}"
        ),
        [unit] => format!(
            "an operator must decide about {0}. If it was done: refrain retry {run} --unit {0} --done; to send it again: \
             refrain retry {run} --unit {0}",
            typed(unit)
        ),
        units => {
            let named: Vec<String> = units.iter().take(NAMED).map(|unit| typed(unit)).collect();
            let more = match units.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "an operator must decide about {}{more}. If one was done: refrain retry {run} --unit KEY --done; to send it again: \
                 refrain retry {run} --unit KEY; all of them at once: --in-doubt instead of --unit KEY; look: refrain show {run}",
                named.join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_commands_that_settle_a_doubt_are_named() {
        assert!(advice_on("a#1", &[]).contains("refrain retry a#1 --done"));
        let one = advice_on("a#1", &["x y"]);
        for words in ["retry a#1 --unit 'x y' --done", "retry a#1 --unit 'x y'"] {
            assert!(one.contains(words), "{one}");
        }
        let many = advice_on("a#1", &["a", "b", "c", "d", "e", "f", "g"]);
        assert!(many.contains("a, b, c, d, e and 2 more") && many.contains("--in-doubt"), "{many}");
    }
}
