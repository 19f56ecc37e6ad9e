//! Every statement in a file is used: a `.sql` that nothing includes is dead, or drifts.

use super::{File, Finding};

pub(crate) fn are_referenced(files: &[File]) -> Vec<Finding> {
    let statements = files.iter().filter(|file| file.is(".sql") && file.path.contains("/sql/"));
    statements
        .filter(|statement| {
            // `include_str!` gives a path from the including file; its end is what both have in common.
            let end = statement.path.rsplit_once("/sql/").map_or("", |(_, end)| end);
            !files.iter().any(|file| file.is(".rs") && file.text.contains(&format!("sql/{end}\"")))
        })
        .map(|statement| Finding {
            path: statement.path.clone(),
            line: 1,
            rule: "statements",
            what: "no Rust file includes this statement: delete it".to_owned(),
        })
        .collect()
}

#[test]
fn a_statement_that_nothing_includes_is_found() {
    let statement = ("crates/refrain/sql/run/open.sql", "-- Why.\nselect 1;");
    let user = ("crates/refrain/src/store/catalog.rs", "include_str!(\"../../sql/run/open.sql\")");
    assert!(super::planted(are_referenced, &[statement, user]).is_empty());
    assert_eq!(super::planted(are_referenced, &[statement]), ["crates/refrain/sql/run/open.sql:1"]);
}
