//! Attributes that run one test on several databases.
//!
//! An attribute, and not a macro around the tests: what stands below it is an ordinary function, which rustfmt formats, clippy
//! checks and an editor can rename. For `async fn name(database: TestDatabase)` each attribute adds a module `name`
//! with one test per database, so that test names are `name::sqlite`, `name::postgres` …

use proc_macro::{TokenStream, TokenTree};

/// Runs `async fn name(database: TestDatabase)` on a SQLite file and on PostgreSQL.
#[proc_macro_attribute]
pub fn both_databases(_: TokenStream, story: TokenStream) -> TokenStream {
    on_each(
        story,
        &[
            ("sqlite", "::refrain_harness::TestDatabase::sqlite()"),
            ("postgres", "::refrain_harness::TestDatabase::postgres()"),
        ],
    )
}

/// Runs `async fn name(database: TestDatabase)` on a SQLite file, on PostgreSQL, and on PostgreSQL behind a pooler
/// in transaction mode.
#[proc_macro_attribute]
pub fn every_store(_: TokenStream, story: TokenStream) -> TokenStream {
    on_each(
        story,
        &[
            ("sqlite", "::refrain_harness::TestDatabase::sqlite()"),
            ("postgres", "::refrain_harness::TestDatabase::postgres()"),
            ("pgbouncer", "::refrain_harness::TestDatabase::pgbouncer()"),
        ],
    )
}

/// Runs `async fn name<DB: Backend>(shop: Shop<DB>)` with the shop's rows in a SQLite file and in PostgreSQL. `Shop` is
/// that of the test program.
#[proc_macro_attribute]
pub fn both_shops(_: TokenStream, story: TokenStream) -> TokenStream {
    on_each(
        story,
        &[("sqlite", "crate::shop::Shop::in_a_file()"), ("postgres", "crate::shop::Shop::on_a_server()")],
    )
}

/// The function, and beside it a module of the same name with a test for each place.
fn on_each(mut story: TokenStream, places: &[(&str, &str)]) -> TokenStream {
    let Some(name) = name_of(&story) else {
        return "compile_error! { \"this attribute belongs on an async function\" }".parse().unwrap_or(story);
    };
    let tests = places.iter().map(|(test, place)| {
        format!("#[::tokio::test] async fn {test}() {{ super::{name}({place}.await).await; }}")
    });
    let tests = format!("mod {name} {{ {} }}", tests.collect::<String>());
    story.extend(tests.parse::<TokenStream>());
    story
}

/// The word after `fn`.
fn name_of(function: &TokenStream) -> Option<String> {
    let mut words = function.clone().into_iter();
    words.find(|word| matches!(word, TokenTree::Ident(word) if word.to_string() == "fn"))?;
    words.next().map(|name| name.to_string())
}
