//! What happens to every window: while another one runs, when it is late, and under an earlier
//! schedule.

use std::time::Duration;

use refrain::core::AlarmKind;
use refrain::{Ask, Refrain};

use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::project::{TestProject, stopped_clock};
use refrain_harness::work::{is_sound, june, run_states, shown};

const DAILY: &str = r#"
    schedule = "@daily"
    window = "day"
    start = 2020-06-01
    catch-up = "all"
"#;

/// It runs until the file `gate` exists.
const GATED: &str = r#"#!/bin/sh
echo "begun $REFRAIN_DS" >> log
until [ -e gate ]; do sleep 0.01; done
echo "ended $REFRAIN_DS" >> log
"#;

/// A window runs during three ticks, and ends before a fourth. Returns the states of the windows while it
/// runs and at the end, and what the commands printed.
async fn three_ticks_long(shop: &TestProject, refrain: &Refrain, at_once: usize) -> [Vec<String>; 3] {
    let lines = || shop.lines("log");
    let mut server =
        shop.process(&["serve"], &[("REFRAIN_TEST_CLOCK", &stopped_clock("2020-06-02T00:01:00Z"))]);
    eventually("the first has begun", DEADLINE, async || lines() == ["begun 2020-06-01"]).await;
    for tick in ["03T00:01", "04T00:01"] {
        refrain.open_due(june(tick)).await.unwrap();
    }
    eventually("those that may have begun", DEADLINE, async || lines().len() == at_once).await;
    let meanwhile = run_states(refrain, "report").await;
    shop.write("gate", "");
    let all_ended = async || refrain.open_runs().await.unwrap() == 0;
    eventually("nothing is open", DEADLINE, all_ended).await;
    refrain.open_due(june("05T00:01")).await.unwrap();
    eventually("the fourth has ended", DEADLINE, all_ended).await;
    server.signal(rustix::process::Signal::TERM);
    assert!(server.wait().await.success());
    [meanwhile, run_states(refrain, "report").await, lines()]
}

fn of_days(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.replace(" 0", " 2020-06-0")).collect()
}

#[both_databases]
async fn h1_while_running_decides_about_an_overlapping_window(database: TestDatabase) {
    let table: [(&str, usize, [&[&str]; 3]); 3] = [
        (
            "queue",
            1,
            [
                &["06-01 running 1", "06-02 due 1", "06-03 due 1"],
                &["06-01 done 1", "06-02 done 1", "06-03 done 1", "06-04 done 1"],
                &[
                    "begun 01", "ended 01", "begun 02", "ended 02", "begun 03", "ended 03", "begun 04",
                    "ended 04",
                ],
            ],
        ),
        (
            "skip",
            1,
            [
                &["06-01 running 1", "06-02 skipped 0", "06-03 skipped 0"],
                &["06-01 done 1", "06-02 skipped 0", "06-03 skipped 0", "06-04 done 1"],
                &["begun 01", "ended 01", "begun 04", "ended 04"],
            ],
        ),
        (
            "allow",
            3,
            [
                &["06-01 running 1", "06-02 running 1", "06-03 running 1"],
                &["06-01 done 1", "06-02 done 1", "06-03 done 1", "06-04 done 1"],
                &[
                    "begun 01", "begun 02", "begun 03", "begun 04", "ended 01", "ended 02", "ended 03",
                    "ended 04",
                ],
            ],
        ),
    ];
    for (policy, at_once, expected) in table {
        let shop = TestProject::of(TestDatabase::like(&database).await);
        shop.program("gated.sh", GATED);
        shop.job("report", &format!("{DAILY}while-running = \"{policy}\"\ncommand = [\"./gated.sh\"]\n"));
        let refrain = shop.open().await;
        let [meanwhile, in_the_end, mut lines] = three_ticks_long(&shop, &refrain, at_once).await;
        assert_eq!(meanwhile, expected[0], "{policy}");
        assert_eq!(in_the_end, expected[1], "{policy}");
        if policy == "allow" {
            lines.sort();
        }
        assert_eq!(lines, of_days(expected[2]), "{policy}");
        for run in refrain.runs("report", "").await.unwrap() {
            let reason = (run.standing.node() == refrain::core::state::RunNode::Skipped)
                .then_some("another run of this job was running; while-running = \"skip\"");
            assert_eq!(run.message.as_deref(), reason, "{policy}");
        }
        is_sound(&refrain).await;
    }
}

#[both_databases]
async fn h1_a_window_that_is_not_done_within_the_grace_of_its_file_is_late(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.daily("total", "insert into nowhere values (:ds)", "grace = \"30m\"\nretry = { attempts = 1 }");
    let refrain = shop.open().await;
    refrain.tick_at(june("02T00:01")).await.unwrap();
    assert_eq!(refrain.alarms().await.unwrap(), []);
    refrain.tick_at(june("02T00:31")).await.unwrap();
    let alarms = refrain.alarms().await.unwrap();
    assert_eq!(alarms.len(), 1, "{alarms:?}");
    assert_eq!((alarms[0].kind, alarms[0].subject.as_str()), (AlarmKind::RunLate, "total@2020-06-01"));
    let (view, run) = (refrain.view("total").await.unwrap(), shown(&refrain, "total@2020-06-01").await);
    assert!(view.is_late(&run, june("02T00:31")) && !view.is_late(&run, june("02T00:29")));
    assert_eq!(refrain.job_records(None).await.unwrap()[0].grace, Some(Duration::from_mins(30)));
}

#[both_databases]
async fn h14_windows_before_an_edit_belong_to_the_old_schedule(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute("create table seen (version integer, from_at timestamp, until_at timestamp)").await;
    let file = |schedule: &str, window: &str, version: u32| {
        format!(
            r#"
                schedule = "{schedule}"
                window = "{window}"
                start = 2020-06-01
                catch-up = "all"
                version = {version}
                sql = "insert into seen values (:version, :window_start, :window_end)"
            "#
        )
    };
    shop.job("total", &file("@daily", "day", 1));
    shop.prepare().await;
    let noon = stopped_clock("2020-06-03T12:00:00Z");
    shop.done_with(&["tick"], &[("REFRAIN_TEST_CLOCK", &stopped_clock("2020-06-03T00:01:00Z"))]).await;
    shop.job("total", &file("@hourly", "hour", 2));
    let edited = shop.done_with(&["tick"], &[("REFRAIN_TEST_CLOCK", &noon)]).await;
    assert!(edited.contains("opened: 0"), "the ticks of a timetable begin with its edit: {edited}");
    shop.done_with(&["tick"], &[("REFRAIN_TEST_CLOCK", &stopped_clock("2020-06-03T13:00:30Z"))]).await;
    let seen = "select cast(version as text) || ' ' || cast(from_at as text) \
         || ' ' || cast(until_at as text) from seen";
    let days = ["1 2020-06-01 00:00:00 2020-06-02 00:00:00", "1 2020-06-02 00:00:00 2020-06-03 00:00:00"];
    let hour = |at: u32| format!("2 2020-06-03 {at:02}:00:00 2020-06-03 {:02}:00:00", at + 1);
    let expected: Vec<String> = days.map(str::to_owned).into_iter().chain((0..13).map(hour)).collect();
    assert_eq!(shop.rows(&format!("{seen} order by from_at")).await, expected);

    // Repeated under another version, a past window still has its own day.
    shop.done_with(&["run", "total@2020-06-02", "--again"], &[("REFRAIN_TEST_CLOCK", &noon)]).await;
    let first = shop.rows(&format!("{seen} where version = 2 order by from_at limit 1")).await;
    assert_eq!(first, [days[1].replacen('1', "2", 1)]);
    let mut inside = shop.process(&["run", "total@2020-06-02T05:00"], &[("REFRAIN_TEST_CLOCK", &noon)]);
    let text = String::from_utf8(inside.finish().await.stderr).unwrap();
    assert!(text.contains("it lies in the window 2020-06-02"), "{text}");
}

#[both_databases]
async fn f10_overlapping_ticks_from_cron_run_every_window_once(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.job(
        "report",
        r#"
            schedule = "@hourly"
            window = "hour"
            start = 2020-06-01
            catch-up = "all"
            while-running = "allow"
            command = ["sh", "-c", "echo $REFRAIN_RUN >> log"]
        "#,
    );
    shop.prepare().await;
    let clock = stopped_clock("2020-06-03T00:01:00Z");
    let variables = [("REFRAIN_TEST_CLOCK", clock.as_str()), ("PROJECT_LEASE", "60000")];
    let mut ticks: Vec<_> = (0..6).map(|_| shop.process(&["tick"], &variables)).collect();
    for tick in &mut ticks {
        let ended = tick.finish().await;
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    let mut run_states = shop.lines("log");
    run_states.sort();
    let hours =
        (1..3).flat_map(|day| (0..24).map(move |hour| format!("report@2020-06-0{day}T{hour:02}:00:00Z")));
    assert_eq!(run_states, hours.collect::<Vec<_>>());
    assert!(shop.done_with(&["tick"], &variables).await.contains("opened: 0"));
    let refrain = shop.open().await;
    is_sound(&refrain).await;
    assert_eq!(refrain.run("report@2020-06-02", Ask::Once).await.unwrap().attempt, 1);
}
