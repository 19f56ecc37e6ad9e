//! `refrain once`: any command, at most once for a key.

use std::io::Write as _;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::children::ChildProcess;
use crate::support::eventually::{DEADLINE, eventually};
use crate::support::postgres::Scratch;
use crate::support::{CommandOutput, Desk, output_of};

/// `refrain once KEY OPTIONS -- sh -c SCRIPT`.
fn once(desk: &Desk, key: &str, options: &[&str], script: &str) -> CommandOutput {
    output_of(&mut desk.command_of(&[&["once", key], options, &["--", "sh", "-c", script]].concat()))
}

fn lines(desk: &Desk, file: &str) -> usize {
    std::fs::read_to_string(desk.file(file)).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_command_is_executed_once_for_its_key_on_both_databases() {
    let scratch = Scratch::create().await;
    for desk in [Desk::sqlite(), Desk::at(&scratch.url())] {
        desk.refrain("migrate").succeeds(&[]);
        let script = "cat > letter; echo sent; echo done >&2";
        let mut first = desk.command_of(&["once", "mail:7", "--", "sh", "-c", script]);
        let mut first =
            first.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        first.stdin.take().unwrap().write_all(b"dear Ada").unwrap();
        let output = first.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"sent\n"[..], &b"done\n"[..]));
        assert_eq!(
            std::fs::read_to_string(desk.file("letter")).unwrap(),
            "dear Ada",
            "its input is passed on"
        );

        let second = once(&desk, "mail:7", &[], "echo again > letter");
        second.succeeds(&[]);
        assert!(second.stdout.is_empty() && second.stderr.contains("already confirmed since"), "{second:?}");
        assert_eq!(std::fs::read_to_string(desk.file("letter")).unwrap(), "dear Ada");
        desk.refrain("trace mail:7").succeeds(&["effect once, version 1: confirmed", "1 deduplicated"]);
        desk.refrain("fsck").succeeds(&["0 findings"]);
    }
}

#[test]
fn exit_codes_are_passed_on_and_decide_what_is_known() {
    let desk = Desk::sqlite();
    for (key, options, script, code, next) in [
        ("done", &[][..], "exit 0", 0, 0),
        ("later", &[], "exit 75", 75, 75),
        ("nothing", &["--not-done", "3,22"], "exit 22", 22, 22),
        ("failed", &[], "exit 22", 22, 4),
        ("killed", &[], "kill -9 $$", 137, 4),
        ("given-up", &["--in-doubt", "at-most-once"], "exit 1", 1, 0),
        ("repeated", &["--in-doubt", "at-least-once"], "exit 1", 1, 1),
        ("known", &["--in-doubt", "provider-key", "--provider-ttl", "24h"], "exit 1", 1, 1),
        ("forgotten", &["--in-doubt", "provider-key", "--provider-ttl", "30s"], "exit 1", 1, 4),
    ] {
        let first = once(&desk, key, options, &format!("echo x >> {key}; {script}"));
        assert_eq!(first.code, Some(code), "{key}: {first:?}");
        let second = once(&desk, key, options, &format!("echo x >> {key}; {script}"));
        assert_eq!(second.code, Some(next), "{key}: {second:?}");
        let executed = if [0, 4].contains(&next) { 1 } else { 2 };
        assert_eq!(lines(&desk, key), executed, "{key}");
    }
    let doubt = once(&desk, "failed", &[], "true");
    for words in ["failed is in doubt since", "ended with exit code 22", "refrain effects confirm failed"] {
        assert!(doubt.stderr.contains(words), "{doubt:?}");
    }
    desk.refrain("fsck").succeeds(&["0 findings"]);
}

#[test]
fn a_command_that_cannot_be_started_frees_its_key() {
    let desk = Desk::sqlite();
    let refused = output_of(&mut desk.command_of(&["once", "mail:7", "--", "./no-such-program"]));
    refused.refuses(2, &["./no-such-program cannot be started", "nothing was executed"]);
    once(&desk, "mail:7", &[], "true").succeeds(&[]);
}

#[test]
fn a_higher_version_is_executed_once_more() {
    let desk = Desk::sqlite();
    for version in ["1", "2", "1", "2"] {
        let script = r#"echo "$REFRAIN_EFFECT_KEY $REFRAIN_EFFECT_VERSION $REFRAIN_IDEMPOTENCY_KEY" >> sent"#;
        once(&desk, "mail:7", &["--version", version], script).succeeds(&[]);
    }
    let sent = std::fs::read_to_string(desk.file("sent")).unwrap();
    let sent: Vec<Vec<&str>> = sent.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(sent.len(), 2);
    assert_eq!([sent[0][..2].to_vec(), sent[1][..2].to_vec()], [["mail:7", "1"], ["mail:7", "2"]]);
    assert_ne!(sent[0][2], sent[1][2], "each version has an idempotency key of its own");
}

#[tokio::test]
async fn a_racing_call_waits_for_the_first_and_reports_it() {
    let desk = Desk::sqlite();
    let wait_for_go = "echo x >> sent; echo begun; while [ ! -e go ]; do sleep 0.02; done";
    for (key, end, next, sends) in [
        ("confirmed", "exit 0", 0, 1),
        ("freed", "[ $(wc -l < sent) -gt 1 ] || exit 75", 0, 2),
        ("doubtful", "exit 1", 4, 1),
    ] {
        for file in ["sent", "go"] {
            let _ = std::fs::remove_file(desk.file(file));
        }
        let script = format!("{wait_for_go}; {end}");
        let arguments = ["once", key, "--", "sh", "-c", &script];
        let mut first = ChildProcess::spawn(&mut desk.command_of(&arguments));
        first.wait_for_line("begun").await;
        let short = once(&desk, key, &["--wait", "0s"], "echo never");
        short.refuses(75, &["is executed by another caller since"]);
        let mut others: Vec<_> =
            (0..3).map(|_| ChildProcess::spawn(&mut desk.command_of(&arguments))).collect();
        desk.write("go", "");
        first.wait().await;
        for other in &mut others {
            assert_eq!(other.wait().await.code(), Some(next), "{key}");
        }
        assert_eq!(lines(&desk, "sent"), sends, "{key}");
    }
}

#[tokio::test]
async fn a_signal_ends_the_command_and_a_killed_caller_takes_it_along() {
    let desk = Desk::sqlite();
    let script = "trap 'echo ended; exit 7' TERM; echo begun; while :; do sleep 0.02; done";
    let mut caller = ChildProcess::spawn(&mut desk.command_of(&["once", "mail:7", "--", "sh", "-c", script]));
    caller.wait_for_line("begun").await;
    caller.signal(Signal::TERM);
    let output = caller.finish().await;
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    once(&desk, "mail:7", &[], "echo never").refuses(4, &["because its caller was told to stop"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("ended"), "{output:?}");

    let script = "echo $$ > pid.part; mv pid.part pid; echo begun; sleep 600";
    let mut caller = ChildProcess::spawn(&mut desk.command_of(&["once", "mail:8", "--", "sh", "-c", script]));
    caller.wait_for_line("begun").await;
    let pid = std::fs::read_to_string(desk.file("pid")).unwrap();
    caller.signal(Signal::KILL);
    once(&desk, "mail:8", &[], "echo never").refuses(4, &["is in doubt", "its sender is gone"]);
    let status = format!("/proc/{}/status", pid.trim());
    let is_gone = || std::fs::read_to_string(&status).map_or(true, |status| status.contains("State:\tZ"));
    assert!(is_gone(), "the command has ended before its key is in doubt");
}

#[test]
fn without_a_project_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let mut once = Desk::new().command_of(&["once", "mail:7", "--", "touch", "sent"]);
    output_of(once.current_dir(folder.path())).refuses(2, &["refrain.toml"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_wrong_call_is_refused_before_anything_is_executed() {
    let desk = Desk::sqlite();
    let long = "k".repeat(513);
    for (arguments, words) in [
        (&["once", "mail:7"][..], "COMMAND"),
        (&["once", &long, "--", "touch", "sent"], "512"),
        (&["once", "a\nb", "--", "touch", "sent"], "key"),
        (&["once", "mail:7", "--in-doubt", "probe", "--", "touch", "sent"], "a command has no probe"),
        (&["once", "mail:7", "--in-doubt", "maybe", "--", "touch", "sent"], "maybe"),
        (&["once", "mail:7", "--in-doubt", "provider-key", "--", "touch", "sent"], "--provider-ttl"),
        (&["once", "mail:7", "--not-done", "0", "--", "touch", "sent"], "0"),
        (&["once", "mail:7", "--not-done", "300", "--", "touch", "sent"], "300"),
        (&["once", "mail:7", "--version", "4000000000", "--", "touch", "sent"], "the highest is 2147483647"),
        (&["once", "mail:7", "--wait", "soon", "--", "touch", "sent"], "soon"),
    ] {
        output_of(&mut desk.command_of(arguments)).refuses(2, &[words]);
    }
    assert!(!desk.file("sent").exists());
}

#[test]
fn the_result_as_json_goes_to_stderr_because_stdout_is_the_command_s() {
    let desk = Desk::sqlite();
    let first = once(&desk, "mail:7", &["--json"], "echo sent; exit 3");
    assert_eq!((first.code, first.stdout.as_str()), (Some(3), "sent\n"));
    let report: serde_json::Value = serde_json::from_str(&first.stderr).unwrap();
    let fields =
        ["command", "key", "did", "state", "message"].map(|name| report[name].as_str().unwrap().to_owned());
    let expected = ["once", "mail:7", "executed", "in-doubt", "its command ended with exit code 3"];
    assert_eq!((fields, report["exit_code"].as_i64()), (expected.map(str::to_owned), Some(3)));
    let second = once(&desk, "mail:7", &["--json"], "echo never");
    let report: serde_json::Value = serde_json::from_str(&second.stderr).unwrap();
    assert_eq!((second.code, report["did"].as_str()), (Some(4), Some("in-doubt")));
}

#[test]
fn a_simulated_store_executes_nothing() {
    let desk = Desk::sqlite();
    desk.refrain("tick --now 2026-06-09T12:00:00Z");
    once(&desk, "mail:7", &[], "touch sent").refuses(2, &["simulated"]);
    assert!(!desk.file("sent").exists());
}

#[test]
fn s11_arguments_of_a_command_are_not_stored() {
    let desk = Desk::sqlite();
    once(&desk, "mail:7", &[], ": token-that-stays-secret").succeeds(&[]);
    once(&desk, "mail:7", &[], ": another").succeeds(&[]);
    let traced = desk.refrain("--json trace mail:7");
    assert!(traced.stdout.contains("program") && !traced.stdout.contains("token-that"), "{traced:?}");
    for file in ["store.db", "store.db-wal"] {
        let bytes = std::fs::read(desk.file(file)).unwrap_or_default();
        assert!(!bytes.windows(10).any(|window| window == b"token-that"), "{file}");
    }
}

/// The names that `refrain effects` lists.
fn listed(desk: &Desk, options: &str) -> Vec<String> {
    let listed = desk.refrain(&format!("--json effects {options}"));
    listed.succeeds(&[]);
    let read = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line.get("key").unwrap().as_str().unwrap().to_owned()
    };
    listed.stdout.lines().map(read).collect()
}

#[test]
fn what_is_in_doubt_is_listed_and_decided() {
    let desk = Desk::sqlite();
    for key in ["mail:1", "mail:2", "mail:3", "mail@4"] {
        assert_eq!(once(&desk, key, &[], "exit 1").code, Some(1));
    }
    assert_eq!(listed(&desk, ""), ["mail:1", "mail:2", "mail:3", "mail@4"]);
    assert_eq!(listed(&desk, "--refused"), [""; 0]);
    desk.refrain("effects").succeeds(&["mail:1@1  effect once  in doubt since", "exit code 1"]);
    let status = desk.refrain("status");
    assert!(
        status.stderr.contains("4 effects wait for a decision of an operator: refrain effects"),
        "{status:?}"
    );
    let traced = desk.refrain("trace mail:1");
    assert!(traced.stderr.contains("refrain effects show mail:1"), "{traced:?}");
    desk.refrain("effects show mail:1").succeeds(&["mail:1@1", "no answer since", "0 deduplicated"]);

    output_of(&mut desk.command_of(&["effects", "confirm", "mail:1", "--because", "it is in the outbox"]))
        .succeeds(&["mail:1@1: confirmed"]);
    desk.refrain("effects abandon mail@4").succeeds(&["mail@4@1: abandoned"]);
    desk.refrain("effects resend mail:2").refuses(75, &["may still arrive until", "not sent again before"]);
    desk.refrain("effects confirm mail:1").refuses(2, &["it is confirmed already"]);
    desk.refrain("effects confirm mail:9").refuses(2, &["there is no effect `mail:9`"]);
    desk.refrain("audit").succeeds(&["confirm mail:1", "it is in the outbox", "abandon mail@4"]);
    assert_eq!(listed(&desk, ""), ["mail:2", "mail:3"]);

    desk.refrain("effects abandon --all").refuses(4, &["nothing was done", "2 effects", "--yes"]);
    desk.refrain("effects abandon --all --yes").succeeds(&["mail:2@1: abandoned", "mail:3@1: abandoned"]);
    desk.refrain("effects").succeeds(&[]);
    assert_eq!(listed(&desk, ""), [""; 0]);
    desk.refrain("effects show mail:9").refuses(2, &["there is no effect"]);
}

#[tokio::test]
async fn a_call_waits_while_its_holder_s_machine_may_be_alive() {
    let desk = Desk::sqlite();
    let script = "echo begun; while [ ! -e go ]; do sleep 0.02; done";
    let mut caller = ChildProcess::spawn(&mut desk.command_of(&["once", "mail:7", "--", "sh", "-c", script]));
    caller.wait_for_line("begun").await;
    let mut waiting = ChildProcess::spawn(&mut desk.command_of(&["once", "mail:7", "--", "echo", "never"]));
    caller.signal(Signal::STOP);
    desk.write("go", "");
    // A stopped caller is alive: its key is not in doubt, and the other call goes on waiting.
    assert!(!waiting.has_ended());
    caller.signal(Signal::CONT);
    assert_eq!(caller.wait().await.code(), Some(0));
    eventually("the other call has ended", DEADLINE, async || waiting.has_ended()).await;
    assert_eq!(waiting.wait().await.code(), Some(0));
}

#[test]
fn f23_a_store_in_doubt_executes_nothing_before_the_operator_decides() {
    let desk = Desk::sqlite();
    once(&desk, "mail:7", &[], "true").succeeds(&[]);
    std::fs::copy(desk.file("store.db"), desk.file("copy.db")).unwrap();
    std::fs::rename(desk.file("copy.db"), desk.file("store.db")).unwrap();
    once(&desk, "mail:8", &[], "touch sent").refuses(4, &["refrain recover --moved"]);
    assert!(!desk.file("sent").exists());
    desk.refrain("recover --moved").succeeds(&[]);
    once(&desk, "mail:8", &[], "touch sent").succeeds(&[]);
    assert!(desk.file("sent").exists());
}

#[tokio::test]
async fn a_doubt_of_a_killed_caller_is_listed_before_another_process_has_taken_over() {
    let desk = Desk::sqlite();
    let mut caller = ChildProcess::spawn(&mut desk.command_of(&[
        "once",
        "mail:7",
        "--",
        "sh",
        "-c",
        "echo begun; sleep 600",
    ]));
    caller.wait_for_line("begun").await;
    assert_eq!(listed(&desk, ""), [""; 0], "it is being sent");
    desk.refrain("effects confirm mail:7").refuses(75, &["is being sent now"]);
    caller.signal(Signal::KILL);
    caller.wait().await;
    assert_eq!(listed(&desk, ""), ["mail:7"]);
    desk.refrain("effects").succeeds(&["mail:7@1  effect once  in doubt", "its sender is gone"]);
    let is_decided = async || desk.refrain("effects confirm mail:7").code == Some(0);
    eventually("its command has ended, and the operator decides", DEADLINE, is_decided).await;
    once(&desk, "mail:7", &["--wait", "0s"], "touch sent").succeeds(&[]);
    assert!(!desk.file("sent").exists());
}

#[test]
fn a_command_that_was_executed_and_not_recorded_does_not_exit_with_75() {
    let desk = Desk::sqlite();
    // The command moves the store away: what becomes of it cannot be recorded there.
    let executed =
        once(&desk, "mail:7", &[], "echo sent; rm store.db store.db-wal store.db-shm; mkdir store.db");
    assert_eq!((executed.code, executed.stdout.as_str()), (Some(4), "sent\n"), "{executed:?}");
    for words in ["was executed and ended with exit code 0", "could not be recorded", "will be in doubt"] {
        assert!(executed.stderr.contains(words), "{executed:?}");
    }
}
