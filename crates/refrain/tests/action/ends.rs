//! How a command can end: exit codes, signals, a timeout, a cancellation. Each has its message.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use refrain::{Ask, RunReport};

use crate::workspace::{FAMILY, Workspace};
use refrain_harness::work::history;

fn message(report: &RunReport) -> &str {
    report.run.message.as_deref().unwrap_or_default()
}

#[tokio::test]
async fn exit_code_zero_means_done() {
    let workspace = Workspace::sqlite().await;
    let (report, output) = workspace.executed(workspace.shell("exit 0")).await;
    assert!(report.is_done() && output.is_empty(), "{report:?}");
}

#[tokio::test]
async fn another_exit_code_fails_with_the_end_of_standard_error() {
    let workspace = Workspace::sqlite().await;
    let script = r"echo fine; echo first >&2; printf '\033[2Jno such table\n' >&2; exit 3";
    let (report, _) = workspace.executed(workspace.shell(script)).await;
    assert!(report.run.standing.is_open(), "another attempt follows: {report:?}");
    let refrain = workspace.open([workspace.shell(script)]).await;
    let report = refrain.run("shell#k", Ask::Once).await.unwrap();
    assert_eq!(message(&report), "exit code 3\nfirst\n\u{fffd}[2Jno such table");
    assert_eq!(history(&refrain, "shell#k").await, ["1 errored"]);
}

#[tokio::test]
async fn a_signal_is_reported_by_its_name() {
    let workspace = Workspace::sqlite().await;
    for (signal, expected) in
        [("KILL", "killed by signal 9 (SIGKILL)"), ("SEGV", "killed by signal 11 (SIGSEGV)")]
    {
        let name = signal.to_lowercase();
        let job = workspace.job(&name, &["sh", "-c", &format!("kill -{signal} $$")]);
        let refrain =
            workspace.open([job.retry(refrain::core::Retry { attempts: 1, ..Default::default() })]).await;
        let report = refrain.run(&format!("{name}#k"), Ask::Once).await.unwrap();
        assert_eq!(message(&report), expected);
    }
}

#[tokio::test]
async fn a_command_that_cannot_be_started_fails_for_good_with_advice() {
    let workspace = Workspace::sqlite().await;
    std::fs::write(workspace.path("plain"), "#!/bin/sh\n").unwrap();
    std::fs::write(workspace.path("strange"), "#!/no/such/shell\n").unwrap();
    std::fs::set_permissions(workspace.path("strange"), PermissionsExt::from_mode(0o755)).unwrap();
    for (name, argv, expected) in [
        ("absent", &["./absent"][..], "check the path, which is relative to"),
        ("nowhere", &["no-such-program"][..], "for a file of the project write ./no-such-program"),
        ("plain", &["./plain"][..], "chmod +x ./plain"),
        ("strange", &["./strange"][..], "(`#!`) is missing"),
        ("nothing", &[][..], "there is no program to start"),
        ("nul", &["sh", "a\0b"][..], "could not be started"),
    ] {
        let (report, _) = workspace.executed(workspace.job(name, argv)).await;
        assert!(!report.run.standing.is_open(), "it would not help to try {name} again: {report:?}");
        assert!(message(&report).contains(expected), "{name}: {}", message(&report));
    }
}

#[tokio::test]
async fn a_command_that_times_out_is_ended_with_all_its_descendants() {
    let workspace = Workspace::sqlite().await;
    let job = workspace.shell(FAMILY).timeout(Duration::from_secs(1));
    let (report, _) =
        workspace.executed(job.retry(refrain::core::Retry { attempts: 1, ..Default::default() })).await;
    assert_eq!(message(&report), "timed out after 1s");
    assert_eq!(workspace.alive(), [], "the ending was recorded after everybody was gone");
}

#[tokio::test]
async fn a_cancelled_command_is_ended_with_all_its_descendants() {
    let workspace = Workspace::sqlite().await;
    let refrain = workspace.open([workspace.shell(FAMILY)]).await;
    let asked = refrain.clone();
    let running = tokio::spawn(async move { asked.run("shell#k", Ask::Once).await });
    workspace.appears("family").await;
    refrain.cancel("shell#k").await.unwrap();
    let report = running.await.unwrap().unwrap();
    assert_eq!(workspace.alive(), [], "the ending was recorded after everybody was gone");
    assert_eq!(message(&report), "cancelled while it was running");
}

#[tokio::test]
async fn a_command_that_ends_leaves_no_process_behind() {
    let workspace = Workspace::sqlite().await;
    let script = FAMILY.replace("while :; do sleep 1; done", "exit 0");
    let (report, _) = workspace.executed(workspace.shell(&script)).await;
    assert!(report.is_done() && workspace.path("family").exists());
    assert_eq!(workspace.alive(), []);
}

#[tokio::test]
async fn a_command_that_ends_on_request_has_the_grace_period() {
    let workspace = Workspace::sqlite().await;
    let script =
        "trap 'echo tidied up; touch tidied; exit 0' TERM; touch began; while :; do sleep 0.01; done";
    let job = workspace.job_within("shell", &["sh", "-c", script, "sh"], Duration::from_mins(1));
    let refrain = workspace.open([job.timeout(Duration::from_mins(1))]).await;
    let asked = refrain.clone();
    let running = tokio::spawn(async move { asked.run("shell#k", Ask::Once).await });
    workspace.appears("began").await;
    refrain.cancel("shell#k").await.unwrap();
    let report = running.await.unwrap().unwrap();
    assert!(workspace.path("tidied").exists());
    assert_eq!(message(&report), "cancelled while it was running", "that it obeyed does not make it done");
}
