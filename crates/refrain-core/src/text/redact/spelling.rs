//! The spellings of bytes: literal, percent-encoded, and with the escapes of JSON, HTML, Python and shells; the first two
//! also twice.

/// The length of the longest spelling: two surrogates in JSON inside JSON.
pub(super) const LONGEST: usize = 14;

/// The meaning of a few bytes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    /// How many bytes of the text.
    pub(super) length: usize,
    letters: [u8; 4],
    count: usize,
    /// Whether it is another alphabet of base64 or hexadecimal, and meaningless elsewhere.
    pub(super) is_alphabet: bool,
}

impl Spelling {
    fn of(length: usize, bytes: &[u8]) -> Spelling {
        let mut letters = [0; 4];
        for (letter, byte) in letters.iter_mut().zip(bytes) {
            *letter = *byte;
        }
        Spelling { length, letters, count: bytes.len().min(4), is_alphabet: false }
    }

    fn of_character(length: usize, character: char) -> Spelling {
        Spelling::of(length, character.encode_utf8(&mut [0; 4]).as_bytes())
    }

    /// The bytes that it stands for.
    pub(super) fn letters(&self) -> &[u8] {
        self.letters.get(..self.count).unwrap_or_default()
    }
}

/// The text ends in the middle of a possible spelling.
#[derive(Debug)]
pub(super) struct Cut;

const FIXED: [(&str, u8); 26] = [
    ("+", b' '),
    ("\\n", b'\n'),
    ("\\\\n", b'\n'),
    ("\\r", b'\r'),
    ("\\\\r", b'\r'),
    ("\\t", b'\t'),
    ("\\\\t", b'\t'),
    ("\\b", 8),
    ("\\\\b", 8),
    ("\\f", 12),
    ("\\\\f", 12),
    ("\\/", b'/'),
    ("\\\\/", b'/'),
    ("\\\"", b'"'),
    ("\\\\\\\"", b'"'),
    ("\\\\", b'\\'),
    ("\\\\\\\\", b'\\'),
    ("\\'", b'\''),
    ("\\\\'", b'\''),
    ("'\\''", b'\''),
    ("&amp;", b'&'),
    ("&lt;", b'<'),
    ("&gt;", b'>'),
    ("&quot;", b'"'),
    ("&apos;", b'\''),
    ("&nbsp;", b' '),
];

/// Bytes as two hexadecimal digits.
const BYTES: [&str; 4] = ["%", "%25", "\\x", "\\\\x"];
/// Units of UTF-16 as four.
const UNITS: [&str; 2] = ["\\u", "\\\\u"];
/// Characters as eight.
const CHARACTERS: [&str; 2] = ["\\U", "\\\\U"];
/// Characters as a number that ends with a semicolon.
const NUMBERS: [(&str, u32); 3] = [("&#", 10), ("&#x", 16), ("&#X", 16)];
const NUMBER_DIGITS_MAX: usize = 8;

/// Whether a byte stands for itself only, whatever follows.
pub(super) fn has_one_spelling(first: u8) -> bool {
    !matches!(first, b'-' | b'_' | b'A'..=b'F' | b'%' | b'\\' | b'&' | b'\'' | b'+')
}

/// All meanings of the beginning of a text. If more text follows, they may depend on it.
pub(super) fn spellings(text: &[u8], is_whole: bool) -> Result<Vec<Spelling>, Cut> {
    let Some(first) = text.first() else { return Ok(Vec::new()) };
    let mut found = vec![Spelling::of(1, &[*first])];
    let other = match first {
        b'-' => b'+',
        b'_' => b'/',
        b'A'..=b'F' => first.to_ascii_lowercase(),
        b'%' | b'\\' | b'&' | b'\'' | b'+' => {
            return match escapes(text, &mut found) {
                Err(Cut) if !is_whole => Err(Cut),
                _ => Ok(found),
            };
        }
        _ => return Ok(found),
    };
    found.push(Spelling { is_alphabet: true, ..Spelling::of(1, &[other]) });
    Ok(found)
}

/// An incomplete spelling does not stop the others: at the end of a text it is not one.
fn escapes(text: &[u8], found: &mut Vec<Spelling>) -> Result<(), Cut> {
    let mut is_cut = false;
    let mut take = |spelling: Result<Option<Spelling>, Cut>| match spelling {
        Ok(spelling) => found.extend(spelling),
        Err(Cut) => is_cut = true,
    };
    for (written, byte) in FIXED {
        take(after(text, written).map(|rest| rest.map(|_| Spelling::of(written.len(), &[byte]))));
    }
    for sign in BYTES {
        let value = number(text, sign, 2);
        let byte = value.map(|value| value.and_then(|value| u8::try_from(value).ok()));
        let length = sign.len() + 2;
        if let Ok(Some(byte @ 128..)) = byte {
            take(Ok(Some(Spelling::of_character(length, char::from(byte)))));
        }
        take(byte.map(|byte| byte.map(|byte| Spelling::of(length, &[byte]))));
    }
    for sign in UNITS {
        take(of_units(text, sign));
    }
    for sign in CHARACTERS {
        let character = number(text, sign, 8).map(|value| value.and_then(char::from_u32));
        take(character.map(|found| found.map(|found| Spelling::of_character(sign.len() + 8, found))));
    }
    for (sign, radix) in NUMBERS {
        take(of_number(text, sign, radix));
    }
    if is_cut { Err(Cut) } else { Ok(()) }
}

/// What follows a prefix, if the text begins with it.
fn after<'t>(text: &'t [u8], sign: &str) -> Result<Option<&'t [u8]>, Cut> {
    match text.strip_prefix(sign.as_bytes()) {
        None if sign.as_bytes().starts_with(text) => Err(Cut),
        rest => Ok(rest),
    }
}

/// The number that a prefix and so many hexadecimal digits stand for.
fn number(text: &[u8], sign: &str, digits: usize) -> Result<Option<u32>, Cut> {
    let Some(rest) = after(text, sign)? else { return Ok(None) };
    let there = rest.get(..digits).unwrap_or(rest);
    if !there.iter().all(u8::is_ascii_hexdigit) {
        return Ok(None);
    }
    if there.len() < digits {
        return Err(Cut);
    }
    Ok(str::from_utf8(there).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok()))
}

fn of_units(text: &[u8], sign: &str) -> Result<Option<Spelling>, Cut> {
    let length = sign.len() + 4;
    let Some(unit) = number(text, sign, 4)? else { return Ok(None) };
    if let Some(character) = char::from_u32(unit) {
        return Ok(Some(Spelling::of_character(length, character)));
    }
    let Some(other) = number(text.get(length..).unwrap_or_default(), sign, 4)? else { return Ok(None) };
    let units = [unit, other].map(|unit| u16::try_from(unit).unwrap_or_default());
    let character = char::decode_utf16(units).next().and_then(Result::ok);
    Ok(character.map(|character| Spelling::of_character(2 * length, character)))
}

fn of_number(text: &[u8], sign: &str, radix: u32) -> Result<Option<Spelling>, Cut> {
    let Some(rest) = after(text, sign)? else { return Ok(None) };
    let is_digit = |byte: &u8| char::from(*byte).is_digit(radix);
    let digits = rest.iter().take(NUMBER_DIGITS_MAX + 1).take_while(|byte| is_digit(byte)).count();
    match rest.get(digits) {
        _ if digits > NUMBER_DIGITS_MAX => Ok(None),
        None => Err(Cut),
        Some(b';') => {
            let digits = rest.get(..digits).and_then(|digits| str::from_utf8(digits).ok());
            let character = digits.and_then(|digits| u32::from_str_radix(digits, radix).ok());
            let length = sign.len() + digits.map_or(0, str::len) + 1;
            let character = character.and_then(char::from_u32);
            Ok(character.map(|character| Spelling::of_character(length, character)))
        }
        Some(_) => Ok(None),
    }
}
