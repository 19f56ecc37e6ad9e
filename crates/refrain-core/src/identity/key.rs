//! Keys: the identity of a unit, a queued run or an effect.
//!
//! A key names a *fact* ("invoice INV-7"), so the same work has the same key whenever and wherever it is done again. It
//! is text, because people read it in logs and type it into `refrain trace`; it is compared and indexed as bytes, so
//! both databases agree and keys with a common prefix are adjacent. Nothing is normalised: `é` as one character (NFC)
//! and as `e` with an accent (NFD) are two keys, as they are two strings in the source that sent them.
//!
//! Types prevent two mistakes. Parts never run together: [`key!`](crate::key!) joins them by `:` and escapes `:` and `%`
//! inside a part as `%3A` and `%25`. And a key is never made from the clock, which would make every rerun look like new
//! work: [`KeyPart`] is not implemented for times, except logical ones, and users cannot implement it for them, because
//! both the trait and the clock types are foreign to their crate.

use std::borrow::Cow;
use std::{fmt, str};

use crate::ParseError;
use crate::content::Fingerprint;
use crate::name::{JobName, ProjectName, Scope, leaves_the_line, one_line, text_type};
use crate::window::LogicalTime;

pub mod template;

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 512;

/// A key: 1–512 bytes of UTF-8 on one line, ordered as bytes.
///
/// "On one line" means: no control characters (C0, DEL, C1) and neither U+2028 nor U+2029.
///
/// ```
/// use refrain_core::{Key, key};
///
/// let id = 7;
/// assert_eq!(key!("invoice", id)?.as_str(), "invoice:7");
/// assert_eq!(key!("a:b", "c")?.as_str(), "a%3Ab:c");
/// assert_ne!(key!("a:b", "c")?, key!("a", "b:c")?);
/// # Ok::<(), refrain_core::KeyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// Takes a key that the caller built, unchanged: nothing is escaped.
    ///
    /// ```
    /// use refrain_core::{Key, key};
    ///
    /// assert_eq!(Key::parse("invoice:7").ok(), key!("invoice", 7).ok());
    /// assert!(Key::parse("").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if text.is_empty() {
            let help = "name the fact, as in `invoice:INV-7`";
            return Err(ParseError::whole("key", text, "it is empty").help(help));
        }
        one_line("key", text, KEY_BYTES_MAX).map(Self)
    }

    /// Builds a key from parts; [`key!`](crate::key!) is the short form.
    pub fn from_parts(parts: &[&dyn KeyPart]) -> Result<Self, KeyError> {
        let mut text = String::new();
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                text.push(':');
            }
            push_part(&mut text, &part.key_part(), || format!("part {}", index + 1))?;
        }
        Self::of_pushed(text)
    }

    fn of_pushed(text: String) -> Result<Self, KeyError> {
        match text.len() {
            0 => Err(KeyError::NoParts),
            1..=KEY_BYTES_MAX => Ok(Self(text)),
            bytes => Err(KeyError::TooLong { bytes }),
        }
    }
}

text_type!(Key);

/// Builds a [`Key`] from parts: `key!("invoice", id)` is a `Result<Key, KeyError>`.
///
/// A part is anything that is a [`KeyPart`]: texts, integers, booleans, names, a
/// [`Fingerprint`](crate::Fingerprint), logical time. None of them may be empty.
#[macro_export]
macro_rules! key {
    ($($part:expr),+ $(,)?) => {
        {
            // The parts are dropped before the key is returned: held across an `await`, they would keep the future from being `Send`.
            let key = $crate::Key::from_parts(&[$(&$part as &dyn $crate::KeyPart),+]);
            key
        }
    };
}

/// A type that can be a part of a key.
///
/// Implement it for your own id types. A number and its decimal text are the same part, on purpose: the
/// same fact is read from a `bigint` column today and from JSON text tomorrow, and must keep its key.
///
/// ```
/// use refrain_core::{KeyPart, key};
/// use std::borrow::Cow;
///
/// struct Sku(String);
/// impl KeyPart for Sku {
///     fn key_part(&self) -> Cow<'_, str> {
///         Cow::Borrowed(&self.0)
///     }
/// }
///
/// assert_eq!(key!("stock", Sku("A-1".into()))?.as_str(), "stock:A-1");
/// assert_eq!(key!("stock", 7)?, key!("stock", "7")?);
/// # Ok::<(), refrain_core::KeyError>(())
/// ```
///
/// A float is not an identity, since one value has many spellings:
///
/// ```compile_fail,E0277
/// refrain_core::key!("reading", 1.5_f64);
/// ```
/// ```compile_fail,E0277
/// refrain_core::key!("reading", 1.5_f32);
/// ```
///
/// The start of a window identifies the work:
///
/// ```
/// use refrain_core::{Zone, key, window_name};
///
/// let start = window_name::parse("2026-06-09T14:00", &Zone::utc())?;
/// assert_eq!(key!("digest", "acme", start)?.as_str(), "digest:acme:2026-06-09T14%3A00%3A00Z");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The clock only says when the work was done, not which work it was:
///
/// ```compile_fail,E0277
/// refrain_core::key!("digest", jiff::Timestamp::UNIX_EPOCH);
/// ```
/// ```compile_fail,E0277
/// refrain_core::key!("digest", jiff::Zoned::default());
/// ```
/// ```compile_fail,E0277
/// refrain_core::key!("digest", jiff::civil::DateTime::ZERO);
/// ```
/// ```compile_fail,E0277
/// refrain_core::key!("digest", jiff::civil::Date::ZERO);
/// ```
/// ```compile_fail,E0277
/// refrain_core::key!("digest", jiff::civil::Time::MIN);
/// ```
/// ```compile_fail,E0277
/// refrain_core::key!("digest", std::time::SystemTime::UNIX_EPOCH);
/// ```
/// ```compile_fail,E0277
/// refrain_core::key!("digest", std::time::Instant::now());
/// ```
/// ```compile_fail,E0277
/// refrain_core::key!("digest", std::time::Duration::ZERO);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of a key",
    label = "not a `KeyPart`",
    note = "a key that contains the time makes every rerun look like new work: use the start of the run's window",
    note = "a key consists of strings, integers and booleans; implement `KeyPart` for an id type of your own"
)]
pub trait KeyPart {
    /// The part as text, neither escaped nor empty.
    fn key_part(&self) -> Cow<'_, str>;
}

impl<T: KeyPart + ?Sized> KeyPart for &T {
    fn key_part(&self) -> Cow<'_, str> {
        T::key_part(self)
    }
}

impl KeyPart for str {
    fn key_part(&self) -> Cow<'_, str> {
        Cow::Borrowed(self)
    }
}

macro_rules! key_part_as_str {
    ($($kind:ty),+) => {$(
        impl KeyPart for $kind {
            fn key_part(&self) -> Cow<'_, str> {
                Cow::Borrowed(self.as_str())
            }
        }
    )+};
}

macro_rules! key_part_to_string {
    ($($kind:ty),+) => {$(
        impl KeyPart for $kind {
            fn key_part(&self) -> Cow<'_, str> {
                Cow::Owned(self.to_string())
            }
        }
    )+};
}

key_part_as_str!(String, ProjectName, JobName, Scope);
key_part_to_string!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, bool, Fingerprint);
key_part_to_string!(LogicalTime);

/// Why a key cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There are no parts.
    #[error("a key needs at least one part: name the fact, as in key!(\"invoice\", id)")]
    NoParts,
    /// A part or a field is the empty string.
    #[error(
        "{part} of the key is empty: every unit without it would share one key, and all but the first would \
        count as done; use a value that every unit has"
    )]
    Empty {
        /// `part 2`, or `{id}` in a template.
        part: String,
    },
    /// A template names a field that the unit does not have.
    #[error("{{{field}}} of the key has no value: use a field that every unit has, or {{$content}}")]
    Missing {
        /// The name in the template.
        field: String,
    },
    /// A part or a field holds a control character or a line break.
    #[error("{part} of the key holds U+{:04X}, a control character or a line break", u32::from(*.character))]
    Character {
        /// `part 2`, or `{id}` in a template.
        part: String,
        /// The first such character.
        character: char,
    },
    /// The whole key is too long. Keys are never cut: two cut keys may be equal.
    #[error(
        "the key is {bytes} bytes long, the limit is {KEY_BYTES_MAX}: use a shorter id, or the hash of it"
    )]
    TooLong {
        /// How long it would be, escapes included.
        bytes: usize,
    },
}

/// Adds one part, escaped; `place` says which one, if it is refused.
fn push_part(text: &mut String, part: &str, place: impl Fn() -> String) -> Result<(), KeyError> {
    if part.is_empty() {
        return Err(KeyError::Empty { part: place() });
    }
    if !part.contains(|character| matches!(character, '%' | ':') || leaves_the_line(character)) {
        text.push_str(part);
        return Ok(());
    }
    for character in part.chars() {
        match character {
            '%' => text.push_str("%25"),
            ':' => text.push_str("%3A"),
            _ if leaves_the_line(character) => return Err(KeyError::Character { part: place(), character }),
            _ => text.push(character),
        }
    }
    Ok(())
}
