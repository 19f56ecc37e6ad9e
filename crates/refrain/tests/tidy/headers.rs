//! Every module opens with a few lines of why; every statement too.

use super::{File, Finding};

pub(crate) fn modules_say_why(files: &[File]) -> Vec<Finding> {
    let header = |file: &&File| {
        let (ending, opening) = if file.is(".rs") { (".rs", "//!") } else { (".sql", "--") };
        file.is(ending) && !file.text.starts_with(opening)
    };
    files
        .iter()
        .filter(header)
        .map(|file| Finding {
            path: file.path.clone(),
            line: 1,
            rule: "headers",
            what: "the file must begin with why it is there: `//!` in Rust, `--` in SQL".to_owned(),
        })
        .collect()
}

#[test]
fn a_missing_header_is_found() {
    let rust = "crates/refrain/src/a.rs";
    assert_eq!(super::planted(modules_say_why, &[(rust, "use std::fmt;\n")]), [format!("{rust}:1")]);
    assert_eq!(super::planted(modules_say_why, &[("sql/run/open.sql", "select 1;")]), ["sql/run/open.sql:1"]);
    let clean = [(rust, "//! Why.\n"), ("sql/run/open.sql", "-- Why.\nselect 1;"), ("README.md", "# A")];
    assert!(super::planted(modules_say_why, &clean).is_empty());
}
