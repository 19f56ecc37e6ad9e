//! The programs under `examples/` that users are meant to copy: each is run, run again, run twice at once, and
//! killed.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use refrain_harness::children::ChildProcess;
use refrain_harness::programs::program;
use rustix::process::Signal;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tempfile::TempDir;

/// A directory for one program: its files, and the program started in it.
struct Folder {
    directory: TempDir,
    program: &'static str,
}

impl Folder {
    fn of(program: &'static str) -> Folder {
        Folder { directory: tempfile::tempdir().unwrap(), program }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn start(&self, files: &[&str]) -> ChildProcess {
        ChildProcess::spawn(
            Command::new(program(self.program)).args(files).current_dir(self.directory.path()),
        )
    }

    /// Runs it to its end. Returns its output.
    async fn run(&self, files: &[&str]) -> Vec<String> {
        let output = self.start(files).finish().await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }

    /// Starts it and kills it when it has printed this.
    async fn killed_after(&self, files: &[&str], line: &str) {
        let mut victim = self.start(files);
        victim.wait_for_line(line).await;
        victim.signal(Signal::KILL);
        victim.wait().await;
    }

    async fn open(&self, file: &str) -> SqlitePool {
        let options = SqliteConnectOptions::new().filename(self.path(file)).create_if_missing(true);
        SqlitePool::connect_with(options).await.unwrap()
    }

    async fn numbers(&self, file: &str, query: &'static str) -> Vec<i64> {
        let pool = self.open(file).await;
        let numbers = sqlx::query_scalar(query).fetch_all(&pool).await.unwrap();
        pool.close().await;
        numbers
    }

    async fn execute(&self, file: &str, statement: &'static str) {
        let pool = self.open(file).await;
        sqlx::raw_sql(statement).execute(&pool).await.unwrap();
        pool.close().await;
    }
}

fn ends_with(lines: &[String], word: &str) -> usize {
    lines.iter().filter(|line| line.ends_with(word)).count()
}

#[tokio::test]
async fn the_program_sends_one_digest_per_hour_however_often_it_starts() {
    let folder = Folder::of("digest_claim");
    let events = "create table events (hour text, body text);
        with recursive n (i) as (select 0 union all select i + 1 from n where i < 599)
        insert into events select printf('2026-06-09T%02d:%02d', i / 60, i % 60), 'body' from n";
    folder.execute("shop.db", events).await;
    folder.killed_after(&["shop.db"], "T00:05 done").await;
    let (mut one, mut two) = (folder.start(&["shop.db"]), folder.start(&["shop.db"]));
    assert!(one.finish().await.status.success() && two.finish().await.status.success());
    let again = folder.run(&["shop.db"]).await;
    assert_eq!((again.len(), ends_with(&again, " done")), (600, 0));
    let digests = folder.numbers("shop.db", "select count(*) from digests group by hour").await;
    assert_eq!(digests, vec![1; 600]);
}

#[tokio::test]
async fn an_order_is_booked_once_however_often_it_is_delivered() {
    let folder = Folder::of("order_consumer");
    let mut messages = String::new();
    for delivery in 0..2 {
        for order in 1..=300 {
            writeln!(messages, r#"{{"id":"o{order}","amount":{order}}}"#).unwrap();
        }
        if delivery == 0 {
            // Fields in another order are the same content; another amount is not.
            writeln!(messages, r#"{{"amount":7,"id":"o7"}}"#).unwrap();
            writeln!(messages, r#"{{"id":"o8","amount":800}}"#).unwrap();
        }
    }
    std::fs::write(folder.path("messages"), messages).unwrap();
    folder.killed_after(&["shop.db", "messages"], "ack o20 booked").await;
    let message = folder.run(&["shop.db", "messages"]).await;
    assert_eq!(message.len(), 602);
    assert_eq!(message.iter().filter(|line| line.starts_with("reject unit `order:o8`")).count(), 1);
    let again = folder.run(&["shop.db", "messages"]).await;
    assert_eq!(ends_with(&again, "booked"), 0);
    assert_eq!(folder.numbers("shop.db", "select amount from balance").await, [300 * 301 / 2]);
}

const FILES: [&str; 3] = ["store.db", "shop.db", "source"];

/// Writes the source: invoices with their totals, changed at these times.
fn write_source(folder: &Folder, invoices: &[(i64, i64, i64)]) {
    let line = |(id, total, updated): &(i64, i64, i64)| {
        format!(r#"{{"id":{id},"total":{total},"updated":{updated}}}"#)
    };
    let lines: Vec<String> = invoices.iter().map(line).collect();
    std::fs::write(folder.path("source"), lines.join("\n")).unwrap();
}

#[tokio::test]
async fn m12_a_killed_sync_resumes_and_writes_nothing_twice() {
    let folder = Folder::of("invoice_sync");
    let mut invoices: Vec<(i64, i64, i64)> = (1..=450).map(|id| (id, id * 10, id)).collect();
    invoices[36].1 = -1;
    write_source(&folder, &invoices);
    // The source is read anew for each page: the killed process finds a pipe into which one page is written, and
    // waits for the second.
    let (pipe, text) = (folder.path("source"), std::fs::read(folder.path("source")).unwrap());
    std::fs::remove_file(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::write(pipe, text).unwrap()
    });
    folder.killed_after(&FILES, "a page of 100").await;
    writer.join().unwrap();
    std::fs::remove_file(&pipe).unwrap();
    write_source(&folder, &invoices);
    let message = folder.run(&FILES).await;
    assert!(message.contains(&"a page of 50".to_owned()), "{message:?}");
    assert_eq!(folder.numbers("shop.db", "select count(*) from invoices where total = id * 10").await, [449]);

    let again = folder.run(&FILES).await;
    let parked = "not all units of this run are applied: 1 left, `invoice:37` first";
    assert_eq!(again, ["0 processed, 0 skipped, 0 deduplicated, 0 failed", parked]);
    invoices[36] = (37, 370, 900);
    invoices[0] = (1, 11, 901);
    write_source(&folder, &invoices);
    let mended = folder.run(&FILES).await;
    assert_eq!(mended[1..], ["2 processed, 0 skipped, 0 deduplicated, 0 failed"]);
    let totals = folder.numbers("shop.db", "select total from invoices order by id").await;
    assert_eq!((totals.len(), totals[0], totals[36]), (450, 11, 370));
}
