//! Who decided, and why: recorded with every decision about runs, jobs and checkpoints.
//!
//! The caller states the name, and nothing verifies it: a program that can write to the store can write any name. The
//! record helps colleagues who ask months later; it is not evidence. A name stays on one line; a reason may be any text
//! and is sanitized where it is shown.

use crate::ParseError;
use crate::name::one_line;

/// The longest name of an operator, in bytes.
pub const PERSON_BYTES_MAX: usize = 256;

/// The longest reason, in bytes.
pub const WHY_BYTES_MAX: usize = 2_000;

words! {
    /// A decision of an operator.
    Verb, "decision" {
        /// Requests a run once more that has ended without being done.
        Run = "run",
        /// Retries a run that is not done.
        Retry = "retry",
        /// Makes another attempt of a run, whatever the outcome of the last one.
        Again = "again",
        /// Does the work of a finished run once more.
        Redo = "redo",
        /// Confirms that an interrupted command, or a unit in doubt, was done.
        Done = "done",
        /// Retries a unit that is parked or in doubt.
        Unpark = "unpark",
        /// Confirms that an effect happened.
        Confirm = "confirm",
        /// Has an effect sent again.
        Resend = "resend",
        /// Gives an effect up: it is never sent again.
        Abandon = "abandon",
        /// Has a suppressed effect sent.
        Send = "send",
        /// Cancels a run.
        Cancel = "cancel",
        /// Pauses a job: none of its runs begins.
        Pause = "pause",
        /// Resumes a job.
        Resume = "resume",
        /// Moves a checkpoint.
        SetCheckpoint = "set-checkpoint",
        /// Lets this store continue where another one was.
        Recover = "recover",
        /// Deletes payloads, messages and output of old runs.
        Prune = "prune",
        /// Migrates tables.
        Migrate = "migrate",
    }
}

/// The operator who decides, and the reason.
///
/// ```
/// use refrain_core::Person;
///
/// let ada = Person::named("ada@office")?.because("the bank has sent the file again")?;
/// assert_eq!((ada.name(), ada.why()), ("ada@office", Some("the bank has sent the file again")));
/// assert!(Person::named("").is_err() && Person::named("ada\nroot").is_err());
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    name: String,
    why: Option<String>,
}

impl Person {
    /// An operator by name: 1–256 bytes on one line.
    pub fn named(name: &str) -> Result<Person, ParseError> {
        const WHAT: &str = "operator name";
        if name.trim().is_empty() {
            let help = "write the operator's name, as in `ada@office`";
            return Err(ParseError::whole(WHAT, name, "it is empty").help(help));
        }
        Ok(Person { name: one_line(WHAT, name, PERSON_BYTES_MAX)?, why: None })
    }

    /// Adds a reason of at most 2,000 bytes; a blank one counts as none.
    pub fn because(self, why: &str) -> Result<Person, ParseError> {
        const WHAT: &str = "reason";
        if why.len() > WHY_BYTES_MAX {
            let reason = format!("it is {} bytes long, the limit is {WHY_BYTES_MAX}", why.len());
            return Err(
                ParseError::new(WHAT, why, WHY_BYTES_MAX..why.len(), reason).help("link to the full text")
            );
        }
        if let Some(at) = why.find('\0') {
            return Err(ParseError::new(WHAT, why, at..at + 1, "PostgreSQL cannot store a NUL character")
                .help("leave it out"));
        }
        Ok(Person { why: Some(why.to_owned()).filter(|why| !why.trim().is_empty()), ..self })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The reason, if one was given.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_and_reasons_have_limits() {
        let ada = || Person::named("ada").unwrap();
        assert!(Person::named(&"a".repeat(PERSON_BYTES_MAX)).is_ok());
        assert!(Person::named(&"a".repeat(PERSON_BYTES_MAX + 1)).is_err());
        assert!(Person::named("  ").is_err());
        assert!(ada().because(&"w".repeat(WHY_BYTES_MAX)).is_ok());
        assert!(ada().because(&"w".repeat(WHY_BYTES_MAX + 1)).is_err());
        assert!(ada().because("a\0b").is_err());
        assert_eq!(ada().because(" \n").unwrap().why(), None, "nothing was said");
        assert_eq!(ada().because("two\nlines").unwrap().why(), Some("two\nlines"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in any::<String>()) {
            let _ = Person::named(&text).and_then(|person| person.because(&text));
        }
    }
}
