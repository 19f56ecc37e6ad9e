//! Unexpected rows and answers, and large secrets: they are read, redacted, and cost little.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use rustix::process::Signal;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use crate::support::children::ChildProcess;
use crate::support::{Desk, output_of};

const PROJECT: &str = r#"
    [project]
    name = "shop"

    [databases]
    shop = "sqlite:shop.db"
"#;
const SYNC: &str = r#"
    queue = true
    command = ["cat", "lines"]
    output = "units"
    retry = { attempts = 1 }

    [unit]
    key = "invoice:{id}"

    [publish]
    database = "shop"
    table = "invoices"
    mode = "merge"
    key = ["id"]
"#;
const CALL: &str = r#"
    queue = true
    command = ["cat", "lines"]
    output = "units"
    database = "shop"
    retry = { attempts = 1 }

    [unit]
    key = "invoice:{id}"
    http = { url = "http://127.0.0.1:PORT/x", headers = { Authorization = "Bearer ${TOKEN}" }, json = { id = "{id}" } }
"#;
const TOKEN: &str = "tok-canary-1234567890";

async fn shop(desk: &Desk) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(desk.file("shop.db")).create_if_missing(true);
    SqliteConnection::connect_with(&options).await.unwrap()
}

#[tokio::test]
async fn an_out_of_range_version_in_a_ledger_is_readable() {
    let desk = Desk::of(&[
        ("refrain.toml", PROJECT),
        ("jobs/sync.toml", SYNC),
        ("lines", "{\"id\":1}\n{\"id\":2}\n"),
    ]);
    let mut shop = shop(&desk).await;
    shop.execute("create table invoices (id integer primary key)").await.unwrap();
    desk.refrain("run sync#1").succeeds(&["done"]);
    let changed =
        shop.execute("update refrain_units set version = 2606091530 where key = 'invoice:1'").await.unwrap();
    assert_eq!(changed.rows_affected(), 1);
    desk.refrain("trace invoice:1").succeeds(&["version 2606091530"]);
    let refused = desk.refrain("run sync#2");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let output = "version 2147483647 was recorded; this worker has version 1";
    assert!(refused.stdout.contains(output), "{refused:?}");
    desk.write("jobs/sync.toml", &format!("version = 2606091530\n{SYNC}"));
    desk.refrain("check").refuses(2, &["`version` must be at most 2147483647"]);
    desk.write("jobs/sync.toml", &format!("version = 2147483647\n{SYNC}"));
    desk.refrain("run sync#3").succeeds(&["done", "1 processed, 0 skipped, 1 deduplicated"]);
    shop.execute("update refrain_units set version = 9007199254740993 where key = 'invoice:2'")
        .await
        .unwrap();
    desk.refrain("trace invoice:2").succeeds(&["invoice:2"]);
    desk.refrain("run sync#3 --again").succeeds(&["0 processed, 0 skipped, 2 deduplicated"]);
    shop.close().await.unwrap();
}

/// Rows that another program has written are reported, and the commands that list go on.
#[tokio::test]
async fn lists_skip_unreadable_rows_and_fsck_names_them() {
    let desk = Desk::new().without_hourly();
    desk.refrain("enqueue noop --key 1").succeeds(&["queued"]);
    desk.refrain("enqueue noop-once --key 1").succeeds(&["queued"]);
    let options = SqliteConnectOptions::new().filename(desk.file(".refrain/refrain.db"));
    let mut store = SqliteConnection::connect_with(&options).await.unwrap();
    for (fault, mend) in [
        (
            "update refrain_jobs set paused_at = 9223372036854775807 where name = 'noop'",
            "update refrain_jobs set paused_at = null where name = 'noop'",
        ),
        (
            "insert into refrain_jobs (name, identity) values ('No Name', 'no-name')",
            "delete from refrain_jobs where name = 'No Name'",
        ),
        (
            "insert into refrain_jobs (id, name, identity) values (3000000000, 'far', 'far')",
            "delete from refrain_jobs where name = 'far'",
        ),
        (
            "update refrain_runs set version = 4294967296 where job = (select id from refrain_jobs \
             where name = 'noop')",
            "update refrain_runs set version = 1",
        ),
        (
            "update refrain_queue set attempt = 4294967296 where run = (select min(id) from refrain_runs)",
            "update refrain_queue set attempt = 1",
        ),
    ] {
        assert!(store.execute(fault).await.unwrap().rows_affected() > 0, "{fault}");
        for line in ["status", "runs", "--json status"] {
            let output = desk.refrain(line);
            assert_eq!(output.code, Some(0), "{fault}: {line}: {output:?}");
            assert!(output.stdout.contains("noop-once"), "{fault}: {line}: {output:?}");
        }
        assert!(desk.refrain("status").stderr.contains("`refrain fsck` lists what is wrong"), "{fault}");
        let found = desk.refrain("fsck");
        assert_eq!(found.code, Some(1), "{fault}: {found:?}");
        assert!(found.stdout.contains("cannot be read"), "{fault}: {found:?}");
        store.execute(mend).await.unwrap();
        desk.refrain("fsck").succeeds(&["0 findings"]);
    }
    store.close().await.unwrap();
}

/// A server that answers each request with its token, with a control character between the letters.
fn receiver() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut request = Vec::new();
            let mut buffer = [0; 4_096];
            while !request.ends_with(b"}")
                && let Ok(size @ 1..) = stream.read(&mut buffer)
            {
                request.extend_from_slice(buffer.get(..size).unwrap());
            }
            let spread: String = TOKEN.chars().flat_map(|letter| [letter, '\u{1}']).collect();
            let body = format!("{}{spread}{}", "x".repeat(400), "y".repeat(200));
            let head =
                format!("HTTP/1.1 422 Odd\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    port
}

#[tokio::test]
async fn s16_a_secret_echoed_in_pieces_is_not_stored() {
    let job = CALL.replace("PORT", &receiver().to_string());
    let desk = Desk::of(&[("refrain.toml", PROJECT), ("jobs/call.toml", &job), ("lines", "{\"id\":1}\n")]);
    shop(&desk).await.close().await.unwrap();
    let ran = output_of(desk.command("run call#1").env("TOKEN", TOKEN));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let traced = output_of(desk.command("trace invoice:1").env("TOKEN", TOKEN));
    traced.succeeds(&["422", "••••"]);
    for file in ["shop.db", "shop.db-wal", ".refrain/refrain.db", ".refrain/refrain.db-wal"] {
        let bytes = fs::read(desk.file(file)).unwrap_or_default();
        let spread: Vec<u8> = TOKEN.bytes().flat_map(|byte| [byte, 1]).collect();
        for secret in [TOKEN.as_bytes(), &TOKEN.as_bytes()[..12], &spread] {
            assert!(!bytes.windows(secret.len()).any(|window| window == secret), "{file}");
        }
    }
}

/// A size from `/proc/PID/status`, in MiB.
fn memory(serve: &ChildProcess, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", serve.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1_024
}

/// A copy for each job would be gigabytes, and one more for each reload some sixty megabytes.
#[tokio::test]
async fn s22_a_large_secret_is_held_in_memory_once() {
    let desk = Desk::of(&[("refrain.toml", PROJECT)]);
    for number in 0..100 {
        let job = "queue = true\ncommand = [\"echo\", \"x\"]\nenv = [\"KEY\"]\n";
        desk.write(&format!("jobs/job{number}.toml"), job);
    }
    let key: String = (0..16_000_u32).map(|n| char::from(b'0' + u8::try_from(n * n % 71).unwrap())).collect();
    let mut serve = ChildProcess::spawn(desk.command("serve --listen none").env("KEY", key));
    serve.wait_for_line("serving").await;
    for _ in 0..3 {
        serve.signal(Signal::HUP);
        serve.wait_for_line("the project was reloaded").await;
    }
    let before = memory(&serve, "VmRSS");
    for _ in 0..20 {
        serve.signal(Signal::HUP);
        serve.wait_for_line("the project was reloaded").await;
    }
    let (after, peak) = (memory(&serve, "VmRSS"), memory(&serve, "VmHWM"));
    assert!(after < before + 40 && peak < 400, "{before} MiB, then {after}, at most {peak}");
    serve.signal(Signal::TERM);
    assert_eq!(serve.finish().await.status.code(), Some(0));
}
