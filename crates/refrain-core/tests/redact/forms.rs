//! Secrets that are printed in another form: trimmed, line by line, wrapped, escaped, as bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use refrain_core::redact::{HIDDEN, Redactor, Secret};

const KEY: &str = "-----BEGIN PRIVATE KEY-----\n\
    MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n\
    MzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu\n\
    NMoSfm76oqFvAp8Gy0iz5sxjZmSnXyCdPEovGhLa0VzMaQ8s+CLOyS56YyCFGeJZ\n\
    -----END PRIVATE KEY-----\n";

fn shown(secret: impl Into<Vec<u8>>, text: &str) -> String {
    Redactor::new(&[Secret::new(secret)]).redact(text).into_owned()
}

/// Checks that no part of a line of the key is left.
#[track_caller]
fn reveals_nothing(shown: &str) {
    let body: Vec<&str> = KEY.lines().filter(|line| !line.starts_with("-----")).collect();
    for line in body {
        for start in 0..line.len() - 8 {
            assert!(!shown.contains(&line[start..start + 8]), "{} in {shown}", &line[start..start + 8]);
        }
    }
}

fn wrapped(text: &str, width: usize, between: &str) -> String {
    let lines: Vec<&str> = text.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
    lines.join(between)
}

#[test]
fn s19_a_value_with_blanks_around_it_is_hidden_without_them() {
    assert_eq!(shown("tok-123456\n", "token=tok-123456;"), format!("token={HIDDEN};"));
    assert_eq!(shown("  tok-123456\r\n", "tok-123456"), HIDDEN);
    assert!(shown("tok-123456\n", &STANDARD.encode("tok-123456")).starts_with(HIDDEN));
    assert!(
        shown(" ab ", "x ab y").contains(HIDDEN),
        "what is short without blanks is searched for with them"
    );
}

#[test]
fn s19_the_lines_of_a_secret_are_hidden_one_by_one() {
    for text in [
        KEY.to_owned(),
        KEY.replace('\n', "\r\n"),
        KEY.replace('\n', "\n    "),
        KEY.lines().nth(2).unwrap().to_owned(),
        KEY.replace('\n', "\\n"),
        KEY.lines().rev().collect::<Vec<_>>().join(" "),
    ] {
        reveals_nothing(&shown(KEY, &text));
        reveals_nothing(&shown(KEY.replace('\n', "\r\n"), &text));
    }
    let certificate = "-----BEGIN CERTIFICATE-----\nabc\n";
    let secret = KEY.replace("PRIVATE KEY", "CERTIFICATE");
    assert_eq!(shown(secret, certificate), certificate, "the header and footer of a key are not secret");
    let object = "{\n  \"k\": 1,\n  \"password\": \"hunter2-hunter2\"\n}";
    assert_eq!(shown(object, "}\n\"k\": 1,\n"), "}\n\"k\": 1,\n", "short lines stand everywhere");
    assert_eq!(shown(object, r#""password": "hunter2-hunter2""#), HIDDEN);
}

#[test]
fn s19_base64_and_hexadecimal_are_hidden_across_lines() {
    let secret = "a-secret-of-sixty-bytes-or-so-which-does-not-fit-into-one-line!";
    for before in ["", "x", "xy", "user:", "a longer text that stands before it, of any length"] {
        let plain = format!("{before}{secret} and after");
        let base64 = STANDARD.encode(&plain);
        let hexadecimal: String =
            plain.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
        for (width, between) in [(76, "\n"), (64, "\n"), (64, "\r\n"), (60, "\n    "), (20, "\\n"), (5, "\n")]
        {
            for text in [&base64, &hexadecimal, &hexadecimal.to_uppercase()] {
                let shown = shown(secret, &wrapped(text, width, between));
                let left = shown.replace(between, "");
                let most =
                    left.split(HIDDEN).map(|piece| longest_shared(piece, text, before.len(), secret.len()));
                assert!(most.max().unwrap_or(0) <= 8, "{before:?} {width} {between:?}: {shown}");
            }
        }
    }
}

/// The length of the longest part of the secret that is left in the middle of an encoded text.
fn longest_shared(piece: &str, text: &str, before: usize, length: usize) -> usize {
    let factor = if text.len() >= 2 * (before + length) { (2, 1) } else { (4, 3) };
    let from = (before * factor.0).div_ceil(factor.1) + 4;
    let middle = &text[from..(before + length) * factor.0 / factor.1 - 4];
    (1..=middle.len())
        .take_while(|size| (0..=middle.len() - size).any(|at| piece.contains(&middle[at..at + size])))
        .max()
        .unwrap_or(0)
}

#[test]
fn s19_escapes_of_pages_programs_and_shells_are_read() {
    let secret = "it's <a> & \"b\" \u{1b}[0m é";
    for text in [
        "it&#39;s &lt;a&gt; &amp; &quot;b&quot; \u{1b}[0m é",
        "it&#x27;s &lt;a&gt; &amp; &#34;b&#34; &#27;[0m &#233;",
        "it&apos;s <a> & \"b\" \u{1b}[0m &#xE9;",
        "it\\'s <a> & \"b\" \\x1b[0m é",
        "it\\'s <a> & \"b\" \\x1b[0m \\xe9",
        "it\\'s <a> & \"b\" \\x1b[0m \\xc3\\xa9",
        "it\\'s <a> & \\\"b\\\" \\u001b[0m \\U000000e9",
        "it'\\''s <a> & \"b\" \u{1b}[0m é",
    ] {
        assert_eq!(shown(secret, &format!("<{text}>")), format!("<{HIDDEN}>"), "{text}");
    }
}

#[test]
fn s19_a_value_that_is_not_utf8_is_hidden_in_its_printed_form() {
    let secret = b"\xe9t\xe9-p\xe4ssw\xf6rd".to_vec();
    let printed = String::from_utf8_lossy(&secret).into_owned();
    assert_eq!(shown(secret.clone(), &format!("<{printed}>")), format!("<{HIDDEN}>"));
    assert_eq!(shown(secret.clone(), &format!("{}", secret.escape_ascii())), HIDDEN);
    let percent: String = secret.iter().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
    assert_eq!(shown(secret.clone(), &percent), HIDDEN);
    assert!(shown(secret.clone(), &STANDARD.encode(&secret)).starts_with(HIDDEN));
    let marks = "\u{fffd}".repeat(8);
    assert_eq!(shown(vec![0xff; 8], &marks), marks, "marks alone tell nothing");
}
