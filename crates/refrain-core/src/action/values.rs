//! What a run is about, as values that templates and statements name.
//!
//! These names are all there are: `ds window_start window_end scope job version watermark cursor payload.*`, and where
//! something is done with a unit, its fields: those of another name. There is no `now`, because a rerun next week must
//! write the same rows. A name that has no value in a run (a payload that lacks the field, a window in a queued run) is
//! missing, not empty: an empty text would quietly mean something else.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// The names that a run's templates and statements may use, besides the fields of its payload.
pub const NAMES: [&str; 9] =
    ["ds", "window_start", "window_end", "scope", "job", "version", "watermark", "cursor", PAYLOAD];

/// The name of what a queued run was given; its fields are `payload.user_id` and so on.
pub const PAYLOAD: &str = "payload";

/// What a run is about.
///
/// ```
/// use refrain_core::Values;
/// use serde_json::json;
///
/// let values = Values { payload: Some(json!({"user": {"id": 42}})), ..Values::default() };
/// assert_eq!(values.text("payload.user.id").as_deref(), Some("42"));
/// assert_eq!(values.text("payload.user.name"), None);
/// assert_eq!(values.text("now"), None);
///
/// let unit = r#"{"id": 70.10, "to": {"name": "Ada"}, "scope": "x"}"#;
/// let values = Values { unit: Some(unit.to_owned()), ..Values::default() };
/// assert_eq!(values.text("to.name").as_deref(), Some("Ada"));
/// assert_eq!(values.text("id").as_deref(), Some("70.10"));
/// assert_eq!(values.text("scope"), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Values {
    /// The date on which the window starts, in the job's zone: `2026-06-09`.
    pub ds: Option<String>,
    /// Where the window starts, in RFC 3339 and UTC.
    pub window_start: Option<String>,
    /// Where the window ends, in RFC 3339 and UTC.
    pub window_end: Option<String>,
    /// Which part of the world.
    pub scope: Option<String>,
    /// The job.
    pub job: Option<String>,
    /// The version of its logic.
    pub version: Option<u32>,
    /// Up to when everything has been seen.
    pub watermark: Option<String>,
    /// Where the source is to go on.
    pub cursor: Option<String>,
    /// What a queued run was given.
    pub payload: Option<Value>,
    /// The unit that something is done with, in JSON: its fields have values under every other name. It stays the text that
    /// it came as, so that a number is never rounded on its way.
    pub unit: Option<String>,
}

impl Values {
    /// The value of a name as text: a text as it is, anything else as JSON. `null` is no value.
    pub fn text(&self, name: &str) -> Option<String> {
        self.of_the_run(name).or_else(|| {
            let json = self.json(name).filter(|json| json != "null")?;
            Some(if json.starts_with('"') { serde_json::from_str(&json).ok()? } else { json })
        })
    }

    /// The value of a name as JSON, of the type that it has.
    pub fn json(&self, name: &str) -> Option<String> {
        if name == "version" {
            return self.version.map(|version| version.to_string());
        }
        match self.of_the_run(name) {
            Some(text) => Some(Value::from(text).to_string()),
            None => self.payload_at(name).map(Value::to_string).or_else(|| self.unit_at(name)),
        }
    }

    fn of_the_run(&self, name: &str) -> Option<String> {
        match name {
            "ds" => self.ds.clone(),
            "window_start" => self.window_start.clone(),
            "window_end" => self.window_end.clone(),
            "scope" => self.scope.clone(),
            "job" => self.job.clone(),
            "version" => self.version.map(|version| version.to_string()),
            "watermark" => self.watermark.clone(),
            "cursor" => self.cursor.clone(),
            _ => None,
        }
    }

    /// The part of the payload that a name such as `payload.user.id` means.
    pub fn payload_at(&self, name: &str) -> Option<&Value> {
        let mut path = name.split('.');
        let payload = path.next().filter(|first| *first == PAYLOAD).and(self.payload.as_ref())?;
        path.try_fold(payload, |value, field| value.get(field))
    }

    /// The field of the unit that a name such as `customer.email` means, as it is written.
    fn unit_at(&self, name: &str) -> Option<String> {
        let is_taken = NAMES.contains(&name.split('.').next().unwrap_or(name));
        let unit = self.unit.as_deref().filter(|_| !is_taken)?;
        let found = name.split('.').try_fold(unit, |json, field| {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
            fields.get(field).map(|value| value.get())
        });
        found.map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_unit_stays_as_it_is_written() {
        let text = r#"{"id": 12345678901234567890123, "total": 10.00, "to": {"n": 7, "\u0061": "\u00fc"}, "no": null}"#;
        let values =
            Values { unit: Some(text.to_owned()), ds: Some("2026-06-09".to_owned()), ..Values::default() };
        for (name, as_text, as_json) in [
            ("id", Some("12345678901234567890123"), Some("12345678901234567890123")),
            ("total", Some("10.00"), Some("10.00")),
            ("to.n", Some("7"), Some("7")),
            ("to.a", Some("ü"), Some(r#""\u00fc""#)),
            ("no", None, Some("null")),
            ("gone", None, None),
            ("total.gone", None, None),
            ("ds", Some("2026-06-09"), Some(r#""2026-06-09""#)),
        ] {
            assert_eq!(
                (values.text(name).as_deref(), values.json(name).as_deref()),
                (as_text, as_json),
                "{name}"
            );
        }
    }
}
