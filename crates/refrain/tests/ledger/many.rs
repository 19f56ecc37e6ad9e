//! Many processes apply the same units to one database, at once.
//!
//! The child is this test program itself: variables name the shop and the store, and it executes a run of its own.

use refrain_harness::both_shops;
use std::process::Command;

use refrain::ledger::Per;
use refrain::{Ask, Refrain};

use crate::shop::{Backend, Shop, Source, invoices, key_of, ran, sync, work, write};
use refrain_harness::children::ChildProcess;
use refrain_harness::work::{SETTINGS, is_sound, open};

const CHILD: &str = "many::a_process_applies_what_its_source_shows";
const RUN: &str = "MANY_RUN";
/// A process with too many conflicts fails its attempt. It is requested again, at most this often.
const ATTEMPTS_MAX: usize = 100;

/// A variable that the parent has set.
fn variable(name: &str) -> String {
    std::env::var(name).unwrap()
}

async fn applies<DB: Backend>(shop: Shop<DB>) {
    let source = invoices(variable("MANY_UNITS").parse().unwrap());
    let job = work(&shop, "sync", move |run, pool| {
        let source = source.clone();
        async move {
            let units = run.fence(&pool).await?.units(Per::Ever, key_of);
            for invoices in [units.failed().await?, source] {
                let mut applying = units.apply(&invoices).await?;
                while let Some(mut batch) = applying.next().await? {
                    let result = write(&mut batch).await;
                    batch.settle(result).await?;
                    eprintln!("a batch is committed");
                }
            }
            Ok(())
        }
    });
    let options = Refrain::at(&variable("MANY_STORE"), "shop").unwrap().settings(SETTINGS).connections(2);
    let refrain = options.job(job).open().await.unwrap();
    let run = format!("sync#{}", variable(RUN));
    for _ in 0..ATTEMPTS_MAX {
        if refrain.run(&run, Ask::Once).await.unwrap().is_done() {
            return;
        }
    }
    panic!("{run} was not done in {ATTEMPTS_MAX} attempts");
}

/// As a child of the tests below, it applies its units beside the others; by itself, twice.
#[tokio::test]
async fn a_process_applies_what_its_source_shows() {
    if std::env::var_os(RUN).is_none() {
        let shop = Shop::in_a_file().await;
        let refrain =
            open(&shop.store, [sync(&shop, &Source::of(invoices(10)), Per::Ever, |units| units)]).await;
        for run in ["sync#one", "sync#two"] {
            assert!(ran(&refrain, run).await.ends_with("done 1"));
        }
        assert_eq!(shop.writes().await, vec![1; 10]);
        return;
    }
    let url = variable("MANY_SHOP");
    if url.starts_with("sqlite:") {
        applies(Shop::<sqlx::Sqlite>::at(&url).await).await;
    } else {
        applies(Shop::<sqlx::Postgres>::at(&url).await).await;
    }
}

/// How many processes and units; many more with `REFRAIN_FULL`.
fn size() -> (usize, i64) {
    if std::env::var_os("REFRAIN_FULL").is_some() { (64, 100_000) } else { (8, 4_000) }
}

#[both_shops]
async fn i14_many_processes_apply_the_same_units_and_each_is_written_once<DB: Backend>(shop: Shop<DB>) {
    let (processes, units) = size();
    let refrain = open(&shop.store, []).await;
    let mut children: Vec<ChildProcess> = (0..processes)
        .map(|process| {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", CHILD, "--nocapture"]).env(RUN, process.to_string());
            child.env("MANY_SHOP", shop.database.url()).env("MANY_STORE", shop.store.url());
            ChildProcess::spawn(child.env("MANY_UNITS", units.to_string()))
        })
        .collect();
    for child in &mut children {
        // A child prints a line for each batch, so the deadline is for a line and not for all of its work.
        while !child.wait_for_line("").await.contains("test result") {}
        let output = child.finish().await;
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {message}", output.status);
    }
    assert_eq!(shop.numbers("select count(*) from invoices where writes = 1").await, [units]);
    assert_eq!(shop.numbers("select count(*) from invoices").await, [units]);
    assert_eq!(shop.count_of("applied").await, units);
    let counted = "select cast(sum(processed) as bigint) from refrain_counts";
    assert_eq!(shop.store.store_numbers(counted).await, [units], "each is counted by the one that wrote it");
    is_sound(&refrain).await;
}
