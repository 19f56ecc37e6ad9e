//! Migrations: the same numbers and names for both databases, without gaps, and never edited.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::{File, Finding};

/// `…/migrations/{store,ledger}/{sqlite,postgres}/NNNN_name.sql`, taken apart.
struct Migration<'f> {
    set: String,
    database: &'f str,
    file: &'f str,
    path: &'f str,
}

fn migration(file: &File) -> Option<Migration<'_>> {
    let (before, rest) = file.path.split_once("migrations/")?;
    let [set @ ("store" | "ledger"), database @ ("sqlite" | "postgres"), name] =
        *rest.split('/').collect::<Vec<_>>()
    else {
        return None;
    };
    Some(Migration { set: format!("{before}migrations/{set}"), database, file: name, path: &file.path })
}

pub(crate) fn are_numbered_alike(files: &[File]) -> Vec<Finding> {
    let mut sets: BTreeMap<String, BTreeMap<&str, Vec<Migration<'_>>>> = BTreeMap::new();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is(".sql") && file.path.contains("migrations/")) {
        match migration(file) {
            Some(one) => sets.entry(one.set.clone()).or_default().entry(one.database).or_default().push(one),
            None => findings.push(Finding {
                path: file.path.clone(),
                line: 1,
                rule: "migrations",
                what: "a stray: migrations are migrations/{store,ledger}/{sqlite,postgres}/NNNN_name.sql"
                    .to_owned(),
            }),
        }
    }
    findings.extend(sets.into_values().flat_map(|databases| check(&databases)));
    findings
}

fn check(databases: &BTreeMap<&str, Vec<Migration<'_>>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |path: &str, what: String| {
        findings.push(Finding { path: path.to_owned(), line: 1, rule: "migrations", what });
    };
    let all: BTreeSet<&str> = databases.values().flatten().map(|one| one.file).collect();
    for database in ["sqlite", "postgres"] {
        let present: Vec<&Migration<'_>> = databases.get(database).into_iter().flatten().collect();
        for missing in all.iter().filter(|file| !present.iter().any(|one| one.file == **file)) {
            let other = databases.values().flatten().find(|one| one.file == *missing);
            find(
                other.map_or("", |one| one.path),
                format!("{database} has no migration of this number and name"),
            );
        }
        let mut sorted = present;
        sorted.sort_by_key(|one| one.file);
        for (at, one) in sorted.iter().enumerate() {
            let expected = format!("{at:04}_");
            if !one.file.starts_with(&expected) {
                find(one.path, format!("its number must be {expected}: numbers have no gaps and no twins"));
            }
        }
    }
    findings
}

/// The checksum of every migration, as `sha256sum` writes it in the directory of the migrations.
const CHECKSUMS: &str = "migrations/checksums.txt";

/// A store somewhere has applied this migration. Another text under its number would make two kinds of stores.
pub(crate) fn are_never_edited(files: &[File]) -> Vec<Finding> {
    let list = files.iter().find(|file| file.path.ends_with(CHECKSUMS));
    let listed = list.map_or("", |list| list.text.as_str()).lines();
    let mut listed: BTreeMap<&str, &str> =
        listed.filter_map(|line| line.split_once("  ")).map(|(checksum, path)| (path, checksum)).collect();
    let mut findings = Vec::new();
    let mut find = |path: &str, what: String| {
        findings.push(Finding { path: path.to_owned(), line: 1, rule: "migrations", what });
    };
    for file in files.iter().filter(|file| migration(file).is_some() && file.is(".sql")) {
        let path = file.path.split_once("migrations/").map_or("", |(_, path)| path);
        let checksum = Sha256::digest(file.text.as_bytes()).iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        match listed.remove(path) {
            Some(expected) if expected == checksum => {}
            Some(_) => find(
                &file.path,
                "an applied migration is never edited: restore it, and write the change as a new one"
                    .to_owned(),
            ),
            None => find(&file.path, format!("a new migration: add `{checksum}  {path}` to {CHECKSUMS}")),
        }
    }
    for gone in listed.keys() {
        find(CHECKSUMS, format!("{gone} is gone: an applied migration is never removed"));
    }
    findings
}

#[test]
fn a_migration_that_is_edited_added_or_removed_is_found() {
    let path = "crates/refrain/migrations/store/sqlite/0001_initial.sql";
    let list = |text: &'static str| ("crates/refrain/migrations/checksums.txt", text);
    let empty =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  store/sqlite/0001_initial.sql\n";
    assert!(super::planted(are_never_edited, &[(path, ""), list(empty)]).is_empty());
    assert_eq!(super::planted(are_never_edited, &[(path, "edited"), list(empty)]), [format!("{path}:1")]);
    assert_eq!(super::planted(are_never_edited, &[(path, ""), list("")]), [format!("{path}:1")]);
    assert_eq!(super::planted(are_never_edited, &[list(empty)]), ["migrations/checksums.txt:1"]);
}

#[test]
fn gaps_twins_and_strays_are_found() {
    let file = |database: &str, name: &str| format!("crates/refrain/migrations/store/{database}/{name}.sql");
    let tree = |names: &[(&str, &str)]| {
        let paths: Vec<String> = names.iter().map(|(database, name)| file(database, name)).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "-- Why.")).collect();
        super::planted(are_numbered_alike, &files).len()
    };
    let first = [("sqlite", "0000_migrations"), ("postgres", "0000_migrations")];
    assert_eq!(tree(&first), 0);
    assert_eq!(tree(&first[..1]), 1, "only one database has it");
    let gap = [first[0], first[1], ("sqlite", "0002_late"), ("postgres", "0002_late")];
    assert_eq!(tree(&gap), 2);
    let twins = [first[0], first[1], ("sqlite", "0000_other"), ("postgres", "0000_other")];
    assert_eq!(tree(&twins), 2);
    let stray = [first[0], first[1], ("mysql", "0001_initial")];
    assert_eq!(tree(&stray), 1);
}
