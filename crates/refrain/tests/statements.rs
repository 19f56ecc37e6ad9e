//! Every statement of the store is one that both databases understand, on the tables that the migrations make; and none
//! of them reads a table from one end to the other that grows with the work.
//!
//! A plan is judged on tables that are full, before and after the database has looked at what is in them: a queue that
//! fills and empties all day is never as the statistics say.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use refrain_harness as support;

use refrain::{Refrain, testing};
use serde_json::Value;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor, Row, SqlStr};
use support::TestDatabase;

/// Tables that grow with the work; the others have a row per job, worker or wish of a person.
const LARGE: [&str; 24] = [
    "audit",
    "runs",
    "queue",
    "delayed",
    "lanes",
    "lane_waits",
    "leases",
    "attempts",
    "outputs",
    "begun",
    "dedupes",
    "expansions",
    "effects",
    "counts",
    "unit_dedupes",
    "ledgers",
    "fences",
    "units",
    "checkpoints",
    "effect_dedupes",
    "arrivals",
    "intents",
    "publishes",
    "deltas",
];

/// Statements that read all of a large table, or its beginning, and may.
const MAY_SCAN: [(&str, &str); 8] = [
    ("sql/audit/list.sql", "the newest, no more than its limit"),
    ("sql/fsck/", "a person asked for all of it"),
    ("sql/queue/count.sql", "a person asked for all of it"),
    ("sql/delayed/of_scope.sql", "a person asked for all of it"),
    ("sql/dedupe/prune.sql", "the oldest, no more than its limit"),
    ("sql/effect_dedupe/prune.sql", "the oldest, no more than its limit"),
    ("sql/arrival/prune.sql", "the oldest, no more than its limit"),
    ("sql/effect/list.sql", "the newest, no more than its limit"),
];

/// Where the statements of the ledger are.
const OF_THE_LEDGER: [&str; 6] =
    ["sql/checkpoint/", "sql/fence/", "sql/intent/", "sql/ledger/", "sql/publish/", "sql/unit/"];

/// Those whose plans are not remembered, or need not last.
const FORGOTTEN: [(&str, &str); 10] = [
    ("sql/unit/in_doubt.sql", "a person asked, once"),
    ("sql/unit/update.sql", "planned anew each time"),
    ("sql/unit/raise_order.sql", "planned anew each time"),
    ("sql/unit/keep_first.sql", "planned anew each time"),
    ("sql/unit/restore.sql", "planned anew each time"),
    ("sql/intent/forget.sql", "planned anew each time"),
    ("sql/unit/unpark.sql", "a person asked, once"),
    ("sql/unit/confirm.sql", "a person asked, once"),
    ("sql/checkpoint/list.sql", "a person asked, once"),
    ("sql/unit/left_keys.sql", "a person asked, once"),
];

/// Ten thousand runs, most of them ended, of three jobs; hundreds in each place where an open run can stand.
const FILLED: [&str; 25] = [
    "insert into refrain_jobs (name, identity) values ('one', 'one'), ('two', 'two'), ('three', 'three')",
    "with recursive n (i) as (select 1 union all select i + 1 from n where i < 10000)
     insert into refrain_runs (job, attempt, opened_at, open, key, outcome)
     select 1 + i % 3, 1, 0, i % 10 = 0, 'key-' || i, case when i % 10 = 0 then null else 'done' end from n",
    "insert into refrain_queue (line, run, lease, attempt, spent, suspicion, lane)
     select job, id, case when id % 4 = 0 then id else null end, 1, 0, 0, job = 2 from refrain_runs where open",
    "insert into refrain_delayed (run, wake_at, line, attempt, spent, suspicion, lane)
     select id, id, job, 1, 0, 0, job = 2 from refrain_runs where id % 7 = 0",
    "insert into refrain_lanes (job, scope, run) select job, key, id from refrain_runs where id % 5 = 0",
    "insert into refrain_lane_waits (job, scope, key, run, line, attempt)
     select job, '', key, id, job, 1 from refrain_runs where id % 3 = 0",
    "insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at)
     select id, id % 500, job, id, id, 0 from refrain_runs where id % 2 = 0",
    "insert into refrain_attempts (run, number, ended, ended_at) select id, 0, 'errored', 0 from refrain_runs",
    "insert into refrain_outputs (run, attempt, number, stream, at, text)
     select id, 1, 1, 'stdout', 0, 'line' from refrain_runs",
    "insert into refrain_begun (run, attempt, at) select id, 1, 0 from refrain_runs",
    "insert into refrain_dedupes (run, at, asked) select id, 0, 'enqueue' from refrain_runs",
    "insert into refrain_expansions (run, scopes, hash) select id, 1, '' from refrain_runs where id % 9 = 0",
    "insert into refrain_effects (key, version, name, state, arrived_at)
     select key, 1, 'mail', 'pending', 0 from refrain_runs",
    "insert into refrain_counts (run, attempt, processed, skipped, deduplicated, failed)
     select id, 1, 1, 0, 0, 0 from refrain_runs",
    "insert into refrain_audit (at, verb, subject, run, unit) select 0, 'again', key, id, key from refrain_runs",
    "insert into refrain_unit_dedupes (run, attempt, reason, count, keys)
     select id, 1, 'stale', 1, '[]' from refrain_runs",
    "insert into refrain_ledgers (project, job, scope, window_start)
     select 'shop', 'job-' || job, '', key from refrain_runs",
    "insert into refrain_fences (project, job, run, attempt) select 'shop', 'job-' || job, key, 1 from refrain_runs",
    "insert into refrain_units (ledger, key, fence, at, version, attempt, failures, written, status)
     select id % 20, key, id, 0, 1, 1, 0, true, case when id % 50 = 0 then 'failed' else 'applied' end from refrain_runs",
    "insert into refrain_checkpoints (ledger, name, position, at) select id, 'billing', '', 0 from refrain_runs",
    "insert into refrain_intents (project, kind, name, key) select 'shop', 'run', 'mail', key from refrain_runs",
    "insert into refrain_effect_dedupes (effect, version, at, asked) select id, 1, 0, 'intent' from refrain_runs",
    "insert into refrain_arrivals (destination, intent, at) select 'there', id, 0 from refrain_runs",
    "insert into refrain_publishes (ledger, target, mode, rows, fence, attempt, version, at)
     select id, 'totals', 'overwrite', 1, id, 1, 1, 0 from refrain_runs",
    "insert into refrain_deltas (ledger, target, key, name, amount) select id, 'stock', key, 'qty', 1 from refrain_runs",
];

async fn migrated(database: &TestDatabase) {
    Refrain::migrate(&database.url()).await.unwrap();
}

async fn filled(database: &TestDatabase) {
    migrated(database).await;
    fill(database).await;
}

async fn fill(database: &TestDatabase) {
    if let TestDatabase::Postgres { pool, .. } = database {
        pool.execute(UNOBSERVED).await.unwrap();
    }
    for statement in FILLED {
        assert!(database.store(statement).await > 0, "{statement}");
    }
}

/// The server must not gather statistics of some tables by itself, in the middle of a test: it would be neither with nor without.
const UNOBSERVED: &str = "do $$ declare found name; begin
    for found in select tablename from pg_tables where schemaname = 'refrain' loop
        execute format('alter table refrain.%I set (autovacuum_enabled = false)', found);
    end loop;
end $$";

fn may_scan(name: &str) -> bool {
    MAY_SCAN.iter().any(|(beginning, _)| name.starts_with(beginning))
}

#[tokio::test]
async fn both_databases_understand_every_statement() {
    let (here, there) = (TestDatabase::sqlite().await, TestDatabase::postgres().await);
    migrated(&here).await;
    migrated(&there).await;
    let (TestDatabase::Sqlite { pool: here, .. }, TestDatabase::Postgres { pool: there, .. }) =
        (&here, &there)
    else {
        unreachable!()
    };
    assert!(testing::statements().len() > 50);
    for (name, sqlite, postgres) in testing::statements() {
        let prepared = here.prepare(SqlStr::from_static(sqlite)).await;
        assert!(prepared.is_ok(), "{name} on SQLite: {}\n{sqlite}", prepared.unwrap_err());
        let prepared = there.prepare(SqlStr::from_static(postgres)).await;
        assert!(prepared.is_ok(), "{name} on PostgreSQL: {}\n{postgres}", prepared.unwrap_err());
    }
}

#[tokio::test]
async fn sqlite_finds_every_row_by_an_index() {
    let database = TestDatabase::sqlite().await;
    filled(&database).await;
    let TestDatabase::Sqlite { pool, .. } = &database else { unreachable!() };
    let mut found = Vec::new();
    for statistics in ["without statistics", "with statistics"] {
        for (name, text, _) in testing::statements().into_iter().filter(|(name, ..)| !may_scan(name)) {
            let plan = sqlx::query(AssertSqlSafe(format!("explain query plan {text}")))
                .fetch_all(pool)
                .await
                .unwrap();
            let steps = plan.iter().map(|row| row.get::<String, _>("detail"));
            let scans = steps.filter(|step| scanned(step).is_some_and(|table| LARGE.contains(&table)));
            found.extend(scans.map(|step| format!("{name}, {statistics}: {step}")));
        }
        pool.execute("analyze").await.unwrap();
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    let plan = "SCAN refrain_runs USING INDEX sqlite_autoindex_refrain_runs_1";
    assert_eq!((scanned(plan), scanned("SEARCH runs USING INDEX")), (Some("runs"), None));
}

/// SQLite has no index of the rows that a statement brings: each look at them reads them all. So they are read once, and for each
/// the row of the table is found; the other way round a claim of 2,000 from a line of 50,000 reads a hundred million.
#[tokio::test]
async fn sqlite_reads_the_rows_that_a_statement_brings_once() {
    let database = TestDatabase::sqlite().await;
    migrated(&database).await;
    let TestDatabase::Sqlite { pool, .. } = &database else { unreachable!() };
    let (mut found, mut lists) = (Vec::new(), 0);
    for round in ["empty", "full", "full, with statistics"] {
        for (name, text, _) in testing::statements() {
            let explained = sqlx::query(AssertSqlSafe(format!("explain query plan {text}")));
            let plan = explained.fetch_all(pool).await.unwrap();
            let steps: Vec<Step> =
                plan.iter().map(|row| (row.get("id"), row.get("parent"), row.get("detail"))).collect();
            lists += usize::from(steps.iter().any(|(.., step)| step.contains("jsonb_each")));
            found.extend(read_again(&steps).map(|step| format!("{name}, {round}: {step}")));
        }
        match round {
            "empty" => fill(&database).await,
            _ => drop(pool.execute("analyze").await.unwrap()),
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(lists > 3 * 30, "{lists}");
}

/// A step of a plan: its number, that of the step above it, and what it does.
type Step = (i64, i64, String);

/// Steps that read a list of rows once for each row of a table, or of a query around them. Steps with the same parent are loops
/// within one another; a list that is copied has the name of its copy.
fn read_again(steps: &[Step]) -> impl Iterator<Item = &str> {
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

/// The table that a step of SQLite's plan reads from one end to the other, by its name or its alias.
fn scanned(step: &str) -> Option<&str> {
    let table = step.strip_prefix("SCAN ")?.split(' ').next()?;
    Some(table.strip_prefix("refrain_").unwrap_or(table))
}

#[tokio::test]
async fn postgres_finds_every_row_by_an_index() {
    let database = TestDatabase::postgres().await;
    filled(&database).await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let mut connection = pool.acquire().await.unwrap();
    connection.execute(AssertSqlSafe(testing::begin_on_postgres())).await.unwrap();
    let mut found = Vec::new();
    for statistics in ["without statistics", "with statistics"] {
        for (name, _, text) in testing::statements().into_iter().filter(|(name, ..)| !may_scan(name)) {
            let plan = plan_of(&mut connection, text).await;
            let mut scans = Vec::new();
            scans_of(&plan, false, &mut scans);
            found.extend(scans.into_iter().map(|scan| format!("{name}, {statistics}: {scan}")));
        }
        connection.execute("analyze").await.unwrap();
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test]
async fn what_postgres_plans_for_an_empty_ledger_it_may_remember_when_that_is_full() {
    let database = TestDatabase::postgres().await;
    migrated(&database).await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let mut connection = pool.acquire().await.unwrap();
    connection.execute("vacuum (analyze)").await.unwrap();
    connection.execute(AssertSqlSafe(testing::begin_on_postgres())).await.unwrap();
    let mut found = Vec::new();
    for (name, _, text) in testing::statements() {
        let is_asked = OF_THE_LEDGER.iter().any(|folder| name.starts_with(folder));
        if is_asked && FORGOTTEN.iter().all(|(other, _)| name != *other) {
            let mut scans = Vec::new();
            scans_of(&plan_of(&mut connection, text).await, false, &mut scans);
            found.extend(scans.into_iter().map(|scan| format!("{name}: {scan}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The plan of a statement for any arguments, of the types that the store binds: integers are always wide.
async fn plan_of(connection: &mut PgConnection, text: &str) -> Value {
    connection.execute(AssertSqlSafe(format!("prepare inferred as {text}"))).await.unwrap();
    let types = "select coalesce(array_to_string(parameter_types, ','), '') from pg_prepared_statements where name = 'inferred'";
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

/// Steps that read a large table from one end to the other. Its beginning, up to a limit, is not that.
fn scans_of(node: &Value, is_limited: bool, found: &mut Vec<String>) {
    match node {
        Value::Array(nodes) => nodes.iter().for_each(|node| scans_of(node, is_limited, found)),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            let kind = text("Node Type").unwrap_or_default();
            let reads_all = kind == "Seq Scan"
                || (kind.starts_with("Index") && fields.get("Index Cond").is_none() && !is_limited);
            if let Some(table) = text("Relation Name").filter(|table| reads_all && LARGE.contains(table)) {
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
fn rows_that_are_read_again_are_seen_in_a_plan() {
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

#[test]
fn a_scan_in_a_plan_is_seen() {
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
