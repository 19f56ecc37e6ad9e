//! What a caller gives with a key: JSON of a bounded length, the same rule by whatever way it comes.

/// The longest payload.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// Why a text cannot be a payload; none if it can.
pub(crate) fn fault(payload: &str) -> Option<String> {
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Some(too_long(payload.len()));
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(payload) {
        Ok(_) if payload.contains('\0') => Some("it contains a NUL".to_owned()),
        Ok(_) => None,
        Err(error) => Some(format!("it is no JSON: {error}")),
    }
}

pub(crate) fn too_long(bytes: usize) -> String {
    format!("it has {bytes} bytes; {PAYLOAD_BYTES_MAX} is the most")
}
