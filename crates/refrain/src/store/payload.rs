//! The payload that a caller enqueues with a key: JSON of bounded length, by the same rule on every path.

use serde::Serialize;

/// The most bytes of a payload.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// The deepest nesting: less than the limit of common JSON parsers, so that every job can read its payload.
const DEPTH_MAX: usize = 100;

/// Why a text is not a valid payload; none if it is.
pub(crate) fn fault(payload: &str) -> Option<String> {
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Some(too_long(payload.len()));
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(payload) {
        Ok(_) if payload.contains('\0') => Some("it contains a NUL".to_owned()),
        Ok(_) if depth(payload) > DEPTH_MAX => {
            Some(format!("it is nested more than {DEPTH_MAX} levels deep"))
        }
        Ok(_) => None,
        Err(error) => Some(format!("it is not valid JSON: {error}")),
    }
}

/// A value as the text of a payload, or why it cannot be one; `null` means none.
pub(crate) fn json_of(payload: &impl Serialize) -> Result<Option<String>, String> {
    let text = serde_json::to_string(payload).map_err(|error| format!("it is not valid JSON: {error}"))?;
    match fault(&text) {
        Some(reason) => Err(reason),
        None => Ok((text != "null").then_some(text)),
    }
}

pub(crate) fn too_long(bytes: usize) -> String {
    format!("it has {bytes} bytes; the maximum is {PAYLOAD_BYTES_MAX}")
}

/// How deep arrays and objects are nested in a JSON text.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_do_not_count_as_nesting() {
        for (json, expected) in [
            ("7", 0),
            ("[]", 1),
            (r#"{"a": [1, {"b": 2}], "c": []}"#, 3),
            (r#"{"a": "[[[\"[[["}"#, 1),
            (r#"["\\", [1]]"#, 2),
        ] {
            assert_eq!(depth(json), expected, "{json}");
        }
    }
}
