//! Every statement in a file is used: a `.sql` that nothing includes is dead, or drifts.

use super::{File, Finding};

pub(crate) fn are_in_place_and_used(files: &[File]) -> Vec<Finding> {
    let fault = |statement: &File| {
        let path = format!("/{}", statement.path);
        match path.rsplit_once("/sql/") {
            // `include_str!` gives a path from the including file; its end is what both have in common.
            Some((_, end)) => {
                let included = format!("sql/{end}\"");
                let used = files.iter().any(|file| file.is(".rs") && file.text.contains(&included));
                (!used).then_some("no Rust file includes this statement: delete it")
            }
            None if path.contains("/migrations/") => None,
            // A text that a test puts in the place of a statement, to show that it notices.
            None if path.contains("/tests/crash/weakened/") => {
                let name = path.rsplit('/').next().unwrap_or_default();
                let used =
                    files.iter().any(|file| file.is(".rs") && file.text.contains(&format!("\"{name}\"")));
                (!used).then_some("no test uses this weakened statement: delete it")
            }
            None => Some("a statement lives in a directory `sql`, a migration in `migrations`: move it"),
        }
    };
    files
        .iter()
        .filter(|file| file.is(".sql"))
        .filter_map(|file| Some((file, fault(file)?)))
        .map(|(file, what)| Finding {
            path: file.path.clone(),
            line: 1,
            rule: "statements",
            what: what.to_owned(),
        })
        .collect()
}

#[test]
fn a_statement_that_nothing_includes_is_found() {
    let statement = ("crates/refrain/sql/run/open.sql", "-- Why.\nselect 1;");
    let user = ("crates/refrain/src/store/catalog.rs", "include_str!(\"../../sql/run/open.sql\")");
    assert!(super::planted(are_in_place_and_used, &[statement, user]).is_empty());
    assert_eq!(super::planted(are_in_place_and_used, &[statement]), ["crates/refrain/sql/run/open.sql:1"]);
}

#[test]
fn a_weakened_statement_that_no_test_uses_is_found() {
    let weakened = ("crates/refrain/tests/crash/weakened/front.sql", "-- Why.\nselect 1;");
    let user = ("crates/refrain/tests/crash/weakened.rs", "(\"sql/queue/front.sql\", \"front.sql\")");
    assert!(super::planted(are_in_place_and_used, &[weakened, user]).is_empty());
    assert_eq!(super::planted(are_in_place_and_used, &[weakened]).len(), 1);
}

#[test]
fn a_statement_out_of_place_is_found() {
    for stray in ["crates/refrain/src/store/open.sql", "crates/refrain/tests/mysql/open.sql", "open.sql"] {
        let user = ("crates/refrain/src/store/catalog.rs", "include_str!(\"open.sql\")");
        assert_eq!(
            super::planted(are_in_place_and_used, &[(stray, "-- Why.\nselect 1;"), user]),
            [format!("{stray}:1")]
        );
    }
    let migration = "crates/refrain/migrations/store/sqlite/0001_initial.sql";
    assert!(super::planted(are_in_place_and_used, &[(migration, "-- Why.\nselect 1;")]).is_empty());
}
