//! An operator has recorded work done again: each unit once per request, even if the worker is killed meanwhile.

use std::collections::BTreeMap;

use crate::calls::{FINE, but, calling, in_doubt, keys};
use crate::receiver::{Receiver, Reply};
use crate::sync::{LEASE, RUN, Says, Sync, lines, rows, texts};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;

const REDO: [&str; 3] = ["run", RUN, "--redo"];

/// How often each id occurs.
fn times(ids: &[String]) -> BTreeMap<&str, usize> {
    let mut times = BTreeMap::new();
    for id in ids {
        *times.entry(id.as_str()).or_default() += 1;
    }
    times
}

/// Asserts that each id occurs this often.
#[track_caller]
fn each_was_there(ids: &[String], often: usize, what: &str) {
    let expected = texts(1..=6);
    let expected: BTreeMap<&str, usize> = expected.iter().map(|id| (id.as_str(), often)).collect();
    assert_eq!(times(ids), expected, "{what}");
}

/// A shop whose rows change right after they were written, so that every write is visible: a row with the right
/// content would be left unchanged.
async fn spoilt(database: TestDatabase, says: Says<'_>) -> Sync {
    let sync = Sync::into_table(database, says).await;
    sync.source(lines(1..=6));
    assert_eq!(sync.run().await.0, "Ran done 1");
    let spoil = sync.shop.either(
        "drop trigger updated;
         create trigger updated after update on invoices when new.total <> -1 begin
             insert into writes values (new.id); update invoices set total = -1 where id = new.id; end;
         update invoices set total = -1",
        "drop trigger written on invoices;
         create function spoil() returns trigger language plpgsql as
             $$ begin if new.total <> -1 then insert into writes values (new.id); new.total := -1; \
             end if; return new; end $$;
         create trigger spoilt before update on invoices for each row execute function spoil();
         update invoices set total = -1",
    );
    sync.shop.execute(spoil).await;
    sync
}

/// Requests a redo in a process that is killed at this failpoint; then the run is finished.
async fn killed_in_a_redo(sync: &Sync, place: &str) {
    use std::os::unix::process::ExitStatusExt;
    let failpoints = format!("{place}=return(kill)");
    let mut process = sync.shop.process(&REDO, &[("FAILPOINTS", &failpoints), LEASE]);
    let output = process.finish().await;
    let killed = Some(rustix::process::Signal::KILL.as_raw());
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), killed, "{place} was not reached: {message}");
    sync.shop.expire().await;
    let refrain = sync.shop.open().await;
    let is_asked = refrain.show(RUN).await.unwrap().unwrap().standing.is_open();
    refrain.close().await;
    if !is_asked {
        // It was killed before the request was recorded, or after the run was done.
        assert!(place.starts_with("reopen.before") || place.starts_with("finish.after"), "{place}");
        if place.starts_with("reopen.before") {
            sync.ask(&REDO).await;
        }
        return;
    }
    for _ in 0..4 {
        if sync.run().await.0.contains(" done ") {
            return;
        }
    }
}

#[both_databases]
async fn a_redo_restores_lost_rows_and_keeps_correct_ones(database: TestDatabase) {
    let sync = Sync::into_table(database, Says::default()).await;
    sync.source(lines(1..=6));
    sync.run().await;
    sync.shop.execute("delete from invoices where id < 4").await;
    assert_eq!(sync.again().await.0, "Ran done 2");
    assert_eq!(sync.invoices().await, rows(4..=6), "another attempt skips recorded units");
    assert_eq!(sync.ask(&REDO).await.0, "Ran done 3");
    assert_eq!(sync.invoices().await, rows(1..=6));
    assert_eq!(sync.writes().await, ["1", "1", "2", "2", "3", "3", "4", "5", "6"]);
}

#[both_databases]
async fn a_second_redo_request_joins_the_running_redo(database: TestDatabase) {
    let sync = spoilt(database, Says::default()).await;
    let failpoints = [("FAILPOINTS", "unit-apply.after-commit=return(kill)"), LEASE];
    sync.shop.process(&REDO, &failpoints).finish().await;
    sync.shop.expire().await;
    assert!(sync.ask(&REDO).await.0.contains(" done "), "it goes on");
    each_was_there(&sync.writes().await, 2, "and begins no other one");
}

#[both_databases]
async fn without_its_first_attempt_number_a_redo_repeats_its_work(database: TestDatabase) {
    let sync = spoilt(database, Says::default()).await;
    let failpoints = [("FAILPOINTS", "unit-apply.after-commit=return(kill)"), LEASE];
    sync.shop.process(&REDO, &failpoints).finish().await;
    sync.shop.expire().await;
    let weak = [("FAILPOINTS", "redo.each-attempt=return(weak)")];
    let mut message = String::new();
    for _ in 0..4 {
        message = sync.shop.done_with(&["run", RUN], &weak).await;
        if message.contains(" done ") {
            break;
        }
    }
    assert!(message.contains(" done "), "{message}");
    each_was_there(&sync.writes().await, 3, "only the number says what this redo has done");
}

#[both_databases]
async fn each_redo_writes_rows_once_more_and_no_other_attempt_does(database: TestDatabase) {
    let sync = spoilt(database, Says::default()).await;
    assert_eq!(sync.again().await.0, "Ran done 2");
    each_was_there(&sync.writes().await, 1, "another attempt skips done units");
    assert_eq!(sync.ask(&REDO).await.0, "Ran done 3");
    each_was_there(&sync.writes().await, 2, "a redo does not");
    assert_eq!(sync.again().await.0, "Ran done 4");
    each_was_there(&sync.writes().await, 2, "the redo is over");
    assert_eq!(sync.ask(&REDO).await.0, "Ran done 5");
    each_was_there(&sync.writes().await, 3, "another redo starts over");
    assert_eq!(sync.counts().await, [[6, 0, 0, 0], [0, 0, 6, 0], [6, 0, 0, 0], [0, 0, 6, 0], [6, 0, 0, 0]]);
}

#[both_databases]
async fn f1_a_redo_killed_at_any_commit_writes_each_unit_once_more(database: TestDatabase) {
    for place in ["reopen", "claim", "fence-raise", "unit-apply", "finish"] {
        for when in ["before-commit", "after-commit"] {
            let sync = spoilt(TestDatabase::like(&database).await, Says::default()).await;
            killed_in_a_redo(&sync, &format!("{place}.{when}")).await;
            each_was_there(&sync.writes().await, 2, &format!("{place}.{when}"));
            assert_eq!(sync.left().await, Vec::<String>::new(), "{place}.{when}");
            sync.again().await;
            each_was_there(&sync.writes().await, 2, &format!("{place}.{when}, and again"));
        }
    }
}

#[both_databases]
async fn f4_a_redo_with_lost_replies_writes_each_unit_once_more(database: TestDatabase) {
    for place in ["reopen", "claim", "fence-raise", "unit-apply", "finish"] {
        let sync = spoilt(TestDatabase::like(&database).await, Says::default()).await;
        let failpoints = format!("{place}.reply=1*return(lost)");
        let message = sync.shop.done_with(&REDO, &[("FAILPOINTS", &failpoints)]).await;
        assert!(message.contains(" done 2"), "{place}: {message}");
        assert_eq!(sync.shop.lines("struck"), [format!("{place}.reply")]);
        each_was_there(&sync.writes().await, 2, place);
    }
}

#[both_databases]
async fn a_redo_that_fails_half_way_is_continued_without_repetition(database: TestDatabase) {
    let sync = spoilt(database, Says { top: "retry = { attempts = 1 }", ..Says::default() }).await;
    let forbid = sync.shop.either(
        "create trigger forbidden before update on invoices when new.id = 4 begin select raise(abort, \
         'not now'); end",
        "create function forbid() returns trigger language plpgsql as $$ begin raise 'not now'; end $$;
             create trigger forbidden before update on invoices for each row when (new.id = 4) \
             execute function forbid()",
    );
    sync.shop.execute(forbid).await;
    assert!(sync.ask(&REDO).await.0.contains(" partial 2"));
    sync.shop.execute(sync.shop.either("drop trigger forbidden", "drop trigger forbidden on invoices")).await;
    let refrain = sync.shop.open().await;
    assert_eq!(refrain.unpark(RUN, "invoice:4").await.unwrap(), 1);
    refrain.close().await;
    assert_eq!(sync.ask(&["retry", RUN]).await.0, "Ran done 3");
    each_was_there(&sync.writes().await, 2, "each unit once, in one attempt or the next");
}

#[both_databases]
async fn an_abandoned_redo_leaves_the_earlier_results_valid(database: TestDatabase) {
    let sync = spoilt(database, Says { top: "retry = { attempts = 1 }", ..Says::default() }).await;
    sync.shop.program("list", "#!/bin/sh\nexit 3\n");
    assert!(sync.ask(&REDO).await.0.contains(" failed 2"));
    sync.shop.program("list", "#!/bin/sh\ncat source\n");
    assert_eq!(sync.again().await.0, "Ran done 3");
    each_was_there(&sync.writes().await, 1, "`--again` asks for no redo");
}

#[both_databases]
async fn f1_a_redo_killed_anywhere_makes_each_call_once_more_or_doubts_it(database: TestDatabase) {
    let places = [
        "unit-reserve.before-commit",
        "unit-reserve.after-commit",
        "call.reserved",
        "call.answered",
        "unit-apply.before-commit",
        "unit-apply.after-commit",
        "finish.before-commit",
    ];
    for place in places {
        let receiver = Receiver::answering(FINE).await;
        let sync = calling(TestDatabase::like(&database).await, &receiver, "", "parallel = 2").await;
        sync.run().await;
        killed_in_a_redo(&sync, place).await;
        let (heard, doubt) = (receiver.ids(), in_doubt(&sync).await);
        for (id, often) in times(&heard) {
            let is_in_doubt = doubt.contains(&format!("invoice:{id}"));
            assert!(often == 2 || (often == 1 && is_in_doubt), "{place}: {id} {often} times, {doubt:?}");
            assert_eq!(
                keys(&receiver, id).len(),
                often,
                "{place}: the other side must take it for a new call"
            );
        }
    }
}

#[both_databases]
async fn a_redo_does_not_repeat_a_call_in_doubt(database: TestDatabase) {
    let receiver = Receiver::answering(but("2", Reply::Cut)).await;
    let sync = calling(database, &receiver, "", "").await;
    sync.run().await;
    receiver.answers(FINE);
    assert!(sync.ask(&REDO).await.0.contains(" partial "));
    assert_eq!(times(&receiver.ids())["2"], 1);
    assert_eq!(in_doubt(&sync).await, ["invoice:2"]);
}

#[both_databases]
async fn a_redo_executes_the_command_of_each_unit_once_more(database: TestDatabase) {
    let sync = Sync::of(database).await;
    sync.shop.program("apply", "#!/bin/sh\necho \"$1 $REFRAIN_IDEMPOTENCY_KEY\" >> log\n");
    sync.job("command = [\"./list\"]\noutput = \"units\"", "", "command = [\"./apply\", \"{id}\"]", "");
    sync.source(lines(1..=6));
    sync.run().await;
    assert_eq!(sync.ask(&REDO).await.0, "Ran done 2");
    let text = sync.shop.lines("log");
    let ids: Vec<String> = text.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    each_was_there(&ids, 2, "told");
    assert_eq!(times(&text).len(), 12, "each time under another key");
}

#[both_databases]
async fn a_redo_executes_statements_once_more(database: TestDatabase) {
    let sync = Sync::of(database).await;
    sync.shop.daily("sync", "insert into writes values (1)", "database = \"shop\"");
    sync.run().await;
    sync.again().await;
    assert_eq!(sync.writes().await, ["1"]);
    killed_in_a_redo(&sync, "unit-apply.after-commit").await;
    assert_eq!(sync.writes().await, ["1", "1"]);
    killed_in_a_redo(&sync, "unit-apply.before-commit").await;
    assert_eq!(sync.writes().await, ["1", "1", "1"]);
}

#[both_databases]
async fn a_redo_writes_bulk_pages_once_more(database: TestDatabase) {
    let sync = Sync::of(database).await;
    let into = r#"
        [publish]
        database = "shop"
        table = "invoices"
        mode = "merge"
        key = ["id"]
        ledger = false
    "#;
    sync.job("command = [\"./list\"]\noutput = \"units\"", "", "", into);
    sync.source(lines(1..=6));
    sync.run().await;
    sync.again().await;
    each_was_there(&sync.writes().await, 1, "the page is known");
    killed_in_a_redo(&sync, "page-apply.after-commit").await;
    let once = times(&sync.writes().await).into_values().max();
    assert_eq!(once, Some(1), "an existing row is not rewritten");
    sync.shop.execute("delete from invoices").await;
    sync.again().await;
    assert_eq!(sync.invoices().await.len(), 0, "the page is known again");
    sync.ask(&REDO).await;
    assert_eq!(sync.invoices().await.len(), 6);
}

#[both_databases]
async fn a_redo_does_not_append_rows_again(database: TestDatabase) {
    let sync = Sync::of(database).await;
    let into = r#"
        [publish]
        database = "shop"
        table = "invoices"
        mode = "append-once"
    "#;
    sync.job("command = [\"./list\"]\noutput = \"units\"", "", "", into);
    sync.source(lines(1..=6));
    sync.run().await;
    sync.shop.execute("delete from invoices").await;
    assert_eq!(sync.ask(&REDO).await.0, "Ran done 2");
    each_was_there(&sync.writes().await, 1, "a second row beside the first is never intended");
}
