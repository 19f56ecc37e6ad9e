//! Transactions begin in one file: those of the driver return a connection to its pool that may have a transaction
//! open, or lead to a server that does not answer.

use super::{File, Finding};

/// The file in which transactions begin.
const HELD: &str = "database/held.rs";
const RAW: [&str; 3] = [".begin()", ".begin_with(", "sqlx::Transaction::begin("];

pub(crate) fn begin_in_one_place(files: &[File]) -> Vec<Finding> {
    let sources = files.iter().filter(|file| {
        file.source_of("refrain").is_some_and(|path| path != HELD) || file.source_of("refrain-cli").is_some()
    });
    sources.flat_map(raw_beginnings).collect()
}

fn raw_beginnings(file: &File) -> Vec<Finding> {
    let code = file.lines().filter(|(_, text)| !text.trim_start().starts_with("//"));
    let raw = code.filter(|(_, text)| RAW.iter().any(|raw| text.contains(raw)));
    raw.map(|(line, _)| Finding {
        path: file.path.clone(),
        line,
        rule: "transactions",
        what: "a transaction begins through `Database` or `begun_in`, never on a pool itself".to_owned(),
    })
    .collect()
}

#[test]
fn a_raw_begin_is_found_everywhere_but_in_doc_examples() {
    let path = "crates/refrain/src/publish/writer.rs";
    let text = "//! Why.\nfn f() {\n    pool.begin().await;\n    /// let tx = pool.begin().await?;\n    pool.begin_with(how);\n}\n";
    let held = "crates/refrain/src/database/held.rs";
    let found = super::planted(begin_in_one_place, &[(path, text), (held, text)]);
    assert_eq!(found, [format!("{path}:3"), format!("{path}:5")]);
}
