//! Fingerprints: the same content in another notation is the same unit, and anything else is another.

use std::collections::BTreeMap;
use std::fmt::Write;

use proptest::prelude::*;
use refrain_core::content::{CONTENT_BYTES_MAX, CONTENT_DEPTH_MAX};
use refrain_core::{ContentError, Fingerprint};

/// The meaning of a JSON value, for comparison.
#[derive(Debug, Clone)]
enum Json {
    Null,
    Bool(bool),
    /// In hundredths.
    Number(i64),
    Text(String),
    Array(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

/// Every choice that a writer of JSON has, taken from a list of numbers.
struct Writer<'a> {
    choices: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    out: String,
}

impl Writer<'_> {
    fn write(value: &Json, choices: &[u8]) -> String {
        let mut writer = Writer { choices: choices.iter().cycle(), out: String::new() };
        writer.value(value);
        writer.out
    }

    fn choice(&mut self, of: u8) -> u8 {
        self.choices.next().unwrap() % of
    }

    fn space(&mut self) {
        let space = ["", " ", "\n\t", "\r\n"][usize::from(self.choice(4))];
        self.out.push_str(space);
    }

    fn token(&mut self, token: &str) {
        self.space();
        self.out.push_str(token);
        self.space();
    }

    fn value(&mut self, value: &Json) {
        match value {
            Json::Null => self.token("null"),
            Json::Bool(value) => self.token(&value.to_string()),
            Json::Number(hundredths) => self.number(*hundredths),
            Json::Text(text) => self.text(text),
            Json::Array(values) => {
                self.token("[");
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        self.token(",");
                    }
                    self.value(value);
                }
                self.token("]");
            }
            Json::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                if self.choice(2) == 1 {
                    members.reverse();
                }
                let start = usize::from(self.choice(8)).min(members.len());
                members.rotate_left(start);
                self.token("{");
                for (index, (key, value)) in members.into_iter().enumerate() {
                    if index > 0 {
                        self.token(",");
                    }
                    self.text(key);
                    self.token(":");
                    self.value(value);
                }
                self.token("}");
            }
        }
    }

    fn number(&mut self, hundredths: i64) {
        let (sign, size) = (if hundredths < 0 { "-" } else { "" }, hundredths.unsigned_abs());
        let (whole, rest) = (size / 100, size % 100);
        let text = match self.choice(5) {
            0 => format!("{hundredths}e-2"),
            1 => format!("{sign}{whole}.{rest:02}"),
            2 => format!("{sign}{whole}.{rest:02}000E+00"),
            3 => format!("{hundredths}.00e-0002"),
            _ if rest == 0 => format!("{sign}{whole}"),
            _ => format!("{sign}0.000{whole}{rest:02}e{}", 3 + whole.to_string().len()),
        };
        self.token(&text);
    }

    fn text(&mut self, text: &str) {
        self.space();
        self.out.push('"');
        for character in text.chars() {
            let must_escape = character < ' ' || matches!(character, '"' | '\\');
            if must_escape || self.choice(3) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04x}").unwrap();
                }
            } else {
                self.out.push(character);
            }
        }
        self.out.push('"');
        self.space();
    }
}

fn json() -> impl Strategy<Value = Json> {
    let text = "\\PC{0,4}|[\\n\"\\\\é😀]{0,4}";
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        prop_oneof![-12_i64..12, Just(100), Just(1000), any::<i64>()].prop_map(Json::Number),
        text.prop_map(Json::Text),
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Json::Array),
            prop::collection::btree_map(text, inner, 0..3).prop_map(Json::Object),
        ]
    })
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..20)
}

fn of(text: &str) -> Fingerprint {
    Fingerprint::of_json(text).unwrap()
}

proptest! {
    #[test]
    fn m3_the_same_content_in_other_words_has_the_same_fingerprint(
        unit in json(), one in choices(), other in choices(),
    ) {
        let (one, other) = (Writer::write(&unit, &one), Writer::write(&unit, &other));
        prop_assert_eq!(of(&one), of(&other), "{} {}", one, other);
    }

    #[test]
    fn m3_numbers_are_equal_if_their_values_are(
        one in (-1100_i64..1100, 0_u32..7), other in (-1100_i64..1100, 0_u32..7),
    ) {
        let thousandths = |(number, power): (i64, u32)| number * 10_i64.pow(power);
        let written = |(number, power): (i64, u32)| of(&format!("{number}e{}", i64::from(power) - 3));
        prop_assert_eq!(written(one) == written(other), thousandths(one) == thousandths(other));
    }

    #[test]
    fn f37_any_text_has_a_fingerprint_or_an_error(
        text in prop_oneof![any::<String>(), "[\\[\\]{}\",:0-2eE.\\\\u+ atrufslnd-]{0,30}"]
    ) {
        prop_assert_eq!(Fingerprint::of_json(&text).ok(), Fingerprint::of_json(&format!(" {text}\n")).ok());
    }

    #[test]
    fn a_printed_fingerprint_can_be_parsed(text in "\\PC{0,4}") {
        let fingerprint = of(&Writer::write(&Json::Text(text), &[0]));
        prop_assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
    }
}

/// Some scalars, and every array and object of at most two of these values.
fn values_of(inner: &[String]) -> Vec<String> {
    let mut values = ["null", "\"null\"", "\"1e0\"", "1", "[]", "{}"].map(str::to_owned).to_vec();
    for a in inner {
        values.extend([format!("[{a}]"), format!(r#"{{"":{a}}}"#), format!(r#"{{"null":{a}}}"#)]);
        for b in inner {
            values.extend([format!("[{a},{b}]"), format!(r#"{{"":{a},"null":{b}}}"#)]);
        }
    }
    values
}

#[test]
fn m3_other_content_has_another_fingerprint() {
    let units = values_of(&values_of(&values_of(&[])));
    let mut seen: BTreeMap<Fingerprint, &String> = BTreeMap::new();
    for unit in &units {
        assert_eq!(seen.insert(of(unit), unit), None, "{unit} has the fingerprint of another unit");
    }
}

#[test]
fn m3_numbers_never_pass_through_a_float() {
    for same in [
        ["1", "1.0", "1e0", "10e-1", "0.1E+1"].as_slice(),
        &["0", "-0", "0.0", "-0.00e5", "0e99999999999999999999"],
        &["1e131072", "10e131071", "0.1e131073"],
    ] {
        for other in same {
            assert_eq!(of(same[0]), of(other), "{other}");
        }
    }
    for [one, other] in [
        ["12345678901234567890123", "12345678901234567890124"],
        ["0.1", "0.10000000000000000000001"],
        ["1", "-1"],
        ["1", "\"1\""],
        ["9007199254740992", "9007199254740993"],
        ["1e400", "1e401"],
    ] {
        assert_ne!(of(one), of(other), "{one} {other}");
    }
}

#[test]
fn an_enormous_number_is_refused_by_its_value_in_any_notation() {
    let whole = format!("1{}", "0".repeat(131_073));
    for text in
        ["1e131073", "10e131072", "1e-131073", "1e99999999999999999999", "-1e-99999999999999999999", &whole]
    {
        assert!(matches!(Fingerprint::of_json(text), Err(ContentError::Exponent { .. })), "{text:.30}");
    }
    assert_eq!(
        Fingerprint::of_json("[1e131073]").unwrap_err().to_string(),
        "the number 1e131073 is out of range: powers of ten go up to 131072"
    );
}

#[test]
fn m3_fields_narrow_a_unit() {
    let unit = r#"{"id": 7, "total": 10, "fetched_at": "2026-06-09T02:00:07Z", "lines": [{"sku": "a"}]}"#;
    let later = unit.replace("02:00:07", "03:00:09");
    let fields = ["lines", "id", "total", "id"];
    assert_ne!(of(unit), of(&later));
    assert_eq!(Fingerprint::of_fields(unit, &fields), Fingerprint::of_fields(&later, &fields));
    assert_ne!(
        Fingerprint::of_fields(unit, &fields),
        Fingerprint::of_fields(&unit.replace("\"a\"", "\"b\""), &fields)
    );
}

#[test]
fn m3_a_missing_field_counts_as_null_but_a_typo_is_an_error() {
    let unit = r#"{"id": 7, "total": 10}"#;
    assert_eq!(Fingerprint::of_fields(unit, &["id", "note"]).unwrap(), of(r#"{"note": null, "id": 7}"#),);
    assert_eq!(
        Fingerprint::of_fields(unit, &["ident", "totel"]).unwrap_err().to_string(),
        "the unit has none of the fields `ident`, `totel`; it has `id`, `total`"
    );
    assert!(matches!(Fingerprint::of_fields(unit, &[]), Err(ContentError::NoField { .. })));
    assert_eq!(Fingerprint::of_fields("[7]", &["id"]), Err(ContentError::NotAnObject));
}

#[test]
fn a_key_that_comes_twice_is_refused_even_behind_an_escape() {
    for text in [r#"{"a": 1, "a": 1}"#, r#"[{"a": 1, "b": 2, "\u0061": 1}]"#] {
        assert_eq!(Fingerprint::of_json(text), Err(ContentError::DuplicateKey { key: "a".to_owned() }));
    }
    assert!(Fingerprint::of_json(r#"{"a": {"a": 1}}"#).is_ok());
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Fingerprint::of_json(&nested(CONTENT_DEPTH_MAX)).is_ok());
    assert_eq!(Fingerprint::of_json(&nested(CONTENT_DEPTH_MAX + 1)), Err(ContentError::TooDeep));
    let field = |depth: usize| format!("{{\"a\": {}}}", nested(depth));
    assert!(Fingerprint::of_fields(&field(CONTENT_DEPTH_MAX - 1), &["a"]).is_ok());
    assert_eq!(Fingerprint::of_fields(&field(CONTENT_DEPTH_MAX), &["a"]), Err(ContentError::TooDeep));
    assert_eq!(Fingerprint::of_json(&nested(CONTENT_BYTES_MAX / 2)), Err(ContentError::TooDeep));
}

#[test]
fn size_is_bounded_and_the_densest_unit_still_fits_its_encoding() {
    let densest = format!("[1{}]", ",1".repeat((CONTENT_BYTES_MAX - 3) / 2));
    assert!(Fingerprint::of_json(&densest).is_ok());
    let bytes = CONTENT_BYTES_MAX + 1;
    assert_eq!(Fingerprint::of_json(&" ".repeat(bytes)), Err(ContentError::TooLarge { bytes }));
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    assert_eq!(
        Fingerprint::of_json("{\"id\": 07}").unwrap_err().to_string(),
        "the unit is not JSON: invalid number at line 1 column 9"
    );
    for text in ["", "NaN", "[1,]", "{'a':1}", "1 2", "\u{feff}1", "\"a\nb\""] {
        assert!(matches!(Fingerprint::of_json(text), Err(ContentError::NotJson(_))), "{text:?}");
    }
}

#[test]
fn half_a_character_is_refused() {
    for text in [r#""\ud83d""#, r#"{"\udc00": 1}"#, r#"["\ud83d\u0041"]"#] {
        assert_eq!(Fingerprint::of_json(text), Err(ContentError::HalfSurrogate), "{text}");
    }
}

#[test]
fn an_invalid_fingerprint_is_refused() {
    let right = of("1").to_string();
    for text in
        ["", "00", &right[1..], &format!("{right}0"), &right.replacen(|_| true, "+", 1), &"é".repeat(32)]
    {
        assert!(text.parse::<Fingerprint>().is_err(), "{text}");
    }
}
