//! A constant reader, in every mode: while windows are repeated with other data, while a publish is killed, and while
//! it is taken over.

use std::collections::BTreeSet;
use std::time::Duration;

use refrain::Ask;
use rustix::process::Signal;
use tokio::sync::watch;

use crate::warehouse::{MODES, warehouse, window, written};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::project::TestProject;

/// How many rows the window has.
const ROWS: u32 = 300;

/// Replaces the rows of the window: every amount changes, half of the keys disappear, and as many new ones appear.
async fn refill(shop: &TestProject, generation: u32) {
    let (first, last) = (generation * ROWS / 2 + 100, generation * ROWS / 2 + 100 + ROWS - 1);
    let recursive = format!(
        "with recursive n (i) as (select {first} union all select i + 1 from n where i < {last}) \
         select i from n"
    );
    let series = format!("select i from generate_series({first}, {last}) as n (i)");
    let series = shop.either(&recursive, &series);
    shop.execute(&format!(
        "delete from orders where day = '2026-06-09';
         insert into orders select i, '2026-06-09', 'r' || i, {generation} from ({series}) as s"
    ))
    .await;
}

/// Every state that the constant reader has seen, each by one statement, and how often it has looked.
async fn seen(shop: &TestProject, mode: &str, looks: &watch::Sender<u64>) -> BTreeSet<Vec<String>> {
    let mut seen = BTreeSet::new();
    while !looks.is_closed() {
        seen.insert(written(shop, mode).await);
        looks.send_modify(|looks| *looks += 1);
        tokio::task::yield_now().await;
    }
    seen
}

/// Waits until the reader has begun to look, and has seen the existing rows.
async fn was_looked_at(looks: &mut watch::Receiver<u64>) {
    let so_far = *looks.borrow_and_update();
    looks.wait_for(|looks| *looks > so_far + 1).await.unwrap();
}

/// Does the window again and again with other data; once in a process that hangs before it commits and is killed there,
/// and then in the one that takes over. Returns the rows after each.
async fn done_again(
    shop: &TestProject,
    mode: &str,
    mut looks: watch::Receiver<u64>,
) -> BTreeSet<Vec<String>> {
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
    let message = shop.done(&["run", &window(mode)]).await;
    assert!(message.starts_with("did Ran done"), "{mode}: {message}");
    whole.insert(written(shop, mode).await);
    was_looked_at(&mut looks).await;
    whole
}

#[both_databases]
async fn m7_in_every_mode_a_constant_reader_sees_only_whole_windows(database: TestDatabase) {
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
