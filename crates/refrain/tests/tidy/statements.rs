//! Every statement in a file is used: a `.sql` that nothing includes is dead, or drifts.

use super::{File, Finding};

pub(crate) fn are_in_place_and_used(files: &[File]) -> Vec<Finding> {
    let fault = |statement: &File| {
        let path = format!("/{}", statement.path);
        match path.rsplit_once("/sql/") {
            // `include_str!` has a path relative to the including file; the two paths have their end in common.
            Some((_, end)) => {
                let included = format!("sql/{end}\"");
                let used = files.iter().any(|file| file.is(".rs") && file.text.contains(&included));
                (!used).then_some("no Rust file includes this statement: delete it")
            }
            None if path.contains("/migrations/") => None,
            // A text that a test substitutes for a statement, to show that it notices.
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

/// The only comments allowed inside a statement: PostgreSQL executes them, and SQLite does not
/// (`database/statement.rs`).
const POSTGRES_ALONE: [&str; 4] = ["for update", "for share", "for key share", "order by "];

/// A statement is rewritten as text, so it must not contain text that would be rewritten wrongly.
pub(crate) fn can_be_rewritten(files: &[File]) -> Vec<Finding> {
    let statements = files.iter().filter(|file| {
        file.is(".sql") && !file.is(".sqlite.sql") && format!("/{}", file.path).contains("/sql/")
    });
    statements
        .flat_map(|file| {
            let header = file.lines().take_while(|(_, line)| line.starts_with("--")).count();
            let faults =
                file.lines().skip(header).filter_map(|(at, line)| Some((at, rewritten_wrongly(line)?)));
            faults.map(|(line, what)| Finding {
                path: file.path.clone(),
                line,
                rule: "statements",
                what: what.to_owned(),
            })
        })
        .collect()
}

fn rewritten_wrongly(line: &str) -> Option<&'static str> {
    let mut comments = line.split("/*").skip(1);
    let is_known = |comment: &str| {
        comment.contains("*/") && POSTGRES_ALONE.iter().any(|known| comment.starts_with(known))
    };
    let mut literals = line.split('\'').skip(1).step_by(2);
    let mut before_prefix =
        line.match_indices("refrain_").filter_map(|(at, _)| line.get(..at)?.chars().last());
    if line.contains("--") {
        return Some("a comment inside a statement: write it into the header");
    }
    if !comments.all(is_known) {
        return Some(
            "PostgreSQL executes what is in a comment: only a lock, or an order for one, may be in it",
        );
    }
    if literals.any(|text| text.contains("refrain_") || text.contains("/*")) {
        return Some("this literal has another text on PostgreSQL");
    }
    before_prefix
        .any(|before| before.is_alphanumeric() || before == '_')
        .then_some("the end of this name would be taken for the prefix of our tables")
}

#[test]
fn a_statement_that_would_be_rewritten_wrongly_is_found() {
    let path = "crates/refrain/sql/run/open.sql";
    let found = |text: &str| super::planted(can_be_rewritten, &[(path, text)]).len();
    let sound =
        "-- Why /* and */ 'refrain_'.\nselect id from refrain_runs order by id /*for update skip locked*/";
    assert_eq!(found(sound), 0);
    for text in [
        "select 1 /* a reason */",
        "select 1 /*for update",
        "select 1 -- a reason",
        "select 'refrain_runs'",
        "select '/*for update*/'",
        "select id from old_refrain_runs",
    ] {
        assert_eq!(found(&format!("-- Why.\n{text}")), 1, "{text}");
    }
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
