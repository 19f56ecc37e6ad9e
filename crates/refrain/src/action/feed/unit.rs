//! What a line of a source is: a unit, a cursor, or nothing that can be used, and then why.
//!
//! Values in, values out. Numbers are taken as they are written and never pass through a float: an id of 25 digits stays that
//! id. A line that is no unit says at which column it went wrong, because whoever reads that looks at a line of thousands.

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

/// The name of the only field of a line that ends a page.
pub(super) const CURSOR: &str = "$cursor";
/// The longest token of a source.
const TOKEN_BYTES_MAX: usize = 4_096;
/// Names of a run that are the same whenever it is done again; in a key, other names are fields.
const STABLE: [&str; 6] = ["ds", "window_start", "window_end", "scope", "job", "version"];

/// A unit as a line says it.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    pub(super) text: String,
    /// None if it was read back from the ledger, which keeps only the text.
    pub(super) read: Option<Read>,
}

/// What was read from the text of a unit.
#[derive(Debug, Clone)]
pub(super) struct Read {
    pub(super) key: Key,
    pub(super) fingerprint: Fingerprint,
    pub(super) order: Option<i64>,
    pub(super) time: Option<Timestamp>,
}

/// A line that says something.
#[derive(Debug)]
pub(super) enum Said {
    Unit(Unit),
    /// A page ends here.
    Cursor(String),
}

/// Why a line is no unit, and at which column.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) column: Option<usize>,
    pub(super) message: String,
}

/// How units are read from lines.
#[derive(Debug, Clone)]
pub(super) struct Shape {
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
            return Err(D::Error::custom("it is no object"));
        }
        Ok(Unit { text: text.get().to_owned(), read: None })
    }
}

impl Unit {
    pub(super) fn key(&self) -> &str {
        self.read.as_ref().map_or("", |read| read.key.as_str())
    }
}

impl Fault {
    fn of_line(message: impl Into<String>) -> Fault {
        Fault { column: None, message: message.into() }
    }

    /// About a value that is a part of this line.
    fn at(line: &str, value: &str, message: impl Into<String>) -> Fault {
        let offset = (value.as_ptr() as usize).checked_sub(line.as_ptr() as usize);
        let before = offset.and_then(|offset| line.get(..offset));
        Fault { column: before.map(|before| before.chars().count() + 1), message: message.into() }
    }

    /// About all of the line.
    fn of_content(line: &str, error: &ContentError) -> Fault {
        match error {
            ContentError::NotJson(_) => match serde_json::from_str::<&RawValue>(line) {
                Err(error) => {
                    let said = error.to_string();
                    let said = said.split(" at line ").next().unwrap_or_default();
                    Fault { column: Some(error.column()), message: format!("this is no JSON: {said}") }
                }
                Ok(_) => Fault::of_line(error.to_string()),
            },
            ContentError::NotAnObject => {
                Fault { column: Some(1), message: "this is no JSON object".to_owned() }
            }
            other => Fault::of_line(other.to_string()),
        }
    }
}

impl Shape {
    pub(super) fn of(feed: &Feed, values: &Values) -> Shape {
        Shape {
            key: feed.key.clone(),
            order: feed.order.clone(),
            time: feed.watermark.as_ref().map(|watermark| watermark.field.clone()),
            fields: feed.fields.clone(),
            values: values.clone(),
        }
    }

    /// Whether no field of a unit is a part of its key.
    pub(super) fn is_keyed_by_the_run(&self) -> bool {
        self.key.names().all(|name| STABLE.contains(&name) && self.values.text(name).is_some())
    }

    /// A unit that was kept, from its text.
    pub(super) fn unit(&self, text: &str) -> Option<Unit> {
        match self.read(text) {
            Ok(Said::Unit(unit)) => Some(unit),
            Ok(Said::Cursor(_)) | Err(_) => None,
        }
    }

    /// What a line says.
    pub(super) fn read(&self, line: &str) -> Result<Said, Fault> {
        let members = content::members(line).map_err(|error| Fault::of_content(line, &error))?;
        if let Some(token) = field(&members, CURSOR) {
            return cursor(line, token, members.len()).map(Said::Cursor);
        }
        let fingerprint = self.fingerprint(line).map_err(|error| Fault::of_content(line, &error))?;
        let key = self.key(line, &members, fingerprint)?;
        let order = self.order.as_deref().map(|path| {
            let value = present(&members, path, "`order`")?;
            order(value).ok_or_else(|| {
                Fault::at(line, value, format!("`{path}` is {value}: an order is an integer or a time"))
            })
        });
        let time = self.time.as_deref().map(|path| {
            let value = present(&members, path, "the watermark")?;
            moment(value).ok_or_else(|| {
                let told =
                    format!("`{path}` is {value}: write a time, as in 2026-06-09T12:00:00Z, or seconds");
                Fault::at(line, value, told)
            })
        });
        let read = Read { key, fingerprint, order: order.transpose()?, time: time.transpose()? };
        Ok(Said::Unit(Unit { text: line.to_owned(), read: Some(read) }))
    }

    /// The key of a unit that was kept.
    pub(super) fn key_of(&self, unit: &Unit) -> Result<Key, KeyError> {
        match &unit.read {
            Some(read) => Ok(read.key.clone()),
            None => match self.read(&unit.text) {
                Ok(Said::Unit(Unit { read: Some(read), .. })) => Ok(read.key),
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

    fn key(&self, line: &str, members: &[Member<'_>], fingerprint: Fingerprint) -> Result<Key, Fault> {
        let mut odd = None;
        let rendered = self.key.render(|name| {
            if name == CONTENT {
                return Some(fingerprint.to_string());
            }
            if STABLE.contains(&name)
                && let Some(text) = self.values.text(name)
            {
                return Some(text);
            }
            let value = within(members, name)?;
            part(value).or_else(|| {
                let told =
                    format!("`{name}` is {}: a key is made of texts, integers and booleans", brief(value));
                odd.get_or_insert(Fault::at(line, value, told));
                None
            })
        });
        rendered.map_err(|error| odd.unwrap_or_else(|| Fault::of_line(error.to_string())))
    }
}

/// A token that stands alone in its line.
fn cursor(line: &str, token: &str, fields: usize) -> Result<String, Fault> {
    let fault = |message: &str| Err(Fault::at(line, token, message));
    if fields > 1 {
        return fault("a cursor stands alone in its line");
    }
    match part(token) {
        None => fault("a cursor is a text"),
        Some(text) if text.is_empty() => fault("a cursor is not empty"),
        Some(text) if text.len() > TOKEN_BYTES_MAX || text.contains('\0') => {
            fault("a cursor has at most 4096 bytes, and no NUL")
        }
        Some(text) => Ok(text),
    }
}

fn field<'t>(members: &[Member<'t>], name: &str) -> Option<&'t str> {
    let place = members.binary_search_by(|(key, _)| key.as_ref().cmp(name)).ok()?;
    members.get(place).map(|(_, value)| *value)
}

/// The value at a path such as `customer.id`; none if it is not there, or null.
fn within<'t>(members: &[Member<'t>], path: &str) -> Option<&'t str> {
    let value = match path.split_once('.') {
        None => field(members, path)?,
        Some((first, rest)) => within(&content::members(field(members, first)?).ok()?, rest)?,
    };
    (value != "null").then_some(value)
}

fn present<'t>(members: &[Member<'t>], path: &str, whose: &str) -> Result<&'t str, Fault> {
    within(members, path)
        .ok_or_else(|| Fault::of_line(format!("there is no `{path}`, which is the field of {whose}")))
}

/// A value as a part of a key: a text, an integer or a boolean. A number with a fraction or an exponent has many spellings.
fn part(value: &str) -> Option<String> {
    match value.as_bytes().first()? {
        b'"' => content::unquoted(value).ok().map(std::borrow::Cow::into_owned),
        b'{' | b'[' | b'n' => None,
        b't' | b'f' => Some(value.to_owned()),
        _ if value.contains(['.', 'e', 'E']) => None,
        _ => Some(value.to_owned()),
    }
}

/// An integer as it is, or a time in microseconds.
fn order(value: &str) -> Option<i64> {
    let text = part(value)?;
    text.parse().ok().or_else(|| civil_or_instant(&text).map(Timestamp::as_microsecond))
}

/// A time: RFC 3339, without a zone in UTC, a date, or seconds since 1970.
fn moment(value: &str) -> Option<Timestamp> {
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
    // A zone in brackets has to agree with the offset before it. Without an offset the time may come twice or never in
    // that zone, and taken without the zone it would be another one.
    if text.contains('[') {
        return instant.and(text.parse::<Zoned>().ok()).map(|zoned| zoned.timestamp());
    }
    if instant.is_some() {
        return instant;
    }
    let civil: DateTime = text.parse().ok()?;
    civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// The beginning of a value, for people.
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
