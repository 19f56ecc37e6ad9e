//! What both databases must agree on: keys are compared as bytes, are stored unchanged, and exist
//! once.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use refrain::core::{Key, SurrogateKey};
use refrain_harness::{TestDatabase, both_databases};
use sqlx::error::ErrorKind;

/// Keys that a careless collation, trim, escape or fold would confuse.
fn odd_keys() -> Vec<String> {
    let mut keys: Vec<String> = [
        "a", "A", "a ", " a", "ä", "a\u{308}", "z", "Z", "ß", "ss", "10", "9", "1_0", "1%0", "%", "_", "'",
        "''", "\"", "\\", "a\\", "$1", "?1", ":ds", "a:b", "a%3Ab", "é", "e\u{301}", "🦀", "\u{3a9}",
        "\u{2126}", "ı", "i", "I", "İ", "\u{fffd}", "a\u{a0}",
    ]
    .map(str::to_owned)
    .to_vec();
    keys.push("x".repeat(512));
    keys.push("🦀".repeat(128));
    keys
}

/// Hundreds of texts of every kind, long and short, valid as a key or not; the same ones each time.
fn any_texts() -> Vec<String> {
    let text = prop_oneof![
        any::<String>(),
        "\\PC{1,64}",
        "[ '\"\\\\%_:;$?{}-]{1,512}",
        "[aAäåßéıiIİ\u{301}\u{308}\u{3a9}\u{2126}\u{200b}\u{feff}\u{ffff}🦀\u{10ffff}]{1,130}",
        "[a-c]{1,3}",
        "[\\x00-\\x7f\u{80}-\u{9f}\u{2028}\u{2029}]{0,4}",
        "x{500,520}",
    ];
    let texts = proptest::collection::vec(text, 600);
    texts.new_tree(&mut TestRunner::deterministic()).unwrap().current()
}

/// The rule for a key, written a second time: 1 to 512 bytes on one line.
fn is_fit(text: &str) -> bool {
    let one_line = !text.contains(|c: char| c.is_control() || c == '\u{2028}' || c == '\u{2029}');
    (1..=512).contains(&text.len()) && one_line
}

async fn with_table(database: &TestDatabase) {
    let table = if database.is_sqlite() {
        "create table keys (key text not null primary key) strict"
    } else {
        r#"create table keys (key text collate "C" not null primary key)"#
    };
    database.execute(table, &[]).await.unwrap();
}

#[both_databases]
async fn f37_unusual_keys_are_stored_unchanged_in_byte_order(database: TestDatabase) {
    with_table(&database).await;
    let mut keys = odd_keys();
    for key in &keys {
        let key = Key::parse(key).unwrap();
        database.execute("insert into keys (key) values ($1)", &[key.as_str()]).await.unwrap();
    }
    keys.sort();
    assert_eq!(database.texts("select key from keys order by key").await, keys);
}

#[both_databases]
async fn f37_accepted_text_is_stored_unchanged(database: TestDatabase) {
    with_table(&database).await;
    let (accepted, refused): (BTreeSet<String>, BTreeSet<String>) =
        any_texts().into_iter().partition(|text| Key::parse(text).is_ok());
    assert!(accepted.iter().all(|text| is_fit(text)), "{accepted:?}");
    assert!(!refused.iter().any(|text| is_fit(text)), "{refused:?}");
    assert!(accepted.len() > 300 && refused.len() > 50, "{} and {}", accepted.len(), refused.len());
    for unfit in ["", "\0", "a\0b", "\u{1b}[0m", "a\n", "\u{85}", "\u{2028}", &"x".repeat(513)] {
        assert!(Key::parse(unfit).is_err(), "{unfit:?}");
    }

    let keys: Vec<&str> = accepted.iter().map(String::as_str).collect();
    let rows: Vec<String> = (1..=keys.len()).map(|number| format!("(${number})")).collect();
    let insert = format!("insert into keys (key) values {}", rows.join(", "));
    database.execute(insert.leak(), &keys).await.unwrap();
    assert_eq!(database.texts("select key from keys order by key").await, keys);
}

#[both_databases]
async fn a_unique_constraint_keeps_each_key_once(database: TestDatabase) {
    with_table(&database).await;
    let insert = "insert into keys (key) values ($1)";
    database.execute(insert, &["invoice:INV-7"]).await.unwrap();
    let refused = database.execute(insert, &["invoice:INV-7"]).await.unwrap_err();
    let kind = refused.as_database_error().map(sqlx::error::DatabaseError::kind);
    assert!(matches!(kind, Some(ErrorKind::UniqueViolation)), "{refused}");
    let ignored = "insert into keys (key) values ($1) on conflict do nothing";
    assert_eq!(database.execute(ignored, &["invoice:INV-7"]).await.unwrap(), 0);
}

/// The encoding as its documentation writes it for PostgreSQL, in the form of a UUID of version 8.
const SURROGATE_IN_POSTGRES: &str = r"
with fields as (select $1::text as a, $2::text as b),
hash as (
    select substring(sha256(int4send(20) || 'refrain/v1/surrogate'::bytea || int4send(2)
        || coalesce('\x01'::bytea || int4send(octet_length(a)) || convert_to(a, 'UTF8'), '\x00'::bytea)
        || coalesce('\x01'::bytea || int4send(octet_length(b)) || convert_to(b, 'UTF8'), '\x00'::bytea)) for 16) as h
    from fields
)
select encode(set_byte(set_byte(h, 6, get_byte(h, 6) & 15 | 128), 8, get_byte(h, 8) & 63 | 128), 'hex')::uuid::text
from hash";

#[tokio::test]
async fn m18_postgres_derives_the_same_surrogate_key() {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let natural = [
        (Some("2026-06-09"), Some("EU")),
        (Some("2026-06-09"), None),
        (None, Some("")),
        (Some("🦀"), Some("a:b")),
    ];
    for (a, b) in natural {
        let derived: String =
            sqlx::query_scalar(SURROGATE_IN_POSTGRES).bind(a).bind(b).fetch_one(pool).await.unwrap();
        assert_eq!(derived, SurrogateKey::of(&[a, b]).unwrap().to_string(), "{a:?} {b:?}");
    }
}

#[tokio::test]
async fn the_version_of_sqlite_keeps_its_write_ahead_log() {
    let database = TestDatabase::sqlite().await;
    let version = database.texts("select sqlite_version()").await.remove(0);
    let numbers: Vec<u32> = version.split('.').map(|number| number.parse().unwrap()).collect();
    assert!(numbers >= vec![3, 51, 3], "SQLite {version} can corrupt its write-ahead log; 3.51.3 does not");
}
