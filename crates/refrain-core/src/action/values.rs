//! The values of a run that templates and statements may name.
//!
//! The names are `ds window_start window_end scope job version watermark cursor payload.*`, and for an action on a unit
//! the unit's other fields. There is no `now`, because a rerun next week must write the same rows. A name without a
//! value in a run (the payload lacks the field, a queued run has no window) is missing, not empty: an empty string
//! would silently mean something else.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// The names that templates and statements may use, besides the fields of the payload.
pub const NAMES: [&str; 9] =
    ["ds", "window_start", "window_end", "scope", "job", "version", "watermark", "cursor", PAYLOAD];

/// The name of the payload of a queued run; its fields are `payload.user_id` and so on.
pub const PAYLOAD: &str = "payload";

/// The values of one run.
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
    /// The start of the window, in RFC 3339 and UTC.
    pub window_start: Option<String>,
    /// The end of the window, in RFC 3339 and UTC.
    pub window_end: Option<String>,
    /// The scope.
    pub scope: Option<String>,
    /// The name of the job.
    pub job: Option<String>,
    /// The version of the job.
    pub version: Option<u32>,
    /// The position of the watermark: everything before it has been read.
    pub watermark: Option<String>,
    /// The position from which the source continues.
    pub cursor: Option<String>,
    /// The payload of a queued run.
    pub payload: Option<Value>,
    /// The unit as JSON: its fields have values under all other names. It stays the original text, so a number is never
    /// rounded on its way.
    pub unit: Option<String>,
}

impl Values {
    /// The value of a name as text: a JSON string without quotes, anything else as JSON. `null` counts as missing.
    pub fn text(&self, name: &str) -> Option<String> {
        self.of_the_run(name).or_else(|| {
            let json = self.json(name).filter(|json| json != "null")?;
            Some(if json.starts_with('"') { serde_json::from_str(&json).ok()? } else { json })
        })
    }

    /// The value of a name as JSON, with its original type.
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

    /// The part of the payload that a name such as `payload.user.id` selects.
    pub fn payload_at(&self, name: &str) -> Option<&Value> {
        let mut path = name.split('.');
        let payload = path.next().filter(|first| *first == PAYLOAD).and(self.payload.as_ref())?;
        path.try_fold(payload, |value, field| value.get(field))
    }

    /// The field of the unit that a name such as `customer.email` selects, in its original spelling.
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
    fn a_value_of_a_unit_keeps_its_spelling() {
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
