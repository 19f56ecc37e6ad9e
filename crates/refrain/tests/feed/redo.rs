//! Work that is recorded as done, and that a person has done again on purpose: each unit once for each time it was asked for,
//! also if the worker is killed in the middle.

use std::collections::BTreeMap;

use crate::both_databases;
use crate::calls::{FINE, but, calling, in_doubt, keys};
use crate::receiver::{Receiver, Reply};
use crate::support::TestDatabase;
use crate::sync::{LEASE, RUN, Says, Sync, lines, rows, texts};

const REDO: [&str; 3] = ["run", RUN, "--redo"];

/// How often each of them is there.
fn times(ids: &[String]) -> BTreeMap<&str, usize> {
    let mut times = BTreeMap::new();
    for id in ids {
        *times.entry(id.as_str()).or_default() += 1;
    }
    times
}

/// Each of them so often.
#[track_caller]
fn each_was_there(ids: &[String], often: usize, what: &str) {
    let expected = texts(1..=6);
    let expected: BTreeMap<&str, usize> = expected.iter().map(|id| (id.as_str(), often)).collect();
    assert_eq!(times(ids), expected, "{what}");
}

/// A shop whose rows never stay as they were written, so that each time that one is written is seen: a row that is as it should
/// be would be left alone.
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
             $$ begin if new.total <> -1 then insert into writes values (new.id); new.total := -1; end if; return new; end $$;
         create trigger spoilt before update on invoices for each row execute function spoil();
         update invoices set total = -1",
    );
    sync.shop.execute(spoil).await;
    sync
}

/// Asks for the work once more in a process that is killed where it is said; then the run is seen through.
async fn killed_in_a_redo(sync: &Sync, place: &str) {
    use std::os::unix::process::ExitStatusExt;
    let failpoints = format!("{place}=return(kill)");
    let mut process = sync.shop.process(&REDO, &[("FAILPOINTS", &failpoints), LEASE]);
    let output = process.finish().await;
    let killed = Some(rustix::process::Signal::KILL.as_raw());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.signal(), killed, "{place} was not reached: {said}");
    sync.shop.expire().await;
    let refrain = sync.shop.open().await;
    let is_asked = refrain.show(RUN).await.unwrap().unwrap().standing.is_open();
    refrain.close().await;
    if !is_asked {
        // It died before the wish was written down, or after all of it was done.
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

both_databases! {
    async fn rows_that_were_lost_are_there_again_and_those_that_are_right_stay_as_they_are(database) {
        let sync = Sync::into_table(database, Says::default()).await;
        sync.source(lines(1..=6));
        sync.run().await;
        sync.shop.execute("delete from invoices where id < 4").await;
        assert_eq!(sync.again().await.0, "Ran done 2");
        assert_eq!(sync.invoices().await, rows(4..=6), "another attempt leaves alone what is recorded");
        assert_eq!(sync.ask(&REDO).await.0, "Ran done 3");
        assert_eq!(sync.invoices().await, rows(1..=6));
        assert_eq!(sync.writes().await, ["1", "1", "2", "2", "3", "3", "4", "5", "6"]);
    }

    async fn the_same_wish_while_a_redo_is_under_way_is_the_same_redo(database) {
        let sync = spoilt(database, Says::default()).await;
        let failpoints = [("FAILPOINTS", "unit-apply.after-commit=return(kill)"), LEASE];
        sync.shop.process(&REDO, &failpoints).finish().await;
        sync.shop.expire().await;
        assert!(sync.ask(&REDO).await.0.contains(" done "), "it goes on");
        each_was_there(&sync.writes().await, 2, "and begins no other one");
    }

    async fn without_the_number_of_the_attempt_with_which_it_began_a_redo_would_do_its_work_twice(database) {
        let sync = spoilt(database, Says::default()).await;
        let failpoints = [("FAILPOINTS", "unit-apply.after-commit=return(kill)"), LEASE];
        sync.shop.process(&REDO, &failpoints).finish().await;
        sync.shop.expire().await;
        let weak = [("FAILPOINTS", "redo.each-attempt=return(weak)")];
        let mut said = String::new();
        for _ in 0..4 {
            said = sync.shop.done_with(&["run", RUN], &weak).await;
            if said.contains(" done ") {
                break;
            }
        }
        assert!(said.contains(" done "), "{said}");
        each_was_there(&sync.writes().await, 3, "the number is what tells what this redo has done");
    }

    async fn rows_are_written_once_more_for_each_redo_and_by_no_other_attempt(database) {
        let sync = spoilt(database, Says::default()).await;
        assert_eq!(sync.again().await.0, "Ran done 2");
        each_was_there(&sync.writes().await, 1, "another attempt leaves alone what is done");
        assert_eq!(sync.ask(&REDO).await.0, "Ran done 3");
        each_was_there(&sync.writes().await, 2, "a redo does not");
        assert_eq!(sync.again().await.0, "Ran done 4");
        each_was_there(&sync.writes().await, 2, "the redo is over");
        assert_eq!(sync.ask(&REDO).await.0, "Ran done 5");
        each_was_there(&sync.writes().await, 3, "another one begins anew");
        assert_eq!(sync.counts().await, [[6, 0, 0, 0], [0, 0, 6, 0], [6, 0, 0, 0], [0, 0, 6, 0], [6, 0, 0, 0]]);
    }

    async fn f1_killed_at_any_commit_of_a_redo_each_unit_is_written_once_more(database) {
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

    async fn f4_the_answer_to_any_commit_of_a_redo_is_lost_and_each_unit_is_written_once_more(database) {
        for place in ["reopen", "claim", "fence-raise", "unit-apply", "finish"] {
            let sync = spoilt(TestDatabase::like(&database).await, Says::default()).await;
            let failpoints = format!("{place}.reply=1*return(lost)");
            let said = sync.shop.done_with(&REDO, &[("FAILPOINTS", &failpoints)]).await;
            assert!(said.contains(" done 2"), "{place}: {said}");
            assert_eq!(sync.shop.lines("struck"), [format!("{place}.reply")]);
            each_was_there(&sync.writes().await, 2, place);
        }
    }

    async fn a_redo_that_fails_in_the_middle_is_gone_on_with_and_what_it_has_done_is_not_done_again(database) {
        let sync = spoilt(database, Says { top: "retry = { attempts = 1 }", ..Says::default() }).await;
        let forbid = sync.shop.either(
            "create trigger forbidden before update on invoices when new.id = 4 begin select raise(abort, 'not now'); end",
            "create function forbid() returns trigger language plpgsql as $$ begin raise 'not now'; end $$;
             create trigger forbidden before update on invoices for each row when (new.id = 4) execute function forbid()",
        );
        sync.shop.execute(forbid).await;
        assert!(sync.ask(&REDO).await.0.contains(" partial 2"));
        sync.shop.execute(sync.shop.either("drop trigger forbidden", "drop trigger forbidden on invoices")).await;
        let refrain = sync.shop.open().await;
        assert_eq!(refrain.unpark(RUN, "invoice:4").await.unwrap(), 1);
        refrain.close().await;
        assert_eq!(sync.ask(&["retry", RUN]).await.0, "Ran done 3");
        each_was_there(&sync.writes().await, 2, "each of them once, in one attempt or the next");
    }

    async fn a_redo_that_is_given_up_is_forgotten_and_what_was_done_before_it_counts(database) {
        let sync = spoilt(database, Says { top: "retry = { attempts = 1 }", ..Says::default() }).await;
        sync.shop.program("list", "#!/bin/sh\nexit 3\n");
        assert!(sync.ask(&REDO).await.0.contains(" failed 2"));
        sync.shop.program("list", "#!/bin/sh\ncat source\n");
        assert_eq!(sync.again().await.0, "Ran done 3");
        each_was_there(&sync.writes().await, 1, "`--again` asks for no redo");
    }

    async fn f1_killed_anywhere_in_a_redo_each_call_is_made_once_more_or_known_to_be_in_doubt(database) {
        let places = [
            "unit-reserve.before-commit", "unit-reserve.after-commit", "call.reserved", "call.answered",
            "unit-apply.before-commit", "unit-apply.after-commit", "finish.before-commit",
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
                assert_eq!(keys(&receiver, id).len(), often, "{place}: the other side must take it for a new call");
            }
        }
    }

    async fn a_call_that_is_in_doubt_is_not_made_again_by_a_redo(database) {
        let receiver = Receiver::answering(but("2", Reply::Cut)).await;
        let sync = calling(database, &receiver, "", "").await;
        sync.run().await;
        receiver.answers(FINE);
        assert!(sync.ask(&REDO).await.0.contains(" partial "));
        assert_eq!(times(&receiver.ids())["2"], 1);
        assert_eq!(in_doubt(&sync).await, ["invoice:2"]);
    }

    async fn commands_are_executed_once_more_for_each_unit(database) {
        let sync = Sync::of(database).await;
        sync.shop.program("apply", "#!/bin/sh\necho \"$1 $REFRAIN_IDEMPOTENCY_KEY\" >> told\n");
        sync.job("command = [\"./list\"]\noutput = \"units\"", "", "command = [\"./apply\", \"{id}\"]", "");
        sync.source(lines(1..=6));
        sync.run().await;
        assert_eq!(sync.ask(&REDO).await.0, "Ran done 2");
        let told = sync.shop.lines("told");
        let ids: Vec<String> = told.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
        each_was_there(&ids, 2, "told");
        assert_eq!(times(&told).len(), 12, "each time under another key");
    }

    async fn statements_are_executed_once_more(database) {
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

    async fn pages_that_are_written_in_bulk_are_written_once_more(database) {
        let sync = Sync::of(database).await;
        let into = "[publish]\ndatabase = \"shop\"\ntable = \"invoices\"\nmode = \"merge\"\nkey = [\"id\"]\nledger = false\n";
        sync.job("command = [\"./list\"]\noutput = \"units\"", "", "", into);
        sync.source(lines(1..=6));
        sync.run().await;
        sync.again().await;
        each_was_there(&sync.writes().await, 1, "the page is known");
        killed_in_a_redo(&sync, "page-apply.after-commit").await;
        let once = times(&sync.writes().await).into_values().max();
        assert_eq!(once, Some(1), "a row that is there already stays as it is");
        sync.shop.execute("delete from invoices").await;
        sync.again().await;
        assert_eq!(sync.invoices().await.len(), 0, "the page is known again");
        sync.ask(&REDO).await;
        assert_eq!(sync.invoices().await.len(), 6);
    }

    async fn rows_that_are_only_added_are_not_added_again(database) {
        let sync = Sync::of(database).await;
        let into = "[publish]\ndatabase = \"shop\"\ntable = \"invoices\"\nmode = \"append-once\"\n";
        sync.job("command = [\"./list\"]\noutput = \"units\"", "", "", into);
        sync.source(lines(1..=6));
        sync.run().await;
        sync.shop.execute("delete from invoices").await;
        assert_eq!(sync.ask(&REDO).await.0, "Ran done 2");
        each_was_there(&sync.writes().await, 1, "a second row beside the first is never meant");
    }
}
