//! Statements of the store: which worker may change a row, and what the passing of time changes.

use super::Case;

/// A run that an attempt holds, under the lease 1 of the worker 1.
const HELD: &str = "insert into refrain_runs (id, job, attempt, opened_at, open, key) \
     values (2, 1, 1, 0, true, 'k');
    insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at) \
    values (1, 1, 1, 1, 3, 0);
    insert into refrain_queue (line, run, lease, attempt, spent, suspicion, lane) \
    values (1, 2, 1, 1, 0, 0, false)";

/// A run that has ended.
const ENDED: &str = "insert into refrain_runs (id, job, attempt, opened_at, ended_at, open, key, outcome)
    values (2, 1, 1, 0, 1, false, 'k', 'failed')";

const OF_ANOTHER_LEASE: &str = "update refrain_queue set lease = 9";
const ANOTHER_ATTEMPT: &str = "update refrain_queue set attempt = 2";

#[tokio::test]
async fn an_attempt_holds_its_queue_row_only_under_its_lease_and_number() {
    for statement in ["queue/hold", "queue/holds"] {
        let place = Case::of(statement, &["1", "2", "1", "1"], HELD).await;
        place.compares(&[OF_ANOTHER_LEASE, ANOTHER_ATTEMPT]).await;
    }
    for statement in ["queue/leave", "queue/give_back"] {
        let place = Case::of(statement, &["'[[1, 2, 1, 1]]'"], HELD).await;
        place.compares(&[OF_ANOTHER_LEASE, ANOTHER_ATTEMPT]).await;
    }
}

#[tokio::test]
async fn a_lease_covers_only_the_rows_that_name_it() {
    Case::of("queue/held", &["1"], HELD).await.compares(&[OF_ANOTHER_LEASE]).await;
    Case::of("queue/members", &["1", "1", "1", "3"], HELD).await.compares(&[OF_ANOTHER_LEASE]).await;
}

#[tokio::test]
async fn only_rows_without_a_lease_are_leased() {
    let given = "insert into refrain_jobs (id, name, identity) values (1, 'sync', 'sync');
        insert into refrain_runs (id, job, attempt, opened_at, open, key) values (2, 1, 1, 0, true, 'k');
        insert into refrain_queue (line, run, attempt, spent, suspicion, lane) values (1, 2, 1, 0, 0, false)";
    let paused = "update refrain_jobs set paused_at = 1";
    Case::of("queue/due", &["10", "4294967296"], given).await.compares(&[OF_ANOTHER_LEASE, paused]).await;
    Case::of("queue/front", &["1", "10", "0", "1"], given).await.compares(&[OF_ANOTHER_LEASE, paused]).await;
    Case::of("queue/one", &["1", "2"], given).await.compares(&[OF_ANOTHER_LEASE]).await;
    Case::of("queue/lease", &["5", "'[[1, 2, 7]]'"], given).await.compares(&[OF_ANOTHER_LEASE]).await;
    Case::of("queue/withdraw", &["'[[1, 2]]'"], given).await.compares(&[OF_ANOTHER_LEASE]).await;
}

#[tokio::test]
async fn a_run_is_reopened_only_after_the_attempt_that_the_caller_saw() {
    let changes = ["update refrain_runs set open = true", "update refrain_runs set attempt = 2"];
    Case::of("run/reopen", &["2", "1", "'again'"], ENDED).await.compares(&changes).await;
    Case::of("run/vouch", &["2", "1", "null", "'why'", "'done'"], ENDED).await.compares(&changes).await;
}

#[tokio::test]
async fn only_an_open_run_is_ended() {
    let ended = "update refrain_runs set open = false, outcome = 'done'";
    Case::of("run/cancel", &["2", "1", "'why'", "'cancelled'"], HELD).await.compares(&[ended]).await;
    let close = Case::of("run/close", &["1", r#"'[[2, 1, 1, "done", 0, null, null, null]]'"#], HELD).await;
    close.compares(&[ended]).await;
}

#[tokio::test]
async fn only_an_open_run_can_be_cancelled() {
    let given =
        "insert into refrain_runs (id, job, attempt, opened_at, open, key) values (2, 1, 1, 0, true, 'k');
        insert into refrain_cancellations (run, asked_at) values (2, 0)";
    let list = Case::of("cancellation/list", &["10"], given).await;
    list.compares(&["update refrain_runs set open = false, outcome = 'done'"]).await;
}

#[tokio::test]
async fn a_worker_recognizes_only_its_own_record_of_an_attempt() {
    let given =
        "insert into refrain_attempts (run, number, ended, ended_at, worker) values (2, 1, 'errored', 0, 3)";
    let changes = ["number = 2", "worker = 4", "ended = 'taken-over'", "ended = 'crashed-alone'"];
    let changes = changes.map(|what| format!("update refrain_attempts set {what}"));
    let mine = Case::of("attempt/mine", &["2", "1", "3"], given).await;
    mine.compares(&changes.each_ref().map(String::as_str)).await;
}

#[tokio::test]
async fn a_worker_is_alive_until_it_expires() {
    let given = "insert into refrain_workers (id, process, started_at, expires_at) \
         values (1, 'here/1', 0, 9000000000000000000)";
    let expired = "update refrain_workers set expires_at = 0";
    let elsewhere = "update refrain_workers set process = 'there/1'";
    Case::of("worker/alive", &["'here/1'"], given).await.compares(&[expired, elsewhere]).await;
    Case::of("worker/near", &["'here/'", "10"], given).await.compares(&[expired, elsewhere]).await;
    Case::of("worker/beat", &["1", "1000"], given).await.compares(&[expired]).await;
    Case::of("worker/claims", &["1"], given).await.compares(&[expired]).await;
    let lease = "insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at) \
         values (1, 1, 1, 1, 1, 0)";
    Case::of("worker/remove", &["1"], given).await.compares(&[lease]).await;
}

#[tokio::test]
async fn a_worker_is_lost_only_when_its_lease_has_expired() {
    let given = "insert into refrain_workers (id, process, started_at, expires_at) \
         values (1, 'here/1', 0, 0);
        insert into refrain_leases (id, worker, line, first_run, last_run, claimed_at) \
        values (1, 2, 1, 1, 1, 0)";
    let alive = "update refrain_workers set expires_at = 9000000000000000000";
    Case::of("worker/expired", &["10"], given).await.compares(&[alive]).await;
    Case::of("worker/hold", &["1", "false"], given).await.compares(&[alive]).await;
    let registered = "update refrain_workers set id = 2";
    Case::of("worker/missing", &["10"], given).await.compares(&[registered]).await;
}

#[tokio::test]
async fn only_an_earlier_attempt_can_have_an_unknown_end() {
    let given = "insert into refrain_begun (run, attempt, at) values (2, 1, 0)";
    let later = "update refrain_begun set attempt = 2";
    Case::of("begun/find", &["2", "2"], given).await.compares(&[later]).await;
    Case::of("begun/remove", &["'[[2, 1]]'"], given).await.compares(&[later]).await;
}

#[tokio::test]
async fn a_delayed_attempt_joins_its_lane_when_its_time_has_come() {
    let given = "insert into refrain_runs (id, job, attempt, opened_at, open, key) \
         values (2, 1, 1, 0, true, 'k');
        insert into refrain_delayed (run, wake_at, line, attempt, spent, suspicion, lane) \
        values (2, 0, 1, 1, 0, 0, true)";
    let (early, alone) = (
        "update refrain_delayed set wake_at = 9000000000000000000",
        "update refrain_delayed set lane = false",
    );
    Case::of("delayed/laned", &["10"], given).await.compares(&[early, alone]).await;
    Case::of("delayed/lane", &["2"], given).await.compares(&[alone]).await;
}

#[tokio::test]
async fn due_schedules_are_paged_in_order_of_their_time() {
    let given = "insert into refrain_schedules (job, next_at) values (1, 5)";
    let due = Case::of("schedule/due", &["5", "4", "0", "10"], given).await;
    due.compares(&[
        "update refrain_schedules set next_at = 6",
        "update refrain_schedules set next_at = 4, job = 0",
    ])
    .await;
    let retire = Case::of("schedule/retire", &["1"], given).await;
    retire.compares(&["update refrain_schedules set next_at = null"]).await;
}

#[tokio::test]
async fn only_old_rows_are_pruned() {
    for (statement, given, young) in [
        (
            "arrival/prune",
            "insert into refrain_arrivals (destination, intent, at) values ('there', 1, 4)",
            "update refrain_arrivals set at = 5",
        ),
        (
            "effect_dedupe/prune",
            "insert into refrain_effect_dedupes (effect, version, at, asked) values (1, 1, 4, 'intent')",
            "update refrain_effect_dedupes set at = 5",
        ),
        (
            "alarm/prune",
            "insert into refrain_alarms (kind, at, subject, message) values ('spike', 4, 'sync', 'many')",
            "update refrain_alarms set at = 5",
        ),
    ] {
        Case::of(statement, &["5", "10"], given).await.compares(&[young]).await;
    }
}

#[tokio::test]
async fn a_store_in_doubt_stays_in_doubt_and_records_its_place_once() {
    let given = "insert into refrain_store (only_row, id, project, simulated, created_at) \
         values (true, 'id', 'shop', false, 0)";
    let doubted = "update refrain_store set doubt = 'moved'";
    let recovered = "update refrain_store set recovered_at = 5";
    Case::of("store/doubt", &["'behind'", "null"], given).await.compares(&[doubted, recovered]).await;
    let placed = "update refrain_store set place = 'there'";
    Case::of("store/set_place", &["'here'"], given).await.compares(&[placed]).await;
}

#[tokio::test]
async fn a_ledger_changes_its_store_only_from_the_one_that_was_shown() {
    let given = "insert into refrain_projects (name, store, destination) values ('shop', 'one', 'there')";
    let adopt = Case::of("project/adopt", &["'shop'", "'two'", "'one'"], given).await;
    adopt.compares(&["update refrain_projects set store = 'three'"]).await;
    let unowned = "insert into refrain_projects (name, store, destination) values ('shop', null, 'there')";
    let attach = Case::of("project/attach", &["'shop'", "'two'", "'there'"], unowned).await;
    attach.compares(&["update refrain_projects set store = 'one'"]).await;
    let alone = Case::of("project/attach", &["'shop'", "null", "'there'"], unowned).await;
    assert_eq!(alone.met("").await, 0, "what comes without a store writes nothing");
}

#[tokio::test]
async fn a_store_sees_the_intents_of_its_project_and_counts_those_for_another_store() {
    let given = "insert into refrain_intents (id, project, kind, name, key, store)
        values (1, 'shop', 'run', 'mail', 'k', 'another')";
    let of_another_project = "update refrain_intents set project = 'stranger'";
    let numbers = Case::of("intent/numbers", &["'shop'", "0", "10"], given).await;
    numbers.compares(&[of_another_project, "update refrain_intents set id = 0"]).await;
    let stranded = Case::of("intent/stranded", &["'shop'", "'own'"], given).await;
    stranded.compares(&[of_another_project, "update refrain_intents set store = 'own'"]).await;
}

#[tokio::test]
async fn a_migration_waits_for_live_workers_that_know_too_little() {
    let given = "insert into refrain_workers (id, process, started_at, expires_at, schema, ledger_schema)
        values (1, 'here/1', 0, 9000000000000000000, 5, 5)";
    let expired = "update refrain_workers set expires_at = 0";
    for (store, ledger) in [("6", "5"), ("5", "6")] {
        Case::of("worker/older", &[store, ledger], given).await.compares(&[expired]).await;
    }
    let knows = "update refrain_workers set schema = 6, ledger_schema = 6";
    Case::of("worker/older", &["6", "6"], given).await.compares(&[knows]).await;
    let unknown = "update refrain_workers set schema = null, ledger_schema = null";
    assert_eq!(Case::of("worker/older", &["1", "1"], given).await.met(unknown).await, 1);
    Case::of("worker/all_alive", &[], given).await.compares(&[expired]).await;
}
