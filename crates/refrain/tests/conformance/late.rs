//! Windows that should have been done by now: told once, by however many engines, and only while somebody waits for them.

use std::time::Duration;

use refrain::core::{AlarmKind, Scope};
use refrain::{AlarmRecord, Ask, CatchUp, Definition, JobError, Refrain};

use crate::support::TestDatabase;
use crate::support::work::{daily, job, june, nothing, open, shown};

/// It fails until somebody asks for it by hand; it must be done half an hour after midnight.
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

every_store! {
    async fn a_window_that_is_not_done_in_time_is_told_once(database) {
        let refrain = open(&database, [report()]).await;
        refrain.tick_at(june("02T00:01")).await.unwrap();
        refrain.tick_at(june("02T00:29")).await.unwrap();
        assert_eq!(late(&refrain).await, [], "its time has not run out");
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
        assert_eq!(late(&refrain).await[0].subject, "report@2020-06-02", "the next window is another one");
    }

    async fn what_is_done_skipped_or_cancelled_is_not_waited_for(database) {
        let quick = |name: &str| nothing(name).timetable(daily()).grace(Duration::from_mins(1));
        let jobs = [quick("done"), quick("skipped").catch_up(CatchUp::None), report(), nothing("welcome")];
        let refrain = open(&database, jobs).await;
        refrain.open_due(june("02T00:01")).await.unwrap();
        refrain.cancel("report@2020-06-01").await.unwrap();
        refrain.tick_at(june("02T00:01")).await.unwrap();
        refrain.tick_at(june("02T06:00")).await.unwrap();
        assert_eq!(late(&refrain).await, []);
        refrain.tick_at(june("05T06:00")).await.unwrap();
        let told: Vec<String> = late(&refrain).await.into_iter().map(|alarm| alarm.subject).collect();
        assert_eq!(told, ["report@2020-06-04"], "of those that were caught up, the last day's");
    }

    async fn a_window_whose_scopes_are_late_is_told_as_one(database) {
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
}
