//! Somebody who reads all the time, in every mode: while windows are done again with other data, while one that publishes
//! hangs with all of it written and nothing committed, when that one is killed, and when another takes over.

use std::collections::BTreeSet;
use std::time::Duration;

use refrain::Ask;
use rustix::process::Signal;
use tokio::sync::watch;

use crate::both_databases;
use crate::shop::Shop;
use crate::support::TestDatabase;
use crate::support::eventually::{DEADLINE, eventually};
use crate::warehouse::{MODES, warehouse, window, written};

/// How many rows the window has.
const ROWS: u32 = 300;

/// Gives the window other rows: every amount is another, half of the keys have gone, and as many have come.
async fn refill(shop: &Shop, generation: u32) {
    let (first, last) = (generation * ROWS / 2 + 100, generation * ROWS / 2 + 100 + ROWS - 1);
    let recursive = format!(
        "with recursive n (i) as (select {first} union all select i + 1 from n where i < {last}) select i from n"
    );
    let series = format!("select i from generate_series({first}, {last}) as n (i)");
    let series = shop.either(&recursive, &series);
    shop.execute(&format!(
        "delete from orders where day = '2026-06-09';
         insert into orders select i, '2026-06-09', 'r' || i, {generation} from ({series}) as s"
    ))
    .await;
}

/// Everything that whoever asks again and again has seen, each of it by one statement. Says how often it has looked.
async fn seen(shop: &Shop, mode: &str, looks: &watch::Sender<u64>) -> BTreeSet<Vec<String>> {
    let mut seen = BTreeSet::new();
    while !looks.is_closed() {
        seen.insert(written(shop, mode).await);
        looks.send_modify(|looks| *looks += 1);
        tokio::task::yield_now().await;
    }
    seen
}

/// Waits until somebody has begun to look, and has seen what is there.
async fn was_looked_at(looks: &mut watch::Receiver<u64>) {
    let so_far = *looks.borrow_and_update();
    looks.wait_for(|looks| *looks > so_far + 1).await.unwrap();
}

/// Does the window again with other data, and again; once by one that hangs before it commits and is killed there, and by
/// whoever takes over. Gives what was there after each.
async fn done_again(shop: &Shop, mode: &str, mut looks: watch::Receiver<u64>) -> BTreeSet<Vec<String>> {
    let mut whole = BTreeSet::from([written(shop, mode).await]);
    was_looked_at(&mut looks).await;
    let refrain = shop.open().await;
    for generation in 1..4 {
        refill(shop, generation).await;
        assert!(refrain.run(&window(mode), Ask::Again).await.unwrap().is_done(), "{mode}");
        whole.insert(written(shop, mode).await);
        was_looked_at(&mut looks).await;
    }
    refrain.close().await;
    refill(shop, 4).await;
    let variables = [("FAILPOINTS", "publish.before-commit=1*return(stop)"), ("PROJECT_LEASE", "60000")];
    let struck = shop.lines("struck").len();
    let process = shop.process(&["run", &window(mode), "--again"], &variables);
    eventually("it hangs", DEADLINE, async || shop.lines("struck").len() > struck).await;
    was_looked_at(&mut looks).await;
    process.end(Signal::KILL);
    shop.expire().await;
    assert!(whole.contains(&written(shop, mode).await), "{mode}: what was not committed is not there");
    let said = shop.done(&["run", &window(mode)]).await;
    assert!(said.starts_with("did Ran done"), "{mode}: {said}");
    whole.insert(written(shop, mode).await);
    was_looked_at(&mut looks).await;
    whole
}

both_databases! {
    async fn m7_in_every_mode_whoever_reads_all_the_time_sees_whole_windows_only(database) {
        let shop = warehouse(database).await;
        let names: Vec<String> = (0..4 * ROWS + 100).map(|i| format!("('r{i}', 0, 'new')")).collect();
        shop.execute(&format!("insert into stock values {}", names.join(", "))).await;
        for mode in MODES {
            let (looks, looked) = watch::channel(0);
            let both = async { tokio::join!(seen(&shop, mode, &looks), done_again(&shop, mode, looked)) };
            let (seen, whole) = tokio::time::timeout(Duration::from_mins(2), both).await.unwrap();
            assert_eq!(whole.len(), 5, "{mode}: each time it is other rows");
            assert!(seen.is_superset(&whole), "{mode}: {} of {} were seen", seen.len(), whole.len());
            let torn = seen.difference(&whole).map(Vec::len).collect::<Vec<_>>();
            assert!(torn.is_empty(), "{mode}: torn windows of so many rows were seen: {torn:?}");
        }
    }
}
