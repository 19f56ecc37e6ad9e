//! A store with thousands of rows in every table that grows with the work.

use refrain::Refrain;
use refrain_harness::TestDatabase;
use sqlx::Executor;

/// The least number of rows of each table that is not small.
pub(crate) const ROWS_MIN: i64 = 500;

/// Ten thousand runs of three jobs, most of them ended; hundreds in each queue of open runs.
const FILLED: [&str; 27] = [
    "insert into refrain_jobs (name, identity) values ('one', 'one'), ('two', 'two'), ('three', 'three')",
    "with recursive n (i) as (select 1 union all select i + 1 from n where i < 10000)
     insert into refrain_runs (job, attempt, opened_at, open, key, outcome)
     select 1 + i % 3, 1, 0, i % 10 = 0, 'key-' || i, case when i % 10 = 0 then null else 'done' end from n",
    "insert into refrain_queue (line, run, lease, attempt, spent, suspicion, lane)
     select job, id, case when id % 4 = 0 then id else null end, 1, 0, 0, \
     job = 2 from refrain_runs where open",
    "insert into refrain_delayed (run, wake_at, line, attempt, spent, suspicion, lane)
     select id, id, job, 1, 0, 0, job = 2 from refrain_runs where id % 7 = 0",
    "insert into refrain_lanes (job, scope, run) select job, key, id from refrain_runs where id % 5 = 0",
    "insert into refrain_lane_numbers (job, scope, number) select job, key, 1 from refrain_runs",
    "insert into refrain_lane_fences (number, project, job, scope)
     select 1, 'shop', 'job-' || job, key from refrain_runs",
    "insert into refrain_lane_waits (job, scope, key, run, line, attempt)
     select job, '', key, id, job, 1 from refrain_runs where id % 3 = 0",
    "insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at)
     select id, id % 500, job, id, id, 0 from refrain_runs where id % 2 = 0",
    "insert into refrain_attempts (run, number, ended, ended_at) \
     select id, 0, 'errored', 0 from refrain_runs",
    "insert into refrain_outputs (run, attempt, number, stream, at, text)
     select id, 1, 1, 'stdout', 0, 'line' from refrain_runs",
    "insert into refrain_begun (run, attempt, at) select id, 1, 0 from refrain_runs",
    "insert into refrain_dedupes (run, at, asked) select id, 0, 'enqueue' from refrain_runs",
    "insert into refrain_expansions (run, scopes, hash) select id, 1, '' from refrain_runs where id % 9 = 0",
    "insert into refrain_effects (key, version, name, state, holder, arrived_at)
     select key, 1, 'mail', case id % 5 when 0 then 'reserved' when 1 then 'in-doubt' when 2 then 'refused' \
     when 3 then 'waiting' else 'confirmed' end, case when id % 5 = 0 then id else null end, 0 from refrain_runs",
    "insert into refrain_counts (run, attempt, processed, skipped, deduplicated, failed)
     select id, 1, 1, 0, 0, 0 from refrain_runs",
    "insert into refrain_audit (at, verb, subject, run, unit) \
     select 0, 'again', key, id, key from refrain_runs",
    "insert into refrain_unit_dedupes (run, attempt, reason, count, keys)
     select id, 1, 'stale', 1, '[]' from refrain_runs",
    "insert into refrain_ledgers (project, job, scope, window_start)
     select 'shop', 'job-' || job, '', key from refrain_runs",
    "insert into refrain_fences (project, job, run, attempt)
     select 'shop', 'job-' || job, key, 1 from refrain_runs",
    "insert into refrain_units (ledger, key, fence, at, version, attempt, failures, written, status)
     select id % 20, key, id, 0, 1, 1, 0, true, case when id % 50 = 0 then 'failed' else 'applied' end \
     from refrain_runs",
    "insert into refrain_checkpoints (ledger, name, position, at) \
     select id, 'billing', '', 0 from refrain_runs",
    "insert into refrain_intents (project, kind, name, key)
     select 'shop', 'run', 'mail', key from refrain_runs",
    "insert into refrain_effect_dedupes (effect, version, at, asked) \
     select id, 1, 0, 'intent' from refrain_runs",
    "insert into refrain_arrivals (destination, intent, at) select 'there', id, 0 from refrain_runs",
    "insert into refrain_publishes (ledger, target, mode, rows, fence, attempt, version, at)
     select id, 'totals', 'overwrite', 1, id, 1, 1, 0 from refrain_runs",
    "insert into refrain_deltas (ledger, target, key, name, amount) \
     select id, 'stock', key, 'qty', 1 from refrain_runs",
];

pub(crate) async fn migrated(database: &TestDatabase) {
    Refrain::migrate(&database.url()).await.unwrap();
}

pub(crate) async fn filled(database: &TestDatabase) {
    migrated(database).await;
    fill(database).await;
}

pub(crate) async fn fill(database: &TestDatabase) {
    if let TestDatabase::Postgres { pool, .. } = database {
        pool.execute(UNOBSERVED).await.unwrap();
    }
    for statement in FILLED {
        assert!(database.store(statement).await > 0, "{statement}");
    }
}

/// The server must not analyse some tables by itself in the middle of a test: the plans would have some statistics
/// and lack others.
const UNOBSERVED: &str = "do $$ declare found name; begin
    for found in select tablename from pg_tables where schemaname = 'refrain' loop
        execute format('alter table refrain.%I set (autovacuum_enabled = false)', found);
    end loop;
end $$";
