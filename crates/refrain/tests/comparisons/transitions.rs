//! Every statement that writes the status of a unit, on a row in each state: what it writes is a transition of the table.
//!
//! The guards of these statements are in SQL, where the table cannot be asked. So each is listed here with the events that it may
//! record, and executed. A statement that is not listed is found, and so is one that writes anything else.

use refrain::core::state::{Machine, UnitEvent, UnitState};
use refrain::{Refrain, testing};
use refrain_harness::TestDatabase;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use super::{texts, with};

/// A row of the key `k` in each state: content 5 in version 1, recorded by attempt 2 of the run 7 under the nonce 9.
const ROWS: [(&str, &str); 5] = [
    ("absent", ""),
    ("applied", "0, true, 'applied', null, null"),
    ("failed", "1, false, 'failed', '{}', null"),
    ("parked", "3, false, 'parked', '{}', null"),
    // In doubt.
    ("parked", "0, false, 'parked', '{}', 50"),
];

/// A statement, its arguments, and the events that it may record. `STATUS` and `FAILURES` are those of the row.
#[derive(Clone, Copy)]
struct Write {
    statement: &'static str,
    arguments: &'static [&'static str],
    events: &'static [UnitEvent],
    /// Whether it starts the unit over, as a redo does: then the state before does not matter.
    starts_over: bool,
}

const fn write(
    statement: &'static str,
    arguments: &'static [&'static str],
    events: &'static [UnitEvent],
) -> Write {
    Write { statement, arguments, events, starts_over: false }
}

const fn anew(write: Write) -> Write {
    Write { starts_over: true, ..write }
}

const READ: &str = "'[[1, \"k\", 5, 6, 1, 5, 6, \"STATUS\", FAILURES]]'";

const WRITES: [Write; 19] = [
    write("unit/insert", &["1", "1", "7", "2", "9", "'applied'", "'[[\"k\", 5, 6]]'"], &[UnitEvent::Applied]),
    write("unit/claim", &["1", "'k'", "5", "'applied'"], &[UnitEvent::Applied]),
    write("unit/claim_many", &["'applied'", "'[[1, \"k\", 5, 7, 2, 9, 1]]'"], &[UnitEvent::Applied]),
    anew(write("unit/update", &["1", "7", "2", "9", "'applied'", READ], &[UnitEvent::Applied])),
    anew(write(
        "unit/page",
        &["1", "'k'", "1", "7", "2", "5", "'{}'", "9", "'applied'"],
        &[UnitEvent::Applied],
    )),
    write(
        "unit/fail",
        &["1", "'k'", "1", "7", "3", "5", "6", "1", "'failed'", "'{}'", "'why'", "null", "null", "9"],
        &[UnitEvent::Failed],
    ),
    write(
        "unit/fail",
        &["1", "'k'", "1", "7", "2", "5", "6", "3", "'parked'", "'{}'", "'why'", "null", "null", "9"],
        &[UnitEvent::GaveUp],
    ),
    anew(write(
        "unit/fail",
        &["1", "'k'", "1", "7", "3", "5", "6", "1", "'failed'", "'{}'", "'why'", "3", "null", "9"],
        &[UnitEvent::Failed],
    )),
    write(
        "unit/blame",
        &["1", "1", "7", "3", "-2", "'why'", "null", "null", "9", "'parked'", "'[[\"k\", 5, 6, \"{}\"]]'"],
        &[UnitEvent::Suspected],
    ),
    anew(write(
        "unit/blame",
        &["1", "1", "7", "3", "-2", "'why'", "null", "3", "9", "'parked'", "'[[\"k\", 5, 6, \"{}\"]]'"],
        &[UnitEvent::Suspected],
    )),
    // A redo reserves what is applied: the judge has decided over the row that this compares.
    anew(write(
        "unit/reserve",
        &[
            "1",
            "'k'",
            "1",
            "7",
            "2",
            "5",
            "6",
            "0",
            "'{}'",
            "'why'",
            "1",
            "5",
            "6",
            "'STATUS'",
            "FAILURES",
            "1000000000000000000",
            "9",
            "'parked'",
        ],
        &[UnitEvent::Reserved],
    )),
    write("unit/doubt", &["1", "'k'", "7", "2", "'why'", "5", "9", "'parked'"], &[UnitEvent::Reserved]),
    write("unit/unsend", &["1", "'k'", "7", "2", "5", "9", "'failed'"], &[UnitEvent::Failed]),
    write("unit/confirm", &["'shop'", "'sync'", "'k'", "null", "''", "'applied'"], &[UnitEvent::Applied]),
    write("unit/confirm_late", &["1", "'k'", "7", "2", "1", "5", "9", "'applied'"], &[UnitEvent::Applied]),
    write("unit/unpark", &["'shop'", "'sync'", "'k'", "null", "''", "'failed'"], &[UnitEvent::Retried]),
    // A unit that a restored store does not know is recorded as if it were new.
    anew(write(
        "unit/forgotten",
        &["1", "'k'", "1", "7", "5", "6", "'{}'", "'why'", "50", "1000", "'parked'"],
        &[UnitEvent::Reserved],
    )),
    // These two undo a failed try of other content: the row is about the applied content again.
    anew(write(
        "unit/restore",
        &["1", "'applied'", "'[[1, \"k\", 4, 6, 1, 5, 6, \"STATUS\", FAILURES]]'"],
        &[UnitEvent::Applied],
    )),
    anew(write("unit/keep_first", &["'applied'", "'[[1, \"k\"]]'"], &[UnitEvent::Applied])),
];

/// Status, version and content of the row, and everything that shows whether it was written.
type Recorded = Option<(String, i64, Option<i64>, String)>;

async fn recorded(connection: &mut sqlx::SqliteConnection) -> Recorded {
    let read = "select status, version, fingerprint, json_array(status, version, fingerprint, fence, at, attempt, nonce, failures,
        written, input, message, sent, applied_version) as all_of_it from refrain_units where key = 'k'";
    let row = connection.fetch_optional(read).await.unwrap()?;
    Some((row.get(0), row.get(1), row.get(2), row.get(3)))
}

/// What a statement does to a row in one of the states, held against the table. True if it wrote.
async fn judged(
    database: &TestDatabase,
    text: &str,
    (status, row): (&str, &str),
    write: &Write,
) -> Result<bool, String> {
    let TestDatabase::Sqlite { pool, .. } = database else { unreachable!() };
    let mut transaction = pool.begin().await.unwrap();
    transaction
        .execute("insert into refrain_ledgers (id, project, job, scope, window_start) values (1, 'shop', 'sync', '', '')")
        .await
        .unwrap();
    if !row.is_empty() {
        let insert = format!(
            "insert into refrain_units (ledger, key, fingerprint, ordinal, fence, at, version, attempt, nonce, failures, written,
                status, input, sent, applied_version, applied_fingerprint, applied_at)
             select 1, 'k', 5, 6, 7, 100, 1, 2, 9, {row}, other.version, other.content, other.at
             from (select case when '{status}' = 'applied' then null else 1 end as version,
                 case when '{status}' = 'applied' then null else 4 end as content,
                 case when '{status}' = 'applied' then null else 90 end as at) as other"
        );
        transaction.execute(AssertSqlSafe(insert)).await.unwrap();
        if write.statement == "unit/keep_first" {
            transaction.execute("update refrain_units set written = true").await.unwrap();
        }
    }
    let failures = row.split(',').next().filter(|first| !first.is_empty()).unwrap_or("0");
    let arguments: Vec<String> = write
        .arguments
        .iter()
        .map(|argument| argument.replace("STATUS", status).replace("FAILURES", failures))
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let before = recorded(&mut transaction).await;
    transaction.execute(AssertSqlSafe(with(text, &arguments))).await.expect(write.statement);
    let after = recorded(&mut transaction).await;
    transaction.rollback().await.unwrap();
    let (Some((to, ..)), true) = (&after, before != after) else { return Ok(false) };
    let same = |one: &Recorded, other: &Recorded| match (one, other) {
        (Some((_, version, content, _)), Some((_, other_version, other_content, _))) => {
            (version, content) == (other_version, other_content)
        }
        _ => false,
    };
    let from: UnitState = match before {
        _ if write.starts_over || !same(&before, &after) => UnitState::START,
        Some((status, ..)) => status.parse().unwrap(),
        None => UnitState::START,
    };
    let to: UnitState = to.parse().unwrap();
    let reached: Vec<_> = write.events.iter().map(|event| from.apply(*event)).collect();
    if reached.contains(&Ok(to)) {
        return Ok(true);
    }
    Err(format!("{}: {from} becomes {to}, which is none of {reached:?}", write.statement))
}

async fn migrated() -> TestDatabase {
    let database = TestDatabase::sqlite().await;
    Refrain::migrate(&database.url()).await.unwrap();
    database
}

#[tokio::test]
async fn i20_each_statement_that_writes_a_status_writes_a_transition_of_the_table() {
    let database = migrated().await;
    for write in &WRITES {
        let (text, _) = texts(write.statement);
        let mut has_written = false;
        // The entry of a page is applied or absent; its key is not one of a unit.
        let rows = if write.statement == "unit/page" { &ROWS[..2] } else { &ROWS[..] };
        for row in rows.iter().copied() {
            has_written |= judged(&database, text, row, write).await.unwrap();
        }
        assert!(has_written, "{} wrote to no row", write.statement);
    }
}

#[test]
fn i20_no_other_statement_writes_the_status_of_a_unit() {
    let writes = |text: &str| {
        let set = text.split_once("update refrain_units").and_then(|(_, rest)| rest.split_once("set "));
        let set = set.map_or("", |(_, rest)| rest.split("\nwhere").next().unwrap_or_default());
        let is_set = set.split(',').any(|one| one.trim_start().starts_with("status ="));
        is_set || text.contains("insert into refrain_units")
    };
    let all = testing::statements().into_iter().filter(|(_, text, _)| writes(text));
    let is_listed = |name: &str| WRITES.iter().any(|write| name == format!("sql/{}.sql", write.statement));
    let missing: Vec<&str> = all.map(|(name, ..)| name).filter(|name| !is_listed(name)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "list these statements with the events that they record");
}

#[tokio::test]
async fn i20_a_planted_transition_that_is_not_in_the_table_is_found() {
    let database = migrated().await;
    let planted = write("planted", &[], &[UnitEvent::Failed, UnitEvent::GaveUp, UnitEvent::Reserved]);
    for status in ["failed", "parked"] {
        let text = format!("update refrain_units set status = '{status}' where key = 'k'");
        let fault = judged(&database, &text, ROWS[1], &planted).await.unwrap_err();
        assert!(fault.starts_with(&format!("planted: applied becomes {status}")), "{fault}");
    }
}
