//! What a terminal, or a person who copies a line into a shell, makes of a text that came from somewhere else.
//!
//! One place for both, so that the library and every command agree: a text moves no cursor, sets no title, does not
//! turn the direction of what follows and hides no letters; a name in a hint is one word to a shell.

use std::fmt::Write as _;

/// Whether a terminal would act on it instead of showing it.
pub fn acts(letter: char) -> bool {
    letter.is_control() || disguises(letter)
}

/// Whether it makes a name look like another one: it turns the direction of the text around it, ends a line although it is
/// no line end, or is not seen at all. Joiners are left, which many languages write with.
pub fn disguises(letter: char) -> bool {
    matches!(letter,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A text as a terminal may get it, on as many lines as it has: a control character is a mark, a letter that disguises
/// others is written as its number.
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

/// A word as it is typed into a shell: in quotes where a shell would read it otherwise.
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
