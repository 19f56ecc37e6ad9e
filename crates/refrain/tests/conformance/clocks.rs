//! An implausible clock opens no window: the clock of the database is compared with that of the
//! machine.

use refrain::{CatchUp, Error, Refrain};
use refrain_harness::every_store;

use refrain_harness::TestDatabase;
use refrain_harness::work::{Seen, daily, is_sound, open, run_states};

/// Sets the clock of the store ahead by this many microseconds, or back.
async fn clock_goes(database: &TestDatabase, by: i64) {
    if database.is_sqlite() {
        database.store("drop view refrain_clock").await;
        let now = "cast(unixepoch('subsec') * 1000000 as integer)";
        database.store(&format!("create view refrain_clock as select {now} + {by} as now")).await;
    } else {
        let now = "cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)";
        database.store(&format!("create or replace view refrain_clock as select {now} + {by} as now")).await;
    }
}

const YEAR: i64 = 366 * 24 * 3600 * 1_000_000;

#[every_store]
async fn f14_a_tick_with_two_clocks_that_disagree_opens_no_window(database: TestDatabase) {
    let seen = Seen::default();
    let report = || seen.job("report").timetable(daily()).catch_up(CatchUp::Latest);
    let refrain = open(&database, [report()]).await;
    refrain.tick().await.unwrap();
    let before = run_states(&refrain, "report").await;
    for by in [YEAR, -YEAR, 2 * 3600 * 1_000_000] {
        clock_goes(&database, by).await;
        let refused = refrain.tick().await.unwrap_err();
        assert!(refused.is_transient(), "cron asks again: {refused}");
        assert!(refused.to_string().contains("more than an hour apart: no window is opened"), "{refused}");
        assert_eq!(run_states(&refrain, "report").await, before, "no window of another year");
    }
    clock_goes(&database, 0).await;
    refrain.tick().await.unwrap();
    is_sound(&refrain).await;
}

#[every_store]
async fn f14_an_implausible_clock_puts_no_schedule_in_force(database: TestDatabase) {
    let seen = Seen::default();
    open(&database, [seen.job("report").timetable(daily())]).await.close().await;
    clock_goes(&database, YEAR).await;
    let hourly = refrain_harness::work::timetable("0 * * * *", "hour", "2020-06-01");
    let options = Refrain::at(&database.url(), "shop").unwrap().job(seen.job("report").timetable(hourly));
    assert!(matches!(options.open().await, Err(Error::Store(_))));
    clock_goes(&database, 0).await;
    let numbers = database.store_numbers("select count(*) from refrain_runs").await;
    assert_eq!(numbers, [0], "nothing was opened to make way for the edit");
    open(&database, [seen.job("report").timetable(daily())]).await.close().await;
}
