//! Malformed lines: each is one failure with its number, and the other lines are applied.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;

use crate::cursors::{CURSOR, PAGES};
use crate::sync::{LEASE, RUN, Says, Sync, lines, rows, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

fn with_odd_ones() -> Vec<String> {
    let mut lines = lines(1..=3);
    lines.insert(1, "Traceback (most recent call last):".to_owned());
    lines.push("{\"total\":40}".to_owned());
    lines
}

const SAID: [&str; 2] = [
    "$line:2020-06-09T00:00:00Z:2 parked line 2, column 1: not valid JSON: expected value",
    "$line:2020-06-09T00:00:00Z:5 parked line 5: {id} of the key has no value: use a field that every \
     unit has, or {$content}",
];

#[both_databases]
async fn a_malformed_line_is_one_failed_unit_until_the_source_is_corrected(database: TestDatabase) {
    let sync = Sync::into_table(database, Says { top: "retry = { attempts = 2 }", ..Says::default() }).await;
    sync.source(with_odd_ones());
    assert_eq!(sync.run().await.0, "Ran due 2");
    let message = sync.last_message().await;
    assert!(
        message.starts_with("2 of 5 units are not applied: $line:2020-06-09T00:00:00Z:2: line 2, column 1"),
        "{message}"
    );
    assert_eq!((sync.invoices().await, sync.left().await), (rows(1..=3), SAID.map(str::to_owned).to_vec()));
    assert_eq!(sync.run().await.0, "Ran partial 2");
    assert_eq!(sync.left().await, SAID, "each is there once");

    sync.source(lines(1..=4));
    assert_eq!(sync.run().await.0, "Ran done 3");
    assert_eq!(sync.left().await, [""; 0]);
    assert_eq!(sync.counts().await, [[3, 0, 0, 2], [0, 0, 3, 2], [1, 0, 3, 0]]);
    assert_eq!(sync.writes().await, texts(1..=4));
}

#[both_databases]
async fn f2_a_clearing_cut_off_by_a_kill_is_done_by_the_next_attempt(database: TestDatabase) {
    for ending in ["before-commit=return(kill)", "after-commit=return(kill)", "reply=1*return(lost)"] {
        let sync = Sync::into_table(TestDatabase::like(&database).await, Says::default()).await;
        sync.source(with_odd_ones());
        sync.run().await;
        sync.source(lines(1..=3));
        let failpoints = format!("unit-clear.{ending}");
        let mut process = sync.shop.process(&["run", RUN], &[("FAILPOINTS", &failpoints), LEASE]);
        let output = process.finish().await;
        let is_killed = output.status.signal() == Some(Signal::KILL.as_raw());
        assert_eq!(
            is_killed,
            ending.contains("kill"),
            "{ending}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(sync.shop.lines("struck").len(), 1, "{ending}");
        sync.shop.expire().await;
        let became = sync.run().await.0;
        assert!(became.contains(" done "), "{ending}: {became}");
        assert_eq!((sync.left().await, sync.writes().await), (Vec::new(), texts(1..=3)), "{ending}");
    }
}

#[both_databases]
async fn a_malformed_line_behind_the_cursor_stays_until_the_operator_decides(database: TestDatabase) {
    let sync = Sync::into_table(database, CURSOR).await;
    sync.shop.program("list", PAGES);
    for page in 1..=5 {
        sync.shop.write(&format!("page-{page}"), &format!("{}\n", lines([page]).join("")));
    }
    sync.shop.write("page-2", "oops\n{\"id\":2,\"total\":20}\n");
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!((sync.position().await, sync.invoices().await), (vec!["5".to_owned()], rows(1..=5)));
    let left = sync.left().await;
    assert!(
        left.len() == 1 && left[0].ends_with(":1 parked line 3, column 1: not valid JSON: expected value"),
        "{left:?}"
    );
    assert_eq!(
        sync.run().await.0,
        "Ran partial 2",
        "it was not seen again, which does not mean that it is mended"
    );
    assert_eq!(sync.left().await, left);
}

#[both_databases]
async fn a_run_does_not_clear_lines_of_a_run_with_a_longer_key(database: TestDatabase) {
    let sync = Sync::of(database).await;
    let into = r#"
        [publish]
        database = "shop"
        table = "invoices"
        mode = "merge"
        key = ["id"]
    "#;
    let job = r#"
        queue = true
        command = ["./list"]
        output = "units"
        [unit]
        key = "invoice:{id}"
    "#;
    sync.shop.job("sync", &format!("{job}{into}"));
    let refrain = sync.shop.open().await;
    let kept = sync.shop.either("select key from refrain_units", "select key from refrain.units");
    let (long, mut lines) = ("x".repeat(508), 0);
    for key in ["a:b", long.as_str()] {
        sync.source(["oops"]);
        refrain.enqueue("sync", key, &()).await.unwrap();
        sync.ask(&["run", &format!("sync#{key}")]).await;
        lines += 1;
        assert_eq!(sync.shop.rows(kept).await.len(), lines, "{key}");
    }
    sync.source([""; 0]);
    refrain.enqueue("sync", "a", &()).await.unwrap();
    assert_eq!(sync.ask(&["run", "sync#a"]).await.0, "Ran done 1");
    assert_eq!(sync.shop.rows(kept).await.len(), lines, "those of `a:b` are not those of `a`");
    refrain.close().await;
}

#[both_databases]
async fn lines_after_a_truncated_one_have_their_own_numbers(database: TestDatabase) {
    let sync = Sync::into_table(database, CURSOR).await;
    let long = "x".repeat(2 * 1024 * 1024);
    let token = |name: &str| format!("{{\"$cursor\":\"{name}\"}}");
    sync.source([
        "oops".to_owned(),
        token("a"),
        "odd".to_owned(),
        long,
        token("b"),
        lines([1]).concat(),
        "again".to_owned(),
        token("c"),
        "last".to_owned(),
    ]);
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!((sync.position().await, sync.invoices().await), (vec!["a".to_owned()], rows([1])));
    let numbers: Vec<String> = sync
        .left()
        .await
        .iter()
        .map(|line| line.split(' ').next().unwrap().rsplit(':').next().unwrap().to_owned())
        .collect();
    let mut sorted = numbers.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        ["1", "1", "2", "5", "7"],
        "one line before the cursor, and four that it has not passed"
    );
}

#[both_databases]
async fn no_checkpoint_passes_a_truncated_line(database: TestDatabase) {
    let sync = Sync::into_table(database, CURSOR).await;
    let long = format!("{{\"id\":2,\"note\":\"{}\"}}", "x".repeat(2 * 1024 * 1024));
    let token = |name: &str| format!("{{\"$cursor\":\"{name}\"}}");
    let source = |second: &str| {
        [lines([1]).concat(), token("a"), second.to_owned(), token("b"), lines([3]).concat(), token("c")]
    };
    sync.source(source(&long));
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!((sync.position().await, sync.invoices().await), (vec!["a".to_owned()], rows([1, 3])));
    let message = format!("parked line 3: the line has {} bytes; the maximum is 1048576", long.len());
    let left = sync.left().await;
    assert!(left.len() == 1 && left[0].ends_with(&message), "{left:?}");
    sync.source(source(&lines([2]).concat()).into_iter().skip(2));
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!((sync.position().await, sync.writes().await), (vec!["c".to_owned()], texts(1..=3)));
}
