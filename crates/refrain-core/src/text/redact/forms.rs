//! The byte sequences that reveal a secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::SHORTEST;

/// The shortest line of a secret that is searched for by itself. Shorter ones, such as `}` or `host: a`, occur in many
/// texts without a secret.
const SHORTEST_LINE: usize = 8;

/// One byte sequence to search for.
pub(super) struct SecretForm {
    pub(super) bytes: Vec<u8>,
    /// Whether it is base64 or hexadecimal: those may be broken into lines, and are written in two alphabets.
    pub(super) is_encoded: bool,
}

/// All forms of one secret.
///
/// Whitespace around the value is trimmed: a file that ends with a line break is printed without it, and the trimmed form
/// is also found inside the untrimmed one, in base64 too.
pub(super) fn of(secret: &[u8]) -> Vec<SecretForm> {
    let trimmed = secret.trim_ascii();
    let value = if trimmed.len() < SHORTEST { secret } else { trimmed };
    let mut forms = vec![plain(value.to_vec())];
    forms.extend(as_text(value));
    let lines = value.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    // The header and footer of a PEM file are the same in every such file, public ones included.
    let telling = lines.filter(|line| line.len() >= SHORTEST_LINE && !line.starts_with(b"-----"));
    if value.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
        forms.extend(telling.map(|line| plain(line.to_vec())));
    }
    forms.push(encoded(value.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()));
    forms.extend((0..3).filter_map(|before| base64_after(value, before)).map(encoded));
    forms
}

/// Bytes that are not valid UTF-8 are printed as replacement characters.
fn as_text(value: &[u8]) -> Option<SecretForm> {
    let text = String::from_utf8_lossy(value);
    let telling: usize = text.chars().filter(|c| *c != char::REPLACEMENT_CHARACTER).map(char::len_utf8).sum();
    let is_marked = text.contains(char::REPLACEMENT_CHARACTER);
    (is_marked && telling >= SHORTEST).then(|| plain(text.into_owned().into_bytes()))
}

/// A secret in base64 wherever it begins within a group of three bytes. The characters that hold bits of its
/// neighbours are left out.
fn base64_after(value: &[u8], before: usize) -> Option<Vec<u8>> {
    let padded = [&vec![0; before], value].concat();
    let (from, until) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
    let text = STANDARD_NO_PAD.encode(&padded);
    text.get(from..until).map(|text| text.as_bytes().to_vec())
}

fn plain(bytes: Vec<u8>) -> SecretForm {
    SecretForm { bytes, is_encoded: false }
}

fn encoded(bytes: Vec<u8>) -> SecretForm {
    SecretForm { bytes, is_encoded: true }
}
