//! The ends of a command, each told by its name.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use refrain::{Ask, RunReport};

use crate::desk::{Desk, FAMILY};
use crate::support::work::history;

fn message(report: &RunReport) -> &str {
    report.run.message.as_deref().unwrap_or_default()
}

#[tokio::test]
async fn exit_code_zero_is_done() {
    let desk = Desk::sqlite().await;
    let (report, output) = desk.executed(desk.shell("exit 0")).await;
    assert!(report.is_done() && output.is_empty(), "{report:?}");
}

#[tokio::test]
async fn another_exit_code_fails_with_the_last_words_of_standard_error() {
    let desk = Desk::sqlite().await;
    let script = r"echo fine; echo first >&2; printf '\033[2Jno such table\n' >&2; exit 3";
    let (report, _) = desk.executed(desk.shell(script)).await;
    assert!(report.run.standing.is_open(), "another attempt follows: {report:?}");
    let refrain = desk.open([desk.shell(script)]).await;
    let report = refrain.run("shell#k", Ask::Once).await.unwrap();
    assert_eq!(message(&report), "exit code 3\nfirst\n\u{fffd}[2Jno such table");
    assert_eq!(history(&refrain, "shell#k").await, ["1 errored"]);
}

#[tokio::test]
async fn a_signal_is_told_by_its_name() {
    let desk = Desk::sqlite().await;
    for (signal, expected) in
        [("KILL", "killed by signal 9 (SIGKILL)"), ("SEGV", "killed by signal 11 (SIGSEGV)")]
    {
        let name = signal.to_lowercase();
        let job = desk.job(&name, &["sh", "-c", &format!("kill -{signal} $$")]);
        let refrain =
            desk.open([job.retry(refrain::core::Retry { attempts: 1, ..Default::default() })]).await;
        let report = refrain.run(&format!("{name}#k"), Ask::Once).await.unwrap();
        assert_eq!(message(&report), expected);
    }
}

#[tokio::test]
async fn what_cannot_be_started_fails_for_good_and_says_what_to_check() {
    let desk = Desk::sqlite().await;
    std::fs::write(desk.path("plain"), "#!/bin/sh\n").unwrap();
    std::fs::write(desk.path("strange"), "#!/no/such/shell\n").unwrap();
    std::fs::set_permissions(desk.path("strange"), PermissionsExt::from_mode(0o755)).unwrap();
    for (name, argv, expected) in [
        ("absent", &["./absent"][..], "check the path, which counts from"),
        ("nowhere", &["no-such-program"][..], "a file of the project is written ./no-such-program"),
        ("plain", &["./plain"][..], "chmod +x ./plain"),
        ("strange", &["./strange"][..], "names after `#!` is not"),
        ("nothing", &[][..], "there is no program to start"),
        ("nul", &["sh", "a\0b"][..], "could not be started"),
    ] {
        let (report, _) = desk.executed(desk.job(name, argv)).await;
        assert!(!report.run.standing.is_open(), "it would not help to try {name} again: {report:?}");
        assert!(message(&report).contains(expected), "{name}: {}", message(&report));
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_all_its_family() {
    let desk = Desk::sqlite().await;
    let job = desk.shell(FAMILY).timeout(Duration::from_secs(1));
    let (report, _) =
        desk.executed(job.retry(refrain::core::Retry { attempts: 1, ..Default::default() })).await;
    assert_eq!(message(&report), "timed out after 1s");
    assert_eq!(desk.alive(), [], "the ending was recorded after everybody was gone");
}

#[tokio::test]
async fn a_command_that_is_called_off_is_ended_with_all_its_family() {
    let desk = Desk::sqlite().await;
    let refrain = desk.open([desk.shell(FAMILY)]).await;
    let asked = refrain.clone();
    let running = tokio::spawn(async move { asked.run("shell#k", Ask::Once).await });
    desk.appears("family").await;
    refrain.cancel("shell#k").await.unwrap();
    let report = running.await.unwrap().unwrap();
    assert_eq!(desk.alive(), [], "the ending was recorded after everybody was gone");
    assert_eq!(message(&report), "cancelled while it was under way");
}

#[tokio::test]
async fn a_command_that_ends_leaves_nobody_behind() {
    let desk = Desk::sqlite().await;
    let script = FAMILY.replace("while :; do sleep 1; done", "exit 0");
    let (report, _) = desk.executed(desk.shell(&script)).await;
    assert!(report.is_done() && desk.path("family").exists());
    assert_eq!(desk.alive(), []);
}

#[tokio::test]
async fn one_that_is_asked_to_end_and_does_so_has_the_time_for_it() {
    let desk = Desk::sqlite().await;
    let script =
        "trap 'echo tidied up; touch tidied; exit 0' TERM; touch began; while :; do sleep 0.01; done";
    let job = desk.job_within("shell", &["sh", "-c", script, "sh"], Duration::from_mins(1));
    let refrain = desk.open([job.timeout(Duration::from_mins(1))]).await;
    let asked = refrain.clone();
    let running = tokio::spawn(async move { asked.run("shell#k", Ask::Once).await });
    desk.appears("began").await;
    refrain.cancel("shell#k").await.unwrap();
    let report = running.await.unwrap().unwrap();
    assert!(desk.path("tidied").exists());
    assert_eq!(message(&report), "cancelled while it was under way", "that it obeyed does not make it done");
}
