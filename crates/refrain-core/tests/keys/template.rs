//! Key templates: the same keys as `key!`, and no two units share one by accident.

use std::collections::BTreeSet;

use proptest::prelude::*;
use refrain_core::{Key, KeyError, KeyTemplate, ParseError, key};

fn parse(text: &str) -> Result<KeyTemplate, ParseError> {
    KeyTemplate::parse(text)
}

/// Renders the template with these values in order.
fn render(template: &KeyTemplate, values: &[String]) -> Result<Key, KeyError> {
    let mut values = values.iter().cloned();
    template.render(|_| values.next())
}

proptest! {
    #[test]
    fn f37_any_text_is_a_template_or_an_error(text in prop_oneof![any::<String>(), "[{}:.$a1é-]{0,12}"]) {
        if let Ok(template) = parse(&text) {
            prop_assert_eq!(template.to_string(), text);
        }
    }

    #[test]
    fn a_template_gives_the_key_that_its_parts_give(kind in any::<String>(), id in any::<String>()) {
        let values = [kind.clone(), id.clone()];
        let (by_template, by_parts) = (render(&parse("{kind}:{id}").unwrap(), &values), key!(kind, id));
        prop_assert_eq!(by_template.ok(), by_parts.ok());
    }
}

/// Every list of this length of these texts.
fn lists(of: &[&str], length: usize) -> Vec<Vec<String>> {
    (0..length).fold(vec![vec![]], |lists, _| {
        let longer = |list: &Vec<String>| {
            of.iter().map(|text| [list.as_slice(), &[(*text).to_owned()]].concat()).collect()
        };
        lists.iter().flat_map::<Vec<_>, _>(longer).collect()
    })
}

#[test]
fn i13_no_two_units_share_a_key_under_any_small_template() {
    let texts = (1..=5).flat_map(|length| lists(&["{a}", ":", "-"], length)).map(|pieces| pieces.concat());
    for template in texts.filter_map(|text| parse(&text).ok()) {
        let units = lists(&["-", "--", ":", "%", "%3A"], template.names().count());
        let keys: BTreeSet<Key> = units.iter().map(|unit| render(&template, unit).unwrap()).collect();
        assert_eq!(keys.len(), units.len(), "{template}");
    }
}

#[test]
fn names_and_literals_are_told_apart() {
    for (text, names, key) in [
        ("invoice:{id}", vec!["id"], "invoice:<id>"),
        ("notify:new:{payload.user_id}", vec!["payload.user_id"], "notify:new:<payload.user_id>"),
        ("{$content}", vec!["$content"], "<$content>"),
        ("webhook:{hook}:digest:{scope}", vec!["hook", "scope"], "webhook:<hook>:digest:<scope>"),
        ("{{{_x1}}}", vec!["_x1"], "{<_x1>}"),
        ("100%-{id}-ü", vec!["id"], "100%-<id>-ü"),
        ("payload of a {payload.timestamp}", vec!["payload.timestamp"], "payload of a <payload.timestamp>"),
    ] {
        let template = parse(text).unwrap();
        assert_eq!(template.names().collect::<Vec<_>>(), names);
        assert_eq!(template.render(|name| Some(format!("<{name}>"))).unwrap().as_str(), key);
    }
}

#[test]
fn values_are_escaped_and_literals_are_not() {
    let template = parse("a:%:{id}").unwrap();
    assert_eq!(template.render(|_| Some("b:%".to_owned())).unwrap().as_str(), "a:%:b%3A%25");
}

#[test]
fn m3_a_key_with_the_time_a_run_or_a_random_value_is_refused() {
    for (name, reason) in [
        ("now", "a key that contains the time makes"),
        ("today", "a key that contains the time makes"),
        ("timestamp", "a key that contains the time makes"),
        ("NOW", "a key that contains the time makes"),
        ("run", "a key that contains the run makes"),
        ("run_id", "a key that contains the run makes"),
        ("runId", "a key that contains the run makes"),
        ("run.id", "a key that contains the run makes"),
        ("attempt", "a key that contains the run makes"),
        ("uuid", "a random key is"),
        ("random", "a random key is"),
    ] {
        let error = parse(&format!("digest:{{{name}}}")).unwrap_err();
        assert!(error.reason().starts_with(reason), "{error}");
        assert_eq!(error.span(), 7..9 + name.len());
        assert!(error.advice().is_some());
    }
}

#[test]
fn an_invalid_template_is_refused_with_the_position_of_the_fault() {
    for (text, span, reason) in [
        ("", 0..0, "it has no placeholder, so every unit but the first would count as done"),
        ("launch", 0..6, "it has no placeholder, so every unit but the first would count as done"),
        ("a:{{id}}", 0..8, "it has no placeholder, so every unit but the first would count as done"),
        ("a:{id", 2..5, "this `{` is never closed"),
        ("a:id}", 4..5, "this `}` closes nothing"),
        ("a:{}", 2..4, "this is not a valid name"),
        ("a:{ id }", 2..8, "this is not a valid name"),
        ("a:{1d}", 2..6, "this is not a valid name"),
        ("a:{payload.}", 2..12, "this is not a valid name"),
        ("a:{größe}", 2..11, "this is not a valid name"),
        ("a:{$now}", 2..8, "this is not a valid name"),
        ("a:{a}{b}", 2..8, "these two values would run together into one"),
        ("{a}:{b}-{c}", 4..11, "these two values would run together into one"),
        ("a\n{id}", 1..2, "U+000A is a control character or a line break"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.span(), error.reason()), (span, reason), "{error}");
    }
}

#[test]
fn a_field_that_is_missing_or_empty_is_named() {
    let template = parse("invoice:{payload.id}").unwrap();
    assert_eq!(
        template.render(|_| None).unwrap_err().to_string(),
        "{payload.id} of the key has no value: use a field that every unit has, or {$content}"
    );
    assert_eq!(
        template.render(|_| Some(String::new())),
        Err(KeyError::Empty { part: "{payload.id}".to_owned() })
    );
    assert_eq!(
        template.render(|_| Some("a\0".to_owned())),
        Err(KeyError::Character { part: "{payload.id}".to_owned(), character: '\0' })
    );
    assert_eq!(template.render(|_| Some("k".repeat(505))), Err(KeyError::TooLong { bytes: 513 }));
}
