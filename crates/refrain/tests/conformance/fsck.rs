//! Each rule of the store is broken once by hand, and `fsck` names it.

use refrain::{CatchUp, Refrain};
use refrain_harness::every_store;

use refrain_harness::TestDatabase;
use refrain_harness::work::{daily, is_sound, june, nothing, open};

/// The findings, as `fsck` words them.
async fn found(refrain: &Refrain) -> Vec<&'static str> {
    let mut found: Vec<_> = refrain.fsck().await.unwrap().into_iter().map(|finding| finding.what).collect();
    found.dedup();
    found
}

/// How many findings are of one kind.
async fn found_all(what: &str, refrain: &Refrain) -> usize {
    refrain.fsck().await.unwrap().iter().filter(|finding| finding.what == what).count()
}

/// A store with runs in every queue: two windows, one of which waits, and two keys.
async fn populated(database: &TestDatabase) -> Refrain {
    let jobs =
        [nothing("report").timetable(daily()).catch_up(CatchUp::All), nothing("welcome").concurrency(2)];
    let refrain = open(database, jobs).await;
    refrain.open_due(june("03T06:00")).await.unwrap();
    refrain.enqueue("welcome", "done", &()).await.unwrap();
    refrain.run("welcome#done", refrain::Ask::Once).await.unwrap();
    refrain.enqueue("welcome", "queued", &()).await.unwrap();
    is_sound(&refrain).await;
    refrain
}

/// How to break a rule, how to repair it, and the finding in between.
const FAULTS: [(&str, &str, &str); 20] = [
    (
        "update refrain_runs set open = true where key = 'done'",
        "update refrain_runs set open = false where key = 'done'",
        "an open run is in no queue (queue, delayed, lane_waits); it would never run",
    ),
    (
        "insert into refrain_delayed (run, wake_at, line, attempt, spent, suspicion, lane)
         select id, 0, job, 1, 0, 0, false from refrain_runs where key = 'queued'",
        "delete from refrain_delayed",
        "a run is in two queues, or in one although it is not open",
    ),
    (
        "insert into refrain_delayed (run, wake_at, line, attempt, spent, suspicion, lane)
         select id, 0, job, 1, 0, 0, false from refrain_runs where key = 'done'",
        "delete from refrain_delayed",
        "a run is in two queues, or in one although it is not open",
    ),
    (
        "update refrain_queue set lease = 77 where run = (select id from refrain_runs where key = 'queued')",
        "update refrain_queue set lease = null",
        "a run is under a lease that does not exist",
    ),
    (
        "insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at) \
         values (77, 77, 1, 1, 1, 0)",
        "delete from refrain_leases",
        "a lease belongs to a worker that does not exist",
    ),
    (
        "insert into refrain_lanes (job, scope, run) select job, 'x', \
         id from refrain_runs where key = 'done'",
        "delete from refrain_lanes where scope = 'x'",
        "a lane is held by a run that is not open, or not queued",
    ),
    (
        "update refrain_queue set lane = true where run = (select id from refrain_runs where key = 'queued')",
        "update refrain_queue set lane = false where run = (select id from refrain_runs where key = \
         'queued')",
        "a run is queued in a lane that another run holds",
    ),
    (
        "update refrain_lane_waits set scope = 'x'",
        "update refrain_lane_waits set scope = ''",
        "a run waits for a lane that is free",
    ),
    (
        "insert into refrain_slots (job, slot, run) select job, 1, id from refrain_runs where key = 'queued'",
        "delete from refrain_slots",
        "a slot is taken by a run that is not running",
    ),
    (
        "update refrain_runs set outcome = 'dond' where key = 'done'",
        "update refrain_runs set outcome = 'done' where key = 'done'",
        "a run cannot be read",
    ),
    (
        "update refrain_runs set ended_at = 9223372036854775807 where key = 'done'",
        "update refrain_runs set ended_at = opened_at where key = 'done'",
        "a run cannot be read",
    ),
    (
        "update refrain_queue set line = line + 1000 where run = (select id from refrain_runs where key = 'queued')",
        "update refrain_queue set line = line - 1000 where run = (select id from refrain_runs where key = 'queued')",
        "an open run is in the queue line of another job; it would never run",
    ),
    (
        "insert into refrain_effects (key, version, name, state, arrived_at) \
         values ('k', 1, 'mail', 'sent?', 0)",
        "delete from refrain_effects",
        "an effect has a state that does not exist",
    ),
    (
        "insert into refrain_effects (key, version, name, state, arrived_at) \
         values ('k', 1, 'mail', 'reserved', 0)",
        "delete from refrain_effects",
        "an effect is reserved by no worker, or has a worker although it is not reserved",
    ),
    (
        "insert into refrain_effects (key, version, name, state, holder, arrived_at) \
         values ('k', 1, 'mail', 'in-doubt', 7, 0)",
        "delete from refrain_effects",
        "an effect is reserved by no worker, or has a worker although it is not reserved",
    ),
    (
        "update refrain_jobs set paused_at = 9223372036854775807 where name = 'report'",
        "update refrain_jobs set paused_at = null where name = 'report'",
        "a job cannot be read",
    ),
    (
        "update refrain_schedules set next_at = 9223372036854775807",
        "update refrain_schedules set next_at = null",
        "a job cannot be read",
    ),
    (
        "update refrain_jobs set identity = 'No Name' where name = 'report'",
        "update refrain_jobs set identity = 'report' where name = 'report'",
        "a job cannot be read",
    ),
    (
        "insert into refrain_jobs (name, identity, from_file) values ('No Name', 'no-name', false)",
        "delete from refrain_jobs where name = 'No Name'",
        "a job cannot be read",
    ),
    (
        "update refrain_revisions set zone = 'Mars/Olympus'",
        "update refrain_revisions set zone = 'UTC'",
        "a timetable cannot be read",
    ),
];

#[every_store]
async fn fsck_finds_every_broken_rule_and_no_repaired_one(database: TestDatabase) {
    let refrain = populated(&database).await;
    for (fault, mend, what) in FAULTS {
        assert!(database.store(fault).await > 0, "{fault}");
        assert_eq!(found(&refrain).await, [what], "{fault}");
        assert!(database.store(mend).await > 0, "{mend}");
        assert_eq!(found(&refrain).await, [""; 0], "{mend}");
    }
}

#[every_store]
async fn a_run_of_a_job_that_does_not_exist_is_found(database: TestDatabase) {
    let refrain = populated(&database).await;
    database.store("update refrain_runs set job = job + 1000 where key = 'done'").await;
    assert_eq!(found(&refrain).await, ["a run belongs to a job that does not exist"]);
}

#[every_store]
async fn a_run_that_cannot_be_read_does_not_hide_the_others(database: TestDatabase) {
    let refrain = populated(&database).await;
    database.store("update refrain_runs set outcome = 'dond' where key = 'done'").await;
    let listed = refrain.latest("welcome", None, 10).await.unwrap();
    let keys: Vec<&str> = listed.iter().map(|run| run.key.as_str()).collect();
    assert_eq!(keys, ["queued"]);
    assert!(refrain.recent(None, 10).await.unwrap().len() > 1);
    let seen = refrain.show("welcome#done").await.unwrap_err().to_string();
    assert!(seen.contains("fsck"), "{seen}");
    database.store("update refrain_runs set outcome = 'done' where key = 'done'").await;
    // SQLite stores any value in any column; PostgreSQL has no room for such a number.
    for column in ["attempt", "version", "redo"] {
        if !database.is_sqlite() {
            break;
        }
        database.store(&format!("update refrain_runs set {column} = 4294967296 where key = 'done'")).await;
        assert_eq!(found(&refrain).await, ["a run cannot be read"], "{column}");
        let listed = refrain.latest("welcome", None, 10).await.unwrap();
        assert_eq!(listed.len(), 1, "{column}: {listed:?}");
        assert_eq!(refrain.runs("welcome", "").await.unwrap(), listed, "{column}");
        assert_eq!(refrain.recent(None, 10).await.unwrap().len(), 3, "{column}");
        database.store(&format!("update refrain_runs set {column} = 1 where key = 'done'")).await;
    }
    assert_eq!(refrain.recent(None, 10).await.unwrap().len(), 4);
}

#[every_store]
async fn a_job_that_cannot_be_read_does_not_hide_the_others(database: TestDatabase) {
    let refrain = populated(&database).await;
    let mut faults = vec![
        "update refrain_jobs set paused_at = 9223372036854775807 where name = 'report'",
        "insert into refrain_jobs (name, identity, from_file) values ('No Name', 'no-name', false)",
    ];
    // Only SQLite has room for these.
    faults.extend(database.is_sqlite().then_some(
        "insert into refrain_jobs (id, name, identity, from_file) values (3000000000, 'far', 'far', false)",
    ));
    faults.extend(database.is_sqlite().then_some(
        "insert into refrain_jobs (name, identity, from_file) values (cast(x'ff' as text), 'bytes', false)",
    ));
    for fault in &faults {
        database.store(fault).await;
    }
    assert_eq!(found_all("a job cannot be read", &refrain).await, faults.len());
    let listed: Vec<String> =
        refrain.job_records(None).await.unwrap().into_iter().map(|job| job.name).collect();
    assert_eq!(listed, ["welcome"]);
    assert_eq!(refrain.latest("welcome", None, 10).await.unwrap().len(), 2);
    assert_eq!(refrain.recent(None, 10).await.unwrap().len(), 4, "the runs of both jobs");
    let again = open(&database, [nothing("welcome").concurrency(2)]).await;
    assert_eq!(again.recent(None, 10).await.unwrap().len(), 4);
}

#[every_store]
async fn a_run_that_exists_twice_is_found(database: TestDatabase) {
    let refrain = populated(&database).await;
    // The constraint forbids it, so this table has none.
    let (was, is) = if database.is_sqlite() {
        ("alter table refrain_runs rename to was", "create table refrain_runs as select * from was")
    } else {
        ("alter table refrain_runs drop constraint runs_are_unique", "select 1")
    };
    database.store(was).await;
    database.store(is).await;
    let columns = "job, attempt, opened_at, ended_at, open, key, outcome";
    let twin = format!("insert into refrain_runs (id, {columns}) ");
    let twin = if database.is_sqlite() { twin } else { twin + "overriding system value " };
    database.store(&format!("{twin} select 77, {columns} from refrain_runs where key = 'done'")).await;
    assert_eq!(found(&refrain).await, ["a run exists twice"]);
}
