//! A timetable is edited: what was due under the old one is judged by it, and windows of the two never overlap.

use refrain::core::Timetable;
use refrain::{Ask, CatchUp, Definition, WhileRunning};

use crate::support::TestDatabase;
use crate::support::work::{Seen, daily, is_sound, june, open, short, timetable, told};

fn report(seen: &Seen, timetable: Timetable) -> Definition {
    seen.job("report").timetable(timetable).catch_up(CatchUp::All).while_running(WhileRunning::Allow)
}

/// From when to when each revision is in force, as it is stored.
async fn revisions(database: &TestDatabase) -> Vec<String> {
    database.store_texts("select schedule || ' ' || grid from refrain_revisions order by job, number").await
}

every_store! {
    async fn f19_what_was_due_under_the_old_timetable_is_opened_by_it(database) {
        let seen = Seen::default();
        let refrain = open(&database, [report(&seen, daily())]).await;
        refrain.tick_at(june("03T00:01")).await.unwrap();
        refrain.close().await;

        let weekly = timetable("0 0 * * 1", "week", "2020-06-01");
        let refrain = open(&database, [report(&seen, weekly.clone())]).await;
        assert_eq!(revisions(&database).await, ["0 0 * * * day", "0 0 * * 1 week"]);
        let opened = database.store_numbers("select count(*) from refrain_runs").await[0];
        assert!(opened > 2000, "every day until the edit is there, by the old timetable");
        let days = refrain.runs("report", "").await.unwrap();
        assert!(days.windows(2).all(|two| two[0].window.unwrap().end() == two[1].window.unwrap().start()));
        assert_eq!(short(&days[2].key), "06-03");

        assert_eq!(refrain.run("report@2020-06-09", Ask::Once).await.unwrap().run.key, "2020-06-09T00:00:00Z");
        refrain.close().await;
        let again = open(&database, [report(&seen, weekly)]).await;
        assert_eq!(revisions(&database).await.len(), 2, "the same timetable again is no edit");
        is_sound(&again).await;
    }

    async fn a_timetable_under_which_nothing_was_opened_is_gone(database) {
        let seen = Seen::default();
        let future = |grid: &str| timetable("0 0 * * *", grid, "2199-06-01");
        open(&database, [report(&seen, future("day"))]).await.close().await;
        let refrain = open(&database, [report(&seen, future("hour"))]).await;
        assert_eq!(revisions(&database).await, ["0 0 * * * hour"]);
        assert_eq!(told(&refrain, "report").await, [""; 0]);
    }

    async fn a_job_that_loses_its_timetable_opens_nothing_more(database) {
        let seen = Seen::default();
        let refrain = open(&database, [report(&seen, daily())]).await;
        refrain.tick_at(june("03T00:01")).await.unwrap();
        refrain.close().await;
        let refrain = open(&database, [seen.job("report")]).await;
        assert_eq!(refrain.tick_at(june("09T00:01")).await.unwrap().opened, 0);
        assert_eq!(told(&refrain, "report").await, ["06-01 done 1", "06-02 done 1"]);
        refrain.enqueue("report", "by-hand", None).await.unwrap();
        refrain.tick().await.unwrap();
        assert_eq!(seen.all(), ["06-02", "06-01", "by-hand"], "what is on time goes first");
    }
}
