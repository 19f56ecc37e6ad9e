//! Only the files that ARCHITECTURE lists know whether a database is PostgreSQL or SQLite.
//!
//! The two modules for it, `database` and `user_database`, are not in the list; every other file that names a
//! database is, with its reason. A file that is not listed is a finding, and so is an unneeded line.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};

use super::{File, Finding};

const DOCUMENT: &str = "docs/ARCHITECTURE.md";
const BEGIN: &str = "<!-- databases: begin -->\n";
const END: &str = "<!-- databases: end -->";

/// Names that refer to one database, or their beginning: `PgPool`, `SqliteConnection`.
const KINDS: [&str; 3] = ["Sqlite", "Postgres", "Pg"];
const QUESTIONS: [&str; 3] = ["is_sqlite", "is_postgres", "IS_REMOTE"];

pub(crate) fn are_known_where_listed(files: &[File]) -> Vec<Finding> {
    let Some(document) = files.iter().find(|file| file.path == DOCUMENT) else { return Vec::new() };
    let listed = listed(&document.text);
    let mut needed = BTreeSet::new();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_searched(&file.path)) {
        let Some(line) = first_kind(file.text.parse().unwrap_or_default()) else { continue };
        match listed.iter().find(|(_, path)| covers(path, &file.path)) {
            Some((_, path)) => drop(needed.insert(*path)),
            None => findings.push(Finding {
                path: file.path.clone(),
                line,
                rule: "databases",
                what: format!("a kind of database is named: ask through `database` or `user_database`, or add a line to {DOCUMENT}"),
            }),
        }
    }
    let unneeded = listed.iter().filter(|(_, path)| !needed.contains(path)).map(|(line, path)| Finding {
        path: DOCUMENT.to_owned(),
        line: *line,
        rule: "databases",
        what: format!("`{path}` names no kind of database: delete its line"),
    });
    findings.extend(unneeded);
    findings
}

/// The path of each line between the marks, as in ``- `crates/refrain/src/engine.rs`: why``. One that ends in `/` is a folder.
fn listed(text: &str) -> Vec<(usize, &str)> {
    let Some(begin) = text.find(BEGIN) else { return Vec::new() };
    let end = text.find(END).unwrap_or(text.len());
    let first = text.get(..begin).map_or(0, |before| before.lines().count()) + 2;
    let lines = text.get(begin + BEGIN.len()..end).unwrap_or_default().lines().enumerate();
    lines.filter_map(|(at, line)| Some((first + at, line.strip_prefix("- `")?.split_once('`')?.0))).collect()
}

fn covers(listed: &str, path: &str) -> bool {
    listed == path || (listed.ends_with('/') && path.starts_with(listed))
}

fn is_searched(path: &str) -> bool {
    let source = ["refrain", "refrain-core", "refrain-cli"]
        .iter()
        .find_map(|name| path.strip_prefix("crates/")?.strip_prefix(name)?.strip_prefix("/src/"));
    source.is_some_and(|path| {
        let home = path.trim_start_matches("user_").starts_with("database");
        let module = path.strip_suffix(".rs");
        module.is_some_and(|module| !module.ends_with("tests") && !home && module != "testing")
    })
}

/// The line of the first kind of database outside of `mod tests`. Documentation and strings do not count.
fn first_kind(tokens: TokenStream) -> Option<usize> {
    let (mut is_module, mut skips) = (false, false);
    for token in tokens {
        match &token {
            TokenTree::Group(_) if skips => skips = false,
            TokenTree::Group(group) => {
                if let Some(line) = first_kind(group.stream()) {
                    return Some(line);
                }
            }
            TokenTree::Ident(name) => {
                let word = name.to_string();
                if QUESTIONS.contains(&word.as_str()) || is_kind(&word) {
                    return Some(name.span().start().line);
                }
                skips = is_module && word == "tests";
                is_module = word == "mod";
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    None
}

fn is_kind(word: &str) -> bool {
    let rest = KINDS.iter().find_map(|kind| word.strip_prefix(*kind));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_uppercase))
}

#[test]
fn a_file_that_knows_unlisted_and_a_line_that_is_not_needed_are_found() {
    let document = format!(
        "# A\n{BEGIN}- `crates/refrain/src/run/horizon.rs`: why\n- `crates/refrain/src/bind/`: why\n{END}\n"
    );
    let found = |path: &str, text: &str| {
        let files = [
            (DOCUMENT, document.as_str()),
            ("crates/refrain/src/run/horizon.rs", "fn f(pool: &PgPool) {}"),
            ("crates/refrain/src/bind/values.rs", "fn f() -> D { D::Sqlite }"),
            (path, text),
        ];
        super::planted(are_known_where_listed, &files)
    };
    let store = "crates/refrain/src/store/claim.rs";
    for fault in [
        "fn f(database: &Database) -> bool { database.is_sqlite() }",
        "fn f(pool: SqlitePool) {}",
        "fn f(address: &Address) -> bool { matches!(address, Address::Postgres { .. }) }",
    ] {
        assert_eq!(found(store, fault), [format!("{store}:1")], "{fault}");
    }
    for (path, clean) in [
        (store, "/// On Sqlite.\nfn f() { \"is_sqlite\"; }\nmod tests { fn f() { is_sqlite(); } }"),
        (store, "struct Pgx; fn postgres() {}"),
        ("crates/refrain/src/user_database/sqlite.rs", "impl Backend for Sqlite {}"),
        ("crates/refrain/src/database.rs", "enum Database { Sqlite, Postgres }"),
        ("crates/refrain/tests/shop.rs", "fn f(pool: PgPool) {}"),
    ] {
        assert!(found(path, clean).is_empty(), "{clean}");
    }
    let empty = [(DOCUMENT, document.as_str())];
    assert_eq!(
        super::planted(are_known_where_listed, &empty),
        [format!("{DOCUMENT}:3"), format!("{DOCUMENT}:4")]
    );
}
