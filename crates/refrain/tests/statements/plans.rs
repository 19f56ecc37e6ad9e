//! Which whole tables the plan of a statement reads.

use serde_json::Value;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor, Row};

use crate::is_small;

/// The tables that a step of SQLite's plan scans. The step has their alias in the statement, if there is one.
pub(crate) fn scanned<'t>(step: &'t str, text: &'t str) -> Vec<&'t str> {
    let Some(name) = step.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next()) else {
        return Vec::new();
    };
    if let Some(table) = name.strip_prefix("refrain_") {
        return vec![table];
    }
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mentions = text.split("refrain_").skip(1).filter_map(|mention| {
        let (table, after) = mention.split_at(mention.find(|letter| !is_word(letter))?);
        let after = after.trim_start();
        let alias = after.strip_prefix("as ").unwrap_or(after).trim_start();
        let alias = alias.split(|letter| !is_word(letter)).next()?;
        (alias == name).then_some(table)
    });
    mentions.collect()
}

#[test]
fn a_scan_is_recognized_by_the_name_of_the_table_and_by_its_alias() {
    let text =
        "insert into refrain_lanes as held (job) select 1 from refrain_runs as runs, jsonb_each($1) as r";
    assert_eq!(scanned("SCAN refrain_runs USING INDEX sqlite_autoindex_refrain_runs_1", text), ["runs"]);
    assert_eq!(scanned("SCAN held", text), ["lanes"]);
    let twice = "select 1 from refrain_jobs as x union select 1 from (select 1 from refrain_runs x)";
    assert_eq!(scanned("SCAN x", twice), ["jobs", "runs"], "one alias can stand for two tables");
    for clean in ["SEARCH runs USING INDEX", "SCAN r VIRTUAL TABLE INDEX 1:", "SCAN 2-ROW VALUES CLAUSE"] {
        assert_eq!(scanned(clean, text), [""; 0], "{clean}");
    }
}

/// A step of a plan: its number, that of the step above it, and what it does.
pub(crate) type Step = (i64, i64, String);

/// Steps that read a list of rows once for each row of a table, or of an outer query. Steps with the same parent are
/// nested loops; a list that is copied has the name of its copy.
pub(crate) fn read_again(steps: &[Step]) -> impl Iterator<Item = &str> {
    let is_loop = |step: &str| ["SCAN ", "SEARCH ", "MULTI-INDEX OR"].iter().any(|one| step.starts_with(one));
    let above = move |at: i64| steps.iter().find(move |(id, ..)| *id == at);
    let is_correlated = move |mut at: i64| {
        while let Some((_, parent, step)) = above(at) {
            if step.starts_with("CORRELATED") {
                return true;
            }
            at = *parent;
        }
        false
    };
    let copies =
        steps.iter().filter(|(.., step)| step.contains("jsonb_each")).filter_map(move |(_, parent, _)| {
            above(*parent)?.2.strip_prefix("MATERIALIZE ").map(|name| format!("SCAN {name}"))
        });
    let copies: Vec<String> = copies.collect();
    let is_list = move |step: &str| step.contains("jsonb_each") || copies.iter().any(|copy| step == copy);
    let is_inner = move |(id, parent, _): &Step| {
        let mut before = steps.iter().take_while(|(other, ..)| other != id);
        before.any(|(_, other, step)| other == parent && is_loop(step)) || is_correlated(*parent)
    };
    steps.iter().filter(move |step| is_list(&step.2) && is_inner(step)).map(|(.., step)| step.as_str())
}

#[test]
fn a_repeated_read_is_recognized_in_a_plan() {
    let read = |steps: &[(i64, i64, &str)]| -> Vec<String> {
        let steps: Vec<_> =
            steps.iter().map(|(id, parent, step)| (*id, *parent, (*step).to_owned())).collect();
        read_again(&steps).map(str::to_owned).collect()
    };
    let (rows, run) = ("SCAN jsonb_each VIRTUAL TABLE INDEX 1:", "SEARCH runs USING PRIMARY KEY (id=?)");
    assert!(read(&[(5, 0, rows), (13, 0, run)]).is_empty());
    assert_eq!(read(&[(5, 0, run), (13, 0, rows)]), [rows]);
    assert!(read(&[(5, 0, run), (13, 0, "LIST SUBQUERY 1"), (14, 13, rows)]).is_empty());
    assert_eq!(read(&[(1, 0, "MATERIALIZE r"), (2, 1, rows), (5, 0, run), (13, 0, "SCAN r")]), ["SCAN r"]);
    assert_eq!(read(&[(5, 0, run), (13, 0, "CORRELATED SCALAR SUBQUERY 1"), (14, 13, rows)]), [rows]);
}

/// The plan of a statement for any arguments, of the types that the store binds: integers are always wide.
pub(crate) async fn plan_of(connection: &mut PgConnection, text: &str) -> Value {
    connection.execute(AssertSqlSafe(format!("prepare inferred as {text}"))).await.unwrap();
    let types = "select coalesce(array_to_string(parameter_types, ','), '')
        from pg_prepared_statements where name = 'inferred'";
    let types: String = sqlx::query_scalar(types).fetch_one(&mut *connection).await.unwrap();
    let types: Vec<&str> =
        types.split(',').map(|one| if one == "integer" { "bigint" } else { one }).collect();
    let (declared, nothing) = match types.as_slice() {
        [""] => (String::new(), String::new()),
        types => (format!("({})", types.join(", ")), format!("({})", vec!["null"; types.len()].join(", "))),
    };
    connection.execute(AssertSqlSafe(format!("prepare typed {declared} as {text}"))).await.unwrap();
    let explain = AssertSqlSafe(format!("explain (format json) execute typed {nothing}"));
    let plan: Value = {
        let row = connection.fetch_one(explain).await.unwrap();
        serde_json::from_str(row.try_get_raw(0).unwrap().as_str().unwrap()).unwrap()
    };
    connection.execute("deallocate inferred; deallocate typed").await.unwrap();
    plan
}

/// Steps that scan a large table. Reading only its beginning, up to a limit, is not a scan.
pub(crate) fn scans_of(node: &Value, is_limited: bool, found: &mut Vec<String>) {
    match node {
        Value::Array(nodes) => nodes.iter().for_each(|node| scans_of(node, is_limited, found)),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            let kind = text("Node Type").unwrap_or_default();
            let reads_all = kind == "Seq Scan"
                || (kind.starts_with("Index") && fields.get("Index Cond").is_none() && !is_limited);
            if let Some(table) = text("Relation Name").filter(|table| reads_all && !is_small(table)) {
                found.push(format!("{kind} of {table}"));
            }
            let is_limited = kind == "Limit" || (is_limited && kind == "LockRows");
            ["Plan", "Plans"].iter().filter_map(|name| fields.get(*name)).for_each(|below| {
                scans_of(below, is_limited, found);
            });
        }
        _ => {}
    }
}

#[test]
fn a_scan_is_recognized_in_a_plan_of_postgres() {
    let plan = |text: &str| {
        let mut found = Vec::new();
        scans_of(&serde_json::from_str(text).unwrap(), false, &mut found);
        found
    };
    let scan = r#"[{"Plan": {"Node Type": "Nested Loop", "Plans": [{"Node Type": "Seq Scan", "Relation Name": "runs"}]}}]"#;
    assert_eq!(plan(scan), ["Seq Scan of runs"]);
    let whole = r#"{"Plan": {"Node Type": "Index Scan", "Relation Name": "queue"}}"#;
    assert_eq!(plan(whole), ["Index Scan of queue"]);
    let first = r#"{"Plan": {"Node Type": "Limit", "Plans": [{"Node Type": "Index Scan", "Relation Name": "queue"}]}}"#;
    assert!(plan(first).is_empty());
    let found =
        r#"{"Plan": {"Node Type": "Index Scan", "Relation Name": "queue", "Index Cond": "(line = 1)"}}"#;
    assert!(plan(found).is_empty());
}
