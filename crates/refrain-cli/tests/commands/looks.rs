//! A command that only reads changes no file, makes none, and needs no permission to write.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use crate::support::Desk;
use crate::support::release::{self, Filled};

/// What a command does to a store.
enum Command {
    /// It only reads: the listed commands are tried.
    Reads(&'static [&'static str]),
    /// It writes.
    Writes,
}

/// All commands; a new one must be added here.
const COMMANDS: [(&str, Command); 31] = [
    ("init", Command::Writes),
    ("check", Command::Reads(&["check", "--json check --all"])),
    ("next", Command::Reads(&["next export", "next nope"])),
    ("run", Command::Writes),
    ("tick", Command::Writes),
    ("serve", Command::Writes),
    ("enqueue", Command::Writes),
    ("once", Command::Writes),
    ("audit", Command::Reads(&["audit", "--json audit"])),
    (
        "effects",
        Command::Reads(&[
            "effects",
            "--json effects --job invoices",
            "effects --suppressed",
            "effects show mail:1",
            "effects --job nope",
        ]),
    ),
    ("status", Command::Reads(&["status", "status export", "--json status", "status nope"])),
    ("runs", Command::Reads(&["runs", "--json runs --state failed", "runs --job nope"])),
    (
        "show",
        Command::Reads(&["show revenue@2001-06-01", "--json show invoices#june", "show letter#unknown"]),
    ),
    ("logs", Command::Reads(&["logs export@2001-06-01", "logs letter#unknown"])),
    ("trace", Command::Reads(&["trace invoice:13", "--json trace mail:1", "trace nothing"])),
    ("why", Command::Reads(&["why letter#Bob", "why payment@2001-06-02", "--json why letter#unknown"])),
    ("retry", Command::Writes),
    (
        "checkpoint",
        Command::Reads(&["checkpoint show", "--json checkpoint show invoices", "checkpoint show nope"]),
    ),
    (
        "reconcile",
        Command::Reads(&["reconcile customers#1", "--json reconcile customers#2", "reconcile letter#Ada"]),
    ),
    ("cancel", Command::Writes),
    ("pause", Command::Writes),
    ("resume", Command::Writes),
    ("migrate", Command::Reads(&["migrate --print", "migrate --print=shop"])),
    ("backup", Command::Writes),
    ("recover", Command::Writes),
    ("fsck", Command::Reads(&["fsck", "--json fsck"])),
    ("prune", Command::Writes),
    ("schema", Command::Reads(&["schema"])),
    ("completions", Command::Reads(&["completions bash"])),
    ("man", Command::Reads(&["man"])),
    ("help", Command::Reads(&["help"])),
];

fn looks() -> impl Iterator<Item = &'static str> {
    COMMANDS
        .iter()
        .flat_map(|(_, command)| match command {
            Command::Reads(lines) => *lines,
            Command::Writes => &[],
        })
        .copied()
}

/// Every file below a directory with its content, and every directory.
fn files(directory: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
            found.insert(path, None);
        } else {
            found.insert(path.clone(), Some(fs::read(&path).unwrap()));
        }
    }
    found
}

/// Which files a command has made, changed or removed.
fn changed(desk: &Desk, line: &str) -> BTreeSet<String> {
    let before = files(desk.path());
    let output = desk.refrain(line);
    assert!(matches!(output.code, Some(0..=4)), "{line}: {output:?}");
    let after = files(desk.path());
    let name = |path: &PathBuf| path.strip_prefix(desk.path()).unwrap().display().to_string();
    before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).map(name).collect()
}

fn none_changes_a_file(desk: &Desk) {
    for line in looks() {
        assert_eq!(changed(desk, line), BTreeSet::new(), "refrain {line}");
    }
}

#[test]
fn every_command_is_known_to_read_or_to_write() {
    let help = Desk::new().refrain("help").stdout;
    let commands = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names: BTreeSet<&str> = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .collect();
    assert_eq!(COMMANDS.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>(), names);
}

#[tokio::test]
async fn a_look_changes_no_file_and_upgrades_nothing() {
    let filled = Filled::sqlite().await;
    none_changes_a_file(&filled.desk);
    // A store that cannot be read is left unchanged, too.
    filled
        .desk
        .refrain("status")
        .refuses(2, &["has schema 4", "reads schema 7 and later", "refrain migrate"]);

    filled.desk.refrain("migrate").succeeds(&["up to date"]);
    none_changes_a_file(&filled.desk);
    filled.desk.refrain("status export").succeeds(&["2001-06-01"]);
}

/// The same check detects what a command writes.
#[tokio::test]
async fn a_command_that_writes_is_seen_to_change_files() {
    let filled = Filled::sqlite().await;
    filled.desk.refrain("migrate").succeeds(&["up to date"]);
    assert_eq!(changed(&filled.desk, "cancel letter#Eve"), BTreeSet::from(["store.db".to_owned()]));
    assert_eq!(
        changed(&filled.desk, "backup copy.db"),
        BTreeSet::from(["copy.db".to_owned()]),
        "only the copy"
    );
}

#[test]
fn where_nothing_has_run_a_look_makes_nothing_and_says_what_to_do() {
    let nothing = Filled::nothing();
    none_changes_a_file(&nothing.desk);
    let printed = nothing.desk.refrain("status");
    assert!(
        printed.code == Some(0) && printed.stderr.contains("nothing has run yet; next: refrain run JOB"),
        "{printed:?}"
    );
    nothing
        .desk
        .refrain("show letter#Ada")
        .refuses(2, &["there is no store", "`refrain run`, `tick` and `migrate` create a store"]);
    nothing.desk.refrain("cancel letter#Ada").refuses(2, &["there is no store"]);
}

#[tokio::test]
async fn after_a_kill_a_reading_command_reads_the_log_and_leaves_it_unchanged() {
    let filled = Filled::sqlite().await;
    filled.desk.refrain("migrate").succeeds(&["up to date"]);
    for (name, text) in [
        ("store.db", "update refrain_runs set message = 'in the log alone' where key = 'Bob'"),
        ("shop.db", "update customers set name = 'in the log alone'"),
    ] {
        let mut writer = filled.connect(name).await;
        writer.execute(text).await.unwrap();
        // The files that a killed process leaves: no last connection has moved the log into the file.
        let endings = ["", "-wal", "-shm"];
        let left = endings.map(|ending| fs::read(filled.desk.file(&format!("{name}{ending}"))).unwrap());
        writer.close().await.unwrap();
        for (ending, content) in endings.iter().zip(left) {
            fs::write(filled.desk.file(&format!("{name}{ending}")), content).unwrap();
        }
    }
    none_changes_a_file(&filled.desk);
    filled.desk.refrain("show letter#Bob").succeeds(&["in the log alone"]);
    let compared = filled.desk.refrain("reconcile customers#1");
    assert!(compared.code == Some(1) && compared.stdout.contains("changed"), "{compared:?}");
}

/// The file was copied with its log, and without the index.
#[tokio::test]
async fn a_log_without_an_index_is_refused_by_a_look_and_read_by_a_command_that_writes() {
    let filled = Filled::sqlite().await;
    filled.desk.refrain("migrate").succeeds(&["up to date"]);
    let mut writer = filled.connect("store.db").await;
    writer.execute("update refrain_runs set message = 'in the log alone' where key = 'Bob'").await.unwrap();
    let left = ["", "-wal"].map(|ending| fs::read(filled.desk.file(&format!("store.db{ending}"))).unwrap());
    writer.close().await.unwrap();
    for (ending, content) in ["", "-wal"].iter().zip(left) {
        fs::write(filled.desk.file(&format!("store.db{ending}")), content).unwrap();
    }
    assert_eq!(changed(&filled.desk, "status"), BTreeSet::new());
    filled.desk.refrain("status").refuses(2, &["whose index", "is missing", "refrain migrate"]);
    filled.desk.refrain("migrate").succeeds(&["up to date"]);
    filled.desk.refrain("show letter#Bob").succeeds(&["in the log alone"]);
}

#[tokio::test]
async fn a_look_needs_no_more_than_the_right_to_select() {
    let filled = Filled::postgres().await;
    filled.desk.refrain("migrate").succeeds(&["up to date"]);
    let role = format!("reader_{}", std::process::id());
    let (mut urls, mut name) = (Vec::new(), String::new());
    for (at, server) in filled.servers.iter().enumerate() {
        let mut owner = server.connect().await;
        if at == 0 {
            owner
                .execute(AssertSqlSafe(format!("create role {role} login password 'hvi7Qx'")))
                .await
                .unwrap();
        }
        let grants = format!(
            "grant usage on schema refrain to {role}; grant select on all tables in schema refrain to {role};
             grant select on all tables in schema public to {role}; grant usage on schema public to {role}"
        );
        owner.execute(sqlx::raw_sql(AssertSqlSafe(grants))).await.unwrap();
        let url = server.url();
        let (user, place) = url.trim_start_matches("postgres://").split_once('@').unwrap();
        name = user.split(':').next().unwrap().to_owned();
        urls.push(format!("postgres://{role}:hvi7Qx@{place}"));
    }
    let desk = release::of(&urls[0], &urls[1]);
    for line in looks() {
        let (output, expected) = (desk.refrain(line), filled.desk.refrain(line));
        assert_eq!(
            (output.code, output.stdout.replace(&role, &name)),
            (expected.code, expected.stdout),
            "refrain {line}: {}",
            output.stderr
        );
    }
    desk.refrain("cancel letter#Eve").refuses(2, &["permission denied"]);
    for server in &filled.servers {
        let dropped = format!("drop owned by {role}");
        server.connect().await.execute(AssertSqlSafe(dropped)).await.unwrap();
    }
    filled.servers[0].connect().await.execute(AssertSqlSafe(format!("drop role {role}"))).await.unwrap();
}
