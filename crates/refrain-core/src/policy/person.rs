//! Who decides, and why: what is written down with every decision about runs, jobs and checkpoints.
//!
//! A name is what the caller says it is. Nothing is checked against a directory of people: a program that can write to the store can
//! write any name into it. The record is for colleagues who ask months later, not for a court. A name stays on one line; a
//! reason may be any text, and is made harmless where it is shown.

use crate::ParseError;
use crate::name::one_line;

/// The longest name of a person, in bytes.
pub const PERSON_BYTES_MAX: usize = 256;

/// The longest reason, in bytes.
pub const WHY_BYTES_MAX: usize = 2_000;

words! {
    /// What a person decided.
    Verb, "decision" {
        /// A run that had ended, and was not done, was asked for once more.
        Run = "run",
        /// A run that is not done is tried again.
        Retry = "retry",
        /// Another attempt is made of a run, whatever became of the last one.
        Again = "again",
        /// The work of a run that is done is done once more.
        Redo = "redo",
        /// What is in doubt, a unit or a command that was cut off, was done.
        Done = "done",
        /// A unit that is parked or in doubt is tried again.
        Unpark = "unpark",
        /// A run is called off.
        Cancel = "cancel",
        /// Nothing of a job begins.
        Pause = "pause",
        /// A job is allowed again.
        Resume = "resume",
        /// A checkpoint is put somewhere else.
        SetCheckpoint = "set-checkpoint",
        /// A store goes on where another one was.
        Recover = "recover",
        /// Bodies of old runs are forgotten.
        Prune = "prune",
        /// Tables are brought up to date.
        Migrate = "migrate",
    }
}

/// A person who decides, and the reason.
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
    /// A person by name: 1–256 bytes on one line.
    pub fn named(name: &str) -> Result<Person, ParseError> {
        const WHAT: &str = "name of a person";
        if name.trim().is_empty() {
            let help = "write the operator's name, as in `ada@office`";
            return Err(ParseError::whole(WHAT, name, "it is empty").help(help));
        }
        Ok(Person { name: one_line(WHAT, name, PERSON_BYTES_MAX)?, why: None })
    }

    /// The same person, with a reason: at most 2,000 bytes; a blank one is none.
    pub fn because(self, why: &str) -> Result<Person, ParseError> {
        const WHAT: &str = "reason";
        if why.len() > WHY_BYTES_MAX {
            let reason = format!("it is {} bytes long, the limit is {WHY_BYTES_MAX}", why.len());
            return Err(
                ParseError::new(WHAT, why, WHY_BYTES_MAX..why.len(), reason).help("link to the full text")
            );
        }
        if let Some(at) = why.find('\0') {
            return Err(
                ParseError::new(WHAT, why, at..at + 1, "no database keeps a NUL").help("leave it out")
            );
        }
        Ok(Person { why: Some(why.to_owned()).filter(|why| !why.trim().is_empty()), ..self })
    }

    /// Who.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why, if that was said.
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
