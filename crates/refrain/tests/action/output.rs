//! Output is stored in order and within its limits while the command runs.

use refrain::Ask;
use refrain::admin::{OutputPlace, OutputRecord, OutputStream};

use crate::workspace::Workspace;
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::shown;

const MEBIBYTE: usize = 1024 * 1024;

fn text(output: &[OutputRecord], stream: OutputStream) -> String {
    output.iter().filter(|piece| piece.stream == stream).map(|piece| piece.text.as_str()).collect()
}

#[both_databases]
async fn output_can_be_read_while_the_command_runs(database: TestDatabase) {
    let workspace = Workspace::of(database);
    let script = "echo one; echo two >&2; until [ -e gate ]; do sleep 0.01; done; printf three";
    let refrain = workspace.open([workspace.shell(script)]).await;
    let asked = refrain.clone();
    let running = tokio::spawn(async move { asked.run("shell#k", Ask::Once).await });
    eventually("the first lines are there", DEADLINE, async || {
        let Some(run) = refrain.show("shell#k").await.unwrap() else { return false };
        refrain.output(&run, OutputPlace::default()).await.unwrap().len() == 2
    })
    .await;
    workspace.touch("gate");
    assert!(running.await.unwrap().unwrap().is_done());

    let run = shown(&refrain, "shell#k").await;
    let output = refrain.output(&run, OutputPlace::default()).await.unwrap();
    let printed: Vec<(u64, u64, &str, &str)> = output
        .iter()
        .map(|piece| (piece.place.attempt, piece.place.number, piece.stream.name(), piece.text.as_str()))
        .collect();
    assert_eq!(printed.len(), 3, "{printed:?}");
    assert_eq!(text(&output, OutputStream::Stdout), "one\nthree");
    assert_eq!(text(&output, OutputStream::Stderr), "two\n");
    let after = refrain.output(&run, output[1].place).await.unwrap();
    assert_eq!(after, output[2..]);
    let end = OutputPlace { attempt: 1, number: 3 };
    assert_eq!(refrain.output(&run, end).await.unwrap(), []);
}

#[both_databases]
async fn invalid_bytes_are_stored_as_replacement_characters(database: TestDatabase) {
    let workspace = Workspace::of(database);
    let (report, output) = workspace.executed(workspace.shell(r"printf 'a\377b\000c\033[2Jd\n'")).await;
    assert!(report.is_done());
    assert_eq!(text(&output, OutputStream::Stdout), "a\u{fffd}b\u{fffd}c\u{1b}[2Jd\n");
    assert_eq!(output[0].shown(), "a\u{fffd}b\u{fffd}c\u{fffd}[2Jd\n");
}

#[tokio::test]
async fn a_line_of_ten_megabytes_is_read_to_its_end_and_truncated() {
    let workspace = Workspace::sqlite().await;
    let script = "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo last";
    let (report, output) = workspace.executed(workspace.shell(script)).await;
    assert!(report.is_done(), "{report:?}");
    let kept = text(&output, OutputStream::Stdout);
    assert!(
        kept.len() < 70_000 && kept.ends_with(" bytes of this line are omitted …\nlast\n"),
        "{}",
        kept.len()
    );
}

#[tokio::test]
async fn a_million_lines_are_read_to_the_end_and_the_middle_is_omitted() {
    let workspace = Workspace::sqlite().await;
    let (report, output) = workspace.executed(workspace.shell("seq 1000000; echo end >&2")).await;
    assert!(report.is_done(), "{report:?}");
    let kept = text(&output, OutputStream::Stdout);
    assert!(kept.starts_with("1\n2\n3\n") && kept.ends_with("\n999999\n1000000\n"));
    assert!((MEBIBYTE..MEBIBYTE + 80_000).contains(&kept.len()), "{}", kept.len());
    assert!(text(&output, OutputStream::Remark).contains(" are omitted here …\n"));
}

#[tokio::test]
async fn the_worker_waits_for_a_command_that_closes_its_output() {
    let workspace = Workspace::sqlite().await;
    let script = "exec >&- 2>&-; touch closed; until [ -e gate ]; do sleep 0.01; done; touch worked";
    let refrain = workspace.open([workspace.shell(script)]).await;
    let running = tokio::spawn(async move { refrain.run("shell#k", Ask::Once).await });
    workspace.appears("closed").await;
    assert!(!running.is_finished());
    workspace.touch("gate");
    assert!(running.await.unwrap().unwrap().is_done() && workspace.path("worked").exists());
}

#[tokio::test]
async fn the_output_of_every_attempt_is_stored_until_it_is_pruned() {
    let workspace = Workspace::sqlite().await;
    let job = workspace.shell("echo attempt $REFRAIN_ATTEMPT; [ $REFRAIN_ATTEMPT -gt 1 ]");
    let (_, _) = workspace.executed(job.clone()).await;
    let (report, output) = workspace.executed(job).await;
    assert!(report.is_done());
    assert_eq!(text(&output, OutputStream::Stdout), "attempt 1\nattempt 2\n");

    workspace.database.store("update refrain_runs set ended_at = 1").await;
    let refrain = workspace.open([]).await;
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(serving.into_future());
    eventually("the output is gone", DEADLINE, async || {
        workspace.database.store_numbers("select number from refrain_outputs").await.is_empty()
    })
    .await;
    stop.drain();
    serving.await.unwrap().unwrap();
}
