//! Output of every kind: kept within its limits, in its order, while the command goes on.

use refrain::{Ask, OutputPlace, OutputRecord, OutputStream};

use crate::both_databases;
use crate::desk::Desk;
use crate::support::TestDatabase;
use crate::support::eventually::{DEADLINE, eventually};
use crate::support::work::shown;

const MEBIBYTE: usize = 1024 * 1024;

fn text(output: &[OutputRecord], stream: OutputStream) -> String {
    output.iter().filter(|piece| piece.stream == stream).map(|piece| piece.text.as_str()).collect()
}

both_databases! {
    async fn what_a_command_prints_can_be_read_while_it_goes_on(database) {
        let desk = Desk::of(database);
        let script = "echo one; echo two >&2; until [ -e gate ]; do sleep 0.01; done; printf three";
        let refrain = desk.open([desk.shell(script)]).await;
        let asked = refrain.clone();
        let running = tokio::spawn(async move { asked.run("shell#k", Ask::Once).await });
        eventually("the first lines are there", DEADLINE, async || {
            let Some(run) = refrain.show("shell#k").await.unwrap() else { return false };
            refrain.output(&run, OutputPlace::default()).await.unwrap().len() == 2
        })
        .await;
        desk.touch("gate");
        assert!(running.await.unwrap().unwrap().is_done());

        let run = shown(&refrain, "shell#k").await;
        let output = refrain.output(&run, OutputPlace::default()).await.unwrap();
        let told: Vec<(u64, u64, &str, &str)> = output
            .iter()
            .map(|piece| (piece.place.attempt, piece.place.number, piece.stream.name(), piece.text.as_str()))
            .collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(text(&output, OutputStream::Stdout), "one\nthree");
        assert_eq!(text(&output, OutputStream::Stderr), "two\n");
        let after = refrain.output(&run, output[1].place).await.unwrap();
        assert_eq!(after, output[2..]);
        let end = OutputPlace { attempt: 1, number: 3 };
        assert_eq!(refrain.output(&run, end).await.unwrap(), []);
    }

    async fn odd_bytes_are_kept_as_marks_and_shown_without_harm(database) {
        let desk = Desk::of(database);
        let (report, output) = desk.executed(desk.shell(r"printf 'a\377b\000c\033[2Jd\n'")).await;
        assert!(report.is_done());
        assert_eq!(text(&output, OutputStream::Stdout), "a\u{fffd}b\u{fffd}c\u{1b}[2Jd\n");
        assert_eq!(output[0].shown(), "a\u{fffd}b\u{fffd}c\u{fffd}[2Jd\n");
    }
}

#[tokio::test]
async fn ten_megabytes_on_one_line_are_read_to_their_end_and_cut() {
    let desk = Desk::sqlite().await;
    let script = "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo last";
    let (report, output) = desk.executed(desk.shell(script)).await;
    assert!(report.is_done(), "{report:?}");
    let kept = text(&output, OutputStream::Stdout);
    assert!(
        kept.len() < 70_000 && kept.ends_with(" bytes of this line are left out …\nlast\n"),
        "{}",
        kept.len()
    );
}

#[tokio::test]
async fn a_million_lines_are_read_to_their_end_and_the_middle_is_left_out() {
    let desk = Desk::sqlite().await;
    let (report, output) = desk.executed(desk.shell("seq 1000000; echo end >&2")).await;
    assert!(report.is_done(), "{report:?}");
    let kept = text(&output, OutputStream::Stdout);
    assert!(kept.starts_with("1\n2\n3\n") && kept.ends_with("\n999999\n1000000\n"));
    assert!((MEBIBYTE..MEBIBYTE + 80_000).contains(&kept.len()), "{}", kept.len());
    assert!(text(&output, OutputStream::Remark).contains(" are left out here …\n"));
}

#[tokio::test]
async fn a_command_that_closes_its_output_or_never_writes_is_waited_for() {
    let desk = Desk::sqlite().await;
    let script = "exec >&- 2>&-; touch closed; until [ -e gate ]; do sleep 0.01; done; touch worked";
    let refrain = desk.open([desk.shell(script)]).await;
    let running = tokio::spawn(async move { refrain.run("shell#k", Ask::Once).await });
    desk.appears("closed").await;
    assert!(!running.is_finished());
    desk.touch("gate");
    assert!(running.await.unwrap().unwrap().is_done() && desk.path("worked").exists());
}

#[tokio::test]
async fn the_output_of_every_attempt_is_kept_and_goes_with_the_bodies() {
    let desk = Desk::sqlite().await;
    let job = desk.shell("echo attempt $REFRAIN_ATTEMPT; [ $REFRAIN_ATTEMPT -gt 1 ]");
    let (_, _) = desk.executed(job.clone()).await;
    let (report, output) = desk.executed(job).await;
    assert!(report.is_done());
    assert_eq!(text(&output, OutputStream::Stdout), "attempt 1\nattempt 2\n");

    desk.database.store("update refrain_runs set ended_at = 1").await;
    let refrain = desk.open([]).await;
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(serving.into_future());
    eventually("the output is gone", DEADLINE, async || {
        desk.database.store_numbers("select number from refrain_outputs").await.is_empty()
    })
    .await;
    stop.drain();
    serving.await.unwrap().unwrap();
}
