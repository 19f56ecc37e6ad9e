//! Alarms about duplicates: a burst raises one alarm, however many engines watch; the usual rate
//! raises none.

use refrain_harness::every_store;
use std::time::Duration;

use refrain::admin::AlarmRecord;
use refrain::core::AlarmKind;
use refrain::{Refrain, Settings};
use tokio::task::JoinSet;

use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{SETTINGS, nothing, open, open_with};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;

/// Dedupes are kept for long enough to remember two days.
const KEEPING: Settings = SETTINGS.keep(Duration::from_hours(90 * 24));

/// A job with one run, which is requested again by others.
async fn requested_once(database: &TestDatabase) -> Refrain {
    let refrain = open_with(database, KEEPING, [nothing("welcome")]).await;
    refrain.enqueue("welcome", "42", &()).await.unwrap();
    refrain
}

/// Records this many further requests, one every `every` seconds, the last of them `ago` seconds ago.
async fn requested_again(database: &TestDatabase, times: i64, every: i64, ago: i64) {
    let insert = format!(
        "with recursive n (i) as (select 0 union all select i + 1 from n where i + 1 < {times})
         insert into refrain_dedupes (run, at, asked)
         select (select id from refrain_runs where key = '42'),
             (select now from refrain_clock) - ({ago} + ({times} - 1 - i) * {every}) \
             * cast(1000000 as bigint), 'enqueue'
         from n order by i"
    );
    assert_eq!(database.store(&insert).await, u64::try_from(times).unwrap());
}

/// One request an hour for three days, until half an hour ago.
async fn quiet(database: &TestDatabase) {
    requested_again(database, 72, HOUR, HOUR / 2).await;
}

async fn watched(refrain: &Refrain) -> Vec<AlarmRecord> {
    refrain.tick().await.unwrap();
    refrain.alarms().await.unwrap()
}

#[every_store]
async fn twenty_in_a_minute_instead_of_one_an_hour_raise_one_alarm(database: TestDatabase) {
    let refrain = requested_once(&database).await;
    quiet(&database).await;
    assert_eq!(watched(&refrain).await, [], "one an hour is the usual rate");
    requested_again(&database, 20, 3, 5 * MINUTE).await;
    let alarms = watched(&refrain).await;
    let [alarm] = alarms.as_slice() else { panic!("one alarm, not {alarms:?}") };
    assert_eq!(alarm.kind, AlarmKind::DedupeSpike);
    assert_eq!((alarm.subject.as_str(), alarm.job.as_deref()), ("welcome", Some("welcome")));
    assert!(alarm.message.starts_with("20 dedupes within two minutes"), "{}", alarm.message);
    assert!(alarm.message.contains("had 1"), "{}", alarm.message);

    for _ in 0..3 {
        let restarted = open_with(&database, KEEPING, [nothing("welcome")]).await;
        assert_eq!(watched(&restarted).await, alarms, "one alarm, also after a restart");
    }
    requested_again(&database, 60, 1, 2 * MINUTE).await;
    assert_eq!(watched(&refrain).await, alarms, "the burst continues, and was reported");
    requested_again(&database, 1_000, 0, 2 * MINUTE).await;
    assert_eq!(watched(&refrain).await.len(), 2, "this burst is much larger");
}

#[every_store]
async fn several_watching_engines_raise_one_alarm(database: TestDatabase) {
    requested_once(&database).await;
    quiet(&database).await;
    requested_again(&database, 500, 0, 5 * MINUTE).await;
    let mut engines = JoinSet::new();
    let mut stops = Vec::new();
    for _ in 0..2 {
        let engine = open_with(&database, KEEPING, [nothing("welcome")]).await;
        let serving = engine.serve();
        stops.push(serving.stop_handle());
        engines.spawn(async move { serving.await.unwrap() });
        engines.spawn(async move { engine.tick().await.unwrap() });
    }
    let refrain = open(&database, []).await;
    eventually("the alarm is raised", DEADLINE, async || !refrain.alarms().await.unwrap().is_empty()).await;
    stops.iter().for_each(refrain::StopHandle::drain);
    engines.join_all().await;
    assert_eq!(refrain.alarms().await.unwrap().len(), 1);
}

#[every_store]
async fn the_usual_rate_raises_no_alarm(database: TestDatabase) {
    let refrain = requested_once(&database).await;
    // Thirty requests within a minute, every three hours, for three days; and twelve a day in between.
    for burst in 0..24 {
        requested_again(&database, 30, 2, burst * 3 * HOUR + 7 * MINUTE).await;
    }
    requested_again(&database, 36, 2 * HOUR, 20 * MINUTE).await;
    assert_eq!(watched(&refrain).await, []);
    requested_again(&database, 30, 1, 3 * MINUTE).await;
    assert_eq!(watched(&refrain).await, [], "another usual batch raises no alarm either");
}

#[every_store]
async fn a_new_job_is_judged_like_a_quiet_one(database: TestDatabase) {
    let refrain = requested_once(&database).await;
    requested_again(&database, 19, 1, 5 * MINUTE).await;
    assert_eq!(watched(&refrain).await, []);
    requested_again(&database, 1, 1, 5 * MINUTE).await;
    assert_eq!(watched(&refrain).await.len(), 1);
}

#[every_store]
async fn an_unfinished_hour_is_not_judged(database: TestDatabase) {
    let refrain = requested_once(&database).await;
    requested_again(&database, 100, 1, -HOUR).await;
    assert_eq!(watched(&refrain).await, []);
    let passed = format!("update refrain_dedupes set at = at - {}", 2 * HOUR * 1_000_000);
    assert_eq!(database.store(&passed).await, 100);
    assert_eq!(watched(&refrain).await.len(), 1);
}

#[every_store]
async fn the_newest_alarm_is_listed_first_and_old_ones_are_pruned(database: TestDatabase) {
    let refrain = requested_once(&database).await;
    requested_again(&database, 20, 0, 20 * HOUR).await;
    requested_again(&database, 20_000, 0, HOUR).await;
    let alarms = watched(&refrain).await;
    assert!(alarms.len() == 2 && alarms[0].at > alarms[1].at, "{alarms:?}");
    for aged in [
        "update refrain_alarms set at = 1 where message like '20 %'",
        "delete from refrain_dedupes where at < (select now from refrain_clock) - 36000000000",
    ] {
        assert!(database.store(aged).await > 0, "{aged}");
    }
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    eventually("the old one is gone", DEADLINE, async || refrain.alarms().await.unwrap() == alarms[..1])
        .await;
    stop.drain();
    serving.await.unwrap();
}
