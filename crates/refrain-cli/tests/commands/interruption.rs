//! Signals: the first lets running attempts end, the second gives them back.

use rustix::process::Signal;

use crate::support::Desk;
use crate::support::children::ChildProcess;
use crate::support::eventually::{DEADLINE, eventually};

/// A run that lasts until the file `go` exists.
fn with_a_long_run() -> (Desk, String) {
    let desk = Desk::sqlite();
    desk.refrain("migrate").succeeds(&[]);
    let go = desk.file("go");
    let payload = format!(r#"{{"until": {:?}}}"#, go.to_str().unwrap());
    desk.enqueue("noop", "long", &payload);
    (desk, payload)
}

/// Its command is running.
async fn it_lasts(desk: &Desk) {
    eventually("the command waits for its file", DEADLINE, async || desk.file("go.awaited").exists()).await;
}

fn let_it_end(desk: &Desk) {
    std::fs::write(desk.file("go"), "").unwrap();
}

#[tokio::test]
async fn serve_finishes_its_running_attempts_and_starts_no_new_ones() {
    for signal in [Signal::TERM, Signal::INT] {
        let (desk, payload) = with_a_long_run();
        let mut serve = ChildProcess::spawn(&mut desk.command("--json serve"));
        it_lasts(&desk).await;
        serve.signal(signal);
        serve.wait_for_line("draining").await;
        desk.enqueue("noop", "later", &payload);
        let_it_end(&desk);
        let ended = serve.finish().await;
        let printed = String::from_utf8(ended.stdout).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{printed}");
        assert!(printed.starts_with(r#"{"schema_version":1,"command":"serve","#), "{printed}");
        desk.refrain("run noop#long").succeeds(&["noop#long: done already", "(attempt 1)"]);
        desk.refrain("run noop#later").succeeds(&["noop#later: done (attempt 1)"]);
        desk.refrain("fsck").succeeds(&["0 findings"]);
    }
}

#[tokio::test]
async fn a_second_signal_gives_running_attempts_back() {
    let (desk, _) = with_a_long_run();
    let mut serve = ChildProcess::spawn(&mut desk.command("serve"));
    it_lasts(&desk).await;
    serve.signal(Signal::TERM);
    serve.wait_for_line("draining").await;
    serve.signal(Signal::TERM);
    serve.wait_for_line("stopping").await;
    let ended = serve.finish().await;
    let printed = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{printed}");
    // On a slow machine the window that was just opened is running too.
    assert!(printed.contains(" to be tried again") && !printed.contains("0 to be tried again"), "{printed}");
    desk.refrain("fsck").succeeds(&["0 findings"]);
    let_it_end(&desk);
    desk.refrain("tick").succeeds(&["0 failed"]);
    desk.refrain("run noop#long").succeeds(&["noop#long: done already", "(attempt 2)"]);
}

#[tokio::test]
async fn an_idle_serve_stops_at_once() {
    let desk = Desk::sqlite();
    let mut serve = ChildProcess::spawn(&mut desk.command("serve"));
    serve.wait_for_line("serving").await;
    serve.signal(Signal::TERM);
    let ended = serve.finish().await;
    assert_eq!(ended.status.code(), Some(0));
    assert!(String::from_utf8(ended.stdout).unwrap().contains("processed"));
}

#[tokio::test]
async fn an_interrupted_run_or_tick_is_resumed_later() {
    for (command, words) in [("run noop#long", "it is queued again"), ("tick", "were returned to the queue")]
    {
        let (desk, _) = with_a_long_run();
        let mut child = ChildProcess::spawn(&mut desk.command(command));
        it_lasts(&desk).await;
        child.signal(Signal::INT);
        let ended = child.finish().await;
        let printed = String::from_utf8(ended.stdout).unwrap() + &String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(130), "{command}: {printed}");
        assert!(printed.contains(words), "{command}: {printed}");
        desk.refrain("fsck").succeeds(&["0 findings"]);
        let_it_end(&desk);
        desk.refrain("run noop#long").succeeds(&["noop#long: done (attempt 2)"]);
    }
}

#[tokio::test]
async fn the_second_caller_follows_the_first() {
    let (desk, _) = with_a_long_run();
    let mut first = ChildProcess::spawn(&mut desk.command("run noop#long"));
    it_lasts(&desk).await;
    let mut second = ChildProcess::spawn(&mut desk.command("--json run noop#long --again"));
    let mut third = ChildProcess::spawn(&mut desk.command("run noop#long"));
    third.signal(Signal::CONT);
    let_it_end(&desk);
    assert_eq!(first.finish().await.status.code(), Some(0));
    for follower in [&mut second, &mut third] {
        assert_eq!(follower.finish().await.status.code(), Some(0));
    }
    desk.refrain("fsck").succeeds(&["0 findings"]);
}
