//! A decision of an operator on one line, or as an object: what `show`, `trace` and `audit` print.

use std::fmt;

use refrain::admin::DecisionRecord;
use serde::Serialize;

use crate::output::harmless;

/// A decision.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct DecisionLine<'d>(pub(crate) &'d DecisionRecord);

impl fmt::Display for DecisionLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DecisionRecord { at, who, verb, unit, detail, why, .. } = self.0;
        write!(f, "{at:.0} {}", harmless(verb))?;
        if let Some(unit) = unit {
            write!(f, " {}", harmless(unit))?;
        }
        if let Some(detail) = detail {
            write!(f, " {}", harmless(detail))?;
        }
        match who {
            Some(who) => write!(f, ", by {}", harmless(who))?,
            None => write!(f, ", by a program")?,
        }
        match why {
            Some(why) => write!(f, ": {}", harmless(why)),
            None => Ok(()),
        }
    }
}
