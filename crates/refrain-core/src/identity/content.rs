//! Fingerprints: whether two units have equal content.
//!
//! A program that lists invoices twice may order fields differently, indent, or write `10.0` for `10`; that is the same
//! content. Everything else is a change, however small, and must be noticed: so numbers are compared by their exact
//! value and never pass through a float, which would make 12345678901234567890123 and …124 equal. For the same reason
//! the unit is not parsed into `serde_json::Value`: it is checked once, and slices of its own text are hashed, copied
//! only where they contain escapes. A source sends its whole list each time, so this is a hot path.
//!
//! # What is hashed
//!
//! The parts of one [encoding](crate::encoding) under `refrain/v1/content`, the value written depth first:
//!
//! ```text
//! null, true, false  →  that word
//! a number           →  "number", digits "e" exponent     12.50 → 125e-1, -100 → -1e2, zero → 0e0:
//!                                                         neither end of the digits is a zero
//! a string           →  "string", the text without its escapes
//! an array           →  "array", its length, its values
//! an object          →  "object", its size, then each key and its value, by the bytes of the key
//! ```

use std::borrow::Cow;
use std::{fmt, str};

use serde_json::value::RawValue;

use crate::encoding::{Domain, EncodingError, Parts};
use crate::parse_error::ParseError;

/// The largest unit, in bytes of JSON.
pub const CONTENT_BYTES_MAX: usize = 1024 * 1024;

/// How deep arrays and objects may nest.
pub const CONTENT_DEPTH_MAX: usize = 128;

/// The largest power of ten in a number: wider than any number that a database column holds.
pub const EXPONENT_MAX: u64 = 131_072;

/// How much longer than its text the encoding of a unit usually is.
const ROOM: usize = 4;

/// The hash of a unit's content.
///
/// ```
/// use refrain_core::Fingerprint;
///
/// let first = Fingerprint::of_json(r#"{"id": 7, "total": 10.0}"#)?;
/// assert_eq!(first, Fingerprint::of_json(r#"{"total":1e1,"id":7}"#)?);
/// assert_ne!(first, Fingerprint::of_json(r#"{"id": "7", "total": 10.0}"#)?);
/// # Ok::<(), refrain_core::ContentError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

/// Why a unit has no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// It is too large.
    #[error(
        "the unit is {bytes} bytes long, the limit is {CONTENT_BYTES_MAX}: pass a reference, not the body"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// It cannot be read.
    #[error("the unit is not JSON: {0}")]
    NotJson(String),
    /// A string is not valid Unicode.
    #[error("a string of the unit holds half of a surrogate pair, such as \\ud83d alone")]
    HalfSurrogate,
    /// An object has a key twice, and parsers disagree on which one counts.
    #[error("the unit has the key `{key}` twice in one object: leave one of them out")]
    DuplicateKey {
        /// The key, shortened.
        key: String,
    },
    /// It nests too deep.
    #[error("the unit nests deeper than {CONTENT_DEPTH_MAX} levels: flatten it")]
    TooDeep,
    /// A number has an absurd exponent.
    #[error("the number {number} is out of range: powers of ten go up to {EXPONENT_MAX}")]
    Exponent {
        /// The number, shortened.
        number: String,
    },
    /// Fields were selected, but the unit is not an object.
    #[error("the unit is not an object, so it has no fields to choose from")]
    NotAnObject,
    /// The unit has none of the selected fields; most likely one is misspelt.
    #[error("the unit has none of the fields {wanted}; it has {present}")]
    NoField {
        /// The fields that were selected.
        wanted: String,
        /// The fields that the unit has, at most eight of them.
        present: String,
    },
    /// The parts are too long to encode.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
}

impl Fingerprint {
    /// The fingerprint of a whole unit.
    pub fn of_json(text: &str) -> Result<Self, ContentError> {
        let mut parts = Parts::with_room(ROOM * text.len());
        push_value(&mut parts, check(text)?, 0)?;
        Ok(Self(parts.sha256(Domain::Content)?))
    }

    /// The fingerprint of a unit narrowed to some of its top-level fields, in any order.
    ///
    /// A missing field counts as null, but if all of them are missing, that is an error. Fields that are not selected only
    /// have to be valid JSON.
    ///
    /// ```
    /// use refrain_core::Fingerprint;
    ///
    /// let unit = r#"{"id": 7, "total": 10, "fetched_at": "2026-06-09T02:00:07Z"}"#;
    /// let narrow = Fingerprint::of_fields(unit, &["id", "total"])?;
    /// assert_eq!(narrow, Fingerprint::of_json(r#"{"id": 7, "total": 10}"#)?);
    /// assert!(Fingerprint::of_fields(unit, &["ident", "totel"]).is_err());
    /// # Ok::<(), refrain_core::ContentError>(())
    /// ```
    pub fn of_fields(text: &str, fields: &[&str]) -> Result<Self, ContentError> {
        let members = members(text)?;
        let find = |field: &str| {
            let place = members.binary_search_by(|(key, _)| key.as_ref().cmp(field)).ok()?;
            members.get(place).map(|(_, value)| *value)
        };
        if fields.iter().all(|field| find(field).is_none()) {
            return Err(ContentError::NoField {
                wanted: listed(fields.iter().copied()),
                present: listed(members.iter().take(8).map(|(key, _)| key.as_ref())),
            });
        }
        let mut fields = fields.to_vec();
        fields.sort_unstable();
        fields.dedup();
        let chosen = fields.iter().map(|field| (Cow::Borrowed(*field), find(field).unwrap_or("null")));
        let mut parts = Parts::new();
        push_object(&mut parts, &chosen.collect::<Vec<_>>(), 1)?;
        Ok(Self(parts.sha256(Domain::Content)?))
    }

    /// The 32 bytes.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// The first eight bytes as a number, which is what a ledger stores. It is compared only with the one content recorded
    /// under the same key, so a change goes unnoticed once in 2⁶⁴, not once in many pairs.
    pub fn to_number(self) -> i64 {
        self.0.iter().take(8).fold(0, |number, byte| (number << 8) | i64::from(*byte))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl str::FromStr for Fingerprint {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = str::from_utf8(pair).unwrap_or_default();
            *byte = u8::from_str_radix(pair, 16).unwrap_or_default();
        }
        // A character that is not a digit became a zero, so the result prints differently from the text.
        let fingerprint = Self(bytes);
        if fingerprint.to_string().eq_ignore_ascii_case(text) {
            return Ok(fingerprint);
        }
        Err(ParseError::whole("fingerprint", text, "this is not 64 hexadecimal digits"))
    }
}

/// Checks that the text is JSON; after this, only escapes can fail.
fn check(text: &str) -> Result<&str, ContentError> {
    if text.len() > CONTENT_BYTES_MAX {
        return Err(ContentError::TooLarge { bytes: text.len() });
    }
    let unit: &RawValue =
        serde_json::from_str(text).map_err(|error| ContentError::NotJson(error.to_string()))?;
    Ok(unit.get())
}

fn push_value(parts: &mut Parts, value: &str, depth: usize) -> Result<(), ContentError> {
    match value.as_bytes().first() {
        Some(b'n' | b't' | b'f') => parts.push(Some(value))?,
        Some(b'"') => {
            parts.push(Some("string"))?;
            parts.push(Some(&unescaped(value)?))?;
        }
        Some(b'[' | b'{') if depth == CONTENT_DEPTH_MAX => return Err(ContentError::TooDeep),
        Some(b'[') => {
            let values: Vec<&str> = Values::within(value).collect();
            parts.push(Some("array"))?;
            parts.push(Some(&decimal(values.len())))?;
            for value in values {
                push_value(parts, value, depth + 1)?;
            }
        }
        Some(b'{') => push_object(parts, &members_of(value)?, depth + 1)?,
        _ => {
            parts.push(Some("number"))?;
            parts.push(Some(&canonical_number(value)?))?;
        }
    }
    Ok(())
}

fn push_object(parts: &mut Parts, members: &[Member<'_>], depth: usize) -> Result<(), ContentError> {
    parts.push(Some("object"))?;
    parts.push(Some(&decimal(members.len())))?;
    for (key, value) in members {
        parts.push(Some(key))?;
        push_value(parts, value, depth)?;
    }
    Ok(())
}

/// A key without its escapes, and its value in its original spelling.
pub type Member<'t> = (Cow<'t, str>, &'t str);

/// The members of an object in byte order of their keys, each value in its original spelling. The values only have to
/// be valid JSON.
///
/// ```
/// use refrain_core::content;
///
/// let members = content::members(r#"{"total": 10.00, "id": "INV-7"}"#)?;
/// assert_eq!(members, [("id".into(), r#""INV-7""#), ("total".into(), "10.00")]);
/// assert!(content::members("[]").is_err());
/// # Ok::<(), refrain_core::ContentError>(())
/// ```
pub fn members(text: &str) -> Result<Vec<Member<'_>>, ContentError> {
    let unit = check(text)?;
    if unit.starts_with('{') { members_of(unit) } else { Err(ContentError::NotAnObject) }
}

/// A string without quotes and escapes.
pub fn unquoted(string: &str) -> Result<Cow<'_, str>, ContentError> {
    unescaped(string)
}

/// The members of an object in byte order of their keys.
fn members_of(object: &str) -> Result<Vec<Member<'_>>, ContentError> {
    let mut members = Vec::new();
    let mut values = Values::within(object);
    while let (Some(key), Some(value)) = (values.next(), values.next()) {
        members.push((unescaped(key)?, value));
    }
    members.sort_unstable();
    let mut pairs = members.iter().zip(members.iter().skip(1));
    match pairs.find(|((key, _), (next, _))| key == next) {
        Some(((key, _), _)) => Err(ContentError::DuplicateKey { key: shortened(key) }),
        None => Ok(members),
    }
}

/// Iterates over the values inside the brackets of a checked array or object, in their original spelling; keys are
/// values, too.
struct Values<'t>(&'t str);

impl<'t> Values<'t> {
    fn within(brackets: &'t str) -> Self {
        Values(inside(brackets))
    }
}

impl<'t> Iterator for Values<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let is_between = |byte: &u8| matches!(byte, b',' | b':' | b' ' | b'\n' | b'\r' | b'\t');
        let start = self.0.as_bytes().iter().position(|byte| !is_between(byte))?;
        let (_, rest) = self.0.split_at_checked(start)?;
        let bytes = rest.as_bytes();
        let length = match bytes.first()? {
            b'"' => string_length(bytes),
            b'[' | b'{' => brackets_length(bytes),
            _ => bytes.iter().position(is_between).unwrap_or(bytes.len()),
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(value)
    }
}

/// The length of the string at the beginning, with its quotes.
fn string_length(bytes: &[u8]) -> usize {
    let mut length = 1;
    while let Some(rest) = bytes.get(length..) {
        match rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
            Some(plain) if rest.get(plain) == Some(&b'"') => return length + plain + 1,
            Some(plain) => length += plain + 2,
            None => break,
        }
    }
    bytes.len()
}

/// The length of the array or object at the beginning.
fn brackets_length(bytes: &[u8]) -> usize {
    let (mut length, mut depth) = (0, 0_usize);
    while let Some(byte) = bytes.get(length) {
        length += match byte {
            b'"' => string_length(bytes.get(length..).unwrap_or_default()),
            _ => 1,
        };
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' if depth == 1 => break,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    length
}

fn inside(text: &str) -> &str {
    text.get(1..text.len().saturating_sub(1)).unwrap_or_default()
}

fn unescaped(string: &str) -> Result<Cow<'_, str>, ContentError> {
    if string.contains('\\') {
        return serde_json::from_str(string).map(Cow::Owned).map_err(|_| ContentError::HalfSurrogate);
    }
    Ok(Cow::Borrowed(inside(string)))
}

/// The canonical text of a number: its significant digits and a power of ten.
fn canonical_number(text: &str) -> Result<String, ContentError> {
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |unsigned| ("-", unsigned));
    let (mantissa, power) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits =
        if fraction.is_empty() { Cow::Borrowed(whole) } else { Cow::Owned(format!("{whole}{fraction}")) };
    let trimmed = digits.trim_end_matches('0');
    let significant = trimmed.trim_start_matches('0');
    if significant.is_empty() {
        return Ok("0e0".to_owned());
    }
    let zeros = digits.len() - trimmed.len();
    let exponent = power_of_ten(power, zeros, fraction.len())
        .ok_or_else(|| ContentError::Exponent { number: shortened(text) })?;
    Ok([sign, significant, "e", &decimal(exponent)].concat())
}

/// A small number as decimal text without an allocation.
fn decimal<N: fmt::Display + Copy + TryInto<usize>>(number: N) -> Cow<'static, str> {
    let digit = number.try_into().ok().and_then(|digit| "0123456789".get(digit..=digit));
    digit.map_or_else(|| number.to_string().into(), Cow::Borrowed)
}

fn power_of_ten(written: &str, zeros: usize, decimals: usize) -> Option<i64> {
    let shift = i64::try_from(zeros).ok()?.checked_sub_unsigned(u64::try_from(decimals).ok()?)?;
    let exponent = written.parse::<i64>().ok()?.checked_add(shift)?;
    (exponent.unsigned_abs() <= EXPONENT_MAX).then_some(exponent)
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("`{}`", shortened(name))).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}

/// Data to show in an error: shortened and stripped of terminal escapes.
fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().nth(60).is_some() {
        shown.push('…');
    }
    shown
}
