//! Failed units: the others are applied, and only the failed ones are retried.

use crate::cursors::{CURSOR, PAGES};
use crate::sync::{Says, Sync, lines, rows, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

/// An invoice of a customer who may be missing.
const ORPHAN: &str = "{\"id\":37,\"total\":370,\"customer\":9}";

fn a_hundred() -> Vec<String> {
    let mut lines = lines(1..=100);
    ORPHAN.clone_into(&mut lines[36]);
    lines
}

#[both_databases]
async fn m13_a_retry_does_only_the_one_failed_unit_of_a_hundred(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    sync.source(a_hundred());
    assert_eq!(sync.run().await.0, "Ran due 2");
    let message = sync.last_message().await;
    assert!(message.starts_with("1 of 100 units are not applied: invoice:37: "), "{message}");
    assert_eq!(sync.invoices().await.len(), 99);
    sync.shop.execute("insert into customers values (9)").await;
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!(sync.counts().await, [[99, 0, 0, 1], [1, 0, 99, 0]], "a hundred units, each counted once");
    assert_eq!((sync.invoices().await, sync.writes().await), (rows(1..=100), texts(1..=100)));
}

#[both_databases]
async fn m13_a_unit_behind_the_cursor_is_retried_from_its_stored_input(database: TestDatabase) {
    let sync = Sync::into_table(database, CURSOR).await;
    sync.shop.program("list", PAGES);
    for page in 1..=5 {
        sync.shop.write(&format!("page-{page}"), &format!("{}\n", lines([page]).join("")));
    }
    sync.shop.write("page-2", &format!("{ORPHAN}\n"));
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!((sync.position().await, sync.invoices().await), (vec!["5".to_owned()], rows([1, 3, 4, 5])));
    sync.shop.execute("insert into customers values (9)").await;
    assert_eq!(sync.run().await.0, "Ran done 2");
    assert_eq!(sync.shop.lines("log"), ["from 0", "from 5"], "the source did not show it again");
    assert_eq!(sync.invoices().await, rows([1, 3, 4, 5, 37]));
}

#[both_databases]
async fn f38_a_unit_that_always_fails_is_parked_and_the_run_is_partial(database: TestDatabase) {
    let sync = Sync::into_table(database, Says { top: "retry = { attempts = 2 }", ..Says::default() }).await;
    sync.source([ORPHAN.to_owned(), lines([1]).concat()]);
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!(sync.run().await.0, "Ran partial 2");
    let left = sync.left().await;
    assert!(left.len() == 1 && left[0].starts_with("invoice:37 parked "), "{left:?}");
    assert_eq!(sync.invoices().await, rows([1]));
    assert_eq!(
        sync.counts().await,
        [[1, 0, 0, 1], [0, 1, 1, 0]],
        "what was kept and is shown again is one unit"
    );
}

#[both_databases]
async fn m24_an_attempt_whose_source_dies_counts_as_failed(database: TestDatabase) {
    let sync = Sync::into_table(database, Says { top: "retry = { attempts = 2 }", ..Says::default() }).await;
    sync.source(lines([1]));
    sync.shop.program("list", "#!/bin/sh\ncat source\nexit 7\n");
    assert_eq!(sync.run().await.0, "Ran due 2");
    sync.shop.program("list", "#!/bin/sh\nexit 7\n");
    assert_eq!(sync.run().await.0, "Ran failed 2");
    let counts = sync.counts().await;
    assert_eq!(counts.len(), 2);
    assert!(counts.iter().all(|[.., failed]| *failed == 1), "{counts:?}");
}

#[both_databases]
async fn many_failed_units_do_not_keep_the_source_from_being_read(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    let orphans = (1..=45).map(|id| format!("{{\"id\":{id},\"total\":{id},\"customer\":{}}}", 9 * (id % 2)));
    sync.source(orphans);
    sync.shop.execute("insert into customers values (0)").await;
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!(sync.left().await.len(), 23);
    sync.source(lines([100]));
    assert_eq!(sync.run().await.0, "Ran due 3");
    assert_eq!(sync.invoices().await.len(), 22 + 1);
}

#[both_databases]
async fn all_failed_units_are_retried_page_by_page(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    sync.shop.execute("insert into customers values (0)").await;
    let customer = |id: u32| if id.is_multiple_of(2) { 0 } else { id % 4 };
    sync.source((1..=80).map(|id| format!("{{\"id\":{id},\"total\":{id},\"customer\":{}}}", customer(id))));
    assert_eq!(sync.run().await.0, "Ran due 2");
    assert_eq!(sync.left().await.len(), 40);
    sync.source(lines([]));
    sync.shop.execute("insert into customers values (3)").await;
    assert_eq!(sync.run().await.0, "Ran due 3");
    assert_eq!((sync.left().await.len(), sync.invoices().await.len()), (20, 60), "every second one of them");
}
