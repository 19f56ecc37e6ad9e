//! A source that gives pages and a token for the next one: the cursor passes a page only when it is
//! applied.

use crate::sync::{Says, Sync, lines, rows, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

/// Five pages, each with its number as its token.
pub(crate) const PAGES: &str = r#"#!/bin/sh
page=${REFRAIN_CURSOR:-0}
echo "from $page" >> log
while [ "$page" -lt 5 ]; do
    page=$((page + 1))
    cat "page-$page"
    echo "{\"\$cursor\":\"$page\"}"
done
[ ! -e rest ] || cat rest
"#;

/// Two rows at a time, after the last id that was read. The source may change between two pages.
const MOVING: &str = r#"#!/bin/sh
last=${REFRAIN_CURSOR:-0}
while :; do
    awk -F'[:,]' -v last="$last" '$2 + 0 > last + 0' source | head -n 2 > page
    [ -s page ] || exit 0
    cat page
    last=$(tail -n 1 page | awk -F'[:,]' '{ print $2 }')
    [ ! -e "after-$last" ] || mv "after-$last" source
    echo "{\"\$cursor\":$last}"
done
"#;

pub(crate) const CURSOR: Says<'_> = Says { top: "", unit: "", more: "[cursor]\n" };

/// Pages of three invoices each.
pub(crate) async fn paged(database: TestDatabase) -> Sync {
    let sync = Sync::into_table(database, CURSOR).await;
    sync.shop.program("list", PAGES);
    for page in 1..=5 {
        let text = lines(3 * page - 2..=3 * page).join("\n");
        sync.shop.write(&format!("page-{page}"), &format!("{text}\n"));
    }
    sync
}

#[both_databases]
async fn a_cursor_resumes_where_the_last_run_ended(database: TestDatabase) {
    let sync = paged(database).await;
    sync.shop.write("rest", "{\"id\":16,\"total\":160}\n");
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!((sync.position().await, sync.invoices().await), (vec!["5".to_owned()], rows(1..=16)));
    sync.ask(&["run", "sync@2020-06-10"]).await;
    assert_eq!(sync.shop.lines("log"), ["from 0", "from 5"]);
    assert_eq!(sync.writes().await, texts(1..=16));
}

#[both_databases]
async fn an_undeclared_cursor_is_refused_with_advice(database: TestDatabase) {
    let sync = paged(database).await;
    sync.says(Says::default());
    let (became, message) = sync.run().await;
    assert_eq!(became, "Ran failed 1");
    assert!(
        message.starts_with(
            "said line 4: the source printed a cursor, but the job has no [cursor]\nsaid   add [cursor]"
        ),
        "{message}"
    );
}

#[both_databases]
async fn a_page_larger_than_memory_is_passed_once_it_is_applied(database: TestDatabase) {
    let sync = Sync::into_table(database, CURSOR).await;
    let token = "{\"$cursor\":\"a\"}".to_owned();
    sync.source(lines(1..=2_300).into_iter().chain([token]));
    assert_eq!(sync.run().await.0, "Ran done 1");
    assert_eq!((sync.position().await, sync.invoices().await.len()), (vec!["a".to_owned()], 2_300));
    assert_eq!(sync.counts().await, [[2_300, 0, 0, 0]]);
}

#[both_databases]
async fn m12_killed_at_any_commit_a_checkpoint_never_precedes_its_units(database: TestDatabase) {
    for failpoint in [
        "checkpoint.after-commit=1*off->return(kill)",
        "checkpoint.before-commit=1*off->return(kill)",
        "checkpoint.before-commit=return(kill)",
        "unit-apply.before-commit=2*off->return(kill)",
        "unit-apply.after-commit=2*off->return(kill)",
        "finish.before-commit=return(kill)",
    ] {
        let sync = paged(TestDatabase::like(&database).await).await;
        sync.killed(failpoint).await;
        let passed: u32 = sync.position().await.first().map_or(0, |position| position.parse().unwrap());
        let there = sync.invoices().await;
        assert!(
            there.len() >= 3 * passed as usize,
            "{failpoint}: {passed} pages are passed, and there is {there:?}"
        );
        assert!(there == rows(1..=u32::try_from(there.len()).unwrap()), "{failpoint}: {there:?}");
        assert_eq!(sync.run().await.0, "Ran done 2", "{failpoint}");
        assert_eq!(sync.shop.lines("log"), ["from 0".to_owned(), format!("from {passed}")], "{failpoint}");
        assert_eq!(
            (sync.position().await, sync.invoices().await),
            (vec!["5".to_owned()], rows(1..=15)),
            "{failpoint}"
        );
        assert_eq!(sync.writes().await, texts(1..=15), "{failpoint}");
    }
}

#[both_databases]
async fn m28_rows_inserted_and_deleted_between_pages_hide_no_other_row(database: TestDatabase) {
    for failpoint in [None, Some("checkpoint.after-commit=1*off->return(kill)")] {
        let sync = Sync::into_table(TestDatabase::like(&database).await, CURSOR).await;
        sync.shop.program("list", MOVING);
        sync.source(lines([10, 20, 30, 40, 50, 60]));
        let after = |name: &str, ids: &[u32]| {
            sync.shop.write(name, &format!("{}\n", lines(ids.iter().copied()).join("\n")));
        };
        // By offset, 30 would now be on the page that was read, or 20 on the next one.
        after("after-20", &[20, 30, 40, 50, 60]);
        after("after-40", &[2, 4, 20, 30, 40, 45, 50, 60]);
        let mut became = "Ran done 1";
        if let Some(failpoint) = failpoint {
            sync.killed(failpoint).await;
            became = "Ran done 2";
        }
        assert_eq!(sync.run().await.0, became);
        assert_eq!(sync.invoices().await, rows([10, 20, 30, 40, 45, 50, 60]));
        assert_eq!(sync.writes().await, texts([10, 20, 30, 40, 45, 50, 60]));
    }
}
