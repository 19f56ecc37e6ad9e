//! What a terminal or a shell makes of text from outside.
//!
//! One place for both, so that the library and every command agree: such text does not move the cursor, set a title,
//! reverse the direction of what follows or hide characters; and a name in a hint is one word to a shell.

use std::fmt::Write as _;

/// Whether a terminal would act on the character instead of showing it.
pub fn acts(letter: char) -> bool {
    letter.is_control() || disguises(letter)
}

/// Whether the character makes a name look like another one: it changes the text direction, breaks the line without being
/// a line end, or is invisible. Joiners are kept, because many languages need them.
pub fn disguises(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Text that is safe for a terminal, with its line breaks: control characters are replaced by a mark, disguising
/// characters by their number.
///
/// ```
/// use refrain_core::terminal::harmless;
///
/// assert_eq!(harmless("a\u{1b}[2J\nb\u{202e}c\u{200b}"), "a\u{fffd}[2J\nb<U+202E>c<U+200B>");
/// ```
pub fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            letter if disguises(letter) => {
                let _ = write!(shown, "<U+{:04X}>", u32::from(letter));
            }
            letter if letter.is_control() => shown.push(char::REPLACEMENT_CHARACTER),
            letter => shown.push(letter),
        }
    }
    shown
}

/// A word as it is typed into a shell: quoted if the shell would interpret it.
///
/// ```
/// use refrain_core::terminal::typed;
///
/// assert_eq!(typed("export@2026-06-09"), "export@2026-06-09");
/// assert_eq!(typed("it's $(x)"), r"'it'\''s $(x)'");
/// ```
pub fn typed(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_@#/:.+,=%".contains(letter);
    if !word.is_empty() && !word.starts_with(['-', '#']) && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_text_does_not_move_the_cursor() {
        assert_eq!(harmless("a\tb\n\u{1b}[2Jc\rd\u{9b}e\u{202e}f\u{7}ü"), "a\tb\n�[2Jc�d�e<U+202E>f�ü");
    }
}
