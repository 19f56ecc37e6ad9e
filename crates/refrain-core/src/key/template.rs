//! Key templates: how a job file says what the key of a unit or an effect is, as in `invoice:{id}`.
//!
//! A template gives the same key as [`key!`](crate::key!): values are escaped as parts are, literal text
//! stands as it is, its `:` included. Names are separated by `:`, because a value may contain anything
//! else: with `{a}-{b}`, `x-y` + `z` and `x` + `y-z` would be one key, and the second unit would silently
//! count as done. Names of a run, the clock or chance are refused, even where a unit has a field of that
//! name: whoever means the field calls it otherwise.

use std::{fmt, str};

use super::{KEY_BYTES_MAX, Key, KeyError, push_part};
use crate::ParseError;
use crate::name::one_line;

/// The name that stands for the hash of the whole unit.
pub const CONTENT: &str = "$content";

const WHAT: &str = "key template";

/// Names that change when the same work is done again (in lower case, without `_`), why not, and what
/// instead.
const UNSTABLE: [(&[&str], &str, &str); 3] = [
    (
        &["now", "today", "timestamp"],
        "a key made of the clock makes every rerun look like new work",
        "use {window_start} or {ds}",
    ),
    (
        &["run", "runid", "attempt"],
        "a key made of the run makes every rerun look like new work",
        "name the fact by a field that stays the same, such as {id}",
    ),
    (
        &["uuid", "random"],
        "a key made of chance is a new one each time",
        "name the fact by a field that stays the same, such as {id}, or use {$content}",
    ),
];

/// A key with names to fill in.
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
///               ^^^^^ a key made of the clock makes every rerun look like new work\n  \
///      use {window_start} or {ds}"
/// );
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyTemplate {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Piece {
    Literal(String),
    Name(String),
}

impl KeyTemplate {
    /// Reads a template: literal text and `{name}`, with `{{` and `}}` for braces.
    ///
    /// A name is a field (`id`), a path (`payload.user_id`) or `$content`. There is at least one, since a
    /// constant key would make every unit but the first count as done.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        one_line(WHAT, text, KEY_BYTES_MAX)?;
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut last_name = None;
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            match character {
                '{' | '}' if characters.next_if(|(_, next)| *next == character).is_some() => {
                    literal.push(character);
                }
                '{' => {
                    let name = name_at(text, at)?;
                    let end = at + name.len() + 2;
                    if let Some(start) = last_name.filter(|_| !literal.contains(':')) {
                        let reason = "these two values would run together into one";
                        let help = "put a `:` between them, as in `{source}:{id}`";
                        return Err(ParseError::new(WHAT, text, start..end, reason).help(help));
                    }
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                    pieces.push(Piece::Name(name.to_owned()));
                    last_name = Some(at);
                    characters.nth(name.len());
                }
                '}' => {
                    return Err(ParseError::new(WHAT, text, at..at + 1, "this `}` closes nothing")
                        .help("write `}}` for a brace"));
                }
                _ => literal.push(character),
            }
        }
        if last_name.is_none() {
            let reason = "it names nothing, so every unit but the first would count as done";
            return Err(ParseError::whole(WHAT, text, reason)
                .help("add what tells units apart, as in `invoice:{id}`"));
        }
        pieces.push(Piece::Literal(literal));
        Ok(Self { text: text.to_owned(), pieces })
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Literal(_) => None,
            Piece::Name(name) => Some(name.as_str()),
        })
    }

    /// Fills in the names. A name without a value, or with an empty one, is an error.
    pub fn render(&self, mut value: impl FnMut(&str) -> Option<String>) -> Result<Key, KeyError> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Name(name) => {
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

/// The name whose `{` stands at `at`: one that can be an identity.
fn name_at(text: &str, at: usize) -> Result<&str, ParseError> {
    let rest = text.get(at + 1..).unwrap_or_default();
    let Some((name, _)) = rest.split_once('}') else {
        let help = "write `{name}`, or `{{` for a brace";
        return Err(ParseError::new(WHAT, text, at..text.len(), "this `{` is never closed").help(help));
    };
    let refuse = |reason: &str| ParseError::new(WHAT, text, at..at + name.len() + 2, reason);
    if name != CONTENT && !name.split('.').all(is_identifier) {
        return Err(refuse("this is no name").help(
            "a name is letters, digits and `_`, as in {id} or {payload.user_id}; or it is {$content}",
        ));
    }
    let first = name.split('.').next().unwrap_or(name).replace('_', "").to_ascii_lowercase();
    match UNSTABLE.iter().find(|(names, ..)| names.contains(&first.as_str())) {
        Some((_, reason, help)) => Err(refuse(reason).help(*help)),
        None => Ok(name),
    }
}

fn is_identifier(segment: &str) -> bool {
    segment.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && segment.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}
