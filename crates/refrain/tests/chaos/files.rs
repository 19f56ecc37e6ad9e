//! The project of the weekend: jobs of every policy, in time zones whose clocks change meanwhile.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use refrain::Refrain;
use refrain::project::Project;
use sqlx::{AssertSqlSafe, Executor};
use tempfile::TempDir;

use refrain_harness::TestDatabase;

/// Appends a line when it begins, some while it runs, and one when it has ended.
const WORK: &str = r#"#!/bin/sh
tell() { echo "$1 $REFRAIN_RUN $REFRAIN_ATTEMPT $CHAOS_SERVER" >> log; }
tell begun
for _ in $(seq "$1"); do sleep 0.02; tell alive; done
tell ended
"#;

/// A period in which clocks change, and in which zones.
pub(crate) struct Weekend {
    pub(crate) from: Timestamp,
    hours: i64,
    zones: [&'static str; 2],
    date: &'static str,
    /// A time of day that does not exist, or occurs twice, in the first zone.
    night: &'static str,
}

/// The clocks of Berlin and London go forward.
pub(crate) fn gap() -> Weekend {
    let from = "2026-03-28T00:00:00Z".parse().unwrap();
    Weekend { from, hours: 36, zones: ["Europe/Berlin", "Europe/London"], date: "2026-03-28", night: "30 2" }
}

/// Those of Lord Howe go back by half an hour, and those of Santiago by one hour.
pub(crate) fn fold() -> Weekend {
    let (from, zones) =
        ("2026-04-04T00:00:00Z".parse().unwrap(), ["Australia/Lord_Howe", "America/Santiago"]);
    Weekend { from, hours: 36, zones, date: "2026-04-04", night: "45 1" }
}

impl Weekend {
    /// The same period, and some hours more.
    pub(crate) fn longer(self, hours: i64) -> Weekend {
        Weekend { hours: self.hours + hours, ..self }
    }

    pub(crate) fn until(&self) -> Timestamp {
        self.at(1, 1)
    }

    /// The instant at which this part of the period has passed.
    pub(crate) fn at(&self, parts: i64, of: i64) -> Timestamp {
        self.from + SignedDuration::from_mins(self.hours * 60 * parts / of)
    }

    fn job(&self, schedule: &str, window: &str, zone: &str, policies: [&str; 2], action: &str) -> String {
        let [catch_up, while_running] = policies;
        format!(
            r#"
                schedule = "{schedule}"
                window = "{window}"
                timezone = "{zone}"
                start = {}T00:00:00
                catch-up = {catch_up}
                while-running = "{while_running}"
                dst = {{ gap = "next", fold = "both" }}
                retry = {{ attempts = 50, backoff = "1s..1s" }}
                {action}
            "#,
            self.date
        )
    }
}

fn command(beats: u32) -> String {
    format!("command = [\"./work.sh\", \"{beats}\"]\nenv = [\"CHAOS_SERVER\"]")
}

/// Writes the whole text or nothing: a server may be starting.
fn put(root: &Path, name: &str, text: &str) {
    let part = root.join("part");
    fs::write(&part, text).unwrap();
    fs::rename(part, root.join("jobs").join(format!("{name}.toml"))).unwrap();
}

pub(crate) async fn write(database: &TestDatabase, weekend: &Weekend) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let settings = format!(
        r#"
            [project]
            name = "chaos"
            [store]
            url = "{}"
            [databases]
            shop = {{ url = "{}", time = "iso" }}
        "#,
        store(root, database),
        database.url()
    );
    fs::write(root.join("refrain.toml"), settings).unwrap();
    fs::write(root.join("work.sh"), WORK).unwrap();
    fs::set_permissions(root.join("work.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::create_dir(root.join("jobs")).unwrap();
    let [one, other] = weekend.zones;
    let nightly = format!("{} * * *", weekend.night);
    let moment = if database.is_sqlite() {
        ":window_start"
    } else {
        "to_char(:window_start at time zone 'UTC', 'YYYY-MM-DD\\\"T\\\"HH24:MI:SS\\\"Z\\\"')"
    };
    let rows = format!("database = \"shop\"\nsql = \"insert into written values ({moment})\"");
    for (name, text) in [
        ("hourly", weekend.job("5 * * * *", "hour", one, ["\"all\"", "queue"], &command(2))),
        ("nightly", weekend.job(&nightly, "day", one, ["\"all\"", "queue"], &command(4))),
        ("ticks", weekend.job("*/30 * * * *", "tick", other, ["\"latest\"", "skip"], &command(6))),
        ("halves", weekend.job("every 30m", "30m", "UTC", ["\"none\"", "allow"], &command(2))),
        ("within", weekend.job("0 * * * *", "hour", other, ["{ within = \"3h\" }", "queue"], &command(2))),
        ("rows", weekend.job("10 * * * *", "hour", one, ["\"all\"", "queue"], &rows)),
        ("edited", weekend.job("20 * * * *", "hour", one, ["\"all\"", "queue"], &command(1))),
        ("old-name", weekend.job("40 * * * *", "hour", other, ["\"all\"", "queue"], &command(1))),
    ] {
        put(root, name, &text);
    }
    let table = AssertSqlSafe("create table written (window_start text)");
    match database {
        TestDatabase::Sqlite { pool, .. } => drop(pool.execute(table).await.unwrap()),
        TestDatabase::Postgres { pool, .. } => drop(pool.execute(table).await.unwrap()),
    }
    let project = Project::load(root).unwrap();
    project.opening(None).await.unwrap().migrate().await.unwrap();
    project.migrate().await.unwrap();
    project.close().await;
    folder
}

/// From here on the job has windows of half an hour.
pub(crate) fn edit(root: &Path, weekend: &Weekend) {
    let text = weekend.job("*/30 * * * *", "30m", weekend.zones[0], ["\"all\"", "queue"], &command(1));
    put(root, "edited", &text);
}

/// From here on the job has another name.
pub(crate) fn rename(root: &Path, weekend: &Weekend) {
    let text = weekend.job("40 * * * *", "hour", weekend.zones[1], ["\"all\"", "queue"], &command(1));
    fs::remove_file(root.join("jobs/old-name.toml")).unwrap();
    put(root, "new-name", &format!("formerly = \"old-name\"\n{text}"));
}

/// A SQLite store is in the folder; a PostgreSQL store is in the database of the jobs.
fn store(root: &Path, database: &TestDatabase) -> String {
    if database.is_sqlite() {
        format!("sqlite:{}", root.join("refrain.db").display())
    } else {
        database.url()
    }
}

/// The store, opened read-only and without jobs: the servers put the timetables in force.
pub(crate) async fn look(root: &Path, database: &TestDatabase) -> Refrain {
    Refrain::at(&store(root, database), "chaos").unwrap().open().await.unwrap()
}

/// The rows that the statements have written.
pub(crate) async fn rows(database: &TestDatabase) -> Vec<String> {
    database.texts("select window_start from written order by window_start").await
}
