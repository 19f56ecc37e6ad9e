//! Surrogate keys as SQL: the text is part of the contract, because it may be part of a view.

use refrain_core::encoding::EncodingError;
use refrain_core::project::Dialect;
use refrain_core::surrogate::{expression, text};

const PAGE: &str = include_str!("../../../../docs/SURROGATE.md");

fn parts() -> [String; 2] {
    ["order_date".to_owned(), "region".to_owned()]
}

#[test]
fn m18_the_page_prints_the_expressions_as_they_are() {
    for dialect in [Dialect::Postgres, Dialect::Sqlite] {
        let expression = expression(dialect, &parts()).unwrap();
        assert!(
            PAGE.contains(&format!("select order_date, region, {expression} as revenue_sk\nfrom revenue;\n"))
        );
    }
}

#[test]
fn m18_the_expression_of_postgres_is_the_encoding_of_its_parts() {
    let part = "coalesce(decode('01', 'hex') || int4send(octet_length(convert_to(cast(a as text), 'UTF8'))) \
        || convert_to(cast(a as text), 'UTF8'), decode('00', 'hex'))";
    let expected = format!(
        "(select cast(encode(set_byte(set_byte(hash, 6, get_byte(hash, 6) & 15 | 128), \
        8, get_byte(hash, 8) & 63 | 128), 'hex') as uuid)\nfrom (select substr(sha256(\n    \
        int4send(20) || cast('refrain/v1/surrogate' as bytea) || int4send(1)\n    || {part}\n), 1, 16) as hash offset 0) as hashed)"
    );
    assert_eq!(expression(Dialect::Postgres, &["a".to_owned()]).unwrap(), expected);
}

#[test]
fn a_row_without_a_natural_key_gets_no_expression() {
    for dialect in [Dialect::Postgres, Dialect::Sqlite] {
        assert_eq!(expression(dialect, &[]), Err(EncodingError::NoParts));
    }
}

#[test]
fn a_part_stands_in_the_expression_as_it_was_given() {
    let odd = r#"":parts :text (with""#.to_owned();
    let made = expression(Dialect::Sqlite, &[odd.clone(), odd.clone()]).unwrap();
    assert!(made.contains(&format!("(values (1, {odd}), (2, {odd}))")), "{made}");
    assert_eq!(text(Dialect::Postgres, &odd), format!("cast({odd} as text)"));
}
