//! What a database URL is, how it is displayed, and what is never displayed.

use proptest::prelude::*;
use sqlx::ConnectOptions;

use super::*;

fn shown(text: &str) -> String {
    match Address::parse(text) {
        Ok(address) => format!("{address}"),
        Err(error) => format!("{error}"),
    }
}

#[test]
fn a_sqlite_url_is_a_path() {
    for (text, expected) in [
        ("sqlite:.refrain/refrain.db", ".refrain/refrain.db"),
        ("sqlite:shop.db", "shop.db"),
        ("sqlite://shop.db", "shop.db"),
        ("sqlite:/var/lib/shop.db", "/var/lib/shop.db"),
        ("sqlite:///var/lib/shop.db", "/var/lib/shop.db"),
        ("sqlite:a%20b c.db", "a%20b c.db"),
    ] {
        let Ok(Address::Sqlite { path }) = Address::parse(text) else { panic!("{text}") };
        assert_eq!(path, PathBuf::from(expected));
    }
    assert_eq!(format!("{:?}", Address::parse("sqlite://shop.db").unwrap()), "Address(sqlite:shop.db)");
}

#[test]
fn a_url_is_refused_if_its_data_or_a_part_of_it_would_be_lost() {
    for (text, reason) in [
        ("sqlite::memory:", "lost with its process"),
        ("sqlite://:memory:", "lost with its process"),
        ("sqlite:shop.db?mode=ro", "takes no options"),
        ("sqlite:shop.db?mode=memory&cache=shared", "takes no options"),
        ("sqlite:", "the path is missing"),
        ("sqlite://", "the path is missing"),
    ] {
        let error = Address::parse(text).unwrap_err();
        assert!(error.reason().contains(reason), "{error}");
        assert!(error.advice().is_some(), "{error}");
    }
}

#[test]
fn an_unknown_database_is_refused_with_the_valid_forms() {
    for text in
        ["", "shop.db", "mysql://root@host/shop", "postgres:shop", "postgresql+psycopg://u@h/d", "://"]
    {
        assert_eq!(Address::parse(text).unwrap_err().advice(), Some(FORMS), "{text}");
    }
    assert_eq!(
        shown("mysql://root@host/shop"),
        "cannot read the database URL\n  mysql://root@host/shop\n  ^^^^^ `mysql` is not a \
         supported database\n  write sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE"
    );
}

#[test]
fn a_postgres_url_is_displayed_with_user_host_and_database() {
    for (text, expected) in [
        ("postgres://ada:secret@db.example:6432/shop", "postgres://ada@db.example:6432/shop"),
        ("postgresql://ada@db.example:5432/shop?sslmode=require", "postgres://ada@db.example:5432/shop"),
        ("postgres://db.example:5432/shop?user=ada", "postgres://ada@db.example:5432/shop"),
        (
            "postgres://ada@localhost:5432/shop?host=/run/postgresql",
            "postgres://ada@/run/postgresql:5432/shop",
        ),
    ] {
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn a_url_without_a_user_is_refused_instead_of_guessing_one() {
    for text in
        ["postgres://localhost:5432/shop", "postgres:///shop", "postgres://:word@h/d", "postgres://h/d?user="]
    {
        let error = Address::parse(text).unwrap_err();
        assert!(error.reason().contains("it has no user"), "{error}");
    }
}

#[test]
fn characters_that_would_lead_to_another_host_are_refused_and_can_be_escaped() {
    for text in ["postgres://ada:a@b/c@h/d", "postgres://ada@corp:word@h/d", "postgres://ada:a#b@h/d"] {
        let advice = Address::parse(text).unwrap_err().advice().unwrap_or_default().to_owned();
        assert!(advice.contains("write %40") || advice.contains("write %23"), "{text}: {advice}");
    }
    assert_eq!(shown("postgres://ada%40corp:a%40b%2Fc%23@h:5432/d"), "postgres://ada@corp@h:5432/d");
}

#[test]
fn options_reach_the_driver_and_unknown_ones_do_not() {
    let pooled = "postgres://ada@h/d?statement-cache-capacity=0&options[search_path]=shop";
    let Ok(Address::Postgres { options, .. }) = Address::parse(pooled) else { panic!("{}", shown(pooled)) };
    assert!(options.to_url_lossy().as_str().contains("statement-cache-capacity=0"));
    assert_eq!(options.get_options(), Some("-c search_path=shop"));

    let error = Address::parse("postgres://ada@h/d?sslmode=require&sslmod=x&user=u").unwrap_err();
    assert_eq!(error.reason(), "option 2 after the `?` has an unknown name");
    assert!(error.to_string().contains("postgres://ada@h/d?sslmode&***\n"), "{error}");
    for text in ["postgres://ada@h:port/d", "postgres://ada@h/d?port=x", "postgres://ada@h/d?sslmode=some"] {
        assert!(Address::parse(text).is_err(), "{text}");
    }
}

/// Every way in which a password may occur in a URL, valid or not.
fn with_password(password: &str) -> Vec<String> {
    let forms = [
        "postgres://user:{}@host:5432/shop",
        "postgres://user:{}@host/shop?sslmode=require&colour=red",
        "postgres://user:{}@host:port/shop",
        "postgres://user:{}@/shop?sslmode=bogus",
        "postgres://:{}@host/shop",
        "postgres://user@corp:{}@host/shop",
        "postgres:user:{}@host/shop",
        "postgres://host:5432/shop?password={}",
        "postgres://user@host:5432/shop?password={}",
        "postgres://user@host/shop?colour=red&password={}",
        "postgres://host/shop?sslmode=disable&password={}&user=user",
        "postgres://user@host/shop?pass%77ord={}",
        "mysql://root:{}@host/shop",
        "jdbc:postgresql://host/shop?user=user&password={}",
        "user:{}@host/shop",
        "host=localhost password={} user=user",
        "HOST=localhost PASSWORD={}",
        "sqlite://user:{}@host/shop?x",
    ];
    // Any parser would find a host behind an `@`.
    let without_host = ["postgres://user:{}", "postgres:user:{}"].iter().filter(|_| !password.contains('@'));
    forms.iter().chain(without_host).map(|form| form.replace("{}", password)).collect()
}

fn assert_secret(password: &str) {
    for text in with_password(password) {
        let output = match Address::parse(&text) {
            Ok(Address::Sqlite { .. }) => continue,
            Ok(address) => format!("{address} {address:?} {address:#?}"),
            Err(error) => format!("{error} {error:?} {error:#?}"),
        };
        assert!(!output.contains("CAN") && !output.contains("ARY"), "{text}\n{output}");
    }
}

#[test]
fn a_password_is_never_shown_whatever_is_in_it() {
    for divider in
        ["", "/", "?", "#", "@", ":", "&", "=", "%", "%40", " ", "://", "//", "[", "\\", "é", "&x=", "?x="]
    {
        assert_secret(&format!("CAN{divider}ARY"));
    }
}

proptest! {
    #[test]
    fn no_password_is_ever_shown(middle in "[a-z/?#@:&=%\\[ ]{0,12}") {
        assert_secret(&format!("CAN{middle}ARY"));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        let _ = Address::parse(&text);
        let _ = Address::parse(&format!("postgres://{text}"));
    }
}

#[test]
fn a_password_leaves_the_machine_only_under_tls_unless_the_url_allows_it() {
    let mode = |text: &str| match Address::parse(text) {
        Ok(Address::Postgres { options, .. }) => format!("{:?}", options.get_ssl_mode()),
        _ => panic!("{text}"),
    };
    for (text, expected) in [
        ("postgres://ada:word@db.example/shop", "Require"),
        ("postgres://ada:word@192.0.2.7/shop", "Require"),
        ("postgres://ada:word@localhost.example/shop", "Require"),
        ("postgres://ada:word@db.example/shop?sslmode=disable", "Disable"),
        ("postgres://ada:word@db.example/shop?sslmode=prefer", "Prefer"),
        ("postgres://ada:word@db.example/shop?ssl-mode=verify-full", "VerifyFull"),
        ("postgres://ada:word@localhost/shop", "Prefer"),
        ("postgres://ada:word@127.0.0.1:6432/shop", "Prefer"),
        ("postgres://ada:word@[::1]/shop", "Prefer"),
        ("postgres://ada@localhost/shop?host=/run/postgresql", "Prefer"),
    ] {
        assert_eq!(mode(text), expected, "{text}");
    }
    let options: PgConnectOptions = "postgres://ada@db.example/shop".parse().unwrap();
    assert!(matches!(encrypted(options, true).get_ssl_mode(), PgSslMode::Prefer), "PGSSLMODE has the say");
}
