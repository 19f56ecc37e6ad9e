//! What a caller gives with a key: JSON of a bounded length, the same rule by whatever way it comes.

/// The longest payload.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// The deepest nesting: less than what readers of JSON give up at, so that whoever gets it can read it.
const DEPTH_MAX: usize = 100;

/// Why a text cannot be a payload; none if it can.
pub(crate) fn fault(payload: &str) -> Option<String> {
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Some(too_long(payload.len()));
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(payload) {
        Ok(_) if payload.contains('\0') => Some("it contains a NUL".to_owned()),
        Ok(_) if depth(payload) > DEPTH_MAX => Some(format!("it is nested more than {DEPTH_MAX} deep")),
        Ok(_) => None,
        Err(error) => Some(format!("it is no JSON: {error}")),
    }
}

pub(crate) fn too_long(bytes: usize) -> String {
    format!("it has {bytes} bytes; {PAYLOAD_BYTES_MAX} is the most")
}

/// How deep lists and tables stand in one another in a text that is JSON.
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
    fn brackets_in_texts_are_not_nested() {
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
