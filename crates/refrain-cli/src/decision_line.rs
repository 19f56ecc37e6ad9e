//! A decision of a person on one line, for people and for programs: what `show`, `trace` and `audit` print.

use std::fmt;

use jiff::Timestamp;
use refrain::DecisionRecord;
use serde::Serialize;

use crate::output::harmless;

/// A decision.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct DecisionLine {
    at: Timestamp,
    who: Option<String>,
    decided: String,
    subject: String,
    unit: Option<String>,
    detail: Option<String>,
    why: Option<String>,
}

impl DecisionLine {
    /// What it is about.
    pub(crate) fn subject(&self) -> &str {
        &self.subject
    }
}

impl From<DecisionRecord> for DecisionLine {
    fn from(record: DecisionRecord) -> DecisionLine {
        let DecisionRecord { at, who, verb, subject, unit, detail, why } = record;
        DecisionLine { at, who, decided: verb, subject, unit, detail, why }
    }
}

impl fmt::Display for DecisionLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} {}", self.at, harmless(&self.decided))?;
        if let Some(unit) = &self.unit {
            write!(f, " {}", harmless(unit))?;
        }
        if let Some(detail) = &self.detail {
            write!(f, " {}", harmless(detail))?;
        }
        match &self.who {
            Some(who) => write!(f, ", by {}", harmless(who))?,
            None => write!(f, ", by a program")?,
        }
        match &self.why {
            Some(why) => write!(f, ": {}", harmless(why)),
            None => Ok(()),
        }
    }
}
