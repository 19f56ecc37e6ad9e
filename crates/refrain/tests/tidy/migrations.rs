//! Migrations: the same numbers and names for both databases, without gaps.

use std::collections::{BTreeMap, BTreeSet};

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
            let expected = format!("{:04}_", at + 1);
            if !one.file.starts_with(&expected) {
                find(one.path, format!("its number must be {expected}: numbers have no gaps and no twins"));
            }
        }
    }
    findings
}

#[test]
fn gaps_twins_and_strays_are_found() {
    let file = |database: &str, name: &str| format!("crates/refrain/migrations/store/{database}/{name}.sql");
    let tree = |names: &[(&str, &str)]| {
        let paths: Vec<String> = names.iter().map(|(database, name)| file(database, name)).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "-- Why.")).collect();
        super::planted(are_numbered_alike, &files).len()
    };
    let first = [("sqlite", "0001_initial"), ("postgres", "0001_initial")];
    assert_eq!(tree(&first), 0);
    assert_eq!(tree(&first[..1]), 1, "only one database has it");
    let gap = [first[0], first[1], ("sqlite", "0003_late"), ("postgres", "0003_late")];
    assert_eq!(tree(&gap), 2);
    let twins = [first[0], first[1], ("sqlite", "0001_other"), ("postgres", "0001_other")];
    assert_eq!(tree(&twins), 2);
    let stray = [first[0], first[1], ("mysql", "0001_initial")];
    assert_eq!(tree(&stray), 1);
}
