//! Late windows: one alarm, however many engines watch, and only while the window is still
//! expected.

use refrain_harness::every_store;
use std::time::Duration;

use refrain::admin::AlarmRecord;
use refrain::core::{AlarmKind, Scope};
use refrain::{Ask, CatchUp, Definition, JobError, Refrain};

use refrain_harness::TestDatabase;
use refrain_harness::work::{daily, job, june, nothing, open, shown};

/// It fails until it is requested by hand; it must be done half an hour after midnight.
fn report() -> Definition {
    let work = job("report", |run| async move {
        if run.attempt() > 1 { Ok(()) } else { Err(JobError::for_good("no orders table")) }
    });
    work.timetable(daily()).catch_up(CatchUp::All).grace(Duration::from_mins(30))
}

async fn late(refrain: &Refrain) -> Vec<AlarmRecord> {
    let alarms = refrain.alarms().await.unwrap();
    assert!(alarms.iter().all(|alarm| alarm.kind == AlarmKind::RunLate), "{alarms:?}");
    alarms
}

async fn is_late(refrain: &Refrain, run: &str, now: &str) -> bool {
    let view = refrain.view("report").await.unwrap();
    view.is_late(&shown(refrain, run).await, june(now))
}

#[every_store]
async fn a_late_window_raises_one_alarm(database: TestDatabase) {
    let refrain = open(&database, [report()]).await;
    refrain.tick_at(june("02T00:01")).await.unwrap();
    refrain.tick_at(june("02T00:29")).await.unwrap();
    assert_eq!(late(&refrain).await, [], "its grace has not passed");
    assert!(!is_late(&refrain, "report@2020-06-01", "02T00:29").await);
    for time in ["02T00:30", "02T00:31", "02T09:00"] {
        let elsewhere = open(&database, [report()]).await;
        refrain.tick_at(june(time)).await.unwrap();
        elsewhere.tick_at(june(time)).await.unwrap();
        let alarms = late(&refrain).await;
        let [alarm] = alarms.as_slice() else { panic!("one alarm, not {alarms:?}") };
        assert_eq!((alarm.subject.as_str(), alarm.job.as_deref()), ("report@2020-06-01", Some("report")));
        assert_eq!(alarm.at, june("02T00:30"));
        assert!(alarm.message.contains("is failed") && alarm.message.contains("30m"), "{}", alarm.message);
        assert!(is_late(&refrain, "report@2020-06-01", time).await);
    }
    refrain.run("report@2020-06-01", Ask::Once).await.unwrap();
    assert!(!is_late(&refrain, "report@2020-06-01", "02T09:00").await, "late, and done");
    refrain.tick_at(june("03T01:00")).await.unwrap();
    assert_eq!(
        late(&refrain).await[0].subject,
        "report@2020-06-02",
        "the next window has an alarm of its own"
    );
}

#[every_store]
async fn a_done_skipped_or_cancelled_window_is_never_late(database: TestDatabase) {
    let quick = |name: &str| nothing(name).timetable(daily()).grace(Duration::from_mins(1));
    let jobs = [quick("done"), quick("skipped").catch_up(CatchUp::None), report(), nothing("welcome")];
    let refrain = open(&database, jobs).await;
    refrain.open_due(june("02T00:01")).await.unwrap();
    refrain.cancel("report@2020-06-01").await.unwrap();
    refrain.tick_at(june("02T00:01")).await.unwrap();
    refrain.tick_at(june("02T06:00")).await.unwrap();
    assert_eq!(late(&refrain).await, []);
    refrain.tick_at(june("05T06:00")).await.unwrap();
    let text: Vec<String> = late(&refrain).await.into_iter().map(|alarm| alarm.subject).collect();
    assert_eq!(text, ["report@2020-06-04"], "only the last day is late");
}

#[every_store]
async fn late_scopes_of_one_window_raise_one_alarm(database: TestDatabase) {
    let work = job("report", |run| async move {
        if run.scope().as_str() == "acme" { Ok(()) } else { Err(JobError::for_good("no data")) }
    });
    let scopes = || ["acme", "beta", "gamma"].iter().map(|scope| Scope::parse(scope).unwrap()).collect();
    let work = work.timetable(daily()).grace(Duration::ZERO).scopes(move |_| async move { Ok(scopes()) });
    let refrain = open(&database, [work]).await;
    refrain.tick_at(june("02T00:01")).await.unwrap();
    let alarms = late(&refrain).await;
    let [alarm] = alarms.as_slice() else { panic!("one alarm, not {alarms:?}") };
    assert_eq!(alarm.subject, "report@2020-06-01");
    assert!(alarm.message.starts_with("report@2020-06-01/beta is failed, like 1 more"), "{}", alarm.message);
}
