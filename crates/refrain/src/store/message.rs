//! Texts that programs and receivers choose, as they are stored: of bounded length, and without what PostgreSQL cannot store.

/// The longest message that is stored, in bytes.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// A message as it is stored.
pub(crate) fn shortened(text: String) -> String {
    let mut text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    if text.len() > MESSAGE_BYTES_MAX {
        let mut end = MESSAGE_BYTES_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_cut_between_characters_and_has_no_nul() {
        assert_eq!(shortened("a\0b".to_owned()), "a\u{fffd}b");
        let long = shortened("ü".repeat(MESSAGE_BYTES_MAX));
        assert_eq!((long.len(), long.ends_with("ü…")), (MESSAGE_BYTES_MAX + "…".len(), true));
    }
}
