//! Overlapping ticks: cron does not wait for the tick before.

use rustix::process::Signal;

use crate::support::Desk;
use crate::support::children::ChildProcess;
use crate::support::postgres::Scratch;

const TICKS: usize = 8;

/// A count in a JSON object, by its name.
fn count(object: &str, name: &str) -> u64 {
    let (_, rest) = object.split_once(&format!("\"{name}\":")).unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Four days of windows are due, and eight ticks come at once: each window is opened once, and processed once.
async fn story(desk: &Desk) {
    desk.refrain("migrate").succeeds(&[]);
    desk.refrain("tick --now 2001-06-01T00:00:00Z").succeeds(&["1 window opened", "1 processed"]);
    let command = "--json tick --now 2001-06-05T00:00:00Z";
    let mut ticks: Vec<ChildProcess> =
        (0..TICKS).map(|_| ChildProcess::spawn(&mut desk.command(command))).collect();
    let mut totals = [("opened", 0), ("processed", 0), ("deduplicated", 0), ("failed", 0), ("lost", 0)];
    for tick in &mut ticks {
        let ended = tick.finish().await;
        let printed = String::from_utf8(ended.stdout).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{printed}{}", String::from_utf8_lossy(&ended.stderr));
        for (name, total) in &mut totals {
            *total += count(&printed, name);
        }
    }
    assert_eq!(totals, [("opened", 96), ("processed", 96), ("deduplicated", 0), ("failed", 0), ("lost", 0)]);
    desk.refrain(&command.replace("--json ", "")).succeeds(&["0 windows opened", "0 processed"]);
    desk.refrain("run noop-hourly@2001-06-03T12:00").succeeds(&["done already", "(attempt 1)"]);
    desk.refrain("fsck").succeeds(&["0 findings"]);
}

#[tokio::test]
async fn eight_ticks_at_once_open_and_process_every_window_once_on_sqlite() {
    story(&Desk::sqlite()).await;
}

#[tokio::test]
async fn eight_ticks_at_once_open_and_process_every_window_once_on_postgres() {
    let scratch = Scratch::create().await;
    story(&Desk::at(&scratch.url())).await;
}

#[tokio::test]
async fn tick_leaves_a_running_server_its_work() {
    let scratch = Scratch::create().await;
    let desk = Desk::at(&scratch.url());
    desk.refrain("migrate").succeeds(&[]);
    let mut serve = ChildProcess::spawn(&mut desk.command("serve"));
    serve.wait_for_line("serving").await;
    desk.refrain("run noop#1").succeeds(&[": done"]);
    desk.refrain("tick").succeeds(&["0 failed"]);
    serve.signal(Signal::TERM);
    assert_eq!(serve.finish().await.status.code(), Some(0));
    desk.refrain("fsck").succeeds(&["0 findings"]);
}
