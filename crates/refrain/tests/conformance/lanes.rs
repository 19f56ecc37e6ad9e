//! `while-running`: the windows of one lane run one after another, and the lane is passed on however a run ends.

use std::sync::Arc;

use refrain::{Ask, Cancelling, CatchUp, Did, JobError, WhileRunning};

use crate::support::TestDatabase;
use crate::support::work::{Gate, Seen, daily, is_sound, job, june, open, shown, told};
use refrain::Place;

every_store! {
    async fn windows_of_a_lane_run_one_after_another_the_oldest_first(database) {
        let (gate, seen) = (Gate::closed(), Seen::default());
        let (held, said) = (gate.clone(), seen.clone());
        let work = job("report", move |run| {
            said.push(format!("begin {}", crate::support::work::short(run.key())));
            let (gate, said) = (held.clone(), said.clone());
            async move {
                gate.pass().await;
                said.push(format!("end {}", crate::support::work::short(run.key())));
                Ok(())
            }
        });
        let refrain = open(&database, [work.timetable(daily()).catch_up(CatchUp::All)]).await;
        refrain.open_due(june("04T06:00")).await.unwrap();
        assert_eq!(shown(&refrain, "report@2020-06-01").await.place, Some(Place::Queued));
        assert_eq!(shown(&refrain, "report@2020-06-02").await.place, Some(Place::BehindItsLane));
        let running = tokio::spawn({
            let refrain = refrain.clone();
            async move { refrain.tick_at(june("04T06:00")).await.unwrap() }
        });
        for _ in 0..3 {
            gate.have_begun(1).await;
            assert_eq!(gate.waiting(), 0, "one at a time");
            gate.let_through(1);
        }
        assert_eq!(running.await.unwrap().ended, 3);
        let expected = ["06-01", "06-02", "06-03"].map(|day| [format!("begin {day}"), format!("end {day}")]);
        assert_eq!(seen.all(), expected.concat());
        is_sound(&refrain).await;
    }

    async fn a_lane_is_passed_on_after_a_failure_and_after_a_cancellation(database) {
        let seen = Seen::default();
        let said = seen.clone();
        let work = job("report", move |run| {
            let day = crate::support::work::short(run.key());
            said.push(day.clone());
            async move { if day == "06-01" { Err(JobError::for_good("no data")) } else { Ok(()) } }
        });
        let refrain = open(&database, [work.timetable(daily()).catch_up(CatchUp::All)]).await;
        refrain.open_due(june("05T06:00")).await.unwrap();
        assert_eq!(refrain.cancel("report@2020-06-03").await.unwrap(), Cancelling::Cancelled, "it waits in the lane");
        refrain.tick_at(june("05T06:00")).await.unwrap();
        assert_eq!(seen.all(), ["06-01", "06-02", "06-04"]);
        let expected = ["06-01 failed 1", "06-02 done 1", "06-03 cancelled 1", "06-04 done 1"];
        assert_eq!(told(&refrain, "report").await, expected);

        refrain.open_due(june("07T06:00")).await.unwrap();
        assert_eq!(refrain.cancel("report@2020-06-05").await.unwrap(), Cancelling::Cancelled, "it held the lane");
        refrain.tick_at(june("07T06:00")).await.unwrap();
        assert_eq!(told(&refrain, "report").await[4..], ["06-05 cancelled 1", "06-06 done 1"]);
        is_sound(&refrain).await;
    }

    async fn a_lane_is_kept_while_a_failed_attempt_waits_for_its_time(database) {
        let work = job("report", move |run| async move {
            let is_first = run.attempt() == 1 && run.key().contains("06-01");
            if is_first { Err(JobError::new("not yet")) } else { Ok(()) }
        });
        let refrain = open(&database, [work.timetable(daily()).catch_up(CatchUp::All)]).await;
        refrain.tick_at(june("03T06:00")).await.unwrap();
        assert!(matches!(shown(&refrain, "report@2020-06-01").await.place, Some(Place::Delayed(_))));
        assert_eq!(shown(&refrain, "report@2020-06-02").await.place, Some(Place::BehindItsLane));
        assert_eq!(refrain.run("report@2020-06-01", Ask::Once).await.unwrap().did, Did::Ran, "before its time");
        refrain.tick_at(june("03T06:00")).await.unwrap();
        assert_eq!(told(&refrain, "report").await, ["06-01 done 2", "06-02 done 1"]);
        is_sound(&refrain).await;
    }

    async fn while_running_skip_leaves_a_row_that_says_so(database) {
        let gate = Gate::closed();
        let work = gate.job("report").timetable(daily()).catch_up(CatchUp::All);
        let refrain = Arc::new(open(&database, [work.while_running(WhileRunning::Skip)]).await);
        let running = tokio::spawn({
            let refrain = refrain.clone();
            async move { refrain.tick_at(june("02T00:01")).await.unwrap() }
        });
        gate.have_begun(1).await;
        let report = refrain.open_due(june("03T00:01")).await.unwrap();
        assert_eq!((report.opened, report.skipped), (0, 1));
        let skipped = shown(&refrain, "report@2020-06-02").await;
        assert!(skipped.message.unwrap().contains("another run of this job was under way"));
        gate.let_through(1);
        running.await.unwrap();
        gate.let_through(1);
        refrain.tick_at(june("04T00:01")).await.unwrap();
        assert_eq!(told(&refrain, "report").await, ["06-01 done 1", "06-02 skipped 0", "06-03 done 1"]);
        is_sound(&refrain).await;
    }

    async fn while_running_allow_lets_windows_run_beside_each_other(database) {
        let gate = Gate::closed();
        let work = gate.job("report").timetable(daily()).catch_up(CatchUp::All);
        let refrain = open(&database, [work.while_running(WhileRunning::Allow)]).await;
        let running = tokio::spawn({
            let refrain = refrain.clone();
            async move { refrain.tick_at(june("05T00:01")).await.unwrap() }
        });
        gate.have_begun(4).await;
        gate.let_through(4);
        assert_eq!(running.await.unwrap().ended, 4);
        is_sound(&refrain).await;
    }

    async fn who_runs_a_window_by_hand_waits_for_its_lane(database) {
        let gate = Gate::closed();
        let work = gate.job("report").timetable(daily()).catch_up(CatchUp::All);
        let refrain = open(&database, [work.while_running(WhileRunning::Skip)]).await;
        let first = tokio::spawn({
            let refrain = refrain.clone();
            async move { refrain.run("report@2020-06-03", Ask::Once).await.unwrap() }
        });
        gate.have_begun(1).await;
        let second = tokio::spawn({
            let refrain = refrain.clone();
            async move { refrain.run("report@2020-06-01", Ask::Once).await.unwrap() }
        });
        crate::support::eventually::eventually("the older window waits", crate::support::eventually::DEADLINE, async || {
            let run = refrain.show("report@2020-06-01").await.unwrap();
            run.is_some_and(|run| run.place == Some(Place::BehindItsLane))
        }).await;
        gate.let_through(2);
        assert!(first.await.unwrap().is_done() && second.await.unwrap().is_done());
        is_sound(&refrain).await;
    }
}
