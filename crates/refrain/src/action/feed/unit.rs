//! Reads a line of a source: a unit, a cursor, or an error that names the column.
//!
//! Pure. Numbers are taken as they are written and never pass through a float, so an id of 25 digits stays intact.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use refrain_core::content::{self, Member};
use refrain_core::feed::Feed;
use refrain_core::key::template::CONTENT;
use refrain_core::{ContentError, Fingerprint, Key, KeyError, KeyTemplate, Values};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The only field of a line that holds a cursor.
pub(super) const CURSOR: &str = "$cursor";
/// The longest cursor.
const CURSOR_BYTES_MAX: usize = 4_096;
/// Names of values that every attempt of a run shares. In a key, all other names are fields of the unit.
const STABLE_NAMES: [&str; 6] = ["ds", "window_start", "window_end", "scope", "job", "version"];

/// A unit, as the JSON object of its line.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    pub(super) text: String,
    /// None if the unit comes from the ledger, which keeps only the text.
    pub(super) parsed: Option<ParsedUnit>,
}

/// What Refrain needs to know of a unit.
#[derive(Debug, Clone)]
pub(super) struct ParsedUnit {
    pub(super) key: Key,
    pub(super) fingerprint: Fingerprint,
    pub(super) order: Option<i64>,
    pub(super) time: Option<Timestamp>,
}

/// The content of a well-formed line.
#[derive(Debug)]
pub(super) enum LineContent {
    Unit(Unit),
    /// The position after the lines so far.
    Cursor(String),
}

/// Why a line is malformed, and at which column.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineError {
    pub(super) column: Option<usize>,
    pub(super) message: String,
}

/// Reads lines as units of one job and run.
#[derive(Debug, Clone)]
pub(super) struct UnitReader {
    key: KeyTemplate,
    order: Option<String>,
    time: Option<String>,
    fields: Option<Vec<String>>,
    values: Values,
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text: &RawValue = serde_json::from_str(&self.text).map_err(serde::ser::Error::custom)?;
        text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Unit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        if !text.get().starts_with('{') {
            return Err(D::Error::custom("it is not a JSON object"));
        }
        Ok(Unit { text: text.get().to_owned(), parsed: None })
    }
}

impl Unit {
    pub(super) fn key(&self) -> &str {
        self.parsed.as_ref().map_or("", |parsed| parsed.key.as_str())
    }
}

impl LineError {
    fn of_line(message: impl Into<String>) -> LineError {
        LineError { column: None, message: message.into() }
    }

    /// An error about a value that is a slice of this line.
    fn at(line: &str, value: &str, message: impl Into<String>) -> LineError {
        let offset = (value.as_ptr() as usize).checked_sub(line.as_ptr() as usize);
        let before = offset.and_then(|offset| line.get(..offset));
        LineError { column: before.map(|before| before.chars().count() + 1), message: message.into() }
    }

    /// An error about the whole line.
    fn of_content(line: &str, error: &ContentError) -> LineError {
        match error {
            ContentError::NotJson(_) => match serde_json::from_str::<&RawValue>(line) {
                Err(error) => {
                    let said = error.to_string();
                    let said = said.split(" at line ").next().unwrap_or_default();
                    LineError { column: Some(error.column()), message: format!("not valid JSON: {said}") }
                }
                Ok(_) => LineError::of_line(error.to_string()),
            },
            ContentError::NotAnObject => {
                LineError { column: Some(1), message: "not a JSON object".to_owned() }
            }
            other => LineError::of_line(other.to_string()),
        }
    }
}

impl UnitReader {
    pub(super) fn of(feed: &Feed, values: &Values) -> UnitReader {
        UnitReader {
            key: feed.key.clone(),
            order: feed.order.clone(),
            time: feed.watermark.as_ref().map(|watermark| watermark.field.clone()),
            fields: feed.fields.clone(),
            values: values.clone(),
        }
    }

    /// Whether the key contains no field of a unit.
    pub(super) fn is_keyed_by_the_run(&self) -> bool {
        self.key.names().all(|name| STABLE_NAMES.contains(&name) && self.values.text(name).is_some())
    }

    /// A stored unit, from its text.
    pub(super) fn unit(&self, text: &str) -> Option<Unit> {
        match self.read(text) {
            Ok(LineContent::Unit(unit)) => Some(unit),
            Ok(LineContent::Cursor(_)) | Err(_) => None,
        }
    }

    /// Reads one line.
    pub(super) fn read(&self, line: &str) -> Result<LineContent, LineError> {
        let members = content::members(line).map_err(|error| LineError::of_content(line, &error))?;
        if let Some(value) = field(&members, CURSOR) {
            return cursor(line, value, members.len()).map(LineContent::Cursor);
        }
        let fingerprint = self.fingerprint(line).map_err(|error| LineError::of_content(line, &error))?;
        let key = self.key(line, &members, fingerprint)?;
        let order = self.order.as_deref().map(|path| {
            let value = present(&members, path, "`order`")?;
            order(value).ok_or_else(|| {
                LineError::at(
                    line,
                    value,
                    format!("`{path}` is {value}: `order` must be an integer or a timestamp"),
                )
            })
        });
        let time = self.time.as_deref().map(|path| {
            let value = present(&members, path, "the watermark")?;
            timestamp(value).ok_or_else(|| {
                let message = format!(
                    "`{path}` is {value}: expected a timestamp such as 2026-06-09T12:00:00Z, or seconds"
                );
                LineError::at(line, value, message)
            })
        });
        let parsed = ParsedUnit { key, fingerprint, order: order.transpose()?, time: time.transpose()? };
        Ok(LineContent::Unit(Unit { text: line.to_owned(), parsed: Some(parsed) }))
    }

    /// The key of a unit, which is read from its text if the unit was stored.
    pub(super) fn key_of(&self, unit: &Unit) -> Result<Key, KeyError> {
        match &unit.parsed {
            Some(parsed) => Ok(parsed.key.clone()),
            None => match self.read(&unit.text) {
                Ok(LineContent::Unit(Unit { parsed: Some(parsed), .. })) => Ok(parsed.key),
                _ => Err(KeyError::Missing { field: self.key.to_string() }),
            },
        }
    }

    fn fingerprint(&self, line: &str) -> Result<Fingerprint, ContentError> {
        match &self.fields {
            None => Fingerprint::of_json(line),
            Some(fields) => {
                let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
                Fingerprint::of_fields(line, &fields)
            }
        }
    }

    fn key(&self, line: &str, members: &[Member<'_>], fingerprint: Fingerprint) -> Result<Key, LineError> {
        let mut error = None;
        let rendered = self.key.render(|name| {
            if name == CONTENT {
                return Some(fingerprint.to_string());
            }
            if STABLE_NAMES.contains(&name)
                && let Some(text) = self.values.text(name)
            {
                return Some(text);
            }
            let value = within(members, name)?;
            part(value).or_else(|| {
                let message =
                    format!("`{name}` is {}: a key part is a string, an integer or a boolean", brief(value));
                error.get_or_insert(LineError::at(line, value, message));
                None
            })
        });
        rendered.map_err(|unrendered| error.unwrap_or_else(|| LineError::of_line(unrendered.to_string())))
    }
}

/// The cursor of a line that has no other field.
fn cursor(line: &str, value: &str, fields: usize) -> Result<String, LineError> {
    let fault = |message: &str| Err(LineError::at(line, value, message));
    if fields > 1 {
        return fault("a line with a cursor has no other field");
    }
    match part(value) {
        None => fault("a cursor must be a string"),
        Some(text) if text.is_empty() => fault("a cursor must not be empty"),
        Some(text) if text.len() > CURSOR_BYTES_MAX || text.contains('\0') => {
            fault("a cursor must have at most 4096 bytes and no NUL")
        }
        Some(text) => Ok(text),
    }
}

fn field<'t>(members: &[Member<'t>], name: &str) -> Option<&'t str> {
    let place = members.binary_search_by(|(key, _)| key.as_ref().cmp(name)).ok()?;
    members.get(place).map(|(_, value)| *value)
}

/// The value at a path such as `customer.id`; none if it is missing or null.
fn within<'t>(members: &[Member<'t>], path: &str) -> Option<&'t str> {
    let value = match path.split_once('.') {
        None => field(members, path)?,
        Some((first, rest)) => within(&content::members(field(members, first)?).ok()?, rest)?,
    };
    (value != "null").then_some(value)
}

fn present<'t>(members: &[Member<'t>], path: &str, whose: &str) -> Result<&'t str, LineError> {
    within(members, path)
        .ok_or_else(|| LineError::of_line(format!("the field `{path}` of {whose} is missing")))
}

/// A value as a part of a key: a string, an integer or a boolean. Not a number with a fraction or an exponent, because it has
/// many spellings.
fn part(value: &str) -> Option<String> {
    match value.as_bytes().first()? {
        b'"' => content::unquoted(value).ok().map(std::borrow::Cow::into_owned),
        b'{' | b'[' | b'n' => None,
        b't' | b'f' => Some(value.to_owned()),
        _ if value.contains(['.', 'e', 'E']) => None,
        _ => Some(value.to_owned()),
    }
}

/// An integer, or a timestamp in microseconds.
fn order(value: &str) -> Option<i64> {
    let text = part(value)?;
    text.parse().ok().or_else(|| civil_or_instant(&text).map(Timestamp::as_microsecond))
}

/// A timestamp: RFC 3339 (UTC if it has no zone), a date, or seconds since 1970.
fn timestamp(value: &str) -> Option<Timestamp> {
    if value.starts_with('"') {
        let text = content::unquoted(value).ok()?;
        return civil_or_instant(&text);
    }
    let (seconds, fraction) = value.split_once('.').unwrap_or((value, ""));
    let is_digits = fraction.bytes().all(|byte| byte.is_ascii_digit());
    let whole: i64 = seconds.parse().ok().filter(|_| is_digits)?;
    let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let micros = if seconds.starts_with('-') { -micros } else { micros };
    Timestamp::from_microsecond(whole.checked_mul(1_000_000)?.checked_add(micros)?).ok()
}

fn civil_or_instant(text: &str) -> Option<Timestamp> {
    let instant: Option<Timestamp> = text.parse().ok();
    // A zone in brackets must agree with the offset before it. Without an offset the local time may be ambiguous or missing
    // in that zone, and without the zone it would be another instant.
    if text.contains('[') {
        return instant.and(text.parse::<Zoned>().ok()).map(|zoned| zoned.timestamp());
    }
    if instant.is_some() {
        return instant;
    }
    let civil: DateTime = text.parse().ok()?;
    civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// The beginning of a value, to show in a message.
pub(super) fn brief(value: &str) -> String {
    const SHOWN: usize = 40;
    match value.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", value.get(..end).unwrap_or_default()),
        None => value.to_owned(),
    }
}

#[cfg(test)]
#[path = "unit/tests.rs"]
mod tests;
