//! What of a run waits for a person, on lines for people and as objects for programs; and the commands that settle it.

use std::fmt;

use jiff::Timestamp;
use refrain::DoubtRecord;
use refrain::core::terminal::typed;
use serde::Serialize;

use crate::output::harmless;

/// The most units that one piece of advice names.
const NAMED: usize = 5;

/// Something that waits for a person.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Doubt {
    /// The unit; none if it is the command of the run.
    pub(crate) unit: Option<String>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) message: Option<String>,
}

impl From<DoubtRecord> for Doubt {
    fn from(DoubtRecord { unit, since, message }: DoubtRecord) -> Doubt {
        Doubt { unit, since, message }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.unit {
            Some(unit) => write!(f, "unit {} is in doubt", harmless(unit))?,
            None => write!(f, "its command was cut off")?,
        }
        if let Some(since) = self.since {
            write!(f, " since {since:.0}")?;
        }
        // What is said of a command stands with the run already.
        match (&self.unit, &self.message) {
            (Some(_), Some(message)) => write!(f, ": {}", harmless(message)),
            _ => Ok(()),
        }
    }
}

/// What to type, for a person who must decide about a run.
pub(crate) fn advice(run: &str, doubts: &[Doubt]) -> String {
    let run = typed(run);
    let units: Vec<&str> = doubts.iter().filter_map(|doubt| doubt.unit.as_deref()).collect();
    match units.as_slice() {
        [] => format!(
            "a person must decide. What it printed: refrain logs {run}; if it was done: refrain retry {run} --done; \
             to execute it again: refrain retry {run}"
        ),
        [unit] => format!(
            "a person must decide about {0}. If it was done: refrain retry {run} --unit {0} --done; to send it again: \
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
                "a person must decide about {}{more}. If one was done: refrain retry {run} --unit KEY --done; to send it again: \
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
        let of = |units: &[&str]| -> Vec<Doubt> {
            let unit = |unit: &&str| Doubt { unit: Some((*unit).to_owned()), since: None, message: None };
            units.iter().map(unit).collect()
        };
        let held = [Doubt { unit: None, since: None, message: None }];
        assert!(advice("a#1", &held).contains("refrain retry a#1 --done"));
        let one = advice("a#1", &of(&["x y"]));
        for words in ["retry a#1 --unit 'x y' --done", "retry a#1 --unit 'x y'"] {
            assert!(one.contains(words), "{one}");
        }
        let many = advice("a#1", &of(&["a", "b", "c", "d", "e", "f", "g"]));
        assert!(many.contains("a, b, c, d, e and 2 more") && many.contains("--in-doubt"), "{many}");
    }
}
