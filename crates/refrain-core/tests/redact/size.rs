//! The cost of hiding: memory linear in the secret, time linear in the text, for every secret.

use refrain_core::redact::{HIDDEN, Redactor, Secret};

/// Bytes without repetition.
fn key(length: u32) -> String {
    let letter =
        |number: u32| char::from(b'!' + u8::try_from(number.wrapping_mul(2_654_435_761) >> 25).unwrap() % 90);
    (0..length).map(letter).collect()
}

#[test]
fn s22_memory_is_linear_in_the_secret() {
    for length in [16, 1_600, 16_000, 120_000] {
        let redactor = Redactor::new(&[Secret::new(key(length))]);
        let most = 300 * length as usize + 2_000;
        assert!(redactor.size() <= most, "{length}: {} bytes", redactor.size());
    }
}

#[test]
fn s22_clones_share_their_memory_and_equal_ones_cover_each_other() {
    let [one, two] = [key(100), key(200)].map(Secret::new);
    let both = Redactor::new(&[one.clone(), two.clone()]);
    let same = Redactor::new(&[two.clone(), one.clone(), two.clone()]);
    assert!(both.covers(&same) && same.covers(&both));
    let less = Redactor::new(&[one]);
    assert!(both.covers(&less) && !less.covers(&both));
    assert!(less.covers(&Redactor::default()) && less.clone().covers(&less));
}

/// A quadratic search would take billions of steps.
#[test]
fn s22_a_secret_that_repeats_one_letter_does_not_stall() {
    let redactor = Redactor::new(&[Secret::new("a".repeat(4_000))]);
    let text = "a".repeat(400_000);
    assert_eq!(redactor.redact(&text), HIDDEN);
    let mut stream = redactor.stream();
    let mut shown = String::new();
    for chunk in text.as_bytes().chunks(65_536) {
        shown += &stream.push(str::from_utf8(chunk).unwrap());
    }
    assert_eq!(shown + &stream.finish(), HIDDEN);
    let almost = format!("{}b", "a".repeat(3_999)).repeat(20);
    assert_eq!(redactor.redact(&almost), almost);
    let escaped = "%61".repeat(20_000);
    assert_eq!(redactor.redact(&escaped), HIDDEN);
}

/// No more text is held back than may be part of a secret.
#[test]
fn s22_a_text_that_never_ends_is_not_held_back() {
    let mut stream = Redactor::new(&[Secret::new("aaaaaaaa")]).stream();
    let mut shown = 0;
    for _ in 0..1_000 {
        shown += stream.push("YWFhYWFh\n ").len();
        shown += stream.push(&" ".repeat(100)).len();
    }
    assert!(shown > 90_000, "{shown}");
}
