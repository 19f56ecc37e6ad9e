//! Many processes apply the same units to one database, at once.
//!
//! The child is this very test program: told by its environment where the shop and the store are, it does a run of its own.

use std::process::Command;
use std::time::Duration;

use refrain::{Ask, Per, Refrain};
use tokio::time::timeout;

use crate::shop::{Backend, Shop, Source, invoices, ran, sync};
use crate::support::children::ChildProcess;
use crate::support::work::{SETTINGS, is_sound, open};

const CHILD: &str = "many::a_process_applies_what_its_source_shows";
const RUN: &str = "MANY_RUN";
/// All of them at full size take minutes, on a machine with two cores.
const PATIENCE: Duration = Duration::from_hours(1);

/// What the child is told.
fn told(name: &str) -> String {
    std::env::var(name).unwrap()
}

async fn applies<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(told("MANY_UNITS").parse().unwrap()));
    let work = sync(&shop, &source, Per::Ever, |units| units);
    let opening = Refrain::at(&told("MANY_STORE"), "shop").unwrap().settings(SETTINGS).connections(2);
    let refrain = opening.job(work).open().await.unwrap();
    let run = format!("sync#{}", told(RUN));
    // One that met the others too often fails, and is tried again.
    while !refrain.run(&run, Ask::Once).await.unwrap().is_done() {}
}

/// As the child of the stories below it applies its units beside the others; else alone, twice.
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
    let url = told("MANY_SHOP");
    if url.starts_with("sqlite:") {
        applies(Shop::<sqlx::Sqlite>::at(&url).await).await;
    } else {
        applies(Shop::<sqlx::Postgres>::at(&url).await).await;
    }
}

/// So many processes and units; all of them if there is time.
fn size() -> (usize, i64) {
    if std::env::var_os("REFRAIN_FULL").is_some() { (64, 100_000) } else { (8, 4_000) }
}

both_shops! {
    async fn i14_many_processes_apply_the_same_units_and_each_is_written_once(shop) {
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
            let last = timeout(PATIENCE, child.line_with("test result")).await;
            assert!(last.is_ok(), "within {PATIENCE:?} there was no end");
            let output = child.finish().await;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{}: {said}", output.status);
        }
        assert_eq!(shop.numbers("select count(*) from invoices where writes = 1").await, [units]);
        assert_eq!(shop.numbers("select count(*) from invoices").await, [units]);
        assert_eq!(shop.standing("applied").await, units);
        let counted = "select cast(sum(processed) as bigint) from refrain_counts";
        assert_eq!(shop.store.store_numbers(counted).await, [units], "each is counted by the one that wrote it");
        is_sound(&refrain).await;
    }
}
