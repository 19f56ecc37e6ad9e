//! A source beside its table: what is missing there, is there twice, says something else, or should not be there.

use refrain::{Difference, Differences, Project, Reconciled};

use crate::both_databases;
use crate::support::TestDatabase;
use crate::sync::{RUN, Sync, lines};

const BULK: &str = "[publish]\ndatabase = \"shop\"\ntable = \"invoices\"\nmode = \"merge\"\nkey = [\"id\"]\nledger = false\n";
const LAND: &str = "[publish]\ndatabase = \"shop\"\ntable = \"raw\"\nmode = \"land\"\nledger = false\n";
const COMMAND: &str = "command = [\"./list\"]\noutput = \"units\"";

async fn reconcile(sync: &Sync) -> Result<Reconciled, String> {
    let project = Project::load(sync.shop.root()).unwrap();
    let refrain = sync.shop.open().await;
    let reconciled = refrain.reconcile(&project, RUN).await;
    refrain.close().await;
    project.close().await;
    reconciled.map_err(|error| error.to_string())
}

async fn differences(sync: &Sync) -> Differences {
    reconcile(sync).await.unwrap().differences
}

fn those(first: &[&str]) -> Difference {
    Difference { count: first.len() as u64, first: first.iter().map(|key| (*key).to_owned()).collect() }
}

/// How many units: a million where everything is tried.
fn many() -> u32 {
    if std::env::var_os("REFRAIN_FULL").is_some() { 1_000_000 } else { 20_000 }
}

both_databases! {
    async fn m29_with_no_entry_for_each_unit_a_planted_duplicate_and_a_planted_loss_are_both_found(database) {
        let sync = Sync::of(database).await;
        sync.shop.execute("create table many (id bigint, total bigint); create unique index once on many (id)").await;
        sync.job(COMMAND, "timeout = \"30m\"", "", &BULK.replace("invoices", "many"));
        let last = many();
        let text = format!("#!/bin/sh\nseq 1 {last} | awk '{{ print \"{{\\\"id\\\":\" $1 \",\\\"total\\\":\" $1 * 10 \"}}\" }}'\n");
        sync.shop.program("list", &text);
        let (became, said) = sync.run().await;
        assert_eq!(became, "Ran done 1", "{said}");
        let entries = sync.shop.either("select key from refrain_units", "select key from refrain.units");
        assert_eq!(sync.shop.rows(entries).await.len(), last as usize / 10_000, "one row a page");
        let agrees = reconcile(&sync).await.unwrap();
        assert_eq!((agrees.units, agrees.differences), (u64::from(last), Differences::default()));

        sync.shop.execute("drop index once; insert into many select * from many where id = 12345; delete from many where id = 777").await;
        let found = differences(&sync).await;
        let expected = Differences { lost: those(&["invoice:777"]), duplicated: those(&["invoice:12345"]), ..Differences::default() };
        assert_eq!(found, expected);
    }

    async fn whatever_the_ledger_says_the_table_is_looked_at(database) {
        for more in [BULK.to_owned(), BULK.replace("ledger = false\n", "")] {
            let sync = Sync::of(TestDatabase::like(&database).await).await;
            sync.job(COMMAND, "", "", &format!("{more}owns = \"at = cast(:ds as text)\"\n"));
            sync.source((1..=30).map(|id| format!("{{\"id\":{id},\"total\":10,\"at\":\"2020-06-09\"}}")));
            assert_eq!(sync.run().await.0, "Ran done 1");
            assert_eq!(differences(&sync).await, Differences::default());
            sync.shop.execute("update invoices set total = 1 where id = 3; delete from invoices where id > 28;
                insert into invoices (id, total, at) values (99, 1, '2020-06-09'), (100, 1, '2020-06-10')").await;
            let rows = sync.invoices().await;
            let expected = Differences {
                lost: those(&["invoice:29", "invoice:30"]),
                changed: those(&["invoice:3"]),
                extra: those(&["id=99"]),
                ..Differences::default()
            };
            assert_eq!(differences(&sync).await, expected);
            assert_eq!((sync.invoices().await, sync.counts().await.len()), (rows, 1), "it only looks");
        }
    }

    async fn what_a_unit_does_not_speak_of_is_not_compared(database) {
        for more in [BULK.to_owned(), BULK.replace("ledger = false\n", "")] {
            let sync = Sync::of(TestDatabase::like(&database).await).await;
            sync.job(COMMAND, "", "", &more);
            sync.source((1..=4).map(|id| format!("{{\"id\":{id},\"total\":10,\"at\":\"noon\"}}")));
            assert_eq!(sync.run().await.0, "Ran done 1");
            sync.source(["{\"id\":1,\"total\":11}", "{\"id\":2,\"total\":10,\"at\":null}", "{\"id\":3,\"total\":10,\"at\":\"noon\"}", "{\"id\":4,\"total\":10,\"ta\":null}"]);
            let found = differences(&sync).await;
            let expected = Differences { changed: those(&["invoice:1", "invoice:2"]), unfit: those(&["invoice:4"]), ..Differences::default() };
            assert_eq!(found, expected, "null is something to say, and a field that the table lacks is one that it lacks");
            assert_ne!(sync.again().await.0, "Ran done 2", "the last one cannot be written");
            let at = sync.shop.rows("select coalesce(at, 'nothing') from invoices order by id").await;
            assert_eq!(at, ["noon", "nothing", "noon", "noon"], "what is not spoken of is left alone");
            let expected = Differences { unfit: those(&["invoice:4"]), ..Differences::default() };
            assert_eq!(differences(&sync).await, expected);
        }
    }

    async fn what_the_table_cannot_hold_and_what_is_no_unit_are_told_apart(database) {
        let sync = Sync::of(database).await;
        sync.job(COMMAND, "", "", BULK);
        let mut source = lines(1..=40);
        source[6] = String::from("{\"id\":7,\"totl\":70}");
        source.extend(["odd".to_owned(), "{\"id\":1,\"total\":11}".to_owned()]);
        sync.source(&source);
        assert_eq!(sync.run().await.0, "Ran due 2");
        let found = reconcile(&sync).await.unwrap();
        assert_eq!((found.units, found.unreadable), (40, 1), "one was told twice, and counts as it was told last");
        assert_eq!(found.differences, Differences { unfit: those(&["invoice:7"]), ..Differences::default() });
    }

    async fn rows_that_have_landed_are_told_by_what_they_say(database) {
        let sync = Sync::of(database).await;
        sync.shop.execute("create table raw (id bigint, total bigint, note text, source text, content_hash text, occurrence integer,
            unique (source, content_hash, occurrence))").await;
        sync.job(COMMAND, "", "", LAND);
        sync.source(lines(1..=9).into_iter().chain(["{\"id\":10,\"total\":100,\"note\":\"x\"}".to_owned()]));
        assert_eq!(sync.run().await.0, "Ran done 1");
        assert_eq!(differences(&sync).await, Differences::default());
        sync.shop.execute("delete from raw where id = 2; insert into raw select id, total, note, source, content_hash, 2 from raw where id = 5").await;
        let expected = Differences { lost: those(&["invoice:2"]), duplicated: those(&["invoice:5"]), ..Differences::default() };
        assert_eq!(differences(&sync).await, expected);
    }

    async fn a_checkpoint_is_neither_asked_nor_moved(database) {
        let sync = Sync::of(database).await;
        sync.job(COMMAND, "", "", &format!("[cursor]\n{BULK}"));
        sync.shop.program("list", "#!/bin/sh\n[ -n \"$REFRAIN_CURSOR\" ] || cat source\n");
        sync.source(lines(1..=3).into_iter().chain(["{\"$cursor\":\"a\"}".to_owned()]));
        assert_eq!(sync.run().await.0, "Ran done 1");
        sync.source(lines(1..=4).into_iter().chain(["{\"$cursor\":\"b\"}".to_owned()]));
        assert_eq!(differences(&sync).await, Differences { lost: those(&["invoice:4"]), ..Differences::default() });
        assert_eq!(sync.position().await, ["a"]);
    }

    async fn a_source_that_cannot_be_read_to_its_end_is_compared_with_nothing(database) {
        let sync = Sync::of(database).await;
        sync.job(COMMAND, "", "", BULK);
        sync.source(lines(1..=3));
        sync.shop.program("list", "#!/bin/sh\ncat source\necho 'no more' >&2\nexit 3\n");
        assert_eq!(reconcile(&sync).await.unwrap_err(), "exit code 3\nno more\n  nothing was compared");
        sync.job("database = \"shop\"\nquery = \"select id, total from invoices\"", "", "", BULK);
        assert_eq!(reconcile(&sync).await.unwrap().units, 0);
    }
}
