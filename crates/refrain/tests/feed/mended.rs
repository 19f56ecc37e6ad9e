//! Units corrected at their source, behind the checkpoint: one command applies them, and the
//! checkpoint stays.

use std::path::Path;

use rustix::process::Signal;

use crate::cursors::{PAGES, paged};
use crate::sync::{RUN, Says, Sync, lines, rows, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};

const ONE_TRY: &str = "retry = { attempts = 1 }";
const BY_PAGES: Says<'_> = Says { top: ONE_TRY, unit: "", more: "[cursor]\n" };
/// An invoice of a customer who is missing.
const BAD: &str = "{\"id\":8,\"total\":80,\"customer\":9}";
const GOOD: &str = "{\"id\":8,\"total\":80}";

fn third_page(sync: &Sync, second: &str) {
    sync.shop.write("page-3", &format!("{}\n{second}\n{}\n", lines([7]).concat(), lines([9]).concat()));
}

/// Five pages of three; the second line of the third is invalid, and the run has used up its tries.
async fn with_a_failed_unit(database: TestDatabase, bad: &str) -> Sync {
    let sync = paged(database).await;
    sync.says(BY_PAGES);
    third_page(&sync, bad);
    assert_eq!(sync.run().await.0, "Ran partial 1");
    assert_eq!(
        (sync.position().await, sync.shop.lines("log")),
        (vec!["5".to_owned()], vec!["from 0".to_owned()])
    );
    sync
}

/// Runs the first command that `refrain retry RUN --unit KEY` prints. Returns the key.
async fn retry(sync: &Sync) -> String {
    let key = sync.left().await.concat().split(' ').next().unwrap().to_owned();
    let refrain = sync.shop.open().await;
    assert_eq!(refrain.unpark(RUN, &key).await.unwrap(), 1, "{key}");
    refrain.close().await;
    key
}

#[both_databases]
async fn m13_one_command_applies_a_unit_corrected_behind_the_cursor(database: TestDatabase) {
    let sync = with_a_failed_unit(database, BAD).await;
    third_page(&sync, GOOD);
    assert_eq!(retry(&sync).await, "invoice:8");
    let (became, message) = sync.run().await;
    assert_eq!(became, "Ran done 2", "{message}");
    assert_eq!(sync.shop.lines("log"), ["from 0", "from 2", "from 5"], "its page was read once more");
    assert_eq!((sync.invoices().await, sync.position().await), (rows(1..=15), vec!["5".to_owned()]));
    assert_eq!(sync.counts().await[1], [1, 0, 2, 0], "its two neighbours are deduplicated");
    assert_eq!(sync.writes().await, texts(1..=15));
}

#[both_databases]
async fn m13_an_uncorrected_unit_stays_failed_and_is_counted_once(database: TestDatabase) {
    let sync = with_a_failed_unit(database, BAD).await;
    retry(&sync).await;
    assert_eq!(sync.run().await.0, "Ran partial 2");
    assert_eq!(sync.counts().await[1], [0, 0, 2, 1]);
    assert_eq!(sync.run().await.0, "Ran partial 3");
    assert_eq!(
        sync.shop.lines("log"),
        ["from 0", "from 2", "from 5", "from 5"],
        "one word of a person, one look"
    );
}

#[both_databases]
async fn m13_a_malformed_line_corrected_behind_the_cursor_is_applied(database: TestDatabase) {
    let sync = with_a_failed_unit(database, "oops").await;
    third_page(&sync, GOOD);
    assert!(retry(&sync).await.starts_with("$line:"));
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!(sync.shop.lines("log"), ["from 0", "from 2", "from 5"]);
    assert_eq!((sync.invoices().await, sync.left().await), (rows(1..=15), Vec::<String>::new()));
    assert_eq!(sync.position().await, ["5"]);
}

#[both_databases]
async fn m13_a_line_that_is_still_malformed_is_parked_again(database: TestDatabase) {
    let sync = with_a_failed_unit(database, "oops").await;
    let left = sync.left().await;
    third_page(&sync, "still");
    retry(&sync).await;
    assert_eq!(sync.run().await.0, "Ran partial 2");
    let still = sync.left().await;
    assert!(still.len() == 1 && still[0].split(' ').take(2).eq(left[0].split(' ').take(2)), "{still:?}");
}

#[both_databases]
async fn f2_a_reread_cut_off_by_a_kill_is_done_by_the_next_attempt(database: TestDatabase) {
    for failpoint in ["unit-apply.before-commit=return(kill)", "unit-apply.after-commit=return(kill)"] {
        let sync = with_a_failed_unit(TestDatabase::like(&database).await, BAD).await;
        third_page(&sync, GOOD);
        retry(&sync).await;
        sync.killed(failpoint).await;
        assert_eq!(sync.run().await.0, "Ran done 3", "{failpoint}");
        assert_eq!(
            (sync.invoices().await, sync.position().await),
            (rows(1..=15), vec!["5".to_owned()]),
            "{failpoint}"
        );
        assert_eq!(sync.writes().await, texts(1..=15), "{failpoint}");
    }
}

#[both_databases]
async fn m13_a_source_that_cannot_reread_leaves_the_stored_units(database: TestDatabase) {
    let sync = with_a_failed_unit(database, BAD).await;
    sync.shop.program("list", "#!/bin/sh\n[ \"$REFRAIN_CURSOR\" = 5 ]\n");
    sync.shop.execute("insert into customers values (9)").await;
    retry(&sync).await;
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!(
        sync.invoices().await,
        rows(1..=15),
        "the token has expired, and the shop has the customer now"
    );
}

#[both_databases]
async fn m13_one_command_applies_a_unit_corrected_behind_the_watermark(database: TestDatabase) {
    const SINCE: &str = "#!/bin/sh\necho \"from [$REFRAIN_WATERMARK]\" >> log\n\
         awk -F'\"' -v from=\"$REFRAIN_WATERMARK\" '$8 >= from' source\n";
    let says = Says { top: ONE_TRY, unit: "", more: "[watermark]\nfield = \"at\"\noverlap = \"10m\"\n" };
    let sync = Sync::into_table(database, says).await;
    sync.shop.program("list", SINCE);
    let old = |more: &str| format!("{{\"id\":1,\"total\":10,\"at\":\"2020-05-01T11:00:00Z\"{more}}}");
    let new = "{\"id\":2,\"total\":20,\"at\":\"2020-06-09T12:00:00Z\"}".to_owned();
    sync.source([old(",\"customer\":9"), new.clone()]);
    assert_eq!(sync.run().await.0, "Ran partial 1");
    assert_eq!(sync.position().await, ["2020-06-09T12:00:00Z"]);
    sync.source([old(""), new]);
    retry(&sync).await;
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!(sync.shop.lines("log"), ["from []", "from []", "from [2020-06-08T23:50:00Z]"]);
    assert_eq!(
        (sync.invoices().await, sync.position().await),
        (rows(1..=2), vec!["2020-06-09T12:00:00Z".to_owned()])
    );
}

#[both_databases]
async fn a_malformed_line_behind_the_watermark_stays_recorded(database: TestDatabase) {
    let says = Says {
        top: "retry = { attempts = 2 }",
        unit: "",
        more: "[watermark]\nfield = \"at\"\noverlap = \"10m\"\n",
    };
    let sync = Sync::into_table(database, says).await;
    sync.shop.program("list", "#!/bin/sh\n[ -n \"$REFRAIN_WATERMARK\" ] || echo oops\ncat source\n");
    sync.source(["{\"id\":2,\"total\":20,\"at\":\"2020-06-09T12:00:00Z\"}"]);
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!(sync.run().await.0, "Ran partial 2");
    assert_eq!(sync.left().await.len(), 1);
}

/// A worker has renewed its lease, and is stopped before it tells the supervisor of its source. The supervisor ends
/// the source; then the worker continues, and its lease is valid.
#[tokio::test]
async fn m13_an_interrupted_reread_is_done_by_the_next_attempt() {
    let sync = with_a_failed_unit(TestDatabase::sqlite().await, BAD).await;
    third_page(&sync, GOOD);
    retry(&sync).await;
    let waits = "[ \"$page\" != 2 ] || [ -e reading ] || { echo $$ > reading; exec sleep 1000; }\nwhile";
    sync.shop.program("list", &PAGES.replace("while", waits));
    let variables = [("FAILPOINTS", "beat.after-commit=return(stop)"), ("PROJECT_LEASE", "9000")];
    let mut worker = sync.shop.process(&["run", RUN], &variables);
    eventually("its source is read", DEADLINE, async || {
        worker.signal(Signal::CONT);
        !sync.shop.lines("reading").is_empty()
    })
    .await;
    // Its next renewal is its last for a while.
    let source = Path::new("/proc").join(sync.shop.lines("reading").concat());
    eventually("its source is ended", DEADLINE, async || !source.exists()).await;
    eventually("it has ended", DEADLINE, async || {
        worker.signal(Signal::CONT);
        worker.has_ended()
    })
    .await;
    worker.finish().await;
    assert!(sync.run().await.0.contains(" done "), "{:?}", sync.left().await);
    assert_eq!(sync.invoices().await, rows(1..=15));
}
