//! The names of projects, jobs and scopes.
//!
//! A job's name is a file name, a word on the command line, the first half of `job@window/scope` and a
//! column of every key, so it is narrow: lower-case letters, digits, `-` and `_` inside. It can never be a
//! path or look like an option, and two names never differ only by case. A scope comes from the user's data and is taken
//! unchanged; it only has to fit on one line. All of them are compared as bytes.

use std::ops::Range;
use std::{fmt, str};

use crate::ParseError;

/// The longest name of a project or a job, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The longest scope, in bytes.
pub const SCOPE_BYTES_MAX: usize = 256;

/// The name of a project.
///
/// ```
/// # use refrain_core::ProjectName;
/// assert_eq!(ProjectName::parse("shop")?.as_str(), "shop");
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectName(String);

/// The name of a job.
///
/// ```
/// # use refrain_core::JobName;
/// assert_eq!(JobName::parse("revenue-daily")?.to_string(), "revenue-daily");
/// assert_eq!(JobName::parse("Revenue Daily").unwrap_err().advice(), Some("write `revenue-daily`"));
/// assert!(JobName::parse("../revenue").is_err());
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobName(String);

/// The scope of a run; [`Scope::default`] is `""`, for jobs without scopes.
///
/// ```
/// # use refrain_core::Scope;
/// assert_eq!(Scope::parse("Zürich / 7")?.as_str(), "Zürich / 7");
/// assert_eq!(Scope::parse("")?, Scope::default());
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope(String);

impl ProjectName {
    /// Reads a name: 1–64 bytes of `a`–`z`, `0`–`9` and, inside, `-` and `_`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        name("project name", text).map(Self)
    }
}

impl JobName {
    /// Reads a name: 1–64 bytes of `a`–`z`, `0`–`9` and, inside, `-` and `_`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        name("job name", text).map(Self)
    }
}

impl Scope {
    /// Reads a scope: 0–256 bytes of UTF-8 on one line.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        one_line("scope", text, SCOPE_BYTES_MAX).map(Self)
    }
}

/// Implements what every type around one checked string has in common.
macro_rules! text_type {
    ($($name:ident),+) => {$(
        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl str::FromStr for $name {
            type Err = ParseError;

            fn from_str(text: &str) -> Result<Self, ParseError> {
                Self::parse(text)
            }
        }
    )+};
}
pub(crate) use text_type;

text_type!(ProjectName, JobName, Scope);

/// Whether a character could break the line it is printed on, or the terminal: the control characters (C0,
/// DEL, C1) and Unicode's own two line breaks, U+2028 and U+2029.
pub(crate) fn leaves_the_line(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

pub(crate) fn one_line(what: &'static str, text: &str, bytes_max: usize) -> Result<String, ParseError> {
    if text.len() > bytes_max {
        let reason = format!("it is {} bytes long, the limit is {bytes_max}", text.len());
        return Err(ParseError::new(what, text, bytes_max..text.len(), reason).help("use a shorter one"));
    }
    match text.char_indices().find(|(_, character)| leaves_the_line(*character)) {
        None => Ok(text.to_owned()),
        Some((at, character)) => {
            let reason = format!("U+{:04X} is a control character or a line break", u32::from(character));
            Err(ParseError::new(what, text, at..at + character.len_utf8(), reason).help("leave it out"))
        }
    }
}

fn name(what: &'static str, text: &str) -> Result<String, ParseError> {
    let Some((span, reason)) = name_fault(text) else { return Ok(text.to_owned()) };
    let corrected = text.trim().to_ascii_lowercase().replace(' ', "-");
    let help = match name_fault(&corrected) {
        None => format!("write `{corrected}`"),
        Some(_) => "a name is lower-case letters and digits, with `-` or `_` inside, as in `revenue-daily`"
            .to_owned(),
    };
    Err(ParseError::new(what, text, span, reason).help(help))
}

fn name_fault(text: &str) -> Option<(Range<usize>, String)> {
    let outer = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let inner = |character: char| outer(character) || matches!(character, '-' | '_');
    let last = text.len().saturating_sub(1);
    if text.is_empty() {
        Some((0..0, "it is empty".to_owned()))
    } else if text.len() > NAME_BYTES_MAX {
        let reason = format!("it is {} bytes long, the limit is {NAME_BYTES_MAX}", text.len());
        Some((NAME_BYTES_MAX..text.len(), reason))
    } else if let Some((at, other)) = text.char_indices().find(|(_, character)| !inner(*character)) {
        Some((at..at + other.len_utf8(), format!("{other:?} is not allowed in a name")))
    } else if !text.starts_with(outer) {
        Some((0..1, "a name begins with a letter or a digit".to_owned()))
    } else if !text.ends_with(outer) {
        Some((last..text.len(), "a name ends with a letter or a digit".to_owned()))
    } else {
        None
    }
}
