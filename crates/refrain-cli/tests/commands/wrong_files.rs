//! One broken job file stops its own job and no other.

use crate::support::Desk;

const SOUND: &str = "queue = true\ncommand = [\"true\"]\n";
const WRONG: &str = "queue = true\ntimout = \"5m\"\ncommand = [\"true\"]\n";

#[test]
fn tick_runs_the_other_jobs_then_names_the_broken_file_and_exits_1() {
    let desk = Desk::sqlite().without_hourly();
    desk.write("jobs/good.toml", SOUND);
    desk.refrain("enqueue good --key 1").succeeds(&["queued"]);
    desk.write("jobs/wrong.toml", WRONG);
    let ticked = desk.refrain("tick");
    assert_eq!(ticked.code, Some(1), "{ticked:?}");
    assert!(ticked.stdout.contains("1 processed"), "{ticked:?}");
    let last = ticked.stdout.trim_end().lines().last().unwrap();
    assert_eq!(last, "ignored, because their files are invalid: jobs/wrong.toml");
    let printed = desk.refrain("--json tick");
    assert!(printed.stdout.contains(r#""left_out":["jobs/wrong.toml"]"#), "{printed:?}");

    let ran = desk.refrain("run good#1");
    ran.succeeds(&["done already"]);
    assert!(ran.stderr.contains("ignored, because their files are invalid: jobs/wrong.toml"), "{ran:?}");
    desk.refrain("run wrong#1").refuses(2, &["`timout`", "did you mean `timeout`?"]);
    desk.refrain("enqueue wrong --key 1").refuses(2, &["`timout`"]);
    desk.refrain("check").refuses(2, &["1 problem in 1 file", "`timout`"]);
    desk.write("refrain.toml", "[project]\nname = 7\n");
    desk.refrain("tick").refuses(2, &["refrain.toml"]);
    desk.refrain("run good#1").refuses(2, &["refrain.toml"]);
}

#[test]
fn neither_of_two_conflicting_jobs_runs() {
    let desk = Desk::of(&[
        (
            "refrain.toml",
            r#"
                [project]
                name = "shop"
                [databases]
                shop = "sqlite:shop.db"
            "#,
        ),
        ("jobs/good.toml", SOUND),
    ])
    .with_store("sqlite:store.db");
    let days = r#"
        schedule = "@daily"
        window = "day"
        database = "shop"
        query = "select :ds as day, 1 as n"
        [publish]
        table = "totals"
        mode = "overwrite"
        owns = "day = :ds"
    "#;
    for name in ["one", "other"] {
        desk.write(&format!("jobs/{name}.toml"), days);
    }
    let check = desk.refrain("check");
    assert!(check.stderr.contains("overwrites `totals`"), "{check:?}");
    for name in ["one", "other"] {
        desk.refrain(&format!("run {name}")).refuses(2, &["each job would overwrite the other's rows"]);
    }
    desk.refrain("run good#1").succeeds(&["done"]);
    let ticked = desk.refrain("tick");
    assert!(
        ticked.stdout.ends_with("ignored, because their files are invalid: jobs/one.toml, jobs/other.toml\n"),
        "{ticked:?}"
    );
}

#[test]
fn a_broken_file_is_not_taken_for_a_removed_one() {
    let desk = Desk::sqlite();
    desk.refrain("tick --now 2001-06-01T00:30:00Z").succeeds(&[]);
    let hourly = std::fs::read_to_string(desk.file("jobs/noop-hourly.toml")).unwrap();
    desk.write("jobs/noop-hourly.toml", &format!("{hourly}timout = \"5m\"\n"));
    assert_eq!(desk.refrain("tick --now 2001-06-01T03:30:00Z").code, Some(1));
    desk.write("jobs/noop-hourly.toml", &hourly);
    let ticked = desk.refrain("tick --now 2001-06-01T05:30:00Z");
    ticked.succeeds(&["5 windows opened"]);

    std::fs::remove_file(desk.file("jobs/noop-hourly.toml")).unwrap();
    desk.refrain("tick --now 2001-06-01T06:30:00Z").succeeds(&["0 failed"]);
    desk.write("jobs/noop-hourly.toml", &hourly);
    desk.refrain("tick --now 2001-06-01T10:30:00Z").succeeds(&["0 windows opened"]);
    desk.refrain("tick --now 2001-06-01T11:01:00Z").succeeds(&["1 window opened"]);
    let left_out = desk.refrain("why noop-hourly@2001-06-01T08:00");
    left_out.succeeds(&["is not expected"]);
}
