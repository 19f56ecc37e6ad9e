//! Key templates: how a job file defines the key of a unit or an effect, as in `invoice:{id}`.
//!
//! A template gives the same key as [`key!`](crate::key!): values are escaped like parts, literal text is kept, including
//! its `:`. Names must be separated by `:`, because a value may contain anything else: with `{a}-{b}`, `x-y` + `z` and
//! `x` + `y-z` would be one key, and the second unit would silently count as done. Names of the run, the clock or random
//! values are refused, even if a unit has a field of that name: rename the field in the source.

use std::ops::Range;
use std::{fmt, str};

use super::{KEY_BYTES_MAX, Key, KeyError, push_part};
use crate::name::one_line;
use crate::template::TemplatePiece;
use crate::{ParseError, template};

/// The placeholder for the hash of the whole unit.
pub const CONTENT: &str = "$content";

const WHAT: &str = "key template";

/// Names whose value changes when the same work is done again (in lower case, without `_`), why they are refused, and
/// what to use instead.
const UNSTABLE: [(&[&str], &str, &str); 3] = [
    (
        &["now", "today", "timestamp"],
        "a key that contains the time makes every rerun look like new work",
        "use {window_start} or {ds}",
    ),
    (
        &["run", "runid", "attempt"],
        "a key that contains the run makes every rerun look like new work",
        "name the fact by a field that stays the same, such as {id}",
    ),
    (
        &["uuid", "random"],
        "a random key is a new one each time",
        "name the fact by a field that stays the same, such as {id}, or use {$content}",
    ),
];

/// A key with placeholders.
///
/// ```
/// use refrain_core::{KeyTemplate, key};
///
/// let template = KeyTemplate::parse("invoice:{id}")?;
/// assert_eq!(template.names().collect::<Vec<_>>(), ["id"]);
/// assert_eq!(template.render(|_| Some("INV-7".to_owned())), key!("invoice", "INV-7"));
///
/// let error = KeyTemplate::parse("digest:{now}").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "cannot read the key template\n  \
///        digest:{now}\n         \
///               ^^^^^ a key that contains the time makes every rerun look like new work\n  \
///      use {window_start} or {ds}"
/// );
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyTemplate {
    text: String,
    pieces: Vec<TemplatePiece>,
}

impl KeyTemplate {
    /// Reads a template: literal text and `{name}`, with `{{` and `}}` for braces.
    ///
    /// A name is a field (`id`), a path (`payload.user_id`) or `$content`. There is at least one, since a
    /// constant key would make every unit but the first count as done.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        one_line(WHAT, text, KEY_BYTES_MAX)?;
        let pieces = template::scan(WHAT, text)?;
        let mut last_name = None;
        let mut is_parted = false;
        for piece in &pieces {
            match piece {
                TemplatePiece::Literal(literal) => is_parted |= literal.contains(':'),
                TemplatePiece::Name(name, span) => {
                    identity(text, name, span)?;
                    if let Some(start) = last_name.replace(span.start).filter(|_| !is_parted) {
                        let reason = "these two values would run together into one";
                        let help = "put a `:` between them, as in `{source}:{id}`";
                        return Err(ParseError::new(WHAT, text, start..span.end, reason).help(help));
                    }
                    is_parted = false;
                }
            }
        }
        if last_name.is_none() {
            let reason = "it has no placeholder, so every unit but the first would count as done";
            return Err(ParseError::whole(WHAT, text, reason)
                .help("add a field that identifies the unit, as in `invoice:{id}`"));
        }
        Ok(Self { text: text.to_owned(), pieces })
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places().map(|(name, _)| name)
    }

    /// The names and their positions, braces included.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.pieces.iter().filter_map(TemplatePiece::name)
    }

    /// Fills in the names. A name without a value, or with an empty one, is an error.
    pub fn render(&self, mut value: impl FnMut(&str) -> Option<String>) -> Result<Key, KeyError> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Literal(literal) => text.push_str(literal),
                TemplatePiece::Name(name, _) => {
                    let part = value(name).ok_or_else(|| KeyError::Missing { field: name.clone() })?;
                    push_part(&mut text, &part, || format!("{{{name}}}"))?;
                }
            }
        }
        Key::of_pushed(text)
    }
}

impl fmt::Display for KeyTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl str::FromStr for KeyTemplate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// Refuses a name that cannot identify a fact.
fn identity(text: &str, name: &str, span: &Range<usize>) -> Result<(), ParseError> {
    let refuse = |reason: &str| ParseError::new(WHAT, text, span.clone(), reason);
    if name != CONTENT && !template::is_path(name) {
        return Err(refuse("this is not a valid name").help(
            "a name is letters, digits and `_`, as in {id} or {payload.user_id}; or it is {$content}",
        ));
    }
    let first = name.split('.').next().unwrap_or(name).replace('_', "").to_ascii_lowercase();
    match UNSTABLE.iter().find(|(names, ..)| names.contains(&first.as_str())) {
        Some((_, reason, help)) => Err(refuse(reason).help(*help)),
        None => Ok(()),
    }
}
